//! How much of an input is taken.

/// The bounds within which an input is read. Beyond one of them reading stops with an error that
/// names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The greatest size of one message in bytes: 100 MB unless told otherwise.
    pub message_bytes: u64,
    /// The greatest size of one conversation in bytes, which is one line of JSON Lines or one
    /// file of any other kind: 512 MiB unless told otherwise.
    ///
    /// It is held in memory at once. While it is converted from another format it takes a multiple
    /// of its size: 2 to 4 times where messages or records have some kilobytes, about 8 times for a
    /// session log of 200,000 lines of 230 bytes, and 10 to 20 times where a line has under 100
    /// bytes or is a branch of its own (measured as the peak of the process).
    pub conversation_bytes: u64,
    /// The greatest depth of nested objects and arrays: 120 unless told otherwise, a little less
    /// than what common JSON readers refuse.
    pub depth: usize,
    /// Packed input may unpack to this many times its size: 100 unless told otherwise. Recorded
    /// conversations reach about 60.
    pub ratio: u64,
    /// The ratio counts only from this many unpacked bytes on: 1 MiB unless told otherwise.
    pub ratio_from: u64,
}

impl Limits {
    /// The same limits, with less depth.
    pub(crate) fn without_depth(&self, levels: usize) -> Self {
        Self { depth: self.depth.saturating_sub(levels), ..*self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 100_000_000,
            conversation_bytes: 512 << 20,
            depth: 120,
            ratio: 100,
            ratio_from: 1 << 20,
        }
    }
}

//! The limits on an input.

/// The limits within which an input is read. Beyond one of them reading stops with an error that
/// names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum size of one message in bytes. The default is 100 MB.
    pub message_bytes: u64,
    /// The maximum size of one conversation in bytes, which is one line of JSON Lines or one file
    /// of any other kind. The default is 512 MiB.
    ///
    /// All of it is held in memory at once. While it is converted from another format it takes a
    /// multiple of its size: 2 to 4 times if messages or records have some kilobytes, about 8 times
    /// for a session log of 200,000 lines of 230 bytes, and 10 to 20 times if a line has under 100
    /// bytes or is a branch of its own (measured as the peak of the process).
    pub conversation_bytes: u64,
    /// The maximum depth of nested objects and arrays. The default is 120, a little less than what
    /// common JSON readers refuse.
    pub depth: usize,
    /// How many times its size a packed input may unpack to. The default is 100; recorded
    /// conversations reach about 60.
    pub ratio: u64,
    /// The ratio counts only from this many unpacked bytes on. The default is 1 MiB.
    pub ratio_from: u64,
}

impl Limits {
    /// Returns the same limits, with less depth.
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

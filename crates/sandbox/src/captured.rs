//! The beginning and the end of an output.

use std::collections::VecDeque;

/// The beginning and the end of an output, and how much was between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    most: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: u64,
}

impl Captured {
    /// Starts empty; at most this many bytes are kept.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Adds what was written next.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = (self.most - self.most / 2).saturating_sub(self.head.len());
        let (head, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(head);
        let kept = &rest[rest.len().saturating_sub(self.most / 2)..];
        let over = (self.tail.len() + kept.len()).saturating_sub(self.most / 2);
        self.tail.drain(..over);
        self.tail.extend(kept);
        self.omitted += (rest.len() - kept.len() + over) as u64;
    }

    /// Returns how many bytes were left out.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Returns the bytes that were kept.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.head.iter().chain(&self.tail).copied().collect()
    }

    /// Returns the output as text. Bytes that are not UTF-8 become U+FFFD; omitted bytes are
    /// reported in their place, and no character is cut there.
    #[must_use]
    pub fn text(&self) -> String {
        if self.omitted == 0 {
            return String::from_utf8_lossy(&self.bytes()).into_owned();
        }
        let head = &self.head[..whole_characters(&self.head)];
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let tail = &tail[tail.iter().take(3).take_while(|byte| is_continuation(**byte)).count()..];
        let cut = self.head.len() + self.tail.len() - head.len() - tail.len();
        format!(
            "{}\n[... {} bytes left out ...]\n{}",
            String::from_utf8_lossy(head),
            self.omitted + cut as u64,
            String::from_utf8_lossy(tail)
        )
    }
}

/// How many bytes at the end belong to an incomplete character.
fn whole_characters(bytes: &[u8]) -> usize {
    let last = bytes.iter().rev().take(4).position(|byte| !is_continuation(*byte));
    let Some(last) = last.map(|back| bytes.len() - 1 - back) else { return bytes.len() };
    match std::str::from_utf8(&bytes[last..]) {
        Err(error) if error.error_len().is_none() => last,
        _ => bytes.len(),
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

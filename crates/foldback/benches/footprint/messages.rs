//! Messages made up by a fixed rule, so that runs compare.

use foldback_core::{Message, ToolCall, ToolCallId};

/// A generator that gives the same numbers each time.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.next() % (1 << 40)) as f64 / (1_u64 << 40) as f64
    }

    /// A word of a vocabulary of 20,000, the first ones far more often than the last.
    fn word(&mut self) -> String {
        let rank = (20_000_f64.powf(self.unit()) - 1.0) as usize;
        const CONSONANTS: &[u8] = b"bcdfghjklmnprstvz";
        const VOWELS: &[u8] = b"aeiou";
        let mut at = if rank < 400 { rank * 79 % 85 } else { rank * 7919 % (85 * 85 * 85) };
        let mut word = String::new();
        for _ in 0..if rank < 400 { 2 } else { 3 } {
            word.push(CONSONANTS[at % 17] as char);
            word.push(VOWELS[at / 17 % 5] as char);
            at /= 85;
        }
        word
    }

    /// About `bytes` of words.
    pub(crate) fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 8);
        while text.len() < bytes {
            text.push_str(&self.word());
            text.push(' ');
        }
        text
    }
}

/// A chat of messages of 420 bytes, the median of what agents write.
pub(crate) fn chat(count: usize) -> Vec<Message> {
    let mut random = Random::new(1);
    let message = |n: usize| {
        let text = random.text(420);
        if n.is_multiple_of(2) { Message::user(&text) } else { Message::assistant(&text) }
    };
    (0..count).map(message).collect()
}

/// A call and its result of so many bytes.
pub(crate) fn large_result(n: usize, bytes: usize) -> [Message; 2] {
    let id = format!("call_{n}");
    let text = Random::new(n as u64).text(bytes);
    [
        Message::calls("", vec![ToolCall::new(&id, "read", "{}")]),
        Message::tool_result(&ToolCallId::new(&id), &text),
    ]
}

//! Numbers and words made up by a fixed rule, the same on every run and every machine.

/// A generator that gives the same numbers each time.
pub struct Random(u64);

impl Random {
    /// Seeds next to each other give unlike numbers.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// xorshift64*, without the lowest bits.
    fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// From 0 up to, but not including, 1.
    pub fn unit(&mut self) -> f32 {
        (self.number() % 1_000_000) as f32 / 1_000_000.0
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.number() % end as u64) as usize
    }

    /// A word of a vocabulary of 20,000, the first ones far more often than the last.
    pub fn word(&mut self) -> String {
        const CONSONANTS: &[u8] = b"bcdfghjklmnprstvz";
        const VOWELS: &[u8] = b"aeiou";
        let share = (self.number() % (1 << 40)) as f64 / (1_u64 << 40) as f64;
        let rank = (20_000_f64.powf(share) - 1.0) as usize;
        let mut at = if rank < 400 { rank * 79 % 85 } else { rank * 7919 % (85 * 85 * 85) };
        let mut word = String::new();
        for _ in 0..if rank < 400 { 2 } else { 3 } {
            word.push(CONSONANTS[at % 17] as char);
            word.push(VOWELS[at / 17 % 5] as char);
            at /= 85;
        }
        word
    }

    /// So many words.
    pub fn words(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    /// Words of `bytes` bytes or a few more.
    pub fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 8);
        while text.len() < bytes {
            text.push_str(&self.word());
            text.push(' ');
        }
        text
    }

    /// A line of so many numbered words (`word17`), whose frequencies fall as in language.
    pub fn line(&mut self, words: usize) -> String {
        let words: Vec<String> = (0..words)
            .map(|_| format!("word{}", (3_000f32.powf(self.unit()) - 1.0) as usize))
            .collect();
        words.join(" ")
    }
}

//! Exact token counts for o200k, the vocabulary of GPT-4o and later models.
//!
//! [`O200k`] counts what [`foldback_core::Estimate`] estimates, for measurements and reports. Its
//! tables take about 129 ms to load and 48 MB of memory, once per process, at the first count.
//!
//! The running system does **not** count with it: it estimates. It counts the text of messages, not
//! what a provider adds around them ([`foldback_core::message_tokens`] does), and it does not know
//! other vocabularies.
//!
//! ```
//! use foldback_core::TokenCounter;
//! use foldback_o200k::O200k;
//!
//! assert_eq!(O200k.count("The quick brown fox."), 5);
//! ```

use foldback_core::TokenCounter;

/// The o200k vocabulary (`o200k_base`). All values share one set of tables, loaded at the first
/// count. A text that looks like a special token (`<|endoftext|>`) is counted as the text it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct O200k;

impl TokenCounter for O200k {
    fn count(&self, text: &str) -> usize {
        let tokens = tiktoken_rs::o200k_base_singleton();
        // The pattern backtracks over white space, one step for each character, and the counter
        // panics after too many steps: somewhere between 100,000 and 1,000,000. So a run that is
        // longer than any in real text is counted in parts.
        let (mut count, mut from, mut run) = (0, 0, 0);
        for (at, c) in text.char_indices() {
            run = if c.is_whitespace() { run + 1 } else { 0 };
            if run > LONGEST_SPACE {
                count += tokens.count_ordinary(text.get(from..at).unwrap_or(""));
                (from, run) = (at, 1);
            }
        }
        count + tokens.count_ordinary(text.get(from..).unwrap_or(""))
    }
}

/// The longest run of white space that is counted at once.
const LONGEST_SPACE: usize = 50_000;

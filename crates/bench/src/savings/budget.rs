//! What a model reads of an answer.

use foldback_core::TokenCounter;
use foldback_o200k::O200k;

/// The number of tokens of an answer that a model is given, whatever the tool's own bound.
pub(crate) const ANSWER_TOKENS: usize = 2_000;

/// Returns whether a whole text fits into an answer.
pub(crate) fn fits(text: &str) -> bool {
    text.len() <= ANSWER_TOKENS
        || (text.len() <= ANSWER_TOKENS * LONGEST_TOKEN && O200k.count(text) <= ANSWER_TOKENS)
}

/// The maximum number of bytes in a token.
const LONGEST_TOKEN: usize = 128;

/// The size, in bytes, of the pieces in which long lines are counted.
const PIECE: usize = 256;

/// Returns the beginning of a text in at most [`ANSWER_TOKENS`], and its number of tokens.
pub(crate) fn beginning(text: &str) -> (&str, u64) {
    // No token is shorter than a byte.
    let whole = if text.len() <= ANSWER_TOKENS * 16 { O200k.count(text) } else { usize::MAX };
    if whole <= ANSWER_TOKENS {
        return (text, whole as u64);
    }
    let (mut end, mut tokens) = (0, 0);
    while end < text.len() {
        let line =
            text.get(end..).and_then(|rest| rest.find('\n')).map_or(text.len(), |at| end + at + 1);
        let next = text.ceil_char_boundary(line.min(end + PIECE));
        let more = O200k.count(text.get(end..next).unwrap_or_default());
        if tokens + more > ANSWER_TOKENS {
            break;
        }
        tokens += more;
        end = next;
    }
    (text.get(..end).unwrap_or(text), tokens as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_fits_by_its_tokens() {
        for (text, expected) in
            [("ab ".repeat(1_900), true), ("ab ".repeat(2_100), false), ("大".repeat(9_000), false)]
        {
            assert_eq!((fits(&text), beginning(&text).0 == text), (expected, expected));
        }
    }

    #[test]
    fn a_long_answer_is_read_up_to_the_bound() {
        assert_eq!(beginning("a b c"), ("a b c", 3));
        for text in ["word ".repeat(9_000), "很长的一行".repeat(9_000), "a line\n".repeat(9_000)]
        {
            let (read, tokens) = beginning(&text);
            assert!(text.starts_with(read) && tokens <= ANSWER_TOKENS as u64);
            assert!(tokens > ANSWER_TOKENS as u64 - 200, "{tokens}");
            assert!(O200k.count(read) <= ANSWER_TOKENS);
        }
    }
}

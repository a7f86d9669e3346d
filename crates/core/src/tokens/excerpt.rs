//! Excerpts in a number of tokens: what is left out is counted, never lost.

use super::TokenCounter;

/// The part of a text that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The text, or its beginning and its end around a mark.
    pub text: String,
    /// How many characters are not shown.
    pub left_out: usize,
    /// How many characters the text has.
    pub of: usize,
}

/// Returns `text` in about `max` tokens: whole if it fits, otherwise two thirds from its beginning
/// and one third from its end. Cuts between characters, never inside one; a mark of its own (some
/// 15 tokens) takes the place of the middle.
///
/// ```
/// use foldback_core::{Estimate, excerpt};
///
/// assert_eq!(excerpt("杭州天气", 20, &Estimate).text, "杭州天气");
/// let shown = excerpt(&"天气 ".repeat(300), 12, &Estimate);
/// assert!(shown.text.contains(&format!("[… {} of 900 characters left out …]", shown.left_out)));
/// ```
#[must_use]
pub fn excerpt(text: &str, max: usize, counter: &dyn TokenCounter) -> Excerpt {
    let head = longest_head(text, max, counter);
    if head == text.len() {
        return Excerpt { text: text.to_owned(), left_out: 0, of: text.chars().count() };
    }
    let head = longest_head(text, max * 2 / 3, counter);
    let (head, rest) = text.split_at(head);
    let tail = longest_tail(rest, max / 3, counter);
    let (middle, tail) = rest.split_at(tail);
    let left_out = middle.chars().count();
    let of = head.chars().count() + left_out + tail.chars().count();
    let text = format!("{head} [… {left_out} of {of} characters left out …] {tail}");
    Excerpt { text, left_out, of }
}

/// Divides `budget` between texts of these sizes: a text that needs less than an equal share leaves
/// the rest to the others.
#[must_use]
pub fn fair_shares(sizes: &[usize], budget: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|&at| sizes.get(at));
    let mut shares = vec![0; sizes.len()];
    let mut left = budget;
    for (done, &at) in order.iter().enumerate() {
        let equal = left / (sizes.len() - done);
        let share = sizes.get(at).copied().unwrap_or(0).min(equal);
        left -= share;
        if let Some(slot) = shares.get_mut(at) {
            *slot = share;
        }
    }
    shares
}

/// No token that is worth showing has more bytes than this; it avoids counting a text of megabytes
/// as a whole.
const BYTES_A_TOKEN: usize = 16;

/// Returns the longest beginning of a text that has at most `max` tokens.
#[must_use]
pub fn first_tokens<'t>(text: &'t str, max: usize, counter: &dyn TokenCounter) -> &'t str {
    text.get(..longest_head(text, max, counter)).unwrap_or(text)
}

/// Returns where the longest beginning of at most `max` tokens ends.
fn longest_head(text: &str, max: usize, counter: &dyn TokenCounter) -> usize {
    let bound = text.floor_char_boundary(max.saturating_mul(BYTES_A_TOKEN));
    let fits = |end: usize| text.get(..end).is_none_or(|head| counter.count(head) <= max);
    if fits(bound) {
        return bound;
    }
    // Counts grow with the text, so the end is found by bisection.
    let (mut low, mut high) = (0, bound);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(text.floor_char_boundary(middle)) { low = middle } else { high = middle }
    }
    text.floor_char_boundary(low)
}

/// Returns where the longest end of at most `max` tokens begins.
fn longest_tail(text: &str, max: usize, counter: &dyn TokenCounter) -> usize {
    let bound = text.len().saturating_sub(max.saturating_mul(BYTES_A_TOKEN));
    let bound = text.ceil_char_boundary(bound);
    let fits = |begin: usize| text.get(begin..).is_none_or(|tail| counter.count(tail) <= max);
    if fits(bound) {
        return bound;
    }
    let (mut low, mut high) = (bound, text.len());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(text.ceil_char_boundary(middle)) { high = middle } else { low = middle }
    }
    text.ceil_char_boundary(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Estimate;

    #[test]
    fn a_short_text_is_shown_whole() {
        for text in ["", "晴", "sunny, 21 °C"] {
            let shown = excerpt(text, 20, &Estimate);
            assert_eq!((shown.text.as_str(), shown.left_out), (text, 0));
        }
    }

    #[test]
    fn what_is_left_out_is_counted_in_characters() {
        let texts = [
            "数据库连接失败，".repeat(400),
            "e\u{301}👩‍👩‍👧 ".repeat(500),
            (0..3000).map(|n| format!("line {n}\n")).collect(),
        ];
        for text in texts {
            let shown = excerpt(&text, 60, &Estimate);
            assert_eq!(shown.of, text.chars().count());
            let mark = format!(" [… {} of {} characters left out …] ", shown.left_out, shown.of);
            let (head, tail) = shown.text.split_once(&mark).unwrap();
            assert!(text.starts_with(head) && text.ends_with(tail), "{}", shown.text);
            assert!(!head.is_empty() && !tail.is_empty());
            assert_eq!(head.chars().count() + tail.chars().count() + shown.left_out, shown.of);
            let tokens = Estimate.count(head) + Estimate.count(tail);
            assert!(tokens <= 60, "{tokens}");
        }
    }

    #[test]
    fn shares_leave_to_the_large_what_the_small_do_not_need() {
        assert_eq!(fair_shares(&[10, 1000, 20, 500], 630), [10, 300, 20, 300]);
        assert_eq!(fair_shares(&[1, 2], 100), [1, 2]);
        assert_eq!(fair_shares(&[], 100), Vec::<usize>::new());
        assert_eq!(fair_shares(&[5, 5], 0), [0, 0]);
    }
}

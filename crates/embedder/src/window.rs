//! The parts in which a long text is embedded.

use foldback_core::script::{
    is_cjk_mark, is_full_or_half_width, is_hexagram, is_ideograph, is_kana,
};

/// The maximum length of a window, in bytes: about 85 words of English, 170 characters of Chinese.
///
/// Measured by searching for a long message (over 1,500 bytes) with half of the longer words of one of its lines, among
/// 158 chat messages and among 114 tool outputs; mean reciprocal rank:
///
/// | bytes | 128 | 256 | **512** | 768 | 1,024 | 2,048 | whole |
/// |---|---|---|---|---|---|---|---|
/// | chat | .778 | .750 | **.685** | .624 | .617 | .589 | .577 |
/// | tool output | .454 | .374 | **.282** | .258 | .257 | .258 | .217 |
///
/// At 768 most of what windows gain is gone; 256 gains more, for twice the vectors. (Windows were
/// cut at white space only for this, and the questions are made of the text's own words, so the
/// order of the columns means more than their height.)
pub const WINDOW_BYTES: usize = 512;

/// Cuts `text` into windows of at most [`WINDOW_BYTES`], without overlap and without a gap: joined,
/// they are the text.
///
/// A window ends after the last line end in its last quarter, else after the last white space in
/// its last half, else after the last CJK character there, else between two characters.
pub fn windows(text: &str) -> impl Iterator<Item = &str> {
    windows_by(text, bytes_that_fit)
}

/// Like [`windows`], but each window is at most as long as `fit` says for the remaining text: how many of its first
/// bytes a window may take, up to the end of a character.
pub(crate) fn windows_by(text: &str, fit: impl Fn(&str) -> usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (window, tail) = rest.split_at_checked(cut_before(rest, fit(rest)))?;
        rest = tail;
        (!window.is_empty()).then_some(window)
    })
}

/// Returns at most `limit` windows of `text`, in order, as [`windows_by`] cuts it. Of a text with more, the first half
/// of `limit` windows and the last half: the beginning of a long text says what it is about, the end how it turned out.
/// Only these are read, however long the text is.
pub(crate) fn windows_within(
    text: &str,
    limit: usize,
    fit: impl Fn(&str) -> usize + Copy,
) -> Vec<&str> {
    let mut found: Vec<&str> = windows_by(text, fit).take(limit.saturating_add(1)).collect();
    if found.len() > limit {
        let tail = limit / 2;
        let longest = found.iter().map(|window| window.len()).max().unwrap_or(0);
        found.truncate(limit - tail);
        let from = text.ceil_char_boundary(text.len().saturating_sub(tail * longest));
        let read: usize = found.iter().map(|window| window.len()).sum();
        let rest = text.get(from.max(read)..).unwrap_or_default();
        let last: Vec<&str> = windows_by(rest, fit).collect();
        found.extend(last.into_iter().rev().take(tail).rev());
    }
    found
}

/// Returns how many of the first bytes of a text make a window of the built-in embedder.
pub(crate) fn bytes_that_fit(text: &str) -> usize {
    text.floor_char_boundary(WINDOW_BYTES)
}

/// Returns where a window ends of which the first `end` bytes fit.
fn cut_before(text: &str, end: usize) -> usize {
    if text.len() <= end {
        return text.len();
    }
    let after = |from: usize, wanted: fn(char) -> bool| {
        let from = text.floor_char_boundary(from);
        let part = text.get(from..end)?;
        let (at, c) = part.char_indices().rev().find(|&(_, c)| wanted(c))?;
        Some(from + at + c.len_utf8())
    };
    after(end * 3 / 4, |c| c == '\n')
        .or_else(|| after(end / 2, char::is_whitespace))
        .or_else(|| after(end / 2, ends_cjk_word))
        .unwrap_or(end)
}

/// Returns whether a window may end after this character, since words and sentences do. The vectors of windows are
/// stored, so this set of characters must not change.
fn ends_cjk_word(c: char) -> bool {
    is_cjk_mark(c) || is_kana(c) || is_ideograph(c) || is_hexagram(c) || is_full_or_half_width(c)
}

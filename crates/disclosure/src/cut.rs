//! Cuts texts to a limit, between characters.

use foldback_core::TokenCounter;
pub(crate) use foldback_core::one_line;

/// Returns `text` in at most `max` tokens, with an ellipsis if its end is cut. Costs a few counts
/// of what is kept, however long `text` is.
pub(crate) fn cut_tokens(text: &str, max: usize, tokens: &dyn TokenCounter) -> String {
    // Nothing worth keeping has over 16 bytes per token, so no more than this is ever examined.
    let bound = text.floor_char_boundary(max.saturating_mul(16));
    let head = text.get(..bound).unwrap_or(text);
    if head.len() == text.len() && tokens.count(text) <= max {
        return text.to_owned();
    }
    // Counts grow with the text, so the longest head that fits is found by bisection.
    let ends: Vec<usize> = head.char_indices().map(|(at, c)| at + c.len_utf8()).collect();
    let kept = |end: usize| head.get(..end).unwrap_or("").trim_end();
    let fitting = ends.partition_point(|&end| tokens.count(kept(end)) < max);
    let end = fitting.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or(0);
    format!("{}…", kept(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::Estimate;

    #[test]
    fn cuts_at_characters_within_the_bound() {
        for text in ["short", &"数据库连接失败，".repeat(60), &"path/to/file.rs ".repeat(300), ""]
        {
            for max in [1, 5, 40] {
                let cut = cut_tokens(text, max, &Estimate);
                assert!(Estimate.count(&cut) <= max + 1, "{max}: {cut}");
            }
        }
        assert_eq!(cut_tokens("short", 5, &Estimate), "short");
    }
}

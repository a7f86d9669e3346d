//! The beginning of a text, for a message.

/// Characters of an excerpt.
const MOST: usize = 60;

/// Returns at most sixty characters of a text, on one line.
pub(crate) fn of(text: &str) -> String {
    let mut excerpt = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == MOST {
            excerpt.push('…');
            break;
        }
        if c.is_control() { excerpt.extend(c.escape_debug()) } else { excerpt.push(c) }
    }
    excerpt
}

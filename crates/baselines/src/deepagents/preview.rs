//! What remains of a text that went to a file: its path, its first and its last lines.

/// The number of lines shown at the beginning and at the end.
const LINES: usize = 5;

/// The number of characters shown of each.
const LINE_CHARACTERS: usize = 1_000;

/// Returns the text in place of `text`, which is in the file `path`.
pub(super) fn stub(path: &str, text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = String::new();
    for (at, line) in lines.iter().enumerate() {
        if at < LINES || at + LINES >= lines.len() {
            let line: String = line.chars().take(LINE_CHARACTERS).collect();
            shown.push_str(&format!("\n{}  {line}", at + 1));
        } else if at == LINES {
            shown.push_str(&format!("\n... {} lines left out ...", lines.len() - 2 * LINES));
        }
    }
    format!(
        "This is too large to be shown and was saved to {path}. Read parts of it with read_file \
         (offset and limit in lines), or search it with grep. Its first and last lines, at most \
         {LINE_CHARACTERS} characters of each:\n{shown}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(n: usize) -> String {
        (1..=n).map(|i| format!("第{i}行\n")).collect()
    }

    #[test]
    fn five_lines_are_shown_at_either_end() {
        let ten = stub("/f", &numbered(10));
        assert!(ten.contains("\n5  第5行\n6  第6行\n") && !ten.contains("left out"), "{ten}");
        let eleven = stub("/f", &numbered(11));
        assert!(eleven.contains("\n5  第5行\n... 1 lines left out ...\n7  第7行\n"), "{eleven}");
        assert!(eleven.contains("saved to /f."), "{eleven}");
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        let long = stub("/f", &"门".repeat(90_000));
        assert_eq!(long.matches('门').count(), LINE_CHARACTERS);
    }
}

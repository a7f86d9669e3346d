//! A command line as a shell reads it.

/// The words of a command: separated by spaces, except within quotes.
pub(super) fn words(command: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in command.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ' ') => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[test]
fn quotes_hold_words_together() {
    assert_eq!(
        words("foldback run --id a \"Copy 'it'\" ''"),
        ["foldback", "run", "--id", "a", "Copy 'it'", ""]
    );
    assert_eq!(words("foldback search  '三 本书'"), ["foldback", "search", "三 本书"]);
}

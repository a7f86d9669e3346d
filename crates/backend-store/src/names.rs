//! Recognises the names that source code defines, line by line.

/// Returns the name that this line defines, with the word that defines it: `fn parse`, `class Order`.
pub(crate) fn defined_name(line: &str) -> Option<(&str, &str)> {
    const BEFORE: [&str; 17] = [
        "pub ",
        "pub(crate) ",
        "pub(super) ",
        "export ",
        "default ",
        "public ",
        "private ",
        "protected ",
        "internal ",
        "static ",
        "final ",
        "abstract ",
        "async ",
        "unsafe ",
        "const ",
        "extern ",
        "+",
    ];
    const WORDS: [&str; 14] = [
        "fn",
        "def",
        "class",
        "struct",
        "enum",
        "trait",
        "interface",
        "function",
        "func",
        "type",
        "impl",
        "module",
        "namespace",
        "macro_rules!",
    ];
    let mut rest = line.trim_start();
    while let Some(after) = BEFORE.iter().find_map(|before| rest.strip_prefix(before)) {
        rest = after.trim_start();
    }
    let (word, after) = rest.split_once(' ')?;
    let word = WORDS.iter().find(|known| **known == word)?;
    let mut after = after.trim_start();
    if *word == "func"
        && let Some(receiver) = after.strip_prefix('(')
    {
        // A Go method names its receiver first.
        after = receiver.split_once(')')?.1.trim_start();
    }
    if *word == "impl" {
        // `impl Trait for Type {`: all of it is the name.
        let name = after.split(['{', '<']).next().unwrap_or_default().trim();
        return (line.contains('{') && !name.is_empty()).then_some((*word, name));
    }
    let end = after
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$')))
        .unwrap_or(after.len());
    let (name, tail) = after.split_at(end);
    // Prose says `class of` and `type a`; code continues with a bracket, a colon or the like, or
    // ends there.
    let goes_on = match tail.trim_start().chars().next() {
        None => !matches!(*word, "type" | "function" | "class") || tail.is_empty() && end > 2,
        Some(next) => {
            matches!(next, '(' | '<' | '{' | ':' | '=' | ';' | '[')
                || tail.trim_start().starts_with("extends ")
                || tail.trim_start().starts_with("implements ")
                || tail.trim_start().starts_with("struct ")
                || tail.trim_start().starts_with("interface ")
        }
    };
    let starts = name.chars().next().is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '$'));
    (starts && goes_on).then_some((*word, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_told_from_prose() {
        #[track_caller]
        fn check(line: &str, expected: Option<(&str, &str)>) {
            assert_eq!(defined_name(line), expected, "{line}");
        }
        check("pub(crate) async fn load(&self) {", Some(("fn", "load")));
        check("    def put_item(self, x):", Some(("def", "put_item")));
        check("export default class Order extends Base {", Some(("class", "Order")));
        check("func (s *Store) Get(key string) error {", Some(("func", "Get")));
        check("type Point struct {", Some(("type", "Point")));
        check("impl fmt::Display for Meta {", Some(("impl", "fmt::Display for Meta")));
        check("public static class 订单 {", Some(("class", "订单")));
        check("class of 1984 was the best", None);
        check("the function returns", None);
        check("type a letter", None);
        check("", None);
        check("fn", None);
        check("func (broken", None);
    }
}

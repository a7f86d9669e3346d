//! The parts of a sub-agent's last message that are passed on: a short conclusion, and the references it names.

use foldback_core::{Estimate, PayloadRef, Reference, TodoId, TodoList, excerpt};

/// The most references that are taken from one conclusion.
const MOST_REFERENCES: usize = 32;

/// Returns the text in about `tokens` tokens, and no more characters than a todo list's item keeps: whole if
/// it fits, otherwise its beginning and its end.
pub(super) fn conclusion(text: &str, mut tokens: usize) -> String {
    let text = text.trim();
    loop {
        let shown = excerpt(text, tokens, &Estimate).text;
        // Few characters can be many tokens, and vice versa.
        if shown.chars().count() <= TodoList::MAX_RESULT || tokens == 0 {
            return shown;
        }
        tokens /= 2;
    }
}

/// Returns the blocks and payloads of `own` that a text names, each once, in order. Whether they exist is not
/// checked.
pub(super) fn named(own: &TodoId, text: &str) -> Vec<Reference> {
    let mut found = Vec::new();
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._:/-".contains(c);
    for word in text.split(|c: char| !is_part(c)) {
        // The end of a sentence is not part of a name.
        let word = word.trim_end_matches(['.', ':', '-', '/']);
        if !word.starts_with("b_") && !word.starts_with(PayloadRef::SCHEME) {
            continue;
        }
        let Ok(reference) = Reference::parse_in(own, word) else { continue };
        if reference.todo() == own && !found.contains(&reference) {
            found.push(reference);
        }
        if found.len() == MOST_REFERENCES {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::TokenCounter;

    /// CX7: a conclusion is short, in any language, and says what it leaves out.
    #[test]
    fn cx7_a_conclusion_is_short() {
        assert_eq!(conclusion(" 周六晴 \n", 400), "周六晴");
        for text in ["晴空万里，", "word ", "e\u{301}👩‍👩‍👧 ", "                   ", "0x7f3a9c"]
        {
            let text = text.repeat(5_000);
            let short = conclusion(&text, 400);
            assert!(Estimate.count(&short) <= 440, "{}", Estimate.count(&short));
            assert!(short.chars().count() <= TodoList::MAX_RESULT);
            assert!(short.contains("characters left out") || text.trim().is_empty(), "{short}");
        }
        assert!(conclusion(&"=".repeat(100_000), 2_000).chars().count() <= TodoList::MAX_RESULT);
    }

    /// TD4: references that a sub-agent names are found anywhere in its words; those of others are not.
    #[test]
    fn td4_references_are_found_in_words() {
        let own = TodoId::new("task.read").unwrap();
        #[track_caller]
        fn check(own: &TodoId, text: &str, expected: &[&str]) {
            let found: Vec<String> = named(own, text).iter().map(ToString::to_string).collect();
            assert_eq!(found, expected, "{text}");
        }
        check(&own, "See b_003.", &["b_task.read_003"]);
        check(
            &own,
            "潮位见b_task.read_001，表在store://2-k4qd。",
            &["b_task.read_001", "store://task.read/2-k4qd"],
        );
        check(
            &own,
            "(`b_001`, b_task.read_001; \"store://task.read/1-abcd\")",
            &["b_task.read_001", "store://task.read/1-abcd"],
        );
        check(
            &own,
            "b_task_001 and store://other/1-abcd are not mine, 7-abcd is no name here",
            &[],
        );
        check(&own, "sub_b_001 lib_b b_1 b_ store:// https://a/b_001", &[]);
        let many: String = (1..=100).map(|n| format!("b_{n:03}, ")).collect();
        assert_eq!(named(&own, &many).len(), MOST_REFERENCES);
    }
}

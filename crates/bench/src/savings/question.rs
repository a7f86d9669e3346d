//! What an agent that misses a value would search for: made of what it was asked last and of the
//! argument that it has to fill, never of the value.

use super::facts::Need;
use super::values::Values;
use foldback_core::{Message, Role};

/// So many characters of the user's text are enough to search by.
const MOST_CHARS: usize = 400;

/// The question for an argument of a call behind the first messages `so_far`: the beginning of the
/// latest user text, the tool and the argument. Wherever one of the wanted values stands in it, it is
/// taken out.
pub(crate) fn question(so_far: &[Message], need: &Need, values: &Values) -> String {
    let asked = so_far.iter().rev().find(|message| *message.role() == Role::User);
    let asked = asked.map_or_else(String::new, |message| message.text().into_owned());
    let words = need.argument.replace('.', " ");
    let mut question = format!("{} {} {words}", beginning(&asked), need.tool);
    let values = need.facts.iter().filter_map(|fact| values.get(fact.value));
    let mut values: Vec<&str> = values.map(|value| value.text.as_str()).collect();
    // The longest first, so that no rest of it stays.
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    for value in values {
        question = question.replace(value, " ");
    }
    question.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first characters, up to a border of words where there is one.
fn beginning(text: &str) -> &str {
    let Some((end, _)) = text.char_indices().nth(MOST_CHARS) else { return text };
    let head = text.get(..end).unwrap_or(text);
    match head.rfind(char::is_whitespace) {
        Some(border) if border > end / 2 => head.get(..border).unwrap_or(head),
        _ => head,
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::Facts;
    use super::*;
    use foldback_testkit::transcript;

    #[test]
    fn a_question_is_made_of_what_was_asked_and_never_holds_the_value() {
        let messages = transcript(
            r#"
            user: Which boat?
            assistant: The Marlin at 大阪城公园, PX-7781.
            user: Move PX-7781   to 大阪城公园, please.
            assistant> move_boat({"to": {"place": "大阪城公园"}, "boat": "PX-7781"})
            tool: done
            "#,
        );
        let facts = Facts::of(&messages);
        let asked = |n: usize| question(&messages[..3], &facts.needs[&3][n], &facts.values);
        assert_eq!(asked(0), "Move PX-7781 to , please. move_boat to place");
        assert_eq!(asked(1), "Move to 大阪城公园, please. move_boat boat");
    }

    #[test]
    fn a_long_text_is_cut_at_a_word() {
        let long = "harbour ".repeat(90);
        assert!(beginning(&long).len() <= MOST_CHARS && beginning(&long).ends_with("harbour"));
        assert_eq!(beginning(&"船".repeat(900)).chars().count(), MOST_CHARS);
        assert_eq!(beginning("short"), "short");
    }
}

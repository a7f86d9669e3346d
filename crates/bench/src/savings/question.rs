//! What an agent that misses a value would search for: derived from its latest request and the argument
//! that it has to fill, never from the value.

use super::facts::Need;
use super::values::{Values, forms};
use foldback_core::{Message, Role};

/// The number of characters of the user's text, and of an argument's name, that are enough to search
/// by.
const MOST_CHARS: usize = 400;

/// Returns the question for an argument of a call after the first messages `so_far`: the beginning of
/// the latest user text, the tool and the argument, with single spaces. Every occurrence of a wanted
/// value in it, in any letter case or as JSON writes it, is removed.
pub(crate) fn question(so_far: &[Message], need: &Need, values: &Values) -> String {
    let asked = so_far.iter().rev().find(|message| *message.role() == Role::User);
    let asked = asked.map_or_else(String::new, |message| beginning(&message.text()));
    let words = beginning(&need.argument.replace('.', " "));
    let mut question = single_spaced(&format!("{asked} {} {words}", need.tool));
    let wanted = need.facts.iter().filter_map(|fact| values.get(fact.value));
    let wanted = wanted.flat_map(forms).map(|form| single_spaced(&form));
    let mut wanted: Vec<Vec<char>> = wanted.map(|form| folded(&form)).collect();
    wanted.retain(|form| !form.is_empty());
    // The longest first, so that no remainder of it is left.
    wanted.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    wanted.dedup();
    // The text around a value may form another when it is removed; each round leaves less.
    loop {
        let before = question.len();
        for value in &wanted {
            question = single_spaced(&without(&question, value));
        }
        if question.len() == before {
            return question;
        }
    }
}

/// Returns the first characters, with single spaces, up to a word boundary if there is one.
fn beginning(text: &str) -> String {
    let (mut head, mut left) = (String::new(), MOST_CHARS);
    for word in text.split_whitespace() {
        let gap = usize::from(!head.is_empty());
        let chars = word.chars().take(left + 1).count() + gap;
        if chars > left && left < MOST_CHARS / 2 {
            break;
        }
        head.push_str(if gap > 0 { " " } else { "" });
        head.extend(word.chars().take(left.saturating_sub(gap)));
        if chars > left {
            break;
        }
        left -= chars;
    }
    head
}

fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the characters with their case folded.
fn folded(text: &str) -> Vec<char> {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// Returns the text with a space in place of each folded value.
fn without(text: &str, value: &[char]) -> String {
    // Each folded character, with the beginning and end of its original in the text.
    let (mut chars, mut spans) = (Vec::new(), Vec::new());
    for (at, c) in text.char_indices() {
        for lower in c.to_lowercase() {
            chars.push(lower);
            spans.push((at, at + c.len_utf8()));
        }
    }
    let (mut kept, mut end, mut at) = (String::new(), 0, 0);
    while let Some(window) = chars.get(at..at + value.len()) {
        if window != value {
            at += 1;
            continue;
        }
        let first = spans.get(at).map_or(end, |span| span.0);
        kept.push_str(text.get(end..first).unwrap_or_default());
        kept.push(' ');
        at += value.len();
        end = spans.get(at - 1).map_or(end, |span| span.1);
    }
    kept.push_str(text.get(end..).unwrap_or_default());
    kept
}

#[cfg(test)]
mod tests {
    use super::super::facts::Facts;
    use super::*;
    use foldback_testkit::transcript;

    /// The questions for each argument of the only call.
    fn asked(script: &str) -> Vec<String> {
        let messages = transcript(script);
        let facts = Facts::of(&messages).unwrap();
        let (at, needs) = facts.needs.iter().next().unwrap();
        needs.iter().map(|need| question(&messages[..*at], need, &facts.values)).collect()
    }

    #[test]
    fn a_question_is_made_of_what_was_asked_and_never_holds_the_value() {
        let asked = asked(
            r#"
            user: Which boat?
            assistant: The Marlin at 大阪城公园, PX-7781.
            user: Move PX-7781   to 大阪城公园, please.
            assistant> move_boat({"to": {"place": "大阪城公园"}, "boat": "PX-7781"})
            tool: done
            "#,
        );
        assert_eq!(asked[0], "Move PX-7781 to , please. move_boat to place");
        assert_eq!(asked[1], "Move to 大阪城公园, please. move_boat boat");
    }

    #[test]
    fn a_value_that_is_spaced_written_or_cased_otherwise_is_taken_out_as_well() {
        let asked = asked(
            r#"
            user: the berth is North Quay 17, boat Marlin-Straße, ÉCOLE, "a\nb c"
            assistant: noted
            user: go on with north   QUAY 17 now, MARLIN-STRAßE of the école
            assistant> moor({"berth": "North Quay 17", "boat": "Marlin-Straße", "of": "ÉCOLE"})
            tool: done
            "#,
        );
        assert_eq!(asked[0], "go on with now, MARLIN-STRAßE of the école moor berth");
        assert_eq!(asked[1], "go on with north QUAY 17 now, of the école moor boat");
        assert_eq!(asked[2], "go on with north QUAY 17 now, MARLIN-STRAßE of the moor of");
    }

    #[test]
    fn what_closes_up_around_a_value_is_no_value() {
        assert_eq!(without("İ and abc", &folded("İ")), "  and abc");
        assert_eq!(without("xabcabcx", &folded("abc")), "x  x");
        let asked = asked(
            r#"
            user: the code is gate nine
            assistant: noted
            user: open gate gate nine nine now
            assistant> open({"code": "gate nine"})
            tool: done
            "#,
        );
        assert_eq!(asked, ["open now open code"]);
    }

    #[test]
    fn a_long_text_is_cut_at_a_word() {
        let long = "harbour \n ".repeat(90);
        let head = beginning(&long);
        assert!(head.len() <= MOST_CHARS && head.len() > MOST_CHARS - 9, "{head}");
        assert!(head.ends_with("harbour harbour"));
        assert_eq!(beginning(&"船".repeat(900)).chars().count(), MOST_CHARS);
        assert_eq!(beginning(&format!("大 {}", "船".repeat(900))).chars().count(), MOST_CHARS);
        assert_eq!(beginning(" short\ttext "), "short text");
    }
}

//! The rule that stands in for a model wherever the original lets one write a summary: it selects from
//! what was said, so that the same conversation gives the same bytes.

use crate::note::{Note, NoteKind, excerpt};
use foldback_core::{Message, Role, SeqNo, TokenCounter};
use std::collections::BTreeSet;

/// The description of a text that the rule selected.
pub(crate) const BY_RULE: &str = "extracted by rule, not written by a model";

/// The maximum number of tokens in a summary, for every policy that has one. The prompt of LangChain
/// and deepagents asks for four sections (intent, summary, artifacts, next steps) and names no limit;
/// so the limit is what the memory of `stm-ltm` holds after each of its own summaries.
pub(crate) const SUMMARY_TOKENS: usize = 2_000;

/// The maximum numbers of tokens of a request, of the model's words, of one call's arguments, and of
/// one result. A call with its words and its result takes about 300.
const ASKED_TOKENS: usize = 120;
const SAID_TOKENS: usize = 60;
const CALL_TOKENS: usize = 60;
const RESULT_TOKENS: usize = 160;

/// Returns the notes of a message, each within the limit of its kind.
pub(crate) fn trimmed(seq: SeqNo, message: &Message, counter: &dyn TokenCounter) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut push = |kind, text| notes.push(Note { kind, of: Some(seq), text });
    let (kind, max) = match message.role() {
        Role::Tool => (NoteKind::Result, RESULT_TOKENS),
        Role::User => (NoteKind::Asked, ASKED_TOKENS),
        role if role.is_instruction() => (NoteKind::Asked, ASKED_TOKENS),
        _ => (NoteKind::Did, SAID_TOKENS),
    };
    let text = excerpt(&message.text(), max, counter);
    match message.role() {
        Role::Tool => push(kind, format!("-> {text}")),
        _ if text.is_empty() => {}
        role => push(kind, format!("{}: {text}", role.as_str())),
    }
    for call in message.tool_calls() {
        let arguments = excerpt(&call.arguments, CALL_TOKENS, counter);
        push(NoteKind::Did, format!("{} {arguments}", call.name).trim_end().to_owned());
    }
    notes
}

/// Returns the notes that fit into `max_tokens`, in order. What a model wrote and the task come first;
/// then requests, the model's actions and its findings get a third each, the newest of each first; the
/// remainder goes to the newest of the rest. Of identical notes the newest is kept.
pub(crate) fn chosen(
    mut notes: Vec<Note>,
    max_tokens: usize,
    with_ids: bool,
    counter: &dyn TokenCounter,
) -> Vec<Note> {
    let mut sizes = Vec::with_capacity(notes.len());
    for note in &mut notes {
        // No note may take so much that nothing else fits.
        if note.tokens(with_ids, counter) > max_tokens / 2 {
            note.text = excerpt(&note.text, max_tokens / 2, counter);
        }
        sizes.push(note.tokens(with_ids, counter));
    }
    let mut said = BTreeSet::new();
    let newest_first = notes.iter().zip(sizes).enumerate().rev();
    let mut waiting: Vec<(usize, NoteKind, usize)> = newest_first
        .filter(|(_, (note, _))| said.insert(&note.text))
        .map(|(at, (note, tokens))| (at, note.kind, tokens))
        .collect();
    let (mut stay, mut room) = (BTreeSet::new(), max_tokens);
    for kind in
        [NoteKind::Summary, NoteKind::Task, NoteKind::Asked, NoteKind::Did, NoteKind::Result]
    {
        let share = if kind < NoteKind::Task { max_tokens / 3 } else { max_tokens };
        take(&mut waiting, share.min(room), &mut room, &mut stay, |other| other == kind);
    }
    let rest = room;
    take(&mut waiting, rest, &mut room, &mut stay, |_| true);
    let mut places = 0..;
    notes.retain(|_| places.next().is_some_and(|at| stay.contains(&at)));
    notes
}

/// Takes notes of some kinds until the next one does not fit into `share`.
fn take(
    waiting: &mut Vec<(usize, NoteKind, usize)>,
    mut share: usize,
    room: &mut usize,
    stay: &mut BTreeSet<usize>,
    is_of: impl Fn(NoteKind) -> bool,
) {
    let mut is_full = false;
    waiting.retain(|(at, kind, tokens)| {
        is_full |= is_of(*kind) && *tokens > share;
        if is_full || !is_of(*kind) {
            return true;
        }
        share -= tokens;
        *room -= tokens;
        stay.insert(*at);
        false
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::{Estimate, ToolCall, ToolCallId};

    #[test]
    fn every_part_of_a_message_leaves_a_note() {
        let arguments = r#"{"path": "src/闸门.rs"}"#;
        let call = ToolCall::new("c", "read_file", arguments);
        let notes =
            trimmed(SeqNo(3), &Message::calls("# Plan\nI look at it.", vec![call]), &Estimate);
        let texts: Vec<&str> = notes.iter().map(|note| note.text.as_str()).collect();
        let called = format!("read_file {arguments}");
        assert_eq!(texts, ["assistant: # Plan\nI look at it.", called.as_str()]);
        let result = Message::tool_result(&ToolCallId::new("c"), &"闸门 sticks. ".repeat(500));
        let notes = trimmed(SeqNo(4), &result, &Estimate);
        assert!(notes[0].text.starts_with("-> 闸门 sticks.") && notes[0].text.ends_with("sticks."));
        assert!((140..=170).contains(&Estimate.count(&notes[0].text)), "{}", notes[0].text);
    }

    #[test]
    fn what_was_asked_done_and_found_have_a_third_each() {
        let notes = |kinds: &[NoteKind]| -> Vec<Note> {
            let of = |n: usize| Some(SeqNo(n as u64));
            let text = |n: usize| format!("闸门 {n:04} sticks at noon and at night");
            let kinds = kinds.iter().enumerate();
            kinds.map(|(n, kind)| Note { kind: *kind, of: of(n), text: text(n) }).collect()
        };
        let (asked, did, found) = (NoteKind::Asked, NoteKind::Did, NoteKind::Result);
        let one = notes(&[asked])[0].tokens(true, &Estimate);
        let kept = |kinds: &[NoteKind], room: usize| -> Vec<u64> {
            let kept = chosen(notes(kinds), room * one + room, true, &Estimate);
            kept.iter().filter_map(|note| note.of.map(|of| of.0)).collect()
        };
        let all = [found, did, asked].repeat(20);
        assert_eq!(kept(&all, 6), [54, 55, 56, 57, 58, 59], "the newest two of each");
        let few = [&[asked][..], &[did; 30], &[found; 2], &[did; 8]].concat();
        let expected = [0, 31, 32, 35, 36, 37, 38, 39, 40];
        assert_eq!(kept(&few, 9), expected, "what is left goes to the newest of the rest");
        let task = [&[NoteKind::Task][..], &[asked; 30]].concat();
        assert_eq!(kept(&task, 4), [0, 28, 29, 30], "the task stays");
    }

    #[test]
    fn an_instruction_that_came_late_is_something_asked() {
        let notes = trimmed(SeqNo(9), &Message::system("Never touch gate 9."), &Estimate);
        assert_eq!(notes[0].kind, NoteKind::Asked);
    }
}

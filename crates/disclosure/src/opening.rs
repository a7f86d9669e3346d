//! The beginning of a prompt, as one user turn.

use crate::Attribution;
use crate::entry::Form;
use crate::marks::{Marks, Origin};
use crate::repair::INSTRUCTION;
use foldback_core::{Content, Message, Part, Role, Trust};
use std::sync::Arc;

/// Begins a conversation that no user began: chat APIs require a user's message first.
pub(crate) const BEGINNING: &str = "(beginning)";

/// Joins parts to one user turn; adjacent texts become one.
pub(crate) fn user_turn(parts: Vec<Part>) -> Form {
    let mut content: Vec<Part> = Vec::new();
    for part in parts {
        match (content.last_mut(), part) {
            (Some(Part::Text(before)), Part::Text(text)) => {
                before.push_str("\n\n");
                before.push_str(&text);
            }
            (_, part) => content.push(part),
        }
    }
    let content = match content.as_mut_slice() {
        [Part::Text(text)] => Content::Text(std::mem::take(text)),
        _ => Content::Parts(content),
    };
    Form::new(Arc::new(Message::compose(Role::User, content, Vec::new(), None)))
}

/// A message that stays in every prompt.
#[derive(Clone, Debug)]
pub(crate) struct Pinned {
    pub(crate) whose: Attribution,
    pub(crate) message: Arc<Message>,
}

/// Returns a pinned message as it is shown at the beginning: a user's text as it is, an instruction
/// after its label, any other text in marks that state its origin.
pub(crate) fn pinned_parts(marks: Marks, Pinned { whose, message }: &Pinned) -> Vec<Part> {
    // A message on the user's side that tools wrote in part counts as nobody's word.
    let is_user = *message.role() == Role::User && whose.trust() == Trust::User;
    let is_instruction = message.role().is_instruction();
    let text_part = |text: &str| {
        if is_user {
            return Part::Text(text.to_owned());
        }
        if is_instruction {
            return Part::Text(format!("{INSTRUCTION} {text}"));
        }
        let from = whose.to_string();
        let origin = Origin { from: Some(&from), trust: whose.trust(), ..Origin::default() };
        Part::Text(marks.quoted(&origin, text))
    };
    match message.content() {
        Content::Empty => Vec::new(),
        Content::Text(text) => vec![text_part(text)],
        Content::Parts(parts) => parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) if text.trim().is_empty() => None,
                Part::Text(text) => Some(text_part(text)),
                // What only a user may send is left out of other texts.
                Part::Other(json) => is_user.then(|| Part::Other(json.clone())),
            })
            .collect(),
    }
}

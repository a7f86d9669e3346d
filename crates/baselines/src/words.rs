//! Messages described in words, when they cannot be shown unchanged.

use foldback_core::{Content, Message, Part, Role};

/// Returns everything that a message says: its text, and each call on a separate line.
pub(crate) fn words(message: &Message) -> String {
    let mut words = message.text().into_owned();
    for call in message.tool_calls() {
        if !words.is_empty() {
            words.push('\n');
        }
        words.push_str(&format!("{} {}", call.name, call.arguments));
    }
    words
}

/// Returns a message without its surroundings: a user's unchanged, another's as a user's text that
/// names its role, followed by what is not text (such as an image). `None` if it says nothing.
pub(crate) fn told(message: &Message) -> Option<Message> {
    if *message.role() == Role::User && message.tool_calls().is_empty() {
        return (!message.content().is_blank()).then(|| message.clone());
    }
    let words = words(message);
    let others: Vec<Part> = match message.content() {
        Content::Parts(parts) => {
            parts.iter().filter(|part| matches!(part, Part::Other(_))).cloned().collect()
        }
        _ => Vec::new(),
    };
    if words.trim().is_empty() && others.is_empty() {
        return None;
    }
    let text = format!("[{}] {words}", message.role().as_str());
    if others.is_empty() {
        return Some(Message::user(&text));
    }
    let parts = [Part::Text(text)].into_iter().chain(others).collect();
    Some(Message::compose(Role::User, Content::Parts(parts), Vec::new(), None))
}

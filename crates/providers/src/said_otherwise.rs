//! A conversation that a model's chat template can express: the same words, in another arrangement.

use crate::config::{CallIds, ChatTemplate, SystemRole, Turns};
use crate::late_instruction::tagged;
use foldback_core::{Content, Message, Part, Role, ToolCall, ToolCallId};
use foldback_llm::ChatRequest;
use std::borrow::Cow;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// What the user says if the model would otherwise speak twice in a row, or first.
const GO_ON: &str = "(Go on.)";

/// Returns the request as the template can express it. Marks belong to messages, so they are dropped
/// in another arrangement.
pub(crate) fn said_otherwise<'r>(
    request: Cow<'r, ChatRequest>,
    template: ChatTemplate,
) -> Cow<'r, ChatRequest> {
    if template == ChatTemplate::default() {
        return request;
    }
    let mut request = request.into_owned();
    let before = request.messages.len();
    // If turns alternate, instructions have no turn of their own.
    if template.system != SystemRole::Anywhere || template.turns == Turns::Alternating {
        let speaks = template.system != SystemRole::Never;
        request.messages = without_late_system(&request.messages, speaks);
    }
    if !template.parallel_calls {
        request.messages = one_by_one(&request.messages);
    }
    if template.turns == Turns::Alternating {
        request.messages = alternating(&request.messages);
    }
    if request.messages.len() != before {
        request.cache_marks.clear();
    }
    if template.call_ids == CallIds::Nine {
        request.messages = request.messages.iter().map(with_short_ids).collect();
    }
    Cow::Owned(request)
}

/// Puts late instructions in the user's messages, and merges those at the beginning into one message: a
/// system message if the template accepts one (`speaks`), otherwise at the start of the user's first message.
fn without_late_system(messages: &[Arc<Message>], speaks: bool) -> Vec<Arc<Message>> {
    let standing = messages.iter().take_while(|message| message.role().is_instruction()).count();
    let (first, rest) = messages.split_at(standing);
    let join = |all: Arc<Message>, more: Arc<Message>| Arc::new(joined(&all, &more));
    let first = first.iter().cloned().reduce(join);
    let mut rest = rest.iter().map(|message| match message.role().is_instruction() {
        true => Arc::new(Message::user(&tagged(&message.text()))),
        false => Arc::clone(message),
    });
    let mut out = Vec::with_capacity(messages.len());
    match first {
        Some(first) if !speaks => {
            let words = Message::user(&first.text());
            match rest.next() {
                Some(said) if *said.role() == Role::User => {
                    out.push(Arc::new(joined(&words, &said)));
                }
                said => out.extend([Arc::new(words)].into_iter().chain(said)),
            }
        }
        first => out.extend(first),
    }
    out.extend(rest);
    out
}

/// Puts each call in a message of its own, followed by its result. The text comes before the first.
fn one_by_one(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut out = Vec::with_capacity(messages.len());
    let mut rest = messages;
    while let Some((message, behind)) = rest.split_first() {
        rest = behind;
        let calls = message.tool_calls();
        if calls.len() < 2 {
            out.push(Arc::clone(message));
            continue;
        }
        let results = behind.iter().take_while(|message| *message.role() == Role::Tool).count();
        let (results, behind) = behind.split_at(results);
        rest = behind;
        for (at, call) in calls.iter().enumerate() {
            let one = match at {
                0 => message.with_body(message.content().clone(), vec![call.clone()]),
                _ => Message::calls("", vec![call.clone()]),
            };
            out.push(Arc::new(one));
            let of_call = |result: &&Arc<Message>| result.tool_call_id() == Some(&call.id);
            out.extend(results.iter().filter(of_call).cloned());
        }
        let is_known = |id: &ToolCallId| calls.iter().any(|call| call.id == *id);
        let stray = |result: &&Arc<Message>| !result.tool_call_id().is_some_and(is_known);
        out.extend(results.iter().filter(stray).cloned());
    }
    out
}

/// Makes user and model alternate. A user's text after the result of a tool is appended to that result;
/// consecutive messages of one side are merged.
///
/// A message of the model with calls, and the results, are not turns of their own: templates skip them when
/// they check the order of speakers.
fn alternating(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut out: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    // The side that had the last turn.
    let mut last: Option<Role> = None;
    for message in messages {
        match message.role() {
            // By now instructions are only at the beginning.
            Role::System | Role::Developer | Role::Tool => out.push(Arc::clone(message)),
            Role::Assistant => {
                if last.is_none() {
                    out.push(Arc::new(Message::user(GO_ON)));
                    last = Some(Role::User);
                }
                if !message.tool_calls().is_empty() {
                    out.push(Arc::clone(message));
                    continue;
                }
                let is_again = last == Some(Role::Assistant);
                match out.last_mut() {
                    // Two consecutive answers of the model.
                    Some(said) if is_again && *said.role() == Role::Assistant => {
                        *said = Arc::new(joined(said, message));
                    }
                    _ => {
                        if is_again {
                            out.push(Arc::new(Message::user(GO_ON)));
                        }
                        out.push(Arc::clone(message));
                    }
                }
                last = Some(Role::Assistant);
            }
            _ => {
                let is_again = last == Some(Role::User);
                match out.last_mut() {
                    Some(said) if is_again && *said.role() != Role::Assistant => {
                        *said = Arc::new(joined(said, message));
                    }
                    _ => {
                        if is_again {
                            // The model made calls that have no results.
                            out.push(Arc::new(Message::assistant("(No result.)")));
                        }
                        out.push(Arc::clone(message));
                    }
                }
                last = Some(Role::User);
            }
        }
    }
    out
}

/// Returns the first message with the content of the second appended.
fn joined(first: &Message, second: &Message) -> Message {
    let content = match (first.content(), second.content()) {
        (Content::Empty, content) | (content, Content::Empty) => content.clone(),
        (Content::Text(one), Content::Text(two)) if one.is_empty() => Content::Text(two.clone()),
        (Content::Text(one), Content::Text(two)) => Content::Text(format!("{one}\n\n{two}")),
        (one, two) => Content::Parts(parts(one).chain(parts(two)).collect()),
    };
    first.with_body(content, first.tool_calls().to_vec())
}

fn parts(content: &Content) -> impl Iterator<Item = Part> {
    match content {
        Content::Empty => Vec::new(),
        Content::Text(text) => vec![Part::Text(text.clone())],
        Content::Parts(parts) => parts.clone(),
    }
    .into_iter()
}

/// Returns the message with ids of nine letters and digits.
fn with_short_ids(message: &Arc<Message>) -> Arc<Message> {
    if let Some(id) = message.tool_call_id() {
        if is_short(id.as_str()) {
            return Arc::clone(message);
        }
        let id = ToolCallId::new(&short_id(id.as_str()));
        let result = Message::tool_result(&id, "");
        return Arc::new(result.with_body(message.content().clone(), Vec::new()));
    }
    if message.tool_calls().iter().all(|call| is_short(call.id.as_str())) {
        return Arc::clone(message);
    }
    let calls = message.tool_calls().iter().map(|call| {
        let id = call.id.as_str();
        let id = if is_short(id) { id.to_owned() } else { short_id(id) };
        ToolCall::new(&id, &call.name, &call.arguments)
    });
    Arc::new(message.with_body(message.content().clone(), calls.collect()))
}

fn is_short(id: &str) -> bool {
    id.len() == SHORT && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The number of letters and digits in an id that Mistral's templates accept.
const SHORT: usize = 9;

/// Returns nine letters and digits for an id, always the same.
fn short_id(id: &str) -> String {
    const DIGITS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut sum = xxh3_64(id.as_bytes());
    let digit = |_| {
        let digit = DIGITS[(sum % 36) as usize];
        sum /= 36;
        char::from(digit)
    };
    (0..SHORT).map(digit).collect()
}

#[cfg(test)]
mod tests;

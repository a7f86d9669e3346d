//! A conversation as a model's chat template can say it: the same words, in another arrangement.

use crate::config::{CallIds, ChatTemplate, SystemRole, Turns};
use crate::late_instruction::tagged;
use foldback_core::{Content, Message, Part, Role, ToolCall, ToolCallId};
use foldback_llm::ChatRequest;
use std::borrow::Cow;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// What the user says where the model would speak twice, or first.
const GO_ON: &str = "(Go on.)";

/// The request as the template can say it. Marks go with their messages, so that they stand nowhere in
/// another arrangement.
pub(crate) fn said_otherwise<'r>(
    request: Cow<'r, ChatRequest>,
    template: ChatTemplate,
) -> Cow<'r, ChatRequest> {
    if template == ChatTemplate::default() {
        return request;
    }
    let mut request = request.into_owned();
    let before = request.messages.len();
    if template.system != SystemRole::Anywhere {
        request.messages = without_late_system(&request.messages, template.system);
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

/// Instructions in the user's words, where the system may not speak. Those at the beginning stand before
/// what the user says first.
fn without_late_system(messages: &[Arc<Message>], system: SystemRole) -> Vec<Arc<Message>> {
    let standing = messages.iter().take_while(|message| message.role().is_instruction()).count();
    let (first, rest) = messages.split_at(standing);
    let mut out = Vec::with_capacity(messages.len());
    let mut before = None;
    if system == SystemRole::First {
        out.extend(first.iter().cloned());
    } else {
        let texts: Vec<_> = first.iter().map(|message| message.text()).collect();
        before = (!texts.is_empty()).then(|| Message::user(&texts.join("\n\n")));
    }
    for message in rest {
        let message = if message.role().is_instruction() {
            Arc::new(Message::user(&tagged(&message.text())))
        } else {
            Arc::clone(message)
        };
        match before.take() {
            None => out.push(message),
            Some(words) if *message.role() == Role::User => {
                out.push(Arc::new(joined(&words, &message)));
            }
            Some(words) => out.extend([Arc::new(words), message]),
        }
    }
    out.extend(before.map(Arc::new));
    out
}

/// Each call in a message of its own, with its result behind it. The words stand before the first.
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
            let content = if at == 0 { message.content().clone() } else { Content::Empty };
            let one = match at {
                0 => message.with_body(content, vec![call.clone()]),
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

/// User and model in turn. What is said by the user, or to the model, behind the result of a tool stands
/// at the end of that result; what one side says twice in a row is one message.
///
/// A message of the model with calls, and the results, are no turns of their own: templates pass over
/// them when they look who speaks.
fn alternating(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut out: Vec<Arc<Message>> = Vec::with_capacity(messages.len());
    // Whoever had the last turn.
    let mut last: Option<Role> = None;
    for message in messages {
        let begins = last.is_none();
        match message.role() {
            Role::System | Role::Developer if begins => out.push(Arc::clone(message)),
            Role::Tool => out.push(Arc::clone(message)),
            Role::Assistant => {
                if begins {
                    out.push(Arc::new(Message::user(GO_ON)));
                    last = Some(Role::User);
                }
                if !message.tool_calls().is_empty() {
                    out.push(Arc::clone(message));
                    continue;
                }
                let before = out.last().map(|before| before.role().clone());
                match out.last_mut() {
                    // Two answers of the model, one behind the other.
                    Some(said)
                        if last == Some(Role::Assistant) && before == Some(Role::Assistant) =>
                    {
                        *said = Arc::new(joined(said, message));
                    }
                    _ => {
                        if last == Some(Role::Assistant) {
                            out.push(Arc::new(Message::user(GO_ON)));
                        }
                        out.push(Arc::clone(message));
                    }
                }
                last = Some(Role::Assistant);
            }
            // The user; and instructions that come late, which have no place of their own.
            _ => {
                let is_turn_of_user = last == Some(Role::User);
                match out.last_mut() {
                    Some(said) if is_turn_of_user && *said.role() != Role::Assistant => {
                        *said = Arc::new(joined(said, message));
                    }
                    // The model called something, and nothing came of it.
                    Some(_) if is_turn_of_user => {
                        out.push(Arc::new(Message::assistant("(No result.)")));
                        out.push(Arc::new(of_user(message)));
                    }
                    _ => out.push(Arc::new(of_user(message))),
                }
                last = Some(Role::User);
            }
        }
    }
    out
}

/// A message as the user's own.
fn of_user(message: &Message) -> Message {
    match message.role() {
        Role::User => message.clone(),
        _ => Message::user(&message.text()),
    }
}

/// The first message with what the second says behind it.
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

/// The message with ids of nine letters and digits.
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

/// The letters and digits of an id that Mistral's templates take.
const SHORT: usize = 9;

/// Nine letters and digits for an id, always the same.
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

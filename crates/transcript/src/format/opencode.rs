//! Reads sessions of OpenCode, as `opencode export` writes them: `{"info", "messages": [{"info", "parts"}]}`.
//!
//! An assistant message holds one or more steps, and each call together with its result. Each step becomes a message
//! of the model, followed by the results of its calls. What OpenCode later adds to a message (summaries, pruned
//! results) is kept apart from the messages, so that those stay as they are.

use super::anthropic_blocks::members_but;
use super::lines::Lines;
use super::{Context, Format};
use crate::conversion::Conversion;
use crate::draft::{Draft, list_of, push_member, quoted};
use crate::object::Object;
use crate::{Conversation, Error};
use foldback_core::Timestamp;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Returns whether an object is such a session.
pub(super) fn fits(object: &Object<'_>) -> bool {
    let is_message = |message: &&RawValue| {
        Object::of(message)
            .is_some_and(|m| m.object("info").is_some() && m.array("parts").is_some())
    };
    object.object("info").is_some_and(|info| info.has("id"))
        && object.array("messages").is_some_and(|messages| messages.iter().all(is_message))
}

/// Reads a session. Messages that the person took back are kept apart from the others.
pub(super) fn read(
    text: &str,
    session: &Object<'_>,
    context: Context<'_>,
) -> Result<Conversation, Error> {
    let none = || Object(Vec::new());
    let info = session.object("info").unwrap_or_else(none);
    let named = |keys: [&str; 2]| keys.into_iter().find_map(|key| info.text(key));
    let mut conversion =
        Conversion::new(Format::OpenCodeSession, info.text("id").map(Cow::into_owned));
    for (key, value) in
        [("cwd", info.text("directory")), ("parent_session", named(["parentID", "parent_id"]))]
    {
        if let Some(value) = value {
            conversion.fact_text(key, &value);
        }
    }
    conversion.fact("session", &members_but(session, &["messages"]));
    let taken_back = info.object("revert").and_then(|revert| revert.text("messageID"));
    let mut lines = Lines::new(text, context.place.line);
    let (mut is_taken_back, mut open, mut seen) = (false, None, BTreeMap::new());
    for raw in session.array("messages").unwrap_or_default() {
        let line = lines.of(raw.get());
        let message = Object::of(raw).unwrap_or_else(none);
        let info = message.object("info").unwrap_or_else(none);
        let role = info.text("role").unwrap_or(Cow::Borrowed("no role"));
        *seen.entry(role.clone().into_owned()).or_default() += 1;
        is_taken_back |= taken_back.is_some() && info.text("id") == taken_back;
        if is_taken_back {
            conversion.record("reverted", line, raw.get());
            continue;
        }
        let parts = message.array("parts").unwrap_or_default();
        let parts: Vec<_> = parts.into_iter().filter_map(Object::of).collect();
        let said = match role.as_ref() {
            "user" => user(&info, &parts, line),
            "assistant" => assistant(&info, &parts, line),
            _ => Said::default(),
        };
        open = (said.is_open && !said.drafts.is_empty()).then_some(line);
        for draft in said.drafts {
            conversion.push(draft, context)?;
        }
        conversion.record(&role, line, &rest_of(&message, &parts, &said.taken));
    }
    if conversion.is_empty() {
        return Err(context.no_messages(Format::OpenCodeSession, &seen));
    }
    conversion.unfinished_response(open);
    Ok(conversion.finish())
}

/// What a message of OpenCode became.
#[derive(Default)]
struct Said {
    drafts: Vec<Draft>,
    /// Whether the model may say more.
    is_open: bool,
    /// The places of the parts whose text is in the drafts.
    taken: BTreeSet<usize>,
}

/// Returns what a person, or the client in the person's name, has said.
fn user(info: &Object<'_>, parts: &[Object<'_>], line: u64) -> Said {
    let mut draft = begin("user", info, line);
    let mut own = false;
    let mut texts = Vec::new();
    let mut taken = BTreeSet::new();
    for (at, part) in parts.iter().enumerate() {
        match part.text("type").as_deref() {
            Some("text") => {
                let Some(text) = part.get("text").filter(|text| text.get().starts_with('"')) else {
                    continue;
                };
                own |= !is_true(part, "synthetic");
                taken.insert(at);
                texts.push(text.get());
                draft.part(&format!("{{\"type\":\"text\",\"text\":{}}}", text.get()));
            }
            Some("file") if part.text("mime").is_some_and(|mime| mime.starts_with("image/")) => {
                own = true;
                if let Some(url) = part.get("url") {
                    draft.part(&format!(
                        "{{\"type\":\"image_url\",\"image_url\":{{\"url\":{}}}}}",
                        url.get()
                    ));
                }
            }
            _ => {}
        }
    }
    if draft.is_empty() {
        return Said::default();
    }
    if let ([text], true) = (texts.as_slice(), parts.len() == 1) {
        draft.content(text);
    }
    if !own {
        draft.keep("injected", "true");
    }
    Said { drafts: vec![draft], is_open: false, taken }
}

/// Returns what the model said, step by step, with the results of its calls.
fn assistant(info: &Object<'_>, parts: &[Object<'_>], line: u64) -> Said {
    let mut said = Said::default();
    let mut step = Step::new(info, line);
    for (at, part) in parts.iter().enumerate() {
        match part.text("type").as_deref() {
            Some("step-start") => {
                std::mem::replace(&mut step, Step::new(info, line)).end(&mut said);
                continue;
            }
            Some("text") => step.say(part),
            Some("reasoning") => {
                step.reasoning.extend(part.get("text").map(|text| text.get().to_owned()));
            }
            Some("tool") => step.call(part, info, line),
            Some("step-finish") => {
                step.count(part);
                continue;
            }
            _ => continue,
        }
        step.taken.push(at);
    }
    let calls_wait = step.waits;
    step.end(&mut said);
    let ended = info.object("time").is_some_and(|time| time.has("completed")) || info.has("error");
    said.is_open = calls_wait || !ended;
    said
}

/// One answer of the model.
struct Step {
    draft: Draft,
    texts: Vec<String>,
    reasoning: Vec<String>,
    results: Vec<Draft>,
    taken: Vec<usize>,
    /// Whether a call has no result.
    waits: bool,
}

impl Step {
    fn new(info: &Object<'_>, line: u64) -> Self {
        let mut draft = begin("assistant", info, line);
        if let Some(model) = info.get("modelID") {
            draft.keep("model", model.get());
        }
        Self {
            draft,
            texts: Vec::new(),
            reasoning: Vec::new(),
            results: Vec::new(),
            taken: Vec::new(),
            waits: false,
        }
    }

    fn say(&mut self, part: &Object<'_>) {
        self.texts.extend(part.get("text").map(|text| text.get().to_owned()));
    }

    fn call(&mut self, part: &Object<'_>, info: &Object<'_>, line: u64) {
        let text = |key: &str| part.text(key).unwrap_or_default();
        let Some(state) = part.object("state") else { return };
        let input = state.get("input").map_or("{}", RawValue::get);
        self.draft.call(&text("callID"), &text("tool"), input);
        let Some((key, is_error)) = result_key(&state) else {
            self.waits = true;
            return;
        };
        let mut result = begin("tool", info, line);
        result.answers(&text("callID"));
        result.content(state.get(key).map_or("\"\"", RawValue::get));
        if is_error {
            result.field("is_error", "true");
        }
        self.results.push(result);
    }

    /// Takes the cost of the step.
    fn count(&mut self, part: &Object<'_>) {
        let Some(tokens) = part.object("tokens") else { return };
        let cache = tokens.object("cache");
        let number = |of: Option<&Object<'_>>, key: &str| {
            of.and_then(|of| of.get(key)?.get().parse::<u64>().ok()).unwrap_or(0)
        };
        let prompt = number(Some(&tokens), "input")
            .saturating_add(number(cache.as_ref(), "read"))
            .saturating_add(number(cache.as_ref(), "write"));
        let output = number(Some(&tokens), "output");
        let completion = output.saturating_add(number(Some(&tokens), "reasoning"));
        self.draft.keep("usage", &members_but(&tokens, &[]));
        self.draft.keep("prompt_tokens", &prompt.to_string());
        self.draft.keep("completion_tokens", &completion.to_string());
    }

    /// Adds the step's messages. A step that says and calls nothing, as one that was stopped while
    /// the model was thinking, is not a message; its reasoning then stays in the record.
    fn end(mut self, said: &mut Said) {
        match self.texts.as_slice() {
            [] => {}
            [text] => self.draft.content(text),
            texts => texts.iter().for_each(|text| {
                self.draft.part(&format!("{{\"type\":\"text\",\"text\":{text}}}"));
            }),
        }
        if self.draft.is_empty() {
            return;
        }
        if !self.reasoning.is_empty() {
            self.draft.keep("reasoning", &list_of(&self.reasoning));
        }
        said.drafts.push(self.draft);
        said.drafts.append(&mut self.results);
        said.taken.extend(self.taken);
    }
}

/// Creates a message with the time and the id of the one that it comes from.
fn begin(role: &str, info: &Object<'_>, line: u64) -> Draft {
    let mut draft = Draft::new(role, line);
    let at = info.object("time").and_then(|time| time.get("created")?.get().parse().ok());
    if let Some(at) = at {
        draft.field("timestamp", &quoted(&Timestamp(at).to_rfc3339()));
    }
    if let Some(id) = info.text("id") {
        draft.keep_text("message", &id);
    }
    draft
}

/// Returns what a message says in addition to what was taken into messages.
fn rest_of(message: &Object<'_>, parts: &[Object<'_>], taken: &BTreeSet<usize>) -> String {
    let rest = |(at, part)| match taken.contains(&at) {
        true => rest_of_part(part),
        false => members_but(part, &[]),
    };
    let parts: Vec<_> = parts.iter().enumerate().map(rest).collect();
    let mut rest = members_but(message, &["parts"]);
    rest.pop();
    push_member("parts", &list_of(&parts), &mut rest);
    rest + "}"
}

/// Returns what a part of which something was taken says besides that.
fn rest_of_part(part: &Object<'_>) -> String {
    if part.text("type").as_deref() != Some("tool") {
        return members_but(part, &["text"]);
    }
    let Some(state) = part.object("state") else { return members_but(part, &[]) };
    let taken: &[&str] = match result_key(&state) {
        Some((key, _)) => &["input", key],
        None => &["input"],
    };
    let mut rest = members_but(part, &["state"]);
    rest.pop();
    push_member("state", &members_but(&state, taken), &mut rest);
    rest + "}"
}

/// Returns the key of a call's result, and whether the call failed: `None` while it has no result.
fn result_key(state: &Object<'_>) -> Option<(&'static str, bool)> {
    match state.text("status").as_deref() {
        Some("completed") => Some(("output", false)),
        Some("error") => Some(("error", true)),
        _ => None,
    }
}

fn is_true(object: &Object<'_>, key: &str) -> bool {
    object.get(key).is_some_and(|value| value.get() == "true")
}

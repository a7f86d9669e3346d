//! The messages of a thread.

use super::line::{Line, ResponseKey, Said, blocks, queued_prompt};
use super::response::Response;
use crate::draft::{Draft, list_of, push_member, quoted};
use crate::format::anthropic_blocks::{self, counts, members_but};
use crate::format::pairs::{Turn, in_order};
use crate::object::Object;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// Keys that most lines of a session repeat. They are recorded once for the whole conversation, and
/// at a message only if it differs.
const FACTS: [&str; 12] = [
    "sessionId",
    "cwd",
    "gitBranch",
    "version",
    "userType",
    "isSidechain",
    "agentId",
    "entrypoint",
    "slug",
    "teamName",
    "parentToolUseID",
    "forkedFrom",
];

/// Texts that the client writes in the user's name.
const INJECTED: [&str; 11] = [
    "<command-name>",
    "<command-message>",
    "<local-command-stdout>",
    "<local-command-stderr>",
    "<local-command-caveat>",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<task-notification>",
    "<teammate-message",
    "<system-reminder>",
];

/// The beginning of a result that was too large for the log.
const STUB: &str = "<persisted-output>";

/// The facts that the lines of a conversation share.
#[derive(Default)]
pub(super) struct Facts<'r>(Vec<(Cow<'r, str>, &'r RawValue)>);

impl<'r> Facts<'r> {
    /// Returns the facts of the first line.
    pub(super) fn of(line: &Line<'r>) -> Self {
        let fields = line.record.object().map(|object| object.0).unwrap_or_default();
        Self(fields.into_iter().filter(|(key, _)| FACTS.contains(&key.as_ref())).collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'r RawValue)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), *value))
    }

    fn holds(&self, key: &str, value: &RawValue) -> bool {
        self.iter().any(|(known, fact)| known == key && fact.get() == value.get())
    }
}

/// The messages of a thread.
pub(super) struct Messages {
    pub(super) drafts: Vec<Draft>,
    /// Lines that should make a message but say nothing.
    pub(super) silent: HashSet<u64>,
    /// The line of a response that may still continue.
    pub(super) open: Option<u64>,
}

/// Returns the messages that the lines of a thread make, in order. `lines` is what is said in the
/// thread, in the order of the file.
pub(super) fn messages<'r>(lines: &[&Line<'r>], facts: &Facts<'r>) -> Messages {
    let mut responses: HashMap<&ResponseKey<'r>, Vec<&Line<'r>>> = HashMap::new();
    for line in lines {
        if let (Some(Said::Assistant), Some(response)) = (line.said, &line.response) {
            responses.entry(response).or_default().push(line);
        }
    }
    let (mut turns, mut silent) = (Vec::new(), HashSet::new());
    let mut open = None;
    for line in lines {
        let own = std::slice::from_ref(line);
        let (lines, made) = match (line.said, &line.response) {
            (Some(Said::Assistant), Some(response)) => match responses.remove(response) {
                Some(lines) => (Cow::Owned(lines.clone()), assistant(&lines, facts)),
                None => continue,
            },
            (Some(Said::Assistant), None) => (Cow::Borrowed(own), assistant(own, facts)),
            _ => (Cow::Borrowed(own), user(line, facts)),
        };
        match line.said {
            Some(Said::Assistant) => {
                open = Some(line.record.line).filter(|_| !is_complete(&lines));
            }
            // Results of its first calls may come before the response is complete.
            Some(Said::User) if !line.answers.is_empty() => {}
            _ => open = None,
        }
        if made.is_empty() {
            silent.extend(lines.iter().map(|line| line.record.line));
        }
        turns.extend(made);
    }
    Messages { drafts: in_order(turns), silent, open }
}

/// Returns whether these are all lines of a response. Some versions state on the last line how it ended, others on
/// each line: then the last line need not be a call, but it is not a thought.
fn is_complete(lines: &[&Line<'_>]) -> bool {
    let says = |line: &&Line<'_>| line.stopped.is_some();
    match (lines.first(), lines.last()) {
        (Some(first), Some(last)) if says(first) => {
            first.stopped.as_deref() != Some("tool_use") && !last.only_thinks
        }
        _ => lines.iter().any(says),
    }
}

/// Returns one message of the model, from all lines of its response; `None` if they say nothing.
fn assistant<'r>(lines: &[&Line<'r>], facts: &Facts<'r>) -> Vec<Turn> {
    let number = lines.first().map_or(0, |line| line.record.line);
    let mut draft = Draft::new("assistant", number);
    let objects: Vec<(&Line<'r>, Object<'r>, Object<'r>)> = lines
        .iter()
        .filter_map(|line| {
            let object = line.record.object()?;
            let message = object.object("message")?;
            Some((*line, object, message))
        })
        .collect();
    // A content that is only a text is equivalent to one block with that text.
    let texts: Vec<Option<Box<RawValue>>> =
        objects.iter().map(|(_, _, message)| text_block(message.get("content")?)).collect();
    let mut response = Response::default();
    for ((_, _, message), text) in objects.iter().zip(&texts) {
        let blocks = match text {
            Some(text) => vec![text.as_ref()],
            None => message.get("content").and_then(blocks).unwrap_or_default(),
        };
        response.add(&blocks, message.get("usage"));
    }
    let read = anthropic_blocks::assistant(&mut draft, &response.blocks);
    let mut known = HashSet::new();
    let calls = lines.iter().flat_map(|line| &line.calls).filter(|id| known.insert(*id));
    let calls = calls.map(|id| id.to_string()).collect();
    let (Ok(()), Some((first, object, message))) = (read, objects.first()) else {
        return Vec::new();
    };
    if response.blocks.is_empty() && draft.is_empty() {
        return Vec::new();
    }
    keep_line(&mut draft, object, facts);
    let model = message.text("model");
    let is_api = object.get("isApiErrorMessage").is_none_or(|value| value.get() != "true");
    let is_model = is_api && model.as_deref() != Some("<synthetic>");
    if !is_model {
        draft.keep("synthetic", "true");
    }
    let id = first.response.as_ref().and_then(|response| response.id.as_deref());
    if let Some(id) = id {
        draft.keep_text("response", id);
    }
    if let Some(model) = message.get("model") {
        draft.keep("model", model.get());
    }
    let stops = objects.iter().filter_map(|(_, _, message)| message.get("stop_reason"));
    let stop = stops.rev().find(|stop| stop.get() != "null");
    if let Some(stop) = stop {
        draft.keep("stop_reason", stop.get());
    }
    if let Some(usage) = response.usage() {
        draft.keep("usage", usage.get());
        if is_model && let Some(usage) = Object::of(usage) {
            let [prompt, completion] = tokens(&usage);
            draft.keep("prompt_tokens", &prompt.to_string());
            draft.keep("completion_tokens", &completion.to_string());
        }
    }
    let is_taken = |key: &str, taken: Option<&RawValue>| {
        message.get(key).map(RawValue::get) == taken.map(RawValue::get)
    };
    let mut taken = vec!["role", "content", "model"];
    taken.extend(id.map(|_| "id"));
    taken.extend(is_taken("usage", response.usage()).then_some("usage"));
    taken.extend((stop.is_none() || is_taken("stop_reason", stop)).then_some("stop_reason"));
    keep_message(&mut draft, message, &taken);
    if !response.replaced.is_empty() {
        let replaced: Vec<_> =
            response.replaced.iter().map(|block| block.get().to_owned()).collect();
        draft.keep("replaced", &list_of(&replaced));
    }
    keep_further_lines(&mut draft, &objects);
    vec![Turn { draft, calls, answers: None }]
}

/// Keeps what each line of an answer says, with its message, in addition to what the first of them says.
fn keep_further_lines<'r>(draft: &mut Draft, objects: &[(&Line<'r>, Object<'r>, Object<'r>)]) {
    let Some(((_, object, message), others)) = objects.split_first() else { return };
    for (line, further, said) in others {
        let mut members = String::new();
        push_others(further, object, &["type", "message"], &mut members);
        let mut inner = String::new();
        push_others(said, message, &["role", "content"], &mut inner);
        if let Some(inner) = inner.strip_prefix(',') {
            push_member("message", &format!("{{{inner}}}"), &mut members);
        }
        draft.further_line(line.record.line, &members);
    }
}

/// Returns a content that is a text, as a block.
fn text_block(content: &RawValue) -> Option<Box<RawValue>> {
    let text = content.get();
    let json = || format!("{{\"type\":\"text\",\"text\":{text}}}");
    text.starts_with('"').then(|| RawValue::from_string(json()).ok())?
}

/// Writes the members of `object` that `first` does not have in the same form, each after a comma.
fn push_others(object: &Object<'_>, first: &Object<'_>, taken: &[&str], out: &mut String) {
    for (key, value) in &object.0 {
        let same = first.get(key).is_some_and(|first| first.get() == value.get());
        let is_taken = taken.contains(&key.as_ref()) && counts(object, key, value);
        if !same && !is_taken {
            push_member(key, value.get(), out);
        }
    }
}

/// Returns the input and output tokens. The API counts what it reads from its cache, and what it
/// writes there, separately from the rest of the prompt.
fn tokens(usage: &Object<'_>) -> [u64; 2] {
    let number = |key: &str| usage.get(key).and_then(|n| n.get().parse::<u64>().ok()).unwrap_or(0);
    let prompt = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]
        .into_iter()
        .fold(0, |sum: u64, key| sum.saturating_add(number(key)));
    [prompt, number("output_tokens")]
}

/// Returns the results on a user's line, then what else it says.
fn user(line: &Line<'_>, facts: &Facts<'_>) -> Vec<Turn> {
    let mut turns = Vec::new();
    let Some(object) = line.record.object() else { return turns };
    let message = object.object("message");
    let queued = line.said == Some(Said::Queued);
    let content = if queued {
        queued_prompt(&object)
    } else {
        message.as_ref().and_then(|message| message.get("content"))
    };
    let Some((content, drafts)) = content.and_then(|content| {
        Some((content, anthropic_blocks::user(content, line.record.line).ok()?))
    }) else {
        return turns;
    };
    let blocks = blocks(content).unwrap_or_default();
    let results: Vec<Object<'_>> = blocks
        .iter()
        .filter_map(|block| Object::of(block))
        .filter(|block| block.text("type").as_deref() == Some("tool_result"))
        .collect();
    let injected = line.meta
        || line.summary
        || first_text(content, &blocks)
            .is_some_and(|text| INJECTED.iter().any(|begin| text.starts_with(begin)));
    for (at, mut draft) in drafts.into_iter().enumerate() {
        let result = results.get(at);
        if result.is_none() && draft.is_empty() {
            continue;
        }
        if at == 0 {
            keep_line(&mut draft, &object, facts);
            if let Some(message) = &message {
                // What was typed meanwhile is elsewhere.
                let taken = if queued { &["role"][..] } else { &["role", "content"] };
                keep_message(&mut draft, message, taken);
            }
        } else {
            for key in ["uuid", "timestamp"] {
                keep_key(&mut draft, &object, key);
            }
        }
        match result {
            Some(result) => {
                let content = result.get("content");
                let inner = content.and_then(self::blocks).unwrap_or_default();
                let first = content.and_then(|content| first_text(content, &inner));
                if let Some(stub) = first.filter(|text| text.starts_with(STUB)) {
                    draft.keep("stub", "true");
                    let kept = object.object("toolUseResult");
                    let kept = kept.and_then(|kept| kept.text("persistedOutputPath"));
                    if let Some(file) = spilled_to(&stub).or(kept.as_deref()) {
                        draft.keep_text("spilled", file);
                    }
                }
            }
            None if injected => draft.keep("injected", "true"),
            None => {}
        }
        if queued {
            draft.keep("queued", "true");
            // The client's notes wait in the same queue as what the user types.
            let mode = object.object("attachment").and_then(|a| a.text("commandMode"));
            if !injected && mode.is_some_and(|mode| mode != "prompt" && mode != "bash") {
                draft.keep("injected", "true");
            }
        }
        let answers = result.and_then(|result| result.text("tool_use_id"));
        let answers = answers.map(|id| id.into_owned());
        turns.push(Turn { draft, calls: Vec::new(), answers });
    }
    turns
}

/// Returns the first text of a content, from its first letter on.
fn first_text<'c>(content: &'c RawValue, blocks: &[&'c RawValue]) -> Option<Cow<'c, str>> {
    let first = match Object::text_of(content) {
        Some(text) => text,
        None => blocks.iter().find_map(|block| Object::of(block)?.text("text"))?,
    };
    Some(match first {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_start()),
        Cow::Owned(text) => Cow::Owned(text.trim_start().to_owned()),
    })
}

/// Returns the file that a result was written to, as the text in its place says.
fn spilled_to(stub: &str) -> Option<&str> {
    let (_, file) = stub.split_once("saved to: ")?;
    file.lines().next().map(str::trim).filter(|file| !file.is_empty())
}

/// Keeps what a line says in addition to its message and differently from the conversation as a whole.
fn keep_line(draft: &mut Draft, line: &Object<'_>, facts: &Facts<'_>) {
    for (key, value) in &line.0 {
        match key.as_ref() {
            "type" => {}
            "message" if value.get().starts_with('{') && counts(line, key, value) => {}
            "attachment" => {
                // Its prompt is the message.
                if let Some(attachment) = Object::of(value) {
                    draft.keep(key, &members_but(&attachment, &["prompt"]));
                }
            }
            "timestamp" if counts(line, key, value) => keep_key(draft, line, key),
            _ if facts.holds(key, value) => {}
            _ => draft.keep(key, value.get()),
        }
    }
}

/// Takes a member: the time belongs to the message; everything else is kept in its source.
fn keep_key(draft: &mut Draft, line: &Object<'_>, key: &str) {
    let Some(value) = line.get(key) else { return };
    if key == "timestamp" && value.get().starts_with('"') {
        draft.field(key, value.get());
    } else {
        draft.keep(key, value.get());
    }
}

/// Keeps what an API message says in addition to what was taken from it.
fn keep_message(draft: &mut Draft, message: &Object<'_>, taken: &[&str]) {
    let rest = members_but(message, taken);
    if rest != "{}" {
        draft.keep("message", &rest);
    }
}

/// Returns a reference to a fork point, or to another line of the same file.
pub(super) fn reference(line: &Line<'_>) -> String {
    let mut out = format!("{{\"line\":{}", line.record.line);
    if let Some(uuid) = &line.uuid {
        push_member("uuid", &quoted(uuid), &mut out);
    }
    out.push('}');
    out
}

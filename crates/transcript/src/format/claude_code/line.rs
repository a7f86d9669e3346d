//! What one line of a session log says about itself.

use crate::format::anthropic_blocks::begin;
use crate::object::Object;
use crate::record::Record;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A line and what determines its place among the others.
pub(super) struct Line<'r> {
    pub(super) record: &'r Record,
    /// Its type, with its subtype, if any, after a slash.
    pub(super) kind: String,
    pub(super) said: Option<Said>,
    /// Why what it says cannot be read as a message.
    pub(super) unread: Option<String>,
    pub(super) uuid: Option<Cow<'r, str>>,
    pub(super) session: Option<Cow<'r, str>>,
    pub(super) parent: Parent<'r>,
    pub(super) logical: Option<Cow<'r, str>>,
    /// The agent that it belongs to: `None` for the session's own; the empty name for side chains
    /// that name none.
    pub(super) agent: Option<Cow<'r, str>>,
    /// Whether the client made it.
    pub(super) meta: bool,
    /// Whether it sums up what is before it.
    pub(super) summary: bool,
    /// The response that it is a part of.
    pub(super) response: Option<ResponseKey<'r>>,
    /// How its response ended, if it says so.
    pub(super) stopped: Option<Cow<'r, str>>,
    /// Whether it holds only thoughts.
    pub(super) only_thinks: bool,
    pub(super) calls: Vec<Cow<'r, str>>,
    pub(super) answers: Vec<Cow<'r, str>>,
}

/// What the lines of one response of the model have in common. Some servers give all responses the same id, or an empty
/// one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ResponseKey<'r> {
    /// Its id, unless that is empty.
    pub(super) id: Option<Cow<'r, str>>,
    /// The request that it answers.
    request: Option<Cow<'r, str>>,
    /// If the request has no id, how many prompts are before it.
    prompts: u64,
}

/// The speaker of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The user, a tool, or the client in the user's name.
    User,
    /// The model, or the client in its name.
    Assistant,
    /// The user, while the model was at work.
    Queued,
}

/// What a line says about the line before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parent<'r> {
    /// Nothing at all: it may have none, or belong to no tree.
    Unsaid,
    /// That there is none.
    Root,
    Is(Cow<'r, str>),
}

impl<'r> Line<'r> {
    pub(super) fn of(record: &'r Record) -> Self {
        let none = Object(Vec::new());
        let object = record.object();
        let kind = match &object {
            Some(object) => kind_of(object),
            None => "no object".to_owned(),
        };
        let object = object.unwrap_or(none);
        let is = |key: &str| is_true(&object, key);
        let mut line = Line {
            record,
            kind,
            said: None,
            unread: None,
            uuid: object.text("uuid"),
            session: object.text("sessionId"),
            parent: match object.get("parentUuid") {
                None => Parent::Unsaid,
                Some(value) => Object::text_of(value).map_or(Parent::Root, Parent::Is),
            },
            logical: object.text("logicalParentUuid"),
            agent: is("isSidechain").then(|| object.text("agentId").unwrap_or_default()),
            meta: is("isMeta"),
            summary: is("isCompactSummary"),
            response: None,
            stopped: None,
            only_thinks: false,
            calls: Vec::new(),
            answers: Vec::new(),
        };
        line.listen(&object);
        line
    }

    /// Determines what the line says.
    fn listen(&mut self, object: &Object<'r>) {
        let said = match object.text("type").as_deref() {
            Some("user") => Said::User,
            Some("assistant") => Said::Assistant,
            Some("attachment") if queued_prompt(object).is_some() => {
                self.said = Some(Said::Queued);
                return;
            }
            _ => return,
        };
        let message = object.object("message");
        let content = message.as_ref().and_then(|message| message.get("content"));
        match content.ok_or("it has no \"message\" with \"content\"".to_owned()) {
            Ok(content) => match self.pair(said, content) {
                Ok(()) => self.said = Some(said),
                Err(why) => self.unread = Some(why),
            },
            Err(why) => self.unread = Some(why),
        }
        if said == Said::Assistant {
            let text = |key: &str| message.as_ref().and_then(|message| message.text(key));
            let said = |text: &Cow<'r, str>| !text.is_empty();
            let (id, request) = (text("id").filter(said), object.text("requestId").filter(said));
            let is_named = id.is_some() || request.is_some();
            self.response = is_named.then_some(ResponseKey { id, request, prompts: 0 });
            self.stopped = text("stop_reason");
            let blocks = content.and_then(blocks).unwrap_or_default();
            let is_thought = |block: &&RawValue| {
                let kind =
                    Object::of(block).and_then(|block| block.text("type").map(Cow::into_owned));
                matches!(kind.as_deref(), Some("thinking" | "redacted_thinking"))
            };
            self.only_thinks = !blocks.is_empty() && blocks.iter().all(is_thought);
        }
    }

    /// Takes the ids of the calls that a content makes or answers.
    fn pair(&mut self, said: Said, content: &'r RawValue) -> Result<(), String> {
        let wrong = || format!("its content is {}, not a text or a list of blocks", begin(content));
        for block in blocks(content).ok_or_else(wrong)? {
            // Looking for the name first spares most blocks another parse.
            let (kind, key, ids) = match said {
                Said::Assistant => ("tool_use", "id", &mut self.calls),
                _ => ("tool_result", "tool_use_id", &mut self.answers),
            };
            if !block.get().contains(kind) {
                continue;
            }
            let Some(block) = Object::of(block) else { continue };
            if block.text("type").as_deref() != Some(kind) {
                continue;
            }
            let id = block.text(key).ok_or_else(|| format!("a {kind} in it has no {key:?}"))?;
            if said == Said::Assistant && block.text("name").is_none() {
                return Err(format!("its {kind} {id:?} has no \"name\""));
            }
            if said == Said::User && !block.get("content").is_none_or(is_result) {
                return Err(format!(
                    "its {kind} of {id:?} is not a text, a list of blocks or null"
                ));
            }
            ids.push(id);
        }
        Ok(())
    }

    /// Returns whether a new response follows it: a person's words, and what the client says in their place.
    pub(super) fn is_prompt(&self) -> bool {
        self.said == Some(Said::User) && self.answers.is_empty() && !self.meta
    }

    /// States how many prompts are before it: they tell responses apart whose requests have no ids.
    pub(super) fn follows(&mut self, prompts: u64) {
        if let Some(response) = self.response.as_mut().filter(|response| response.request.is_none())
        {
            response.prompts = prompts;
        }
    }

    /// Returns whether it is in the tree of the session.
    pub(super) fn is_chained(&self) -> bool {
        self.said.is_some() || (self.uuid.is_some() && self.parent != Parent::Unsaid)
    }

    /// Returns whether it belongs to the agent that sums up a session for a compaction.
    pub(super) fn is_of_summariser(&self) -> bool {
        self.agent.as_deref().is_some_and(|agent| agent.starts_with("acompact"))
    }

    /// Returns whether everything before it was replaced by a summary.
    pub(super) fn is_boundary(&self) -> bool {
        self.kind == "system/compact_boundary"
    }
}

fn is_true(object: &Object<'_>, key: &str) -> bool {
    object.get(key).is_some_and(|value| value.get() == "true")
}

fn kind_of(object: &Object<'_>) -> String {
    let kind = object.text("type").unwrap_or(Cow::Borrowed("no type"));
    let nested = |key: &str| object.object(key).and_then(|inner| inner.text("type"));
    let detail = match kind.as_ref() {
        "system" => object.text("subtype"),
        "user" if is_true(object, "isCompactSummary") => Some(Cow::Borrowed("compact_summary")),
        "attachment" => nested("attachment"),
        "progress" => nested("data"),
        _ => None,
    };
    match detail {
        Some(detail) => format!("{kind}/{detail}"),
        None => kind.into_owned(),
    }
}

/// Returns what the user typed while the model was at work: a text, or blocks.
pub(super) fn queued_prompt<'r>(object: &Object<'r>) -> Option<&'r RawValue> {
    let attachment = object.object("attachment")?;
    let is_queued = attachment.text("type").as_deref() == Some("queued_command");
    attachment.get("prompt").filter(|prompt| is_queued && blocks(prompt).is_some())
}

/// Returns the blocks of a content: none for a text, and `None` for anything that is not a content.
pub(super) fn blocks(content: &RawValue) -> Option<Vec<&RawValue>> {
    if content.get().starts_with('"') {
        return Some(Vec::new());
    }
    let blocks = Object::array_of(content)?;
    blocks.iter().all(|block| block.get().starts_with('{')).then_some(blocks)
}

/// Returns whether a value is a valid answer of a tool.
fn is_result(content: &RawValue) -> bool {
    let is_part = |part: &&RawValue| part.get().starts_with(['{', '"']);
    content.get().starts_with(['"', 'n'])
        || Object::array_of(content).is_some_and(|parts| parts.iter().all(is_part))
}

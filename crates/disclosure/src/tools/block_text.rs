//! A block's messages as text, kept as references to where they stand.

use super::Shelf;
use super::shelf::recall_note;
use crate::cut::one_line;
use crate::ledger::shown_id;
use crate::light::{light, light_elsewhere};
use crate::quote::{CLOSE, Origin, Woven};
use crate::repair::{NO_OUTPUT, legal_name};
use foldback_blockstore::Error;
use foldback_core::{
    Block, Content, Message, Offload, Part, Role, SeqNo, Site, Source, StoredMessage, TodoId,
};
use std::collections::BTreeMap;

/// A block's messages, each as its text.
pub(crate) struct BlockText {
    id: String,
    time: String,
    kind: &'static str,
    pub(crate) messages: Vec<(SeqNo, Woven)>,
}

impl BlockText {
    /// Reads the block's messages. Parts that are stored outside are shown by their notice.
    pub(crate) fn read(shelf: &Shelf<'_>, block: &Block) -> Result<Self, Error> {
        Self::read_as(shelf, block, None)
    }

    /// As [`read`](Self::read), of a block that is shown in another todo: everything in it has its
    /// full name, and nothing is a quote, because a quote leads into the own todo.
    pub(crate) fn read_elsewhere(shelf: &Shelf<'_>, block: &Block) -> Result<Self, Error> {
        Self::read_as(shelf, block, Some(shelf.todo.id()))
    }

    fn read_as(shelf: &Shelf<'_>, block: &Block, of: Option<&TodoId>) -> Result<Self, Error> {
        let stored = shelf.blocks.messages(shelf.todo, block.range.as_u64())?;
        let mut tools = BTreeMap::new();
        let messages = block.range.iter().zip(&stored);
        let id = &block.header.block_id;
        Ok(Self {
            id: of.map_or_else(|| shown_id(id), |_| id.to_string()),
            time: one_line(&block.header.create_time.replace(['"', '<', '>'], ""), 19),
            kind: block.header.block_type.as_str(),
            messages: messages
                .map(|(seq, stored)| (seq, weave(seq, stored, of, &mut tools)))
                .collect(),
        })
    }

    /// All messages, one after the other.
    pub(crate) fn body(&self) -> Woven {
        let mut body = Woven::default();
        for (_, message) in &self.messages {
            body.append(message);
        }
        body
    }

    /// The mark before the block's text.
    pub(crate) fn open(&self) -> String {
        let origin = Origin {
            block: Some(&self.id),
            time: Some(self.time.clone()),
            kind: Some(self.kind),
            ..Origin::default()
        };
        format!("{}\n", origin.open())
    }

    /// The mark behind it.
    pub(crate) fn close(&self) -> String {
        format!("{CLOSE}\n")
    }
}

fn weave(
    seq: SeqNo,
    stored: &StoredMessage,
    of: Option<&TodoId>,
    tools: &mut BTreeMap<String, String>,
) -> Woven {
    let mut woven = Woven::default();
    let Some(message) = readable(stored) else {
        woven.push(&format!("#{seq} (this message cannot be read)\n"));
        return woven;
    };
    for call in message.tool_calls() {
        tools.insert(call.id.as_str().to_owned(), call.name.clone());
    }
    let tool = message.tool_call_id().and_then(|id| tools.get(id.as_str()).map(String::as_str));
    let name = if *message.role() == Role::Tool { tool.or(message.name()) } else { message.name() };
    let role = legal_name(message.role().as_str());
    let head = match name.filter(|name| !name.is_empty()) {
        Some(name) => format!("#{seq} {role}({})", legal_name(name)),
        None => format!("#{seq} {role}"),
    };
    let shown = match of {
        _ if stored.offloads.is_empty() => None,
        Some(todo) => Some(light_elsewhere(&message, &stored.offloads, todo)),
        None => Some(light(&message, &stored.offloads)),
    };
    let is_own = of.is_none();
    let shown = shown.as_ref().unwrap_or(&message);
    if !shown.content().is_blank() || shown.tool_calls().is_empty() {
        woven.push(&head);
        woven.push(": ");
        if stored.recall {
            woven.push_quote(&recall_note(&message.text()), None);
        } else {
            weave_content(&mut woven, seq, shown, &stored.offloads, is_own);
        }
        woven.push("\n");
    }
    for (index, call) in (0_u32..).zip(shown.tool_calls()) {
        woven.push(&format!("{head} calls {} ", legal_name(&call.name)));
        let is_offloaded = stored.offloads.iter().any(|offload| match offload.site {
            Site::Arguments(at) | Site::Argument(at, _) => at == index,
            Site::Content | Site::Part(_) => false,
        });
        let source = Source::Message(seq, Site::Arguments(index));
        woven.push_quote(&call.arguments, (is_own && !is_offloaded).then_some((source, 0)));
        woven.push("\n");
    }
    woven
}

fn weave_content(
    woven: &mut Woven,
    seq: SeqNo,
    message: &Message,
    offloads: &[Offload],
    is_own: bool,
) {
    let source = |site: Site| {
        let is_offloaded = offloads.iter().any(|offload| offload.site == site);
        (is_own && !is_offloaded).then_some((Source::Message(seq, site), 0))
    };
    match message.content() {
        content if content.is_blank() => woven.push(NO_OUTPUT),
        Content::Empty => {}
        Content::Text(text) => woven.push_quote(text, source(Site::Content)),
        Content::Parts(parts) => {
            for (index, part) in (0_u32..).zip(parts) {
                if index > 0 {
                    woven.end_part();
                }
                match part {
                    Part::Text(text) => woven.push_quote(text, source(Site::Part(index))),
                    Part::Other(json) => woven.push(&format!("[{}]", part_kind(json))),
                }
            }
        }
    }
}

/// The message with nothing in the places of what is stored elsewhere: those are shown by their
/// notices, and of a memory tool's answer the first line alone is read.
fn readable(stored: &StoredMessage) -> Option<Message> {
    // `null` is JSON wherever it stands, and text as well.
    let json = stored.json(|_, _| Ok::<_, ()>("null".to_owned())).ok()?;
    Message::from_json(&json).ok()
}

/// The kind of a part that is no text.
fn part_kind(json: &str) -> String {
    let part = crate::raw::RawObject::parse(json);
    let kind = part.and_then(|part| serde_json::from_str::<String>(part.get("type")?.get()).ok());
    legal_name(kind.as_deref().unwrap_or("part")).into_owned()
}

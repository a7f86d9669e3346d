//! An exchange on its way into the store.

use crate::Api;
use crate::branches::{Heard, Known, Mark};
use crate::client_message::{ClientMessage, grouped};
use crate::exchange::{Asked, Exchange};
use crate::family::{Family, Member};
use crate::identity::{Hints, Sender};
use crate::model_answer::message_of;
use foldback::{Close, Error, ErrorKind, Memory, NewSent, Origin, SentAgain};
use foldback_core::{Content, Message, SeqNo, TodoId};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;

/// So many messages of clients are held in memory; the store has them all.
const MOST_HELD: usize = 200_000;

/// Messages of a client that are recorded in one transaction.
const PER_TRANSACTION: usize = 128;

/// How often a conversation is placed, where others write to it too.
const TRIES: usize = 4;

/// Writes exchanges into a store, one after the other.
pub(crate) struct Keeper {
    memory: Memory,
    secret: [u8; 32],
    folder: Option<String>,
    families: HashMap<String, Family>,
    /// Whether the model may look things up, for each todo since it was first seen here: tools that come later would
    /// cost the provider's cache.
    recalls: HashMap<TodoId, bool>,
}

/// Why an exchange was not recorded: a sentence without its full stop.
pub(crate) enum Unkept {
    /// It is of no known shape.
    Unreadable(String),
    /// The store does not take it.
    Store(String),
}

/// What is read of a request.
#[derive(Deserialize)]
struct Body<'b> {
    #[serde(borrow, default)]
    messages: Option<Vec<&'b RawValue>>,
    /// The messages of the Responses API.
    #[serde(borrow, default)]
    input: Option<&'b RawValue>,
    #[serde(borrow, default)]
    system: Option<&'b RawValue>,
    /// The instructions of the Responses API.
    #[serde(borrow, default)]
    instructions: Option<&'b RawValue>,
    /// The answer that a request of the Responses API goes on from, which the provider keeps.
    #[serde(borrow, default)]
    previous_response_id: Option<Cow<'b, str>>,
    #[serde(borrow, default)]
    tools: Option<Vec<&'b RawValue>>,
    #[serde(borrow, flatten)]
    hints: Hints<'b>,
}

/// A request that was read.
struct Conversation {
    sender: Sender,
    instructions: Option<Message>,
    messages: Vec<ClientMessage>,
    /// How many of them were asked; the answer may stand behind.
    asked: usize,
    /// Which tools the agent has, by name.
    agent: blake3::Hash,
}

impl Keeper {
    pub(crate) fn new(memory: Memory, secret: [u8; 32], folder: Option<String>) -> Self {
        Self { memory, secret, folder, families: HashMap::new(), recalls: HashMap::new() }
    }

    /// Forgets what it knows of the store, which is read again.
    pub(crate) fn forget_all(&mut self) {
        self.families.clear();
    }

    /// Records what of an exchange is new.
    ///
    /// # Errors
    /// When the request cannot be read, or the store fails.
    pub(crate) fn keep(&mut self, exchange: &Exchange) -> Result<(), Unkept> {
        let packed =
            || Unkept::Unreadable("its body is packed in an unknown way, or no text".to_owned());
        let body = exchange.asked.body().ok_or_else(packed)?;
        let answer = exchange.answer();
        let conversation =
            Conversation::read(&exchange.asked, &body, answer.as_deref(), &self.secret)
                .map_err(Unkept::Unreadable)?;
        if conversation.asked == 0 {
            return Ok(());
        }
        let name = self.name_of(&conversation);
        for _ in 0..TRIES {
            let recorded = self.record(&name, &conversation);
            let Err(error) = recorded else {
                self.make_room(&name);
                return Ok(());
            };
            // What is there is read again.
            self.families.remove(&name);
            // Somebody else wrote to the same todo, or has forgotten it.
            if !matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound) {
                return Err(Unkept::Store(error.to_string()));
            }
        }
        Err(Unkept::Store("another process writes to the same conversation".to_owned()))
    }

    /// The todo in which the model of a conversation may look things up: the one that it is recorded in, where
    /// something was closed before this gateway saw it first.
    pub(crate) fn find(&mut self, asked: &Asked) -> Option<TodoId> {
        let body = asked.body()?;
        let conversation = Conversation::read(asked, &body, None, &self.secret).ok()?;
        let name = self.name_of(&conversation);
        self.open(&name, &conversation).ok()?;
        let family = self.families.get(&name)?;
        let digests: Vec<_> = conversation.messages.iter().map(|message| message.digest).collect();
        let (n, _) = family.find(&digests, &conversation.agent)?;
        let session = &family.members.get(n)?.session;
        let may = self.recalls.entry(session.todo().clone()).or_insert(session.blocks() > 0);
        may.then(|| session.todo().clone())
    }

    /// The name of the family, from which its todos have theirs.
    fn name_of(&self, conversation: &Conversation) -> String {
        if let Some(todo) = &conversation.sender.todo {
            return todo.clone();
        }
        let opening = conversation.messages.first().map_or_else(|| blake3::hash(b""), |m| m.digest);
        let digest = conversation.sender.family(&opening, &self.secret).to_hex();
        let digest: String = digest.chars().take(12).collect();
        format!("{}-{digest}", conversation.sender.client)
    }

    /// Reads from the store what it holds of a family, unless it is known.
    fn open(&mut self, name: &str, conversation: &Conversation) -> Result<(), Error> {
        if !self.families.contains_key(name) {
            let known_by = conversation.sender.known_by();
            let origin = Origin {
                source: Some(conversation.sender.client.clone()),
                folder: self.folder.clone(),
            };
            let family = Family::open(&self.memory, name.to_owned(), known_by, origin)?;
            self.families.insert(name.to_owned(), family);
        }
        Ok(())
    }

    fn record(&mut self, name: &str, conversation: &Conversation) -> Result<(), Error> {
        self.open(name, conversation)?;
        let Some(family) = self.families.get_mut(name) else { return Ok(()) };
        let digests: Vec<_> = conversation.messages.iter().map(|message| message.digest).collect();
        let asked = digests.get(..conversation.asked).unwrap_or_default();
        let (n, known) = family.place(&self.memory, asked, &conversation.agent)?;
        let Some(member) = family.members.get_mut(n) else { return Ok(()) };
        let session = &member.session;
        self.recalls.entry(session.todo().clone()).or_insert(session.blocks() > 0);
        let again = member.sent_again(conversation, &known);
        // The answer may be known as well.
        let all = member.branches.follow(&digests);
        let known = if all.messages > known.messages { all } else { known };
        if known.messages == digests.len() && again.is_empty() {
            return Ok(());
        }
        let seq = member.session.len();
        if !member.branches.ends_with(known.node) {
            // What comes now stands on something else than what came last.
            member.session.close(Close::Switch)?;
        }
        member.record(seq, conversation, &known, &again)
    }

    /// Forgets families until there is room, but not this one.
    fn make_room(&mut self, kept: &str) {
        let held =
            |families: &HashMap<String, Family>| families.values().map(Family::len).sum::<usize>();
        if held(&self.families) > MOST_HELD {
            self.families.retain(|name, _| name == kept);
        }
    }
}

impl Member {
    /// What of a conversation the client sends for the first time although it is known: answers of the model.
    fn sent_again(&mut self, conversation: &Conversation, known: &Known) -> Vec<SentAgain> {
        let now = self.branches.sent_now(known.node).into_iter();
        now.filter_map(|(place, mut again)| {
            again.sent.json = conversation.messages.get(place)?.json.clone();
            Some(again)
        })
        .collect()
    }

    /// Records what of a conversation is not known, from the message `seq` on, and what is sent anew.
    fn record(
        &mut self,
        mut seq: u64,
        conversation: &Conversation,
        known: &Known,
        again: &[SentAgain],
    ) -> Result<(), Error> {
        let (mut parent, mut again) = (known.node, again);
        let mut rest = conversation.messages.get(known.messages..).unwrap_or_default();
        let mut place = known.messages;
        while !rest.is_empty() || !again.is_empty() {
            let (batch, later) = rest.split_at(rest.len().min(PER_TRANSACTION));
            let first = self.branches.next();
            let mut marks = Vec::with_capacity(batch.len());
            let mut sent = Vec::with_capacity(batch.len());
            for (n, message) in (first..).zip(batch) {
                let is_answer = place >= conversation.asked;
                let mark = Mark {
                    digest: message.digest,
                    agent: (place == known.messages).then_some(conversation.agent),
                    answer: is_answer.then_some(Heard::FromModel),
                };
                let instructions = conversation.instructions.clone().filter(|_| parent.is_none());
                let messages = instructions.into_iter().chain(message.messages.iter().cloned());
                let (tag, json, messages) = (mark.tag(), message.json.clone(), messages.collect());
                sent.push(NewSent { parent, tag, json, messages });
                marks.push(mark);
                (parent, place) = (Some(n), place + 1);
            }
            self.session.record_sent(SeqNo(seq), first, &sent, again)?;
            for (one, mark) in sent.iter().zip(marks) {
                let end = seq + one.messages.len() as u64;
                self.branches.push(one.parent, seq..end, mark);
                seq = end;
            }
            (rest, again) = (later, &[]);
        }
        Ok(())
    }
}

impl Conversation {
    fn read(
        asked: &Asked,
        body: &str,
        answer: Option<&str>,
        secret: &[u8; 32],
    ) -> Result<Self, String> {
        let api = asked.api;
        // The words of such an error quote the request.
        let read: Body<'_> = serde_json::from_str(body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            format!("it has another shape than its API's at line {line}, column {column}")
        })?;
        if read.previous_response_id.is_some() {
            return Err("it goes on from an answer that the provider keeps".to_owned());
        }
        let items = read.input.filter(|_| api == Api::Responses).map(grouped).transpose()?;
        let items = items.unwrap_or_default();
        let sent = read.messages.unwrap_or_else(|| items.iter().map(AsRef::as_ref).collect());
        let read_message = |message: &&RawValue| ClientMessage::read(api, message);
        let mut messages = sent.iter().map(read_message).collect::<Result<Vec<_>, String>>()?;
        let count = messages.len();
        let answer = answer.and_then(|answer| message_of(api, answer));
        messages.extend(answer.map(|answer| ClientMessage::read(api, &answer)).transpose()?);
        let mut names: Vec<_> =
            read.tools.iter().flatten().filter_map(|tool| name_of(tool)).collect();
        names.sort();
        Ok(Self {
            sender: asked.sender.clone().or_in(&read.hints, secret),
            instructions: read.system.or(read.instructions).and_then(instructions),
            messages,
            asked: count,
            agent: blake3::hash(names.join("\n").as_bytes()),
        })
    }
}

/// The instructions that stand beside the messages.
fn instructions(system: &RawValue) -> Option<Message> {
    let message = format!("{{\"role\":\"system\",\"content\":{}}}", system.get());
    let message = Message::from_json(&message).ok()?;
    (*message.content() != Content::Empty).then_some(message)
}

/// The name of a tool, in either API's form.
fn name_of(tool: &RawValue) -> Option<String> {
    let tool: serde_json::Value = serde_json::from_str(tool.get()).ok()?;
    let name = tool.get("name").or_else(|| tool.pointer("/function/name"))?;
    name.as_str().map(str::to_owned)
}

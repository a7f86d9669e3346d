//! A conversation in a request.

use crate::caching;
use crate::class::{Class, Clues};
use crate::client_message::{ClientMessage, Digests, Slice, is_marked, lives_long, ranges};
use crate::config::Reach;
use crate::exchange::Asked;
use crate::identity::{Hints, Sender};
use crate::model_answer::message_of;
use crate::rest::Rest;
use crate::turn::{Declaring, LOAD, elements, tools_in};
use crate::{Api, RecallBy};
use foldback::MemoryTool;
use foldback_core::{CacheTerms, Content, Message};
use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// A request that was read, and its answer, if there is one.
pub(crate) struct Conversation {
    pub(crate) api: Api,
    /// What the client sent, unpacked.
    pub(crate) body: Arc<String>,
    pub(crate) class: Class,
    pub(crate) sender: Sender,
    pub(crate) instructions: Option<Message>,
    pub(crate) messages: Vec<ClientMessage>,
    /// How many of the messages the client sent; the answer may follow.
    pub(crate) asked: usize,
    /// Which tools the agent has, by name; `None` for a compaction, which may have others than the agent.
    pub(crate) agent: Option<blake3::Hash>,
    /// The names of the client's own tools, sorted.
    pub(crate) tools: Vec<String>,
    /// What the model was shown, as a number, if that was not this.
    pub(crate) shown: Option<u64>,
    pub(crate) terms: Terms,
    /// The terms on which its provider caches it.
    pub(crate) cache: CacheTerms,
}

/// What a request says outside the conversation, as far as it limits what may be changed.
pub(crate) struct Terms {
    pub(crate) model: String,
    pub(crate) thinking: Thinking,
    /// The agent's name for the tool that loads what was recorded.
    pub(crate) load: Option<String>,
    /// The description of that tool.
    pub(crate) load_says: String,
    /// Whether the gateway answers it within the turn, unseen by the client.
    pub(crate) is_unseen: bool,
    /// Whether the provider is asked to cache what is sent.
    pub(crate) is_marked: bool,
    /// Whether that is to be kept for an hour.
    pub(crate) is_long: bool,
    /// Whether the gateway can declare tools of its own.
    pub(crate) can_declare: bool,
    /// The place of the messages in the body.
    pub(crate) place: Range<usize>,
}

impl Terms {
    /// Sets the tool that loads what was recorded: the agent's own where it reaches that, or else one of the gateway, or
    /// none.
    pub(crate) fn reached_by(&mut self, reach: &Reach) {
        match reach.by {
            RecallBy::Mcp if self.load_says.contains(&reach.mark) => {}
            by if by.is_unseen() && self.can_declare => {
                (self.load, self.is_unseen) = (Some(LOAD.to_owned()), true);
            }
            _ => self.load = None,
        }
    }
}

/// What a request requires of a model that thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// Nothing, or the model decides: earlier thinking may be left out.
    Free,
    /// A turn that continues begins with its thinking.
    Required,
}

impl Thinking {
    fn read(thinking: &RawValue) -> Self {
        let kind = serde_json::from_str::<Kind<'_>>(thinking.get()).ok().and_then(|read| read.kind);
        if kind.as_deref() == Some("enabled") { Self::Required } else { Self::Free }
    }
}

/// The members of a request that are read.
#[derive(Deserialize)]
struct Body<'b> {
    #[serde(borrow, default)]
    model: Option<Cow<'b, str>>,
    #[serde(borrow, default)]
    messages: Option<&'b RawValue>,
    /// The messages of the Responses API.
    #[serde(borrow, default)]
    input: Option<&'b RawValue>,
    #[serde(borrow, default)]
    system: Option<&'b RawValue>,
    /// The instructions of the Responses API.
    #[serde(borrow, default)]
    instructions: Option<&'b RawValue>,
    /// The answer that a request of the Responses API continues, which the provider keeps.
    #[serde(borrow, default)]
    previous_response_id: Option<Cow<'b, str>>,
    #[serde(borrow, default)]
    tools: Option<Vec<&'b RawValue>>,
    #[serde(borrow, default)]
    output_config: Option<&'b RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'b RawValue>,
    #[serde(borrow, default)]
    n: Option<&'b RawValue>,
    #[serde(borrow, default)]
    store: Option<&'b RawValue>,
    #[serde(borrow, default)]
    conversation: Option<&'b RawValue>,
    #[serde(borrow, default)]
    background: Option<&'b RawValue>,
    #[serde(borrow, flatten)]
    hints: Hints<'b>,
}

/// An object with a type.
#[derive(Deserialize)]
struct Kind<'k> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'k, str>>,
}

/// Returns why a request cannot be read. The text of such an error quotes the request.
fn misshapen(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Syntax | Category::Eof => "it is not JSON",
        _ if error.to_string().starts_with("duplicate field") => "it has a key twice",
        _ => "it does not have the shape of its API",
    };
    format!("{what} at line {}, column {}", error.line(), error.column())
}

impl Conversation {
    /// Reads a request. A request that is not part of an agent's work has no messages. The messages that are `known`
    /// from a body with the same beginning are not read again, except the last, which may continue differently.
    ///
    /// # Errors
    /// When it has no known shape: a sentence without its full stop.
    pub(crate) fn read(
        asked: &Asked,
        body: &Arc<String>,
        known: &[ClientMessage],
        secret: &[u8; 32],
        digests: &mut Digests,
    ) -> Result<Self, String> {
        let api = asked.api;
        let rest = Rest::behind(body, known);
        let read: Body<'_> = serde_json::from_str(&rest.text).map_err(|error| misshapen(&error))?;
        if read.previous_response_id.is_some() {
            return Err("it continues an answer that the provider keeps".to_owned());
        }
        let raw = if api == Api::Responses { read.input } else { read.messages };
        let sent = match raw {
            Some(raw) => sent(api, raw, body, &rest)?,
            None => Vec::new(),
        };
        let texts = rest.known.iter().map(|message| &*message.json);
        let clues = Clues {
            system: read.system,
            tools: read.tools.as_ref().map(Vec::len),
            messages: &texts.chain(sent.iter().map(|(json, _)| &**json)).collect::<Vec<_>>(),
            output_config: read.output_config,
            thinking: read.thinking,
        };
        let class = Class::of(api, &asked.path, &asked.headers, &clues);
        let is_work = !matches!(class, Class::Title | Class::Prewarm);
        let mut messages = if is_work { rest.known.to_vec() } else { Vec::new() };
        for (json, place) in sent.into_iter().filter(|_| is_work) {
            // The words of such an error quote the message.
            let read = digests.read(api, json, place);
            messages.push(read.map_err(|_| {
                "one of its messages does not have the shape of its API".to_owned()
            })?);
        }
        let terms = terms(api, &read, &rest, raw, &messages);
        let names = read.tools.iter().flatten().filter_map(|tool| name_of(tool));
        let mut names: Vec<_> = names.collect();
        names.sort();
        let agent = blake3::hash(names.join("\n").as_bytes());
        let first = messages.first().filter(|_| api == Api::Responses);
        let more = first.and_then(|first| elements(tools_in(&first.json)?.get()));
        let tools = read.tools.iter().chain(&more).flatten();
        let mut names: Vec<_> = tools.filter_map(|tool| Tool::read(tool)?.label()).collect();
        names.sort();
        let sender = asked.sender.clone().or_in(&read.hints, secret);
        Ok(Self {
            api,
            body: Arc::clone(body),
            class,
            sender: if class == Class::SubAgent { sender.of_sub_agent() } else { sender },
            instructions: read.system.or(read.instructions).and_then(standing),
            asked: messages.len(),
            messages,
            agent: (class != Class::Compaction).then_some(agent),
            tools: names,
            shown: None,
            cache: caching::usual(api, &terms).when(terms.is_marked),
            terms,
        })
    }

    /// Adds the model's answer, if it is complete.
    pub(crate) fn hear(&mut self, answer: &str, digests: &mut Digests) -> Result<(), String> {
        // A request without messages is not part of an agent's work.
        let message = message_of(self.api, answer).filter(|_| self.asked > 0);
        if let Some(message) = message {
            let message = Slice::from(message.get().to_owned());
            // The words of such an error quote the message.
            let read = digests.read(self.api, message, 0..0);
            self.messages.push(read.map_err(|_| "it does not have the shape of its API")?);
        }
        Ok(())
    }

    /// Returns the messages that the client sent.
    pub(crate) fn asked(&self) -> &[ClientMessage] {
        self.messages.get(..self.asked).unwrap_or_default()
    }

    /// Returns a digest of how it begins, up to the first message in which somebody asks something. Many conversations share
    /// the instructions before it.
    pub(crate) fn opening(&self) -> blake3::Hash {
        let before = self.asked().iter().take(self.opening_len().max(1));
        let asked =
            before.clone().position(|message| message.is_asked).map_or(usize::MAX, |n| n + 1);
        let mut digests = before.take(asked).map(|message| message.digest);
        let first = digests.next().unwrap_or_else(|| blake3::hash(b""));
        digests.fold(first, |before, next| blake3::keyed_hash(before.as_bytes(), next.as_bytes()))
    }

    /// Returns how many messages precede the model's first: what the agent and its task are.
    pub(crate) fn opening_len(&self) -> usize {
        self.asked().iter().take_while(|message| !message.is_models).count()
    }
}

/// Returns the messages of a request after the known ones, and the place of each in the body.
fn sent(
    api: Api,
    raw: &RawValue,
    body: &Arc<String>,
    rest: &Rest<'_>,
) -> Result<Vec<(Slice, Range<usize>)>, String> {
    if api == Api::Responses && raw.get().starts_with('"') {
        let item = format!("{{\"type\":\"message\",\"role\":\"user\",\"content\":{}}}", raw.get());
        return Ok(vec![(item.into(), rest.place(raw.get()))]);
    }
    let list: Result<Vec<&RawValue>, _> = serde_json::from_str(raw.get());
    let list = list.map_err(|_| match api {
        Api::Responses => "its input is neither a text nor a list of items".to_owned(),
        _ => "its messages are not a list".to_owned(),
    })?;
    let message = |range: Range<usize>| {
        let items = list.get(range)?;
        let (first, last) = (rest.place(items.first()?.get()), rest.place(items.last()?.get()));
        let place = first.start..last.end;
        let json = match items {
            [_] => Slice::new(body, place.clone()),
            several => {
                let several: Vec<_> = several.iter().map(|item| item.get()).collect();
                format!("[{}]", several.join(",")).into()
            }
        };
        Some((json, place))
    };
    Ok(ranges(api, &list).into_iter().filter_map(message).collect())
}

/// Returns what a request says outside the conversation.
fn terms(
    api: Api,
    read: &Body<'_>,
    rest: &Rest<'_>,
    raw: Option<&RawValue>,
    messages: &[ClientMessage],
) -> Terms {
    let load = MemoryTool::all().into_iter().find(|tool| tool.name == "load");
    let mut tools = read.tools.iter().flatten();
    let load = load.and_then(|load| tools.find_map(|tool| own_load(tool, &load)));
    let (load, load_says) = load.unzip();
    let declaring = Declaring {
        kept: [None, read.conversation, read.background],
        n: read.n,
        store: read.store,
        has_answers: messages.iter().any(|message| message.is_given),
    };
    let first = || messages.first().filter(|_| api == Api::Responses);
    let has_tools = match &read.tools {
        Some(tools) => !tools.is_empty(),
        None => first().is_some_and(|first| {
            let tools = tools_in(&first.json).map(|tools| elements(tools.get()));
            tools.flatten().is_some_and(|tools| !tools.is_empty())
        }),
    };
    Terms {
        model: read.model.as_deref().unwrap_or_default().to_owned(),
        thinking: read.thinking.map_or(Thinking::Free, Thinking::read),
        load,
        load_says: load_says.unwrap_or_default(),
        is_unseen: false,
        is_marked: api != Api::Messages
            || rest.known.iter().any(|message| message.is_marked)
            || is_marked(&rest.text),
        is_long: api == Api::Messages
            && (rest.known.iter().any(|message| message.is_long)
                || raw.is_some_and(|raw| lives_long(raw.get()))),
        can_declare: has_tools && declaring.is_possible(api),
        place: raw.map_or(0..0, |raw| rest.place(raw.get())),
    }
}

/// Returns the instructions outside the messages.
fn standing(system: &RawValue) -> Option<Message> {
    let message = format!("{{\"role\":\"system\",\"content\":{}}}", system.get());
    let message = Message::from_json(&message).ok()?;
    (*message.content() != Content::Empty).then_some(message)
}

/// A tool, in the form of either API.
#[derive(Deserialize)]
struct Tool<'t> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'t, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'t, str>>,
    #[serde(borrow, default)]
    description: Option<Cow<'t, str>>,
    #[serde(borrow, default)]
    function: Option<Function<'t>>,
}

#[derive(Deserialize)]
struct Function<'t> {
    #[serde(borrow, default)]
    name: Option<Cow<'t, str>>,
    #[serde(borrow, default)]
    description: Option<Cow<'t, str>>,
}

impl Tool<'_> {
    fn read(tool: &RawValue) -> Option<Tool<'_>> {
        serde_json::from_str(tool.get()).ok()
    }

    fn name(&self) -> Option<&str> {
        let inner = self.function.as_ref().and_then(|function| function.name.as_deref());
        self.name.as_deref().or(inner)
    }

    /// Its name or, of a tool of the provider that has none, its type.
    fn label(&self) -> Option<String> {
        self.name().or(self.kind.as_deref()).map(str::to_owned)
    }

    fn description(&self) -> Option<&str> {
        let inner = self.function.as_ref().and_then(|function| function.description.as_deref());
        self.description.as_deref().or(inner)
    }
}

/// Returns the name of a tool.
pub(crate) fn name_of(tool: &RawValue) -> Option<String> {
    Tool::read(tool)?.name().map(str::to_owned)
}

/// Returns the name and the description of a tool, if it is the memory's `load` as a client of `foldback mcp` declares
/// it: under a name that the client makes, with the server's description.
fn own_load(tool: &RawValue, load: &MemoryTool) -> Option<(String, String)> {
    let tool = Tool::read(tool)?;
    let (name, says) = (tool.name()?, tool.description()?);
    let is_load = name.ends_with(load.name) && says.contains(load.description);
    is_load.then(|| (name.to_owned(), says.to_owned()))
}

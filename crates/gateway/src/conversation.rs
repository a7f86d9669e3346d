//! A conversation as a request holds it.

use crate::Api;
use crate::caching;
use crate::class::{Class, Clues};
use crate::client_message::{ClientMessage, Digests, grouped};
use crate::exchange::Asked;
use crate::identity::{Hints, Sender};
use crate::model_answer::message_of;
use crate::turn::LOAD;
use foldback::MemoryTool;
use foldback_core::{Content, Message};
use foldback_providers::CacheTerms;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// A request that was read, and where it was answered, the answer.
pub(crate) struct Conversation {
    pub(crate) api: Api,
    pub(crate) class: Class,
    pub(crate) sender: Sender,
    pub(crate) instructions: Option<Message>,
    pub(crate) messages: Vec<ClientMessage>,
    /// How many of them were asked; the answer may stand behind.
    pub(crate) asked: usize,
    /// Which tools the agent has, by name; `None` for a compaction, which may have others than the agent.
    pub(crate) agent: Option<blake3::Hash>,
    /// What the model was shown in its place, as a number, where it was not this.
    pub(crate) shown: Option<u64>,
    pub(crate) terms: Terms,
    /// The terms on which its provider caches it.
    pub(crate) cache: CacheTerms,
}

/// What a request says beside the conversation, as far as it bears on what may be changed of it.
pub(crate) struct Terms {
    pub(crate) model: String,
    pub(crate) thinking: Thinking,
    /// The agent's name of the tool that loads what was recorded.
    pub(crate) load: Option<String>,
    /// What that says of itself.
    pub(crate) load_says: String,
    /// Whether it is answered within the turn, unseen by the client.
    pub(crate) is_unseen: bool,
    /// Whether the provider is asked to cache what is sent.
    pub(crate) is_marked: bool,
    /// Whether that shall live an hour.
    pub(crate) is_long: bool,
    /// Where the messages stand in the body.
    pub(crate) place: Range<usize>,
}

impl Terms {
    /// The gateway declares a tool that loads what was recorded. What the agent has of its own may reach something else.
    pub(crate) fn recalls_unseen(&mut self) {
        (self.load, self.is_unseen) = (Some(LOAD.to_owned()), true);
    }
}

/// What a request wants of a model that thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// Nothing, or the model decides: thoughts of before may be left out.
    Free,
    /// A turn that goes on begins with its thoughts.
    Required,
}

impl Thinking {
    fn read(thinking: &RawValue) -> Self {
        let kind = serde_json::from_str::<Kind<'_>>(thinking.get()).ok().and_then(|read| read.kind);
        if kind.as_deref() == Some("enabled") { Self::Required } else { Self::Free }
    }
}

/// What is read of a request.
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
    /// The answer that a request of the Responses API goes on from, which the provider keeps.
    #[serde(borrow, default)]
    previous_response_id: Option<Cow<'b, str>>,
    #[serde(borrow, default)]
    tools: Option<Vec<&'b RawValue>>,
    #[serde(borrow, default)]
    output_config: Option<&'b RawValue>,
    #[serde(borrow, default)]
    thinking: Option<&'b RawValue>,
    #[serde(borrow, flatten)]
    hints: Hints<'b>,
}

/// An object of a kind.
#[derive(Deserialize)]
struct Kind<'k> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<Cow<'k, str>>,
}

impl Conversation {
    /// Reads a request, and the answer where there is one. What is no part of an agent's work has no messages.
    ///
    /// # Errors
    /// When it is of no known shape: a sentence without its full stop.
    pub(crate) fn read(
        asked: &Asked,
        body: &str,
        answer: Option<&str>,
        secret: &[u8; 32],
        digests: &mut Digests,
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
        let raw = if api == Api::Responses { read.input } else { read.messages };
        let (sent, items): (Vec<&RawValue>, _);
        match (api, raw) {
            (Api::Responses, Some(raw)) => {
                items = grouped(raw)?;
                sent = items.iter().map(AsRef::as_ref).collect();
            }
            (_, Some(raw)) => {
                let list = serde_json::from_str(raw.get());
                sent = list.map_err(|_| "its messages are no list".to_owned())?;
            }
            (_, None) => sent = Vec::new(),
        }
        let clues = Clues {
            system: read.system,
            tools: read.tools.as_ref().map(Vec::len),
            messages: &sent,
            output_config: read.output_config,
            thinking: read.thinking,
        };
        let class = Class::of(api, &asked.path, &asked.headers, &clues);
        let is_work = !matches!(class, Class::Title | Class::Prewarm);
        let mut messages = Vec::with_capacity(sent.len() + 1);
        for message in sent.into_iter().filter(|_| is_work) {
            // The words of such an error quote the message.
            let read = digests.read(api, message);
            messages.push(read.map_err(|_| "one of its messages has another shape".to_owned())?);
        }
        let count = messages.len();
        if let Some(answer) = answer.filter(|_| is_work).and_then(|answer| message_of(api, answer))
        {
            messages.push(digests.read(api, &answer)?);
        }
        let tools = read.tools.unwrap_or_default();
        let mut names: Vec<_> = tools.iter().filter_map(|tool| name_of(tool)).collect();
        names.sort();
        let load = MemoryTool::all().into_iter().find(|tool| tool.name == "load");
        let load = load.and_then(|load| tools.iter().find_map(|tool| own_load(tool, &load)));
        let (load, load_says) = load.unzip();
        let instructions = read.system.or(read.instructions);
        let terms = Terms {
            model: read.model.unwrap_or_default().into_owned(),
            thinking: read.thinking.map_or(Thinking::Free, Thinking::read),
            load,
            load_says: load_says.unwrap_or_default(),
            is_unseen: false,
            is_marked: api != Api::Messages || body.contains("\"cache_control\""),
            is_long: api == Api::Messages && raw.is_some_and(|raw| lives_long(raw.get())),
            place: raw.map_or(0..0, |raw| place(body, raw)),
        };
        let agent = blake3::hash(names.join("\n").as_bytes());
        Ok(Self {
            api,
            class,
            sender: asked.sender.clone().or_in(&read.hints, secret),
            instructions: instructions.and_then(standing),
            messages,
            asked: count,
            agent: (class != Class::Compaction).then_some(agent),
            shown: None,
            cache: caching::usual(api, &terms).when(terms.is_marked),
            terms,
        })
    }

    /// The messages that were asked.
    pub(crate) fn asked(&self) -> &[ClientMessage] {
        self.messages.get(..self.asked).unwrap_or_default()
    }

    /// How many messages stand in front of the model's first: what the agent and its task are.
    pub(crate) fn head(&self) -> usize {
        self.asked().iter().take_while(|message| !message.is_models).count()
    }
}

/// Whether a mark among the messages asks for an hour.
fn lives_long(messages: &str) -> bool {
    ["\"ttl\":\"1h\"", "\"ttl\": \"1h\""].iter().any(|mark| messages.contains(mark))
}

/// Where a value stands in the text that it was read from.
fn place(body: &str, value: &RawValue) -> Range<usize> {
    // The value is a slice of the text, so its address tells its place.
    let start = (value.get().as_ptr() as usize).saturating_sub(body.as_ptr() as usize);
    start..start + value.get().len()
}

/// The instructions that stand beside the messages.
fn standing(system: &RawValue) -> Option<Message> {
    let message = format!("{{\"role\":\"system\",\"content\":{}}}", system.get());
    let message = Message::from_json(&message).ok()?;
    (*message.content() != Content::Empty).then_some(message)
}

/// A tool, in either API's form.
#[derive(Deserialize)]
struct Tool<'t> {
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

    fn description(&self) -> Option<&str> {
        let inner = self.function.as_ref().and_then(|function| function.description.as_deref());
        self.description.as_deref().or(inner)
    }
}

/// The name of a tool.
fn name_of(tool: &RawValue) -> Option<String> {
    Tool::read(tool)?.name().map(str::to_owned)
}

/// The name of a tool and what it says of itself, where it is the memory's `load` as a client of `foldback mcp` declares
/// it: under a name of the client's making, with the server's words.
fn own_load(tool: &RawValue, load: &MemoryTool) -> Option<(String, String)> {
    let tool = Tool::read(tool)?;
    let (name, says) = (tool.name()?, tool.description()?);
    let is_load = name.ends_with(load.name) && says.contains(load.description);
    is_load.then(|| (name.to_owned(), says.to_owned()))
}

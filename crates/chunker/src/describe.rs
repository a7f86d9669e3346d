//! The metadata of a closed block, made without a model.

use crate::background::background;
use crate::cues::Cues;
use crate::names::{Kind, each_name};
use crate::sentence;
use crate::stems::Stem;
use crate::terms::{damped, each_cjk_run, each_word, is_cjk};
use crate::width::folded;
use foldback_core::script::is_unspaced_alphabet;
use foldback_core::{
    BlockHeader, BlockId, BlockType, Message, Offload, PayloadRef, Role, Timestamp, TodoId,
    ToolCall, first_chars, is_json_like, last_chars, unescaped,
};
use std::borrow::Cow;
use std::collections::BTreeMap;
use unicode_normalization::char::is_combining_mark;

/// A message of a block, with its full text.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    pub(crate) message: &'a Message,
    offloads: &'a [Offload],
    recorded_at: Timestamp,
    recall: bool,
}

impl<'a> Described<'a> {
    /// Creates a message with the time of its recording, for a block whose messages carry no time.
    #[must_use]
    pub fn new(message: &'a Message, recorded_at: Timestamp) -> Self {
        Self { message, offloads: &[], recorded_at, recall: false }
    }

    /// Returns the same message with the parts of it that are stored outside.
    #[must_use]
    pub fn with_offloads(self, offloads: &'a [Offload]) -> Self {
        Self { offloads, ..self }
    }

    /// Marks the message as the answer of a memory tool or not. The names in such an answer and in its question are not
    /// keywords: a block is found by what happened in it, and not by what somebody searched for there.
    #[must_use]
    pub fn with_recall(self, recall: bool) -> Self {
        Self { recall, ..self }
    }
}

/// Describes a block: its kind, its keywords, one sentence, its time and its payloads. `parts` are
/// the messages of the block, in order. A reference in a text is listed if it `leads` to a payload; 64 are looked up.
///
/// It costs a bounded amount of work for each message: only the first 3,000 characters of a text are read, for names
/// its last 1,500 as well, and for a traceback its last 12,000. (The texts of a message that holds several are joined
/// first.)
#[must_use]
pub fn describe(id: BlockId, parts: &[Described<'_>], leads: &dyn Fn(&str) -> bool) -> BlockHeader {
    let at = parts.iter().find_map(|part| part.message.timestamp());
    let at = at.or_else(|| parts.first().map(|part| part.recorded_at)).unwrap_or_default();
    let (data_ids, result) = data_ids(id.todo(), parts, leads);
    let names = Names { references: data_ids.clone(), result, ..Names::of(parts) };
    let block_type = block_type(parts);
    BlockHeader {
        todo_id: id.todo().clone(),
        block_id: id,
        block_type,
        keywords: keywords(&names, parts),
        core_semantic: sentence::of(block_type, &names, parts),
        create_time: at.to_string(),
        data_ids,
    }
}

/// The most keywords in a header.
const KEYWORDS: usize = 12;

/// The most references in a header. A block of eight messages with more merely lists references, and does not read
/// them.
const DATA_IDS: usize = 64;

/// How much of a text is examined: its first characters, and its last ones, where errors are reported.
const HEAD: usize = 3_000;
const TAIL: usize = 1_500;

/// The names in a block, each kind without repetition and in the order of first mention: those in calls and speech
/// first, those in the answers of tools last.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) tools: Vec<String>,
    pub(crate) files: Vec<String>,
    pub(crate) ids: Vec<String>,
    pub(crate) errors: Vec<String>,
    pub(crate) references: Vec<String>,
    /// The first reference in the answer of a tool.
    pub(crate) result: Option<String>,
    /// The first name in the arguments of a call.
    pub(crate) target: Option<String>,
    /// The first call that failed.
    pub(crate) failure: Option<Failure>,
}

/// A call that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The tool and the first name in the arguments; none if the block does not have the call.
    pub(crate) tool: Option<String>,
    pub(crate) target: Option<String>,
    /// The error that its answer names.
    pub(crate) error: Option<String>,
}

impl Names {
    fn of(parts: &[Described<'_>]) -> Self {
        let mut names = Self::default();
        let mut asked = Self::default();
        let called = calls(parts);
        let mut targets = Vec::with_capacity(called.len());
        for Called { call, is_recall, .. } in &called {
            add(&mut names.tools, ends(&call.name).0);
            let (head, tail) = ends(&call.arguments);
            let (head, tail) = (readable(head, head), readable(tail, head));
            let mut own = Self::default();
            own.read_part(&head);
            own.read_part(&tail);
            let first = own.files.first().or(own.ids.first()).cloned();
            targets.push(first.or_else(|| only_value(&head)));
            let named = if *is_recall { &mut asked } else { &mut names };
            own.files.iter().for_each(|name| add(&mut named.files, name));
            own.ids.iter().for_each(|name| add(&mut named.ids, name));
            own.errors.iter().for_each(|name| add(&mut named.errors, name));
        }
        names.target = targets.iter().flatten().next().cloned();
        let is_tool = |part: &&Described<'_>| *part.message.role() == Role::Tool;
        names.failure =
            parts.iter().filter(is_tool).find(|part| sentence::fails(part.message)).map(|part| {
                let is_answer = |called: &Called<'_>| {
                    called.answer.is_some_and(|answer| std::ptr::eq(answer, part.message))
                };
                let at = called.iter().position(is_answer);
                let mut told = Self::default();
                told.read(&part.message.text());
                Failure {
                    tool: at.and_then(|at| Some(ends(&called.get(at)?.call.name).0.to_owned())),
                    target: at.and_then(|at| targets.get(at)?.clone()),
                    error: told.errors.into_iter().next(),
                }
            });
        // Instructions speak of everything; they say nothing about what happened.
        let spoken =
            parts.iter().filter(|part| !is_tool(part) && !part.message.role().is_instruction());
        let answered = parts.iter().filter(|part| is_tool(part) && !part.recall);
        for part in spoken.chain(answered) {
            names.read(&part.message.text());
        }
        names
    }

    fn read(&mut self, text: &str) {
        let (head, tail) = ends(text);
        self.read_part(&readable(head, head));
        self.read_part(&readable(tail, head));
    }

    fn read_part(&mut self, text: &str) {
        each_name(&folded(text), |kind, name| match kind {
            Kind::File => add(&mut self.files, name),
            Kind::Id => add(&mut self.ids, name),
            Kind::Error => add(&mut self.errors, name.rsplit('.').next().unwrap_or(name)),
            Kind::Reference => {}
        });
    }
}

/// A call, its answer, and whether a memory tool gave that.
struct Called<'a> {
    call: &'a ToolCall,
    answer: Option<&'a Message>,
    is_recall: bool,
}

/// Returns the calls of a block. Ids may be reused: a result answers the first open call of its id, among those that
/// were made last.
fn calls<'a>(parts: &[Described<'a>]) -> Vec<Called<'a>> {
    let mut calls: Vec<Called<'a>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    for part in parts {
        let made = part.message.tool_calls();
        let comes_again = |at: &usize| {
            calls.get(*at).is_some_and(|old| made.iter().any(|call| call.id == old.call.id))
        };
        open.retain(|at| !comes_again(at));
        open.extend(calls.len()..calls.len() + made.len());
        calls.extend(made.iter().map(|call| Called { call, answer: None, is_recall: false }));
        let Some(id) = part.message.tool_call_id() else { continue };
        let answers = |at: &usize| calls.get(*at).is_some_and(|called| called.call.id == *id);
        let Some(at) = open.iter().position(answers).map(|place| open.remove(place)) else {
            continue;
        };
        if let Some(called) = calls.get_mut(at) {
            (called.answer, called.is_recall) = (Some(part.message), part.recall);
        }
    }
    calls
}

/// Adds a name that is not there yet. A listing of hundreds of names says no more than its first.
fn add(names: &mut Vec<String>, name: &str) {
    const OF_A_KIND: usize = 24;
    if names.len() < OF_A_KIND && !names.iter().any(|known| known == name) {
        names.push(name.to_owned());
    }
}

/// Returns a part of a text that begins with `head`, with the escapes of JSON read.
fn readable<'a>(part: &'a str, head: &str) -> Cow<'a, str> {
    unescaped(part, is_json_like(head), |_, _| {})
}

/// Returns the value of arguments that are one short text, or hold one: `{"query": "rate limits"}`.
fn only_value(arguments: &str) -> Option<String> {
    let inside = arguments.trim_start().strip_prefix('{')?;
    let value = inside.split_once(':')?.1.trim_start().strip_prefix('"')?;
    let (value, _) = value.split_once('"')?;
    let words = value.split_whitespace().count();
    ((1..=4).contains(&words) && value.chars().count() <= 30 && !value.contains('\\'))
        .then(|| value.to_owned())
}

/// Returns the first and the last characters of a text, without overlap.
pub(crate) fn ends(text: &str) -> (&str, &str) {
    let (head, rest) = text.split_at(first_chars(text, HEAD).len());
    let tail = last_chars(rest, TAIL);
    (head, tail)
}

/// Returns the first characters of what a message says.
pub(crate) fn head(message: &Message) -> Cow<'_, str> {
    match message.text() {
        Cow::Borrowed(text) => folded(ends(text).0),
        Cow::Owned(text) => Cow::Owned(folded(ends(&text).0).into_owned()),
    }
}

fn block_type(parts: &[Described<'_>]) -> BlockType {
    let calls = |part: &Described<'_>| {
        *part.message.role() == Role::Tool || !part.message.tool_calls().is_empty()
    };
    if parts.iter().any(calls) {
        return BlockType::ToolCall;
    }
    let asked = parts.iter().position(|part| {
        *part.message.role() == Role::User && Cues::of(&part.message.text()).has(Cues::ASKS)
    });
    let answered = asked.is_some_and(|asked| {
        parts.iter().skip(asked + 1).any(|part| {
            *part.message.role() == Role::Assistant && !part.message.content().is_blank()
        })
    });
    if answered { BlockType::Qa } else { BlockType::Chat }
}

/// Returns the references of a block, and the first in the answer of a tool. Those of the own todo lose its name, so
/// that one payload has one id.
fn data_ids(
    todo: &TodoId,
    parts: &[Described<'_>],
    leads: &dyn Fn(&str) -> bool,
) -> (Vec<String>, Option<String>) {
    let (mut found, mut result) = (Vec::new(), None);
    let mut asked: BTreeMap<String, bool> = BTreeMap::new();
    for part in parts {
        let is_answer = *part.message.role() == Role::Tool || part.message.is_observation();
        let mut add = |reference: String| {
            result = result.take().or_else(|| is_answer.then(|| reference.clone()));
            if found.len() < DATA_IDS && !found.contains(&reference) {
                found.push(reference);
            }
        };
        part.offloads.iter().for_each(|offload| add(offload.reference().to_string()));
        let mut read = |text: &str| {
            let (head, tail) = ends(text);
            for text in [head, tail].iter().filter(|text| text.contains(PayloadRef::SCHEME)) {
                each_name(text, |kind, name| {
                    if kind != Kind::Reference {
                        return;
                    }
                    let name = match name.parse::<PayloadRef>() {
                        Ok(known) if known.todo.as_ref() == Some(todo) => {
                            PayloadRef::local(known.n, known.check).to_string()
                        }
                        _ => name.to_owned(),
                    };
                    let may_ask = asked.len() < DATA_IDS || asked.contains_key(&name);
                    if may_ask && *asked.entry(name.clone()).or_insert_with(|| leads(&name)) {
                        add(name);
                    }
                });
            }
        };
        read(&part.message.text());
        part.message.tool_calls().iter().for_each(|call| read(&call.arguments));
    }
    (found, result)
}

/// Names first, then the words with the greatest weight.
fn keywords(names: &Names, parts: &[Described<'_>]) -> Vec<String> {
    let mut keywords: Vec<String> = Vec::with_capacity(KEYWORDS);
    let kinds = [
        (&names.tools, 4),
        (&names.files, 4),
        (&names.ids, 3),
        (&names.errors, 2),
        (&names.references, 2),
    ];
    for (kind, most) in kinds {
        for name in kind.iter().take(most) {
            let name = sentence::word(name);
            if keywords.len() < KEYWORDS && !keywords.contains(&name) {
                keywords.push(name);
            }
        }
    }
    for word in words(parts) {
        if keywords.len() >= KEYWORDS {
            break;
        }
        let known = |keyword: &String| keyword.to_lowercase().contains(&word);
        if !keywords.iter().any(known) {
            keywords.push(word);
        }
    }
    keywords
}

/// Returns the words of what was said, the heaviest first. If nobody said a word, those of the answers of tools.
fn words(parts: &[Described<'_>]) -> Vec<String> {
    let mut counts: BTreeMap<String, u8> = BTreeMap::new();
    let is_spoken = |part: &&Described<'_>| {
        matches!(part.message.role(), Role::User | Role::Assistant | Role::Other(_))
    };
    for part in parts.iter().filter(is_spoken) {
        count_words(&part.message.text(), &mut counts);
    }
    if counts.is_empty() {
        for part in parts.iter().filter(|part| !is_spoken(part) && !part.recall) {
            count_words(&part.message.text(), &mut counts);
        }
        counts.retain(|_, count| *count > 1);
    }
    // A run of Chinese characters is a phrase rather than a word, unless it occurs again.
    let is_phrase = |word: &str| word.chars().any(is_cjk);
    let some_names = counts.keys().any(|word| !is_phrase(word));
    let tool_talk = parts.iter().any(|part| !part.message.tool_calls().is_empty());
    counts.retain(|word, count| !is_phrase(word) || *count > 1 || !(some_names || tool_talk));
    let weight = |word: &str, count: u8| background(Stem::of(word).term) * damped(count);
    let mut words: Vec<(f32, String)> =
        counts.into_iter().map(|(word, count)| (weight(&word, count), word)).collect();
    words.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    words.into_iter().map(|(_, word)| word).take(2 * KEYWORDS).collect()
}

fn count_words(text: &str, counts: &mut BTreeMap<String, u8>) {
    let head = ends(text).0;
    let head = readable(head, head);
    let head = folded(&head);
    let mut count = |word: &str| {
        let count = counts.entry(word.to_owned()).or_default();
        *count = count.saturating_add(1);
    };
    each_word(&head, |word| {
        let is_letter = |c: char| c.is_alphabetic() || is_combining_mark(c);
        let is_of_words = |c: char| is_letter(c) && !is_cjk(c) && !is_unspaced_alphabet(c);
        let fits = (3..=24).contains(&word.len()) && word.chars().all(is_of_words);
        if fits && !Stem::of(word).is_stop_word {
            count(word);
        }
    });
    each_cjk_run(&head, &mut count);
}

#[cfg(test)]
mod tests;

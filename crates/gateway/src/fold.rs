//! A request with less in it: what left stands in the store, one call away.

use crate::Api;
use crate::client_message::ClientMessage;
use crate::conversation::{Conversation, Thinking};
use crate::recorder_thread::SHORTEST;
use crate::replayed::replayed;
use crate::rewriting::{Rewriting, written};
use foldback::{Arrangement, Piece};
use foldback_core::{Message, SeqNo};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// What is recorded of a conversation, and what a request shows of it.
pub(crate) struct Fold<'f> {
    pub(crate) conversation: &'f Conversation,
    /// What was recorded of each message that is asked.
    pub(crate) recorded: &'f [Range<u64>],
    /// What each of them was said behind, where that was not what the client sent.
    pub(crate) behind: &'f [Option<u64>],
    /// Gives the messages as they were sent first, by their places.
    pub(crate) before: &'f mut dyn FnMut(usize) -> Option<Arc<str>>,
}

/// What is sent of a conversation.
pub(crate) struct Sent {
    pub(crate) body: String,
    /// The places of its messages in the client's; what the gateway has written has none.
    pub(crate) places: Vec<Option<usize>>,
    /// What the model is shown, as a number.
    pub(crate) shown: u64,
}

/// The places of messages that are shown, with the recorded ones of each, and what stands in their place.
type Shown<'f> = BTreeMap<usize, Vec<(SeqNo, Option<&'f Arc<Message>>)>>;

impl Fold<'_> {
    /// What is sent where a view shows so much; `None` where that is everything, or nothing that could be sent.
    pub(crate) fn part(&mut self, body: &str, arrangement: &Arrangement) -> Option<Sent> {
        let (conversation, asked) = (self.conversation, self.conversation.asked());
        let (api, head) = (conversation.api, conversation.head());
        let is_changed = |piece: &Piece| !matches!(piece, Piece::Recorded(_));
        if !arrangement.pieces.iter().any(is_changed) || self.recorded.len() != asked.len() {
            return None;
        }
        let shown = self.shown(arrangement);
        // What is asked now is there in any case, or something is wrong.
        let (last, _) = shown.last_key_value()?;
        let first = shown.range(head..).next().map(|(place, _)| *place);
        let first = first.filter(|_| head > 0 && *last + 1 == asked.len())?;
        let (mut messages, mut places) = (Vec::new(), Vec::new());
        let (mut trail, mut whole) = (Trail::default(), Trail::default());
        for (place, message) in asked.iter().enumerate() {
            if place == first {
                for piece in &arrangement.pieces {
                    if let Piece::Written(message) = piece {
                        let text = message.text();
                        trail.step(text.as_bytes());
                        messages.push(written(api, &text));
                        places.push(None);
                    }
                }
            }
            if place < head || place >= first {
                let behind = self.behind.get(place).copied().flatten().unwrap_or(whole.0);
                let rewriting = self.rewriting(place, place == first, behind != trail.0, &shown);
                if self.must_think(place) && rewriting.drops_thoughts_of(&message.json) {
                    return None;
                }
                trail.step(message.digest.as_bytes());
                rewriting.steps().iter().for_each(|step| trail.step(step.as_bytes()));
                let before = (self.before)(place);
                let json = before.map(|before| replayed(api, &before, &message.json));
                let json = json.map_or(Cow::Borrowed(message.json.as_str()), Cow::Owned);
                let json = rewriting.apply(api, &json);
                places.extend(json.as_ref().map(|_| Some(place)));
                messages.extend(json.map(|json| items(api, json)));
            }
            whole.step(message.digest.as_bytes());
        }
        let body = self.around(body, &messages)?;
        Some(Sent { body, places, shown: trail.0 })
    }

    /// What is sent where nothing is left out; `None` where that is the client's own bytes. A thought that was thought
    /// behind less leaves, but in a turn that has to begin with its thoughts.
    pub(crate) fn whole(&self, body: &str) -> Option<Sent> {
        let mut trail = Trail::default();
        let mut moved = HashSet::new();
        for (place, message) in self.conversation.asked().iter().enumerate() {
            let behind = self.behind.get(place).copied().flatten().unwrap_or(trail.0);
            if behind != trail.0 && !self.must_think(place) {
                let rewriting = self.rewriting(place, false, true, &Shown::new());
                moved.extend(rewriting.drops_thoughts_of(&message.json).then_some(place));
            }
            trail.step(message.digest.as_bytes());
        }
        if moved.is_empty() {
            return None;
        }
        let api = self.conversation.api;
        let (mut messages, mut places) = (Vec::new(), Vec::new());
        for (place, message) in self.conversation.asked().iter().enumerate() {
            let rewriting = self.rewriting(place, false, moved.contains(&place), &Shown::new());
            let json = rewriting.apply(api, &message.json);
            places.extend(json.as_ref().map(|_| Some(place)));
            messages.extend(json.map(|json| items(api, json)));
        }
        let body = self.around(body, &messages)?;
        Some(Sent { body, places, shown: trail.0 })
    }

    /// The client's body around other messages.
    fn around(&self, body: &str, messages: &[String]) -> Option<String> {
        let place = &self.conversation.terms.place;
        let (before, after) = (body.get(..place.start)?, body.get(place.end..)?);
        Some(format!("{before}[{}]{after}", messages.join(",")))
    }

    /// Whether a message belongs to a turn that goes on, and has to begin with its thoughts.
    fn must_think(&self, place: usize) -> bool {
        let is_question = |message: &ClientMessage| !message.is_models && !message.is_result;
        let asked = self.conversation.asked();
        self.conversation.terms.thinking == Thinking::Required
            && asked.last().is_some_and(|last| last.is_result)
            && !asked.get(place..).unwrap_or_default().iter().any(is_question)
    }

    /// The places of the messages that are shown, with what is shown of each.
    fn shown<'a>(&self, arrangement: &'a Arrangement) -> Shown<'a> {
        let mut shown = Shown::new();
        for piece in &arrangement.pieces {
            let (seq, instead) = match piece {
                Piece::Recorded(seq) => (*seq, None),
                Piece::Instead(seq, message) => (*seq, Some(message)),
                Piece::Written(_) => continue,
            };
            let place = self.recorded.partition_point(|range| range.end <= seq.0);
            if self.recorded.get(place).is_some_and(|range| range.contains(&seq.0)) {
                shown.entry(place).or_default().push((seq, instead));
            }
        }
        shown
    }

    fn rewriting(
        &self,
        place: usize,
        is_first: bool,
        is_moved: bool,
        shown: &Shown<'_>,
    ) -> Rewriting {
        let Some(message) = self.conversation.messages.get(place) else {
            return Rewriting::default();
        };
        let drops_thinking =
            is_moved && self.conversation.api == Api::Messages && message.is_models;
        let (Some(parts), Some(range)) = (shown.get(&place), self.recorded.get(place)) else {
            // It says nothing, so no view shows it. The client sends it all the same.
            return Rewriting { drops_thinking, ..Rewriting::default() };
        };
        let instead = parts.iter().filter_map(|(_, instead)| instead.cloned()).collect();
        let is_whole = parts.len() as u64 == range.end - range.start;
        let stays = (is_first && !is_whole && message.is_result)
            .then(|| stays(&message.messages().unwrap_or_default(), range, parts));
        Rewriting { instead, stays, drops_thinking }
    }
}

/// What stands in front of a message, as a number.
#[derive(Clone, Copy, Default)]
struct Trail(u64);

impl Trail {
    fn step(&mut self, what: &[u8]) {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0.to_le_bytes()).update(what);
        let mut first = [0; 8];
        hasher.finalize_xof().fill(&mut first);
        self.0 = u64::from_le_bytes(first);
    }
}

/// Of a client's message whose first part left: the calls whose results stay, and whether its words do.
fn stays(
    messages: &[Message],
    range: &Range<u64>,
    parts: &[(SeqNo, Option<&Arc<Message>>)],
) -> (HashSet<String>, bool) {
    let (mut results, mut has_words) = (HashSet::new(), false);
    for (seq, message) in range.clone().zip(messages) {
        if parts.iter().any(|(shown, _)| shown.0 == seq) {
            match message.tool_call_id() {
                Some(id) => drop(results.insert(id.as_str().to_owned())),
                None => has_words = true,
            }
        }
    }
    (results, has_words)
}

/// A message as it stands in a list: of several items, each.
fn items(api: Api, json: String) -> String {
    let inner = json.strip_prefix('[').and_then(|json| json.strip_suffix(']'));
    match inner.filter(|_| api == Api::Responses) {
        Some(inner) => inner.to_owned(),
        None => json,
    }
}

impl Conversation {
    /// Whether something may leave with this request. A turn that goes on begins with its thoughts, where the client
    /// wants the model to think: those must not be dropped, and cannot stay behind other words.
    pub(crate) fn may_fold(&self) -> bool {
        let goes_on = self.asked().last().is_some_and(|last| last.is_result);
        self.terms.load.is_some()
            && self.terms.place.len() >= SHORTEST
            && (self.terms.thinking == Thinking::Free || !goes_on)
    }
}

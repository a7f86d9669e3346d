//! A request with less in it: what left stands in the store, one call away.

use crate::Api;
use crate::conversation::{Conversation, Thinking};
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
    /// The messages as they were sent first, by their places.
    pub(crate) before: &'f dyn Fn(usize) -> Option<Arc<str>>,
}

/// What is sent of a conversation.
pub(crate) struct Sent {
    /// The body, where it is not the client's own.
    pub(crate) body: Option<String>,
    /// The places of its messages in the client's; what the gateway has written has none.
    pub(crate) places: Vec<Option<usize>>,
    /// What the model is shown.
    pub(crate) shown: u64,
}

/// The places of messages that are shown, with the recorded ones of each, and what stands in their place.
type Shown<'f> = BTreeMap<usize, Vec<(SeqNo, Option<&'f Arc<Message>>)>>;

impl Fold<'_> {
    /// What is sent where a view shows so much; `None` where the view shows nothing that could be sent.
    pub(crate) fn part(&self, body: &str, arrangement: &Arrangement) -> Option<Sent> {
        let asked = self.conversation.asked();
        let head = self.conversation.head();
        let shown = self.shown(arrangement);
        // What is asked now is there in any case, or something is wrong.
        let (last, _) = shown.last_key_value()?;
        let first = shown.range(head..).next().map(|(place, _)| *place);
        let first =
            first.filter(|_| *last + 1 == asked.len() && self.recorded.len() == asked.len())?;
        let told = arrangement.pieces.iter().filter_map(|piece| match piece {
            Piece::Written(message) => Some(message.text().into_owned()),
            _ => None,
        });
        Some(self.sent(body, first, told.collect(), &shown))
    }

    /// What is sent where nothing is left out.
    pub(crate) fn whole(&self, body: &str) -> Sent {
        self.sent(body, self.conversation.head(), Vec::new(), &Shown::new())
    }

    /// The head of the conversation, what is told about the rest, and the messages from `first` on. A thought stays
    /// where the model is shown what it had thought it behind.
    fn sent(&self, body: &str, first: usize, told: Vec<String>, shown: &Shown<'_>) -> Sent {
        let (api, asked) = (self.conversation.api, self.conversation.asked());
        let (mut messages, mut is_changed) = (Vec::with_capacity(asked.len()), !told.is_empty());
        let mut places = Vec::with_capacity(asked.len());
        let (mut trail, mut whole_trail) = (Trail::default(), Trail::default());
        for (place, message) in asked.iter().enumerate() {
            let is_head = place < self.conversation.head();
            if place == first {
                for text in &told {
                    trail.step(text.as_bytes());
                    messages.push(written(api, text));
                    places.push(None);
                }
            }
            if is_head || place >= first {
                let behind = self.behind.get(place).copied().flatten().unwrap_or(whole_trail.0);
                let rewriting = self.rewriting(place, place == first, behind != trail.0, shown);
                is_changed |= rewriting.changes(&message.json);
                // What is sent whole is the client's own, as long as it can be.
                let before = if shown.is_empty() { None } else { (self.before)(place) };
                let json = before.map(|before| replayed(api, &before, &message.json));
                let json = json.map_or(Cow::Borrowed(message.json.as_str()), Cow::Owned);
                let json = rewriting.apply(api, &json);
                match json.as_deref().filter(|_| rewriting.changes_words()) {
                    Some(json) => trail.step(json.as_bytes()),
                    None => trail.step(message.digest.as_bytes()),
                }
                places.extend(json.as_ref().map(|_| Some(place)));
                messages.extend(json.map(|json| items(api, json)));
            } else {
                is_changed = true;
            }
            whole_trail.step(message.digest.as_bytes());
        }
        let place = self.conversation.terms.place.clone();
        let around = body.get(..place.start).zip(body.get(place.end..)).filter(|_| is_changed);
        let body = around.map(|(before, after)| format!("{before}[{}]{after}", messages.join(",")));
        Sent { body, places, shown: trail.0 }
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
        self.terms.load.is_some() && (self.terms.thinking == Thinking::Free || !goes_on)
    }
}

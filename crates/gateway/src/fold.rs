//! A request with less in it: what left stands in the store, one call away.

use crate::Api;
use crate::conversation::{Conversation, Thinking};
use crate::rewriting::{Rewriting, written};
use foldback::{Arrangement, Piece};
use foldback_core::{Message, SeqNo};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// What is recorded of a conversation, and what a request shows of it.
pub(crate) struct Fold<'f> {
    pub(crate) conversation: &'f Conversation,
    /// What was recorded of each message that is asked.
    pub(crate) recorded: &'f [Range<u64>],
    pub(crate) arrangement: &'f Arrangement,
}

/// The places of messages that are shown, with the recorded ones of each, and what stands in their place.
type Shown<'f> = BTreeMap<usize, Vec<(SeqNo, Option<&'f Arc<Message>>)>>;

impl Fold<'_> {
    /// The body of the request that is sent; `None` where the client's own is.
    pub(crate) fn body(&self, body: &str) -> Option<String> {
        let Self { conversation, recorded, arrangement } = self;
        let (api, asked) = (conversation.api, conversation.asked());
        let is_changed = |piece: &Piece| !matches!(piece, Piece::Recorded(_));
        if recorded.len() != asked.len() || !arrangement.pieces.iter().any(is_changed) {
            return None;
        }
        let shown = self.shown();
        let head = conversation.head();
        let (last, _) = shown.last_key_value()?;
        // What is asked now is there in any case, or something is wrong.
        let first = shown.range(head..).next().map(|(place, _)| *place);
        let first = first.filter(|_| *last + 1 == asked.len())?;
        let standing = asked.get(..head)?.iter().map(|message| message.json.clone());
        let told = arrangement.pieces.iter().filter_map(|piece| match piece {
            Piece::Written(message) => Some(written(api, &message.text())),
            _ => None,
        });
        let rest = (first..asked.len()).filter_map(|place| {
            let message = asked.get(place)?;
            self.rewriting(place, place == first, &shown).apply(api, &message.json)
        });
        let messages: Vec<String> =
            standing.chain(told).chain(rest).map(|json| items(api, json)).collect();
        let place = conversation.terms.place.clone();
        let (before, after) = (body.get(..place.start)?, body.get(place.end..)?);
        Some(format!("{before}[{}]{after}", messages.join(",")))
    }

    /// The places of the messages that are shown, with what is shown of each.
    fn shown(&self) -> Shown<'_> {
        let mut shown = Shown::new();
        for piece in &self.arrangement.pieces {
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

    fn rewriting(&self, place: usize, is_first: bool, shown: &Shown<'_>) -> Rewriting {
        let (Some(parts), Some(range), Some(message)) =
            (shown.get(&place), self.recorded.get(place), self.conversation.messages.get(place))
        else {
            // It says nothing, so no view shows it. The client sends it all the same.
            return Rewriting::default();
        };
        let instead = parts.iter().filter_map(|(_, instead)| instead.cloned()).collect();
        let is_whole = parts.len() as u64 == range.end - range.start;
        let stays = (is_first && !is_whole && message.is_result)
            .then(|| stays(&message.messages().unwrap_or_default(), range, parts));
        let drops_thinking = self.conversation.api == Api::Messages
            && message.is_models
            && range.end <= self.arrangement.moved.0
            && message.json.contains("thinking\"");
        Rewriting { instead, stays, drops_thinking }
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

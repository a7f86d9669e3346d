//! A request with less in it: what was left out is in the store, one call away.

use crate::Api;
use crate::branches::Standing;
use crate::client_message::ClientMessage;
use crate::contents::Laid;
use crate::conversation::{Conversation, Thinking};
use crate::recorder_thread::SHORTEST;
use crate::replayed::replayed;
use crate::rewriting::{Rewriting, written};
use crate::trail::Trail;
use foldback::{Arrangement, Piece};
use foldback_core::{Message, SeqNo};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

/// What is recorded of a conversation, and what a request shows of it.
pub(crate) struct Fold<'f> {
    pub(crate) conversation: &'f Conversation,
    /// How each message of the request is stored.
    pub(crate) standing: &'f [Standing],
    /// Returns a message as it was first sent, by its number.
    pub(crate) before: &'f mut dyn FnMut(u32) -> Option<Arc<str>>,
}

/// A request as it is sent in place of the client's.
#[derive(Clone)]
pub(crate) struct Rewritten {
    pub(crate) body: String,
    /// For each message, its place among the client's; `None` for what the gateway has written.
    pub(crate) places: Vec<Option<usize>>,
    /// What the model is shown, as a number.
    pub(crate) shown: u64,
    /// The same as `places`, with what is sent of each message.
    pub(crate) laid: Arc<[Laid]>,
}

/// The places of messages that are shown, with the recorded ones of each, and their replacements.
type Shown<'f> = BTreeMap<usize, Vec<(SeqNo, Option<&'f Arc<Message>>)>>;

impl Fold<'_> {
    /// Returns what is sent for the part that a view shows; `None` if that is everything, or cannot be sent.
    pub(crate) fn part(&mut self, arrangement: &Arrangement) -> Option<Rewritten> {
        let (conversation, asked) = (self.conversation, self.conversation.asked());
        let (api, opening_len) = (conversation.api, conversation.opening_len());
        let is_changed = |piece: &Piece| !matches!(piece, Piece::Recorded(_));
        if !arrangement.pieces.iter().any(is_changed) || self.standing.len() != asked.len() {
            return None;
        }
        let shown = self.shown(arrangement);
        // What is asked now must be there, or something is wrong.
        let (last, _) = shown.last_key_value()?;
        let first = shown.range(opening_len..).next().map(|(place, _)| *place);
        let first = first.filter(|_| opening_len > 0 && *last + 1 == asked.len())?;
        let question = question_of(asked.get(..=first)?, opening_len);
        let (mut sent, mut trail) = (Sending::new(conversation)?, Trail::default());
        for (place, message) in asked.iter().enumerate() {
            if place == question.start {
                for piece in &arrangement.pieces {
                    if let Piece::Written(message) = piece {
                        let text = message.text();
                        trail = trail.then(text.as_bytes());
                        sent.push(None, &written(api, &text), Laid::Added(text.into_owned()));
                    }
                }
            }
            if place >= opening_len && place < first && !question.contains(&place) {
                // The store would not return its secrets. Revealing them to the model alone, from memory, would allow a
                // fold here.
                if message.is_redacted {
                    return None;
                }
                continue;
            }
            let standing = self.standing.get(place)?;
            if message.is_redacted && !is_shown_whole(standing, place, &shown) {
                return None;
            }
            let rewriting = self.rewriting(place, place == first, standing.behind != trail, &shown);
            if self.conversation.must_think(place) && rewriting.drops_thoughts_of(&message.json) {
                return None;
            }
            trail = trail.then(message.digest.as_bytes());
            trail = rewriting.steps().iter().fold(trail, |trail, step| trail.then(step.as_bytes()));
            let before = if message.is_redacted { None } else { (self.before)(standing.n) };
            let json = before.as_ref().map_or(Cow::Borrowed(&*message.json), |before| {
                replayed(api, before, &message.json)
            });
            if let Some(changed) = rewriting.apply(api, &json) {
                let is_same = *changed == *json;
                let laid =
                    if is_same { Laid::Kept(place) } else { self.laid(place, &rewriting, &shown) };
                sent.push(Some(place), &changed, laid);
            }
        }
        Some(sent.finish(trail))
    }

    /// Returns what is sent of a message that changes.
    fn laid(&self, place: usize, rewriting: &Rewriting, shown: &Shown<'_>) -> Laid {
        let (Some(parts), Some(standing)) = (shown.get(&place), self.standing.get(place)) else {
            return Laid::WithoutThoughts(place);
        };
        if rewriting.instead.is_empty() && rewriting.stays.is_none() {
            return Laid::WithoutThoughts(place);
        }
        let of = |seq: u64| parts.iter().find(|(shown, _)| shown.0 == seq);
        let seqs = standing.recorded.clone();
        let sent = seqs.filter(|seq| rewriting.stays.is_none() || of(*seq).is_some());
        let instead =
            |seq| of(seq).and_then(|(_, instead)| Some(instead.as_ref()?.json().to_owned()));
        let message = self.conversation.asked().get(place);
        let drops = message.is_some_and(|message| rewriting.drops_thoughts_of(&message.json));
        Laid::Parts(place, sent.map(|seq| (seq, instead(seq))).collect(), drops)
    }

    /// Returns what is sent if nothing is left out; `None` if that is the client's own body. Thinking that followed
    /// less than is sent now is dropped, except in a turn that must begin with its thinking.
    pub(crate) fn whole(&self) -> Option<Rewritten> {
        let asked = || self.conversation.asked().iter().enumerate();
        let mut moved = HashSet::new();
        for ((place, message), standing) in asked().zip(self.standing) {
            if standing.behind != standing.trail && !self.conversation.must_think(place) {
                let rewriting = self.conversation.thoughts(message, true);
                moved.extend(rewriting.drops_thoughts_of(&message.json).then_some(place));
            }
        }
        if moved.is_empty() {
            return None;
        }
        let (last, behind) = (self.conversation.asked().last()?, self.standing.last()?);
        let sent = self.conversation.without_thoughts_at(|place| moved.contains(&place))?;
        Some(sent.finish(behind.trail.then(last.digest.as_bytes())))
    }

    /// Returns the places of the messages that are shown, with what is shown of each.
    fn shown<'a>(&self, arrangement: &'a Arrangement) -> Shown<'a> {
        let mut shown = Shown::new();
        for piece in &arrangement.pieces {
            let (seq, instead) = match piece {
                Piece::Recorded(seq) => (*seq, None),
                Piece::Instead(seq, message) => (*seq, Some(message)),
                Piece::Written(_) => continue,
            };
            let place = self.standing.partition_point(|one| one.recorded.end <= seq.0);
            if self.standing.get(place).is_some_and(|one| one.recorded.contains(&seq.0)) {
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
        let thoughts = self.conversation.thoughts(message, is_moved);
        let (Some(parts), Some(Standing { recorded: range, .. })) =
            (shown.get(&place), self.standing.get(place))
        else {
            // It has no content, so no view shows it. The client still sends it.
            return thoughts;
        };
        let instead = parts.iter().filter_map(|(_, instead)| instead.cloned()).collect();
        let is_whole = parts.len() as u64 == range.end - range.start;
        let stays = (is_first && !is_whole && message.is_result)
            .then(|| stays(&message.messages().unwrap_or_default(), range, parts));
        Rewriting { instead, stays, ..thoughts }
    }
}

/// Returns whether all of a message is shown as the client sent it.
fn is_shown_whole(standing: &Standing, place: usize, shown: &Shown<'_>) -> bool {
    let recorded = standing.recorded.end - standing.recorded.start;
    shown.get(&place).is_none_or(|parts| {
        parts.len() as u64 == recorded && parts.iter().all(|(_, instead)| instead.is_none())
    })
}

/// A body under construction: the client's, around other messages.
struct Sending<'b> {
    body: String,
    /// What follows the messages.
    after: &'b str,
    places: Vec<Option<usize>>,
    laid: Vec<Laid>,
    api: Api,
}

impl<'b> Sending<'b> {
    fn new(conversation: &'b Conversation) -> Option<Self> {
        let (body, place) = (conversation.body.as_str(), &conversation.terms.place);
        let (before, after) = (body.get(..place.start)?, body.get(place.end..)?);
        let mut sending = String::with_capacity(body.len());
        sending.push_str(before);
        sending.push('[');
        let (places, laid) = (Vec::new(), Vec::new());
        Some(Self { body: sending, after, places, laid, api: conversation.api })
    }

    /// Adds a message that the client has sent at this place; of several items, each.
    fn push(&mut self, place: Option<usize>, json: &str, laid: Laid) {
        if !self.places.is_empty() {
            self.body.push(',');
        }
        let inner = json.strip_prefix('[').and_then(|json| json.strip_suffix(']'));
        self.body.push_str(inner.filter(|_| self.api == Api::Responses).unwrap_or(json));
        self.places.push(place);
        self.laid.push(laid);
    }

    /// Returns the body, which shows the model what this number identifies.
    fn finish(mut self, shown: Trail) -> Rewritten {
        self.body.push(']');
        self.body.push_str(self.after);
        Rewritten { body: self.body, places: self.places, shown: shown.0, laid: self.laid.into() }
    }
}

/// If a question, with its adjacent messages, is longer than this many bytes, it leaves like any other message.
pub(crate) const LONGEST_QUESTION: usize = 8 << 10;

/// Returns the question that the turn is about, with its adjacent messages: a turn whose beginning left is shown
/// after it. The last of the messages is the first that is shown. If no question is needed, this is an empty range
/// there.
fn question_of(messages: &[ClientMessage], opening_len: usize) -> Range<usize> {
    let first = messages.len().saturating_sub(1);
    let is_said = |message: &ClientMessage| message.is_models || message.is_result;
    let asked = messages.iter().rposition(|message| message.is_asked && !message.is_result);
    let Some(asked) = asked.filter(|asked| (opening_len..first).contains(asked)) else {
        return first..first;
    };
    let before = messages.iter().take(asked).rposition(is_said).map_or(0, |said| said + 1);
    let behind = messages.iter().skip(asked).position(is_said).map_or(first, |said| asked + said);
    let question = messages.get(before..behind).unwrap_or_default();
    match question.iter().map(|message| message.json.len()).sum::<usize>() <= LONGEST_QUESTION {
        true => before..behind,
        false => first..first,
    }
}

/// Returns, for a client's message whose first part left, the calls whose results stay, and whether its text does.
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

impl Conversation {
    /// Returns whether something may be left out of this request. A turn that continues begins with its thinking, if
    /// the client wants the model to think: that must not be dropped, and cannot follow other text than it did.
    pub(crate) fn may_fold(&self) -> bool {
        let goes_on = self.asked().last().is_some_and(|last| last.is_result);
        self.terms.load.is_some()
            && self.terms.place.len() >= SHORTEST
            && (self.terms.thinking == Thinking::Free || !goes_on)
    }

    /// Returns whether a message belongs to a turn that continues, and must begin with its thinking.
    fn must_think(&self, place: usize) -> bool {
        let is_question = |message: &ClientMessage| !message.is_models && !message.is_result;
        let asked = self.asked();
        self.terms.thinking == Thinking::Required
            && asked.last().is_some_and(|last| last.is_result)
            && !asked.get(place..).unwrap_or_default().iter().any(is_question)
    }

    /// Returns all of it but the model's thinking; `None` if there is none that may be left out, or if nothing was ever left
    /// out of it.
    pub(crate) fn without_thoughts(&self) -> Option<Rewritten> {
        self.terms.load.as_ref()?;
        let leaves = |place| !self.must_think(place);
        let mut asked = self.asked().iter().enumerate();
        if !asked.any(|(place, message)| {
            leaves(place) && self.thoughts(message, true).drops_thoughts_of(&message.json)
        }) {
            return None;
        }
        let digests = self.asked().iter().map(|message| message.digest);
        let trail = digests.fold(Trail::default(), |trail, digest| trail.then(digest.as_bytes()));
        Some(self.without_thoughts_at(leaves)?.finish(trail))
    }

    /// Returns all of it but the thinking of the messages at these places.
    fn without_thoughts_at(&self, leave: impl Fn(usize) -> bool) -> Option<Sending<'_>> {
        let mut sent = Sending::new(self)?;
        for (place, message) in self.asked().iter().enumerate() {
            if let Some(json) = self.thoughts(message, leave(place)).apply(self.api, &message.json)
            {
                let is_same = *json == *message.json;
                let laid = if is_same { Laid::Kept(place) } else { Laid::WithoutThoughts(place) };
                sent.push(Some(place), &json, laid);
            }
        }
        Some(sent)
    }

    /// Returns how a message changes if its thinking is left out.
    fn thoughts(&self, message: &ClientMessage, leave: bool) -> Rewriting {
        let drops_thinking = leave && self.api == Api::Messages && message.is_models;
        Rewriting { drops_thinking, ..Rewriting::default() }
    }
}

//! One conversation of a client, and its record in the store.

use crate::Branches;
use crate::branches::{Heard, Known, Mark, Standing};
use crate::caching;
use crate::conversation::Conversation;
use crate::ledger::Entry;
use crate::spent::Held;
use foldback::{
    Arrangement, Billed, Error, Memory, NewSent, NoteName, ParkedName, SentAgain, Session,
};
use foldback_core::{CacheTerms, Message, SeqNo, Timestamp, TodoId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How many messages of a client are read at once.
const PER_READ: usize = 512;

/// How many messages of a client are recorded in one transaction.
const PER_TRANSACTION: usize = 128;

/// How many bytes of a conversation's messages, as they were first sent, are kept in memory: more than a request
/// shows.
const MOST_SENT: usize = 2 << 20;

/// One conversation.
pub(crate) struct Member {
    pub(crate) session: Session,
    pub(crate) branches: Branches,
    /// When it was last asked, and of which model.
    asked: Option<(Timestamp, String)>,
    /// What the provider would hold if it were sent whole.
    pub(crate) held: Held,
    /// Messages as they were first sent, by number: those that were needed recently.
    sent: HashMap<u32, Arc<str>>,
    /// The total bytes of these.
    sent_bytes: usize,
    /// Texts of the gateway's own that the store has, by name: the recent ones.
    noted: HashSet<NoteName>,
    /// How many of its first messages are pinned.
    pinned: usize,
    /// Whether its requests stay unchanged.
    pub(crate) is_left_alone: bool,
    /// When it was used last, and which use of its family that was; until it is used here, when something was recorded
    /// in it last.
    pub(crate) used: (Timestamp, u64),
    /// Its number in its family: they are counted as they begin.
    pub(crate) number: usize,
}

/// How many names of notes are remembered of a conversation.
const MOST_NAMES: usize = 4_096;

impl Member {
    /// Keeps texts that were sent as notes, and returns the names of those that the store has now or had before. After
    /// the first that fails, no other is tried: the store may be away.
    pub(crate) fn noting<'a>(
        &'a mut self,
        memory: &'a Memory,
        secret: &'a [u8; 32],
    ) -> impl FnMut(&str) -> NoteName + 'a {
        if self.noted.len() > MOST_NAMES {
            self.noted.clear();
        }
        let mut has_failed = false;
        move |text| {
            let digest = blake3::keyed_hash(secret, text.as_bytes());
            let [a, b, c, d, e, f, g, h, ..] = *digest.as_bytes();
            let name = [a, b, c, d, e, f, g, h];
            if !has_failed && !self.noted.contains(&name) {
                match memory.note(self.session.todo(), &name, text) {
                    // Also one that is not kept, because it is too long or holds a secret.
                    Ok(_) => drop(self.noted.insert(name)),
                    Err(_) => has_failed = true,
                }
            }
            name
        }
    }

    /// Reads from the store what it holds of a todo, which is created if it does not exist: the one with this number in
    /// its family.
    pub(crate) fn open(memory: &Memory, todo: &TodoId, number: usize) -> Result<Self, Error> {
        let (session, mut branches) = (memory.session(todo)?, Branches::default());
        let last = memory.conversations().last_recorded(todo)?;
        let held = last.map(Held::since).unwrap_or_default();
        let asked = last.map(|last| (last, String::new()));
        loop {
            let more = memory.sent(todo, branches.next(), PER_READ)?;
            branches.extend(&more);
            if more.len() < PER_READ {
                let is_left_alone = memory.parked(todo, &[left_alone()])? != [None];
                return Ok(Self {
                    session,
                    branches,
                    asked,
                    held,
                    sent: HashMap::new(),
                    sent_bytes: 0,
                    noted: HashSet::new(),
                    pinned: 0,
                    is_left_alone,
                    used: (last.unwrap_or_default(), 0),
                    number,
                });
            }
        }
    }

    /// Sends it whole from now on, even after a restart of the gateway.
    pub(crate) fn leave_alone(&mut self, memory: &Memory) -> Result<(), Error> {
        self.is_left_alone = true;
        memory.park(self.session.todo(), &left_alone(), "")
    }

    /// Returns whether nothing was recorded in its todo.
    pub(crate) fn is_empty(&self) -> bool {
        self.session.is_empty()
    }

    /// Records a conversation from the first message that is not `known` on, and known messages that the client sends
    /// `again`. Returns its last message.
    pub(crate) fn record(
        &mut self,
        conversation: &Conversation,
        known: &Known,
        again: &[SentAgain],
    ) -> Result<Option<u32>, Error> {
        // If others have written meanwhile, following another branch shows it.
        let mut seq = self.session.len();
        let is_first = self.branches.is_empty();
        // What comes now may follow something other than the latest message.
        self.go_to(known.node, conversation)?;
        // If a conversation began elsewhere, nothing was left out of what its provider was sent.
        self.session.hold(is_first || !conversation.may_fold());
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
                    agent: conversation.agent.filter(|_| place == known.messages),
                    answer: is_answer.then_some(Heard::FromModel),
                    behind: conversation.shown.filter(|_| is_answer),
                };
                let instructions = conversation.instructions.clone().filter(|_| parent.is_none());
                // It was read before, or it would not be here.
                let said = message.messages();
                let said = said.unwrap_or_else(|_| vec![Message::user(&message.json)]);
                let messages = instructions.into_iter().chain(said);
                let (tag, json, messages) =
                    (mark.tag(), message.json.to_string(), messages.collect());
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
        Ok(parent)
    }

    /// Returns known messages that the client sends for the first time: answers of the model.
    pub(crate) fn sent_again(
        &mut self,
        conversation: &Conversation,
        known: &Known,
    ) -> Vec<SentAgain> {
        let now = self.branches.sent_now(known.node).into_iter();
        now.filter_map(|(place, mut again)| {
            again.sent.json = conversation.messages.get(place)?.json.to_string();
            Some(again)
        })
        .collect()
    }

    /// Shows from now on the branch that ends with this message, as this request's model and agent have it.
    pub(crate) fn go_to(
        &mut self,
        tip: Option<u32>,
        conversation: &Conversation,
    ) -> Result<(), Error> {
        self.set_up(conversation);
        let branch = self.branches.recorded(tip);
        if !self.session.follows(&branch) {
            self.session.follow(&branch, &[])?;
            self.pinned = 0;
            self.set_up(conversation);
        }
        Ok(())
    }

    fn set_up(&mut self, conversation: &Conversation) {
        let terms = &conversation.terms;
        if let Some(load) = &terms.load {
            self.session.set_load_name(load);
        }
        let cache = self.cache(conversation);
        self.session.set_cache_aware(caching::policy(cache, !terms.is_unseen));
        self.session.hold(!conversation.may_fold());
    }

    /// Returns the terms on which its provider caches it.
    fn cache(&self, conversation: &Conversation) -> CacheTerms {
        conversation.cache.when(!self.held.is_uncached())
    }

    /// Records that its provider was asked then, and has what was sent in its cache.
    pub(crate) fn was_asked(&mut self, at: Timestamp, conversation: &Conversation) {
        self.asked = Some((at, conversation.terms.model.clone()));
    }

    /// Records what its answer was billed, which was recorded last. The parts of the body around the messages precede
    /// them for the provider.
    pub(crate) fn was_billed(&mut self, entry: &Entry, conversation: &Conversation) {
        let Entry { sent, whole, recalls, .. } = entry;
        if entry.is_estimate || conversation.messages.len() == conversation.asked {
            return;
        }
        let tokens = sent.tokens.total();
        let around = whole.bytes.saturating_sub(conversation.terms.place.len() as u64);
        let front = (tokens as f64 * around as f64 / sent.bytes.max(1) as f64) as u64;
        self.session.bill(&Billed {
            tokens,
            front: front.min(tokens),
            cost: sent.cost + recalls.cost,
            whole_tokens: whole.tokens.total(),
            whole_cost: whole.cost,
        });
    }

    /// Returns what the next request would show if it were this one, of which this much is known, and how its messages
    /// would be stored. Nothing is recorded, and nothing changes.
    pub(crate) fn foreseen(
        &self,
        conversation: &Conversation,
        known: &Known,
        now: Timestamp,
    ) -> Result<(Option<Arrangement>, Vec<Standing>), Error> {
        let mut standing = self.branches.standing(known.node);
        let mut sketch = self.session.sketch(&self.branches.recorded(known.node))?;
        let has_tools = !conversation.terms.is_unseen;
        sketch.set_cache_aware(caching::policy(self.cache(conversation), has_tools));
        sketch.hold(!conversation.may_fold());
        for message in conversation.asked().iter().skip(known.messages) {
            let before =
                standing.last().zip(conversation.messages.get(standing.len().wrapping_sub(1)));
            let behind = before.map(|(one, said)| one.trail.then(said.digest.as_bytes()));
            let (n, trail) = (self.branches.next(), behind.unwrap_or_default());
            let recorded = sketch.take(message.messages().unwrap_or_default())?;
            standing.push(Standing { n, recorded, trail, behind: trail });
        }
        if !self.is_warm(conversation, now) {
            sketch.cool();
        }
        Ok((sketch.arrangement(), standing))
    }

    /// Returns whether the provider still has what was sent in its cache. A conversation that began elsewhere may be
    /// cached: leaving something out would then gain nothing.
    fn is_warm(&self, conversation: &Conversation, now: Timestamp) -> bool {
        let (model, life) = (&conversation.terms.model, conversation.cache.life);
        self.asked.as_ref().is_none_or(|(at, before)| {
            now.since(*at) < life && (before.is_empty() || before == model)
        })
    }

    /// Returns what the next request shows.
    pub(crate) fn arrangement(
        &mut self,
        conversation: &Conversation,
        standing: &[Standing],
        now: Timestamp,
    ) -> Result<Option<Arrangement>, Error> {
        let opening = standing.get(..conversation.opening_len()).unwrap_or_default();
        for seq in opening.iter().skip(self.pinned).flat_map(|one| one.recorded.clone()) {
            self.session.pin(SeqNo(seq))?;
        }
        self.pinned = opening.len();
        if !self.is_warm(conversation, now) {
            self.session.cool();
        }
        self.was_asked(now, conversation);
        Ok(self.session.arrangement())
    }

    /// Returns a message as it was first sent.
    pub(crate) fn first_sent(&mut self, memory: &Memory, n: u32) -> Option<Arc<str>> {
        if let Some(known) = self.sent.get(&n) {
            return Some(Arc::clone(known));
        }
        let read = memory.sent(self.session.todo(), n, 1).ok()?;
        let text: Arc<str> = read.into_iter().next()?.json.into();
        if text.len() <= MOST_SENT {
            if self.sent_bytes + text.len() > MOST_SENT {
                self.sent.clear();
                self.sent_bytes = 0;
            }
            self.sent_bytes += text.len();
            self.sent.insert(n, Arc::clone(&text));
        }
        Some(text)
    }
}

/// Returns the name of what is parked for a conversation whose requests stay unchanged.
fn left_alone() -> ParkedName {
    *blake3::hash(b"foldback: requests of this conversation stay as they are").as_bytes()
}

//! One conversation of a client, and where it stands in the store.

use crate::Branches;
use crate::branches::{Heard, Known, Mark, Standing};
use crate::caching;
use crate::conversation::Conversation;
use crate::ledger::Entry;
use crate::spent::Held;
use foldback::{Arrangement, Billed, Error, Memory, NewSent, ParkedName, SentAgain, Session};
use foldback_core::{Message, SeqNo, Timestamp, TodoId};
use std::collections::HashMap;
use std::sync::Arc;

/// How many messages of a client are read at once.
const PER_READ: usize = 512;

/// Messages of a client that are recorded in one transaction.
const PER_TRANSACTION: usize = 128;

/// Of the messages of one conversation as they were sent first, so many bytes are at hand: more than a request shows.
const MOST_SENT: usize = 2 << 20;

/// One conversation.
pub(crate) struct Member {
    pub(crate) session: Session,
    pub(crate) branches: Branches,
    /// When it was asked last, and of which model.
    asked: Option<(Timestamp, String)>,
    /// What the provider would hold of it whole.
    pub(crate) held: Held,
    /// Messages as they were sent first, by their numbers: those that were needed lately.
    sent: HashMap<u32, Arc<str>>,
    /// How many bytes these have.
    sent_bytes: usize,
    /// So many of its first messages are pinned.
    pinned: usize,
    /// Whether its requests stay as they are.
    pub(crate) is_left_alone: bool,
}

impl Member {
    /// Reads from the store what it holds of a todo, which is made where there is none.
    pub(crate) fn open(memory: &Memory, todo: &TodoId) -> Result<Self, Error> {
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
                    pinned: 0,
                    is_left_alone,
                });
            }
        }
    }

    /// Sends it whole from now on, also where the gateway is started again.
    pub(crate) fn leave_alone(&mut self, memory: &Memory) -> Result<(), Error> {
        self.is_left_alone = true;
        memory.park(self.session.todo(), &left_alone(), "")
    }

    /// Whether nothing was recorded in its todo.
    pub(crate) fn is_empty(&self) -> bool {
        self.session.is_empty()
    }

    /// Records what of a conversation is not known, from the message `seq` on, and what is sent anew. Gives its last
    /// message.
    pub(crate) fn record(
        &mut self,
        conversation: &Conversation,
        known: &Known,
        again: &[SentAgain],
    ) -> Result<Option<u32>, Error> {
        // Where others have written meanwhile, going elsewhere shows it.
        let mut seq = self.session.len();
        let is_first = self.branches.is_empty();
        // What comes now may stand on something else than what came last.
        self.go_to(known.node, conversation)?;
        // Of a conversation that began elsewhere, nothing has left what its provider was sent.
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

    /// What of a conversation the client sends for the first time although it is known: answers of the model.
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

    /// Shows the branch that ends with this message from now on, as this request's model and agent have it.
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
        self.session.set_cache_aware(caching::policy(conversation.cache, !terms.is_unseen));
        self.session.hold(!conversation.may_fold());
    }

    /// Its provider was asked then, and has in its cache what was sent.
    pub(crate) fn was_asked(&mut self, at: Timestamp, conversation: &Conversation) {
        self.asked = Some((at, conversation.terms.model.clone()));
    }

    /// What its answer was billed, which was recorded last. What stands around the messages in the body stands in front
    /// of them for the provider.
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

    /// What the next request would show if it were this one, of which so much is known, and how its messages would stand in
    /// the store. Nothing is recorded, and nothing changes.
    pub(crate) fn foreseen(
        &self,
        conversation: &Conversation,
        known: &Known,
        now: Timestamp,
    ) -> Result<(Option<Arrangement>, Vec<Standing>), Error> {
        let mut standing = self.branches.standing(known.node);
        let mut sketch = self.session.sketch(&self.branches.recorded(known.node))?;
        let has_tools = !conversation.terms.is_unseen;
        sketch.set_cache_aware(caching::policy(conversation.cache, has_tools));
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

    /// Whether the provider still has in its cache what was sent. What began elsewhere may be cached: leaving something
    /// out would be no gain then.
    fn is_warm(&self, conversation: &Conversation, now: Timestamp) -> bool {
        let (model, life) = (&conversation.terms.model, conversation.cache.life);
        self.asked.as_ref().is_none_or(|(at, before)| {
            let life = i64::try_from(life.as_millis()).unwrap_or(i64::MAX);
            now.0.saturating_sub(at.0) < life && (before.is_empty() || before == model)
        })
    }

    /// What the next request shows.
    pub(crate) fn arrangement(
        &mut self,
        conversation: &Conversation,
        standing: &[Standing],
        now: Timestamp,
    ) -> Result<Option<Arrangement>, Error> {
        let head = standing.get(..conversation.head()).unwrap_or_default();
        for seq in head.iter().skip(self.pinned).flat_map(|one| one.recorded.clone()) {
            self.session.pin(SeqNo(seq))?;
        }
        self.pinned = head.len();
        if !self.is_warm(conversation, now) {
            self.session.cool();
        }
        self.was_asked(now, conversation);
        Ok(self.session.arrangement())
    }

    /// A message as it was sent first.
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

/// What is parked beside a conversation whose requests stay as they are.
fn left_alone() -> ParkedName {
    *blake3::hash(b"foldback: requests of this conversation stay as they are").as_bytes()
}

//! An exchange on its way into the store.

use crate::SessionTodos;
use crate::branches::{Heard, Known, Mark};
use crate::caching;
use crate::client_message::Digests;
use crate::conversation::Conversation;
use crate::exchange::{Asked, Exchange};
use crate::family::{Family, Member};
use crate::fold::Fold;
use foldback::{Arrangement, Error, ErrorKind, Memory, NewSent, Origin, SentAgain};
use foldback_core::{Message, SeqNo, Timestamp};
use foldback_providers::CacheTerms;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// A conversation of fewer bytes is sent as it is.
pub(crate) const SHORTEST: usize = 24 << 10;

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
    digests: Digests,
    session: Arc<SessionTodos>,
    /// The terms of every provider; `None` for those of its lists.
    terms: Option<CacheTerms>,
}

/// Why an exchange was not recorded: a sentence without its full stop.
pub(crate) enum Unkept {
    /// It is of no known shape.
    Unreadable(String),
    /// The store does not take it.
    Store(String),
}

impl Keeper {
    pub(crate) fn new(
        memory: Memory,
        secret: [u8; 32],
        folder: Option<String>,
        session: Arc<SessionTodos>,
    ) -> Self {
        let (families, digests) = (HashMap::new(), Digests::default());
        Self { memory, secret, folder, families, digests, session, terms: None }
    }

    /// The same, where every provider caches on these terms.
    pub(crate) fn with_terms(self, terms: CacheTerms) -> Self {
        Self { terms: Some(terms), ..self }
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
        let answer = exchange.answer();
        if let Some((_, conversation)) = self.read(&exchange.asked, answer.as_deref())? {
            self.tried(&conversation, Self::record)?;
        }
        Ok(())
    }

    /// Records what of a long conversation is new before it is sent, and gives the body that is sent in place of the
    /// client's; `None` where that is the client's own.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub(crate) fn fold(&mut self, asked: &Asked) -> Result<Option<String>, Unkept> {
        let Some((body, conversation)) = self.read(asked, None)? else { return Ok(None) };
        if is_short(&conversation) {
            return Ok(None);
        }
        self.tried(&conversation, |keeper, name, conversation| {
            keeper.folded(name, conversation, &body)
        })
    }

    /// Leaves the requests of a conversation as they are from now on: its provider refuses what was sent in their
    /// place.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub(crate) fn leave_alone(&mut self, asked: &Asked) -> Result<(), Unkept> {
        let Some((_, conversation)) = self.read(asked, None)? else { return Ok(()) };
        self.tried(&conversation, |keeper, name, conversation| {
            if let Some((member, _)) = keeper.recorded(name, conversation)? {
                member.is_left_alone = true;
            }
            Ok(())
        })
    }

    /// Reads a request; `None` where it is no part of an agent's work.
    fn read(
        &mut self,
        asked: &Asked,
        answer: Option<&str>,
    ) -> Result<Option<(String, Conversation)>, Unkept> {
        let packed =
            || Unkept::Unreadable("its body is packed in an unknown way, or no text".to_owned());
        let body = asked.body().ok_or_else(packed)?;
        let read = Conversation::read(asked, &body, answer, &self.secret, &mut self.digests);
        let read = read.map_err(Unkept::Unreadable)?;
        Ok(read.filter(|read| read.asked > 0).map(|read| (body, read)))
    }

    /// Does what has to do with a conversation's todo, again where others have written to that meanwhile.
    fn tried<T>(
        &mut self,
        conversation: &Conversation,
        step: impl Fn(&mut Self, &str, &Conversation) -> Result<T, Error>,
    ) -> Result<T, Unkept> {
        let name = self.name_of(conversation);
        for _ in 0..TRIES {
            let error = match step(self, &name, conversation) {
                Ok(done) => {
                    self.make_room(&name);
                    return Ok(done);
                }
                Err(error) => error,
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

    fn record(&mut self, name: &str, conversation: &Conversation) -> Result<(), Error> {
        let now = self.memory.now();
        if let Some((member, _)) = self.recorded(name, conversation)?
            && is_short(conversation)
        {
            // Nobody asked for its fold, and its provider has it in the cache all the same.
            member.asked = Some((now, conversation.terms.model.clone()));
        }
        Ok(())
    }

    /// Records what of a conversation is new. Gives the one that it belongs to, and its last message there.
    fn recorded(
        &mut self,
        name: &str,
        conversation: &Conversation,
    ) -> Result<Option<(&mut Member, Option<u32>)>, Error> {
        if !self.families.contains_key(name) {
            let known_by = conversation.sender.known_by();
            let origin = Origin {
                source: Some(conversation.sender.client.clone()),
                folder: self.folder.clone(),
            };
            let family = Family::open(&self.memory, name.to_owned(), known_by, origin)?;
            self.families.insert(name.to_owned(), family);
        }
        let terms = self.terms_of(conversation);
        let Some(family) = self.families.get_mut(name) else { return Ok(None) };
        let digests: Vec<_> = conversation.messages.iter().map(|message| message.digest).collect();
        let asked = digests.get(..conversation.asked).unwrap_or_default();
        let (n, known) = family.place(&self.memory, asked, conversation.agent.as_ref())?;
        let Some(member) = family.members.get_mut(n) else { return Ok(None) };
        let again = member.sent_again(conversation, &known);
        // The answer may be known as well.
        let all = member.branches.follow(&digests);
        let known = if all.messages > known.messages { all } else { known };
        if known.messages == digests.len() && again.is_empty() {
            return Ok(Some((member, known.node)));
        }
        if let Some(load) = &conversation.terms.load {
            member.session.set_load_name(load);
        }
        let answer = conversation.messages.iter().skip(conversation.asked);
        let answer: Vec<_> =
            answer.flat_map(|answer| answer.messages().unwrap_or_default()).collect();
        self.session.note(member.session.todo(), &answer);
        // Where others have written meanwhile, going elsewhere shows it.
        let seq = member.session.len();
        // What comes now may stand on something else than what came last.
        member.go_to(known.node)?;
        // Recording an answer charges the view for what was asked, which has to be what was sent.
        member.set(conversation, terms);
        let tip = member.record(seq, conversation, &known, &again)?;
        Ok(Some((member, tip)))
    }

    /// The body that is sent in place of a client's; `None` where that is the client's own.
    fn folded(
        &mut self,
        name: &str,
        conversation: &Conversation,
        body: &str,
    ) -> Result<Option<String>, Error> {
        let now = self.memory.now();
        let terms = self.terms_of(conversation);
        let Some((member, tip)) = self.recorded(name, conversation)? else { return Ok(None) };
        if member.is_left_alone {
            return Ok(None);
        }
        member.go_to(tip)?;
        let recorded = member.branches.recorded(tip);
        let arrangement = member.arrangement(conversation, &recorded, terms, now)?;
        let fold = arrangement.as_ref().map(|arrangement| Fold {
            conversation,
            recorded: &recorded,
            arrangement,
        });
        Ok(fold.and_then(|fold| fold.body(body)))
    }

    /// The terms on which a conversation's provider caches.
    fn terms_of(&self, conversation: &Conversation) -> CacheTerms {
        let asked = &conversation.terms;
        let terms = self.terms.unwrap_or_else(|| caching::usual(conversation.api, asked));
        if asked.is_marked { terms } else { terms.without_cache() }
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

/// Whether a request is sent as it is, whatever was recorded: it is short, or its agent could not load what left.
fn is_short(conversation: &Conversation) -> bool {
    conversation.terms.load.is_none() || conversation.terms.place.len() < SHORTEST
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

    /// Shows the branch that ends with this message from now on.
    fn go_to(&mut self, tip: Option<u32>) -> Result<(), Error> {
        let branch = self.branches.recorded(tip);
        if !self.session.follows(&branch) {
            self.session.follow(&branch, &[])?;
            self.pinned = 0;
        }
        Ok(())
    }

    /// Goes on on these terms; what the conversation's request shows may change, where that is sent.
    fn set(&mut self, conversation: &Conversation, terms: CacheTerms) {
        self.session.set_cache_aware(caching::policy(terms));
        self.session.hold(is_short(conversation) || !conversation.may_fold());
    }

    /// What the next request shows.
    fn arrangement(
        &mut self,
        conversation: &Conversation,
        recorded: &[Range<u64>],
        terms: CacheTerms,
        now: Timestamp,
    ) -> Result<Option<Arrangement>, Error> {
        let session = &mut self.session;
        let head = recorded.get(..conversation.head()).unwrap_or_default();
        for seq in head.iter().skip(self.pinned).flat_map(Clone::clone) {
            session.pin(SeqNo(seq))?;
        }
        self.pinned = head.len();
        let before = self.asked.replace((now, conversation.terms.model.clone()));
        let is_warm = before.is_some_and(|(at, model)| {
            let life = i64::try_from(terms.life.as_millis()).unwrap_or(i64::MAX);
            now.0.saturating_sub(at.0) < life
                && (model.is_empty() || model == conversation.terms.model)
        });
        if !is_warm {
            self.session.cool();
        }
        self.set(conversation, terms);
        Ok(self.session.arrangement())
    }

    /// Records what of a conversation is not known, from the message `seq` on, and what is sent anew. Gives its last
    /// message.
    fn record(
        &mut self,
        mut seq: u64,
        conversation: &Conversation,
        known: &Known,
        again: &[SentAgain],
    ) -> Result<Option<u32>, Error> {
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
                };
                let instructions = conversation.instructions.clone().filter(|_| parent.is_none());
                // It was read before, or it would not be here.
                let said = message.messages();
                let said = said.unwrap_or_else(|_| vec![Message::user(&message.json)]);
                let messages = instructions.into_iter().chain(said);
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
        Ok(parent)
    }
}

#[cfg(test)]
mod tests;

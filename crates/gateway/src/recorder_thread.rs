//! How an exchange is recorded in the store.

use crate::branches::Standing;
use crate::client_message::Facts;
use crate::config::Reach;
use crate::conversation::Conversation;
use crate::exchange::{Asked, Course, Exchange};
use crate::family::Family;
use crate::fold::{Fold, Rewritten};
use crate::member::Member;
use crate::reader::Reader;
use crate::spent::{Held, Spent};
use crate::unkept::Unkept;
use crate::usage::Usage;
use crate::{Contents, Ledger, RecallBy, SessionTodos, TextName, WhyWhole};
use foldback::{Arrangement, Error, ErrorKind, Memory, NoteName, Origin};
use foldback_core::{CacheTerms, TodoId};
use lru::LruCache;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

/// A shorter conversation, in bytes, is sent unchanged.
pub(crate) const SHORTEST: usize = 24 << 10;

/// How many families, and how many messages of clients, are held in memory at most; the store has them all.
const MOST_FAMILIES: NonZeroUsize = NonZeroUsize::new(64).unwrap();
const MOST_HELD: usize = 50_000;

/// For how many todos it is remembered whether the model may look things up.
const MOST_RECALLS: NonZeroUsize = NonZeroUsize::new(16_384).unwrap();

/// How often the recorder tries to place a conversation that others write to, too.
const TRIES: usize = 4;

/// Writes exchanges into a store, one after the other.
pub(crate) struct Keeper {
    memory: Memory,
    secret: [u8; 32],
    folder: Option<String>,
    /// The families that were used last.
    families: LruCache<String, Family>,
    reader: Reader,
    session_todos: Arc<SessionTodos>,
    /// Whether the model may look things up, for each todo since it was first seen here: adding tools later would
    /// invalidate the provider's cache.
    recalls: LruCache<TodoId, bool>,
    reach: Reach,
    ledger: Ledger,
    /// The terms of every provider; `None` for those in its lists.
    cache: Option<CacheTerms>,
    has_recorded: bool,
}

/// What is sent in place of a request.
#[derive(Default)]
pub(crate) struct Folded {
    /// Less of it, if there is less to send.
    pub(crate) part: Option<Rewritten>,
    /// All of it, if that cannot be the client's own body: some thinking in it followed less than is sent now.
    pub(crate) whole: Option<Rewritten>,
    /// Set if the model looks things up unseen by the client.
    pub(crate) recall: Option<Arc<Recalling>>,
    /// Why nothing is left out, if that is not because there is nothing to leave out.
    pub(crate) why: Option<WhyWhole>,
}

/// A conversation in which the model looks things up unseen by the client.
pub(crate) struct Recalling {
    pub(crate) todo: TodoId,
    /// What the client sent, unpacked, and its messages.
    pub(crate) body: Arc<String>,
    pub(crate) said: Vec<Facts>,
}

impl Recalling {
    fn new(todo: TodoId, conversation: &Conversation) -> Arc<Self> {
        let said = conversation.asked().iter().map(|message| message.facts).collect();
        Arc::new(Self { todo, body: Arc::clone(&conversation.body), said })
    }
}

impl Keeper {
    pub(crate) fn new(
        memory: Memory,
        secret: [u8; 32],
        folder: Option<String>,
        reach: Reach,
        session_todos: Arc<SessionTodos>,
        ledger: Ledger,
    ) -> Self {
        let reader = Reader::new(secret).redacting(memory.is_redacting());
        Self {
            memory,
            secret,
            folder,
            families: LruCache::new(MOST_FAMILIES),
            reader,
            session_todos,
            recalls: LruCache::new(MOST_RECALLS),
            reach,
            ledger,
            cache: None,
            has_recorded: false,
        }
    }

    /// Sets terms that apply to every provider.
    pub(crate) fn with_terms(self, terms: CacheTerms) -> Self {
        Self { cache: Some(terms), ..self }
    }

    /// Forgets what it knows of the store, which is then read again.
    pub(crate) fn forget_all(&mut self) {
        self.families.clear();
    }

    /// Records what is new in an exchange, and what it cost: nothing if it was not sent.
    ///
    /// # Errors
    /// When the request cannot be read, or the store fails.
    pub(crate) fn keep(&mut self, exchange: &Exchange) -> Result<(), Unkept> {
        if !exchange.course.is_sent {
            return self.record(&exchange.asked);
        }
        let (asked, answer) = (&exchange.asked, exchange.answer());
        let mut conversation = self.read(asked)?;
        let heard =
            answer.as_ref().map_or(Ok(()), |answer| self.reader.hear(&mut conversation, answer));
        let whole = conversation.body.len();
        let course = &exchange.course;
        conversation.shown = course.instead.as_ref().map(|instead| instead.shown);
        let usage = match exchange.billed.is_empty() {
            true => answer.and_then(|answer| Usage::of(asked.api, &answer)).into_iter().collect(),
            false => exchange.billed.clone(),
        };
        let model = &conversation.terms.model;
        if exchange.answer.as_ref().is_none_or(|answer| !answer.is_empty()) {
            // A turn that was played has an entry for each request, even if its provider reports nothing.
            let sum = Usage::sum(&usage).filter(|sum| sum.input.total() > 0);
            self.ledger.operations().done(asked.api, model, exchange.took, sum);
        }
        let spent = Spent {
            at: asked.at,
            sent: course.instead.as_ref().map_or(whole, |instead| instead.bytes) as u64,
            whole: whole as u64,
            usage,
        };
        let recorded = match conversation.asked {
            0 => Ok(None),
            _ => self.tried(&conversation, |keeper, name, conversation| {
                let (memory, secret) = (keeper.memory.clone(), keeper.secret);
                let recorded = keeper.recorded(name, conversation)?;
                Ok(recorded.map(|(member, tip)| {
                    member.was_asked(asked.at, conversation);
                    let todo = member.session.todo().to_string();
                    let mut entry = spent.entry(conversation, todo, &mut member.held);
                    member.was_billed(&entry, conversation);
                    let mut recorded = member.branches.recorded(tip);
                    recorded.truncate(conversation.asked);
                    let note = member.noting(&memory, &secret);
                    entry.contents = described(course, conversation, &recorded, note);
                    entry
                }))
            }),
        };
        // What cannot be recorded is still billed.
        let alone =
            || spent.entry(&conversation, self.name_of(&conversation), &mut Held::default());
        let entry = recorded.as_ref().ok().cloned().flatten().unwrap_or_else(alone);
        match &exchange.check {
            Some(check) => check.note(entry, &self.ledger),
            None => self.ledger.note(&entry),
        }
        recorded.and(heard.map_err(Unkept::Answer))
    }

    /// Records what is new in a long conversation before it is sent, and returns what is sent in its place.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub(crate) fn fold(&mut self, asked: &Asked) -> Result<Folded, Unkept> {
        let conversation = self.read(asked)?;
        let folded = self.fold_read(&conversation);
        asked.hold(conversation);
        folded
    }

    fn fold_read(&mut self, conversation: &Conversation) -> Result<Folded, Unkept> {
        let is_short = conversation.terms.place.len() < SHORTEST;
        if conversation.asked == 0 || conversation.terms.load.is_none() {
            return Ok(Folded::default());
        }
        self.tried(conversation, |keeper, name, conversation| {
            let may_find = conversation.terms.is_unseen && keeper.reach.by == RecallBy::Always;
            let found = if may_find { keeper.found(name, conversation)? } else { None };
            let folded =
                if is_short { Folded::default() } else { keeper.folded(name, conversation)? };
            let found = found.map(|todo| Recalling::new(todo, conversation));
            Ok(Folded { recall: found.or(folded.recall), ..folded })
        })
    }

    /// Records what is new in a request.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub(crate) fn record(&mut self, asked: &Asked) -> Result<(), Unkept> {
        let conversation = self.read(asked)?;
        let recorded = match conversation.asked {
            0 => Ok(()),
            _ => self.tried(&conversation, |keeper, name, conversation| {
                keeper.recorded(name, conversation).map(drop)
            }),
        };
        asked.hold(conversation);
        recorded
    }

    /// Returns whether anything was recorded since this was last asked.
    pub(crate) fn has_recorded(&mut self) -> bool {
        std::mem::take(&mut self.has_recorded)
    }

    /// Sends a conversation whole from now on: its provider refuses what was sent in its place.
    ///
    /// # Errors
    /// As [`keep`](Self::keep).
    pub(crate) fn leave_alone(&mut self, asked: &Asked) -> Result<(), Unkept> {
        let conversation = self.read(asked)?;
        let left = self.tried(&conversation, |keeper, name, conversation| {
            let memory = keeper.memory.clone();
            let Some((member, _)) = keeper.recorded(name, conversation)? else { return Ok(()) };
            member.leave_alone(&memory)
        });
        asked.hold(conversation);
        left
    }

    /// Reads a request, unless that was done before. A request that is not part of an agent's work has no messages.
    fn read(&mut self, asked: &Asked) -> Result<Box<Conversation>, Unkept> {
        if let Some(read) = asked.take() {
            return Ok(read);
        }
        let mut read = self.reader.read(asked).map(Box::new).map_err(Unkept::Unreadable)?;
        read.cache = self.cache.map_or(read.cache, |terms| terms.when(read.terms.is_marked));
        read.terms.reached_by(&self.reach);
        Ok(read)
    }

    /// Performs an operation on a conversation's todo, and repeats it if others have written to that meanwhile.
    fn tried<T>(
        &mut self,
        conversation: &Conversation,
        step: impl Fn(&mut Self, &str, &Conversation) -> Result<T, Error>,
    ) -> Result<T, Unkept> {
        let name = self.name_of(conversation);
        for _ in 0..TRIES {
            let error = match step(self, &name, conversation) {
                Ok(done) => {
                    self.make_room();
                    return Ok(done);
                }
                Err(error) => error,
            };
            // The store is read again.
            self.families.pop(&name);
            // Another process wrote to the same todo, or has deleted it.
            if !matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound) {
                return Err(Unkept::Store(error.to_string()));
            }
        }
        Err(Unkept::Store("another process writes to the same conversation".to_owned()))
    }

    /// Returns the todo in which the model of a conversation may look things up within its turn: the one that it is
    /// recorded in, if something was closed before this gateway first saw it.
    fn found(&mut self, name: &str, conversation: &Conversation) -> Result<Option<TodoId>, Error> {
        self.open(name, conversation)?;
        let digests: Vec<_> = conversation.messages.iter().map(|message| message.digest).collect();
        let Some(family) = self.families.get_mut(name) else { return Ok(None) };
        let place = family.find(&self.memory, &digests, conversation.agent.as_ref())?;
        let member = place.and_then(|(n, _)| family.members.get(n));
        let Some(session) = member.map(|member| &member.session) else { return Ok(None) };
        let may = *self.recalls.get_or_insert(session.todo().clone(), || session.blocks() > 0);
        Ok(may.then(|| session.todo().clone()))
    }

    /// Returns the name of the family, which prefixes its todos.
    fn name_of(&self, conversation: &Conversation) -> String {
        if let Some(todo) = &conversation.sender.todo {
            return todo.clone();
        }
        let digest = conversation.sender.family(&conversation.opening(), &self.secret).to_hex();
        let digest: String = digest.chars().take(12).collect();
        format!("{}-{digest}", conversation.sender.client)
    }

    /// Reads from the store what it holds of a family, unless it is known.
    fn open(&mut self, name: &str, conversation: &Conversation) -> Result<(), Error> {
        if !self.families.contains(name) {
            let known_by = conversation.sender.known_by();
            let origin = Origin {
                source: Some(conversation.sender.client.clone()),
                folder: self.folder.clone(),
            };
            let family = Family::open(&self.memory, name.to_owned(), known_by, origin)?;
            self.families.put(name.to_owned(), family);
        }
        Ok(())
    }

    /// Records what is new in a conversation. Returns the member that it belongs to, and its last message there.
    fn recorded(
        &mut self,
        name: &str,
        conversation: &Conversation,
    ) -> Result<Option<(&mut Member, Option<u32>)>, Error> {
        self.open(name, conversation)?;
        let Some(family) = self.families.get_mut(name) else { return Ok(None) };
        let digests: Vec<_> = conversation.messages.iter().map(|message| message.digest).collect();
        let asked = digests.get(..conversation.asked).unwrap_or_default();
        let (n, known) = family.place(&self.memory, asked, conversation.agent.as_ref())?;
        let Some(member) = family.members.get_mut(n) else { return Ok(None) };
        let session = &member.session;
        self.recalls.get_or_insert(session.todo().clone(), || session.blocks() > 0);
        let again = member.sent_again(conversation, &known);
        // The answer may be known as well.
        let known = member.branches.go_on(known, digests.get(known.messages..).unwrap_or_default());
        if known.messages == digests.len() && again.is_empty() {
            return Ok(Some((member, known.node)));
        }
        let answer = conversation.messages.iter().skip(conversation.asked);
        let answer: Vec<_> =
            answer.flat_map(|answer| answer.messages().unwrap_or_default()).collect();
        self.session_todos.note(member.session.todo(), &answer);
        member.expect_answers(conversation, &known, &self.session_todos)?;
        let tip = member.record(conversation, &known, &again)?;
        self.has_recorded = true;
        Ok(Some((member, tip)))
    }

    /// Returns what is sent of a conversation.
    fn folded(&mut self, name: &str, conversation: &Conversation) -> Result<Folded, Error> {
        let (memory, now) = (self.memory.clone(), self.memory.now());
        let Some((member, tip)) = self.recorded(name, conversation)? else {
            return Ok(Folded::default());
        };
        member.go_to(tip, conversation)?;
        let standing = member.branches.standing(tip);
        let arrangement = member.arrangement(conversation, &standing, now)?;
        Ok(laid_out(&memory, member, conversation, &standing, arrangement))
    }

    /// Forgets families until there is room, but not the one that was used last.
    fn make_room(&mut self) {
        let mut held: usize = self.families.iter().map(|(_, family)| family.len()).sum();
        while held > MOST_HELD && self.families.len() > 1 {
            held -= self.families.pop_lru().map_or(held, |(_, family)| family.len());
        }
    }
}

/// Returns what is sent of a conversation whose messages are stored as in `standing`, if a view shows this much.
fn laid_out(
    memory: &Memory,
    member: &mut Member,
    conversation: &Conversation,
    standing: &[Standing],
    arrangement: Option<Arrangement>,
) -> Folded {
    let declares = arrangement.as_ref().is_some_and(|arrangement| arrangement.declares);
    let before = &mut |n| member.first_sent(memory, n);
    let mut fold = Fold { conversation, standing, before };
    let whole = fold.whole();
    let part = arrangement.and_then(|arrangement| fold.part(&arrangement));
    let why = (part.is_some() && member.is_left_alone).then_some(WhyWhole::RefusedBefore);
    let part = part.filter(|_| !member.is_left_alone);
    let todo = declares.then(|| member.session.todo().clone());
    let recall = todo.map(|todo| Recalling::new(todo, conversation));
    Folded { part, whole, recall, why }
}

/// Returns the contents of a request whose messages have these numbers. `note` keeps a text.
fn described(
    course: &Course,
    conversation: &Conversation,
    recorded: &[Range<u64>],
    mut note: impl FnMut(&str) -> NoteName,
) -> Option<Contents> {
    let laid = course.instead.as_ref().map(|instead| &*instead.laid);
    let contents = Contents::new(recorded, laid, &course.put_back, &mut note)?;
    let tools = serde_json::to_string(&conversation.tools).ok().map(|json| TextName(note(&json)));
    Some(Contents { tools, has_tools: course.has_tools, whole: course.whole, ..contents })
}

mod foresight;
#[cfg(test)]
mod tests;

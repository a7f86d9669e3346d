//! A conversation that an agent framework gives whole each time, and what of it is recorded already.

use crate::error::Failure;
use foldback::core::{Message, SeqNo, TodoId};
use foldback::{Memory, NewSent, SentTree, Session};
use std::ops::Range;

/// How many messages are recorded in one transaction.
const PER_TRANSACTION: usize = 128;

/// The messages of a todo as a tree: what is edited, rewound or forked begins a branch, and shares what stood before.
#[derive(Default)]
pub(crate) struct ConversationTree {
    tree: SentTree,
    /// The branch that was given last, from its beginning.
    branch: Vec<u32>,
}

/// A message of the framework, and what identifies it: its text without names that change from run to run.
pub(crate) struct Given {
    pub(crate) message: Message,
    pub(crate) identity: String,
}

impl ConversationTree {
    /// Reads from the store what was given before.
    pub(crate) fn open(memory: &Memory, todo: &TodoId) -> Result<Self, Failure> {
        Ok(Self { tree: memory.sent_tree(todo)?, branch: Vec::new() })
    }

    /// Shows the conversation that begins with the first `known` messages of the one that was given last and goes on
    /// with `given`, and records what of it is new. After an error it has no last conversation.
    pub(crate) fn show(
        &mut self,
        session: &mut Session,
        known: usize,
        given: Vec<Given>,
    ) -> Result<(), Failure> {
        let shown = self.show_all(session, known, given);
        if shown.is_err() {
            self.branch.clear();
        }
        shown
    }

    /// The numbers that the message at this place of the conversation is recorded under.
    pub(crate) fn recorded(&self, place: usize) -> Option<Range<u64>> {
        self.branch.get(place).map(|n| self.tree.recorded(*n))
    }

    fn show_all(
        &mut self,
        session: &mut Session,
        known: usize,
        given: Vec<Given>,
    ) -> Result<(), Failure> {
        let mut branch = self.branch.get(..known).map(<[u32]>::to_vec).ok_or_else(|| {
            let had = self.branch.len();
            Failure::invalid(format!("the last conversation has {had} messages, and not {known}"))
        })?;
        let mut digests = given.iter().map(|one| blake3::hash(one.identity.as_bytes()));
        let mut is_known = 0;
        for digest in digests.by_ref() {
            let last = branch.last().copied();
            let Some(n) = self.tree.child(last, digest.as_bytes()) else { break };
            branch.push(n);
            is_known += 1;
        }
        let mut new: Vec<Given> = given.into_iter().skip(is_known).collect();
        self.branch = branch;
        self.follow(session)?;
        while !new.is_empty() {
            let later = new.split_off(new.len().min(PER_TRANSACTION));
            self.record(session, std::mem::replace(&mut new, later))?;
        }
        // Another process may have followed its own branch meanwhile, and a write that comes second goes on from there.
        self.follow(session)
    }

    /// Makes the session's view that of the branch.
    fn follow(&self, session: &mut Session) -> Result<(), Failure> {
        let ranges: Vec<Range<u64>> = self.branch.iter().map(|n| self.tree.recorded(*n)).collect();
        if !session.follows(&ranges) {
            session.follow(&ranges, &[])?;
        }
        Ok(())
    }

    /// Records these messages, in one transaction, as the next ones of the branch.
    fn record(&mut self, session: &mut Session, given: Vec<Given>) -> Result<(), Failure> {
        let (seq, first) = (session.len(), self.tree.next());
        let mut parent = self.branch.last().copied();
        let mut digests = Vec::with_capacity(given.len());
        let mut sent = Vec::with_capacity(given.len());
        for (n, one) in (first..).zip(given) {
            let digest = blake3::hash(one.identity.as_bytes());
            let (tag, messages) = (digest.as_bytes().to_vec(), vec![one.message]);
            sent.push(NewSent { parent, tag, json: String::new(), messages });
            digests.push(digest);
            parent = Some(n);
        }
        session.record_sent(SeqNo(seq), first, &sent, &[])?;
        for (seq, (one, digest)) in (seq..).zip(sent.into_iter().zip(digests)) {
            let n = self.tree.push(one.parent, seq..seq + 1, *digest.as_bytes());
            self.branch.push(n);
        }
        Ok(())
    }
}

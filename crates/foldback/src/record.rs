//! The write path. A message arrives; large parts go to the payload store; the chunker and the live view take a step; ONE
//! transaction makes the message, closed blocks, vectors, payload references and the session's state durable. The steps
//! work on a copy of the session's state, which replaces the session's own only after the transaction.

use crate::error::Failure;
use crate::holes::{large_parts, store_recall, store_with_holes};
use crate::live::{Live, Open};
use crate::message_vectors::{direction, vectors_of, vectors_of_each};
use crate::{Error, Session, texts};
use foldback_backend_store::{Pending, preview};
use foldback_blockstore::{Commit, Error as BlockError, NewMessage};
use foldback_chunker::{Closed, Event, Input};
use foldback_core::{
    Block, BlockId, EmbedError, Message, Offload, Recorded, Role, SeqNo, StoredMessage, Timestamp,
    ToolCallId, Vectors,
};
use foldback_disclosure::{Fragment, Shown};
use foldback_kv::{Key, retry};
use foldback_redaction::Finding;
use std::sync::Arc;

/// A preview replaces a large part in the view: at most this many tokens.
const PREVIEW_TOKENS: usize = 100;

/// A message that is to be recorded.
pub(crate) struct Incoming {
    pub(crate) message: Arc<Message>,
    /// What is to be replaced in it before anything else.
    pub(crate) secrets: Arc<[Finding]>,
    /// Its vectors, if they are already made.
    pub(crate) vectors: Option<Result<Vectors, EmbedError>>,
}

/// The contents of one transaction.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) messages: Vec<NewMessage>,
    blocks: Vec<Block>,
    /// Why each of them closed.
    whys: Vec<String>,
    /// The calls whose answers are recorded with this.
    recalled: Vec<ToolCallId>,
    /// Begun at the first large part.
    payloads: Option<Pending>,
    /// More records: the todo list, grants.
    pub(crate) extra: Vec<(Key, Vec<u8>)>,
}

impl Session {
    /// Records the next message. When this returns, the message is durable, and the blocks that it
    /// closed can be found and loaded.
    ///
    /// # Errors
    /// When the message cannot be recorded; then nothing of it is stored, and the session is unchanged. (A large part
    /// may leave a file, which `doctor --repair` sweeps.)
    pub fn record(&mut self, message: Message) -> Result<Recorded, Error> {
        let mut recorded = self.record_all(vec![message])?;
        recorded.pop().ok_or_else(|| Failure::Internal("a recorded message has no receipt").into())
    }

    /// Records several messages in one transaction: all are durable when this returns, or none.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn record_all(&mut self, messages: Vec<Message>) -> Result<Vec<Recorded>, Error> {
        let messages = self.embedded(messages);
        self.write(|session, live, draft| {
            messages.iter().map(|message| session.store_and_append(live, draft, message)).collect()
        })
    }

    /// Records as [`record`](Self::record) does, but only as the message with the number `seq`: for
    /// callers that follow a source and must not append after another writer's messages.
    ///
    /// # Errors
    /// When the todo's next number is another ([`Conflict`](crate::ErrorKind::Conflict)); the session is
    /// then brought up to date.
    pub fn record_at(&mut self, seq: SeqNo, message: Message) -> Result<Recorded, Error> {
        let mut recorded = self.record_all_at(seq, vec![message])?;
        recorded.pop().ok_or_else(|| Failure::Internal("a recorded message has no receipt").into())
    }

    /// Records as [`record_all`](Self::record_all) does, from the number `seq` on.
    ///
    /// # Errors
    /// As [`record_at`](Self::record_at); then none is recorded.
    pub fn record_all_at(
        &mut self,
        seq: SeqNo,
        messages: Vec<Message>,
    ) -> Result<Vec<Recorded>, Error> {
        self.record_all_with(seq, messages, &[])
    }

    /// Records as [`record_all_at`](Self::record_all_at) does, with more records in the same transaction.
    pub(crate) fn record_all_with(
        &mut self,
        seq: SeqNo,
        messages: Vec<Message>,
        extra: &[(Key, Vec<u8>)],
    ) -> Result<Vec<Recorded>, Error> {
        let messages = self.embedded(messages);
        self.write(|session, live, draft| {
            let found = live.chunker.next();
            if found != seq {
                let todo = session.todo().clone();
                return Err(Failure::MovedOn { todo, expected: seq, found }.into());
            }
            draft.extra.extend_from_slice(extra);
            messages.iter().map(|message| session.store_and_append(live, draft, message)).collect()
        })
    }

    /// Closes the open messages because the conversation or the work on this todo is over. More may
    /// be recorded afterwards.
    ///
    /// # Errors
    /// When the store fails; then nothing is closed.
    pub fn close(&mut self, why: Close) -> Result<Vec<BlockId>, Error> {
        let event = || match why {
            Close::End => Event::End,
            Close::Switch => Event::Switch,
        };
        self.write(|session, live, draft| {
            let closed = live.chunker.push(event());
            session.close_blocks(live, draft, &closed)
        })
    }

    /// Runs `step` on a copy of the live state and makes its draft durable. If another process has
    /// written meanwhile, the state is read again and the step repeated.
    pub(crate) fn write<T>(
        &mut self,
        step: impl Fn(&Self, &mut Live, &mut Draft) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut is_first = true;
        retry(|| {
            if !std::mem::take(&mut is_first) {
                self.refresh()?;
            }
            let mut live = self.live.clone();
            let mut draft = Draft::default();
            let result = step(self, &mut live, &mut draft)?;
            self.commit(live, draft)?;
            Ok(result)
        })
    }

    /// Makes a draft durable, in one transaction. Only then does `live` become the session's state.
    fn commit(&mut self, mut live: Live, draft: Draft) -> Result<(), Error> {
        let extra = self.check_and_count(&mut live, &draft)?;
        let payloads = draft.payloads.map(Pending::into_puts).into_iter().flatten();
        let commit = Commit {
            todo: &self.todo,
            head: self.live.head,
            messages: &draft.messages,
            blocks: &draft.blocks,
            session: live.to_bytes()?,
            extra: payloads.chain(draft.extra).chain(extra).collect(),
            delete: Vec::new(),
        };
        foldback_core::failpoint!("foldback.record.drafted");
        if let Err(error) = self.memory.blocks.commit(commit, self.memory.embedder.model_id()) {
            return Err(self.commit_error(error));
        }
        foldback_core::failpoint!("foldback.record.committed");
        live.head = live.head.after(draft.messages.len());
        self.live = live;
        self.hints.take();
        self.answers.retain(|(id, _)| !draft.recalled.contains(id));
        self.closed = draft.blocks.into_iter().zip(draft.whys).collect();
        if !self.closed.is_empty() {
            self.memory.indexer.wake(&self.todo);
        }
        Ok(())
    }

    /// Returns why a commit failed. It may have been refused because the todo was forgotten; any other failure
    /// is returned as it is, because its kind says whether the commit may be repeated.
    fn commit_error(&self, error: BlockError) -> Error {
        let is_refused = matches!(error, BlockError::Conflict { .. } | BlockError::Refused { .. });
        match is_refused.then(|| self.memory.registry.find(self.todo.id())) {
            Some(Ok(found)) if found.as_ref() != Some(&self.todo) => {
                Failure::NoTodo(self.todo().clone()).into()
            }
            _ => error.into(),
        }
    }

    /// Embeds several messages together. A single message, and messages that may include recalled
    /// text, which has no vectors, are embedded as they are recorded.
    fn embedded(&self, messages: Vec<Message>) -> Vec<Incoming> {
        let memory = &self.memory;
        let messages: Vec<_> = messages.into_iter().map(|one| memory.incoming(one)).collect();
        if messages.len() < 2 || !self.answers.is_empty() {
            return messages;
        }
        let (mut live, next) = (self.live.clone(), self.len());
        let shown = (next..).map(SeqNo).zip(&messages).map(|(seq, one)| {
            if one.secrets.is_empty() {
                return one.message.clone();
            }
            let redacted = memory.redact(&self.todo, seq, one, &mut live, None);
            // What cannot be redacted is refused when it is recorded.
            redacted.map_or_else(|_| Arc::new(Message::user("")), |one| one.message)
        });
        let shown: Vec<Arc<Message>> = shown.collect();
        let texts: Vec<&Message> = shown.iter().map(Arc::as_ref).collect();
        let vectors = vectors_of_each(memory.embedder.as_ref(), &texts);
        let both = messages.into_iter().zip(vectors);
        both.map(|(one, vectors)| Incoming { vectors: Some(vectors), ..one }).collect()
    }

    /// Redacts a message, stores its large parts outside it, and appends it. Returns its number and the blocks that it
    /// closes.
    fn store_and_append(
        &self,
        live: &mut Live,
        draft: &mut Draft,
        incoming: &Incoming,
    ) -> Result<Recorded, Error> {
        let seq = live.chunker.next();
        let redacted = if incoming.secrets.is_empty() {
            None
        } else {
            Some(self.memory.redact(&self.todo, seq, incoming, live, Some(draft))?)
        };
        let incoming = redacted.as_ref().unwrap_or(incoming);
        let message = &incoming.message;
        let now = (self.memory.clock)();
        let (stored, note) = match self.recalled(seq, message, now.0) {
            Some((stored, note)) => (stored, Some(note)),
            None => (self.offload(live, draft, seq, message, now.0)?, None),
        };
        let closed = self.append_stored(live, draft, incoming, stored, note)?;
        Ok(Recorded { seq, closed })
    }

    /// Appends a message in its stored form. Returns the blocks that it closes.
    pub(crate) fn append_stored(
        &self,
        live: &mut Live,
        draft: &mut Draft,
        Incoming { message, vectors, .. }: &Incoming,
        stored: StoredMessage,
        note: Option<String>,
    ) -> Result<Vec<BlockId>, Error> {
        let seq = live.chunker.next();
        let vectors = match vectors {
            _ if stored.recall => Vectors::default(),
            Some(vectors) => vectors.clone()?,
            None => vectors_of(self.memory.embedder.as_ref(), message)?,
        };
        let direction = direction(self.memory.embedder.as_ref(), message, &vectors);
        let mut input = Input::of(message);
        if let Some(direction) = &direction {
            input = input.with_vector(direction);
        }
        if stored.recall {
            // What was said long ago must not decide where the present is cut.
            input = input.without_text();
        }
        let closed = live.chunker.push(Event::Message(input));
        let open = Open::new(seq, message, &stored);
        let answered = message.tool_call_id().filter(|_| note.is_some()).cloned();
        let shown = Shown::new(seq, message.clone(), stored.offloads.clone(), note);
        live.view.append(shown.with_recorded_at(Timestamp(stored.recorded_at)));
        live.open.push(open);
        draft.recalled.extend(answered);
        draft.messages.push(NewMessage { stored, vectors });
        self.close_blocks(live, draft, &closed)
    }

    /// Stores large parts outside, and leaves holes.
    fn offload(
        &self,
        live: &Live,
        draft: &mut Draft,
        seq: SeqNo,
        message: &Message,
        now: i64,
    ) -> Result<StoredMessage, Error> {
        let tokens = self.memory.tokens.as_ref();
        let tool = live.tool_of(message);
        let large = large_parts(message, tool, &self.memory.offload, tokens);
        let mut offloads = Vec::with_capacity(large.len());
        for part in &large {
            let payloads = &self.memory.payloads;
            self.memory.quota.check_payload(self.todo(), part.text.len() as u64)?;
            let pending = match &mut draft.payloads {
                Some(pending) => pending,
                none => none.insert(payloads.begin(&self.todo)?),
            };
            pending.set_origin(seq.0);
            let meta = payloads.prepare(pending, part.text.as_bytes())?.meta;
            offloads.push(Offload {
                site: part.site(),
                n: meta.n,
                check: meta.check,
                kind: meta.kind,
                bytes: meta.bytes,
                lines: meta.lines,
                tokens: tokens.count(&part.text) as u64,
                preview: preview(part.text.as_bytes(), meta.kind, PREVIEW_TOKENS, tokens),
            });
        }
        Ok(store_with_holes(message, large, offloads, now))
    }

    /// Builds the stored form of a message that carries a memory tool's answer, and the note that it folds to. Filled
    /// again it is the message byte for byte: that is checked here. An answer that shows another todo's contents, or
    /// contents that cannot be read by now, is kept by value. Nothing else in this todo leads to another todo's text, so
    /// once it is folded it is searched and loaded as any other message. An answer given before a crash and recorded
    /// after it is an ordinary result, whose text is stored again, because its references were only in memory.
    fn recalled(&self, seq: SeqNo, message: &Message, now: i64) -> Option<(StoredMessage, String)> {
        let id = message.tool_call_id()?;
        let (_, answer) = self.answers.iter().find(|(given, _)| given == id)?;
        if *message.role() != Role::Tool {
            return None;
        }
        let by_value = [Fragment::Literal(answer.text.clone())];
        let stored = [&answer.fragments[..], &by_value].into_iter().find_map(|fragments| {
            let stored = store_recall(message, &answer.text, fragments, answer.is_foreign, now)?;
            let filled = texts::fill(&self.memory, &self.todo, seq, &stored, 0).ok()?;
            (filled == *message).then_some(stored)
        });
        Some((stored?, answer.note.clone()))
    }

    /// A block that closes around a damaged message is described with the mark in its place, and its header names no
    /// payload of that message.
    pub(crate) fn close_blocks(
        &self,
        live: &mut Live,
        draft: &mut Draft,
        closed: &[Closed],
    ) -> Result<Vec<BlockId>, Error> {
        let mut ids = Vec::with_capacity(closed.len());
        for closed in closed {
            let id = BlockId::new(self.todo.id().clone(), live.blocks + 1);
            let split = live.open.partition_point(|open| open.seq <= closed.range.last());
            let rest = live.open.split_off(split);
            let body = std::mem::replace(&mut live.open, rest);
            let pending = draft.payloads.as_ref();
            let header = self.memory.header_of(&self.todo, pending, id.clone(), &body)?;
            let block = Block { header, range: closed.range, close_reason: closed.reason };
            live.view.fold(&block);
            live.blocks += 1;
            draft.blocks.push(block);
            draft.whys.push(closed.evidence.to_string());
            ids.push(id);
        }
        Ok(ids)
    }
}

/// The reason for which a session closes its open messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// The conversation is over.
    End,
    /// The work continues in another todo, or on another branch of the conversation.
    Switch,
}

#[cfg(test)]
pub(crate) mod tests;

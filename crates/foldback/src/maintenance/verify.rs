//! Reads and compares everything that is recorded for a todo.

use super::{Checkup, STEP};
use crate::conversations::Conversations;
use crate::error::Failure;
use crate::live::Live;
use crate::memory::Shared;
use crate::{Error, ErrorKind, texts};
use foldback_backend_store::Error as PayloadError;
use foldback_blockstore::Error as BlockError;
use foldback_core::SeqNo;
use foldback_kv::Todo;
use std::fmt::Display;
use std::sync::Arc;

/// The check of one todo. Findings go to the checkup.
pub(super) struct TodoCheck<'a> {
    pub(super) memory: &'a Arc<Shared>,
    pub(super) todo: &'a Todo,
    pub(super) checkup: &'a mut Checkup,
    /// Why something could not be examined, which does not mean that it is damaged.
    pub(super) refused: Option<Error>,
}

impl TodoCheck<'_> {
    pub(super) fn run(mut self) -> Result<(), Error> {
        self.check();
        self.refused.map_or(Ok(()), Err)
    }

    fn check(&mut self) {
        self.checkup.todos += 1;
        // What is written meanwhile is left for the next check: first it is determined how far
        // everything goes, the blocks before their messages.
        let (last, len) = match self.ends() {
            Ok(ends) => ends,
            Err(error) => return self.fail(error),
        };
        self.messages(len);
        self.envelope();
        self.blocks(last, len);
        self.state();
        self.payloads();
        self.counts();
    }

    fn find(&mut self, what: impl Display) {
        self.checkup.findings.push(format!("{}: {what}", self.todo.id()));
    }

    /// Notes an error: damage is a finding, a refusal of the system is not.
    fn fail(&mut self, error: impl Into<Error>) {
        let error = error.into();
        match error.kind() {
            ErrorKind::Io
            | ErrorKind::Full
            | ErrorKind::Locked
            | ErrorKind::ReadOnly
            | ErrorKind::Unknown => {
                self.refused.get_or_insert(error);
            }
            _ => self.find(error),
        }
    }

    /// Returns the number of the last block, and how many messages there are.
    fn ends(&self) -> Result<(u32, u64), Error> {
        let last = last_block(self.memory, self.todo)?;
        Ok((last, self.memory.blocks.head(self.todo)?.messages))
    }

    /// Checks that every message can be rebuilt.
    fn messages(&mut self, len: u64) {
        let (memory, todo) = (self.memory, self.todo);
        for seq in (0..len).map(SeqNo) {
            let found = memory.blocks.messages(todo, seq.0..seq.0 + 1).map_err(Error::from);
            let rebuilt = found.and_then(|stored| match stored.first() {
                Some(stored) => texts::fill(memory, todo, seq, stored, 0).map(drop),
                None => Err(Failure::NoMessage { todo: todo.id().clone(), seq, len }.into()),
            });
            let Err(error) = rebuilt else { continue };
            // A payload is reported once, by `payloads`, however many messages need it.
            if !matches!(error.failure(), Failure::Payloads(PayloadError::Corrupt { .. })) {
                self.fail(error);
            }
        }
        self.checkup.messages += len;
    }

    fn envelope(&mut self) {
        let Err(error) = Conversations::of(self.memory).envelope(self.todo.id()) else { return };
        // A damaged record is among the engine's own findings.
        if !matches!(error.failure(), Failure::Kv(_)) {
            self.fail(error);
        }
    }

    /// Checks that blocks follow each other without a gap, and end at or before the last message.
    fn blocks(&mut self, last: u32, len: u64) {
        let mut after = 0;
        let mut next = 0;
        while after < last {
            let limit = STEP.min((last - after) as usize);
            let blocks = match self.memory.blocks.blocks(self.todo, after, limit) {
                Ok(blocks) => blocks,
                Err(error) => {
                    self.fail(error);
                    break;
                }
            };
            let Some(end) = blocks.last() else { break };
            after = end.header.block_id.n();
            for block in &blocks {
                let (first, id) = (block.range.first().0, &block.header.block_id);
                if first != next {
                    self.find(format_args!(
                        "block {id} begins at message {first}, but the previous one ends at {next}"
                    ));
                }
                next = block.range.last().0 + 1;
                self.checkup.blocks += 1;
            }
        }
        if next > len {
            self.find("the last block ends after the last message");
        }
        self.checkup.tail += len.saturating_sub(next);
    }

    /// Checks that the saved state covers the recorded blocks.
    fn state(&mut self) {
        match state_and_blocks(self.memory, self.todo) {
            Ok((live, last)) if live.blocks == last => {}
            Ok((live, last)) => self.find(format_args!(
                "the saved state covers {} blocks, but there are {last}",
                live.blocks
            )),
            Err(error) => self.fail(error),
        }
    }

    /// Checks that the counters that recording uses can be read.
    fn counts(&mut self) {
        let (memory, todo) = (self.memory, self.todo);
        for (read, name) in [
            (memory.check_count(todo), "the count of its bytes"),
            (memory.read_numbers(todo).map(drop), "the numbers of its secrets"),
        ] {
            match read {
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    // The engine has reported the record, but neither its todo nor its meaning.
                    self.checkup.findings.retain(|known| *known != error.to_string());
                    self.find(format_args!("the record of {name} is damaged"));
                }
                Err(error) => self.fail(error),
                Ok(()) => {}
            }
        }
    }

    /// Checks that every payload has its content.
    fn payloads(&mut self) {
        let mut after = 0;
        loop {
            let metas = match self.memory.payloads.metas(self.todo, after, STEP) {
                Ok(metas) => metas,
                Err(error) => {
                    self.fail(error);
                    break;
                }
            };
            let Some(last) = metas.last() else { break };
            after = last.n;
            self.checkup.payloads += metas.len() as u64;
        }
        match self.memory.payloads.verify(self.todo) {
            Ok(findings) => {
                for found in findings {
                    // A damaged record is among the engine's own findings, without the todo's name.
                    self.checkup.findings.retain(|known| *known != found.what);
                    self.find(found);
                }
            }
            Err(error) => self.fail(error),
        }
    }
}

/// Returns the saved state of a todo and the number of its last block, both of one moment if they differ.
pub(super) fn state_and_blocks(memory: &Shared, todo: &Todo) -> Result<(Live, u32), Error> {
    loop {
        let live = Live::load(memory, todo)?;
        let last = last_block(memory, todo)?;
        if live.blocks == last || memory.blocks.head(todo)? == live.head {
            return Ok((live, last));
        }
    }
}

/// Returns the number of a todo's last block, damaged or not; 0 for none.
pub(crate) fn last_block(memory: &Shared, todo: &Todo) -> Result<u32, Error> {
    match memory.blocks.last_block(todo) {
        Ok(last) => Ok(last.map_or(0, |block| block.header.block_id.n())),
        Err(BlockError::Corrupt { key, .. }) => Ok(u32::try_from(key.n).unwrap_or(u32::MAX)),
        Err(error) => Err(error.into()),
    }
}

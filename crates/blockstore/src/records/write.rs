//! Commits to a todo.

use super::{Records, key};
use crate::{Commit, Error, vectors};
use foldback_kv::{Batch, Expect, Key, Space, Todo};

/// Records that other crates may add to a commit. Only grants concern two todos.
const OTHERS: [Space; 6] = [
    Space::Payload,
    Space::PayloadBytes,
    Space::PayloadHash,
    Space::Grant,
    Space::Plan,
    Space::Sent,
];

impl Records {
    /// Checks the commit, and writes it in one transaction.
    pub(crate) fn commit(&self, commit: Commit<'_>, model_id: &str) -> Result<(), Error> {
        let todo = commit.todo;
        let refused = |why: String| Error::Refused { todo: todo.id().clone(), why };
        let head = commit.head;
        let next = head.after(commit.messages.len());
        let mut put = Vec::with_capacity(2 * commit.messages.len() + commit.blocks.len() + 1);
        for (seq, message) in (head.messages..).zip(commit.messages) {
            let bytes = rmp_serde::to_vec(&message.stored)
                .map_err(|error| refused(format!("message {seq} cannot be written: {error}")))?;
            put.push((key(Space::Message, todo, seq), bytes));
            if !message.vectors.is_empty() {
                let bytes = vectors::encode(model_id, &message.vectors)
                    .map_err(|why| refused(format!("the vectors of message {seq}: {why}")))?;
                put.push((key(Space::Vector, todo, seq), bytes));
            }
        }
        self.check_blocks(&commit, next.messages)?;
        for block in commit.blocks {
            let n = block.header.block_id.n();
            let bytes = rmp_serde::to_vec(block)
                .map_err(|error| refused(format!("block {n} cannot be written: {error}")))?;
            put.push((key(Space::Block, todo, u64::from(n)), bytes));
        }
        put.push((key(Space::Session, todo, 0), commit.session));
        let extra = commit.extra.iter().map(|(key, _)| (key.space, key.todo));
        let deleted = commit.delete.iter().map(|delete| (delete.space, delete.todo));
        for (space, no) in extra.chain(deleted) {
            if no != todo.no() && space != Space::Grant {
                let own = todo.no();
                return Err(refused(format!("it is for todo number {own} but writes to {no}")));
            }
            if !OTHERS.contains(&space) {
                return Err(refused(format!("its additional records are of the kind {space}")));
            }
        }
        put.extend(commit.extra);
        let expect =
            Some(Expect { todo: todo.no(), head: head.to_number(), next: next.to_number() });
        self.write(todo, Batch { expect, put, delete: commit.delete })
    }

    /// Checks that blocks follow each other without a gap, and end before the open tail.
    fn check_blocks(&self, commit: &Commit<'_>, next: u64) -> Result<(), Error> {
        let Some(first) = commit.blocks.first() else { return Ok(()) };
        let todo = commit.todo;
        let last = self.last_block(todo)?;
        let (mut n, mut seq) = match &last {
            Some(last) => (last.header.block_id.n(), last.range.last().0 + 1),
            None => (0, 0),
        };
        if first.header.block_id.n() <= n {
            // Another process closed this block in the meantime, without a message.
            let found = self.head(todo)?;
            return Err(Error::conflict(todo.id(), commit.head, found));
        }
        for block in commit.blocks {
            let id = &block.header.block_id;
            n += 1;
            let wrong = if id.n() != n
                || id.todo() != todo.id()
                || block.header.todo_id != *todo.id()
            {
                format!("block number {n} of {} was expected, but it is {id}", todo.id())
            } else if block.range.first().0 != seq {
                format!(
                    "block {id} begins at message {}, but {seq} was expected",
                    block.range.first()
                )
            } else if block.range.last().0 >= next {
                format!("block {id} ends at message {}, but there are {next}", block.range.last())
            } else {
                seq = block.range.last().0 + 1;
                continue;
            };
            return Err(Error::Refused { todo: todo.id().clone(), why: wrong });
        }
        Ok(())
    }

    pub(crate) fn write(&self, todo: &Todo, batch: Batch) -> Result<(), Error> {
        self.write_if(todo, batch, None)
    }

    /// Writes a batch if a record still has the value that the batch was built on.
    pub(crate) fn write_if(
        &self,
        todo: &Todo,
        batch: Batch,
        held: Option<(Key, Vec<u8>)>,
    ) -> Result<(), Error> {
        // Otherwise `changed_in` would not show that they have changed.
        debug_assert!(
            batch.expect.is_some() || batch.put.iter().all(|(key, _)| key.space == Space::Index),
            "records of a todo are committed without its head"
        );
        self.kv.commit_if(batch, held).map_err(|error| Error::of(todo.id(), error))
    }
}

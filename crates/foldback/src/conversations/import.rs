//! Imports conversations into todos that may already hold a part of them.

use super::{Begun, Conversations, batches};
use crate::error::Failure;
use crate::{Close, Error, Session};
use foldback_core::{Recorded, SeqNo, TodoId};
use foldback_transcript::Conversation;
use rayon::prelude::*;

/// A conversation that is imported.
#[derive(Clone, Debug)]
pub struct Import<'c> {
    /// The todo that it goes into.
    pub todo: TodoId,
    /// The conversation.
    pub conversation: &'c Conversation,
    /// How many of its first messages are recorded. If the others may still change, they are left for a later import,
    /// and the last block stays open for them.
    pub ready: usize,
}

impl<'c> Import<'c> {
    /// Imports all messages of a conversation.
    #[must_use]
    pub fn whole(todo: &TodoId, conversation: &'c Conversation) -> Self {
        Self { todo: todo.clone(), conversation, ready: conversation.messages.len() }
    }
}

impl Conversations<'_> {
    /// Imports as [`import`](Self::import) does, into a todo that may already hold the conversation's first messages,
    /// because an earlier import was cut short or the conversation has grown since.
    ///
    /// # Errors
    /// When the todo holds other messages, or more of them
    /// ([`AlreadyExists`](crate::ErrorKind::AlreadyExists)); when only the last message that it holds is
    /// different now ([`SourceChanged`](crate::ErrorKind::SourceChanged)); and when the store fails.
    pub fn continue_import(
        self,
        todo: &TodoId,
        conversation: &Conversation,
    ) -> Result<Vec<Recorded>, Error> {
        let begun = self.begin(todo, conversation)?;
        self.go_on(begun, &Import::whole(todo, conversation))
    }

    /// Imports several conversations as [`continue_import`](Self::continue_import) does, each into a
    /// todo of its own; they are cut and embedded in parallel. The todos are created, and what they
    /// already hold is checked, in the order given: after one that is refused, and for which
    /// `is_passed` is false, nothing is begun. The results are in that order and end with that one.
    ///
    /// # Errors
    /// Each conversation's result has the errors of [`continue_import`](Self::continue_import).
    pub fn continue_imports(
        self,
        imports: &[Import<'_>],
        is_passed: impl Fn(&Error) -> bool,
    ) -> Vec<Result<Vec<Recorded>, Error>> {
        let mut begun = Vec::with_capacity(imports.len());
        for import in imports {
            let session = self.begin(&import.todo, import.conversation);
            let ends = session.as_ref().is_err_and(|error| !is_passed(error));
            begun.push((session, import));
            if ends {
                break;
            }
        }
        let import = |(begun, import): (Result<_, Error>, &Import<'_>)| {
            begun.and_then(|begun| self.go_on(begun, import))
        };
        begun.into_par_iter().map(import).collect()
    }

    /// Imports a conversation that went back to an earlier point, or was rewritten after the same beginning: what is new
    /// is recorded after everything that its todo holds, as [`follow`](Self::follow) does it.
    ///
    /// `None` means that the todo holds another conversation.
    ///
    /// # Errors
    /// As [`follow`](Self::follow).
    pub fn import_behind(
        self,
        import: &Import<'_>,
        but: Option<&TodoId>,
    ) -> Result<Option<Vec<Recorded>>, Error> {
        let Import { todo, conversation, ready } = import;
        let Some((_, mut recorded)) = self.follow(todo, conversation, *ready, but)? else {
            return Ok(None);
        };
        if !recorded.is_empty() {
            let todo = self.memory.find(todo)?;
            let mut session = Session::resume(self.memory.clone(), todo)?;
            close(&mut session, import, &mut recorded)?;
        }
        Ok(Some(recorded))
    }

    /// Records the part of a conversation that its todo does not hold yet, and closes its last block
    /// unless more of it is to come.
    fn go_on(self, begun: Begun, import: &Import<'_>) -> Result<Vec<Recorded>, Error> {
        let is_new = begun.is_new;
        let recorded = self.record_rest(begun, import);
        recorded.map_err(|error| self.undone(&import.todo, is_new, error))
    }

    fn record_rest(self, begun: Begun, import: &Import<'_>) -> Result<Vec<Recorded>, Error> {
        let Begun { mut session, mut checked, .. } = begun;
        let Import { conversation, ready, .. } = *import;
        let mut recorded = Vec::new();
        loop {
            self.check_held(&session.todo, checked..session.len(), conversation)?;
            let held = usize::try_from(session.len()).unwrap_or(usize::MAX);
            let rest = conversation.messages.get(held..ready).unwrap_or_default();
            let Some(batch) = batches(rest).next() else { break };
            match session.record_all_at(SeqNo(session.len()), batch.to_vec()) {
                Ok(receipts) => {
                    recorded.extend(receipts);
                    checked = session.len();
                }
                // Another writer imports the same: what is already there need not be recorded again.
                Err(error) if matches!(error.failure(), Failure::MovedOn { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        close(&mut session, import, &mut recorded)?;
        Ok(recorded)
    }
}

/// Closes the last block. It may already be closed. A call whose result is still to come keeps it open, and so do messages
/// that may still change: the log may have been read while they were written, and they are never parted from what they
/// belong to.
fn close(
    session: &mut Session,
    import: &Import<'_>,
    recorded: &mut [Recorded],
) -> Result<(), Error> {
    let is_whole = import.ready >= import.conversation.messages.len();
    if !is_whole || session.open() == 0 || session.live.chunker.has_open_call() {
        return Ok(());
    }
    let closed = session.close(Close::End)?;
    if let Some(last) = recorded.last_mut() {
        last.closed.extend(closed);
    }
    Ok(())
}

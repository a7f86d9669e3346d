//! Records the conversations of an import.

use super::{ImportJson, print, tell};
use crate::error::CliError;
use crate::output::Output;
use crate::output::progress::Progress;
use crate::sources::{Sourced, is_branch_of};
use foldback::{ErrorKind, Import, Memory};
use foldback_core::{Recorded, TodoId};

/// The number of conversations that are imported together, and the most messages in them.
const STEP: usize = 64;
const STEP_MESSAGES: usize = 8_192;

/// Records conversations, step by step.
pub(super) struct Recording<'r> {
    memory: &'r Memory,
    out: &'r Output,
    progress: Progress,
    lenient: bool,
    trunks: Trunks,
    refused: u64,
}

/// A conversation, and what is imported of it.
pub(super) struct Taken {
    pub(super) todo: TodoId,
    pub(super) sourced: Sourced,
    /// How many of its first messages are recorded.
    pub(super) ready: usize,
    /// The todo of the conversation that left this one as a branch.
    trunk: Option<TodoId>,
    /// Whether its messages may have been recorded before they became a branch.
    is_left: bool,
}

impl Taken {
    fn import(&self) -> Import<'_> {
        let Self { todo, sourced, ready, .. } = self;
        Import { todo: todo.clone(), conversation: &sourced.conversation, ready: *ready }
    }
}

impl<'r> Recording<'r> {
    pub(super) fn new(memory: &'r Memory, out: &'r Output, lenient: bool, messages: u64) -> Self {
        let progress = out.progress("importing", messages);
        Self { memory, out, progress, lenient, trunks: Trunks::default(), refused: 0 }
    }

    /// Records the next conversations, the only one of them in the todo `named`; `false` if there are none.
    pub(super) fn step(
        &mut self,
        conversations: &mut impl Iterator<Item = Result<Sourced, CliError>>,
        named: Option<&TodoId>,
    ) -> Result<bool, CliError> {
        let step = self.next(conversations, named)?;
        let imports: Vec<_> = step.iter().filter(|one| !one.is_left).map(Taken::import).collect();
        let imported = self.memory.conversations().continue_imports(&imports, is_refusal);
        let is_done = step.is_empty();
        let mut imported = imported.into_iter();
        for mut taken in step {
            let result = if taken.is_left { None } else { imported.next() };
            let result = self.settled(&taken, result);
            let result = match result {
                Err(error) if is_refusal(&error) && named.is_none() => {
                    self.elsewhere(&mut taken)?.ok_or(error)
                }
                result => result,
            };
            self.progress.around(|| tell(self.out, &taken.sourced, &taken.todo));
            match result {
                Ok(recorded) => self.progress.around(|| self.report(&taken, &recorded))?,
                Err(error) if is_refusal(&error) => self.refuse(&taken, error),
                Err(error) => return Err(error.into()),
            }
            self.progress.advance(taken.sourced.conversation.messages.len() as u64);
        }
        Ok(!is_done)
    }

    /// Returns how many conversations were refused.
    pub(super) fn end(self) -> u64 {
        self.refused
    }

    /// Returns the next conversations of which there is something to record.
    fn next(
        &mut self,
        conversations: &mut impl Iterator<Item = Result<Sourced, CliError>>,
        named: Option<&TodoId>,
    ) -> Result<Vec<Taken>, CliError> {
        let (mut step, mut messages) = (Vec::new(), 0);
        while step.len() < STEP && messages < STEP_MESSAGES {
            let Some(sourced) = conversations.next().transpose()? else { break };
            let todo = named.cloned().unwrap_or_else(|| sourced.todo());
            let trunk = self.trunks.of(&sourced, &todo);
            let (ready, all) = (sourced.ready(), sourced.conversation.messages.len());
            if ready < all {
                self.out.note(format_args!(
                    "the last response of {} is still being written and is left for the next import",
                    sourced.id()
                ));
            }
            if ready == 0 {
                continue;
            }
            messages += all;
            let holds = |todo: &TodoId| self.memory.len(todo).is_ok_and(|len| len > 0);
            let is_left = trunk.as_ref().is_some_and(holds) && !holds(&todo);
            step.push(Taken { todo, sourced, ready, trunk, is_left });
        }
        Ok(step)
    }

    /// Returns what was recorded of a conversation. One that went back to an earlier point, or was rewritten after the
    /// same beginning, continues in its todo after everything there.
    fn settled(
        &self,
        taken: &Taken,
        imported: Option<Result<Vec<Recorded>, foldback::Error>>,
    ) -> Result<Vec<Recorded>, foldback::Error> {
        let conversations = self.memory.conversations();
        let behind = || conversations.import_behind(&taken.import(), taken.trunk.as_ref());
        let refusal = match imported {
            None => return Ok(behind()?.unwrap_or_default()),
            Some(Err(error)) if is_refusal(&error) && taken.sourced.conversation.is_log() => error,
            Some(result) => return result,
        };
        let recorded = behind()?.ok_or(refusal)?;
        if !recorded.is_empty() {
            self.progress.around(|| {
                self.out.note(format_args!(
                    "{} went back to an earlier point or was rewritten; what is new follows everything in the todo {}",
                    taken.sourced.id(),
                    taken.todo
                ));
            });
        }
        Ok(recorded)
    }

    /// Imports a conversation into the todo that an earlier import gave it, because another file had its id; `None` if
    /// there is none.
    fn elsewhere(&self, taken: &mut Taken) -> Result<Option<Vec<Recorded>>, CliError> {
        let holds = |todo: &TodoId| self.memory.len(todo).is_ok_and(|len| len > 0);
        let mut others = taken.sourced.other_todos();
        let of_file = others.next().filter(holds);
        for todo in of_file.into_iter().chain(others.take_while(holds)) {
            let import = Import { todo: todo.clone(), ..taken.import() };
            match self.memory.conversations().continue_imports(&[import], is_refusal).pop() {
                Some(Ok(recorded)) => {
                    taken.todo = todo;
                    return Ok(Some(recorded));
                }
                Some(Err(error)) if !is_refusal(&error) => return Err(error.into()),
                _ => {}
            }
        }
        Ok(None)
    }

    fn report(&self, taken: &Taken, recorded: &[Recorded]) -> Result<(), CliError> {
        match &taken.trunk {
            Some(trunk) if taken.is_left && recorded.is_empty() => {
                let id = taken.sourced.id();
                self.out.note(format_args!("what was said in {id} is in the todo {trunk} already"));
                Ok(())
            }
            _ => print(self.out, &ImportJson::of(taken, recorded)),
        }
    }

    /// Reports a conversation that its todo does not accept.
    fn refuse(&mut self, taken: &Taken, error: foldback::Error) {
        self.refused += 1;
        let Sourced { file, line, .. } = &taken.sourced;
        let sentence = CliError::from(error).sentence();
        self.progress.around(|| match self.lenient {
            true => self.out.note(format_args!("skipped: {file}, line {line}: {sentence}")),
            false => crate::output::error(format_args!("{file}, line {line}: {sentence}")),
        });
    }
}

/// Whether an error means that a todo holds something else than the conversation.
fn is_refusal(error: &foldback::Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::SourceChanged)
}

/// The todos of the conversations of a file that later ones in it may be branches of.
#[derive(Default)]
struct Trunks {
    file: String,
    todos: Vec<(String, TodoId)>,
}

impl Trunks {
    /// Returns the todo of the conversation that this one is a branch of, if it is one.
    fn of(&mut self, sourced: &Sourced, todo: &TodoId) -> Option<TodoId> {
        if self.file != sourced.file {
            *self = Self { file: sourced.file.clone(), todos: Vec::new() };
        }
        let id = sourced.conversation.id.as_deref()?;
        let trunk = self.todos.iter().find(|(trunk, _)| is_branch_of(id, trunk));
        if let Some((_, todo)) = trunk {
            return Some(todo.clone());
        }
        self.todos.push((id.to_owned(), todo.clone()));
        None
    }
}

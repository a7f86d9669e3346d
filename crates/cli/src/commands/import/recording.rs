//! Records the conversations of an import.

use super::{ImportJson, print, tell, tell_odd};
use crate::error::CliError;
use crate::output::Output;
use crate::output::progress::Progress;
use crate::sources::{Holders, Sourced, as_named, goes_back, holds, trunks};
use foldback::{ErrorKind, Import, Memory};
use foldback_core::{Recorded, TodoId};
use foldback_transcript::Conversation;
use std::collections::{HashMap, VecDeque};

/// The number of conversations that are imported together, and the most messages in them.
const STEP: usize = 64;
const STEP_MESSAGES: usize = 8_192;

/// Records conversations, step by step.
pub(super) struct Recording<'r> {
    memory: &'r Memory,
    holders: &'r Holders<'r>,
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
    /// The conversation with its name as its id, if its todo would not show the name.
    named: Option<Conversation>,
    /// How many of its first messages are recorded.
    pub(super) ready: usize,
    /// The todo of the conversation that left this one as a branch.
    trunk: Option<TodoId>,
    /// Whether its messages may have been recorded before they became a branch.
    is_left: bool,
}

impl Taken {
    fn import(&self) -> Import<'_> {
        let Self { todo, sourced, named, ready, .. } = self;
        let named = named.as_ref().filter(|_| *todo == sourced.todo());
        let conversation = named.unwrap_or(&sourced.conversation);
        Import { todo: todo.clone(), conversation, ready: *ready }
    }
}

impl<'r> Recording<'r> {
    pub(super) fn new(
        holders: &'r Holders<'r>,
        out: &'r Output,
        lenient: bool,
        messages: u64,
    ) -> Self {
        let (memory, progress) = (holders.memory(), out.progress("importing", messages));
        Self { memory, holders, out, progress, lenient, trunks: Trunks::default(), refused: 0 }
    }

    /// Records the next conversations, into the todo `named` if one is given; `false` if there are none.
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
        let mut step = VecDeque::from(step);
        while let Some(mut taken) = step.pop_front() {
            let planned = taken.todo.clone();
            let result = if taken.is_left { None } else { imported.next() };
            let result = match result {
                Some(Err(error)) if is_refusal(&error) => self.again(&mut taken, named, error),
                Some(result) => result,
                None => self.behind(&taken).map(Option::unwrap_or_default),
            };
            if taken.todo != planned {
                self.trunks.moved(&taken, &planned, &mut step);
            }
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
                self.progress.around(|| {
                    self.out.note(format_args!(
                        "the last response of {} is still being written and is left for the next import",
                        sourced.id()
                    ));
                });
            }
            if all == 0 {
                self.progress.around(|| tell_odd(self.out, &sourced));
            }
            if ready == 0 {
                continue;
            }
            messages += all;
            let holds = |todo: &TodoId| holds(self.memory, todo);
            let is_left = trunk.as_ref().is_some_and(holds) && !holds(&todo);
            let named = as_named(&sourced.conversation, &sourced.id(), &todo);
            step.push(Taken { todo, sourced, named, ready, trunk, is_left });
        }
        Ok(step)
    }

    /// Imports a conversation that its todo does not accept as it is: into the todo that an earlier import gave it, because
    /// others have its id, or else, if it went back to an earlier point or was rewritten after the same beginning, behind
    /// everything in the todo with the longest common beginning. If several qualify, it is refused, unless one is meant for it.
    fn again(
        &self,
        taken: &mut Taken,
        named: Option<&TodoId>,
        refusal: foldback::Error,
    ) -> Result<Vec<Recorded>, foldback::Error> {
        let refused = taken.todo.clone();
        let todos = match named {
            Some(_) => vec![(refused.clone(), 0)],
            None => {
                let Sourced { conversation, file, .. } = &taken.sourced;
                self.holders.of(taken.sourced.plain(), file, conversation)
            }
        };
        for (todo, _) in todos.iter().filter(|(todo, _)| *todo != refused) {
            taken.todo = todo.clone();
            let imports = [taken.import()];
            match self.memory.conversations().continue_imports(&imports, is_refusal).pop() {
                Some(Err(error)) if is_refusal(&error) => {}
                Some(result) => return result,
                None => {}
            }
        }
        let most = todos.first().map_or(0, |(_, common)| *common);
        let mut equal = todos.iter().filter(|(_, common)| *common == most).map(|(todo, _)| todo);
        let is_meant = |todo: &&TodoId| taken.sourced.is_meant(todo);
        let best = match equal.clone().count() {
            0 | 1 => equal.next(),
            _ => equal.find(is_meant),
        };
        if let Some(best) = best.filter(|_| goes_back(&taken.sourced.conversation)) {
            taken.todo = best.clone();
            if let Some(recorded) = self.behind(taken)? {
                return Ok(recorded);
            }
        }
        taken.todo = refused;
        Err(refusal)
    }

    /// Imports what is new in a conversation after everything in its todo; `None` if that holds another one.
    fn behind(&self, taken: &Taken) -> Result<Option<Vec<Recorded>>, foldback::Error> {
        let conversations = self.memory.conversations();
        let recorded = conversations.import_behind(&taken.import(), taken.trunk.as_ref())?;
        if !taken.is_left && recorded.as_ref().is_some_and(|recorded| !recorded.is_empty()) {
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

/// Whether an error means that a todo holds something other than the conversation.
fn is_refusal(error: &foldback::Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::SourceChanged)
}

/// The todos of the logs of a file, by their ids: later ones in it may be their branches.
#[derive(Default)]
struct Trunks {
    file: String,
    todos: HashMap<String, TodoId>,
}

impl Trunks {
    /// Returns the todo of the conversation that this one is a branch of, if it is one.
    fn of(&mut self, sourced: &Sourced, todo: &TodoId) -> Option<TodoId> {
        if self.file != sourced.file {
            *self = Self { file: sourced.file.clone(), todos: HashMap::new() };
        }
        let conversation = &sourced.conversation;
        let trunk = trunks(conversation).find_map(|id| self.todos.get(id).cloned());
        let id = conversation.id.as_ref().filter(|_| trunk.is_none() && goes_back(conversation));
        self.todos.extend(id.map(|id| (id.clone(), todo.clone())));
        trunk
    }

    /// Notes that a conversation went into another todo than was planned.
    fn moved(&mut self, taken: &Taken, planned: &TodoId, rest: &mut VecDeque<Taken>) {
        let file = &taken.sourced.file;
        let known = self.todos.values_mut().filter(|_| self.file == *file);
        let rest = rest.iter_mut().filter(|other| other.sourced.file == *file);
        let trunks = rest.filter_map(|other| other.trunk.as_mut());
        for todo in known.chain(trunks).filter(|todo| *todo == planned) {
            *todo = taken.todo.clone();
        }
    }
}

//! The notes that a run keeps in its journal, besides its calls and the model's answers.

use crate::agent::{AgentError, Task};
use crate::journal::Past;
use crate::{Executor, Journal, JournalError, Outcome, Record, RunError, StrategyName};
use foldback_planner::{StepId, StepResult};
use foldback_tool::FailureKind;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The kind under which a run's identity is noted.
const KIND: &str = "task";

/// The request and the strategy of a run.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    strategy: StrategyName,
    /// A hash.
    request: String,
}

impl Identity {
    fn of(task: &Task, strategy: &StrategyName, journal: &dyn Journal) -> Self {
        let hash = blake3::hash(journal.kept(&task.request).as_bytes()).to_hex();
        let strategy = strategy.clone();
        Self { strategy, request: hash.get(..16).unwrap_or_default().to_owned() }
    }
}

/// Checks that these records belong to a run for this request by this strategy, as far as they show.
///
/// # Errors
/// When they belong to another: its answers do not apply, and its effects would happen again.
pub(crate) fn check_task(
    records: &[Record],
    task: &Task,
    strategy: &StrategyName,
    journal: &dyn Journal,
) -> Result<(), AgentError> {
    let noted = records.iter().find_map(|record| match record {
        Record::Note { kind, body } if kind == KIND => serde_json::from_str::<Identity>(body).ok(),
        _ => None,
    });
    let given = Identity::of(task, strategy, journal);
    let found = match noted {
        Some(noted) if noted.strategy != *strategy => {
            format!("by the strategy {}, and not by {strategy}", noted.strategy)
        }
        Some(noted) if noted != given => "with another request".to_owned(),
        _ => return Ok(()),
    };
    Err(AgentError::OtherTask { run: task.run.clone(), found })
}

/// The notes of a run, and those of earlier processes. Without a journal there are none.
#[derive(Clone, Default)]
pub(crate) struct Notes {
    run: String,
    journal: Option<Arc<dyn Journal>>,
    /// Kind and body.
    past: Arc<[(String, String)]>,
}

impl Notes {
    /// Opens the notes of the run with this name. A run without a name has none.
    pub(crate) fn open(executor: &Executor, run: &str) -> Result<Self, AgentError> {
        let journal = executor.journal().filter(|_| !run.is_empty()).cloned();
        let records = match &journal {
            Some(journal) => journal.records(run).map_err(RunError::from)?,
            None => Vec::new(),
        };
        let past = records.into_iter().filter_map(|record| match record {
            Record::Note { kind, body } => Some((kind, body)),
            _ => None,
        });
        Ok(Self { run: run.to_owned(), journal, past: past.collect() })
    }

    /// Notes the identity of the run, unless that has been done.
    pub(crate) fn begin(&self, task: &Task, strategy: &StrategyName) -> Result<(), AgentError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        if self.past.iter().any(|(kind, _)| kind == KIND) {
            return Ok(());
        }
        self.note(KIND, &Identity::of(task, strategy, &**journal))
    }

    /// Returns the form in which the journal keeps a text.
    pub(crate) fn kept<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.journal.as_ref().map_or(Cow::Borrowed(text), |journal| journal.kept(text))
    }

    /// Returns the name of the run.
    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// Returns the notes of a kind from earlier processes, in order.
    pub(crate) fn past<T: DeserializeOwned>(&self, kind: &str) -> impl Iterator<Item = T> {
        let bodies = self.past.iter().filter(move |(other, _)| other == kind);
        bodies.filter_map(|(_, body)| serde_json::from_str(body).ok())
    }

    /// Writes a note.
    pub(crate) fn note(&self, kind: &str, what: &impl Serialize) -> Result<(), AgentError> {
        let Some(journal) = &self.journal else { return Ok(()) };
        let body =
            serde_json::to_string(what).map_err(JournalError::from).map_err(RunError::from)?;
        let note = Record::Note { kind: kind.to_owned(), body };
        Ok(journal.append(&self.run, &note).map_err(RunError::from)?)
    }
}

impl fmt::Debug for Notes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notes").field(&self.run).finish()
    }
}

/// Records the results of calls that were not made, or were stopped at a limit of the run: they are final,
/// and a resumed run that may do more does not make these calls behind the model's back. Calls that were
/// cancelled have no recorded result, and are made then.
pub(crate) fn settle(executor: &Executor, run: &str, outcome: &Outcome) -> Result<(), AgentError> {
    let Some(journal) = executor.journal() else { return Ok(()) };
    let is_told = |step: &StepId, result: &StepResult| match result {
        StepResult::Error { failure } => match failure.kind {
            FailureKind::Cancelled => false,
            FailureKind::Quota => true,
            _ => !outcome.calls.contains_key(step),
        },
        _ => false,
    };
    let mut told = outcome.results.iter().filter(|(step, result)| is_told(step, result)).peekable();
    if told.peek().is_none() {
        return Ok(());
    }
    let past = Past::of(journal.records(run).map_err(RunError::from)?);
    for (step, result) in told {
        if past.call(*step).is_some_and(|call| call.ended.is_some()) {
            continue;
        }
        let call = outcome.calls.get(step);
        let (key, attempts) =
            call.map(|call| (call.key.clone(), call.attempts)).unwrap_or_default();
        let ended =
            Record::Ended { step: *step, key, attempts, result: result.clone(), spent: None };
        journal.append(run, &ended).map_err(RunError::from)?;
    }
    Ok(())
}

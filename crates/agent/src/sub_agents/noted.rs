//! The records of sub-agents in the journal, by the call that they worked for: one that has ended does not
//! work again when the call does, and the run that goes on has it in its own record all the same.

use crate::agent::AgentError;
use crate::trajectory::Trajectory;
use crate::{Journal, JournalError, Record, RunError};

/// What a record is written down as.
const KIND: &str = "sub_agent";

/// Writes down what a sub-agent did for the call of this idempotency key.
pub(super) fn note_run(
    journal: &dyn Journal,
    call: &str,
    trajectory: &Trajectory,
) -> Result<(), AgentError> {
    let body = serde_json::to_string(trajectory).map_err(JournalError::from);
    let note = Record::Note { kind: KIND.to_owned(), body: body.map_err(RunError::from)? };
    Ok(journal.append(call, &note).map_err(RunError::from)?)
}

/// What sub-agents did for the call of this idempotency key, in the order in which they ended. One that
/// cannot be read is left out: nothing of the work depends on it.
pub(crate) fn noted_runs(
    journal: &dyn Journal,
    call: &str,
) -> Result<Vec<Trajectory>, JournalError> {
    let noted = journal.records(call)?.into_iter().filter_map(|record| match record {
        Record::Note { kind, body } if kind == KIND => serde_json::from_str(&body).ok(),
        _ => None,
    });
    Ok(noted.collect())
}

//! The records of sub-agents in the journal, by the call that they worked for: one that has ended does not work
//! again when the call is repeated, and the resumed run still has it in its own record.

use crate::agent::AgentError;
use crate::trajectory::Trajectory;
use crate::{Journal, JournalError, Record, RunError};

/// The kind under which a record is noted.
const KIND: &str = "sub_agent";

/// Notes the record of a sub-agent for the call with this idempotency key.
pub(super) fn note_run(
    journal: &dyn Journal,
    call: &str,
    trajectory: &Trajectory,
) -> Result<(), AgentError> {
    let body = serde_json::to_string(trajectory).map_err(JournalError::from);
    let note = Record::Note { kind: KIND.to_owned(), body: body.map_err(RunError::from)? };
    Ok(journal.append(call, &note).map_err(RunError::from)?)
}

/// Returns the records of sub-agents for the call with this idempotency key, in the order in which they ended.
/// A record that cannot be read is left out: the work does not depend on it.
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

//! A run that is killed resumes without doing anything twice.

mod killed;
mod records;
mod refused;

use crate::toolkit::{call, ms, object, spec, text, tool};
use foldback_agent::{Journal, JournalError, MemoryJournal, Record};
use foldback_planner::{FailurePolicy, Step, Template};
use foldback_tool::{Effect, ToolError};
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

/// The shapes of a plan of 50 calls.
pub(crate) const SHAPES: [&str; 3] = ["parallel", "sequential", "dag"];

/// 50 calls of `work` that take 1 to 9 ms, and proceed even if one before them failed.
pub(crate) fn fifty(shape: &str) -> Vec<Step> {
    let after = |id: u32| match shape {
        "sequential" if id > 1 => vec![id - 1],
        "dag" if id > 4 => vec![id - 4, id - 1 - id % 3],
        _ => vec![],
    };
    let step = |id: u32| {
        let mut after = after(id);
        after.sort_unstable();
        after.dedup();
        let arguments = [
            ("step", Template::Literal(id.to_string())),
            ("ms", Template::Literal((1 + id * 7 % 9).to_string())),
            ("城市", text("沈阳")),
        ];
        let step = call(id, "work", object(&arguments), &after);
        Step { on_failure: FailurePolicy::ContinueWithError, ..step }
    };
    (1..=50).map(step).collect()
}

pub(crate) fn step_of(arguments: &str) -> u32 {
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap();
    u32::try_from(arguments["step"].as_u64().unwrap()).unwrap()
}

/// The steps whose calls have a recorded end.
pub(crate) fn ended(records: &[Record]) -> BTreeSet<u32> {
    let ended = records.iter().filter_map(|record| match record {
        Record::Ended { step, .. } => Some(step.0),
        _ => None,
    });
    ended.collect()
}

/// A journal that accepts a limited number of records.
pub(crate) struct Full(pub(crate) MemoryJournal, pub(crate) Mutex<usize>);

impl Journal for Full {
    fn append(&self, run: &str, record: &Record) -> Result<(), JournalError> {
        let mut left = self.1.lock().unwrap();
        if *left == 0 {
            let source = std::io::Error::other("no space left on device");
            return Err(JournalError::Io { action: "write", path: "journal".into(), source });
        }
        *left -= 1;
        self.0.append(run, record)
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), JournalError>> {
        self.0.sync()
    }

    fn records(&self, run: &str) -> Result<Vec<Record>, JournalError> {
        self.0.records(run)
    }
}

fn fail_fast(step: Step) -> Step {
    Step { on_failure: FailurePolicy::FailFast, ..step }
}

/// Fails after 100 ms.
fn late() -> Arc<dyn foldback_tool::Tool> {
    tool(spec("late", Effect::ReadOnly), |_, _| async {
        tokio::time::sleep(ms(100)).await;
        Err(ToolError::permanent("坏了"))
    })
}

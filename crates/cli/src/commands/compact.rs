//! `foldback compact`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, text};
use crate::store;
use clap::Args;
use serde::Serialize;

/// Return space to the system, and remove forgotten bytes from the files
///
/// The store is rewritten, which needs as much free space as the store takes. If there is less, the error says how much
/// is needed and how much there is; the space of forgotten todos is reused for new messages in any case.
///
/// JSON: {"bytes_before", "bytes_after"}
#[derive(Args)]
pub(crate) struct Compact {}

#[derive(Serialize)]
struct CompactJson {
    bytes_before: u64,
    bytes_after: u64,
}

impl Compact {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let dir = store::folder(globals)?;
        let memory = store::open_existing(globals)?;
        let bytes_before = store::bytes_of(&dir);
        memory.maintenance().compact()?;
        // Closing merges the log into the main file.
        drop(memory);
        let bytes_after = store::bytes_of(&dir);
        if out.is_json() {
            out.json(&CompactJson { bytes_before, bytes_after })?;
        } else {
            let (before, after) = (text::bytes(bytes_before), text::bytes(bytes_after));
            out.line(format!("compacted: {before} before, {after} now"))?;
        }
        Ok(Outcome::Done)
    }
}

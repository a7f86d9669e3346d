//! `foldback compact`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, text};
use crate::store;
use clap::Args;
use serde::Serialize;

/// Return space to the system, and take forgotten bytes out of the files
///
/// The store is written anew, which takes as much room as it has bytes. Where there is less, the error says
/// how much is needed and how much there is; the room of what was forgotten is used for new messages all the same.
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
        // Closing works the log into the main file.
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

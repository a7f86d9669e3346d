use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::store;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Write a consistent copy of the store into a new folder
///
/// Others may go on writing meanwhile; the copy is of one moment. Indexes are not copied: they come
/// back by themselves.
///
/// JSON: {"dir", "bytes"}
#[derive(Args)]
#[command(after_long_help = "Example:\n  foldback backup ~/copies/monday\n  foldback --store \
                             ~/copies/monday verify")]
pub(crate) struct Backup {
    /// Where the copy goes: a folder that is new or empty
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

#[derive(Serialize)]
struct BackupJson {
    dir: String,
    bytes: u64,
}

impl Backup {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let memory = store::open_for_reading(globals)?;
        memory.backup(&self.dir)?;
        let bytes = store::bytes_of(&self.dir);
        let dir = self.dir.display().to_string();
        if out.is_json() {
            out.json(&BackupJson { dir, bytes })?;
        } else {
            let dir = style::paint(style::NAME, dir);
            out.line(format!("copied: {} in {dir}", text::bytes(bytes)))?;
        }
        Ok(Outcome::Done)
    }
}

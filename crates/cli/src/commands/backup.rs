//! `foldback backup`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::store;
use clap::Args;
use serde::Serialize;
use std::path::{Component, Path, PathBuf};

/// Write a consistent copy of the store into a new folder
///
/// Other processes may continue to write meanwhile; the copy is of a single moment. Indexes are not
/// copied, because they are rebuilt automatically. Neither are the records of runs, so no run can
/// be resumed from the copy. Tenants have stores of their own, so each needs a copy of its own: --tenant
/// NAME backup DIR.
///
/// JSON: {"dir", "bytes"}
#[derive(Args)]
#[command(after_long_help = "Example:\n  foldback backup ~/copies/monday\n  foldback --store \
                             ~/copies/monday verify\n  foldback --tenant acme backup ~/copies/acme")]
pub(crate) struct Backup {
    /// The folder for the copy, new or empty
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
        let dir = resolved(&self.dir);
        // A tenant's store is in the folder of all stores, unless a link leads elsewhere.
        for of in [globals, &globals.of_tenant(None)] {
            let store = resolved(&store::folder(of)?);
            if dir.starts_with(&store) {
                return Err(CliError::Usage(format!(
                    "{} lies in the store's own folder {}; choose a folder outside it",
                    self.dir.display(),
                    store.display()
                )));
            }
        }
        memory.maintenance().backup(&self.dir)?;
        let bytes = store::bytes_of(&self.dir);
        let dir = self.dir.display().to_string();
        if out.is_json() {
            out.json(&BackupJson { dir, bytes })?;
        } else {
            let dir = style::paint(style::NAME, text::plain(&dir));
            out.line(format!("copied: {} in {dir}", text::bytes(bytes)))?;
        }
        // The copy is complete even if the tenants cannot be read.
        let tenants = memory.tenants().list().unwrap_or_default();
        match tenants.iter().filter(|tenant| tenant.is_let_in()).count() as u64 {
            0 => {}
            tenants => out.note(format_args!(
                "{} of this store {} not in the copy; back up each with --tenant NAME",
                text::count(tenants, "tenant"),
                if tenants == 1 { "is" } else { "are" }
            )),
        }
        Ok(Outcome::Done)
    }
}

/// Resolves the path of a folder that may not exist yet: links are followed as far as the path exists.
fn resolved(dir: &Path) -> PathBuf {
    let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let there = dir.ancestors().find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    let Some((folder, mut resolved)) = there else { return dir };
    for component in dir.strip_prefix(folder).unwrap_or(&dir).components() {
        match component {
            Component::ParentDir => drop(resolved.pop()),
            component => resolved.push(component),
        }
    }
    resolved
}

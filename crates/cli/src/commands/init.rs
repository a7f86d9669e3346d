//! `foldback init`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use crate::store;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Make the store if there is none, and bring it up to this version
///
/// Every command that writes does the same first. This one does nothing else: in a database it makes the tables, or adds
/// those of a later version, as the role that owns them, so that other roles need no right to do so. A store that is up
/// to date stays as it is.
///
/// JSON: {"store", "engine"}
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback init
  FOLDBACK_POSTGRES_URL=postgres://foldback_owner@db.example/memory foldback --engine postgres init")]
pub(crate) struct Init {}

#[derive(Serialize)]
struct InitJson {
    store: PathBuf,
    engine: &'static str,
}

impl Init {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        drop(store::open_for_writing(globals, out)?);
        let (store, engine) = (store::folder(globals)?, globals.engine().name());
        if out.is_json() {
            out.json(&InitJson { store, engine })?;
        } else {
            out.line(format!("the store is ready ({engine}, {})", store.display()))?;
        }
        Ok(Outcome::Done)
    }
}

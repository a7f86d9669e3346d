//! `foldback grant`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, style};
use crate::store;
use clap::Args;
use foldback_core::{Reference, TodoId};
use serde::Serialize;

/// Let one todo load blocks or payloads of another
///
/// Only what is named can be loaded; a block includes its payloads. Searches stay inside their own todo. `foldback
/// todos --grants` lists the grants. A grant ends when either todo is forgotten.
///
/// JSON: {"from", "to", "granted": [refs]}, with what had not been granted before; with --revoke {"from", "to",
/// "revoked": [refs]}, with what had been.
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback grant --todo research --to report b_research_003
  foldback grant --todo research --to report store://2-k4qd store://5-ab2c
  foldback grant --todo research --to report --revoke b_research_003")]
pub(crate) struct Grant {
    /// The todo that grants access
    #[arg(long, value_name = "ID")]
    todo: TodoId,

    /// The todo that receives it
    #[arg(long, value_name = "ID")]
    to: TodoId,

    /// Revoke the grants
    #[arg(long)]
    revoke: bool,

    /// Blocks (b_...) and payloads (store://...) of the granting todo
    #[arg(value_name = "REF", required = true)]
    references: Vec<String>,
}

#[derive(Serialize)]
struct GrantJson {
    from: TodoId,
    to: TodoId,
    #[serde(skip_serializing_if = "Option::is_none")]
    granted: Option<Vec<Reference>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<Vec<Reference>>,
}

impl Grant {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let Self { todo: from, to, revoke, references } = self;
        let references = references
            .iter()
            .map(|text| Reference::parse_in(&from, text))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| CliError::Usage(error.to_string()))?;
        let memory = store::open_existing(globals)?;
        let mut changed = Vec::new();
        if revoke {
            for reference in references {
                if memory.grants().revoke(&from, &to, &reference)? {
                    changed.push(reference);
                }
            }
        } else {
            let granted = memory.grants().grant(&from, &to, &references)?;
            changed.extend(granted.into_iter().map(|grant| grant.reference));
        }
        // Revoking what was not granted does not do what was asked.
        let outcome = Outcome::clean_if(!revoke || !changed.is_empty());
        if out.is_json() {
            let (granted, revoked) =
                if revoke { (None, Some(changed)) } else { (Some(changed), None) };
            out.json(&GrantJson { from, to, granted, revoked })?;
            return Ok(outcome);
        }
        let word = if revoke { "revoked" } else { "granted" };
        for reference in &changed {
            out.line(format!("{word}: {} to {to}", style::paint(style::NAME, reference)))?;
        }
        if changed.is_empty() {
            let what = if revoke { "was not granted" } else { "was already granted" };
            out.note(format_args!("all of it {what}; nothing changed"));
        }
        Ok(outcome)
    }
}

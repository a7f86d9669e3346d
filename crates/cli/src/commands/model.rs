//! `foldback model`.

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::model_args::ModelArgs;
use crate::output::Output;
use crate::output::table::{Column, Table};
use crate::run::model_runtime;
use clap::{Args, Subcommand};
use foldback_providers::{CheckFinding, ModelCheck, public_url};
use serde::Serialize;

/// Check what the model's server supports
#[derive(Subcommand)]
pub(crate) enum Model {
    Check(Check),
}

/// Send the model's server a few requests, and report what works
///
/// About ten short requests find out whether it answers and streams, accepts tools and calls them, and what its chat
/// template supports: instructions, parallel calls, a user message after a result. Anything that it needs done
/// differently is printed as settings to write under [model].
///
/// JSON: {"model", "at", "is_usable", "findings": [{"question", "holds", "detail"}], "settings"}; `holds` is null if it
/// could not be determined. The exit code is 1 if no agent can work with the server, or if a question had no answer.
#[derive(Args)]
pub(crate) struct Check {
    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Serialize)]
struct CheckJson<'c> {
    model: &'c str,
    at: String,
    #[serde(flatten)]
    check: &'c ModelCheck,
}

impl Model {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let Self::Check(check) = self;
        check.run(globals, out)
    }
}

impl Check {
    fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let config = self.model.config(globals)?;
        let check = model_runtime()?.block_on(ModelCheck::ask(&config));
        let check = check.map_err(|error| CliError::Usage(error.message))?;
        let at = public_url(&config.base_url);
        if out.is_json() {
            out.json(&CheckJson { model: &config.name, at, check: &check })?;
        } else {
            out.line(format!("{} at {at}\n", config.name))?;
            let columns = [Column::Name(""), Column::Name(""), Column::Text("")];
            let mut table = Table::new(out, &columns);
            for CheckFinding { question, holds, detail, .. } in &check.findings {
                let sign = match holds {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => "?",
                };
                table.row([sign, question, detail]);
            }
            table.print(out)?;
            if !check.settings.is_empty() {
                out.line("\nAdd to your settings:\n\n[model]")?;
                check.settings.iter().try_for_each(|line| out.line(line))?;
            } else if check.is_usable {
                out.line("\nNo settings are needed.")?;
            }
            let is_open = check.findings.iter().any(|finding| finding.holds.is_none());
            match (check.is_usable, is_open) {
                (true, _) => {}
                (false, true) => out.note("a question had no answer: check again"),
                (false, false) => out.note("no agent can work with this server as it is"),
            }
        }
        Ok(Outcome::clean_if(check.is_usable))
    }
}

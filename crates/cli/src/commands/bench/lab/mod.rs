//! The measurements of `foldback-lab`, for the developers of foldback.

mod agent;
mod index;
mod plans;
mod recall;
#[cfg(feature = "postgres")]
mod scale;

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use clap::Subcommand;
use foldback_core::CacheTerms;
use foldback_policies::{Policy, PolicyChoice};

/// The measurements of the lab. `no_lab.rs` has the same commands for a build without it.
#[derive(Subcommand)]
pub(crate) enum Lab {
    Plans(plans::Plans),
    Agent(agent::AgentTask),
    Recall(recall::Recall),
    Index(index::Index),
    #[cfg(feature = "postgres")]
    Scale(scale::Scale),
}

impl Lab {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        match self {
            Self::Plans(plans) => plans.run(globals, out),
            Self::Agent(agent) => agent.run(globals, out),
            Self::Recall(recall) => recall.run(globals, out),
            Self::Index(index) => index.run(globals, out),
            #[cfg(feature = "postgres")]
            Self::Scale(scale) => scale.run(globals, out),
        }
    }
}

/// Refuses the options that name a store in a measurement that does not use one; `why` gives the reason.
fn refuse_stores(globals: &Globals, why: &str) -> Result<(), CliError> {
    let named = [
        ("--store", globals.store.is_some()),
        ("--engine", globals.engine.is_some()),
        ("--payloads", globals.payloads.is_some()),
        ("--embedder", globals.embedder.is_some()),
    ];
    named
        .iter()
        .find(|(_, is_named)| *is_named)
        .map_or(Ok(()), |(option, _)| Err(CliError::Usage(format!("{why}; leave out {option}"))))
}

/// The context policies with these names, each once; `auto` is the one that costs less at the prices of a typical
/// cache.
fn named_policies(names: &[String]) -> Result<Vec<Policy>, CliError> {
    let mut policies: Vec<Policy> = Vec::new();
    for name in names {
        let policy = name.parse::<PolicyChoice>()?.at(CacheTerms::default());
        if policies.iter().all(|one| one.name() != policy.name()) {
            policies.push(policy);
        }
    }
    Ok(policies)
}

//! `foldback bench agent`.

use super::{named_policies, refuse_stores};
use crate::cli::Globals;
use crate::commands::bench::{Outputs, print};
use crate::error::{CliError, Outcome};
use crate::output::{Output, terminal, text};
use clap::Args;
use foldback_core::Prices;
use foldback_lab::agent::{Config, POLICIES, measure};
use foldback_llm::{ChatModel, Retrying};
use foldback_providers::{ModelConfig, ModelFlags, ModelSources, RemoteModel};
use std::path::PathBuf;
use std::sync::Arc;

/// Have one agent do one task under several context policies
///
/// A project of invented services is written into a temporary folder. The agent's loop reads settings, large logs and
/// notes in Chinese with its real tools, takes readings that are given only once, and later writes down what it read. A
/// scripted model takes the model's place: it knows a fact only if its request shows it. What is missing it asks the
/// policy for, with one search and one look; then it reads the source again; then it writes that it does not know. It
/// always asks when it should, which flatters every policy with tools for asking.
#[derive(Args)]
#[command(after_long_help = "\
JSON: {\"services\", \"seed\", \"policies\": [{\"policy\", \"calls\", \"input_tokens\", \"peak_tokens\",
\"cached_tokens\", \"cost_units\", \"output_tokens\", \"tool_calls\", \"facts\", \"visible\", \"recalled\",
\"read_again\", \"lost\", \"recalls\", \"right_reports\"}]}; costs are in ordinary input tokens, with a
prefix cache or without, whichever is cheaper for the whole task.")]
pub(crate) struct AgentTask {
    /// The context policies, by their names (see `foldback bench savings --help`)
    #[arg(long, value_name = "POLICY,..", value_delimiter = ',', default_values_t = POLICIES.map(str::to_owned))]
    contexts: Vec<String>,

    /// The number of services in the project; four facts of each are read and written down
    #[arg(long, value_name = "N", default_value_t = 12,
          value_parser = clap::value_parser!(u32).range(1..=200))]
    services: u32,

    /// The seed for facts and the sizes of logs
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,

    /// Have this model write the summaries of policies that have some, if FOLDBACK_BASE_URL or
    /// FOLDBACK_SETTINGS says where it is served; otherwise they are extracted by rule
    #[arg(long, value_name = "M")]
    summary_model: Option<String>,

    #[command(flatten)]
    outputs: Outputs,
}

impl AgentTask {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        refuse_stores(globals, "bench agent keeps nothing")?;
        let policies = named_policies(&self.contexts)?;
        let Self { services, seed, .. } = self;
        let summary_model = self.summary_model.as_deref().map(summary_model).transpose()?;
        let told = |why: &str| {
            // Nothing can be reported if stderr is gone.
            let why = text::plain(why);
            drop(terminal::print_aside(&format!("a summary is extracted by rule: {why}\n")));
        };
        let prices = Prices::default();
        let found = measure(&Config { policies, services, seed, prices, summary_model, told })?;
        self.outputs.write_csv(&found.sheet())?;
        self.outputs.write_page(|| found.page())?;
        match out.is_json() {
            true => out.json(&found)?,
            false => [found.cost_sheet(), found.facts_sheet()]
                .iter()
                .try_for_each(|sheet| print(sheet, out))?,
        }
        Ok(Outcome::Done)
    }
}

/// The model that writes summaries.
fn summary_model(name: &str) -> Result<Arc<dyn ChatModel>, CliError> {
    let mut flags = ModelFlags::default();
    flags.name = Some(name.to_owned());
    let file = std::env::var_os("FOLDBACK_SETTINGS").filter(|file| !file.is_empty());
    let sources = ModelSources::of_process(flags, file.map(PathBuf::from));
    let config = ModelConfig::load(&sources).map_err(|error| CliError::Usage(error.message))?;
    let retry = config.retry;
    let model = RemoteModel::new(config).map_err(|error| CliError::Usage(error.message))?;
    Ok(Arc::new(Retrying::new(model, retry)))
}

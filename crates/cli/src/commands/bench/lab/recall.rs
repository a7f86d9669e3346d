//! `foldback bench recall`.

use super::{named_policies, refuse_stores};
use crate::cli::Globals;
use crate::commands::bench::{Outputs, print};
use crate::error::{CliError, Outcome};
use crate::model_args::ModelArgs;
use crate::output::Output;
use crate::run::model_runtime;
use clap::Args;
use foldback_agent::ContextWindow;
use foldback_lab::recall::{Config, measure};
use foldback_llm::Retrying;
use foldback_providers::{RemoteModel, ServerFacts};
use std::sync::Arc;

/// Ask a model of yours for facts that were mentioned once, long ago
///
/// Each fact is at the beginning of a conversation of its own about other things; the agent's loop asks for it at the
/// end, under several context policies, foldback's own with hints and without. A model that uses the policy's tools can
/// look up what a request does not show. A run is right if the model names the value, even if its answer is cut off
/// after it. The temperature is 0.
#[derive(Args)]
#[command(after_long_help = "\
JSON: {\"model\", \"needles\", \"tokens\", \"seed\", \"contexts\": [{\"context\", \"right\", \"right_english\",
\"right_chinese\", \"unanswered\", \"calls\", \"recalls\", \"input_tokens\", \"output_tokens\", \"took_s_p50\",
\"reasons\"}]}; `reasons` counts why runs came to no answer. Tokens are the provider's own.")]
pub(crate) struct Recall {
    #[command(flatten)]
    model: ModelArgs,

    /// The context policies, by their names (see `foldback bench savings --help`)
    #[arg(long, value_name = "POLICY,..", value_delimiter = ',',
          default_values_t = ["full", "foldback", "summary-top-n"].map(str::to_owned))]
    contexts: Vec<String>,

    /// The number of facts to ask for; every second one is in Chinese
    #[arg(long, value_name = "N", default_value_t = 40,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    needles: u32,

    /// The estimated tokens of the shortest conversation
    #[arg(long, value_name = "N", default_value_t = 3_000,
          value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    min_tokens: u64,

    /// The estimated tokens of the longest conversation
    #[arg(long, value_name = "N", default_value_t = 30_000,
          value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    max_tokens: u64,

    /// The most tokens of an answer: a small model may never stop
    #[arg(long, value_name = "N", default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(16..))]
    answer_tokens: u32,

    /// The seed for values and conversations
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,

    #[command(flatten)]
    outputs: Outputs,
}

impl Recall {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        refuse_stores(globals, "bench recall keeps nothing")?;
        if self.min_tokens > self.max_tokens {
            let Self { min_tokens, max_tokens, .. } = self;
            let why = format!(
                "--min-tokens is {min_tokens}, but it must not exceed --max-tokens, which is {max_tokens}"
            );
            return Err(CliError::Usage(why));
        }
        let policies = named_policies(&self.contexts)?;
        let usage = |error: foldback_llm::ModelError| CliError::Usage(error.message);
        let config = self.model.config(globals)?;
        let facts = model_runtime()?.block_on(ServerFacts::ask(&config)).map_err(usage)?;
        let config = config.completed_by(&facts).with_max_tokens(self.answer_tokens);
        let window = ContextWindow::new(config.context_tokens, config.max_tokens);
        let retry = config.retry;
        let model = Arc::new(Retrying::new(RemoteModel::new(config).map_err(usage)?, retry));
        let (needles, tokens) = (self.needles, self.min_tokens..=self.max_tokens);
        let config = Config { model, window, policies, needles, tokens, seed: self.seed };
        let mut progress = out.progress("questions", config.questions());
        let found = measure(&config, || progress.advance(1))?;
        drop(progress);
        self.outputs.write_csv(&found.sheet())?;
        self.outputs.write_page(|| found.page())?;
        match out.is_json() {
            true => out.json(&found)?,
            false => print(&found.sheet(), out)?,
        }
        Ok(Outcome::Done)
    }
}

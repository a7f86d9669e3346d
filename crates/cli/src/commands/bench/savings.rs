//! `foldback bench savings`.

use super::named_settings::{Measured, NamedSettings};
use super::{Inputs, LEAST_CACHED, Outputs, print, write_csv};
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use crate::store;
use clap::{Args, value_parser};
use foldback_bench::savings::{Config, PRICE_MOST, measure};
use foldback_core::{CacheTerms, Prices};
use foldback_policies::{Policy, PolicyChoice, Summaries};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

/// Measure what a model would be sent under each policy, and what would be lost
///
/// Each conversation is fed message by message through foldback and through other approaches. For every call of the
/// recording the prompt is counted with o200k, tools included, and metered as a provider with a prefix cache bills it.
/// And for every call of a tool, each string or number of four characters or more among its arguments that occurs in an
/// earlier message is looked for: it is visible in the prompt, recalled by one search or one look at what the search
/// found (made without the value, 2,000 tokens each), reachable by reading on, or lost. A search costs one more model
/// call, and a look another; both are counted. Where others ask a model for a summary, one made by rule is used
/// instead, and its call is counted as the model's would be.
#[derive(Args)]
#[command(after_long_help = "\
Cost of a call, in ordinary input tokens: what the prompt shares with the beginning of the one before,
in runs of 16 tokens and from 1,024 tokens on, at --price-read; the rest of its stable part, which is
written into the cache, at --price-write; all else at --price-plain. The cache never forgets, unless
--cache-life says so: then the times of the messages count, or --gap where they have none. A
conversation for which a policy would pay less without any cache is billed without. Tools count as the
chat-completions API takes them, at the start of every prompt.

JSON: {\"conversations\": [{\"id\", \"kind\", \"tokens\", \"policies\": {NAME: {...}}}], \"policies\":
{NAME: {...}}, \"kinds\", \"comparisons\", \"targets\", \"curves\"}; of each policy \"input_tokens\",
\"peak_tokens\", \"cached_tokens\", \"cost_units\", \"calls\", \"facts\", \"visible\", \"recalled\",
\"reachable\", \"lost\", \"ceiling\", \"payload\", \"own\", \"hit_rate\", \"in_out_ratio\",
\"prefix_moves\", \"without_recalls\"; \"compact_json\" and \"repetitions\" count results that were shown in
fewer tokens ({\"results\", \"tokens\"}, the tokens over all prompts), \"pointers\" the blocks that prompts named, those
that the next call needed, and what they held of that ({\"blocks\", \"needed\", \"facts\"}). Dialogues without an assistant are summed up apart, as
\"dialogue, users only\". The curves hold the tokens of prompts, without recalls and without the calls that
a policy makes for its own purposes. With settings of [memory] and [view], or model.prices, that are not the
built-in ones there is \"settings_in_force\": [{\"key\", \"value\", \"source\", \"not_measured\"}]; the last
says why the figures do not reflect a setting, if they do not. The text names them below the figures.

Examples:
  foldback bench savings examples/coding-session.jsonl
  foldback bench savings --csv savings.csv recordings/")]
pub(crate) struct Savings {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    outputs: Outputs,

    /// The price of a token that is read from the cache [default: 0.1, or that of model.prices]
    #[arg(long, value_name = "X")]
    price_read: Option<f64>,

    /// The price of a token that is written into the cache [default: 1.25, or that of model.prices]
    #[arg(long, value_name = "X")]
    price_write: Option<f64>,

    /// The price of a token outside the cache [default: 1, or that of model.prices]
    #[arg(long, value_name = "X")]
    price_plain: Option<f64>,

    /// Let the provider's cache lose what was not read for this many seconds [default: model.cache_life_seconds, or
    /// never]
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..))]
    cache_life: Option<u64>,

    /// Let this many seconds pass between two calls of a conversation whose messages carry no times
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u64).range(1..))]
    gap: Option<u64>,

    /// Count this many tokens of tools at the start of every prompt of every policy, besides those that the recording
    /// declares: most recordings do not say which tools the agent had
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = value_parser!(u32))]
    agent_tools: u32,

    /// Measure only these policies, separated by commas; auto is the one that these prices choose, strict and cache-aware
    /// are short for foldback and foldback-cache-aware [default: all]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    policies: Vec<String>,

    /// Write each fact that a policy neither showed nor recalled, as CSV
    #[arg(long, value_name = "OUT.csv")]
    missed: Option<PathBuf>,
}

impl Savings {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let settings = NamedSettings::of(Measured::Prompts, globals);
        let config = self.config(globals)?;
        let cases = self.inputs.cases(out)?;
        let messages = cases.iter().map(|case| case.conversation.messages.len() as u64).sum();
        let progress = Mutex::new(out.progress("measuring", messages));
        let savings = measure(&cases, &config, &|messages| {
            if let Ok(mut progress) = progress.lock() {
                progress.advance(messages);
            }
        })?;
        drop(progress);
        self.outputs.write_csv(&savings.rows())?;
        self.outputs.write_page(|| Ok(settings.on(savings.page()?)))?;
        if let Some(path) = &self.missed {
            write_csv(path, &savings.missed())?;
        }
        if out.is_json() {
            settings.json(&savings, out)?;
        } else {
            savings.sheets().iter().try_for_each(|sheet| print(sheet, out))?;
            settings.print(out)?;
        }
        Ok(Outcome::Done)
    }

    /// The plan of the measurement: from the flags, then the settings.
    fn config(&self, globals: &Globals) -> Result<Config, CliError> {
        let view = &globals.settings.view;
        let prices = self.prices(globals.settings.model.prices.unwrap_or_default())?;
        let model = &globals.settings.model;
        let least = model.least_cached_tokens.unwrap_or(LEAST_CACHED);
        let cache_life = self.cache_life.or(model.cache_life_seconds).map(Duration::from_secs);
        let life = cache_life.unwrap_or(Duration::MAX);
        let terms = CacheTerms { prices, least, life };
        let mut policies: Vec<Policy> = Vec::new();
        for name in &self.policies {
            let policy = name.parse::<PolicyChoice>()?.at(terms);
            if policies.iter().all(|one| one.name() != policy.name()) {
                policies.push(policy);
            }
        }
        if policies.is_empty() {
            policies = Policy::all();
        }
        // Another tool's policy in a different mode is measured besides them.
        let own = view.policy.as_deref().and_then(Policy::named);
        let own = own.filter(|_| self.policies.is_empty());
        policies.extend(own.filter(|own| policies.iter().all(|one| one.name() != own.name())));
        let shown = view.of(Policy::CacheAware.view());
        Ok(Config {
            prices,
            cache_life,
            gap: self.gap.map(Duration::from_secs),
            agent_tools: u64::from(self.agent_tools),
            policies,
            options: store::temporary_options(globals)?.with_view(shown),
            budget: view.budget(),
            summaries: Summaries { fields: view.summary_fields.clone(), written_by: None },
        })
    }

    fn prices(&self, usual: Prices) -> Result<Prices, CliError> {
        let read = self.price_read.unwrap_or(usual.read);
        let write = self.price_write.unwrap_or(usual.write);
        let plain = self.price_plain.unwrap_or(usual.plain);
        let prices = Prices { read, write, plain };
        if prices.is_sound() && [read, write, plain].iter().all(|price| *price <= PRICE_MOST) {
            return Ok(prices);
        }
        Err(CliError::Usage(format!(
            "the prices are {read}, {write} and {plain}; expected numbers from 0 to \
             {PRICE_MOST}, and --price-plain more than 0"
        )))
    }
}

//! One task, done by one agent with real tools, under one context policy after the other.
//!
//! A generated project is written to a temporary folder. The agent reads settings, large logs and notes
//! in Chinese, takes readings that are given only once, and later has to write down what it read. A
//! scripted model (`model.rs`) takes the place of a real one and knows a fact only if its request shows it.
//! So the policies differ in what they send, what has to be searched for, and what is no longer
//! available.

mod billed;
mod model;
mod page;
mod script;
mod world;

pub use model::FactCounts;

use billed::Billed;
use foldback::Options;
use foldback_agent::{Agent, Executor, React, Stop, Task};
use foldback_baselines::stm_ltm::Compressor;
use foldback_bench::{BenchError, Sheet, Usage, measured_context};
use foldback_core::{Prices, Timestamp, TodoId, thousands};
use foldback_llm::ChatModel;
use foldback_policies::{Policy, Summaries, SummaryModel};
use foldback_tool::Toolbox;
use foldback_tools::{Permissions, toolset};
use model::Acting;
use script::{REQUEST, SYSTEM_PROMPT, turns};
use serde::Serialize;
use std::sync::Arc;
use world::{Field, World};

/// What is measured.
#[derive(Clone)]
pub struct Config {
    /// The policies, in the order of the table.
    pub policies: Vec<Policy>,
    /// The number of services in the project; for each, four facts are read and written down.
    pub services: u32,
    /// Facts and the sizes of logs are drawn from this number.
    pub seed: u64,
    /// What tokens cost.
    pub prices: Prices,
    /// A model that writes the summaries of policies that have some; otherwise a rule writes them.
    pub summary_model: Option<Arc<dyn ChatModel>>,
    /// Called with the reason why such a summary was not written.
    pub told: fn(&str),
}

/// The policies that are compared if none are named.
pub const POLICIES: [&str; 6] =
    ["foldback", "foldback-cache-aware", "deepagents", "summary-top-n", "stm-ltm", "full"];

/// The results of the task under each policy.
#[derive(Clone, Debug, Serialize)]
pub struct Agents {
    /// The number of services in the project.
    pub services: u32,
    /// The seed of the project.
    pub seed: u64,
    /// The policies, in the order in which they were named.
    pub policies: Vec<Figures>,
}

/// The results of the task under one policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// The policy.
    pub policy: String,
    /// The usage of the requests.
    #[serde(flatten)]
    pub usage: Usage,
    /// The tokens that models wrote: the agent's, and the policy's own.
    pub output_tokens: u64,
    /// The number of calls of the agent's tools.
    pub tool_calls: u64,
    /// The fates of the facts.
    #[serde(flatten)]
    pub facts: FactCounts,
    /// The number of correct reports; if all are right, there are as many as facts of services.
    pub right_reports: u64,
}

/// Runs the task under each policy.
///
/// # Errors
/// When a folder cannot be written, a policy cannot be started, or a run does not finish.
pub fn measure(config: &Config) -> Result<Agents, BenchError> {
    let failed =
        |error: std::io::Error| BenchError::Input(format!("no runtime could be started: {error}"));
    let world = Arc::new(World::new(config.services, config.seed));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    // The agent blocks while it waits for a summary, so the summary is requested elsewhere.
    let aside = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let aside = aside.map_err(failed)?;
    let written_by = config.summary_model.as_ref().map(|model| {
        let writer = SummaryModel::new(Arc::clone(model), aside.handle().clone());
        Arc::new(writer.telling(config.told)) as Arc<dyn Compressor>
    });
    let summaries = Summaries { written_by, ..Summaries::default() };
    let mut policies = Vec::with_capacity(config.policies.len());
    for policy in &config.policies {
        policies.push(runtime.block_on(run(*policy, &world, config.prices, &summaries))?);
    }
    Ok(Agents { services: config.services, seed: config.seed, policies })
}

async fn run(
    policy: Policy,
    world: &Arc<World>,
    prices: Prices,
    summaries: &Summaries,
) -> Result<Figures, BenchError> {
    let failed = |what: String| BenchError::Input(format!("{}: {what}", policy.name()));
    let folder = tempfile::tempdir().map_err(|error| failed(error.to_string()))?;
    world.write(folder.path()).map_err(|error| failed(error.to_string()))?;
    let mut permissions = Permissions::in_workspace(folder.path());
    // Whole logs are read, so that policies differ in what they keep of them.
    permissions.files.output_bytes = 256 << 10;
    let mut tools = toolset(&permissions).map_err(|error| failed(error.to_string()))?;
    tools.push(world.gauge());
    let toolbox = Toolbox::new(tools).map_err(|error| failed(error.to_string()))?;

    let turns = turns(world);
    let model = Arc::new(Acting::new(Arc::clone(world), turns, prices));
    let agent = Agent::new(model.clone(), Executor::new(toolbox)).with_system_prompt(SYSTEM_PROMPT);
    let react = React::default();
    let todo = TodoId::new("records").map_err(|error| failed(error.to_string()))?;
    let (terms, options) = ((prices, None), Options::default());
    let context = measured_context(policy, todo, terms, summaries, &options, || Timestamp(0))?;
    let mut context = Billed { context, model: Arc::clone(&model) };
    let report = agent.run(&react, &mut context, &Task::new("records", REQUEST)).await;
    let report = report.map_err(|error| failed(error.to_string()))?;
    let stop = &report.trajectory.outcome.stop;
    if *stop != Stop::Answered || model.left() > 0 {
        return Err(failed(format!("the task was not done: {stop:?}")));
    }

    let right = world.services.iter().flat_map(|service| Field::ALL.map(|field| (service, field)));
    let right = right.filter(|(service, field)| {
        let path = format!("reports/{}-{}.txt", service.name, field.name());
        let written = std::fs::read_to_string(folder.path().join(path));
        written.is_ok_and(|written| written.trim_end() == service.fact(*field))
    });
    let (usage, output_tokens) = model.usage();
    let is_own = |tool: &str| tool.starts_with("file_") || tool == "gauge_read";
    let calls = report.trajectory.tool_calls().filter(|call| is_own(&call.function));
    Ok(Figures {
        policy: policy.name().to_owned(),
        usage: usage.rounded(),
        output_tokens,
        tool_calls: calls.count() as u64,
        facts: model.facts(),
        right_reports: right.count() as u64,
    })
}

impl Agents {
    /// Returns what was sent, and its cost.
    #[must_use]
    pub fn cost_sheet(&self) -> Sheet {
        let title = format!("One task over {} services, by the same agent", self.services);
        let numbers = ["calls", "input", "peak", "cached", "output", "cost"];
        let mut sheet = Sheet::new(&title, &["context"], &numbers);
        for Figures { policy, usage, output_tokens, .. } in &self.policies {
            let cost = usage.cost_units.round() as u64;
            let Usage { calls, input_tokens, peak_tokens, cached_tokens, .. } = *usage;
            let numbers = [calls, input_tokens, peak_tokens, cached_tokens, *output_tokens, cost];
            sheet.row([policy.clone()].into_iter().chain(numbers.map(thousands)));
        }
        sheet
    }

    /// Returns the fates of the facts that were needed.
    #[must_use]
    pub fn facts_sheet(&self) -> Sheet {
        let title = "The facts that it had read, when they were needed";
        let numbers =
            ["facts", "visible", "recalled", "read again", "lost", "recalls", "right files"];
        let mut sheet = Sheet::new(title, &["context"], &numbers);
        for Figures { policy, facts, right_reports, .. } in &self.policies {
            let FactCounts { facts, visible, recalled, read_again, lost, recalls } = *facts;
            let numbers = [facts, visible, recalled, read_again, lost, recalls, *right_reports];
            sheet.row([policy.clone()].into_iter().chain(numbers.map(thousands)));
        }
        sheet
    }

    /// Returns all figures in one table, for a file.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let (cost, facts) = (self.cost_sheet(), self.facts_sheet());
        let columns = cost.columns.into_iter().chain(facts.columns.into_iter().skip(1)).collect();
        let rows = cost.rows.into_iter().zip(facts.rows);
        let rows =
            rows.map(|(cost, facts)| cost.into_iter().chain(facts.into_iter().skip(1)).collect());
        Sheet { title: cost.title, columns, names: 1, rows: rows.collect() }
    }
}

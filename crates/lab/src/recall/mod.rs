//! A fact that was stated once, long ago, and a model that is asked for it: in which context does it
//! know the answer?
//!
//! Any model is asked, by the agent's own loop. Each needle (`needle.rs`) is a separate conversation; the
//! same ones are recorded in each context.

mod needle;
mod page;

use foldback::{Options, ViewConfig};
use foldback_agent::trajectory::ModelCall;
use foldback_agent::{
    Agent, ContextWindow, Executor, React, ReactSettings, Report, Stop, Task,
    reference_system_prompt,
};
use foldback_bench::{BenchError, Sheet, measured_context, quantile};
use foldback_core::{ContextManager, Message, Prices, Timestamp, TodoId, thousands};
use foldback_llm::{ChatModel, Sampling};
use foldback_policies::{Policy, Summaries};
use needle::Needle;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;

/// The maximum number of model calls for one answer: it may look, look again, and answer.
const MAX_STEPS: u32 = 6;

/// What is measured.
#[derive(Clone)]
pub struct Config {
    /// The model that answers.
    pub model: Arc<dyn ChatModel>,
    /// Its window.
    pub window: ContextWindow,
    /// The policies, in the order of the table. The memory's own are measured with hints and without.
    pub policies: Vec<Policy>,
    /// The number of facts asked for, each in a separate conversation; every second one in Chinese.
    pub needles: u32,
    /// The tokens of the shortest and of the longest conversation, estimated; the others lie between them.
    pub tokens: RangeInclusive<u64>,
    /// The seed of values and conversations.
    pub seed: u64,
}

/// How much the model knew in each context.
#[derive(Clone, Debug, Serialize)]
pub struct Recalled {
    /// The model, as its provider knows it.
    pub model: String,
    /// The number of facts asked for in each context.
    pub needles: u32,
    /// The tokens of the shortest and of the longest conversation.
    pub tokens: (u64, u64),
    /// The seed of values and conversations.
    pub seed: u64,
    /// The contexts, in order.
    pub contexts: Vec<Figures>,
}

/// What the model knew in one context, and the cost.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    /// The context.
    pub context: String,
    /// The runs in which the model named the value, even if its answer was cut off after it.
    pub right: u32,
    /// Those of them with English questions, and with Chinese ones.
    pub right_english: u32,
    /// See [`right_english`](Self::right_english).
    pub right_chinese: u32,
    /// The other runs without an answer: the request did not fit, the steps ran out, or the model failed.
    pub unanswered: u32,
    /// How often the model was asked.
    pub calls: u64,
    /// The calls of memory tools.
    pub recalls: u64,
    /// The tokens of all requests, as the provider counts them.
    pub input_tokens: u64,
    /// The tokens of all answers.
    pub output_tokens: u64,
    /// The median time from a question to its answer, in seconds.
    pub took_s_p50: f64,
    /// The reasons why runs gave no answer, with their counts.
    pub reasons: BTreeMap<String, u32>,
}

/// Asks for each fact in each context; `asked` is called after each of the [`questions`](Config::questions).
///
/// # Errors
/// When a context cannot be created or fails. A model that fails counts as not having answered
/// correctly.
pub fn measure(config: &Config, mut asked: impl FnMut()) -> Result<Recalled, BenchError> {
    let failed =
        |error: std::io::Error| BenchError::Input(format!("no runtime could be started: {error}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let executor = Executor::new(foldback_tool::Toolbox::default());
    let agent = Agent::new(Arc::clone(&config.model), executor)
        .with_system_prompt(reference_system_prompt())
        .with_window(config.window.clone());
    let contexts: Vec<_> = config.policies.iter().flat_map(|policy| ways(*policy)).collect();
    let mut rows = Vec::new();
    for (name, policy, options) in contexts {
        let mut row = Figures { context: name, ..Figures::default() };
        let mut took = Vec::new();
        for number in 0..config.needles {
            let needle = Needle::new(number, config.length(number), config.seed);
            let mut context = begun(policy, &options, &needle)?;
            let began = Instant::now();
            let report = runtime.block_on(ask(&agent, context.as_mut(), &needle));
            took.push(began.elapsed().as_secs_f64());
            row.count(&needle, report);
            asked();
        }
        took.sort_by(f64::total_cmp);
        row.took_s_p50 = (quantile(&took, 0.5) * 1_000.0).round() / 1_000.0;
        rows.push(row);
    }
    let (model, tokens) =
        (config.model.name().to_owned(), (*config.tokens.start(), *config.tokens.end()));
    Ok(Recalled { model, needles: config.needles, tokens, seed: config.seed, contexts: rows })
}

/// Returns a policy by name; the memory's own with hints and without.
fn ways(policy: Policy) -> Vec<(String, Policy, Options)> {
    let shown = |hints| Options::default().with_view(ViewConfig::default().with_hints(hints));
    let name = policy.name();
    match policy.is_foldback() {
        true => vec![
            (name.to_owned(), policy, shown(true)),
            (format!("{name}, no hints"), policy, shown(false)),
        ],
        false => vec![(name.to_owned(), policy, Options::default())],
    }
}

/// Returns a context in which everything except the question was said.
fn begun(
    policy: Policy,
    options: &Options,
    needle: &Needle,
) -> Result<Box<dyn ContextManager>, BenchError> {
    let failed = |what: String| BenchError::Input(format!("{}: {what}", policy.name()));
    let todo = TodoId::new("needle").map_err(|error| failed(error.to_string()))?;
    let (terms, summaries) = ((Prices::default(), None), Summaries::default());
    let mut context = measured_context(policy, todo, terms, &summaries, options, || Timestamp(0))?;
    for message in &needle.said {
        context.record(message.clone()).map_err(|error| failed(error.to_string()))?;
    }
    Ok(context)
}

/// Runs the question to an answer; returns why there is none if the run could not continue.
async fn ask(
    agent: &Agent,
    context: &mut dyn ContextManager,
    needle: &Needle,
) -> Result<Report, String> {
    // Always the likeliest words, so that the same model gives the same answers again.
    let sampling = Sampling::default().with_temperature(0.0);
    let settings = ReactSettings::default().with_max_steps(MAX_STEPS).with_sampling(sampling);
    let react = React::new(settings);
    let report = agent.run(&react, context, &Task::new("needle", needle.question)).await;
    report.map_err(|error| error.to_string())
}

impl Config {
    /// Returns the total number of questions.
    #[must_use]
    pub fn questions(&self) -> u64 {
        let contexts: usize = self.policies.iter().map(|policy| ways(*policy).len()).sum();
        contexts as u64 * u64::from(self.needles)
    }

    /// Returns the tokens of this needle's conversation.
    fn length(&self, number: u32) -> u64 {
        let (least, most) = (*self.tokens.start(), *self.tokens.end());
        let last = u64::from(self.needles.saturating_sub(1)).max(1);
        least + most.saturating_sub(least) * u64::from(number) / last
    }
}

impl Figures {
    fn count(&mut self, needle: &Needle, report: Result<Report, String>) {
        let report = match report {
            Ok(report) => report,
            Err(why) => return self.no_answer(why),
        };
        for spent in report.trajectory.tokens.values() {
            self.calls += spent.calls;
            self.input_tokens += spent.usage.input;
            self.output_tokens += spent.usage.output;
        }
        self.recalls += report.trajectory.tool_calls().count() as u64;
        let mut said = report.trajectory.model_calls().filter_map(said);
        if said.any(|message| names(&message.text(), &needle.value)) {
            self.right += 1;
            let of_language =
                if needle.is_chinese { &mut self.right_chinese } else { &mut self.right_english };
            *of_language += 1;
            return;
        }
        let stop = &report.trajectory.outcome.stop;
        if *stop != Stop::Answered {
            self.no_answer(stop.to_string());
        }
    }

    fn no_answer(&mut self, why: String) {
        self.unanswered += 1;
        *self.reasons.entry(why).or_default() += 1;
    }
}

/// What the model said in one call.
fn said(call: &ModelCall) -> Option<Message> {
    Message::from_json(call.message.as_deref()?.get()).ok()
}

/// Returns whether an answer names the value as a separate number, with or without a comma in it.
fn names(answer: &str, value: &str) -> bool {
    answer.replace(',', "").split(|c: char| !c.is_ascii_digit()).any(|number| number == value)
}

impl Recalled {
    /// Returns the contexts in one table.
    #[must_use]
    pub fn sheet(&self) -> Sheet {
        let title = format!("What {} knew about {} facts", self.model, self.needles);
        let numbers = [
            "right",
            "English",
            "Chinese",
            "no answer",
            "calls",
            "recalls",
            "input",
            "output",
            "s p50",
        ];
        let mut sheet = Sheet::new(&title, &["context"], &numbers);
        for row in &self.contexts {
            let counts =
                [row.right, row.right_english, row.right_chinese, row.unanswered].map(u64::from);
            let numbers = [row.calls, row.recalls, row.input_tokens, row.output_tokens];
            let cells = counts.into_iter().chain(numbers).map(thousands);
            let took = format!("{:.1}", row.took_s_p50);
            sheet.row([row.context.clone()].into_iter().chain(cells).chain([took]));
        }
        sheet
    }
}

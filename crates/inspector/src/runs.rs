//! The runs of an agent, which the caller keeps beside the store.

use foldback::core::TodoId;
use serde::Serialize;
use utoipa::ToSchema;

/// Reads the runs of an agent.
pub trait Runs: Send + Sync {
    /// Returns how many runs are turns of a session, and the last of them, at most `most`, oldest first.
    ///
    /// # Errors
    /// When they cannot be read, with the reason in a sentence.
    fn last(&self, todo: &TodoId, most: usize) -> Result<(usize, Vec<Run>), String>;
}

/// A run of an agent: what it was asked, what it planned, and how it ended.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Run {
    /// Its name.
    pub id: String,
    /// `running`, `interrupted`, `done`, `cancelled` or `stopped`.
    pub state: String,
    /// The task.
    pub task: String,
    /// The message of the session that is its task, found by the inspector.
    pub task_seq: Option<u64>,
    /// The names of the tools that its requests declared; null if it has no record.
    pub tools: Option<Vec<String>>,
    /// The strategy that it was started with.
    pub strategy: String,
    /// The strategy that it began with, and why, if it was chosen for the request.
    pub chosen: Option<Chosen>,
    /// Why it continued step by step, if it had one plan before.
    pub degraded: Option<String>,
    /// The context policy.
    pub context: String,
    /// The model.
    pub model: String,
    /// When it began and when it last changed, in RFC 3339.
    pub began: String,
    /// As `began`.
    pub changed: String,
    /// The answer.
    pub answer: Option<String>,
    /// Why there is none.
    pub why: Option<String>,
    /// What it and its sub-agents spent.
    pub spent: RunSpent,
    /// How long it took, in microseconds; null if it has no record.
    pub total_us: Option<u64>,
    /// The turns with tool calls, in order. A planned run is one turn, even where it was planned again.
    pub turns: Vec<RunTurn>,
    /// Why its steps are not shown: it has no record yet, or its record cannot be read.
    pub unrecorded: Option<String>,
}

/// A chosen strategy.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Chosen {
    /// Its name.
    pub strategy: String,
    /// Why it was chosen.
    pub because: String,
}

/// What a run spent.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub struct RunSpent {
    /// The calls of the model.
    pub calls: u64,
    /// Their input tokens.
    pub input_tokens: u64,
    /// Those of them that were read from a cache.
    pub cached_tokens: u64,
    /// Their output tokens.
    pub output_tokens: u64,
    /// What they cost at the configured prices, in the currency of those; null if the prices are unknown.
    pub cost: Option<f64>,
    /// The input tokens if everything had been kept.
    pub full_tokens: u64,
}

/// A turn of a run.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunTurn {
    /// Its number, from 0.
    pub turn: u32,
    /// The purpose of each request whose plan belongs to it: `planner`, `replan`, `react`.
    pub purposes: Vec<String>,
    /// Why a plan was refused.
    pub findings: Vec<String>,
    /// The steps of its plans.
    pub steps: Vec<RunStep>,
}

/// A step of a plan.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunStep {
    /// Its number in the turn.
    pub step: u32,
    /// The tool; null for a step at which a new plan was made.
    pub tool: Option<String>,
    /// The arguments of the call as JSON text; of a call that was not made, as they were planned; of a step without a
    /// tool, what was to be decided.
    pub arguments: String,
    /// The steps that it waits for.
    pub after: Vec<u32>,
    /// `done`, `failed`, `skipped`, or `open` if it has no result. A command that ended with another exit code than 0
    /// failed.
    pub state: &'static str,
    /// The message of the session that has its call, and that with its result, found by the inspector.
    pub call_seq: Option<u64>,
    /// As `call_seq`.
    pub result_seq: Option<u64>,
    /// The result or the error, its beginning.
    pub result: Option<String>,
    /// When its call began and ended, in microseconds from the beginning of the run; null if none was made.
    pub start_us: Option<u64>,
    /// As `start_us`.
    pub end_us: Option<u64>,
    /// The sub-agents that worked for it.
    pub sub_agents: Vec<RunSubAgent>,
}

/// A sub-agent. Its own steps, and what it delegated in turn, are not among a run's.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunSubAgent {
    /// The session that holds its conversation; null if it is not kept.
    pub session: Option<String>,
    /// What it was asked.
    pub task: String,
    /// How it ended, in words.
    pub ended: String,
    /// Its answer.
    pub answer: Option<String>,
    /// How many calls it made: of the model, and of tools.
    pub model_calls: u64,
    /// As `model_calls`.
    pub tool_calls: u64,
}

//! The settings file of a project: where it is, and what it may contain.
//!
//! It comes with the project, from the project's authors. So it may not permit anything that its user did not: no host,
//! no program, no key to another address, no higher limit. What it may set is listed; everything else is refused.

use super::in_force::{FILE_NAME, Source};
use super::key::Key;
use super::layer::Layer;
use crate::error::CliError;
use crate::run::Time;
use figment::value::Value;
use std::path::{Path, PathBuf};

/// What a project may set: settings that permit nothing.
pub(super) const MAY_SAY: [&str; 33] = [
    "memory.offload_tokens",
    "memory.offload_tool_tokens",
    "memory.block_min",
    "memory.block_max",
    "memory.gap_seconds",
    "memory.look_ahead",
    "memory.topic_threshold",
    "memory.merge_over",
    "view.policy",
    "view.window_messages",
    "view.fresh_tokens",
    "view.ledger_lines",
    "view.compact_json",
    "view.deduplicate",
    "view.hints",
    "view.cache_aware_messages",
    "view.cache_aware_tokens",
    "agent.strategy",
    "agent.instructions",
    "agent.call_form",
    "agent.terminate",
    "agent.max_observe",
    "agent.stream_plans",
    "flow.context",
    "flow.shown",
    "flow.replan_after_each",
    "flow.planning_tool",
    "search.effort",
    "search.passages",
    "search.passage_tokens",
    "search.summary_tokens",
    "search.citing",
    "search.sources_heading",
];

/// Which tools may be called: a project may set either if its user sets neither, because one could lift the
/// restrictions of the other.
pub(super) const UNLESS_SAID: [&str; 2] = ["agent.tool_choice", "agent.tool_states"];

/// The limits that a project may lower.
pub(super) const MAY_LOWER: [&str; 16] = [
    "view.budget_tokens",
    "agent.max_steps",
    "agent.max_calls",
    "agent.max_tokens",
    "agent.max_cost",
    "agent.max_time",
    "agent.max_replans",
    SHARE,
    "flow.max_retries",
    "flow.max_replans",
    "search.number_of_initial_queries",
    "search.max_research_loops",
    "search.max_follow_up_queries",
    "search.max_parallel",
    "tools.shell_seconds",
    "tools.shell_memory_mib",
];

/// The limits of which a run has a built-in one if nobody sets any.
pub(super) const BOUNDS: [&str; 4] =
    [CALLS, "agent.max_tokens", "agent.max_cost", "agent.max_time"];

/// How often the model may be asked.
pub(super) const CALLS: &str = "agent.max_calls";

/// The part of what is left that a sub-agent may spend.
pub(super) const SHARE: &str = "agent.sub_agent_share";

/// What a project may forbid.
pub(super) const MAY_FORBID: [&str; 2] = ["tools.write", "tools.shell"];

/// The folders of a project that it may name.
pub(super) const MAY_NAME: [&str; 1] = ["tools.documents"];

/// The standing instructions; a project's follow the user's own.
pub(super) const INSTRUCTIONS: &str = "agent.instructions";

/// The project's file for a folder: in that folder, or in one above it up to the root of its repository. Outside a
/// repository only the folder itself counts.
pub(super) fn file_of(folder: &Path) -> Option<PathBuf> {
    let root = folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(folder);
    let within = folder.ancestors().take_while(|folder| folder.starts_with(root));
    within.map(|folder| folder.join(FILE_NAME)).find(|file| file.is_file())
}

/// Refuses what a project may not set.
pub(super) fn check(layer: &Layer, file: &Path) -> Result<(), CliError> {
    let refused = |source: &Source, what: String| Err(CliError::Usage(format!("{source}: {what}")));
    for (key, value, source) in layer {
        let name = key.to_string();
        let is_in = |list: &[&str]| list.contains(&name.as_str());
        if is_in(&MAY_SAY) || is_in(&UNLESS_SAID) || is_in(&MAY_LOWER) {
            continue;
        }
        if is_in(&MAY_FORBID) {
            if value.to_bool() == Some(false) {
                continue;
            }
            let what = format!("a project's file may only set {name} to false");
            return refused(source, what);
        }
        if is_in(&MAY_NAME) {
            let folder = file.parent().unwrap_or(Path::new(""));
            if value.as_str().is_some_and(|path| is_within(Path::new(path), folder)) {
                continue;
            }
            let what = format!("a project's file may name a folder below its own as {name}");
            return refused(source, what);
        }
        return refused(
            source,
            format!(
                "a project's file may not set {name}, because it comes with the project; set it in \
                 your own file (`foldback config path`), or give this one with --config"
            ),
        );
    }
    Ok(())
}

/// Whether a folder, with its links followed, is below another.
fn is_within(path: &Path, folder: &Path) -> bool {
    let (path, folder) = (path.canonicalize(), folder.canonicalize());
    matches!((path, folder), (Ok(path), Ok(folder)) if path.starts_with(&folder))
}

/// Whether a project's limit is not known to be lower than the user's.
pub(super) fn is_no_lower(key: &Key, own: &Value, projects: &Value) -> bool {
    let is_lower =
        matches!((amount(own), amount(projects)), (Some(own), Some(other)) if other < own);
    MAY_LOWER.contains(&key.to_string().as_str()) && !is_lower
}

/// A number, or a time in seconds.
fn amount(value: &Value) -> Option<f64> {
    match value {
        Value::String(_, time) => Some(Time::read(time).ok()?.seconds() as f64),
        Value::Num(_, number) => {
            let whole = number.to_i128().map(|number| number as f64);
            let positive = || number.to_u128().map(|number| number as f64);
            whole.or_else(positive).or(number.to_f64())
        }
        _ => None,
    }
}

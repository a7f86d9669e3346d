//! Tests of the public behaviour of the agent.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says so by stopping")]

mod adaptive;
mod agent_states;
mod approval;
mod context_handle;
mod crash;
mod execute_tools;
mod executor;
mod injections;
mod instructions;
mod journal;
mod journal_file;
mod long_results;
mod maintenance;
mod observations;
mod one_plan;
mod one_plan_resumed;
mod one_plan_told;
mod person;
mod planned_runs;
mod properties;
mod react;
mod reciting;
mod reference_agent;
mod resume;
mod rewards;
mod settings;
mod spans;
mod spend_limits;
mod spend_tracker;
mod stopped;
mod stuck;
mod sub_agents;
mod think;
mod todo;
mod tool_choice;
mod trajectory;
mod upkeep;
mod watching;
mod windows;

use foldback_testkit::agent::{contexts, keeping, payloads, script, toolkit};

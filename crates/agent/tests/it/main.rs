//! What the agent promises, from outside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test says so by stopping")]

mod approval;
mod contexts;
mod crash;
mod execute_tools;
mod executor;
mod injections;
mod journal;
mod one_plan;
mod one_plan_resumed;
mod one_plan_told;
mod payloads;
mod planned_runs;
mod properties;
mod react;
mod resume;
mod rewards;
mod script;
mod spans;
mod toolkit;
mod trajectory;

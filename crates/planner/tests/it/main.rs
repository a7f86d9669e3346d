//! What the planner promises, from outside.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails; helpers of tests are tests"
)]

mod binding;
mod catalog;
mod encoders;
mod execute_tools;
mod graph;
mod native;
mod one_plan;
mod references;
mod replan;
mod schedule;
mod schedule_oracle;
mod steps;
mod three_forms;
mod tool_results;
mod validation;
mod validation_oracle;

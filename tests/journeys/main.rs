//! Journeys across crates: what a user does, from the first message to the proof.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

mod story;

mod affinity;
mod agent_failures;
mod agent_flow;
mod agent_injections;
mod agent_permissions;
mod agent_plans;
mod agent_recall;
mod agent_resume;
mod agent_search;
mod cjk;
mod context_engineering;
mod crash;
mod dependencies;
mod encryption;
mod examples;
mod fuzzing;
mod golden;
mod grants;
mod hand_over;
mod hints;
mod hostile_queries;
mod indexes;
mod injections;
mod isolation;
mod large;
mod laws;
mod lossless;
mod malformed;
mod open_tail;
mod other_scripts;
mod paths;
mod payload_search;
mod processes;
mod provenance;
mod public_reads;
mod rebuild;
mod recall;
mod reembed;
mod remote_reads;
mod resume;
mod row_tables;
mod rules;
mod sub_agents;
mod unsearched;

mod floors;
mod readme;

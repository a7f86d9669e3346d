//! The command as a user and a script experience it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests may fail loudly"
)]

#[cfg(all(unix, feature = "postgres"))]
mod postgres;
mod provider;
mod shell;
mod slowly;

mod audit;
#[cfg(target_os = "linux")]
mod backup_killed;
mod bad_input;
mod bench_gateway;
#[cfg(not(feature = "lab"))]
mod bench_no_lab;
mod bench_report;
mod bench_retrieval;
mod bench_savings;
mod bench_segmentation;
mod bench_settings;
mod chat;
mod clients;
mod contract;
mod corpus;
mod damage;
mod demo;
mod durable;
mod embedder;
mod encryption;
mod engines;
mod face;
#[cfg(target_os = "linux")]
mod full_disk;
mod gateway;
mod grant;
mod import_again;
mod import_opencode;
mod import_watch;
mod input;
#[cfg(feature = "lab")]
mod lab;
mod last_said;
mod llama;
mod load;
mod lost_writes;
#[cfg(all(unix, feature = "postgres", feature = "objects-s3"))]
mod machines;
mod mcp;
mod mcp_install;
mod model_check;
#[cfg(feature = "objects-s3")]
mod objects;
mod payloads;
mod reach;
mod real_servers;
mod record;
mod recorded;
mod redaction;
mod replay;
mod report;
mod restore;
mod run;
mod run_calls;
mod run_documents;
mod run_events;
mod run_failures;
mod run_interrupted;
mod run_limits;
mod run_mcp;
mod run_search;
mod run_small;
mod run_strategies;
mod run_summaries;
mod run_tools;
mod run_turns;
mod search;
mod search_all_todos;
mod serve;
mod settings;
mod settings_model;
mod settings_roles;
mod tenants;
#[cfg(target_os = "linux")]
mod terminal;
mod upkeep;
mod wrap_beside;
#[cfg(target_os = "linux")]
mod wrap_interrupted;

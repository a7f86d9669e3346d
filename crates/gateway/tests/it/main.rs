//! The gateway between clients and a scripted provider.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod agent;
mod checkup;
mod classes;
mod contents;
mod failing_stores;
mod fold_histories;
mod folds;
mod guarding;
mod histories;
mod ledger;
mod mixed_turns;
mod own_answers;
mod passing;
mod played_client;
mod quota;
mod recording;
mod redaction;
mod tenants;
mod traffic;
mod unanswered;
mod world;

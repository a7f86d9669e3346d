//! Every policy as an agent's loop meets it.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod corpus;
mod deepagents;
mod masks;
mod policies;
mod sliding_window;
mod stm_ltm;
mod summary_top_n;
mod support;

//! Every policy as an agent's loop meets it.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod policies;
mod summary_top_n;

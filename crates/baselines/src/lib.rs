//! What others do with a long context, each as a [`ContextManager`]: so that a loop, a replay or a
//! benchmark exchanges one line and varies one thing.
//!
//! A [`Baseline`] is a policy by its name; [`BASELINES`] lists them, [`baseline`] finds one, and
//! [`Baseline::start`] gives a context to record into. A policy here is pure: no clock, no file, no
//! model. Where the original asks a model (for a summary), a deterministic stand-in does the work,
//! and its name says so wherever it is shown.
//!
//! A policy repairs nothing: its prompts are valid requests where what was recorded is one, and it
//! parts no call from its results that came together.
//!
//! ```
//! use foldback_baselines::baseline;
//! use foldback_core::{Budget, Estimate, Message, TodoId};
//! use std::sync::Arc;
//!
//! let full = baseline("full").ok_or("no such policy")?;
//! let mut context = full.start(TodoId::new("trip")?, Arc::new(Estimate));
//! context.record(Message::user("Which gate?"))?;
//! context.record(Message::assistant("Gate 7."))?;
//! assert_eq!(context.prompt(&Budget::default()).messages.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod registry;

mod full;
mod summary_top_n;

mod digest;
mod refusal;

pub use full::Full;
pub use registry::{BASELINES, Baseline, baseline};
pub use summary_top_n::{SummaryConfig, SummaryTopN};

// Named by the documentation above.
#[cfg(doc)]
use foldback_core::ContextManager;

//! What others do with a long context, each as a [`ContextManager`]: so that a loop, a replay or a
//! benchmark exchanges one line and varies one thing.
//!
//! A [`Baseline`] is a policy by its name; [`BASELINES`] and [`VARIANTS`] list them, [`baseline`] finds one, and
//! [`Baseline::start`] gives a context to record into. A policy here is pure: no clock, no file, no
//! model. Where the original asks a model (for a summary), a deterministic stand-in does the work, one
//! rule for all policies and at most 2,000 tokens; what that model would be sent and would write is
//! told by [`ContextManager::side_calls`]. [`Baseline::start_with`] takes a [`Compressor`](stm_ltm::Compressor) in the rule's
//! place, which may ask a model.
//!
//! It is **not** a measurement (`foldback-bench` compares policies), and nothing of foldback's memory
//! is in it. A policy repairs nothing: its prompts are valid requests where what was recorded is one,
//! and it parts no call from its results that came together.
//!
//! Each policy has settings of its own type: [`SlidingWindow`], [`SummaryTopN`], [`DeepAgents`],
//! [`ClearToolResults`], [`MaskObservations`], [`stm_ltm::StmLtmConfig`]. Their defaults are those of
//! the original where it has any. LangChain sums nothing up unless told when: the 40,000 tokens of
//! `summary-top-n` are a choice of this crate.
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

mod clear_tool_results;
mod deepagents;
mod full;
mod mask_observations;
mod sliding_window;
pub mod stm_ltm;
mod summary_top_n;

mod compressor;
mod counters;
mod extractive;
mod log;
mod masks;
mod note;
mod policy;
mod refusal;
mod summarizer;
mod tool;
mod words;

pub use clear_tool_results::ClearToolResults;
pub use counters::Counters;
pub use deepagents::{DeepAgents, Span};
pub use full::Full;
pub use mask_observations::MaskObservations;
pub use registry::{BASELINES, Baseline, Summaries, VARIANTS, baseline};
pub use sliding_window::SlidingWindow;
pub use summary_top_n::SummaryTopN;

// Named by the documentation above.
#[cfg(doc)]
use foldback_core::ContextManager;

//! Other approaches to a long context, each as a [`ContextManager`], so that a loop, a replay or a
//! benchmark changes one line and varies one thing.
//!
//! A [`Baseline`] is a named policy; [`BASELINES`] and [`VARIANTS`] list them, [`baseline`] finds one,
//! and [`Baseline::start`] returns a context to record into. A policy here is pure: no clock, no file,
//! no model. If the original asks a model (for a summary), a deterministic stand-in does the work, with
//! one rule for all policies and at most 2,000 tokens; [`ContextManager::side_calls`] reports what that
//! model would be sent and would write. [`Baseline::start_with`] takes a
//! [`Compressor`](stm_ltm::Compressor) in place of the rule, which may ask a model.
//!
//! It is **not** a measurement (`foldback-bench` compares policies), and it contains nothing of
//! foldback's memory. A policy repairs nothing: its prompts are valid requests if the recording is one,
//! and it never separates a call from its results if they came together.
//!
//! Each policy has its own type of settings: [`SlidingWindow`], [`SummaryTopN`], [`DeepAgents`],
//! [`ClearToolResults`], [`MaskObservations`], [`stm_ltm::StmLtmConfig`]. Their defaults are those of
//! the original, if it has any. LangChain summarises nothing unless a trigger is set: the 40,000 tokens of
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

// Referenced by the documentation above.
#[cfg(doc)]
use foldback_core::ContextManager;

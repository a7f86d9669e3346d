//! The policies by their names.

use crate::{Full, SummaryConfig, SummaryTopN};
use foldback_core::{ContextManager, TodoId, TokenCounter};
use std::sync::Arc;

/// A policy by its name.
#[derive(Debug)]
pub struct Baseline {
    /// The name, as commands take it and reports give it: `summary-top-n`.
    pub name: &'static str,
    /// The name as a person reads it: `summary + last 20`.
    pub title: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    make: fn(TodoId, Arc<dyn TokenCounter>) -> Box<dyn ContextManager>,
}

impl Baseline {
    /// A context of this policy that holds nothing yet. `tokens` decides where the policy acts on a
    /// size.
    #[must_use]
    pub fn start(&self, todo: TodoId, tokens: Arc<dyn TokenCounter>) -> Box<dyn ContextManager> {
        (self.make)(todo, tokens)
    }
}

/// Every policy, the plainest first. Names are unique.
pub static BASELINES: &[Baseline] = &[
    Baseline {
        name: "full",
        title: "keeping everything",
        about: "Every message is sent with every call.",
        make: |todo, tokens| Box::new(Full::new(todo, tokens)),
    },
    Baseline {
        name: "summary-top-n",
        title: "summary + last 20",
        about: "Over 40,000 tokens all but the last 20 messages give way to a summary, and are gone. \
                The summary is extracted by rule, at most 1,000 tokens, where the original asks a \
                model; what that model would cost is not counted.",
        make: |todo, tokens| Box::new(SummaryTopN::new(todo, tokens, SummaryConfig::default())),
    },
];

/// The policy of this name.
#[must_use]
pub fn baseline(name: &str) -> Option<&'static Baseline> {
    BASELINES.iter().find(|baseline| baseline.name == name)
}

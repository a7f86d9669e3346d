//! The policies by name.

use crate::stm_ltm::{Compressor, Mode, Scene, StmLtmConfig};
use crate::{
    ClearToolResults, Counters, DeepAgents, Full, MaskObservations, SlidingWindow, SummaryTopN,
};
use foldback_core::{ContextManager, TodoId};
use std::fmt;
use std::sync::Arc;

/// A named policy.
#[derive(Debug)]
pub struct Baseline {
    /// The name in commands and reports: `summary-top-n`.
    pub name: &'static str,
    /// The name in prose: `summary + last 20`.
    pub title: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    make: fn(TodoId, Counters, &Summaries) -> Box<dyn ContextManager>,
    /// Whether it can write summaries with a given writer.
    pub takes_summaries: bool,
}

/// How a policy writes summaries, if the caller may choose that: `stm-ltm` and `summary-top-n`.
#[derive(Clone, Default)]
pub struct Summaries {
    /// The writer of the summaries; the rule, if there is none.
    pub written_by: Option<Arc<dyn Compressor>>,
    /// Fields that the memory of `stm-ltm` keeps in every summary, each as `field: value`.
    pub fields: Vec<String>,
}

impl Baseline {
    /// Returns an empty context of this policy. `tokens` decides when the policy acts on a size, and
    /// counts its own model calls.
    #[must_use]
    pub fn start(&self, todo: TodoId, tokens: impl Into<Counters>) -> Box<dyn ContextManager> {
        self.start_with(todo, tokens, &Summaries::default())
    }

    /// Returns the same, with summaries written as specified.
    #[must_use]
    pub fn start_with(
        &self,
        todo: TodoId,
        tokens: impl Into<Counters>,
        summaries: &Summaries,
    ) -> Box<dyn ContextManager> {
        (self.make)(todo, tokens.into(), summaries)
    }
}

impl fmt::Debug for Summaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Summaries")
            .field("written_by", &self.written_by.as_deref().map(Compressor::name))
            .field("fields", &self.fields)
            .finish()
    }
}

/// Every policy, the plainest first. Names are unique.
pub static BASELINES: &[Baseline] = &[
    Baseline {
        name: "full",
        title: "keeping everything",
        about: "Every message is sent with every call.",
        make: |todo, tokens, _| Full.start(todo, tokens),
        takes_summaries: false,
    },
    Baseline {
        name: "sliding-window",
        title: "last 100 messages",
        about: "The last 100 messages are sent, after the instructions at the beginning; the \
                rest is gone. As in OpenManus, but no call is separated from its results, and a \
                request begins with a user's message.",
        make: |todo, tokens, _| SlidingWindow::default().start(todo, tokens),
        takes_summaries: false,
    },
    Baseline {
        name: "summary-top-n",
        title: "summary + last 20",
        about: "From 40,000 tokens on, all but the last 20 messages are replaced by a summary and are \
                gone. As LangChain's summarization middleware with these settings (it has no trigger \
                of its own), but the summary is extracted by rule, at most 2,000 tokens, where the \
                original asks a model.",
        make: |todo, tokens, summaries| {
            SummaryTopN::default().start_with(todo, tokens, summaries.written_by.clone())
        },
        takes_summaries: true,
    },
    Baseline {
        name: "deepagents",
        title: "deepagents",
        about: "From 170,000 tokens on, all but the last 6 messages go to one file that can be \
                searched, and are replaced by a summary; results over 80,000 characters go to separate \
                files, and long old arguments of writing tools are clipped. As in deepagents 0.7 for \
                a model of unknown window, but the summary is extracted by rule, at most 2,000 \
                tokens, where the original asks a model.",
        make: |todo, tokens, _| DeepAgents::default().start(todo, tokens),
        takes_summaries: false,
    },
    Baseline {
        name: "deepagents-128k",
        title: "deepagents, 128k window",
        about: "The same for a window of 128,000 tokens: from 85 % of it on, keeping the last 10 %.",
        make: |todo, tokens, _| DeepAgents::with_window(128_000).start(todo, tokens),
        takes_summaries: false,
    },
    Baseline {
        name: "clear-tool-results",
        title: "clearing tool results",
        about: "When the conversation exceeds 100,000 tokens, all tool results but the last 3 are \
                cleared. As Anthropic's context editing does by default.",
        make: |todo, tokens, _| ClearToolResults::default().start(todo, tokens),
        takes_summaries: false,
    },
    Baseline {
        name: "mask-observations",
        title: "masking observations",
        about: "All tool results but the last 10 are replaced by a line that says how long they were. \
                As SWE-agent does, with the number of JetBrains' study.",
        make: |todo, tokens, _| MaskObservations::default().start(todo, tokens),
        takes_summaries: false,
    },
    Baseline {
        name: "stm-ltm",
        title: "last step + memory",
        about: "The last step is sent unchanged, and before it a memory of at most about 4,000 tokens \
                of everything older, written beside the loop; what left can be searched and read by \
                id. The memory is extracted by rule, its summaries at most 2,000 tokens, where the \
                original asks a model.",
        make: |todo, tokens, summaries| stm_ltm(Mode::Offload, summaries).start(todo, tokens),
        takes_summaries: true,
    },
];

/// Policies of the list above in another mode. Comparisons leave them out unless one is asked for.
pub static VARIANTS: &[Baseline] = &[Baseline {
    name: "stm-ltm:compress",
    title: "last step + memory, rest gone",
    about: "The same as stm-ltm, but what left the memory is gone: there is no tool to look back with.",
    make: |todo, tokens, summaries| stm_ltm(Mode::Compress, summaries).start(todo, tokens),
    takes_summaries: true,
}];

fn stm_ltm(mode: Mode, summaries: &Summaries) -> StmLtmConfig {
    let Summaries { written_by, fields } = summaries.clone();
    let usual = StmLtmConfig::default();
    let scene = Scene { mode, schema: fields };
    StmLtmConfig { scene, compressor: written_by.unwrap_or(usual.compressor), ..usual }
}

/// Returns the policy of this name, which may be one of [`VARIANTS`].
#[must_use]
pub fn baseline(name: &str) -> Option<&'static Baseline> {
    BASELINES.iter().chain(VARIANTS).find(|baseline| baseline.name == name)
}

//! The policies by their names.

use crate::stm_ltm::{Mode, Scene, StmLtmConfig};
use crate::{
    ClearToolResults, Counters, DeepAgents, Full, MaskObservations, SlidingWindow, SummaryTopN,
};
use foldback_core::{ContextManager, TodoId};

/// A policy by its name.
#[derive(Debug)]
pub struct Baseline {
    /// The name, as commands take it and reports give it: `summary-top-n`.
    pub name: &'static str,
    /// The name as a person reads it: `summary + last 20`.
    pub title: &'static str,
    /// What it does, in one sentence.
    pub about: &'static str,
    make: fn(TodoId, Counters) -> Box<dyn ContextManager>,
}

impl Baseline {
    /// A context of this policy that holds nothing yet. `tokens` decides where the policy acts on a
    /// size, and counts what its own calls to a model take.
    #[must_use]
    pub fn start(&self, todo: TodoId, tokens: impl Into<Counters>) -> Box<dyn ContextManager> {
        (self.make)(todo, tokens.into())
    }
}

/// Every policy, the plainest first. Names are unique.
pub static BASELINES: &[Baseline] = &[
    Baseline {
        name: "full",
        title: "keeping everything",
        about: "Every message is sent with every call.",
        make: |todo, tokens| Full.start(todo, tokens),
    },
    Baseline {
        name: "sliding-window",
        title: "last 100 messages",
        about: "The last 100 messages are sent, and the instructions in front of all others; the \
                rest is gone. As in OpenManus, but no call is parted from its results, and a \
                request begins with a user's message.",
        make: |todo, tokens| SlidingWindow::default().start(todo, tokens),
    },
    Baseline {
        name: "summary-top-n",
        title: "summary + last 20",
        about: "From 40,000 tokens on all but the last 20 messages give way to a summary, and are \
                gone. As LangChain's summarization middleware with these settings (it has no trigger \
                of its own), but the summary is extracted by rule, at most 2,000 tokens, where the \
                original asks a model.",
        make: |todo, tokens| SummaryTopN::default().start(todo, tokens),
    },
    Baseline {
        name: "deepagents",
        title: "deepagents",
        about: "From 170,000 tokens on all but the last 6 messages go to one file that can be \
                searched, and give way to a summary; results over 80,000 characters go to files of \
                their own, long old arguments of writing tools are clipped. As in deepagents 0.7 for \
                a model of unknown window, but the summary is extracted by rule, at most 2,000 \
                tokens, where the original asks a model.",
        make: |todo, tokens| DeepAgents::default().start(todo, tokens),
    },
    Baseline {
        name: "deepagents-128k",
        title: "deepagents, 128k window",
        about: "The same for a window of 128,000 tokens: from 85 % of it on, and the last 10 % stay.",
        make: |todo, tokens| DeepAgents::with_window(128_000).start(todo, tokens),
    },
    Baseline {
        name: "clear-tool-results",
        title: "clearing tool results",
        about: "When the conversation is over 100,000 tokens all tool results but the last 3 are \
                cleared. As Anthropic's context editing does by default.",
        make: |todo, tokens| ClearToolResults::default().start(todo, tokens),
    },
    Baseline {
        name: "mask-observations",
        title: "masking observations",
        about: "Of all tool results but the last 10 one line stays that tells how long they were. \
                As SWE-agent does, with the number of JetBrains' study.",
        make: |todo, tokens| MaskObservations::default().start(todo, tokens),
    },
    Baseline {
        name: "stm-ltm",
        title: "last step + memory",
        about: "The last step is sent as it was, and before it a memory of at most about 4,000 tokens \
                of everything older, written beside the loop; what left can be searched and read by \
                id. The memory is extracted by rule, its summaries at most 2,000 tokens, where the \
                original asks a model.",
        make: |todo, tokens| StmLtmConfig::default().start(todo, tokens),
    },
];

/// Policies of the list above in another mode. Comparisons leave them out unless one is asked for.
pub static VARIANTS: &[Baseline] = &[Baseline {
    name: "stm-ltm:compress",
    title: "last step + memory, rest gone",
    about: "The same as stm-ltm, but what left the memory is gone: there is no tool to look back with.",
    make: |todo, tokens| {
        let scene = Scene { name: "compress".to_owned(), mode: Mode::Compress, ..Scene::default() };
        StmLtmConfig { scene, ..StmLtmConfig::default() }.start(todo, tokens)
    },
}];

/// The policy of this name, which may be one of [`VARIANTS`].
#[must_use]
pub fn baseline(name: &str) -> Option<&'static Baseline> {
    BASELINES.iter().chain(VARIANTS).find(|baseline| baseline.name == name)
}

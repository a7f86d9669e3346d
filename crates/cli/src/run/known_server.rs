//! What a model's server reported about itself when a run began.

use foldback_providers::{CallIds, ChatTemplate, ModelConfig, ServerFacts, SystemRole, Turns};
use serde::{Deserialize, Serialize};

/// What a model's server reported about itself when a run began. It is kept with the run: a busy server reports nothing
/// when the run is resumed, and the agent would have different tools in the middle of its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownServer {
    /// The tokens of the model's window.
    context_tokens: Option<usize>,
    /// What the model's chat template supports.
    template: Option<KnownTemplate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct KnownTemplate {
    call_ids: CallIds,
    parallel_calls: bool,
    turns: Turns,
    system: SystemRole,
}

impl From<&ServerFacts> for KnownServer {
    fn from(facts: &ServerFacts) -> Self {
        let template = facts.chat_template().map(|template| {
            let ChatTemplate { call_ids, parallel_calls, turns, system, .. } = template;
            KnownTemplate { call_ids, parallel_calls, turns, system }
        });
        Self { context_tokens: facts.context_tokens, template }
    }
}

impl KnownServer {
    /// Completes the settings with what the server reported. How tools are called is kept with the run separately.
    pub(crate) fn complete(self, config: ModelConfig) -> ModelConfig {
        let template = self.template.map(|known| {
            let mut template = ChatTemplate::default();
            (template.call_ids, template.parallel_calls) = (known.call_ids, known.parallel_calls);
            (template.turns, template.system) = (known.turns, known.system);
            template
        });
        config.completed_with(self.context_tokens, template)
    }
}

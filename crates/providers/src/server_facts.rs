//! What a server tells of the model that it serves.

use crate::config::ChatTemplate;
use crate::door::{Beside, Door};
use crate::{ModelConfig, Provider, ToolCalls};
use foldback_llm::ModelError;
use serde_json::Value;
use std::time::Duration;

/// How long a server is waited for that is asked about itself: what it tells is a help, and no condition.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a server tells of the model that it serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFacts {
    /// The tokens of the model's window, as the server runs it.
    pub context_tokens: Option<usize>,
    /// The model's chat template.
    pub template: Option<String>,
}

impl ServerFacts {
    /// Asks a server of one's own: llama.cpp tells template and window at `/props`, vLLM the window beside
    /// the model's name. What is not told is not known, and nothing is an error but settings of which
    /// no request can be made.
    ///
    /// # Errors
    /// As [`RemoteModel::new`](crate::RemoteModel::new).
    pub async fn ask(config: &ModelConfig) -> Result<Self, ModelError> {
        if config.provider != Provider::OpenAiCompatible {
            return Ok(Self::default());
        }
        let door = Door::new(config, &config.base_url)?;
        if let Some(props) = door.look(Beside::Root("props"), PATIENCE).await {
            let facts = Self::of_props(&props);
            if facts != Self::default() {
                return Ok(facts);
            }
        }
        let models = door.look(Beside::Api("models"), PATIENCE).await;
        Ok(models.map(|models| Self::of_models(&models, &config.name)).unwrap_or_default())
    }

    fn of_props(props: &Value) -> Self {
        let settings = &props["default_generation_settings"];
        let window = settings.get("n_ctx").or_else(|| props.get("n_ctx")).and_then(Value::as_u64);
        let template = props.get("chat_template").and_then(Value::as_str);
        Self {
            context_tokens: tokens(window),
            template: template.filter(|text| !text.trim().is_empty()).map(str::to_owned),
        }
    }

    fn of_models(models: &Value, name: &str) -> Self {
        let listed = models.get("data").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let is_named = |model: &&Value| model["id"] == name;
        let only = || if let [only] = listed { Some(only) } else { None };
        let model = listed.iter().find(is_named).or_else(only);
        let window = model.and_then(|model| model.get("max_model_len")).and_then(Value::as_u64);
        Self { context_tokens: tokens(window), template: None }
    }

    /// What the template can say, where it is known.
    #[must_use]
    pub fn chat_template(&self) -> Option<ChatTemplate> {
        self.template.as_deref().map(ChatTemplate::read)
    }
}

fn tokens(told: Option<u64>) -> Option<usize> {
    told.and_then(|tokens| usize::try_from(tokens).ok()).filter(|tokens| *tokens > 0)
}

impl ModelConfig {
    /// The same with what a server tells, where the settings say nothing.
    #[must_use]
    pub fn completed_by(self, facts: &ServerFacts) -> Self {
        let template = facts.chat_template().filter(|_| !self.is_template_given);
        let text = facts.template.as_deref().filter(|_| !self.is_template_given);
        let as_text = text.is_some_and(ChatTemplate::knows_no_tools);
        Self {
            tool_calls: if as_text { ToolCalls::Hermes } else { self.tool_calls },
            context_tokens: self.context_tokens.or(facts.context_tokens),
            template: template.unwrap_or(self.template),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CallIds, Turns};
    use serde_json::json;

    #[test]
    fn what_llama_cpp_tells_completes_the_settings() {
        let template = "{{ raise_exception('roles must alternate') }} {# with length 9 #}";
        let props =
            json!({"default_generation_settings": {"n_ctx": 8192}, "chat_template": template});
        let facts = ServerFacts::of_props(&props);
        let config = ModelConfig::new(Provider::OpenAiCompatible, "http://127.0.0.1:1/v1", "m");
        let completed = config.clone().completed_by(&facts);
        assert_eq!(completed.context_tokens, Some(8_192));
        assert_eq!(completed.template.call_ids, CallIds::Nine);
        let given = config.with_context_tokens(4_096).with_template(ChatTemplate::default());
        let completed = given.completed_by(&facts);
        assert_eq!(completed.context_tokens, Some(4_096), "what was set stays");
        assert_eq!(completed.template.turns, Turns::Any);
    }

    #[test]
    fn what_vllm_tells_is_of_the_model_that_is_asked() {
        let models = json!({"data": [{"id": "a", "max_model_len": 1}, {"id": "模型", "max_model_len": 32768}]});
        assert_eq!(ServerFacts::of_models(&models, "模型").context_tokens, Some(32_768));
        assert_eq!(ServerFacts::of_models(&models, "other").context_tokens, None);
        for nothing in [json!({}), json!([]), json!({"data": [{"id": "m"}]}), json!("x")] {
            assert_eq!(ServerFacts::of_models(&nothing, "m"), ServerFacts::default());
            assert_eq!(ServerFacts::of_props(&nothing), ServerFacts::default());
        }
    }
}

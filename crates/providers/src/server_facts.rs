//! What a server reports about the model that it serves.

use crate::config::ChatTemplate;
use crate::door::{Beside, Door};
use crate::{ModelConfig, Provider, ToolCalls};
use foldback_llm::ModelError;
use serde_json::Value;
use std::time::Duration;

/// How long to wait for a server's report about itself: it helps, but is not required.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a server reports about the model that it serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerFacts {
    /// The tokens of the model's window, as the server runs it.
    pub context_tokens: Option<usize>,
    /// The model's chat template; if there is another one for requests with tools, both.
    pub template: Option<String>,
}

impl ServerFacts {
    /// Asks a self-hosted server: llama.cpp reports template and window at `/props`, vLLM the window
    /// beside the model's name. What is not reported is unknown, and nothing is an error except settings
    /// with which no request can be made.
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
        // Requests with tools are rendered by the first if it is there, all others by the second.
        let templates = ["chat_template_tool_use", "chat_template"];
        let templates =
            templates.iter().filter_map(|name| props.get(*name).and_then(Value::as_str));
        let templates: Vec<&str> = templates.filter(|text| !text.trim().is_empty()).collect();
        Self {
            context_tokens: tokens(window),
            template: (!templates.is_empty()).then(|| templates.join("\n")),
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

    /// Returns what the template can express, if it is known.
    #[must_use]
    pub fn chat_template(&self) -> Option<ChatTemplate> {
        self.template.as_deref().map(ChatTemplate::read)
    }
}

fn tokens(told: Option<u64>) -> Option<usize> {
    told.and_then(|tokens| usize::try_from(tokens).ok()).filter(|tokens| *tokens > 0)
}

impl ModelConfig {
    /// Fills missing settings from what a server reports.
    #[must_use]
    pub fn completed_by(mut self, facts: &ServerFacts) -> Self {
        self = self.completed_with(facts.context_tokens, facts.chat_template());
        let knows_no_tools = facts.template.as_deref().is_some_and(ChatTemplate::knows_no_tools);
        if self.tool_calls.is_none() && knows_no_tools {
            self.tool_calls = Some(ToolCalls::Hermes);
        }
        self
    }

    /// Fills missing settings from a server's window and what its chat template can express.
    #[must_use]
    pub fn completed_with(
        mut self,
        context_tokens: Option<usize>,
        template: Option<ChatTemplate>,
    ) -> Self {
        self.is_window_told |= self.context_tokens.is_none() && context_tokens.is_some();
        self.context_tokens = self.context_tokens.or(context_tokens);
        self.max_tokens = self.longest_answer();
        if let Some(template) = template {
            self.template = self.template.or(template).into();
        }
        self
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
        assert_eq!(completed.chat_template().call_ids, CallIds::Nine);
        let given = config.with_context_tokens(4_096).with_template(ChatTemplate::default());
        let completed = given.completed_by(&facts);
        assert_eq!(completed.context_tokens, Some(4_096), "what was set stays");
        assert_eq!(completed.chat_template().turns, Turns::Any);
    }

    /// Explicit settings of a template stay, and do not affect the rest; likewise for how tools are declared.
    #[test]
    fn settings_are_completed_one_by_one() {
        let template = "{{ raise_exception('roles must alternate') }} {# with length 9 #}";
        let facts = ServerFacts::of_props(&json!({"chat_template": template}));
        let config = ModelConfig::new(Provider::OpenAiCompatible, "http://127.0.0.1:1/v1", "m");
        let mut given = config.clone();
        given.template.call_ids = Some(CallIds::Given);
        let completed = given.completed_by(&facts);
        assert_eq!(completed.chat_template().call_ids, CallIds::Given);
        assert_eq!(completed.chat_template().turns, Turns::Alternating);
        assert_eq!(completed.tool_calls(), ToolCalls::Hermes, "the template knows no tools");
        // Command R+ looks for a method where the items of a list are.
        let lists = "{{ tools }} {{ 'List[' + json_to_python_type(json_spec.items) + ']' }}";
        let of_lists = ServerFacts::of_props(&json!({"chat_template": lists}));
        assert_eq!(config.clone().completed_by(&of_lists).tool_calls(), ToolCalls::Hermes);
        let native = config.with_tool_calls(ToolCalls::Native).completed_by(&facts);
        assert_eq!(native.tool_calls(), ToolCalls::Native);
    }

    /// llama.cpp has a template for requests with tools besides the other, and uses both.
    #[test]
    fn a_template_for_tools_is_read_as_well() {
        let props = json!({
            "chat_template": "{{ raise_exception('roles must alternate') }}",
            "chat_template_tool_use": "{{ tools }} {# with length 9 #}",
        });
        let facts = ServerFacts::of_props(&props);
        let template = facts.chat_template().unwrap();
        assert_eq!((template.call_ids, template.turns), (CallIds::Nine, Turns::Alternating));
        let config = ModelConfig::new(Provider::OpenAiCompatible, "http://127.0.0.1:1/v1", "m");
        assert_eq!(config.completed_by(&facts).tool_calls(), ToolCalls::Native);
    }

    /// An answer leaves room for the request; a window that has none is reported as the server's.
    #[test]
    fn an_answer_has_a_quarter_of_a_small_window() {
        let config = ModelConfig::new(Provider::OpenAiCompatible, "http://127.0.0.1:1/v1", "m");
        let of = |tokens: usize| ServerFacts { context_tokens: Some(tokens), template: None };
        for (tokens, answer) in [(4_096, 1_024), (16_384, 4_096), (131_072, 4_096)] {
            let completed = config.clone().completed_by(&of(tokens));
            assert_eq!((completed.max_tokens, completed.check()), (Some(answer), Ok(())));
        }
        let error = config.clone().completed_by(&of(512)).check().unwrap_err().message;
        assert!(error.starts_with("the server of the model \"m\" has a window of 512 "), "{error}");
        assert!(error.contains("-c 8192"), "{error}");
        let error = config.clone().with_context_tokens(2_047).check().unwrap_err().message;
        assert!(error.starts_with("context_tokens of the model \"m\" is 2047"), "{error}");
        assert_eq!(config.clone().with_context_tokens(2_048).check(), Ok(()));
        let long = config.with_max_tokens(8_192).completed_by(&of(8_192)).check();
        let error = long.unwrap_err().message;
        assert!(error.contains("is 8192") && error.contains("has 8192 tokens"), "{error}");
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

//! The models that settings name for single roles: `[models.NAME]`.

use super::failures::{self, Named, Watched};
use super::meter::{Meter, MeteredModel, SummarizingModel};
use crate::error::CliError;
use foldback_agent::ContextWindow;
use foldback_llm::{ChatModel, Retrying, TokenPrices};
use foldback_providers::{
    ModelConfig, ModelFlags, ModelSettings, ModelSources, RemoteModel, public_url,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The models that settings name for single roles.
pub(crate) struct NamedModels {
    /// The run's own model; the demo's has no server.
    pub(crate) main: Option<ModelConfig>,
    pub(crate) settings: BTreeMap<String, ModelSettings>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) watched: Watched,
}

/// The model of a role.
pub(crate) struct NamedModel {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) window: ContextWindow,
}

/// A model with its window and prices.
struct Made {
    model: Arc<dyn ChatModel>,
    window: ContextWindow,
    prices: Option<TokenPrices>,
}

/// The prefix of the main model's variables.
const OF_MAIN: &str = "FOLDBACK_";

impl NamedModels {
    /// The model of a role that names one, counted like the main one.
    pub(crate) fn of(&self, role: Option<&str>) -> Result<Option<NamedModel>, CliError> {
        role.map(|name| self.get(name)).transpose()
    }

    /// The model that writes summaries, counted separately, and its prices: one of `[models]`, or another model on the
    /// main model's server.
    pub(crate) fn summarizing(
        &self,
        name: &str,
    ) -> Result<(Arc<dyn ChatModel>, Option<TokenPrices>), CliError> {
        let mut named = ModelSettings::default();
        named.name = Some(name.to_owned());
        let made = self.made(name, self.settings.get(name).unwrap_or(&named))?;
        let Made { model, prices, .. } = made;
        Ok((Arc::new(SummarizingModel { model, meter: Arc::clone(&self.meter), prices }), prices))
    }

    fn get(&self, name: &str) -> Result<NamedModel, CliError> {
        let Some(settings) = self.settings.get(name) else {
            let names = self.settings.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let there = if names.is_empty() { "none".to_owned() } else { names };
            let what = format!("a role names the model {name:?}; [models] has: {there}");
            return Err(CliError::Usage(what));
        };
        let Made { model, window, prices: money } = self.made(name, settings)?;
        let model = Arc::new(MeteredModel { model, meter: Arc::clone(&self.meter), money });
        Ok(NamedModel { model, window })
    }

    /// The model of these settings.
    fn made(&self, name: &str, settings: &ModelSettings) -> Result<Made, CliError> {
        let wrong = |what: String| CliError::Usage(format!("the model {name} of [models]: {what}"));
        let mut sources = ModelSources::of_process(ModelFlags::default(), None);
        sources.environment.retain(|variable, _| !variable.starts_with(OF_MAIN));
        let completed = self.completed(settings);
        let is_of_main = settings.api_key.is_none() && completed.api_key.is_some();
        let sources = sources.with_settings(completed);
        let config = ModelConfig::load(&sources).map_err(|error| wrong(error.message))?;
        let (at, retry, prices) = (public_url(&config.base_url), config.retry, config.token_prices);
        let window = ContextWindow::new(config.context_tokens, config.max_tokens);
        let key = match &config.api_key {
            Some(_) if is_of_main => "its key is that of [model]".to_owned(),
            Some(_) if settings.api_key.is_some() => {
                format!("its key is taken from the settings of {name}")
            }
            Some(_) => {
                let variable = config.provider.usual_key().unwrap_or("the environment");
                format!("its key is taken from {variable}")
            }
            None => format!("it has no key: models.{name}.api_key says none"),
        };
        let model = RemoteModel::new(config).map_err(|error| wrong(error.message))?;
        let model = Retrying::new(Named { model, at, key }, retry);
        let model = Arc::new(model.telling(failures::tell(&self.watched)));
        Ok(Made { model, window, prices })
    }

    /// Completes settings from the main model's: its address, key and options, where they give none; no other server
    /// receives the key.
    fn completed(&self, settings: &ModelSettings) -> ModelSettings {
        let mut settings = settings.clone();
        let is_elsewhere = settings.base_url.is_some() || settings.provider.is_some();
        if let Some(main) = self.main.as_ref().filter(|_| !is_elsewhere) {
            settings.base_url = Some(main.base_url.clone());
            settings.provider = Some(main.provider);
            settings.api_key = settings.api_key.or_else(|| main.api_key.clone());
            let name = settings.name.get_or_insert_with(|| main.name.clone());
            // A server may have several models, each with a window of its own.
            if *name == main.name {
                settings.context_tokens = settings.context_tokens.or(main.context_tokens);
            }
            settings.tool_calls = settings.tool_calls.or(Some(main.tool_calls()));
            settings.stream = settings.stream.or(Some(main.stream));
            settings.max_tokens = settings.max_tokens.or(main.max_tokens);
            settings.required_calls = settings.required_calls.or(Some(main.required_calls));
            // A family implies all of it.
            if settings.family.is_none() {
                let template = main.chat_template();
                settings.call_ids = settings.call_ids.or(Some(template.call_ids));
                settings.parallel_calls = settings.parallel_calls.or(Some(template.parallel_calls));
                settings.turns = settings.turns.or(Some(template.turns));
                settings.system = settings.system.or(Some(template.system));
            }
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_providers::{CallIds, ChatTemplate, Provider, Turns};

    fn models() -> NamedModels {
        let mut template = ChatTemplate::default();
        (template.call_ids, template.turns) = (CallIds::Nine, Turns::Alternating);
        let main = ModelConfig::new(Provider::OpenAiCompatible, "http://127.0.0.1:1/v1", "m");
        let main = main.with_template(template).with_stream(false).with_max_tokens(256);
        NamedModels {
            main: Some(main.with_context_tokens(2_048).with_required_calls(false)),
            settings: BTreeMap::new(),
            meter: Arc::new(Meter::new(super::super::Account::default(), None, |_| {})),
            watched: Watched::default(),
        }
    }

    /// A model of the same server is asked as the main one is; of another one, nothing is known.
    #[test]
    fn a_model_of_the_same_server_is_asked_in_the_same_way() {
        let models = models();
        let same = models.completed(&ModelSettings::default());
        assert_eq!((same.call_ids, same.turns), (Some(CallIds::Nine), Some(Turns::Alternating)));
        assert_eq!((same.stream, same.required_calls), (Some(false), Some(false)));
        assert_eq!((same.max_tokens, same.context_tokens), (Some(256), Some(2_048)));
        let mut said = ModelSettings::default();
        (said.name, said.turns, said.max_tokens) = (Some("n".into()), Some(Turns::Any), Some(64));
        let other = models.completed(&said);
        let template = (other.call_ids, other.turns);
        assert_eq!(template, (Some(CallIds::Nine), Some(Turns::Any)), "what it says stays");
        assert_eq!((other.max_tokens, other.context_tokens), (Some(64), None));
        said.base_url = Some("http://127.0.0.1:2/v1".into());
        assert!(models.completed(&said) == said);
        let window = models.made("n", &said).unwrap().window;
        assert_eq!(window.tokens(), None);
    }
}

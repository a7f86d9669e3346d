//! The models that settings name for single roles: `[models.NAME]`.

use super::failures::{self, Named, Watched};
use super::meter::{Meter, MeteredModel, SummarizingModel};
use crate::error::CliError;
use foldback_llm::{ChatModel, Retrying, TokenPrices};
use foldback_providers::{
    ModelConfig, ModelFlags, ModelSettings, ModelSources, RemoteModel, public_url,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The models that settings name for single roles.
pub(crate) struct NamedModels {
    /// The run's own model; the demo has none behind HTTP.
    pub(crate) main: Option<ModelConfig>,
    pub(crate) settings: BTreeMap<String, ModelSettings>,
    pub(crate) meter: Arc<Meter>,
    pub(crate) watched: Watched,
}

/// What names the variables that are the main model's.
const OF_MAIN: &str = "FOLDBACK_";

impl NamedModels {
    /// The model of a role that names one, counted like the main one.
    pub(crate) fn of(&self, role: Option<&str>) -> Result<Option<Arc<dyn ChatModel>>, CliError> {
        role.map(|name| self.get(name)).transpose()
    }

    /// The model that writes summaries, counted apart, and its prices: one of `[models]`, or another of the
    /// main model's server.
    pub(crate) fn summarizing(
        &self,
        name: &str,
    ) -> Result<(Arc<dyn ChatModel>, Option<TokenPrices>), CliError> {
        let mut named = ModelSettings::default();
        named.name = Some(name.to_owned());
        let (model, prices) = self.made(name, self.settings.get(name).unwrap_or(&named))?;
        Ok((Arc::new(SummarizingModel { model, meter: Arc::clone(&self.meter), prices }), prices))
    }

    fn get(&self, name: &str) -> Result<Arc<dyn ChatModel>, CliError> {
        let Some(settings) = self.settings.get(name) else {
            let names = self.settings.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let there = if names.is_empty() { "none".to_owned() } else { names };
            let what = format!("a role names the model {name:?}; under [models] there is {there}");
            return Err(CliError::Usage(what));
        };
        let (model, money) = self.made(name, settings)?;
        Ok(Arc::new(MeteredModel { model, meter: Arc::clone(&self.meter), money }))
    }

    /// The model of these settings, and its prices.
    fn made(
        &self,
        name: &str,
        settings: &ModelSettings,
    ) -> Result<(Arc<dyn ChatModel>, Option<TokenPrices>), CliError> {
        let wrong = |what: String| CliError::Usage(format!("the model {name} of [models]: {what}"));
        let mut sources = ModelSources::of_process(ModelFlags::default(), None);
        sources.environment.retain(|variable, _| !variable.starts_with(OF_MAIN));
        let completed = self.completed(settings);
        let is_of_main = settings.api_key.is_none() && completed.api_key.is_some();
        let sources = sources.with_settings(completed);
        let config = ModelConfig::load(&sources).map_err(|error| wrong(error.message))?;
        let (at, retry, money) = (public_url(&config.base_url), config.retry, config.token_prices);
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
        Ok((Arc::new(model.telling(failures::tell(&self.watched))), money))
    }

    /// The same, served where the main model is and asked with its key, where nothing is said of that: no
    /// other server is shown the key.
    fn completed(&self, settings: &ModelSettings) -> ModelSettings {
        let mut settings = settings.clone();
        let is_elsewhere = settings.base_url.is_some() || settings.provider.is_some();
        if let Some(main) = self.main.as_ref().filter(|_| !is_elsewhere) {
            settings.base_url = Some(main.base_url.clone());
            settings.provider = Some(main.provider);
            settings.api_key = settings.api_key.or_else(|| main.api_key.clone());
            settings.name.get_or_insert_with(|| main.name.clone());
        }
        settings
    }
}

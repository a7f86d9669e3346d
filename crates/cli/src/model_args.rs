//! The options that name a model and its server.

use crate::cli::Globals;
use crate::error::CliError;
use clap::Args;
use clap::builder::PossibleValuesParser;
use foldback_providers::{ModelConfig, ModelFlags, ModelSources, Provider};

/// Which model is used, and where.
#[derive(Args)]
pub(crate) struct ModelArgs {
    /// The model, by its provider's name for it [env: FOLDBACK_MODEL]
    #[arg(long, value_name = "M")]
    model: Option<String>,

    /// The address of the model's server [env: FOLDBACK_BASE_URL]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// The API that the model's server speaks [env: FOLDBACK_PROVIDER]
    #[arg(
        long,
        value_name = "API",
        value_parser = PossibleValuesParser::new(Provider::ALL.map(Provider::name)),
    )]
    provider: Option<String>,
}

impl ModelArgs {
    /// The model's configuration, completed from the environment and the settings.
    pub(crate) fn config(self, globals: &Globals) -> Result<ModelConfig, CliError> {
        let mut flags = ModelFlags::default();
        (flags.name, flags.base_url, flags.provider) = (self.model, self.base_url, self.provider);
        let settings = globals.settings.model.clone();
        let sources = ModelSources::of_process(flags, None).with_settings(settings);
        ModelConfig::load(&sources).map_err(|error| CliError::Usage(error.message))
    }
}

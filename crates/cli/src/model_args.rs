//! The options that name a model and its server.

use crate::cli::Globals;
use crate::error::CliError;
use clap::Args;
use clap::builder::PossibleValuesParser;
use foldback_providers::{ModelConfig, ModelFlags, ModelSources, Provider};

/// Which model is asked, and where.
#[derive(Args)]
pub(crate) struct ModelArgs {
    /// The model, as its provider knows it [env: FOLDBACK_MODEL]
    #[arg(long, value_name = "M")]
    model: Option<String>,

    /// Where the model is served [env: FOLDBACK_BASE_URL]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,

    /// Whose API the model is asked by [env: FOLDBACK_PROVIDER]
    #[arg(
        long,
        value_name = "API",
        value_parser = PossibleValuesParser::new(Provider::ALL.map(Provider::name)),
    )]
    provider: Option<String>,
}

impl ModelArgs {
    /// How the model is asked, with what the environment and the settings say besides.
    pub(crate) fn config(self, globals: &Globals) -> Result<ModelConfig, CliError> {
        let mut flags = ModelFlags::default();
        (flags.name, flags.base_url, flags.provider) = (self.model, self.base_url, self.provider);
        let settings = globals.settings.model.clone();
        let sources = ModelSources::of_process(flags, None).with_settings(settings);
        ModelConfig::load(&sources).map_err(|error| CliError::Usage(error.message))
    }
}

//! How a run is to go about its task, as flags say it and as its record keeps it.

use crate::error::CliError;
use crate::replay::Policy;
use clap::Args;
use clap::builder::PossibleValuesParser;
use foldback_agent::deep_search::Effort;
use foldback_agent::{Allowance, Strategy};
use foldback_llm::{ModelFlags, ModelSources};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a run is to go about its task. It is kept with the run, so that it goes on in the same way.
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct RunSettings {
    /// How to go about the task: adaptive plans once where it can and goes step by step where it must
    #[arg(
        long,
        value_name = "S",
        value_parser = PossibleValuesParser::new(Strategy::ALL.map(Strategy::name)),
        conflicts_with_all = ["resume", "demo"],
    )]
    strategy: Option<String>,

    /// What decides what the model is sent: foldback, or what others do
    #[arg(
        long,
        value_name = "P",
        value_parser = PossibleValuesParser::new(Policy::names()),
        conflicts_with_all = ["resume", "demo"],
    )]
    context: Option<String>,

    /// The model, as its provider knows it [env: FOLDBACK_MODEL]
    #[arg(long, value_name = "M", conflicts_with_all = ["resume", "demo"])]
    model: Option<String>,

    /// Where the model is served [env: FOLDBACK_BASE_URL]
    #[arg(long, value_name = "URL", conflicts_with_all = ["resume", "demo"])]
    base_url: Option<String>,

    /// Whose API the model is asked by: openai, openai-compatible or anthropic [env:
    /// FOLDBACK_PROVIDER]
    #[arg(long, value_name = "API", conflicts_with_all = ["resume", "demo"])]
    provider: Option<String>,

    /// A TOML file with a table [model] [env: FOLDBACK_SETTINGS]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "demo"])]
    settings: Option<PathBuf>,

    /// The folder to work in: tools read and write there and nowhere else [default: the current one]
    #[arg(long, value_name = "DIR", conflicts_with_all = ["resume", "demo"])]
    pub(crate) workspace: Option<PathBuf>,

    /// Let pages of this host be fetched; may be given several times
    #[arg(long, value_name = "HOST", conflicts_with_all = ["resume", "demo"])]
    pub(crate) allow_net: Vec<String>,

    /// Add the tools of the MCP servers in this file ({"mcpServers": {NAME: {"command", "args", ..}}})
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "demo"])]
    pub(crate) mcp: Option<PathBuf>,

    /// The folder of documents that deep-search looks into
    #[arg(long, value_name = "DIR", conflicts_with_all = ["resume", "demo"])]
    pub(crate) documents: Option<PathBuf>,

    /// How thoroughly deep-search looks: low, medium or high [default: medium]
    #[arg(
        long,
        value_name = "EFFORT",
        value_parser = PossibleValuesParser::new(EFFORTS.map(Effort::name)),
        conflicts_with_all = ["resume", "demo"],
    )]
    effort: Option<String>,
}

/// How thoroughly a deep search may look.
const EFFORTS: [Effort; 3] = [Effort::Low, Effort::Medium, Effort::High];

/// What a run may do and spend. Given with --resume, it takes the place of what was given before.
#[derive(Args, Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Limits {
    /// Approve of everything that changes something, without asking
    #[arg(long)]
    pub(crate) yes: bool,

    /// Ask the model so often at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_calls: Option<u64>,

    /// Use so many of the model's tokens at most, in and out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,

    /// Spend so much at most; the model's prices must be known
    #[arg(long, value_name = "MONEY", value_parser = money)]
    max_cost: Option<f64>,

    /// Work so long at most: 90s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    #[serde(rename = "max_seconds")]
    max_time: Option<u64>,
}

/// The environment variable that names the settings file.
const SETTINGS: &str = "FOLDBACK_SETTINGS";

impl RunSettings {
    /// The same with full paths, and with everything that the environment says and the run's record
    /// has to keep.
    pub(crate) fn resolved(self) -> Result<Self, CliError> {
        let full = |path: Option<PathBuf>, what: &str| match path {
            None => Ok(None),
            Some(path) => path.canonicalize().map(Some).map_err(|source| CliError::Io {
                what: format!("the {what} {} cannot be used", path.display()),
                source,
            }),
        };
        let named = || std::env::var_os(SETTINGS).filter(|file| !file.is_empty());
        let settings = self.settings.or_else(|| named().map(PathBuf::from));
        let workspace = self.workspace.unwrap_or_else(|| PathBuf::from("."));
        Ok(Self {
            settings: full(settings, "settings file")?,
            workspace: full(Some(workspace), "workspace")?,
            mcp: full(self.mcp, "list of MCP servers")?,
            documents: full(self.documents, "folder of documents")?,
            ..self
        })
    }

    /// A run in this folder, with everything else as usual.
    pub(crate) fn in_workspace(folder: &Path, strategy: Strategy, context: &str) -> Self {
        Self {
            workspace: Some(folder.to_owned()),
            strategy: Some(strategy.name().to_owned()),
            context: Some(context.to_owned()),
            ..Self::default()
        }
    }

    /// The strategy.
    pub(crate) fn strategy(&self) -> Result<Strategy, CliError> {
        let Some(name) = &self.strategy else { return Ok(Strategy::Adaptive) };
        Strategy::from_name(name).ok_or_else(|| {
            let names = Strategy::ALL.map(Strategy::name).join(", ");
            CliError::Usage(format!("there is no strategy {name:?}; there are {names}"))
        })
    }

    /// How thoroughly a deep search looks.
    pub(crate) fn effort(&self) -> Result<Effort, CliError> {
        let Some(name) = &self.effort else { return Ok(Effort::Medium) };
        let unknown = || CliError::Usage(format!("there is no effort {name:?}"));
        Effort::from_name(name).ok_or_else(unknown)
    }

    /// Refuses a strategy that has nothing to work with.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        if self.strategy()? == Strategy::DeepSearch && self.documents.is_none() {
            let what =
                "deep-search needs documents to look into; name their folder with --documents";
            return Err(CliError::Usage(what.to_owned()));
        }
        Ok(())
    }

    /// The context policy that was asked for by name.
    pub(crate) fn context(&self) -> Result<Option<Policy>, CliError> {
        let Some(name) = &self.context else { return Ok(None) };
        let unknown = || {
            let names = Policy::names().collect::<Vec<_>>().join(", ");
            CliError::Usage(format!("there is no context policy {name:?}; there are {names}"))
        };
        Policy::named(name).map(Some).ok_or_else(unknown)
    }

    /// Where the model's settings come from.
    pub(crate) fn model_sources(&self) -> ModelSources {
        let flags = ModelFlags {
            name: self.model.clone(),
            base_url: self.base_url.clone(),
            api_key: None,
            provider: self.provider.clone(),
        };
        ModelSources::of_process(flags, self.settings.clone())
    }

    /// The same, naming the model that was found, so that a resumed run asks the same one.
    pub(crate) fn with_model(self, name: &str, base_url: &str) -> Self {
        Self { model: Some(name.to_owned()), base_url: Some(base_url.to_owned()), ..self }
    }
}

impl Limits {
    /// Everything is approved of, and nothing bounded.
    pub(crate) fn approving() -> Self {
        Self { yes: true, ..Self::default() }
    }

    /// These, with what `newer` says in their place.
    pub(crate) fn overlaid(self, newer: Self) -> Self {
        Self {
            yes: self.yes || newer.yes,
            max_calls: newer.max_calls.or(self.max_calls),
            max_tokens: newer.max_tokens.or(self.max_tokens),
            max_cost: newer.max_cost.or(self.max_cost),
            max_time: newer.max_time.or(self.max_time),
        }
    }

    /// Whether a sum of money bounds the run.
    pub(crate) fn bounds_cost(self) -> bool {
        self.max_cost.is_some()
    }

    /// What may be spent.
    pub(crate) fn allowance(self) -> Allowance {
        Allowance {
            model_calls: self.max_calls,
            tool_calls: None,
            tokens: self.max_tokens,
            cost: self.max_cost,
            time: self.max_time.map(Duration::from_secs),
        }
    }
}

fn money(text: &str) -> Result<f64, String> {
    let money = text.parse::<f64>().ok().filter(|money| money.is_finite() && *money > 0.0);
    money.ok_or_else(|| "expected a number above 0, as 1.50".to_owned())
}

/// A time in seconds: `90`, `90s`, `10m`, `2h`.
fn seconds(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) => (number, &text[number.len()..]),
        None => (text, "s"),
    };
    let each = match unit {
        "h" => 3_600,
        "m" => 60,
        _ => 1,
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(each));
    seconds
        .filter(|seconds| *seconds > 0)
        .ok_or_else(|| "expected a time such as 90s, 10m or 2h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sums_are_read() {
        let read = ["90", "90s", "10m", "2h"].map(|text| seconds(text).unwrap());
        assert_eq!(read, [90, 90, 600, 7_200]);
        for bad in ["", "0", "s", "-1m", "1d", "1.5h", "99999999999999999999h", "二m"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
        assert_eq!(money("1.50"), Ok(1.5));
        for bad in ["0", "-1", "NaN", "inf", "1€"] {
            assert!(money(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn newer_limits_take_the_place_of_older_ones() {
        let older =
            Limits { yes: true, max_calls: Some(3), max_time: Some(60), ..Limits::default() };
        let newer = Limits { max_calls: Some(9), ..Limits::default() };
        let both = older.overlaid(newer);
        assert_eq!((both.yes, both.max_calls, both.max_time), (true, Some(9), Some(60)));
        assert_eq!(both.allowance().time, Some(Duration::from_secs(60)));
    }
}

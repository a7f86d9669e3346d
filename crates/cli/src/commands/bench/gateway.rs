//! `foldback bench gateway`.

use super::{Inputs, Outputs, print};
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use clap::{Args, value_parser};
use foldback_bench::BenchError;
use foldback_bench::gateway::{Config, Talk, measure};
use foldback_bench::savings::PRICE_MOST;
use foldback_core::{CacheTerms, Prices};
use foldback_gateway::{ProxyTrial, Taped};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

/// Measure what conversations cost through the gateway, compared with sending them directly
///
/// Each conversation is replayed request by request and billed by a simulated provider that caches what it is sent: as
/// its client sends it, as `foldback gateway` sends it, and as the provider's own clearing of old tool results leaves
/// it (Anthropic's clear_tool_uses_20250919 with its defaults: from 100,000 tokens on all results but the last 3). A
/// folder that `foldback gateway --record` wrote is replayed as it passed, session by session. Other files are
/// recordings, which are replayed as a client of Anthropic's API would send them: a request for each answer of the
/// model, with the whole conversation and with cache marks. Conversations in which no model speaks are left out.
/// No real provider is called. With --proxy each request is also sent through another proxy to a scripted provider on
/// this machine, and billed as it arrives there.
#[derive(Args)]
#[command(after_long_help = "\
Tokens are counted with o200k. A request's tokens up to the last mark for the cache (of OpenAI's APIs: all) are
read as far as they match the beginning of an earlier request that has not expired, and written after that; prefixes of
under 1,024 tokens are not cached. Both ways declare the memory's tool, and what a model would load with it is
not counted.

JSON: {\"conversations\": [{\"id\", \"file\", \"group\", \"tokens\", \"requests\", \"bills\": [...]}], \"sums\"}; of each
bill \"read\", \"write\", \"life\", \"pause\", \"direct\", \"gateway\" and \"clearing\" (each with \"requests\", \"read\",
\"written\", \"plain\", \"cost\"), \"saved\", \"saved_by_clearing\", \"dearer\" and \"dearest_at\": by what share the
gateway cost more at most, and after which request; \"proxy\" and \"saved_by_proxy\" are null without
--proxy. Of each sum \"median\", \"least\" and \"dearest\", too;
\"is_long\" are those over conversations with a request of over 30,000 tokens.

Examples:
  foldback bench gateway examples/coding-session.jsonl
  foldback bench gateway --gap 60 --prices 0.1,2,3600 recordings/
  foldback bench gateway --proxy http://127.0.0.1:8787 --provider 127.0.0.1:9797 examples/coding-session.jsonl")]
pub(crate) struct Gateway {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    outputs: Outputs,

    /// Let this many seconds pass between two requests; may be given several times. Without it, exchanges keep the
    /// times at which they passed, and recordings are played with 10 and with 3,600
    #[arg(long, value_name = "SECONDS", value_parser = value_parser!(u32))]
    gap: Vec<u32>,

    /// The price of a token that is read from the cache and of one that is written into it, relative to a token outside
    /// the cache, and the lifetime in seconds of a prefix that nobody reads (300); may be given several times. Without
    /// it: 0.1,1.25 and 0.1,2,3600 and 0.05,1.25 and 1,1
    #[arg(long, value_name = "READ,WRITE[,LIFE]", value_parser = terms)]
    prices: Vec<CacheTerms>,

    /// Also play the conversations through another proxy, whose provider is at --provider
    #[arg(long, value_name = "URL", requires = "provider")]
    proxy: Option<String>,

    /// The address on this machine at which a provider listens that answers with what was recorded
    #[arg(long, value_name = "ADDRESS", requires = "proxy")]
    provider: Option<SocketAddr>,
}

impl Gateway {
    pub(crate) fn run(self, _globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let pauses = self.gap.iter().map(|gap| Duration::from_secs(u64::from(*gap))).collect();
        let mut config = Config { pauses, ..Config::default() };
        if !self.prices.is_empty() {
            config.terms = self.prices;
        }
        if let Some((url, provider)) = self.proxy.zip(self.provider) {
            config.proxy = Some(ProxyTrial::new(&url, provider).map_err(BenchError::from)?);
        }
        let talks = talks(self.inputs, out)?;
        let progress = Mutex::new(out.progress("playing", talks.len() as u64));
        let bills = measure(&talks, &config, &|| {
            if let Ok(mut progress) = progress.lock() {
                progress.advance(1);
            }
        })?;
        drop(progress);
        self.outputs.write_csv(&bills.rows())?;
        self.outputs.write_page(|| bills.page())?;
        if out.is_json() {
            out.json(&bills)?;
        } else {
            bills.sheets().iter().try_for_each(|sheet| print(sheet, out))?;
        }
        Ok(Outcome::Done)
    }
}

/// The conversations of all inputs: first those of folders of exchanges, then the recordings.
fn talks(inputs: Inputs, out: &Output) -> Result<Vec<Talk>, CliError> {
    let (mut talks, mut files) = (Vec::new(), Vec::new());
    for path in inputs.files {
        let (exchanges, skipped) = match path.is_dir() {
            true => Taped::folder(&path).map_err(|error| CliError::Usage(error.to_string()))?,
            false => (Vec::new(), Vec::new()),
        };
        skipped.iter().for_each(|skipped| out.note(format!("{skipped}, and is skipped")));
        match exchanges.is_empty() {
            true => files.push(path),
            false => talks.extend(Talk::of_traffic(&path.display().to_string(), exchanges)),
        }
    }
    if !files.is_empty() {
        let cases = Inputs { files, ..inputs }.cases(out)?;
        talks.extend(cases.iter().filter_map(Talk::of));
    }
    if talks.is_empty() {
        let why = "there is nothing to play; expected conversations in which a model speaks";
        return Err(CliError::Usage(why.to_owned()));
    }
    Ok(talks)
}

/// Reads the terms of a cache.
fn terms(text: &str) -> Result<CacheTerms, String> {
    let expected = || {
        format!(
            "expected two numbers from 0 to {PRICE_MOST}, optionally followed by whole seconds: 0.1,1.25 or 0.1,2,3600"
        )
    };
    let (mut parts, usual) = (text.split(',').map(str::trim), CacheTerms::default());
    let mut price = || parts.next().and_then(|part| part.parse::<f64>().ok());
    let (read, write) = price().zip(price()).ok_or_else(expected)?;
    let prices = Prices { read, write, plain: 1.0 };
    let life = match parts.next() {
        Some(seconds) => {
            Duration::from_secs(u64::from(seconds.parse::<u32>().map_err(|_| expected())?))
        }
        None => usual.life,
    };
    let is_good = prices.is_sound() && [read, write].iter().all(|price| *price <= PRICE_MOST);
    match is_good && parts.next().is_none() {
        true => Ok(CacheTerms { prices, life, ..usual }),
        false => Err(expected()),
    }
}

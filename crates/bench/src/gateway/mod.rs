//! The cost of a conversation through `foldback gateway`, compared with sending it directly.
//!
//! A conversation is replayed request by request: as its client sent it, if a gateway kept it, or a
//! recording as a client of Anthropic's API would send it, with a request for each answer of the model.
//! Each request is billed three times by a provider that caches what it is sent
//! ([`ProviderCache`](foldback_providers::ProviderCache)): as the client sends it, as the gateway sends
//! it, and as the provider's own clearing of old results (`clear_tool_uses_20250919`) leaves it. If
//! another proxy is named, each request is also sent through that proxy and billed as it reaches the
//! provider. Tokens are counted with o200k. Both ways declare the memory's tool; what a model would
//! load with it is not part of a recording.

mod bill;
mod clearing;
mod client;
mod page;
mod sheets;
mod sum;
mod talk;

pub use bill::{Bill, Setting};
pub use sum::Sum;
pub use talk::Talk;

use crate::savings::Group;
use crate::{BenchError, Counts};
use bill::Run;
use clearing::{TRIGGER, cleared};
use foldback_core::{CacheTerms, Prices};
use foldback_gateway::{ProxyTrial, Taped, Tokens};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// The terms and the pauses of a measurement.
pub struct Config {
    /// The terms of the provider's cache.
    pub terms: Vec<CacheTerms>,
    /// How long a client waits between two requests. If empty, exchanges keep the times at which they
    /// passed, and recordings are replayed at [two paces](Self::RHYTHMS).
    pub pauses: Vec<Duration>,
    /// Another proxy, through which each conversation is also replayed.
    pub proxy: Option<ProxyTrial>,
}

impl Config {
    /// The pauses of an agent at work, and of one whose user returns every hour.
    pub const RHYTHMS: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(3_600)];
}

impl Default for Config {
    /// Returns the prices of Anthropic's models for five minutes and for an hour, prices at which a
    /// read costs half as much, and those without a cache.
    fn default() -> Self {
        let terms = |read: f64, write: f64, life: u64| CacheTerms {
            prices: Prices { read, write, plain: 1.0 },
            life: Duration::from_secs(life),
            ..CacheTerms::default()
        };
        let terms = [(0.1, 1.25, 300), (0.1, 2.0, 3_600), (0.05, 1.25, 300), (1.0, 1.0, 0)]
            .map(|(read, write, life)| terms(read, write, life));
        Self { terms: terms.to_vec(), pauses: Vec::new(), proxy: None }
    }
}

/// The costs of conversations.
#[derive(Clone, Debug, Serialize)]
pub struct Bills {
    /// Each conversation, in the order of the input.
    pub conversations: Vec<Measured>,
    /// The sums over conversations of a group.
    pub sums: Vec<Sum>,
}

/// One conversation.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Its name.
    pub id: String,
    /// The file or folder from which it came.
    pub file: String,
    /// The group in which it is summed up.
    pub group: Group,
    /// The tokens of its largest request.
    pub tokens: u64,
    /// The number of its requests.
    pub requests: u64,
    /// Its cost on each of the terms, with each of the pauses.
    pub bills: Vec<Bill>,
}

/// Replays conversations. `done` is called after each.
///
/// # Errors
/// When a memory cannot be created or fails, or a request is not JSON.
pub fn measure(
    talks: &[Talk],
    config: &Config,
    done: &(dyn Fn() + Sync),
) -> Result<Bills, BenchError> {
    let measured = talks.par_iter().with_max_len(1).map(|talk| {
        let measured = Measured::of(talk, config)?;
        done();
        Ok(measured)
    });
    let conversations = measured.collect::<Result<Vec<_>, BenchError>>()?;
    let sums = Sum::all(&conversations);
    Ok(Bills { conversations, sums })
}

impl Measured {
    fn of(talk: &Talk, config: &Config) -> Result<Self, BenchError> {
        let pauses: Vec<Option<Duration>> = match config.pauses.as_slice() {
            [] if talk.has_times() => vec![None],
            [] => Config::RHYTHMS.map(Some).to_vec(),
            given => given.iter().copied().map(Some).collect(),
        };
        let settings =
            pauses.iter().flat_map(|pause| config.terms.iter().map(|terms| (*terms, *pause)));
        let mut runs = settings
            .map(|(terms, pause)| Run::new(terms, pause, config.proxy.is_some()))
            .collect::<Result<Vec<_>, BenchError>>()?;
        let (mut counts, mut tokens, mut requests) = (Counts::default(), 0, 0);
        for mut exchange in talk.exchanges() {
            let body: Value = serde_json::from_str(&exchange.request).map_err(|error| {
                BenchError::Input(format!("{}: a request is not JSON: {error}", talk.id))
            })?;
            let sizes = runs.iter_mut().map(|run| run.direct(&mut exchange, &body, &mut counts));
            let size = sizes.max().unwrap_or_default();
            if let Some(proxy) = &config.proxy {
                proxied(proxy, &exchange, &mut runs, &mut counts)?;
            }
            let cleared = (size > TRIGGER).then(|| cleared(&body));
            for run in &mut runs {
                run.others(&mut exchange, &body, cleared.as_ref(), &mut counts)?;
            }
            (tokens, requests) = (tokens.max(size), requests + 1);
        }
        Ok(Self {
            id: talk.id.clone(),
            file: talk.file.clone(),
            group: talk.group,
            tokens,
            requests,
            bills: runs.into_iter().map(Run::bill).collect(),
        })
    }
}

/// Sends a request through another proxy. If a proxy acts on its bills, it is billed on the first
/// terms.
fn proxied(
    proxy: &ProxyTrial,
    exchange: &Taped<'_>,
    runs: &mut [Run],
    counts: &mut Counts,
) -> Result<(), BenchError> {
    let mut failed = None;
    proxy.pass(exchange, |body| {
        let body: Value = serde_json::from_str(body).unwrap_or_else(|error| {
            failed = Some(error);
            Value::Null
        });
        let billed: Vec<Tokens> =
            runs.iter_mut().map(|run| run.proxied(exchange, &body, counts)).collect();
        billed.first().copied().unwrap_or_default()
    })?;
    match failed {
        Some(error) => Err(BenchError::Input(format!("the proxy sent invalid JSON: {error}"))),
        None => Ok(()),
    }
}

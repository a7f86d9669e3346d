//! The cost of a conversation on certain terms, with certain pauses.

use crate::{BenchError, Counts};
use foldback_core::{CacheTerms, Timestamp};
use foldback_gateway::{Replay, Taped, Tokens};
use foldback_providers::{Billed, ProviderCache};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// The cost of a conversation on certain terms, with certain pauses.
#[derive(Clone, Debug, Serialize)]
pub struct Bill {
    /// The terms and the pauses.
    #[serde(flatten)]
    pub setting: Setting,
    /// The cost as the client sends it.
    pub direct: Billed,
    /// The cost through the gateway.
    pub gateway: Billed,
    /// The cost with the provider's own clearing of old results.
    pub clearing: Billed,
    /// The cost through another proxy, if one is tried.
    pub proxy: Option<Billed>,
    /// The share by which the gateway is cheaper in the end.
    pub saved: f64,
    /// The share by which the clearing is cheaper.
    pub saved_by_clearing: f64,
    /// The share by which the other proxy is cheaper.
    pub saved_by_proxy: Option<f64>,
    /// The largest share by which the gateway was dearer after any request.
    pub dearer: f64,
    /// The number of that request, counted from 1; 0 if it was never dearer.
    pub dearest_at: u64,
}

/// The terms of a cache, and the pauses between requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Setting {
    /// The price of a token read from the cache.
    pub read: f64,
    /// The price of a token written to the cache.
    pub write: f64,
    /// The seconds after which a prefix expires that is not read.
    pub life: u64,
    /// The seconds between two requests; `None` if the recorded times are kept.
    pub pause: Option<u64>,
}

/// One way of sending a conversation.
pub(crate) struct Run {
    setting: Setting,
    replay: Replay,
    direct: ProviderCache,
    gateway: ProviderCache,
    clearing: ProviderCache,
    proxy: Option<ProviderCache>,
    requests: u64,
    dearer: f64,
    dearest_at: u64,
}

impl Run {
    pub(crate) fn new(
        terms: CacheTerms,
        pause: Option<Duration>,
        is_proxied: bool,
    ) -> Result<Self, BenchError> {
        let setting = Setting {
            read: terms.prices.read,
            write: terms.prices.write,
            life: terms.life.as_secs(),
            pause: pause.map(|pause| pause.as_secs()),
        };
        let cache = || ProviderCache::new(terms);
        let (direct, gateway, clearing) = (cache(), cache(), cache());
        let replay = Replay::new(terms)?;
        let (proxy, requests, dearer, dearest_at) = (is_proxied.then(cache), 0, 0.0, 0);
        Ok(Self { setting, replay, direct, gateway, clearing, proxy, requests, dearer, dearest_at })
    }

    /// Sends a request as the client does, and returns its tokens.
    pub(crate) fn direct(
        &mut self,
        exchange: &mut Taped<'_>,
        body: &Value,
        counts: &mut Counts,
    ) -> u64 {
        let at = self.time(exchange);
        let (read, written, plain) = self.direct.take(body, at, &mut |text| counts.text(text));
        read + written + plain
    }

    /// Records what another proxy sends for the same request.
    pub(crate) fn proxied(
        &mut self,
        exchange: &Taped<'_>,
        body: &Value,
        counts: &mut Counts,
    ) -> Tokens {
        let at = self.time(exchange);
        let proxy = self.proxy.as_mut();
        let taken = proxy.map(|proxy| proxy.take(body, at, &mut |text| counts.text(text)));
        taken.map_or_else(Tokens::default, |(read, written, plain)| {
            Tokens::new(read, written, plain)
        })
    }

    /// Sends the same request in the other ways.
    pub(crate) fn others(
        &mut self,
        exchange: &mut Taped<'_>,
        body: &Value,
        cleared: Option<&Value>,
        counts: &mut Counts,
    ) -> Result<(), BenchError> {
        let at = self.time(exchange);
        let mut count = |text: &str| counts.text(text);
        self.clearing.take(cleared.unwrap_or(body), at, &mut count);
        let own = exchange.at;
        exchange.at = u64::try_from(at.0).unwrap_or_default();
        let (gateway, mut failed) = (&mut self.gateway, None);
        self.replay.play(exchange, |sent| {
            let sent = sent.map(serde_json::from_str::<Value>).transpose();
            let sent = sent.map_err(|error| failed = Some(error)).ok()?;
            let (read, written, plain) =
                gateway.take(sent.as_ref().unwrap_or(body), at, &mut count);
            Some(Tokens::new(read, written, plain))
        })?;
        if let Some(error) = failed {
            return Err(BenchError::Input(format!("the gateway sent invalid JSON: {error}")));
        }
        exchange.at = own;
        self.requests += 1;
        let dearer = -share_saved(self.direct.billed(), self.gateway.billed());
        if dearer > self.dearer {
            (self.dearer, self.dearest_at) = (dearer, self.requests);
        }
        Ok(())
    }

    /// Returns when the next request is sent.
    fn time(&self, exchange: &Taped<'_>) -> Timestamp {
        let at = match self.setting.pause {
            Some(pause) => BEGINNING + 1_000 * pause * self.requests,
            None => exchange.at,
        };
        Timestamp(i64::try_from(at).unwrap_or(i64::MAX))
    }

    pub(crate) fn bill(self) -> Bill {
        let [direct, gateway, clearing] =
            [self.direct, self.gateway, self.clearing].map(|cache| cache.billed());
        let proxy = self.proxy.map(|cache| cache.billed());
        Bill {
            setting: self.setting,
            saved: share_saved(direct, gateway),
            saved_by_clearing: share_saved(direct, clearing),
            saved_by_proxy: proxy.map(|proxy| share_saved(direct, proxy)),
            direct,
            gateway,
            clearing,
            proxy,
            dearer: self.dearer,
            dearest_at: self.dearest_at,
        }
    }
}

/// The time of the first request if a conversation has no times: a day of 2025, in milliseconds.
const BEGINNING: u64 = 1_763_856_000_000;

/// Returns the share by which `other` is cheaper.
pub(crate) fn share_saved(direct: Billed, other: Billed) -> f64 {
    if direct.cost > 0.0 { 1.0 - other.cost / direct.cost } else { 0.0 }
}

impl Setting {
    /// Returns the prices as tables show them.
    pub(crate) fn prices(&self) -> String {
        let Self { read, write, life, .. } = self;
        match (*read == 1.0 && *write == 1.0, *life) {
            (true, _) => "no cache".to_owned(),
            (false, 300) => format!("{read}/{write}"),
            (false, life) if life % 3_600 == 0 => format!("{read}/{write} {}h", life / 3_600),
            (false, life) => format!("{read}/{write} {life}s"),
        }
    }

    /// Returns the pause as tables show it.
    pub(crate) fn rhythm(&self) -> String {
        self.pause.map_or_else(|| "as recorded".to_owned(), |pause| format!("{pause} s"))
    }
}

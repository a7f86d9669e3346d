//! Recorded exchanges, given to a store as a gateway gives them to one.

use crate::config::Reach;
use crate::exchange::{Asked, Exchange, Instead};
use crate::recorder_thread::{Keeper, Unkept};
use crate::usage::Usage;
use crate::{GatewayError, Keeping, Ledger, Log, RecallBy, Taped, Tokens};
use axum::http::HeaderMap;
use bytes::Bytes;
use foldback::{KNOWN_SECRET, Memory, Options};
use foldback_core::Timestamp;
use foldback_providers::CacheTerms;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Gives recorded exchanges to a store in memory as a gateway does, without a client or a provider: what of them would
/// have been sent. The same exchanges give the same bytes.
pub struct Replay {
    keeper: Keeper,
    memory: Memory,
    /// The time in milliseconds.
    now: Arc<AtomicI64>,
}

impl Replay {
    /// One whose store holds nothing yet, where every provider caches on these terms.
    ///
    /// # Errors
    /// When there is no store in memory.
    pub fn new(terms: CacheTerms) -> Result<Self, GatewayError> {
        let now = Arc::new(AtomicI64::new(0));
        let clock = Arc::clone(&now);
        let options = Options::default()
            .with_view(Keeping::view())
            .with_secret(KNOWN_SECRET)
            .with_clock(move || Timestamp(clock.load(Ordering::Relaxed)));
        let memory = Memory::in_memory(options);
        let memory = memory.map_err(|error| GatewayError::Replay(error.to_string()))?;
        let reach = Reach { by: RecallBy::Mcp, mark: String::new() };
        let ledger = Ledger::new(None, &(Arc::new(|_: &str| {}) as Log));
        let keeper = Keeper::new(memory.clone(), KNOWN_SECRET, None, reach, Arc::default(), ledger);
        Ok(Self { keeper: keeper.with_terms(terms), memory, now })
    }

    /// What it has recorded.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Takes an exchange. Gives the body that is sent in place of the client's; `None` where it is the client's own.
    /// `bill` says what the provider bills for that; where it says nothing, the answer may.
    ///
    /// # Errors
    /// When the store fails.
    pub fn play(
        &mut self,
        exchange: &Taped<'_>,
        bill: impl FnOnce(Option<&str>) -> Option<Tokens>,
    ) -> Result<Option<String>, GatewayError> {
        let at = Timestamp(i64::try_from(exchange.at).unwrap_or(i64::MAX));
        self.now.store(at.0, Ordering::Relaxed);
        let headers = exchange.header_map();
        let body = Bytes::copy_from_slice(exchange.request.as_bytes());
        let asked = Asked::new(at, exchange.api, &exchange.path, &headers, &body, &KNOWN_SECRET);
        let folded = passed(self.keeper.fold(&asked))?.unwrap_or_default();
        let sent = folded.part.or(folded.whole);
        let instead =
            sent.as_ref().map(|sent| Instead { bytes: sent.body.len(), shown: sent.shown });
        let billed = bill(sent.as_ref().map(|sent| sent.body.as_str()));
        let billed = billed.map(|input| Usage { input, output: 0 }).into_iter().collect();
        if (200..300).contains(&exchange.status) {
            let answer = Some(Bytes::copy_from_slice(exchange.answer.as_bytes()));
            passed(self.keeper.keep(&Exchange {
                asked,
                instead,
                billed,
                check: None,
                headers: HeaderMap::new(),
                answer,
            }))?;
        }
        Ok(sent.map(|sent| sent.body))
    }
}

/// What was done; `None` where a request cannot be read, which passes as it came.
fn passed<T>(done: Result<T, Unkept>) -> Result<Option<T>, GatewayError> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(Unkept::Unreadable(_)) => Ok(None),
        Err(Unkept::Store(why)) => Err(GatewayError::Replay(why)),
    }
}

//! Replays recorded exchanges into a store, as a gateway records them.

use crate::config::Reach;
use crate::exchange::{Asked, Course, Exchange};
use crate::recorder_thread::Keeper;
use crate::unkept::Unkept;
use crate::usage::Usage;
use crate::{GatewayError, Keeping, Ledger, Log, RecallBy, Taped, Tokens};
use axum::http::HeaderMap;
use bytes::Bytes;
use foldback::{KNOWN_SECRET, Memory, Options};
use foldback_core::{CacheTerms, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Replays recorded exchanges into a store in memory, without a client or a provider, and shows what would have been
/// sent of them. The same exchanges give the same bytes.
pub struct Replay {
    keeper: Keeper,
    memory: Memory,
    /// The time in milliseconds.
    now: Arc<AtomicI64>,
}

impl Replay {
    /// Creates a replay with an empty store, in which every provider caches on these terms.
    ///
    /// # Errors
    /// When no store can be created in memory.
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

    /// Returns what it has recorded.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Replays an exchange. Returns the body that is sent in place of the client's; `None` if that is the client's
    /// own. `bill` returns what the provider bills for it; if it returns nothing, the answer may say.
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
        let instead = sent.as_ref().map(Into::into);
        let course = Course { is_sent: true, instead, ..Course::default() };
        let billed = bill(sent.as_ref().map(|sent| sent.body.as_str()));
        let billed = billed.map(|input| Usage { input, output: 0 }).into_iter().collect();
        if (200..300).contains(&exchange.status) {
            let answer = Some(Bytes::copy_from_slice(exchange.answer.as_bytes()));
            passed(self.keeper.keep(&Exchange {
                asked,
                course,
                billed,
                check: None,
                headers: HeaderMap::new(),
                took: Duration::ZERO,
                answer,
            }))?;
        }
        Ok(sent.map(|sent| sent.body))
    }
}

/// Returns what was done; `None` if a request or its answer cannot be read, which is passed on unchanged.
fn passed<T>(done: Result<T, Unkept>) -> Result<Option<T>, GatewayError> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(Unkept::Unreadable(_) | Unkept::Answer(_)) => Ok(None),
        Err(Unkept::Store(why)) => Err(GatewayError::Replay(why)),
    }
}

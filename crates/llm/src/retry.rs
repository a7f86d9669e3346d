//! Retries with backoff.

use crate::{
    Capabilities, ChatChunk, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelError,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A model that is asked again after a transient failure.
///
/// A stream that breaks off after its first piece with such a failure is requested again too, and says so
/// with [`ChatChunk::Again`]: what came before that is void.
#[derive(Clone)]
pub struct Retrying<M> {
    model: M,
    policy: RetryPolicy,
    on_retry: Option<Arc<OnRetry>>,
}

/// A function that is given each failure before a retry, and the wait before that retry.
type OnRetry = dyn Fn(&ModelError, Duration) + Send + Sync;

/// How often to ask again, and after how long.
///
/// The wait doubles from [`first_wait`](Self::first_wait) to [`longest_wait`](Self::longest_wait),
/// less up to a half that depends on the seed, the session and the attempt. If the provider asks
/// for a longer wait, that is kept instead. If a wait would exceed
/// [`total_wait`](Self::total_wait), or end later than [`total_time`](Self::total_time) after the
/// first attempt began, the error is returned at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How often a request is sent, the first time included.
    pub attempts: u32,
    /// The wait after the first failure.
    pub first_wait: Duration,
    /// The longest wait between two attempts, unless the provider asks for more.
    pub longest_wait: Duration,
    /// The longest time that one request may wait in total.
    pub total_wait: Duration,
    /// How long after the start of the first attempt the last one may start, answering time
    /// included.
    pub total_time: Duration,
    /// Seeds the jitter; the same seed gives the same waits.
    pub seed: u64,
}

impl Default for RetryPolicy {
    /// Five attempts within two minutes of waiting: an overloaded provider is usually back by then. A
    /// quarter of an hour in total leaves time for another attempt after the longest answer that is
    /// awaited.
    fn default() -> Self {
        Self {
            attempts: 5,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(30),
            total_wait: Duration::from_secs(120),
            total_time: Duration::from_secs(900),
            seed: 0,
        }
    }
}

impl RetryPolicy {
    /// Returns the wait after failure number `failure` (from 0) of a session's request, if the
    /// provider asks for none.
    #[must_use]
    pub fn wait(&self, failure: u32, session: Option<&str>) -> Duration {
        let full = self.first_wait.saturating_mul(2_u32.saturating_pow(failure));
        let full = full.min(self.longest_wait);
        let seed = self.seed.wrapping_add(u64::from(failure));
        let draw = xxh3_64_with_seed(session.unwrap_or_default().as_bytes(), seed);
        // The upper 32 bits as a fraction: 0.5 up to 1.0.
        let part = 0.5 + (draw >> 32) as f64 / 2.0_f64.powi(33);
        full.mul_f64(part)
    }

    /// Limits how often a request is sent.
    #[must_use]
    pub fn with_attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// Sets the wait after the first failure.
    #[must_use]
    pub fn with_first_wait(self, first_wait: Duration) -> Self {
        Self { first_wait, ..self }
    }

    /// Limits the wait between two attempts.
    #[must_use]
    pub fn with_longest_wait(self, longest_wait: Duration) -> Self {
        Self { longest_wait, ..self }
    }

    /// Limits the total wait.
    #[must_use]
    pub fn with_total_wait(self, total_wait: Duration) -> Self {
        Self { total_wait, ..self }
    }

    /// Limits how long after the first attempt another may start.
    #[must_use]
    pub fn with_total_time(self, total_time: Duration) -> Self {
        Self { total_time, ..self }
    }

    /// Sets the seed of the jitter.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }
}

impl<M: ChatModel> Retrying<M> {
    /// Creates a model that is asked again according to `policy`.
    pub fn new(model: M, policy: RetryPolicy) -> Self {
        Self { model, policy, on_retry: None }
    }

    /// Calls `on_retry` with each failure after which the model is asked again, and with the wait before
    /// the retry.
    #[must_use]
    pub fn telling(self, on_retry: impl Fn(&ModelError, Duration) + Send + Sync + 'static) -> Self {
        Self { on_retry: Some(Arc::new(on_retry)), ..self }
    }

    /// Returns the wait before the next attempt, or why there is none.
    fn wait_after(
        &self,
        tries: &mut Tries,
        request: &ChatRequest,
        error: ModelError,
    ) -> Result<Duration, ModelError> {
        let failure = tries.failures;
        tries.failures += 1;
        if !error.kind.is_transient() || tries.failures >= self.policy.attempts {
            return Err(error);
        }
        let wait = self.policy.wait(failure, request.session.as_deref());
        let wait = wait.max(error.retry_after.unwrap_or_default());
        let waited = tries.waited.saturating_add(wait);
        let is_over = waited > self.policy.total_wait
            || tries.began.elapsed().saturating_add(wait) > self.policy.total_time;
        if is_over {
            return Err(error);
        }
        tries.waited = waited;
        tracing::info!(model = self.model.name(), ?wait, %error, "asking again");
        if let Some(on_retry) = &self.on_retry {
            on_retry(&error, wait);
        }
        Ok(wait)
    }

    /// Returns a stream whose first piece has arrived.
    async fn opened<'a>(
        &'a self,
        tries: &mut Tries,
        request: &'a ChatRequest,
    ) -> Result<ChatStream<'a>, ModelError> {
        loop {
            let error = match self.model.stream(request).await {
                Err(error) => error,
                Ok(mut chunks) => match chunks.next().await {
                    Some(Err(error)) => error,
                    first => return Ok(stream::iter(first).chain(chunks).boxed()),
                },
            };
            tokio::time::sleep(self.wait_after(tries, request, error)?).await;
        }
    }

    /// Returns the next piece of a stream, and how it continues.
    async fn piece<'a>(&'a self, request: &'a ChatRequest, going: Going<'a>) -> Option<Piece<'a>> {
        let (mut chunks, mut tries) = match going {
            Going::On(chunks, tries) => (chunks, tries),
            Going::Again(wait, mut tries) => {
                tokio::time::sleep(wait).await;
                match self.opened(&mut tries, request).await {
                    Ok(chunks) => (chunks, tries),
                    Err(error) => return Some((Err(error), Going::Over)),
                }
            }
            Going::Over => return None,
        };
        Some(match chunks.next().await? {
            Ok(chunk) => (Ok(chunk), Going::On(chunks, tries)),
            Err(error) => match self.wait_after(&mut tries, request, error) {
                Ok(wait) => (Ok(ChatChunk::Again), Going::Again(wait, tries)),
                Err(error) => (Err(error), Going::Over),
            },
        })
    }
}

impl<M: fmt::Debug> fmt::Debug for Retrying<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &mut f.debug_struct("Retrying");
        text.field("model", &self.model).field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// How a stream continues.
enum Going<'a> {
    On(ChatStream<'a>, Tries),
    /// It broke off, and is requested again after this long.
    Again(Duration, Tries),
    Over,
}

/// A piece of a stream, and how the stream continues after it.
type Piece<'a> = (Result<ChatChunk, ModelError>, Going<'a>);

/// What one request has been through.
struct Tries {
    failures: u32,
    waited: Duration,
    began: Instant,
}

impl Tries {
    fn begin() -> Self {
        Self { failures: 0, waited: Duration::ZERO, began: Instant::now() }
    }
}

impl<M: ChatModel> ChatModel for Retrying<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }

    fn complete<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
        async move {
            let mut tries = Tries::begin();
            loop {
                match self.model.complete(request).await {
                    Ok(response) => return Ok(response),
                    Err(error) => {
                        tokio::time::sleep(self.wait_after(&mut tries, request, error)?).await;
                    }
                }
            }
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        request: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatStream<'a>, ModelError>> {
        async move {
            let mut tries = Tries::begin();
            let chunks = self.opened(&mut tries, request).await?;
            let going = Going::On(chunks, tries);
            Ok(stream::unfold(going, |going| self.piece(request, going)).boxed())
        }
        .boxed()
    }
}

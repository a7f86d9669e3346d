//! Retries, on the paused clock, so that waits take no time and are exact.

use foldback_core::Message;
use foldback_llm::{
    ChatChunk, ChatModel, ChatRequest, ChatResponse, ChatStream, ModelError, ModelErrorKind,
    RetryPolicy, Retrying, StopReason, Usage,
};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// A model that fails as set, and records when it was asked.
#[derive(Default)]
struct Failing {
    /// For each call: the pieces before the error, and the error; answers after that.
    failures: Mutex<VecDeque<(Vec<&'static str>, ModelError)>>,
    asked: Mutex<Vec<Instant>>,
    /// How long it takes to answer or fail.
    slow: Duration,
}

impl Failing {
    fn new(failures: impl IntoIterator<Item = ModelError>) -> Self {
        let failures = failures.into_iter().map(|error| (Vec::new(), error)).collect();
        Self { failures: Mutex::new(failures), ..Self::default() }
    }

    fn next(&self) -> Option<(Vec<&'static str>, ModelError)> {
        self.asked.lock().unwrap().push(Instant::now());
        self.failures.lock().unwrap().pop_front()
    }

    /// The waits between the calls.
    fn waits(&self) -> Vec<Duration> {
        let asked = self.asked.lock().unwrap();
        asked.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

fn answer() -> ChatResponse {
    ChatResponse {
        message: Message::assistant("ok"),
        usage: Usage::default(),
        stop: StopReason::End,
        model: "m".to_owned(),
    }
}

impl ChatModel for Failing {
    fn name(&self) -> &str {
        "failing"
    }

    fn complete<'a>(
        &'a self,
        _: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatResponse, ModelError>> {
        async move {
            let next = self.next();
            tokio::time::sleep(self.slow).await;
            next.map_or_else(|| Ok(answer()), |(_, error)| Err(error))
        }
        .boxed()
    }

    fn stream<'a>(
        &'a self,
        _: &'a ChatRequest,
    ) -> BoxFuture<'a, Result<ChatStream<'a>, ModelError>> {
        async move {
            let text = |text: &str| Ok(ChatChunk::Text(text.to_owned()));
            let items = match self.next() {
                Some((pieces, error)) => {
                    pieces.into_iter().map(text).chain([Err(error)]).collect::<Vec<_>>()
                }
                None => vec![text("ok"), Ok(ChatChunk::Done(Box::new(answer())))],
            };
            Ok(stream::iter(items).boxed())
        }
        .boxed()
    }
}

fn failed(kind: ModelErrorKind) -> ModelError {
    ModelError::new(kind, format!("{kind:?}"))
}

fn after(seconds: u64) -> ModelError {
    let retry_after = Some(Duration::from_secs(seconds));
    ModelError { retry_after, ..failed(ModelErrorKind::RateLimit) }
}

fn policy() -> RetryPolicy {
    RetryPolicy::default()
        .with_attempts(4)
        .with_first_wait(Duration::from_secs(2))
        .with_longest_wait(Duration::from_secs(5))
        .with_total_wait(Duration::from_secs(100))
        .with_total_time(Duration::from_secs(1000))
        .with_seed(3)
}

async fn ask(
    model: Failing,
    policy: RetryPolicy,
) -> (Result<ChatResponse, ModelError>, Vec<Duration>) {
    let model = std::sync::Arc::new(model);
    let retrying = Retrying::new(model.clone(), policy);
    let answer = retrying.complete(&ChatRequest::default()).await;
    (answer, model.waits())
}

#[tokio::test(start_paused = true)]
async fn transient_failures_are_asked_again_after_growing_waits() {
    use ModelErrorKind::{RateLimit, Timeout, Unavailable};
    let (answer, waits) =
        ask(Failing::new([RateLimit, Unavailable, Timeout].map(failed)), policy()).await;
    assert!(answer.is_ok());
    let expected: Vec<Duration> = (0..3).map(|n| policy().wait(n, None)).collect();
    let close = waits
        .iter()
        .zip(&expected)
        .all(|(wait, expected)| wait.abs_diff(*expected) <= Duration::from_millis(1));
    assert!(waits.len() == 3 && close, "{waits:?} {expected:?}");
}

#[test]
fn waits_double_up_to_the_longest_less_up_to_a_half() {
    for session in [None, Some("a"), Some("会话")] {
        for (failure, full) in [(0, 2), (1, 4), (2, 5), (3, 5), (4_000_000_000, 5)] {
            let wait = policy().wait(failure, session);
            let full = Duration::from_secs(full);
            assert!(wait >= full / 2 && wait <= full, "{failure}: {wait:?}");
            assert_eq!(wait, policy().wait(failure, session), "the same seed gives the same wait");
        }
    }
    let other = policy().with_seed(4);
    assert_ne!(policy().wait(0, None), other.wait(0, None));
    assert_ne!(
        policy().wait(0, Some("a")),
        policy().wait(0, Some("b")),
        "sessions do not come at once"
    );
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_is_not_asked_again() {
    use ModelErrorKind as Kind;
    for kind in [
        Kind::Authentication,
        Kind::Quota,
        Kind::Request,
        Kind::ContextLength,
        Kind::Response,
        Kind::Configuration,
    ] {
        let (answer, waits) = ask(Failing::new([failed(kind)]), policy()).await;
        assert_eq!(answer.unwrap_err().kind, kind);
        assert_eq!(waits, [], "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_and_waits_are_bounded() {
    let forever = || std::iter::repeat_n(failed(ModelErrorKind::Unavailable), 50);
    let (answer, waits) = ask(Failing::new(forever()), policy()).await;
    assert_eq!(answer.unwrap_err(), failed(ModelErrorKind::Unavailable));
    assert_eq!(waits.len(), 3, "four attempts");

    let short = policy().with_attempts(50).with_total_wait(Duration::from_secs(20));
    let (answer, waits) = ask(Failing::new(forever()), short).await;
    assert!(answer.is_err());
    let waited: Duration = waits.iter().sum();
    assert!(waited <= Duration::from_millis(20_100) && waits.len() > 4, "{waits:?}");

    for attempts in [0, 1] {
        let (answer, waits) = ask(Failing::new(forever()), policy().with_attempts(attempts)).await;
        assert!(answer.is_err() && waits.is_empty());
    }
}

/// The time of the attempts themselves counts too.
#[tokio::test(start_paused = true)]
async fn attempts_that_take_long_are_bounded() {
    for (minutes, attempts) in [(0, 1), (5, 1), (11, 2), (21, 3), (60, 4)] {
        let failures = std::iter::repeat_n(failed(ModelErrorKind::Timeout), 50);
        let slow = Duration::from_secs(600);
        let policy = policy().with_total_time(Duration::from_secs(60 * minutes));
        let began = Instant::now();
        let (answer, waits) = ask(Failing { slow, ..Failing::new(failures) }, policy).await;
        assert_eq!(answer.unwrap_err().kind, ModelErrorKind::Timeout);
        assert_eq!(waits.len() + 1, attempts, "{minutes}");
        assert!(began.elapsed() <= policy.total_time + slow);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_asked_for_is_kept_up_to_the_bound() {
    let (answer, waits) = ask(Failing::new([after(30), after(0)]), policy()).await;
    assert!(answer.is_ok());
    assert!(waits[0].abs_diff(Duration::from_secs(30)) <= Duration::from_millis(1), "{waits:?}");
    assert!(waits[1] >= Duration::from_secs(2), "at least the usual wait: {waits:?}");

    let (answer, waits) = ask(Failing::new([after(60), after(60)]), policy()).await;
    let error = answer.unwrap_err();
    assert_eq!(error.retry_after, Some(Duration::from_secs(60)), "whoever asked can see how long");
    assert_eq!(waits.len(), 1, "the second would exceed the total");

    let (answer, waits) = ask(Failing::new([after(86_400)]), policy()).await;
    assert!(answer.is_err() && waits.is_empty(), "no point in asking earlier");
}

async fn stream_of(model: Failing) -> (Vec<String>, usize) {
    let model = std::sync::Arc::new(model);
    let retrying = Retrying::new(model.clone(), policy());
    let request = ChatRequest::default();
    let seen = match retrying.stream(&request).await {
        Ok(stream) => {
            let item = |item: Result<ChatChunk, ModelError>| match item {
                Ok(ChatChunk::Text(text)) => text,
                Ok(ChatChunk::Done(_)) => "done".to_owned(),
                Ok(other) => format!("{other:?}"),
                Err(error) => error.message,
            };
            stream.map(item).collect().await
        }
        Err(error) => vec![error.message],
    };
    let asked = model.asked.lock().unwrap().len();
    (seen, asked)
}

#[tokio::test(start_paused = true)]
async fn streams_are_asked_for_again() {
    use ModelErrorKind::{Request, Unavailable};
    let seen = stream_of(Failing::new([failed(Unavailable), after(1)])).await;
    assert_eq!(seen, (vec!["ok".to_owned(), "done".to_owned()], 3));

    let (seen, asked) = stream_of(Failing::new([failed(Request)])).await;
    assert_eq!((seen, asked), (vec!["Request".to_owned()], 1));
}

/// What broke off in the middle is void, and says so; such failures count towards the limit like all others.
#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_off_begins_anew() {
    use ModelErrorKind::{Request, Unavailable};
    let breaking = |failures: Vec<(Vec<&'static str>, ModelError)>| Failing {
        failures: Mutex::new(failures.into()),
        ..Failing::default()
    };
    let late = || (vec!["Hel"], failed(Unavailable));
    let (seen, asked) = stream_of(breaking(vec![late(), (vec![], after(1))])).await;
    assert_eq!((seen.join(" ").as_str(), asked), ("Hel Again ok done", 3));

    let (seen, asked) = stream_of(breaking((0..9).map(|_| late()).collect())).await;
    let expected = "Hel Again Hel Again Hel Again Hel Unavailable";
    assert_eq!((seen.join(" ").as_str(), asked), (expected, 4), "four attempts");

    let (seen, asked) = stream_of(breaking(vec![(vec!["Hel"], failed(Request))])).await;
    assert_eq!((seen.join(" ").as_str(), asked), ("Hel Request", 1));
}

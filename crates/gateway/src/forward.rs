//! A request on its way to the provider, and the answer on its way back.

use crate::exchange::Answering;
use crate::in_progress::Mark;
use crate::refusal::{Refused, refusal};
use crate::traffic::{Answered, taped};
use crate::way::Way;
use crate::whole_body::{LONGEST, Read, read};
use crate::{Api, Gateway, Keeping, RecallBy};
use axum::body::{Body, BodyDataStream};
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use bytes::Bytes;
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The header that says what the gateway could not do.
pub(crate) const NOTICE: &str = "x-foldback-notice";

/// The header that says how much of a request was sent.
pub(crate) const SENT: &str = "x-foldback-sent";

/// The greatest number of characters in a notice.
const LONGEST_NOTICE: usize = 200;

/// Passes a request on unchanged, or with less in it, and returns the provider's answer as it arrives. `mark` is kept
/// until the answer has ended.
pub(crate) async fn forward(
    gateway: &Gateway,
    api: Api,
    request: Request,
    mark: Mark,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let Gateway { config, recorder, traffic, .. } = gateway;
    let mut trouble = recorder.trouble().filter(|_| api.has_conversation());
    let refused = |(status, why): Refused| {
        refusal(api, status, &format!("{why}; only requests that can be recorded are passed on"))
    };
    let way = match Way::of(gateway, api, &head) {
        Ok(way) => way,
        Err(error) => return refusal(api, StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let has_body = head.headers.contains_key("content-length")
        || head.headers.contains_key("transfer-encoding");
    let (path, cut) = (head.uri.path(), Cut::default());
    let (mut answering, mut tape) = (Answering::new(recorder.clone()), None);
    let answer = match has_body {
        false => way.send(None).await,
        true if api.has_conversation() => match read(body).await {
            Read::Whole(bytes) => {
                if let Err(why) = begin(gateway, api, &head, &bytes, &mut answering).await {
                    return refused(why);
                }
                trouble = trouble.filter(|_| !config.fail_closed);
                tape = traffic.as_ref().map(|to| to.asked(api, path, &head.headers, &bytes));
                tokio::select! {
                    answer = way.converse(api, bytes, &mut answering) => answer,
                    () = recorder.ended() => {
                        let why = "the gateway is ending; send the request again";
                        return refusal(api, StatusCode::SERVICE_UNAVAILABLE, why);
                    }
                }
            }
            Read::Begun(..) if config.fail_closed => {
                let why = "the request is too long to be recorded".to_owned();
                return refused((StatusCode::PAYLOAD_TOO_LARGE, why));
            }
            Read::Begun(begun, rest) => {
                (config.log)(&format!("a request of over {LONGEST} bytes is not recorded"));
                way.send(Some(cut.watched(continued(begun, rest)))).await
            }
            Read::Broken(..) => return cut.answer(gateway, api),
        },
        true if is_count(&head) && config.recall != RecallBy::Off => match read(body).await {
            Read::Whole(bytes) => {
                answering.asked = recorder.asked(Api::Messages, path, &head.headers, &bytes);
                way.count(bytes, &mut answering).await
            }
            Read::Begun(begun, rest) => way.send(Some(cut.watched(continued(begun, rest)))).await,
            Read::Broken(..) => return cut.answer(gateway, api),
        },
        true => way.send(Some(cut.watched(body.into_data_stream()))).await,
    };
    // A turn that the gateway has played may fail after requests that were billed.
    let is_billed = !answering.billed.lock().is_empty();
    let mut response = match answer {
        Ok(response) => response,
        Err(_) if cut.is_cut() => return cut.answer(gateway, api),
        Err(error) => {
            answering.is_kept &= is_billed;
            let why = format!("{} {}", way.upstream, unanswered(error));
            (config.log)(&why);
            return refusal(api, StatusCode::BAD_GATEWAY, &why);
        }
    };
    let is_success = response.status().is_success();
    answering.is_kept &= is_success || is_billed;
    say(&mut response, NOTICE, trouble.as_deref());
    say(&mut response, SENT, answering.part_sent().as_deref());
    if api.has_conversation() && !is_success {
        recorder.ledger().refused();
    }
    answering.headers = response.headers().clone();
    let answered = tape.map(|tape| tape.answered(response.status(), response.headers()));
    returned(response, answered, answering, mark)
}

/// Returns an answer as it arrives, with a copy for the recorder and one for the file of its exchange.
fn returned(
    response: Response<Body>,
    answered: Option<Answered>,
    answering: Answering,
    mark: Mark,
) -> Response<Body> {
    response.map(|body| {
        let pieces = taped(body.into_data_stream(), answered);
        let pieces = copied(pieces, Some(answering).filter(Answering::is_recorded));
        // The closure has the mark as long as there may be another piece.
        Body::from_stream(pieces.inspect(move |_| {
            let _ = &mark;
        }))
    })
}

/// Reads a request of a conversation for the recorder, and records it if only recorded requests are passed on.
///
/// # Errors
/// When that is so, and it cannot be recorded.
async fn begin(
    gateway: &Gateway,
    api: Api,
    head: &Parts,
    bytes: &Bytes,
    answering: &mut Answering,
) -> Result<(), Refused> {
    let Gateway { config, recorder, .. } = gateway;
    if let Some(trouble) = recorder.fresh_trouble().filter(|_| config.fail_closed) {
        return Err((StatusCode::SERVICE_UNAVAILABLE, trouble));
    }
    answering.asked = recorder.asked(api, head.uri.path(), &head.headers, bytes);
    match &answering.asked {
        Some(asked) if config.fail_closed => recorder.record(asked).await?,
        None if config.fail_closed && matches!(config.keeping, Keeping::On(_)) => {
            return Err((StatusCode::SERVICE_UNAVAILABLE, "the gateway is ending".to_owned()));
        }
        _ => {}
    }
    answering.is_kept = true;
    Ok(())
}

/// Adds a header of the gateway's own to an answer.
fn say(response: &mut Response<Body>, name: &'static str, what: Option<&str>) {
    let text = what.unwrap_or_default().replace(|c: char| !c.is_ascii_graphic() && c != ' ', "?");
    let text: String = text.chars().take(LONGEST_NOTICE).collect();
    let value = HeaderValue::from_str(&text).ok().filter(|_| what.is_some());
    response.headers_mut().extend(value.map(|value| (HeaderName::from_static(name), value)));
}

/// Returns whether a request asks only for a token count.
fn is_count(head: &Parts) -> bool {
    let path = head.uri.path().trim_end_matches('/');
    head.method == Method::POST && path.ends_with("/messages/count_tokens")
}

/// Returns a body of which the beginning was read.
fn continued(
    begun: Bytes,
    rest: BodyDataStream,
) -> impl Stream<Item = Result<Bytes, axum::Error>> + Send + 'static {
    stream::once(async { Ok(begun) }).chain(rest)
}

/// Whether a client's body broke off on its way to the provider.
#[derive(Default)]
struct Cut(Arc<AtomicBool>);

impl Cut {
    /// Returns a body for the provider that notes whether it breaks off.
    fn watched(
        &self,
        body: impl Stream<Item = Result<Bytes, axum::Error>> + Send + 'static,
    ) -> reqwest::Body {
        let cut = Arc::clone(&self.0);
        reqwest::Body::wrap_stream(body.inspect_err(move |_| cut.store(true, Ordering::Relaxed)))
    }

    fn is_cut(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the answer to a request whose body broke off.
    fn answer(&self, gateway: &Gateway, api: Api) -> Response<Body> {
        let why = "the request's body broke off";
        (gateway.config.log)(why);
        refusal(api, StatusCode::BAD_REQUEST, why)
    }
}

/// Passes the pieces on, with a copy for the recorder: until the gateway ends, even if the answer
/// takes longer.
fn copied<E>(
    pieces: impl Stream<Item = Result<Bytes, E>>,
    answering: Option<Answering>,
) -> impl Stream<Item = Result<Bytes, E>> {
    let state = (Box::pin(pieces), answering);
    stream::unfold(state, |(mut pieces, mut answering)| async move {
        let piece = match &mut answering {
            Some(copy) => tokio::select! {
                piece = pieces.next() => Some(piece),
                () = copy.ended() => None,
            },
            None => None,
        };
        let piece = match piece {
            Some(piece) => piece,
            None => {
                drop(answering.take());
                pieces.next().await
            }
        };
        if let (Some(Ok(piece)), Some(answering)) = (&piece, &mut answering) {
            answering.copy(piece);
        }
        piece.map(|piece| (piece, (pieces, answering)))
    })
}

/// Returns what a provider did that has not answered, and why.
fn unanswered(error: reqwest::Error) -> String {
    let what = match &error {
        error if error.is_connect() => "cannot be reached",
        error if error.is_timeout() => "did not answer in time",
        error if error.is_body() || error.is_decode() => "broke off its answer",
        _ => "did not answer",
    };
    // An address may contain a key.
    format!("{what}: {}", reason(&error.without_url()))
}

/// Returns the error, down to its cause.
fn reason(error: &dyn std::error::Error) -> String {
    let mut causes = vec![error.to_string()];
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if causes.last() != Some(&text) {
            causes.push(text);
        }
        source = cause.source();
    }
    causes.join(": ")
}

#[cfg(test)]
mod tests {
    use super::forward;
    use crate::exchange::Answering;
    use crate::identity::TODO;
    use crate::{Api, Gateway, GatewayConfig, Keeping, RecallBy, Upstream};
    use axum::body::Body;
    use axum::extract::Request;
    use axum::http::{HeaderMap, HeaderValue};
    use bytes::Bytes;
    use foldback::{Memory, Options};
    use foldback_core::TodoId;
    use futures::FutureExt as _;
    use parking_lot::Mutex;
    use serde_json::json;
    use std::sync::{Arc, mpsc};

    /// GW15: a client that leaves while its request waits for the store has its question recorded, and no bill.
    #[tokio::test]
    async fn gw15_a_request_that_was_never_sent_costs_nothing() {
        let memory = Memory::in_memory(Options::default().with_view(Keeping::view())).unwrap();
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let mut config = GatewayConfig::new().unwrap();
        config.anthropic = Upstream::new("http://127.0.0.1:1").unwrap();
        config.keeping = Keeping::On(memory.clone());
        config.recall = RecallBy::Always;
        config.log = Arc::new(move |_| {
            let _ = released.lock().recv();
        });
        let gateway = Gateway::new(config).unwrap();
        let recorder = gateway.recorder();
        // The recorder is busy with another request of the same todo, which it cannot read.
        let headers: HeaderMap =
            [(TODO.parse().unwrap(), HeaderValue::from_static("quay"))].into_iter().collect();
        let mut unreadable = Answering::new(recorder.clone());
        let (api, path) = (Api::Messages, "/v1/messages");
        unreadable.asked = recorder.asked(api, path, &headers, &Bytes::from_static(b"none"));
        unreadable.is_kept = true;
        drop(unreadable);
        let question = "哪个港口? ".repeat(4_000);
        let body = json!({ "model": "m", "messages": [{ "role": "user", "content": question }] });
        let body = body.to_string();
        let request = Request::post(path).header(TODO, "quay").header("content-length", body.len());
        let request = request.body(Body::from(body)).unwrap();
        let mark = gateway.in_progress.begin();
        assert!(forward(&gateway, api, request, mark).now_or_never().is_none());
        drop(release);
        recorder.finish().await;
        let recorded = memory.conversations().export(&TodoId::new("quay").unwrap()).unwrap();
        assert!(recorded.to_json_line().contains("哪个港口?"));
        assert_eq!(recorder.ledger().sums().requests, 0);
    }
}

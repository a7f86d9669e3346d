//! A request on its way to the provider, and the answer on its way back.

use crate::exchange::{Answering, Asked};
use crate::headers::passed;
use crate::refusal::refusal;
use crate::turn::{Ask, Bill, Place, Recall, as_it_is, play, prepare};
use crate::{Api, Gateway, Keeping, RecallBy};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use bytes::{Bytes, BytesMut};
use futures::{FutureExt as _, Stream, StreamExt as _, stream};
use std::sync::Arc;

/// The header that says what the gateway could not do.
pub(crate) const NOTICE: &str = "x-foldback-notice";

/// A conversation of more bytes than this passes without being read.
const LONGEST: usize = 64 << 20;

/// A notice has at most so many characters.
const LONGEST_NOTICE: usize = 200;

/// What of a body was read before it is sent on.
enum Read {
    Whole(Bytes),
    /// Too long, or broken off: what was read, and what comes behind it.
    Begun(Bytes, axum::body::BodyDataStream),
}

/// Passes a request on as it came, and gives the provider's answer as it comes.
pub(crate) async fn forward(gateway: &Gateway, api: Api, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let trouble = gateway.recorder.trouble().filter(|_| api.has_conversation());
    let is_closed = trouble.is_some() && gateway.config.fail_closed;
    if let Some(trouble) = gateway.recorder.fresh_trouble().filter(|_| is_closed) {
        let why = format!("{trouble}; nothing passes that cannot be recorded");
        return refusal(api, StatusCode::SERVICE_UNAVAILABLE, &why);
    }
    let upstream =
        if api.is_anthropic() { &gateway.config.anthropic } else { &gateway.config.openai };
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let url = match upstream.url(path, api.is_anthropic()) {
        Ok(url) => url,
        Err(error) => return refusal(api, StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let (mut asked, mut played) = (None, None);
    let has_body = head.headers.contains_key("content-length")
        || head.headers.contains_key("transfer-encoding");
    let client = gateway.http(upstream);
    let out = client.request(head.method.clone(), url.clone()).headers(passed(&head.headers));
    let out = match has_body {
        false => out,
        true if api.has_conversation() => match read(body).await {
            Read::Whole(bytes) => {
                asked = gateway
                    .recorder
                    .keeps(api)
                    .then(|| Asked::new(api, &head.headers, &bytes, gateway.recorder.secret()));
                (asked, played) = recalling(gateway, asked).await;
                out.body(bytes)
            }
            Read::Begun(..) if gateway.config.fail_closed => {
                let why = "the request is too long to be recorded, and nothing passes that is not";
                return refusal(api, StatusCode::SERVICE_UNAVAILABLE, why);
            }
            Read::Begun(begun, rest) => {
                let why =
                    format!("a request of over {LONGEST} bytes, or a broken one, is not recorded");
                (gateway.config.log)(&why);
                let begun = stream::once(async { Ok(begun) });
                out.body(reqwest::Body::wrap_stream(begun.chain(rest)))
            }
        },
        true => out.body(reqwest::Body::wrap_stream(body.into_data_stream())),
    };
    let sent = match played {
        Some((body, recall)) => {
            let ask = asker(client.clone(), head.method, url, &head.headers);
            play(ask, api, body, recall).await
        }
        None => out.send().await.map(as_it_is),
    };
    let mut response = match sent {
        Ok(response) => response,
        Err(error) => {
            // An address may hold a key.
            let error = reason(&error.without_url());
            let why = format!("{upstream} cannot be asked: {error}");
            (gateway.config.log)(&why);
            return refusal(api, StatusCode::BAD_GATEWAY, &why);
        }
    };
    if let Some(trouble) = trouble {
        let notice = trouble.replace(|c: char| !c.is_ascii_graphic() && c != ' ', "?");
        let notice: String = notice.chars().take(LONGEST_NOTICE).collect();
        response.headers_mut().extend(
            HeaderValue::from_str(&notice)
                .ok()
                .map(|notice| (axum::http::HeaderName::from_static(NOTICE), notice)),
        );
    }
    let answering = asked
        .filter(|_| response.status().is_success())
        .map(|asked| Answering::new(asked, response.headers().clone(), gateway.recorder.clone()));
    response.map(|body| Body::from_stream(copied(body.into_data_stream(), answering)))
}

/// Where the model of a request may look things up, the body that is sent in place of the client's, and with what its
/// calls are answered.
async fn recalling(
    gateway: &Gateway,
    asked: Option<Asked>,
) -> (Option<Asked>, Option<(String, Recall)>) {
    let config = &gateway.config;
    let (RecallBy::Stream, Keeping::On(memory)) = (config.recall, &config.keeping) else {
        return (asked, None);
    };
    let Some(asked) = asked else { return (None, None) };
    let (api, body) = (asked.api, asked.body());
    let (asked, todo) = gateway.recorder.find(asked).await;
    let (Some(todo), Some(body)) = (todo, body) else { return (asked, None) };
    let total = Arc::clone(&gateway.billed);
    let bill: Bill = Arc::new(move |usage| total.lock().add(usage));
    let place = Place { memory: memory.clone(), todo, bill, log: config.log.clone() };
    let prepared = tokio::task::spawn_blocking(move || prepare(api, &body, place)).await;
    (asked, prepared.unwrap_or_default())
}

/// What sends other bodies in the place of a client's.
fn asker(client: reqwest::Client, method: Method, url: reqwest::Url, headers: &HeaderMap) -> Ask {
    let mut headers = passed(headers);
    for name in [header::CONTENT_LENGTH, header::CONTENT_ENCODING] {
        headers.remove(name);
    }
    // What comes back is read on its way.
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    Arc::new(move |body| {
        let request = client.request(method.clone(), url.clone()).headers(headers.clone());
        request.body(body).send().boxed()
    })
}

/// Reads a body to its end, or as far as it may be long.
async fn read(body: Body) -> Read {
    let mut stream = body.into_data_stream();
    let mut bytes = BytesMut::new();
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => bytes.extend_from_slice(&piece),
            // The request upstream breaks off where the client's did.
            Err(error) => {
                let broken = Body::from_stream(stream::once(async { Err::<Bytes, _>(error) }));
                return Read::Begun(bytes.freeze(), broken.into_data_stream());
            }
        }
        if bytes.len() > LONGEST {
            return Read::Begun(bytes.freeze(), stream);
        }
    }
    Read::Whole(bytes.freeze())
}

/// The pieces as they come, with a copy for the recorder.
fn copied<E>(
    pieces: impl Stream<Item = Result<Bytes, E>>,
    answering: Option<Answering>,
) -> impl Stream<Item = Result<Bytes, E>> {
    let state = (Box::pin(pieces), answering);
    stream::unfold(state, |(mut pieces, mut answering)| async move {
        let piece = pieces.next().await;
        if let (Some(Ok(piece)), Some(answering)) = (&piece, &mut answering) {
            answering.copy(piece);
        }
        piece.map(|piece| (piece, (pieces, answering)))
    })
}

/// What went wrong, down to its cause.
fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

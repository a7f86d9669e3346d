//! A request on its way to the provider, and the answer on its way back.

use crate::exchange::{Answering, Asked};
use crate::headers::passed;
use crate::refusal::refusal;
use crate::traffic::taped;
use crate::{Api, Gateway};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Response, StatusCode};
use bytes::{Bytes, BytesMut};
use futures::{Stream, StreamExt as _, stream};

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
    let (mut asked, mut tape) = (None, None);
    let has_body = head.headers.contains_key("content-length")
        || head.headers.contains_key("transfer-encoding");
    let out = gateway.http(upstream).request(head.method, url).headers(passed(&head.headers));
    let out = match has_body {
        false => out,
        true if api.has_conversation() => match read(body).await {
            Read::Whole(bytes) => {
                let (path, secret) = (head.uri.path(), gateway.recorder.secret());
                asked = gateway
                    .recorder
                    .keeps(api)
                    .then(|| Asked::new(api, path, &head.headers, &bytes, secret));
                let traffic = gateway.traffic.as_ref();
                tape = traffic.map(|traffic| traffic.asked(api, path, &head.headers, &bytes));
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
    let answer = match out.send().await {
        Ok(answer) => answer,
        Err(error) => {
            // An address may hold a key.
            let error = reason(&error.without_url());
            let why = format!("{upstream} cannot be asked: {error}");
            (gateway.config.log)(&why);
            return refusal(api, StatusCode::BAD_GATEWAY, &why);
        }
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status();
    *response.headers_mut() = passed(answer.headers());
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
        .filter(|_| answer.status().is_success())
        .map(|asked| Answering::new(asked, answer.headers().clone(), gateway.recorder.clone()));
    let answered = tape.map(|tape| tape.answered(answer.status(), answer.headers()));
    let pieces = taped(answer.bytes_stream(), answered);
    *response.body_mut() = Body::from_stream(copied(pieces, answering));
    response
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

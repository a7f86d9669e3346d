//! A client's turn in which the model calls tools that the client knows nothing of.

mod begun;
mod calls;
mod chat;
mod edits;
mod messages;
mod parked;
mod player;
mod responses;
mod rounds;
mod stream;
mod told;
mod whole;
mod wire;

pub(crate) use calls::LOAD;

use crate::headers::{passed, text};
use crate::usage::Usage;
use crate::{Api, Log};
use axum::body::Body;
use axum::http::{HeaderMap, Response, header};
use bytes::Bytes;
use calls::declare;
use foldback::{Memory, MemoryTool};
use foldback_core::TodoId;
use futures::future::BoxFuture;
use parked::{Said, messages_of, put_back};
use parking_lot::Mutex;
use player::Player;
use rounds::Rounds;
use std::borrow::Cow;
use std::sync::Arc;

/// What a turn looks things up in, and where it keeps what the client does not see.
pub(crate) struct Recall {
    memory: Memory,
    todo: TodoId,
    /// The names of our tools, as they are declared.
    tools: Vec<String>,
    /// What the client has sent.
    said: Vec<Said>,
    billed: Billed,
    log: Log,
}

/// What each request of a turn was billed, as far as its provider has said so.
pub(crate) type Billed = Arc<Mutex<Vec<Usage>>>;

/// The tools that a model is given to look things up with: the same from the first request on that declares any, also
/// after a restart, for tools stand in front of everything that is cached.
const TOOLS: [&str; 2] = ["search_block", "load"];

/// Whether tools of ours can be declared in a request.
pub(crate) fn can_declare(api: Api, body: &str) -> bool {
    declare(api, body, &[]).is_some()
}

/// Sends a body to the provider.
pub(crate) type Ask = Arc<
    dyn Fn(Bytes) -> BoxFuture<'static, Result<reqwest::Response, reqwest::Error>> + Send + Sync,
>;

/// Sends a request whose tools include ours, answers the model's calls of them, and gives the client one answer.
///
/// # Errors
/// When the provider cannot be asked.
pub(crate) async fn play(
    ask: Ask,
    api: Api,
    body: String,
    recall: Recall,
) -> Result<Response<Body>, reqwest::Error> {
    let rounds = Rounds::new(api, &body, recall);
    let answer = ask(Bytes::from(body)).await?;
    let kind = text(answer.headers(), "content-type").unwrap_or_default();
    let is_stream = kind.starts_with("text/event-stream");
    if !answer.status().is_success() {
        return Ok(as_it_is(answer));
    }
    if !is_stream {
        return whole::play(ask, api, rounds, answer).await;
    }
    let (status, headers) = (answer.status(), without_length(answer.headers()));
    let body = Player::new(ask, api, rounds, answer).stream();
    Ok(responded(status, headers, Body::from_stream(body)))
}

/// What of a request has to be known before it is played.
pub(crate) struct Place {
    pub(crate) memory: Memory,
    pub(crate) todo: TodoId,
    pub(crate) billed: Billed,
    pub(crate) log: Log,
}

/// The body with what stands in it unseen by the client, and our tools declared; `None` where it goes as it came. It
/// reads the store. A `part` of the client's body stands for it where there is one, with the places of its messages.
pub(crate) fn prepare(
    api: Api,
    body: &str,
    part: Option<(String, Vec<Option<usize>>)>,
    place: Place,
) -> Option<(String, Recall)> {
    let Place { memory, todo, billed, log } = place;
    let messages = messages_of(api, body)?;
    let said: Vec<_> = messages.iter().map(|(_, said)| *said).collect();
    let (body, messages) = match part {
        None => (Cow::Borrowed(body), (0..).map(Some).zip(messages).collect::<Vec<_>>()),
        Some((part, places)) => {
            let messages = messages_of(api, &part)?;
            (Cow::Owned(part), places.into_iter().zip(messages).collect())
        }
    };
    let body = match put_back(api, &body, &messages, &said, (&memory, &todo)) {
        Ok(body) => body?,
        Err(error) => {
            log(&format!("what was looked up before is not put back: {error}"));
            return None;
        }
    };
    let tools: Vec<_> =
        MemoryTool::all().into_iter().filter(|tool| TOOLS.contains(&tool.name)).collect();
    let (body, tools) = declare(api, &body, &tools)?;
    Some((body, Recall { memory, todo, tools, said, billed, log }))
}

/// An answer of the provider as it is.
pub(crate) fn as_it_is(answer: reqwest::Response) -> Response<Body> {
    let (status, headers) = (answer.status(), passed(answer.headers()));
    responded(status, headers, Body::from_stream(answer.bytes_stream()))
}

fn responded(status: axum::http::StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// An answer's headers, without its length, which may be another one.
fn without_length(headers: &HeaderMap) -> HeaderMap {
    let mut headers = passed(headers);
    headers.remove(header::CONTENT_LENGTH);
    headers
}

//! A client's turn in which the model calls tools that the client does not know.

mod begun;
mod calls;
mod chat;
mod edits;
mod failed;
#[cfg(feature = "fuzzing")]
mod fuzzing;
mod messages;
mod parked;
mod player;
mod responses;
mod rounds;
mod stream;
mod told;
mod whole;
mod wire;

pub(crate) use calls::{Declaring, LOAD, tools_in};
pub(crate) use edits::elements;
#[cfg(feature = "fuzzing")]
pub(crate) use fuzzing::{declared, looked_through, shown};

use crate::body::Unpacker;
use crate::client_message::Facts;
use crate::fold::Rewritten;
use crate::headers::{passed, text};
use crate::recorder_thread::Recalling;
use crate::refusal::refusal;
use crate::usage::Usage;
use crate::{Api, Ledger, Log};
use axum::BoxError;
use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode, header};
use bytes::Bytes;
use calls::declare;
use foldback::{Memory, MemoryTool, ParkedName};
use foldback_core::TodoId;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use parked::{parked_for, put_back};
use parking_lot::Mutex;
use player::Player;
use rounds::Rounds;
use std::sync::Arc;

/// Where a turn looks things up, and where it keeps what the client does not see.
pub(crate) struct Recall {
    memory: Memory,
    todo: TodoId,
    /// The names of our tools, as they are declared.
    tools: Vec<String>,
    /// What the client has sent.
    said: Vec<Facts>,
    billed: Billed,
    ledger: Ledger,
    log: Log,
}

/// What each request of a turn was billed, as far as its provider has reported it.
pub(crate) type Billed = Arc<Mutex<Vec<Usage>>>;

/// The tools that a model is given to look things up: the same from the first request that declares any, even after a
/// restart, because tools precede everything that is cached.
const TOOLS: [&str; 2] = ["search_block", "load"];

/// Sends a body to the provider.
pub(crate) type Ask = Arc<
    dyn Fn(Bytes) -> BoxFuture<'static, Result<reqwest::Response, reqwest::Error>> + Send + Sync,
>;

/// Sends a request whose tools include ours, answers the model's calls of them, and gives the client one answer.
///
/// # Errors
/// When the provider cannot be reached.
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
    let (status, headers) = (answer.status(), without_form(answer.headers()));
    let Some(pieces) = pieces(answer) else { return Ok(unreadable(api)) };
    let body = Player::new(ask, api, rounds, pieces).stream();
    Ok(responded(status, headers, Body::from_stream(body)))
}

/// Where a turn is played.
pub(crate) struct Place {
    pub(crate) memory: Memory,
    pub(crate) billed: Billed,
    pub(crate) ledger: Ledger,
    pub(crate) log: Log,
}

/// A request whose model may look things up.
pub(crate) struct Prepared {
    pub(crate) body: String,
    pub(crate) recall: Recall,
    /// The places among the client's messages at which look-ups were put back, with their names.
    pub(crate) put_back: Vec<(usize, ParkedName)>,
}

/// Returns the body with our tools declared and with what the client does not see put back; `None` if the request is
/// sent unchanged. It reads the store. `part`, if given, replaces the client's body.
pub(crate) fn prepare(
    api: Api,
    recalling: &Recalling,
    part: Option<&Rewritten>,
    place: Place,
) -> Option<Prepared> {
    let Place { memory, billed, ledger, log } = place;
    let Recalling { todo, body, said } = recalling;
    let parked = parked_for(said, &memory, todo);
    let parked = parked.map_err(|error| {
        log(&format!("earlier look-ups are not put back: {error}"));
    });
    let (body, places) = match part {
        None => (body.as_str(), None),
        Some(part) => (part.body.as_str(), Some(part.places.as_slice())),
    };
    let whole;
    let mut at = Vec::new();
    let body = match parked.ok()?? {
        parked if parked.is_empty() => body,
        parked => {
            (whole, at) = put_back(api, body, places, parked)?;
            &whole
        }
    };
    let tools: Vec<_> =
        MemoryTool::all().into_iter().filter(|tool| TOOLS.contains(&tool.name)).collect();
    let (body, tools) = declare(api, body, &tools)?;
    let (todo, said) = (todo.clone(), said.clone());
    let recall = Recall { memory, todo, tools, said, billed, ledger, log };
    Some(Prepared { body, recall, put_back: at })
}

/// Returns an answer of the provider unchanged.
pub(crate) fn as_it_is(answer: reqwest::Response) -> Response<Body> {
    let (status, headers) = (answer.status(), passed(answer.headers()));
    responded(status, headers, Body::from_stream(answer.bytes_stream()))
}

/// The pieces of an answer, unpacked.
type Pieces = BoxStream<'static, Result<Bytes, BoxError>>;

/// Returns the pieces of an answer. It was requested unpacked, but a proxy may have packed it. `None` if its encoding is
/// unknown.
fn pieces(answer: reqwest::Response) -> Option<Pieces> {
    let mut unpacker = Unpacker::of(answer.headers())?;
    let pieces = answer.bytes_stream().map_err(BoxError::from);
    if unpacker.is_idle() {
        return Some(pieces.boxed());
    }
    Some(pieces.map(move |piece| Ok(Bytes::from(unpacker.unpack(&piece?)?))).boxed())
}

/// Refuses an answer that may have calls which are not for the client.
fn unreadable(api: Api) -> Response<Body> {
    let why =
        "the provider packed its answer, although it was asked not to, and it cannot be unpacked";
    refusal(api, StatusCode::BAD_GATEWAY, why)
}

fn responded(status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Returns the headers of an answer that is unpacked and may change its length.
fn without_form(headers: &HeaderMap) -> HeaderMap {
    let mut headers = passed(headers);
    for name in [header::CONTENT_LENGTH, header::CONTENT_ENCODING] {
        headers.remove(name);
    }
    headers
}

//! The contents of a request that passed through the gateway: which messages were sent.

use super::answer::{ApiError, Json, Named, noted, raw, reading, session_id};
use super::sent_parts::left_out;
use crate::server::Shared;
use axum::extract::State;
use foldback::Memory;
use foldback::core::{Message, TodoId};
use foldback_gateway::{Entry, SentPart, TextName, WhyWhole};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
use utoipa::ToSchema;

/// Which messages a request had. Ranges are of recorded messages: the first, and the number after the last. Instructions
/// that a client sends beside its messages are in the first range, as they were when the conversation began.
#[derive(Serialize, ToSchema)]
pub(crate) struct RequestContents {
    /// Its number among the requests of the session, from 1.
    number: usize,
    /// The client's conversation.
    asked: Vec<[u64; 2]>,
    /// What was sent, in order.
    sent: Vec<SentMessages>,
    /// What was left out.
    left_out: Vec<[u64; 2]>,
    /// Whether it was sent as the client wrote it.
    is_as_asked: bool,
    /// The names of the client's own tools that it declared, or the types of those without one, in alphabetical order;
    /// null if they are not recorded.
    tools: Option<Vec<String>>,
    /// Whether the gateway declared tools with which the model looks things up.
    has_tools: bool,
    /// Why it was sent whole although something might have been left out: `slow_store`, `refused` by the provider, or
    /// `refused_before`. Null in every other case.
    whole: Option<&'static str>,
}

/// Messages that were sent.
#[derive(Serialize, ToSchema)]
struct SentMessages {
    /// `kept` as recorded, `without_thoughts` of the model, `shortened`, `looked_up` if recalls by the model that the
    /// client does not know were put back around them, or `added` by the gateway.
    kind: &'static str,
    /// The first recorded message, and the number after the last; null for what the gateway added.
    from: Option<u64>,
    to: Option<u64>,
    /// What was sent word for word, if that is not what is recorded: the message of the gateway, the short form, or the
    /// model's messages and the answers of the gateway in the form of the API. Null if the store does not have it.
    #[schema(value_type = Option<Vec<Object>>)]
    messages: Option<Vec<Box<RawValue>>>,
}

/// Returns which messages the gateway sent in a request, and which it left out.
#[utoipa::path(
    get,
    path = "/api/v1/sessions/{id}/requests/{number}",
    params(
        ("id" = String, Path, description = "The session"),
        ("number" = usize, Path, description = "The number of the request, from 1"),
    ),
    responses((status = 200, body = RequestContents), (status = "4XX", body = ApiError))
)]
pub(crate) async fn contents(
    State(shared): State<Arc<Shared>>,
    Named((id, number)): Named<(String, usize)>,
) -> Result<Json<RequestContents>, ApiError> {
    let todo = session_id(&id)?;
    let contents = reading(shared, move |shared| {
        shared.memory.len(&todo)?;
        noted(shared, Some(&todo), "inspect", &[])?;
        let one = |_| number.saturating_sub(1)..number;
        let (_, found) = shared.sessions.ledgers.entries(todo.as_str(), one)?;
        let entry = found.first().ok_or_else(|| {
            ApiError::not_found(format!("there is no request {number} of this session"))
        })?;
        described(&shared.memory, &todo, number, entry)
    });
    Ok(Json(contents.await?))
}

fn described(
    memory: &Memory,
    todo: &TodoId,
    number: usize,
    entry: &Entry,
) -> Result<RequestContents, ApiError> {
    let Some(contents) = &entry.contents else {
        let why = format!("which messages request {number} had is not recorded");
        return Err(ApiError::not_found(why));
    };
    let mut sent = Vec::new();
    if contents.sent.is_empty() {
        sent.extend(contents.asked.iter().map(|(from, to)| part("kept", *from, *to)));
    }
    for one in &contents.sent {
        sent.push(match one {
            SentPart::Kept(from, to) => part("kept", *from, *to),
            SentPart::WithoutThoughts(from, to) => part("without_thoughts", *from, *to),
            SentPart::Instead(seq, name) => {
                let messages = note(memory, todo, name)?.map(|json| alone(&json)).transpose()?;
                SentMessages { messages, ..part("shortened", *seq, seq + 1) }
            }
            SentPart::Added(name) => {
                let message = note(memory, todo, name)?.map(|text| Message::user(&text));
                let messages = message.map(|message| alone(message.json())).transpose()?;
                SentMessages { kind: "added", from: None, to: None, messages }
            }
            SentPart::LookedUp(from, to, name) => {
                let text = memory.parked(todo, &[name.0])?.pop().flatten();
                let messages = text.map(|text| looked_up(&text)).transpose()?;
                SentMessages { messages, ..part("looked_up", *from, *to) }
            }
            _ => return Err(ApiError::failed("a newer version of foldback wrote the ledger")),
        });
    }
    let tools = contents.tools.as_ref().map(|name| note(memory, todo, name)).transpose()?.flatten();
    Ok(RequestContents {
        number,
        // A note that was too long, or held a secret, was not kept.
        tools: tools.and_then(|names| serde_json::from_str(&names).ok()),
        asked: contents.asked.iter().map(|(from, to)| [*from, *to]).collect(),
        left_out: left_out(contents),
        sent,
        is_as_asked: contents.sent.is_empty() && !contents.has_tools,
        has_tools: contents.has_tools,
        whole: contents.whole.map(|why| match why {
            WhyWhole::SlowStore => "slow_store",
            WhyWhole::Refused => "refused",
            _ => "refused_before",
        }),
    })
}

/// Recorded messages that were sent as they are recorded.
fn part(kind: &'static str, from: u64, to: u64) -> SentMessages {
    SentMessages { kind, from: Some(from), to: Some(to), messages: None }
}

fn alone(json: &str) -> Result<Vec<Box<RawValue>>, ApiError> {
    Ok(vec![raw(json)?])
}

fn note(memory: &Memory, todo: &TodoId, name: &TextName<8>) -> Result<Option<String>, ApiError> {
    Ok(memory.notes(todo, &[name.0])?.pop().flatten())
}

/// The messages of a parked text: those of a whole turn, or of the rounds of one that broke off.
fn looked_up(text: &str) -> Result<Vec<Box<RawValue>>, ApiError> {
    let parked: Value = serde_json::from_str(text).map_err(ApiError::failed)?;
    let rounds = parked["rounds"].as_array().into_iter().flatten();
    let lists = rounds.map(|round| &round["messages"]).chain([&parked["messages"]]);
    let messages = lists.filter_map(Value::as_array).flatten();
    let ours = parked["answers"].as_array().into_iter().flatten().map(|answer| &answer["ours"]);
    messages.chain(ours.filter(|ours| !ours.is_null())).map(|one| raw(&one.to_string())).collect()
}

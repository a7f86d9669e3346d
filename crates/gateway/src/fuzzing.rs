//! For fuzzing: the readers of what clients and providers send, without a server around them.

use crate::Api;
use crate::exchange::Asked;
use crate::model_answer::message_of;
use crate::reader::Reader;
use crate::turn;
use crate::usage::Usage;
use axum::http::HeaderMap;
use bytes::Bytes;
use foldback_core::Timestamp;

/// The APIs whose requests hold a conversation.
pub const APIS: [Api; 3] = [Api::Messages, Api::ChatCompletions, Api::Responses];

const SECRET: [u8; 32] = [7; 32];

/// Reads the body of a request, and once more as one that shares its beginning with a body which was read; returns
/// how many messages it has, or `None` if it has no known shape. Both readings must give the same.
#[must_use]
pub fn request(api: Api, body: &[u8]) -> Option<usize> {
    let body = Bytes::copy_from_slice(body);
    let mut reader = Reader::new(SECRET);
    let mut read = || {
        let asked = Asked::new(Timestamp(0), api, "/", &HeaderMap::new(), &body, &SECRET);
        let read = reader.read(&asked).ok()?;
        for message in read.asked() {
            // What is not a message of its API is refused.
            drop(message.messages());
        }
        Some(read.asked().len())
    };
    let first = read();
    let again = read();
    assert_eq!(first, again, "what is known of a body makes no difference");
    if let Ok(text) = str::from_utf8(&body) {
        turn::declared(api, text);
    }
    first
}

/// Reads a model's answer, streamed in pieces of this many bytes or whole; returns what the client gets of it.
#[must_use]
pub fn answer(api: Api, answer: &[u8], piece: usize) -> Vec<u8> {
    if let Ok(text) = str::from_utf8(answer) {
        drop((message_of(api, text), Usage::of(api, text)));
        turn::looked_through(api, text);
    }
    turn::shown(api, answer, piece.max(1))
}

//! For fuzzing: what a turn does to a request and to answers, without a provider.

use super::LOAD;
use super::calls::{calls, declare, sent_back, without};
use super::stream::Stream;
use crate::Api;
use crate::model_answer::message_of;
use foldback::MemoryTool;

/// Declares the memory's tools in a body.
pub(crate) fn declared(api: Api, body: &str) {
    if let Some((declared, names)) = declare(api, body, &MemoryTool::all()) {
        assert!(declared.len() >= body.len() + names.len(), "something of the client's is gone");
    }
}

/// Looks for calls in an answer, and removes ours.
pub(crate) fn looked_through(api: Api, answer: &str) {
    let Some(message) = message_of(api, answer) else { return };
    let Ok(message) = serde_json::from_str(message.get()) else { return };
    let calls = calls(api, &message, &[LOAD.to_owned()]);
    drop(sent_back(api, message.clone(), true));
    drop(without(api, message, &calls));
}

/// Returns what a client gets of a turn of two answers like this one, in pieces of this many bytes.
pub(crate) fn shown(api: Api, answer: &[u8], piece: usize) -> Vec<u8> {
    let mut stream = Stream::new(api, vec![LOAD.to_owned()]);
    let mut out = Vec::new();
    for round in 0..2 {
        for piece in answer.chunks(piece) {
            out.extend(stream.read(piece));
        }
        if !stream.close() || round > 0 {
            break;
        }
        stream.go_on();
    }
    out.extend(stream.rest());
    out
}

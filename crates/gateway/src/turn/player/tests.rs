//! GW9: what a client receives while it waits, and what ends with it.

use super::super::{Ask, Billed, Recall, Rounds, pieces};
use super::Player;
use crate::{Api, Ledger, Log};
use bytes::Bytes;
use foldback::{Memory, Options};
use foldback_core::{Message, TodoId};
use futures::{FutureExt as _, StreamExt as _};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

const FIRST: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"foldback_load\",\"arguments\":\"{}\"}}]}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";
const SECOND: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Yes.\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn answer(text: &'static str) -> reqwest::Response {
    let answer = axum::http::Response::builder().header("content-type", "text/event-stream");
    answer.body(text).unwrap().into()
}

/// A provider that thinks for this many seconds, and a flag that is set when its request is dropped.
fn slow(seconds: u64) -> (Ask, Arc<Mutex<bool>>) {
    struct Gone(Arc<Mutex<bool>>);
    impl Drop for Gone {
        fn drop(&mut self) {
            *self.0.lock() = true;
        }
    }
    let is_gone = Arc::new(Mutex::new(false));
    let mark = Arc::clone(&is_gone);
    let ask: Ask = Arc::new(move |_: Bytes| {
        let gone = Gone(Arc::clone(&mark));
        async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            drop(gone);
            Ok(answer(SECOND))
        }
        .boxed()
    });
    (ask, is_gone)
}

fn player(ask: Ask) -> Player {
    drop(rustls::crypto::ring::default_provider().install_default());
    let memory = Memory::in_memory(Options::default()).unwrap();
    let todo = TodoId::new("t").unwrap();
    memory.session(&todo).unwrap().record(Message::user("hello")).unwrap();
    let log: Log = Arc::new(|_| {});
    let recall = Recall {
        memory,
        todo,
        tools: vec!["foldback_load".to_owned()],
        said: Vec::new(),
        billed: Billed::default(),
        ledger: Ledger::new(None, &log),
        log,
    };
    let rounds = Rounds::new(Api::ChatCompletions, r#"{"messages":[]}"#, recall);
    Player::new(ask, Api::ChatCompletions, rounds, pieces(answer(FIRST)).unwrap())
}

#[tokio::test(start_paused = true)]
async fn gw9_a_client_that_waits_hears_something() {
    let (ask, _) = slow(12);
    let pieces: Vec<_> = player(ask).stream().map(Result::unwrap).collect().await;
    let text: String = pieces.iter().map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    assert_eq!(text.matches(": foldback\n\n").count(), 2, "{text}");
    assert!(text.contains("Yes.") && text.ends_with("data: [DONE]\n\n"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn gw12_a_client_that_is_gone_ends_its_request() {
    let (ask, is_gone) = slow(60);
    let mut stream = Box::pin(player(ask).stream());
    loop {
        let piece = stream.next().await.unwrap().unwrap();
        if piece.starts_with(b": foldback") {
            break;
        }
    }
    assert!(!*is_gone.lock());
    drop(stream);
    assert!(*is_gone.lock());
}

//! Several servers of one model.

use crate::wire::{bodies, json, question, serve};
use foldback_llm::{ChatModel, ChatRequest, ModelErrorKind, RetryPolicy, Retrying};
use foldback_providers::{ModelConfig, Provider, RemoteModel};
use std::collections::BTreeSet;
use std::time::Duration;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

const HI: &str = r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}"#;

fn asked_by(session: &str) -> ChatRequest {
    question().with_session(session)
}

async fn asked(server: &MockServer) -> usize {
    bodies(server).await.len()
}

/// MC4: a session stays at one server of several; when that is lost, its sessions move to the others, and
/// theirs stay; without a session, the least loaded serves.
#[tokio::test]
async fn mc4_sessions_stay_until_their_server_is_lost() {
    let servers = [serve(json(HI)).await, serve(json(HI)).await, serve(json(HI)).await];
    let at = |server: &MockServer| format!("{}/v1", server.uri());
    let rest = [at(&servers[1]), at(&servers[2])];
    let config = ModelConfig::new(Provider::OpenAiCompatible, &at(&servers[0]), "m");
    let model = RemoteModel::new(config.with_workers(rest.iter().map(String::as_str))).unwrap();
    let mut homes: Vec<BTreeSet<String>> = vec![BTreeSet::new(); 3];
    for session in (0..40).map(|n| format!("会话-{n}")) {
        let before = [asked(&servers[0]).await, asked(&servers[1]).await, asked(&servers[2]).await];
        for _ in 0..2 {
            model.complete(&asked_by(&session)).await.unwrap();
        }
        for (n, server) in servers.iter().enumerate() {
            let more = asked(server).await - before[n];
            assert!(more == 0 || more == 2, "{session} went to two servers");
            if more == 2 {
                homes[n].insert(session.clone());
            }
        }
    }
    assert!(homes.iter().all(|home| !home.is_empty()), "{homes:?}");

    let [first, second, third] = servers;
    first.reset().await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(503)).mount(&first).await;
    let lost: Vec<_> = homes[0].iter().collect();
    let error = model.complete(&asked_by(lost[0])).await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unavailable, "it is found out by the first request");
    let policy = RetryPolicy::default().with_first_wait(Duration::from_millis(1));
    let model = Retrying::new(model, policy);
    let before = [asked(&second).await, asked(&third).await];
    for session in &lost {
        model.complete(&asked_by(session)).await.unwrap();
    }
    let moved = asked(&second).await + asked(&third).await - before[0] - before[1];
    assert_eq!(moved, lost.len());
    let before = asked(&second).await;
    for session in &homes[1] {
        model.complete(&asked_by(session)).await.unwrap();
    }
    assert_eq!(asked(&second).await - before, homes[1].len(), "what was elsewhere stays");
    model.complete(&question()).await.unwrap();
}

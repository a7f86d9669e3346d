//! GW12: what is recorded where an answer does not come, does not end or cannot be read, and where nothing can be recorded.

use crate::world::{World, body, client, counting, exports, todos};
use foldback::{Memory, Options, Quota};
use foldback_gateway::{Gateway, Keeping, Upstream as Address};
use foldback_testkit::upstream::{Answer, Raw};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// The one conversation of a store, as the client sent it.
#[track_caller]
fn only(memory: &Memory) -> String {
    let todos = todos(memory);
    assert_eq!(todos.len(), 1, "{todos:?}");
    exports(memory, &todos[0]).concat().concat()
}

#[tokio::test]
async fn gw12_a_question_is_kept_whose_client_leaves_before_the_answer() {
    let (provider, arrived) = endless(false).await;
    let world = World::with(counting(), |config| {
        config.openai = Address::new(&provider).unwrap();
    })
    .await;
    let question = json!({ "role": "user", "content": "Which port? 哪个端口?" });
    let asked = json!({ "model": "m", "messages": [question] });
    let asking = tokio::spawn(world.chat(&asked).send());
    arrived.notified().await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    let (memory, _) = world.end().await;
    assert!(only(&memory).contains("哪个端口"));
}

#[tokio::test]
async fn gw12_an_answer_that_cannot_be_read_keeps_its_question() {
    let call = json!({ "type": "function", "function": { "name": "read", "arguments": "{}" } });
    let message = json!({ "role": "assistant", "content": null, "tool_calls": [call] });
    let answer = json!({ "choices": [{ "message": message }] }).to_string();
    let raw = Raw { status: 200, headers: Vec::new(), pieces: vec![answer.into_bytes()] };
    let world = World::new(move |_| Answer::Raw(raw.clone())).await;
    let asked = json!({ "model": "m", "messages": [{ "role": "user", "content": "Which port?" }] });
    assert_eq!(world.chat(&asked).send().await.unwrap().status(), 200);
    let (ledger, log) = (world.ledger.clone(), world.log.clone());
    let (memory, _) = world.end().await;
    assert!(only(&memory).contains("Which port?"));
    assert_eq!(ledger.sums().requests, 1);
    let log = log.lock().join("\n");
    assert!(log.contains("an answer is not recorded: ") && !log.contains("read\""), "{log}");
}

/// A provider whose answer begins, or does not even begin, and never ends; and what is notified of a request.
async fn endless(begins: bool) -> (String, Arc<Notify>) {
    let asked = Arc::new(Notify::new());
    let arrived = Arc::clone(&asked);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut request = [0; 64 << 10];
        let _ = client.read(&mut request).await.unwrap();
        arrived.notify_one();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let piece = "data: {\"choices\":[{\"delta\":{\"content\":\"It is\"}}]}\n\n";
        let begun = format!("{head}{:x}\r\n{piece}\r\n", piece.len());
        if begins {
            client.write_all(begun.as_bytes()).await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    (url, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn gw12_a_question_is_recorded_before_the_end_though_its_answer_goes_on() {
    let memory = Memory::in_memory(Options::default().with_view(Keeping::view())).unwrap();
    let mut config = foldback_gateway::GatewayConfig::new().unwrap();
    config.openai = Address::new(&endless(true).await.0).unwrap();
    config.keeping = Keeping::On(memory.clone());
    let gateway = Gateway::new(config).unwrap();
    let (finisher, ledger) = (gateway.finisher(), gateway.recorder().ledger().clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/chat/completions", listener.local_addr().unwrap());
    let served = tokio::spawn(gateway.serve(listener, std::future::pending()));
    let asked = json!({ "model": "m", "stream": true,
        "messages": [{ "role": "user", "content": "Which port?" }] });
    let mut answer = client().post(url).body(asked.to_string()).send().await.unwrap();
    assert!(answer.chunk().await.unwrap().is_some());
    assert_eq!(finisher.answers(), 1);
    finisher.finish().await;
    assert!(only(&memory).contains("Which port?"));
    assert_eq!(ledger.sums().requests, 1);
    served.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn gw12_a_question_is_recorded_before_the_end_though_its_answer_has_not_begun() {
    let (provider, arrived) = endless(false).await;
    let memory = Memory::in_memory(Options::default().with_view(Keeping::view())).unwrap();
    let mut config = foldback_gateway::GatewayConfig::new().unwrap();
    config.openai = Address::new(&provider).unwrap();
    config.keeping = Keeping::On(memory.clone());
    let gateway = Gateway::new(config).unwrap();
    let finisher = gateway.finisher();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1/chat/completions", listener.local_addr().unwrap());
    let served = tokio::spawn(gateway.serve(listener, std::future::pending()));
    let asked = json!({ "model": "m", "messages": [{ "role": "user", "content": "Which port?" }] });
    let answer = tokio::spawn(client().post(url).body(asked.to_string()).send());
    arrived.notified().await;
    finisher.finish().await;
    assert!(only(&memory).contains("Which port?"));
    let answer = answer.await.unwrap().unwrap();
    assert_eq!(answer.status(), 503);
    assert!(answer.text().await.unwrap().contains("the gateway is ending"));
    served.abort();
}

/// GW12: a client that has not sent its request does not keep the gateway from ending.
#[tokio::test(flavor = "multi_thread")]
async fn gw12_half_a_request_is_no_answer_in_progress() {
    let world = World::new(counting()).await;
    let address = world.url.strip_prefix("http://").unwrap().to_owned();
    let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
    client.write_all(b"POST /v1/messages HTTP/1.1\r\nhost: ").await.unwrap();
    let asked = body(json!([{ "role": "user", "content": "Which port?" }]));
    assert_eq!(world.messages(&asked).send().await.unwrap().status(), 200);
    let (memory, _) = world.end().await;
    assert!(only(&memory).contains("Which port?"));
    drop(client);
}

/// GW12: an upload that breaks off is the client's error, and says nothing of the provider.
#[tokio::test(flavor = "multi_thread")]
async fn gw12_a_body_that_breaks_off_is_the_clients_error() {
    let world = World::new(counting()).await;
    let address = world.url.strip_prefix("http://").unwrap().to_owned();
    for path in ["/v1/messages", "/v1/files"] {
        let mut client = tokio::net::TcpStream::connect(&address).await.unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nhost: {address}\r\n");
        let body = "transfer-encoding: chunked\r\n\r\n5\r\n{\"mes\r\nno length\r\n";
        client.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = client.read_to_string(&mut answer).await;
        let is_said = |line: &String| line == "the request's body broke off";
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{path}: {answer}");
        assert!(world.log.lock().iter().all(is_said), "{path}: {:?}", world.log.lock());
    }
    assert_eq!(world.log.lock().len(), 2);
    // What is no conversation may have begun to pass.
    assert!(world.upstream.seen().iter().all(|seen| seen.path == "/v1/files"));
}

/// Conversations with the same instructions are families of their own, also where the user asks only later.
#[tokio::test]
async fn gw3_instructions_that_are_shared_do_not_make_a_family() {
    let world = World::new(counting()).await;
    let system = json!({ "role": "system", "content": "Be brief. 请简短。" });
    for question in ["Which port?", "Which host?"] {
        let user = json!({ "role": "user", "content": question });
        let mut said = vec![system.clone(), user];
        for _ in 0..2 {
            let asked = json!({ "model": "m", "messages": said });
            let answer = world.chat(&asked).send().await.unwrap();
            let answer: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
            said.push(answer["choices"][0]["message"].clone());
            said.push(json!({ "role": "user", "content": "And then?" }));
        }
    }
    let (memory, _) = world.end().await;
    let todos = todos(&memory);
    assert_eq!(todos.len(), 2, "{todos:?}");
    let family = |todo: &foldback_core::TodoId| todo.as_str().rsplit('-').next().unwrap().len();
    assert!(todos.iter().all(|todo| family(todo) == 12), "neither is a second member: {todos:?}");
}

/// What a gateway reports of itself, once it reports trouble, or none.
async fn health(world: &World, is_in_trouble: bool) -> Value {
    let mut health = Value::Null;
    for _ in 0..500 {
        let answer = world.client.get(format!("{}/foldback/health", world.url)).send().await;
        health = serde_json::from_slice(&answer.unwrap().bytes().await.unwrap()).unwrap();
        if health["trouble"].is_string() == is_in_trouble {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(health["trouble"].is_string(), is_in_trouble, "{health}");
    health
}

/// A world whose store holds at most three messages of a conversation, its instructions among them.
async fn full(fail_closed: bool) -> World {
    let options = Options::default().with_view(Keeping::view());
    let options = options.with_quota(Quota::default().with_messages(3));
    let memory = Memory::in_memory(options).unwrap();
    World::with(counting(), |config| {
        config.keeping = Keeping::On(memory);
        config.fail_closed = fail_closed;
    })
    .await
}

fn long() -> Value {
    let said = |n: usize| {
        let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
        json!({ "role": role, "content": format!("said {n}") })
    };
    body((0..5).map(said).collect())
}

#[tokio::test]
async fn gw12_trouble_lasts_until_something_is_recorded() {
    let world = full(false).await;
    for _ in 0..3 {
        assert_eq!(world.messages(&long()).send().await.unwrap().status(), 200);
        health(&world, true).await;
    }
    // A request that prepares another uses no store.
    let asked = json!({ "model": "m", "input": "Which port?" });
    let prewarm = world.client.post(format!("{}/v1/responses", world.url)).body(asked.to_string());
    let prewarm = prewarm.header("x-codex-turn-metadata", r#"{"request_kind":"prewarm"}"#);
    assert_eq!(prewarm.header("user-agent", "codex_exec/1").send().await.unwrap().status(), 200);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(health(&world, true).await["recording"], false);
    let short = body(json!([{ "role": "user", "content": "Which port?" }]));
    assert_eq!(world.messages(&short).send().await.unwrap().status(), 200);
    assert_eq!(health(&world, false).await["recording"], true);
}

/// A conversation that the store refuses leaves one todo, not one for each try.
#[tokio::test]
async fn gw12_a_refused_conversation_makes_no_further_todo() {
    let options = Options::default().with_view(Keeping::view());
    let memory = Memory::in_memory(options.with_quota(Quota::default().with_messages(3))).unwrap();
    let kept = memory.clone();
    let world = World::with(counting(), |config| config.keeping = Keeping::On(kept));
    let world = world.await;
    for _ in 0..4 {
        assert_eq!(world.messages(&long()).send().await.unwrap().status(), 200);
        health(&world, true).await;
    }
    drop(world.end().await);
    assert_eq!(todos(&memory).len(), 1);
}

#[tokio::test]
async fn gw12_only_what_can_be_recorded_passes_if_nothing_else_may() {
    let world = full(true).await;
    let short = body(json!([{ "role": "user", "content": "Which port?" }]));
    assert_eq!(world.messages(&short).send().await.unwrap().status(), 200);
    let passed = world.upstream.seen().len();
    let unknown = world.client.post(format!("{}/v1/responses", world.url));
    let unknown = unknown.body("{\"input\": 7}").send().await.unwrap();
    // No later try would be any better.
    assert_eq!(unknown.status(), 400);
    let why = unknown.text().await.unwrap();
    assert!(why.contains("not recorded: "), "{why}");
    let refused = world.messages(&long()).send().await.unwrap();
    assert_eq!(refused.status(), 503);
    let why = refused.text().await.unwrap();
    assert!(why.contains("not recorded: ") && why.contains("at most 3"), "{why}");
    assert_eq!(world.upstream.seen().len(), passed, "nothing of it is sent");
}

//! A real counterpart: aimock, a server of both APIs from npm, if it is installed.
//!
//! `FOLDBACK_AIMOCK` names its program `llmock`; `npm install @copilotkit/aimock` installs it as
//! `node_modules/.bin/llmock`. Without it these tests report that they are skipped.

use crate::wire::{pieces, question, tool};
use foldback_core::Message;
use foldback_llm::{
    ChatChunk, ChatModel, ChatRequest, ChatResponse, ModelErrorKind, StopReason, Usage,
};
use foldback_providers::{ApiKey, ModelConfig, Provider, RemoteModel};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

const ENVIRONMENT: &str = "FOLDBACK_AIMOCK";

const FIXTURES: &str = r#"{"fixtures": [
    {"match": {"toolCallId": "call_weather"},
     "response": {"content": "订单已发货 📦, it arrives tomorrow."}},
    {"match": {"userMessage": "订单"},
     "response": {"toolCalls": [
        {"id": "call_order", "name": "find_order", "arguments": "{\"city\": \"上海\", \"at\": \"2025-01-01\"}"},
        {"id": "call_weather", "name": "get_weather", "arguments": "{\"city\": \"北京\", \"at\": \"now\"}"}]}},
    {"match": {"userMessage": "price"},
     "response": {"content": "Twelve.", "usage": {"prompt_tokens": 1200, "completion_tokens": 34,
        "input_tokens": 1200, "output_tokens": 34}}},
    {"match": {"userMessage": "busy"},
     "response": {"error": {"message": "Slow down", "type": "rate_limit_error"}, "status": 429}},
    {"match": {"userMessage": "hello"},
     "response": {"content": "Hello! 你好，世界。 This answer is longer than one piece."}}
]}"#;

/// A running server; it ends with this value.
struct Aimock {
    base_url: String,
    /// Its output must have a reader.
    _output: tokio::io::Lines<BufReader<ChildStdout>>,
    _fixtures: tempfile::TempDir,
    _child: Child,
}

impl Aimock {
    /// A server on a free port of this machine; `None` if the program is not installed.
    async fn start(test: &str) -> Option<Self> {
        let Some(program) = std::env::var_os(ENVIRONMENT).map(PathBuf::from) else {
            eprintln!("SKIPPED {test}: set {ENVIRONMENT} to the program llmock of aimock");
            return None;
        };
        let fixtures = tempfile::tempdir().unwrap();
        let file = fixtures.path().join("fixtures.json");
        std::fs::write(&file, FIXTURES).unwrap();
        let mut child = Command::new(&program)
            .args([
                "--port",
                "0",
                "--host",
                "127.0.0.1",
                "--strict",
                "--chunk-size",
                "5",
                "--fixtures",
            ])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{ENVIRONMENT}={} starts: {error}", program.display()));
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let base_url = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                let line = output.next_line().await.unwrap().expect("aimock says where it listens");
                if let Some((_, url)) = line.split_once("listening on ") {
                    break url.trim().to_owned();
                }
            }
        });
        let base_url = base_url.await.expect("aimock starts within a minute");
        assert!(base_url.starts_with("http://127.0.0.1:"), "{base_url}");
        Some(Self { base_url, _output: output, _fixtures: fixtures, _child: child })
    }

    fn model(&self, provider: Provider) -> RemoteModel {
        let name = if provider == Provider::Anthropic { "claude-sonnet-4-5" } else { "gpt-4.1" };
        let mut config = ModelConfig::new(provider, &format!("{}/v1", self.base_url), name);
        config.api_key = Some(ApiKey::new("sk-aimock-test"));
        RemoteModel::new(config).unwrap()
    }
}

const PROVIDERS: [Provider; 3] =
    [Provider::OpenAi, Provider::OpenAiCompatible, Provider::Anthropic];

fn asking(text: &str) -> ChatRequest {
    ChatRequest::new([Message::system("Be brief."), Message::user(text)])
        .with_tools(vec![tool("find_order"), tool("get_weather")])
        .with_cache_marks(vec![0, 1])
}

/// The answer whole and streamed, which must agree.
async fn both_ways(model: &RemoteModel, request: &ChatRequest) -> ChatResponse {
    let whole = model.complete(request).await.unwrap();
    let (chunks, error) = pieces(model, request).await;
    assert_eq!(error, None);
    let (done, before) = chunks.split_last().unwrap();
    let ChatChunk::Done(streamed) = done else { panic!("{done:?}") };
    let texts = before.iter().filter_map(|chunk| match chunk {
        ChatChunk::Text(text) => Some(text.as_str()),
        _ => None,
    });
    assert_eq!(texts.collect::<String>(), streamed.message.text());
    assert_eq!(streamed.message.text(), whole.message.text());
    assert_eq!(streamed.stop, whole.stop);
    assert_eq!(streamed.usage, whole.usage);
    let calls = |response: &ChatResponse| {
        let calls = response.message.tool_calls().iter();
        calls.map(|call| (call.name.clone(), call.arguments.clone())).collect::<Vec<_>>()
    };
    assert_eq!(calls(streamed), calls(&whole));
    whole
}

#[tokio::test]
async fn a_real_server_answers_in_both_apis() {
    let Some(server) = Aimock::start("a_real_server_answers_in_both_apis").await else { return };
    for provider in PROVIDERS {
        let model = server.model(provider);
        let response = both_ways(&model, &question()).await;
        let expected = "Hello! 你好，世界。 This answer is longer than one piece.";
        assert_eq!(response.message.text(), expected);
        assert_eq!(response.stop, StopReason::End);
        let (chunks, _) = pieces(&model, &question()).await;
        assert!(chunks.len() > 5, "it comes in pieces: {chunks:?}");

        let response = both_ways(&model, &asking("What is the price?")).await;
        assert_eq!(response.usage, Usage { input: 1200, output: 34, ..Usage::default() });
    }
}

/// Two calls, their results, and the answer to them.
#[tokio::test]
async fn a_real_server_calls_tools_in_both_apis() {
    let Some(server) = Aimock::start("a_real_server_calls_tools_in_both_apis").await else {
        return;
    };
    for provider in PROVIDERS {
        let model = server.model(provider);
        let mut request = asking("Where is my order? 我的订单在哪里？");
        let response = both_ways(&model, &request).await;
        assert_eq!(response.stop, StopReason::ToolCalls);
        let calls = response.message.tool_calls().to_vec();
        let named: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(named, ["find_order", "get_weather"]);
        for (call, city) in calls.iter().zip(["上海", "北京"]) {
            let members = call.members().expect("the arguments are an object");
            assert_eq!(members[0].1.get(), format!("\"{city}\""));
        }
        request.messages.push(response.message.into());
        for call in &calls {
            request.messages.push(Message::tool_result(&call.id, "shipped").into());
        }
        let response = both_ways(&model, &request).await;
        assert_eq!(response.message.text(), "订单已发货 📦, it arrives tomorrow.");
    }
}

#[tokio::test]
async fn a_real_server_refuses_in_both_apis() {
    let Some(server) = Aimock::start("a_real_server_refuses_in_both_apis").await else { return };
    for provider in PROVIDERS {
        let model = server.model(provider);
        let error = model.complete(&asking("busy")).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::RateLimit, "{error}");
        assert!(error.message.contains("Slow down"), "{error}");
        let (_, streamed) = pieces(&model, &asking("busy")).await;
        assert_eq!(streamed.unwrap().kind, ModelErrorKind::RateLimit);
        assert!(model.complete(&asking("nobody knows this")).await.is_err());
    }
}

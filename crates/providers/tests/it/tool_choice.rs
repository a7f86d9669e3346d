//! What each provider is sent about the tools that may be called now.

use crate::wire::{body, config, json, question, serve, tool};
use foldback_core::{Message, ToolCall};
use foldback_llm::{AllowedTools, ChatModel, ChatRequest, ModelErrorKind, ToolChoice};
use foldback_providers::{Provider, RemoteModel};
use serde_json::{Value, json as value};

const PROVIDERS: [Provider; 3] =
    [Provider::OpenAi, Provider::OpenAiCompatible, Provider::Anthropic];

/// `tool_choice` as a provider gets it; null if absent.
async fn told(provider: Provider, choice: ToolChoice) -> Value {
    let answer = match provider {
        Provider::Anthropic => r#"{"content":[]}"#,
        _ => r#"{"choices":[{"message":{}}]}"#,
    };
    let server = serve(json(answer)).await;
    let tools = vec![tool("browser_查询订单"), tool("shell_run"), tool("file_read")];
    let request = question().with_tools(tools).with_tool_choice(choice);
    RemoteModel::new(config(&server, provider)).unwrap().complete(&request).await.unwrap();
    let body = body(&server).await;
    assert_eq!(body["tools"].as_array().unwrap().len(), 3, "the tools stay as they are (MC6)");
    body["tool_choice"].clone()
}

fn allowed(names: &[&str], required: bool) -> ToolChoice {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    ToolChoice::Allowed(AllowedTools { names, required, preferred: None })
}

/// MC10: each choice in the format of each provider.
#[tokio::test]
async fn mc10_choices_are_said_in_each_providers_words() {
    let function = |name: &str| value!({"type": "function", "function": {"name": name}});
    let browser = "browser_nzdznscmil";
    let some = |mode: &str| {
        value!({"type": "allowed_tools", "allowed_tools": {
            "mode": mode, "tools": [function(browser), function("shell_run")]}})
    };
    let two = ["browser_查询订单", "shell_run"];
    let all = ["browser_查询订单", "file_read", "shell_run"];
    let any = value!({"type": "any"});
    let table = [
        (ToolChoice::Auto, [Value::Null, value!("auto"), Value::Null]),
        (ToolChoice::Required, [value!("required"), value!("required"), any.clone()]),
        (ToolChoice::ReplyOnly, [value!("none"), value!("none"), value!({"type": "none"})]),
        (
            allowed(&["browser_查询订单"], true),
            [function(browser), function(browser), value!({"type": "tool", "name": browser})],
        ),
        (allowed(&two, true), [some("required"), value!("required"), any.clone()]),
        (allowed(&two, false), [some("auto"), value!("auto"), Value::Null]),
        (
            allowed(&["shell_run", "shell_run"], true),
            [
                function("shell_run"),
                function("shell_run"),
                value!({"type": "tool", "name": "shell_run"}),
            ],
        ),
        (
            allowed(&["browser_查询订单", "shell_run", "shell_run"], false),
            [some("auto"), value!("auto"), Value::Null],
        ),
        (allowed(&all, true), [value!("required"), value!("required"), any]),
        (allowed(&all, false), [Value::Null, value!("auto"), Value::Null]),
        (allowed(&[], false), [value!("none"), value!("none"), value!({"type": "none"})]),
    ];
    for (choice, expected) in table {
        for (provider, expected) in PROVIDERS.into_iter().zip(expected) {
            assert_eq!(told(provider, choice.clone()).await, expected, "{provider:?} {choice:?}");
        }
    }
}

/// MC10: what a provider cannot be sent is missing from its capabilities.
#[tokio::test]
async fn mc10_capabilities_say_what_is_offered() {
    let server = serve(json("{}")).await;
    for (provider, sets, marks) in [
        (Provider::OpenAi, true, false),
        (Provider::OpenAiCompatible, false, false),
        (Provider::Anthropic, false, true),
    ] {
        let offered = RemoteModel::new(config(&server, provider)).unwrap().capabilities();
        assert_eq!((offered.allowed_tools, offered.cache_marks), (sets, marks));
        assert!(!offered.prefill, "many models refuse the beginning of an answer");
    }
}

#[tokio::test]
async fn mc10_choices_that_fit_no_tool_are_refused() {
    let server = serve(json("{}")).await;
    for provider in PROVIDERS {
        let model = RemoteModel::new(config(&server, provider)).unwrap();
        for (tools, choice, expected) in [
            (Vec::new(), ToolChoice::Required, "the request declares no tools"),
            (vec![tool("a")], allowed(&["b"], false), "the tool \"b\" is allowed"),
            (vec![tool("a")], allowed(&[], true), "no tool is allowed"),
        ] {
            let request = question().with_tools(tools).with_tool_choice(choice);
            let error = model.complete(&request).await.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Request);
            assert!(error.message.contains(expected), "{error}");
        }
    }
    assert!(server.received_requests().await.unwrap().is_empty());
}

/// MC6, MC18: a call in the history stays as it was while its tool may not be called, even if it is
/// no longer declared.
#[tokio::test]
async fn mc6_calls_of_masked_tools_stay_in_the_history() {
    let call = ToolCall::new("c", "browser_查询订单", "{}");
    let messages = vec![
        Message::user("q"),
        Message::calls("", vec![call.clone()]),
        Message::tool_result(&call.id, "r"),
    ];
    for tools in [vec![tool("browser_查询订单"), tool("shell_run")], vec![tool("shell_run")]] {
        for (provider, at) in [
            (Provider::OpenAi, "/messages/1/tool_calls/0/function/name"),
            (Provider::Anthropic, "/messages/1/content/0/name"),
        ] {
            let server = serve(json(r#"{"content":[],"choices":[{"message":{}}]}"#)).await;
            let request = ChatRequest::new(messages.clone())
                .with_tools(tools.clone())
                .with_tool_choice(allowed(&["shell_run"], false));
            RemoteModel::new(config(&server, provider)).unwrap().complete(&request).await.unwrap();
            let body = body(&server).await;
            assert_eq!(body.pointer(at).unwrap(), "browser_nzdznscmil");
        }
    }
}

#[tokio::test]
async fn without_tools_nothing_is_said() {
    for provider in PROVIDERS {
        let server = serve(json(r#"{"content":[],"choices":[{"message":{}}]}"#)).await;
        let request = question().with_tool_choice(ToolChoice::ReplyOnly);
        RemoteModel::new(config(&server, provider)).unwrap().complete(&request).await.unwrap();
        let body = body(&server).await;
        assert_eq!((body.get("tools"), body.get("tool_choice")), (None, None));
    }
}

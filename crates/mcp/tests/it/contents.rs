//! BS8: servers are given the texts that references name.

use crate::in_process::{Heard, Said, client, config, text, tool};
use foldback::{Memory, Options, Session};
use foldback_core::{Message, TodoId, ToolCall, ToolCallId};
use foldback_mcp::McpClient;
use foldback_tool::{CallContext, ContextHandle, ToolError, ToolOutput};
use serde_json::{Value, json};

async fn server() -> (McpClient, Heard) {
    let answer = |method: &str, _: &Value| match method {
        "tools/list" => Said::Result(json!({ "tools": [tool("render")] })),
        "tools/call" => Said::Result(text("rendered")),
        _ => Said::Nothing,
    };
    let (client, heard) = client(config("slides"), answer).await;
    (client.unwrap(), heard)
}

/// What the last call sent to the server.
fn given(heard: &Heard) -> Value {
    let heard = heard.lock().unwrap();
    heard.iter().rfind(|message| message["method"] == "tools/call").unwrap()["params"]["arguments"]
        .clone()
}

async fn call(
    client: &McpClient,
    session: &mut Session,
    arguments: Value,
) -> Result<ToolOutput, ToolError> {
    let (handle, mut requests) = ContextHandle::new(session.todo().clone());
    let context = CallContext { context: Some(handle), ..CallContext::default() };
    let tool = client.tools().remove(0);
    requests.serve(session, tool.call(&arguments.to_string(), &context)).await
}

#[tokio::test]
async fn bs8_a_server_is_given_the_text_of_a_reference() {
    let memory = Memory::in_memory(Options::default()).unwrap();
    let mut session = memory.session(&TodoId::new("deck").unwrap()).unwrap();
    let deck = "<section>幻灯片</section>\n".repeat(400);
    session.record(Message::calls("", vec![ToolCall::new("c", "make", "{}")])).unwrap();
    session.record(Message::tool_result(&ToolCallId::new("c"), &deck)).unwrap();
    let stored = memory.payloads().meta(&memory.find(session.todo()).unwrap(), 1).unwrap();
    let name = stored.reference().to_string();
    let (client, heard) = server().await;

    // If a text is only the name, however deeply it is nested.
    let arguments = json!({"deck": name, "parts": [{"of": format!("{name}#lines=1-1")}], "n": 2});
    call(&client, &mut session, arguments).await.unwrap();
    let first = "<section>幻灯片</section>\n";
    assert_eq!(given(&heard), json!({"deck": deck, "parts": [{"of": first}], "n": 2}));
    // What is not the name of a stored part is up to the server.
    let arguments = json!({"deck": "store://products/7", "about": format!("see {name}")});
    call(&client, &mut session, arguments.clone()).await.unwrap();
    assert_eq!(given(&heard), arguments);

    let calls = heard.lock().unwrap().len();
    let error =
        call(&client, &mut session, json!({"deck": "store://other/1-abcd"})).await.unwrap_err();
    assert!(
        error.message.starts_with("Nothing is stored under \"store://other/1-abcd\""),
        "{error}"
    );
    assert_eq!(heard.lock().unwrap().len(), calls, "the server was not asked");
}

/// Without a memory nothing is looked up.
#[tokio::test]
async fn bs8_without_a_memory_a_server_is_given_the_name() {
    let (client, heard) = server().await;
    let arguments = json!({"deck": "store://1-abcd"});
    let tool = client.tools().remove(0);
    tool.call(&arguments.to_string(), &CallContext::default()).await.unwrap();
    assert_eq!(given(&heard), arguments);
}

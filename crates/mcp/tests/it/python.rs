//! A server of the Python package `mcp`, which is where most servers come from.
//!
//! `FOLDBACK_PYTHON_MCP` names a Python that has the package; without it these tests say that they are
//! skipped.

use foldback_agent::{Agent, Executor, OnePlan, Task};
use foldback_baselines::Full;
use foldback_core::{Estimate, TodoId};
use foldback_llm::ScriptedModel;
use foldback_mcp::{McpClient, McpServerConfig, McpServers, Trust};
use foldback_tool::{CallContext, Data, Effect, ToolError, ToolErrorKind, ToolOutput, Toolbox};
use std::collections::BTreeMap;
use std::sync::Arc;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/weather.py");

/// The Python to use, or `None` if there is none.
fn python() -> Option<String> {
    let python = std::env::var("FOLDBACK_PYTHON_MCP").ok().filter(|python| !python.is_empty());
    if python.is_none() {
        eprintln!("SKIPPED: set FOLDBACK_PYTHON_MCP to a Python that has the package mcp");
    }
    python
}

fn config() -> Option<McpServerConfig> {
    Some(McpServerConfig::program("weather", python()?, [SERVER]))
}

async fn call(client: &McpClient, tool: &str, arguments: &str) -> Result<ToolOutput, ToolError> {
    let name = format!("weather_{tool}");
    let tools = client.tools();
    let tool = tools.iter().find(|tool| tool.spec().name() == name).expect("there is such a tool");
    tool.call(arguments, &CallContext::default()).await
}

#[tokio::test]
async fn its_tools_are_listed_and_called() {
    let Some(mut config) = config() else { return };
    config.trust = Trust::Hints;
    let client = McpClient::start(config).await.unwrap();
    let tools = client.tools();
    let specs: BTreeMap<&str, _> =
        tools.iter().map(|tool| (tool.spec().name(), tool.spec())).collect();
    let forecast = specs["weather_forecast"];
    assert_eq!(
        forecast.definition.description,
        "The MCP server \"weather\" says of its tool: The weather of a city."
    );
    assert!(forecast.definition.parameters.contains(r#""required":["city"]"#));
    assert!(forecast.output.as_ref().unwrap().contains("degrees"));
    assert_eq!(forecast.server.as_deref(), Some("weather"));
    assert_eq!(forecast.effect, Effect::ReadOnly);
    assert_eq!(specs["weather_add"].effect, Effect::Effectful);

    let output = call(&client, "forecast", r#"{"city": "杭州"}"#).await.unwrap().data;
    let structured = r#"{"city":"杭州","sky":"小雨","degrees":12.5}"#;
    assert_eq!(output, Data { text: structured.into(), structured: Some(structured.into()) });
    let output = call(&client, "add", r#"{"a": 1, "b": 2}"#).await.unwrap().data;
    assert_eq!(output.structured.as_deref(), Some(r#"{"result":3}"#));
    let error = call(&client, "fail", "{}").await.unwrap_err();
    assert!(error.message.contains("no station in 杭州 answers"), "{error}");
    let output = call(&client, "picture", "{}").await.unwrap().data;
    assert_eq!(output.text, "[image, image/png, 8 bytes: not shown]");
    // Arguments that do not fit the schema are for the server to refuse.
    assert!(call(&client, "add", r#"{"a": "x", "b": 2}"#).await.is_err());
    client.close().await;
}

#[tokio::test]
async fn it_is_reached_over_http() {
    let Some(python) = python() else { return };
    let port = {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        free.local_addr().unwrap().port()
    };
    let mut server = tokio::process::Command::new(python)
        .args([SERVER, &port.to_string()])
        .kill_on_drop(true)
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let mut tries = 0;
    let client = loop {
        match McpClient::start(McpServerConfig::url("weather", &url)).await {
            Ok(client) => break client,
            Err(error) => assert!(tries < 1_000, "{error}"),
        }
        assert!(server.try_wait().unwrap().is_none(), "the server has ended");
        tries += 1;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    let output = call(&client, "forecast", r#"{"city": "杭州"}"#).await.unwrap().data;
    assert_eq!(
        output.structured.as_deref(),
        Some(r#"{"city":"杭州","sky":"小雨","degrees":12.5}"#)
    );
    client.close().await;
    server.kill().await.unwrap();
}

/// A key in our own environment is not passed to a server that was not given it.
#[tokio::test]
async fn its_environment_is_clean() {
    let Some(config) = config() else { return };
    // Cargo sets this one for its tests.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
    let client = McpClient::start(config).await.unwrap();
    let output = call(&client, "variables", "{}").await.unwrap().data;
    let text = output.text;
    assert!(text.contains("\"PATH\"") && !text.contains("CARGO"), "{text}");
}

/// A server that ends fails the call it was working on, and is available for the next one.
#[tokio::test]
async fn it_is_started_again_when_it_has_ended() {
    let Some(mut config) = config() else { return };
    config.restarts = 1;
    let client = McpClient::start(config).await.unwrap();
    let error = call(&client, "die", "{}").await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Transient);
    assert_eq!(
        error.message,
        "the MCP server \"weather\" has ended: exit status: 7; the last it wrote: out of order. \
         It is not known whether the call was carried out; check before you repeat it"
    );
    let output = call(&client, "add", r#"{"a": 1, "b": 2}"#).await.unwrap().data;
    assert_eq!(output.structured.as_deref(), Some(r#"{"result":3}"#));
    call(&client, "die", "{}").await.unwrap_err();
    let error = call(&client, "add", r#"{"a": 1, "b": 2}"#).await.unwrap_err();
    assert!(error.message.contains("it is not started again"), "{error}");
}

/// What it started ends with it.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn it_does_not_outlive_its_tools() {
    let Some(config) = config() else { return };
    let client = McpClient::start(config).await.unwrap();
    let helper = call(&client, "helper", "{}").await.unwrap().data.structured.unwrap();
    let pid: u32 = helper.trim_matches(|letter: char| !letter.is_ascii_digit()).parse().unwrap();
    let is_running = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // One that has ended and was not reaped yet is a zombie.
        !stat.is_empty() && !stat.contains(") Z ")
    };
    assert!(is_running());
    drop(client);
    for _ in 0..6_000 {
        if !is_running() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the process {pid} runs on");
}

/// The server's tools are an agent's tools.
#[tokio::test]
async fn an_agent_works_with_its_tools() {
    let Some(config) = config() else { return };
    let servers = McpServers::start([config]).await;
    assert_eq!(servers.failures(), []);
    let toolbox = Toolbox::new(servers.tools()).unwrap();
    let plan = r#"{"action_plan": {"step1": {"function": "weather_forecast", "args": {"city": "杭州"}},
        "step2": {"function": "weather_add", "args": {"a": 20, "b": 22}}}}"#;
    let model = ScriptedModel::new([plan.into(), "It rains, and it is 42.".into()]);
    let agent = Agent::new(Arc::new(model), Executor::new(toolbox));
    let mut context = Full.start(TodoId::new("trip").unwrap(), Arc::new(Estimate));
    let report = agent
        .run(&OnePlan::default(), context.as_mut(), &Task::new("trip", "天气?"))
        .await
        .unwrap();
    assert_eq!(report.answer(), Some("It rains, and it is 42."));
    assert_eq!(report.trajectory.tool_calls().count(), 2);
    let shown = format!("{:?}", report.trajectory);
    assert!(shown.contains("小雨") && shown.contains("42"), "{shown}");
}

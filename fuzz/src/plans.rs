//! Readers of plans and of calls, as models write them.

use foldback_core::{ToolCall, ToolDefinition};
use foldback_planner::{
    Catalog, Intent, OnePlanReader, Plan, Schedule, Validator, lower_calls, parse_execute_tools,
    parse_one_plan, write_execute_tools, write_one_plan,
};
use foldback_tool::ToolSpec;

const PLANS: [&str; 3] = [
    r#"{"action_plan": {
  "step1": {"function": "search", "args": {"query": "春晚分会场"}},
  "step2": {"function": "查询", "args": {"词": "a < b && c"}, "on_failure": "skip"},
  "step3": {"function": "web_fetch", "args": {"url": "https://x/$$step1.result.city$$?q=1", "n": 1.50}, "dependence": [1, 2]},
  "step4": {"function": "search", "args": {"query": "$$step1.result[\"a b\"][0]$$"}, "dependence": [1, 3]}}}"#,
    "I plan: ```json\n{\"action_plan\": {\"step1\": {\"function\": \"search\", \"args\": {}}, // one\n \"step2\": {\"replan\": true, \"dependence\": [\"step1\"]}}}\n```",
    r#"{"react": "it depends on what comes out"}"#,
];

const BLOCKS: [&str; 2] = [
    "Let me look. <execute_tools><sequential>\n<parallel><web_server><search>How old is 港</search><web_fetch>{\"url\": \"https://x\", \"n\": 2}</web_fetch></web_server></parallel>\n<查询>{results[0].data}</查询></sequential></execute_tools> So.",
    "```xml\n<execute_tools><web_server><search>an example</search></web_server></execute_tools>\n```\n<execute_tools><web_server><search><![CDATA[a < b]]> &amp; c</search></web_server></execute_tools>",
];

const ARGUMENTS: [&str; 3] = [
    r#"{"query": "杭州 $$step1.result$$ {results[0].data}", "z": 1.50, "deep": {"a": [1, {"b": null}]}}"#,
    " {} ",
    r#"{"query": "trunca"#,
];

/// Plans as JSON.
pub fn plans() -> Vec<Vec<u8>> {
    PLANS.map(Into::into).into()
}

/// Blocks of `<execute_tools>`.
pub fn blocks() -> Vec<Vec<u8>> {
    BLOCKS.map(Into::into).into()
}

/// Arguments of calls.
pub fn arguments() -> Vec<Vec<u8>> {
    ARGUMENTS.map(Into::into).into()
}

fn catalog() -> Catalog {
    let tool = |name: &str, server: Option<&str>, properties: &str| {
        let definition = ToolDefinition {
            name: name.to_owned(),
            description: String::new(),
            parameters: format!("{{\"type\": \"object\", \"properties\": {{{properties}}}}}"),
        };
        let mut spec = ToolSpec::new(definition);
        spec.server = server.map(str::to_owned);
        spec
    };
    let web = Some("web");
    [
        tool("search", web, r#""query": {"type": "string", "maxLength": 40}"#),
        tool(
            "web_fetch",
            web,
            r#""url": {"type": "string"}, "n": {"type": "integer", "minimum": 1}"#,
        ),
        tool("查询", None, r#""词": {"type": "string"}, "deep": {"type": "object"}"#),
    ]
    .into_iter()
    .collect()
}

/// What is done with a plan that was read.
fn is_used(mut plan: Plan, catalog: &Catalog) {
    let findings = Validator::new(catalog).plan(&mut plan);
    drop(findings.to_string());
    drop(write_one_plan(&plan));
    drop(write_execute_tools(&plan, catalog));
    drop(plan.graph().cycles());
    if findings.has_errors() {
        return;
    }
    let mut schedule = Schedule::new(&plan).expect("a plan without errors can be scheduled");
    let mut steps = 0;
    while let Some(id) = schedule.next_ready() {
        schedule.start(id).expect("what is ready can be started");
        schedule.finish(id).expect("what was started can be finished");
        steps += 1;
        assert!(steps <= plan.steps.len(), "a step is ready twice");
    }
}

/// Reads any bytes as a plan, whole and piece by piece, which comes to the same.
pub fn one_plan(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let whole = parse_one_plan(&text);
    let mut reader = OnePlanReader::new();
    let characters: Vec<char> = text.chars().collect();
    for piece in characters.chunks(5) {
        reader.push(&piece.iter().collect::<String>());
    }
    let told = |read: &Result<_, foldback_planner::ParseError>| format!("{read:?}");
    assert_eq!(told(&reader.finish()), told(&whole));
    if let Ok(read) = whole
        && let Intent::Plan(plan) = read.intent
        && !read.findings.has_errors()
    {
        is_used(plan, &catalog());
    }
}

/// Reads any bytes as an answer with a block of calls.
pub fn execute_tools(bytes: &[u8]) {
    let (text, catalog) = (String::from_utf8_lossy(bytes), catalog());
    if let Ok(block) = parse_execute_tools(&text, &catalog) {
        assert!(text.get(block.range.clone()).is_some(), "the block is a part of the text");
        if !block.findings.has_errors() {
            is_used(block.plan, &catalog);
        }
    }
}

/// Reads any bytes as the arguments of calls.
pub fn native_calls(bytes: &[u8]) {
    let (text, catalog) = (String::from_utf8_lossy(bytes), catalog());
    let calls: Vec<ToolCall> = ["search", "web_fetch", "查询"]
        .iter()
        .zip(["a", "b", "c"])
        .map(|(tool, id)| ToolCall::new(id, tool, &text))
        .collect();
    is_used(lower_calls(&calls).plan, &catalog);
    for call in &calls {
        drop(catalog.check_arguments(&call.name, &text).map_err(|error| error.to_string()));
    }
}

//! Tests of what the agent is given, and of settings that are refused.

use super::*;
use crate::check_tool_families;
use crate::tool_families::BUILT_IN;
use foldback::{Memory, Options};
use foldback_agent::Task;
use foldback_core::{TodoId, ToolCall, ToolDefinition};
use foldback_llm::{ChatRequest, ScriptedModel};
use foldback_tool::{FunctionTool, ToolOutput, ToolSpec};

fn reference_agent() -> ReferenceAgent {
    ReferenceAgent::new(Arc::new(ScriptedModel::new([])))
}

fn tool(name: &str) -> Arc<dyn Tool> {
    let parameters = r#"{"type": "object"}"#.to_owned();
    let definition =
        ToolDefinition { name: name.to_owned(), description: "Tells.".to_owned(), parameters };
    let spec = ToolSpec::new(definition);
    Arc::new(FunctionTool::new(spec, |_, _| async { Ok(ToolOutput::text("6.4 m")) }))
}

fn names(agent: &ReadyAgent) -> Vec<&str> {
    agent.agent().executor().toolbox().specs().map(ToolSpec::name).collect()
}

#[test]
fn it_has_what_it_was_given_and_what_every_agent_has() {
    let bare = reference_agent().build().unwrap();
    let own = ["ask_person", "delegate", "memory_share", "think", "todo_write"];
    assert_eq!(names(&bare), own);
    assert_eq!(bare.agent().system_prompt(), reference_system_prompt());
    assert_eq!(bare.no_shell(), None, "none was permitted");

    let folder = tempfile::tempdir().unwrap();
    let agent = reference_agent()
        .in_workspace(Permissions::in_workspace(folder.path()))
        .with_tools([tool("tide")])
        .with_instructions("\nYou work for the harbour of Holm.\n")
        .build()
        .unwrap();
    let files = ["file_edit", "file_grep", "file_list", "file_read", "file_write"];
    let mut all: Vec<&str> = own.into_iter().chain(files).chain(["tide"]).collect();
    all.sort_unstable();
    assert_eq!(names(&agent), all);
    let system_prompt = agent.agent().system_prompt();
    let (begin, end) = (reference_system_prompt(), "\n\nYou work for the harbour of Holm.");
    assert!(system_prompt.starts_with(begin) && system_prompt.ends_with(end), "{system_prompt}");
}

/// An agent with few families has only their tools, and short instructions.
#[test]
fn a_lean_agent_has_some_tools_and_a_short_head() {
    let folder = tempfile::tempdir().unwrap();
    let all = reference_agent().in_workspace(Permissions::in_workspace(folder.path()));
    let lean = all.clone().with_tool_families(["file", "think"]).with_short_instructions();
    let lean = lean.build().unwrap();
    let expected = ["file_edit", "file_grep", "file_list", "file_read", "file_write", "think"];
    assert_eq!(names(&lean), expected);
    assert_eq!(lean.agent().system_prompt(), short_system_prompt());
    assert!(short_system_prompt().len() * 2 < reference_system_prompt().len());
    let error = all.with_tool_families(["fi"]).build().unwrap_err().to_string();
    assert!(
        error.starts_with("there is no tool or family of tools \"fi\"; the tools are "),
        "{error}"
    );
    assert!(error.contains("file_read"), "{error}");
}

/// A family is known whether its tools are permitted here or not.
#[test]
fn a_family_without_a_tool_is_known() {
    let lean = reference_agent().with_tool_families(["file", "shell", "web", "think"]);
    assert_eq!(names(&lean.build().unwrap()), ["think"]);
    assert!(check_tool_families(["file", "web_fetch", "research"]).is_ok());
    assert!(check_tool_families(["file", "tide"]).is_err());
    assert!(
        reference_agent().with_tools([tool("tide")]).with_tool_families(["tide"]).build().is_ok()
    );
}

/// Tools that the agent may not call, its sub-agents may not call for it.
#[tokio::test]
async fn sub_agents_have_no_other_tools() {
    let item = r#"{"items": [{"id": "a", "title": "Look."}]}"#;
    let given = r#"{"items": [{"id": "a", "task": "Look into it."}]}"#;
    let calls = |name: &str, arguments: &str| vec![ToolCall::new("c1", name, arguments)].into();
    let model = Arc::new(ScriptedModel::new([
        calls("todo_write", item),
        calls("delegate", given),
        "Looked.".into(),
        "Done.".into(),
    ]));
    let agent = ReferenceAgent::new(model.clone())
        .with_tools([tool("tide")])
        .with_tool_families(["todo", "delegate"])
        .with_strategy_named("react")
        .with_sub_agent_strategy(Arc::new(React::default()))
        .build()
        .unwrap();
    assert_eq!(names(&agent), ["delegate", "todo_write"]);
    let memory = Memory::in_memory(Options::default()).unwrap();
    let mut context = memory.session(&TodoId::new("holm").unwrap()).unwrap();
    agent.run(&mut context, &Task::new("holm", "Look.")).await.unwrap();
    let declared = |request: &ChatRequest| {
        let names = request.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        assert!(!names.iter().any(|name| name == "tide" || name == "think"), "{names:?}");
    };
    let requests = model.requests();
    assert_eq!(requests.len(), 4, "{requests:?}");
    requests.iter().for_each(declared);
}

/// A few of the built-in tools are left, and everything that was given stays.
#[test]
fn what_was_given_stays() {
    let person = AskPerson::nobody();
    let few = reference_agent().with_tools([tool("tide")]).with_built_in_families(["file", "todo"]);
    let alone = few.clone().build().unwrap();
    assert_eq!(names(&alone), ["tide", "todo_write"]);
    assert_eq!(alone.left_out(), ["think", "ask_person", "delegate", "memory_share"]);
    let asked = few.clone().with_person(person).build().unwrap();
    assert_eq!(names(&asked), ["ask_person", "tide", "todo_write"]);
    let thinker = FlowExecutor::new("T", "thinks").with_tools(["thin*"]);
    let flow = few.with_strategy_named("flow").with_flow_executor(thinker).build().unwrap();
    assert_eq!(names(&flow), ["think", "tide", "todo_write"]);
}

#[test]
fn the_built_in_tools_are_those_that_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let permissions = Permissions::in_workspace(folder.path()).with_shell().with_host("docs.rs");
    let agent =
        reference_agent().in_workspace(permissions).with_shell_substitute(tool("shell_run"));
    let agent = agent.build().unwrap();
    let mut all = names(&agent);
    all.push("research");
    all.sort_unstable();
    assert_eq!(all, BUILT_IN);
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    let refused = |agent: ReferenceAgent| agent.build().unwrap_err().to_string();
    assert_eq!(
        refused(reference_agent().with_strategy_named("guess")),
        "there is no strategy \"guess\"; the strategies are adaptive, react, one-plan, flow, deep-search"
    );
    assert_eq!(
        refused(reference_agent().with_strategy_named("deep-search")),
        "deep-search needs documents to search, and the agent was given none"
    );
    assert_eq!(
        refused(reference_agent().with_sub_agent_share(0.0)),
        "share is 0.0, but a number above 0 and at most 1 is expected"
    );
    assert_eq!(
        refused(reference_agent().with_tools([tool("think")])),
        "there are two tools named \"think\"; each name may be given once"
    );
    for strategy in STRATEGIES.iter().filter(|name| name.as_str() != "deep-search") {
        assert!(reference_agent().with_strategy_named(strategy.as_str()).build().is_ok());
    }
}

//! Small models and small windows: what a run does so that they can work.

use crate::provider::Provider;
use crate::run::{only_run, run};
use crate::shell::Shell;
use serde_json::{Value, json};

fn texts(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

fn tools(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().map_or(&[][..], Vec::as_slice).iter();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

/// The agent has those tools that are named, by family or by name, and its memory's.
#[test]
fn an_agent_has_the_tools_that_it_is_given() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::text("Here.")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "--tools", "file,think", "Where?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let requests = provider.requests();
    let own: Vec<&str> =
        tools(&requests[0]).into_iter().filter(|name| name.contains('_')).collect();
    assert!(own.contains(&"file_read") && tools(&requests[0]).contains(&"think"), "{own:?}");
    assert!(!own.contains(&"todo_write") && !own.contains(&"shell_run"), "{own:?}");
    let ran = run(&Shell::new(), &provider, &["--tools", "fiel", "Where?"]);
    assert!(ran.stderr.contains("there is no tool and no family of tools \"fiel\""), "{ran:?}");
}

/// A server that tells of a small window is asked with few tools and a short head, and that is told.
#[test]
fn a_small_window_is_kept_to() {
    let shell = Shell::new();
    let answers = || vec![Provider::text("Here.")];
    let props = json!({"default_generation_settings": {"n_ctx": 2048}});
    let provider = Provider::telling(Some(props), answers());
    let ran = run(&shell, &provider, &["--strategy", "react", "Where?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.replace('\n', " ").contains("window has 2048 tokens"), "{}", ran.stderr);
    let small = provider.requests()[0].to_string().len();
    assert!(!tools(&provider.requests()[0]).contains(&"delegate"));
    let provider = Provider::new(answers());
    let ran = run(&Shell::new(), &provider, &["--strategy", "react", "Where?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let whole = provider.requests()[0].to_string().len();
    assert!(small * 3 < whole * 2, "{small} of {whole} bytes");
}

/// A request that is too long for the server is made smaller, and sent once more.
#[test]
fn a_request_that_is_too_long_is_made_smaller_once() {
    let shell = Shell::new();
    shell.folders(&["work"]);
    let long: String = (0..900).map(|n| format!("{n} 高潮 at gate {}\n", n * 7)).collect();
    shell.write("work/tides.txt", long);
    let exceeded = "request (9000 tokens) exceeds the available context size (8192 tokens)";
    let provider = Provider::new(vec![
        Provider::call("file_read", &json!({"path": "tides.txt"})),
        Provider::refusal(400, exceeded),
        Provider::text("Read."),
    ]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Read the tides."]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let sizes: Vec<usize> = provider.requests().iter().map(|r| r.to_string().len()).collect();
    assert_eq!(sizes.len(), 3);
    assert!(sizes[2] * 2 < sizes[1], "{sizes:?}");
    assert!(ran.stderr.replace('\n', " ").contains("too long for the model"), "{}", ran.stderr);
}

/// The error of a call that names no tool says what may be called, the memory's tools among them.
#[test]
fn an_unknown_tool_is_answered_with_those_there_are() {
    let shell = Shell::new();
    let provider =
        Provider::new(vec![Provider::call("memory_find", &json!({})), Provider::text("So.")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Which gate?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = texts(&provider.requests()[1]).join("\n");
    for name in ["you may call", "`file_read`", "`load`", "`search_block`", "`todo_write`"] {
        assert!(told.contains(name), "{name}: {told}");
    }
}

/// A model that answers nothing is told once; the conversation does not grow.
#[test]
fn empty_answers_do_not_make_the_conversation_longer() {
    let shell = Shell::new();
    let answers = vec![Provider::text(""), Provider::text(" "), Provider::text("Here.")];
    let provider = Provider::new(answers);
    let ran = run(&shell, &provider, &["--strategy", "react", "Where?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let requests = provider.requests();
    assert_eq!(requests[1]["messages"], requests[2]["messages"]);
    let told = texts(&requests[2]).join("\n");
    assert_eq!(told.matches("Your last message was empty").count(), 1, "{told}");
}

/// A model that goes round and round until it is cut off ends the run, with the reason.
#[test]
fn a_model_that_repeats_itself_ends_the_run() {
    let shell = Shell::new();
    let loops = "I will look at the file again. ".repeat(60);
    let provider = Provider::new(vec![Provider::cut(&loops), Provider::text("never asked")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Look."]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(provider.requests().len(), 1);
    let why = only_run(&shell)["why"].as_str().unwrap().to_owned();
    assert!(why.contains("repeats itself without an end"), "{why}");
}

/// One call of a tool that was written wrongly is told of once.
#[test]
fn a_faulty_call_is_told_once() {
    let shell = Shell::new();
    let faulty = json!({"items": [{"title": "Read"}]});
    let provider =
        Provider::new(vec![Provider::call("todo_write", &faulty), Provider::text("So.")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Plan it."]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = texts(&provider.requests()[1]).join("\n");
    assert_eq!(told.matches("Error (arguments)").count(), 1, "{told}");
    let shown = ran.stderr.replace('\n', " ");
    assert!(shown.matches("\"id\"").count() + shown.matches("`id`").count() <= 1, "{}", ran.stderr);
}

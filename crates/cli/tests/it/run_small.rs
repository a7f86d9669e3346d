//! Small models and small windows: what a run does so that they can work.

use crate::provider::Provider;
use crate::run::{command, only_run, run};
use crate::shell::{Ran, Shell};
use foldback_core::{Estimate, TokenCounter};
use serde_json::{Value, json};

fn texts(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

fn tools(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().map_or(&[][..], Vec::as_slice).iter();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

/// The estimated tokens of a request: what is said and called, and the tools. How a server writes that down does not
/// matter.
fn tokens(request: &Value) -> usize {
    let of = |value: &Value| Estimate.count(value.as_str().unwrap_or(&value.to_string()));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut tokens = 0;
    for message in list(&request["messages"]) {
        tokens += 4 + of(&message["content"]);
        for call in list(&message["tool_calls"]) {
            tokens += of(&call["function"]["name"]) + of(&call["function"]["arguments"]);
        }
    }
    for tool in list(&request["tools"]) {
        let told = ["name", "description", "parameters"];
        tokens += told.map(|part| of(&tool["function"][part])).iter().sum::<usize>();
    }
    tokens
}

/// The agent has the tools that are named, by family or by name, and its memory's.
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
}

/// A turn has the tools of the previous one, until others are named.
#[test]
fn a_next_turn_has_the_tools_that_it_is_given() {
    let shell = Shell::new();
    let provider = Provider::new(["a", "b", "c"].map(Provider::text).to_vec());
    let steps = ["--strategy", "react"];
    for given in [
        &["--id", "t", "--tools", "think", "1?"][..],
        &["--todo", "t", "2?"],
        &["--todo", "t", "--tools", "file", "3?"],
    ] {
        let ran = run(&shell, &provider, &[&steps[..], given].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let requests = provider.requests();
    let has = |at: usize, name: &str| tools(&requests[at]).contains(&name);
    assert!(has(0, "think") && has(1, "think") && !has(1, "file_read"));
    assert!(has(2, "file_read") && !has(2, "think"));
}

/// Tools that are not permitted are no reason to end a run whose window is small.
#[test]
fn a_small_window_needs_no_shell() {
    let shell = Shell::new();
    let provider = Provider::telling(props(4_096), vec![Provider::text("Here.")]);
    let mut command = command(&shell, &provider, &["--strategy", "react", "Where?"]);
    let ran = Ran::of(command.env("FOLDBACK_TOOLS_SHELL", "false").output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(tools(&provider.requests()[0]).contains(&"file_read"));
    let provider = Provider::new(vec![Provider::text("Here.")]);
    let ran =
        run(&Shell::new(), &provider, &["--strategy", "react", "--tools", "file,web", "Where?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// A resumed run keeps the window with which it began, whatever its server says by then.
#[test]
fn a_run_goes_on_in_the_window_that_it_had() {
    let shell = Shell::new();
    let answers = vec![Provider::error(400), Provider::text("Here.")];
    let provider = Provider::telling(props(4_096), answers);
    let ran = run(&shell, &provider, &["--strategy", "react", "--id", "w", "Where?"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let asked = provider.questions_of_itself();
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(["run", "--resume", "w"]);
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(provider.questions_of_itself(), asked, "it is not asked again");
    let requests = provider.requests();
    assert_eq!(requests[0]["tools"], requests[1]["tools"]);
    assert_eq!(requests[0]["messages"][0], requests[1]["messages"][0]);
}

fn props(window: u32) -> Option<Value> {
    Some(json!({"default_generation_settings": {"n_ctx": window}}))
}

/// A server with a small window is asked with few tools and short instructions, and a note says so. Each request leaves
/// room for the answer, even once the conversation is longer than the window.
#[test]
fn a_small_window_is_kept_to() {
    let shell = Shell::new();
    shell.folders(&["work"]);
    let tides: String = (0..60).map(|n| format!("gate {n} opens at {n}.4 m\n")).collect();
    let files: Vec<String> = (0..24).map(|n| format!("tides-{n}.txt")).collect();
    for file in &files {
        shell.write(&format!("work/{file}"), &tides);
    }
    let read = |file: &String| Provider::call("file_read", &json!({"path": file}));
    let answers = files.iter().map(read).chain([Provider::text("Here.")]).collect();
    let provider = Provider::telling(props(4_096), answers);
    let ran = run(&shell, &provider, &["--strategy", "react", "Where?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = ran.stderr.replace('\n', " ");
    assert!(told.contains("window has 4096 tokens"), "{told}");
    assert!(told.contains("delegate") && told.contains("are left out"), "{told}");
    let requests = provider.requests();
    let small = requests[0].to_string().len();
    assert!(!tools(&requests[0]).contains(&"delegate"));
    for (at, request) in requests.iter().enumerate() {
        let tokens = tokens(request);
        // A quarter is the answer's.
        assert!(tokens <= 4_096 - 1_024, "request {at} has {tokens} tokens");
    }
    let provider = Provider::new(vec![Provider::text("Here.")]);
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
    for name in ["You may call", "`file_read`", "`load`", "`search_block`", "`todo_write`"] {
        assert!(told.contains(name), "{name}: {told}");
    }
}

/// A model that answers nothing gets one reminder; the conversation does not grow.
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

/// A model that repeats itself until it is cut off ends the run, with the reason.
#[test]
fn a_model_that_repeats_itself_ends_the_run() {
    let shell = Shell::new();
    let loops = "I will look at the file again. ".repeat(60);
    let provider = Provider::new(vec![Provider::cut(&loops), Provider::text("never asked")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Look."]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert_eq!(provider.requests().len(), 1);
    let why = only_run(&shell)["why"].as_str().unwrap().to_owned();
    assert!(why.contains("repeats itself endlessly"), "{why}");
}

/// An answer that is cut in the middle of data is not an endless repetition: the model continues.
#[test]
fn a_cut_answer_is_gone_on_with() {
    let shell = Shell::new();
    let rows: String = (0..40).map(|n| format!("row {n}: {}\n", n * 7_919)).collect();
    let cut = format!("{rows}{}", "0, ".repeat(140));
    let provider = Provider::new(vec![Provider::cut(&cut), Provider::text("Done.")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Write the rows."]);
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// What was repeated is in the conversation, and a resumed run asks again.
#[test]
fn a_repetition_is_recorded_and_asked_again() {
    let shell = Shell::new();
    let loops = "I will look at the file again. ".repeat(60);
    let provider = Provider::new(vec![Provider::cut(&loops), Provider::text("Done.")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "--id", "l", "Look."]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(shell.ok(&["export", "--todo", "l"]).text().contains("I will look at the file again."));
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(["run", "--resume", "l"]);
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
}

/// A server that counts far fewer tokens than were sent has ignored the tools: a note says so.
#[test]
fn tools_that_do_not_arrive_are_noted() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::text("Here.")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Where?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = ran.stderr.replace('\n', " ");
    assert!(told.contains("tools seem not to arrive: the server counted 100 of about"), "{told}");
}

/// Everything wrong with one call is in its answer once, and on the screen once.
#[test]
fn a_faulty_call_is_reported_once() {
    let shell = Shell::new();
    let faulty = json!({"items": [{"title": "Read", "state": "soon", "why": 1}]});
    let provider =
        Provider::new(vec![Provider::call("todo_write", &faulty), Provider::text("So.")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Plan it."]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = texts(&provider.requests()[1]).join("\n");
    for once in ["Error (arguments)", "do not fit `todo_write`", "\"soon\"", "'why'"] {
        assert_eq!(told.matches(once).count(), 1, "{once}: {told}");
    }
    let shown = ran.stderr.replace('\n', " ");
    assert!(shown.matches("\"id\"").count() + shown.matches("`id`").count() <= 1, "{}", ran.stderr);
}

/// A short run pays for the tools of its memory before anything can fold: the summary says by how much it took more.
#[test]
fn a_run_that_saves_nothing_says_what_it_took_more() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::text("七号门。")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Which gate?"]);
    let told = [ran.text(), &ran.stderr].concat();
    let line = told.lines().find(|line| line.starts_with("saved")).unwrap();
    let numbers = line.split(|c: char| !c.is_ascii_digit() && c != ',');
    let numbers = numbers.filter_map(|word| word.replace(',', "").parse().ok());
    let [more, sent, full]: [u64; 3] = numbers.collect::<Vec<_>>().try_into().unwrap();
    assert!(line.contains("nothing, ") && more > 0 && sent - full == more, "{line}");
}

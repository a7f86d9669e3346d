//! `foldback run --call-form`, `--tool-choice`, `--terminate`, `--max-observe`.

use crate::provider::Provider;
use crate::run::{only_run, run};
use crate::run_turns::shows;
use crate::shell::Shell;
use serde_json::json;

const BLOCK: &str = "I look at both.\n<execute_tools>\n  <parallel>\n    \
                     <tools><file_read>一.md</file_read></tools>\n    \
                     <tools><file_read>二.md</file_read></tools>\n  </parallel>\n</execute_tools>";

fn shell() -> Shell {
    let shell = Shell::new();
    shell.folders(&["work"]);
    shell.write("work/一.md", "小雨");
    shell.write("work/二.md", "大雪");
    shell
}

/// ET10: a block is run if it is the form of calls, and its results are numbered.
#[test]
fn et10_a_block_is_run_where_it_is_the_form_of_calls() {
    let shell = shell();
    let provider = Provider::new(vec![Provider::text(BLOCK), Provider::text("小雨和大雪。")]);
    let args = ["--strategy", "react", "--call-form", "execute-tools", "--id", "see", "Read both"];
    let ran = run(&shell, &provider, &args);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.text().contains("小雨和大雪。") && ran.stderr.contains("✓ file_read"), "{ran:?}");
    let asked = provider.requests();
    assert!(shows(&asked[0], "<execute_tools>") && !asked[0].to_string().contains("\"file_read\""));
    for words in ["<tool_result index=\\\"0\\\">", "<tool_result index=\\\"1\\\">", "大雪"] {
        assert!(shows(&asked[1], words), "{words}: {}", asked[1]["messages"]);
    }
    // The form is kept with the conversation.
    let provider = Provider::new(vec![Provider::text(BLOCK), Provider::text("Again.")]);
    let args = ["run", "--todo", "see", "--base-url", &provider.url(), "Once more"];
    assert!(shell.ok(&args).text().contains("Again."));
}

/// An answer that contains a block is not taken for the end if calls are those of the chat API.
#[test]
fn a_block_is_no_answer_in_any_form() {
    let shell = shell();
    let provider = Provider::new(vec![
        Provider::text(BLOCK),
        Provider::call("file_read", &json!({"path": "一.md"})),
        Provider::text("小雨。"),
    ]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Read it"]);
    assert!(ran.code == 0 && ran.text().contains("小雨。"), "{ran:?}");
    assert!(shows(
        &provider.requests()[1],
        "here tools are called with tool calls of the chat API"
    ));
    assert!(!shows(&provider.requests()[1], "小雨"), "nothing of it was run");
    // A model that continues like that fails, and the run says which form it expects.
    let provider = Provider::answering(|_| Provider::text(BLOCK));
    let ran = run(&shell, &provider, &["--strategy", "react", "--id", "again", "Read it"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let runs = shell.json(&["sessions"]);
    let why = runs[1]["why"].as_str().unwrap();
    assert!(why.contains("the model writes <execute_tools> blocks"), "{why}");
}

/// OM12, OM13: if a tool has to be called, `terminate` ends the run, and its status says how it went.
#[test]
fn om13_tools_are_required_forbidden_or_named() {
    let shell = shell();
    let end = |status: &str| Provider::call("terminate", &json!({"status": status}));
    let provider = Provider::new(vec![
        Provider::text("I am done."),
        Provider::call("file_read", &json!({"path": "一.md"})),
        end("success"),
    ]);
    let args =
        ["--json", "--strategy", "react", "--terminate", "--tool-choice", "required", "Read"];
    let ran = run(&shell, &provider, &args);
    assert_eq!((ran.code, &only_run(&shell)["state"]), (0, &json!("done")), "{ran:?}");
    let asked = provider.requests();
    assert_eq!(asked[0]["tool_choice"], "required");
    assert!(shows(&asked[1], "You have to call one in each message"));
    let ended = ran.json_lines().into_iter().find(|event| event["event"] == "ended").unwrap();
    let stop = json!({"reason": "terminated", "status": "success"});
    assert_eq!((&ended["state"], &ended["stop"]), (&json!("finished"), &stop));

    let provider = Provider::new(vec![
        Provider::call("file_list", &json!({})),
        Provider::call("file_read", &json!({"path": "一.md"})),
        end("failure"),
    ]);
    let args = ["--strategy", "react", "--id", "one", "--terminate", "--tool-choice", "file_read"];
    let ran = run(&shell, &provider, &[&args[..], &["Read"]].concat());
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(shows(&provider.requests()[1], "this tool may not be called now"));
    let runs = shell.json(&["sessions"]);
    assert_eq!(runs[1]["why"], "Terminated by the model with status: failure");

    let provider = Provider::new(vec![Provider::text("Without tools, then.")]);
    let args = ["--strategy", "react", "--id", "none", "--tool-choice", "none", "Read"];
    assert_eq!(run(&shell, &provider, &args).code, 0);
    assert_eq!(provider.requests()[0]["tool_choice"], "none");
    let ran = run(&shell, &provider, &["--tool-choice", "required", "Read"]);
    assert!(ran.code == 2 && ran.stderr.contains("needs --terminate"), "{ran:?}");
}

/// OM14: a long result is cut if the policy has nothing to look back with, and can be read on.
#[test]
fn om14_a_long_result_is_cut_and_read_on_in() {
    let shell = shell();
    shell.write("work/长.md", "潮".repeat(3_000) + "尾");
    let provider = Provider::new(vec![
        Provider::call("file_read", &json!({"path": "长.md"})),
        Provider::call("observation_read", &json!({"name": "0.1", "from": 2_990})),
        Provider::text("尾。"),
    ]);
    let args =
        ["--strategy", "react", "--context", "full", "--max-observe", "300", "Read to the end"];
    let ran = run(&shell, &provider, &args);
    assert_eq!(ran.code, 0, "{ran:?}");
    let asked = provider.requests();
    assert!(
        shows(&asked[1], "observation_read {\\\"name\\\":\\\"0.1\\\""),
        "{}",
        asked[1]["messages"]
    );
    assert!(asked[1].to_string().matches('潮').count() < 400);
    assert!(shows(&asked[2], "潮潮潮尾"), "{}", asked[2]["messages"]);
}

//! `foldback run`: with a model behind HTTP, and what is refused before anything begins.

use crate::provider::Provider;
use crate::shell::{Ran, Shell};
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The command against a provider, in a workspace of its own.
pub(crate) fn run(shell: &Shell, provider: &Provider, args: &[&str]) -> Ran {
    Ran::of(command(shell, provider, args).output().unwrap())
}

/// The same, not started yet.
pub(crate) fn command(shell: &Shell, provider: &Provider, args: &[&str]) -> Command {
    shell.folders(&["work"]);
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(["run", "--workspace"]).arg(shell.path("work"));
    command.args(["--model", "scripted", "--base-url", &provider.url()]).args(args);
    command
}

pub(crate) fn only_run(shell: &Shell) -> Value {
    let runs = shell.json(&["sessions"]);
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
    runs[0].clone()
}

#[test]
fn a_task_is_read_from_standard_input() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::text("好。")]);
    let of = |bytes: &[u8]| {
        let mut command = command(&shell, &provider, &["--strategy", "react", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        Ran::of(child.wait_with_output().unwrap())
    };
    let ran = of("看 - 一下。\n第二行\n".as_bytes());
    assert_eq!(
        (ran.code, &only_run(&shell)["task"]),
        (0, &json!("看 - 一下。\n第二行")),
        "{ran:?}"
    );
    for (bytes, words) in [(&b" \n"[..], "the task is empty"), (b"\xff", "standard input")] {
        let ran = of(bytes);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{ran:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_begins() {
    let shell = Shell::new();
    let cases: [(&[&str], i32, &str); 10] = [
        (
            &["run", "x", "--tools", "fiel", "--model", "m"],
            2,
            "no tool or family of tools \"fiel\"; the tools are",
        ),
        (&["run"], 2, "required"),
        (&["run", "  ", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"], 2, "task is empty"),
        (&["run", "x", "--strategy", "guess"], 2, "possible values: adaptive, react, one-plan"),
        (&["run", "x", "--context", "nothing"], 2, "possible values: auto, foldback"),
        (&["run", "x", "--max-time", "soon"], 2, "expected a time such as 90s, 10m or 2h"),
        (&["run", "x", "--max-calls", "0"], 2, "0 is not in 1.."),
        (&["run", "x", "--workspace", "not-there", "--model", "m"], 2, "not-there cannot be used"),
        (
            &["run", "--resume", "not-there"],
            1,
            "there is no run not-there; `foldback sessions` lists",
        ),
        (&["run", "--engine", "memory", "--demo"], 2, "the memory engine keeps nothing"),
    ];
    for (args, code, words) in cases {
        let ran = shell.run(args);
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
        assert!(ran.stdout.is_empty());
    }
    assert_eq!(shell.json(&["sessions"]), json!([]));
    assert!(!shell.store().join("runs").exists());
}

#[test]
fn without_a_model_one_line_says_how_to_come_by_one() {
    let shell = Shell::new();
    let ran = shell.run(&["run", "mend it"]);
    assert_eq!(ran.code, 2);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    for words in ["--model", "FOLDBACK_MODEL", "foldback run --demo"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    // Incomplete settings are no reason to mention the demo.
    let ran = shell.run(&["run", "mend it", "--model", "unheard-of"]);
    assert!(ran.code == 2 && ran.stderr.contains("give a base URL"), "{}", ran.stderr);
    assert!(!shell.store().join("runs").exists());
}

#[test]
fn a_run_works_in_its_folder_and_keeps_what_was_said() {
    let shell = Shell::new();
    let provider = Provider::new(vec![
        Provider::call("file_write", &json!({"path": "笔记.md", "content": "小雨"})),
        Provider::text("It is written."),
    ]);
    let ran = run(&shell, &provider, &["--strategy", "react", "--yes", "Write down: 小雨"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.text().contains("It is written."), "{}", ran.text());
    assert_eq!(std::fs::read_to_string(shell.path("work/笔记.md")).unwrap(), "小雨");

    let listed = only_run(&shell);
    let id = listed["id"].as_str().unwrap();
    assert!(id.starts_with("write-down-"), "{id}");
    assert_eq!(listed["state"], "done");
    assert_eq!((&listed["strategy"], &listed["context"]), (&json!("react"), &json!("foldback")));
    assert_eq!(listed["calls"], 2);
    // As the provider counted: it reports 100 in and 10 out each time.
    assert_eq!((&listed["input_tokens"], &listed["output_tokens"]), (&json!(200), &json!(20)));
    assert_eq!(listed["answer"], "It is written.");

    let said = shell.ok(&["export", "--todo", id]);
    let said: Value = said.json();
    let roles: Vec<&str> =
        said["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles[roles.len() - 4..], ["user", "assistant", "tool", "assistant"]);

    // A finished run is printed again, and nothing is asked.
    let again = shell.ok(&["run", "--resume", id]);
    assert!(again.text().contains("It is written."), "{again:?}");
    assert_eq!(provider.requests().len(), 2);
    for name in ["run.json", "journal", "trajectory.jsonl"] {
        assert!(shell.store().join("runs").join(id).join(name).exists(), "{name}");
    }
}

/// A server without tool calls that refuses what it does not know: the run works with it in text, and informs the model
/// of a call that cannot be read.
#[test]
fn a_server_without_tool_calls_is_asked_in_text() {
    let shell = Shell::new();
    let mut turn = 0;
    let provider = Provider::answering(move |asked| {
        let knows =
            |message: &Value| message.get("tool_calls").is_none() && message["role"] != "tool";
        let messages = asked["messages"].as_array().unwrap();
        if asked.get("tools").is_some() || !messages.iter().all(knows) {
            return Provider::refusal(400, "this model does not support tools");
        }
        turn += 1;
        match turn {
            1 => Provider::text("<tool_call>{\"name\": file_write}</tool_call>"),
            2 => {
                Provider::call_in_text("file_write", &json!({"path": "笔记.md", "content": "小雨"}))
            }
            _ => Provider::text("It is written."),
        }
    });
    let args = ["--strategy", "react", "--yes", "--tool-calls", "hermes", "Write down: 小雨"];
    let ran = run(&shell, &provider, &args);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.text().contains("It is written."), "{}", ran.text());
    assert_eq!(std::fs::read_to_string(shell.path("work/笔记.md")).unwrap(), "小雨");

    let asked = provider.requests();
    let last = |n: usize| {
        let messages = asked[n]["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].as_str().unwrap().to_owned()
    };
    assert!(asked[0]["messages"][0]["content"].as_str().unwrap().contains("<tools>\n{"));
    assert!(last(1).contains("could not be read, and is not kept: the tool call"), "{}", last(1));
    assert!(last(2).contains("<tool_response>{\"name\": \"file_write\""), "{}", last(2));

    // With native calls the same server refuses, and says why.
    let ran =
        run(&shell, &provider, &["--strategy", "react", "--id", "native", "Write down: 小雨"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let runs = shell.json(&["sessions"]);
    let native = runs.as_array().unwrap().iter().find(|run| run["id"] == "native").unwrap();
    assert!(native["why"].as_str().unwrap().contains("does not support tools"), "{native}");
}

#[test]
fn nothing_is_changed_where_nobody_can_be_asked() {
    let shell = Shell::new();
    let provider = Provider::new(vec![
        Provider::call("file_write", &json!({"path": "a.md", "content": "x"})),
        Provider::text("I could not."),
    ]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Write a file"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!shell.path("work/a.md").exists());
    let told = provider.requests()[1].to_string();
    assert!(told.contains("nobody can approve it"), "{told}");
}

#[test]
fn tools_stay_in_the_workspace() {
    let shell = Shell::new();
    shell.write("secret.txt", "the key is 8443");
    let provider = Provider::new(vec![
        Provider::call("file_read", &json!({"path": "../secret.txt"})),
        Provider::text("No."),
    ]);
    let ran = run(&shell, &provider, &["--strategy", "react", "--yes", "Read the secret"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = provider.requests()[1].to_string();
    assert!(told.contains("not permitted") && !told.contains("8443"), "{told}");
}

#[test]
fn a_run_that_may_not_spend_more_ends_and_goes_on_with_more() {
    let shell = Shell::new();
    let provider = Provider::new(vec![
        Provider::call("file_list", &json!({})),
        Provider::call("file_list", &json!({"path": "."})),
        Provider::text("Nothing is here."),
    ]);
    let ran = run(&shell, &provider, &["--strategy", "react", "--max-calls", "1", "What is here?"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let listed = only_run(&shell);
    assert_eq!((&listed["state"], &listed["calls"]), (&json!("stopped"), &json!(1)));
    assert_eq!(listed["why"], "--max-calls 1 is reached: it may spend no more calls of the model");
    let id = listed["id"].as_str().unwrap();
    // It continues in its current state.
    let goes_on = format!("foldback run --resume {id} --max-calls 2");
    assert!(ran.text().contains(&goes_on), "{}", ran.text());

    let ran = shell.ok(&["run", "--resume", id, "--max-calls", "9"]);
    assert!(ran.text().contains("Nothing is here."), "{ran:?}");
    assert_eq!(provider.requests().len(), 3, "nobody is asked twice");
    assert_eq!(only_run(&shell)["state"], "done");
}

#[test]
fn a_model_that_fails_ends_the_run_and_is_asked_again_by_the_next() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::error(401), Provider::text("Here I am.")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Are you there?"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let listed = only_run(&shell);
    assert!(listed["why"].as_str().unwrap().contains("The model failed"), "{listed}");
    let ran = shell.ok(&["run", "--resume", listed["id"].as_str().unwrap()]);
    assert!(ran.text().contains("Here I am."), "{ran:?}");
}

#[test]
fn the_same_task_runs_under_any_policy() {
    for context in ["full", "deepagents", "summary-top-n", "stm-ltm", "foldback-cache-aware"] {
        let shell = Shell::new();
        let provider = Provider::new(vec![
            Provider::call("file_list", &json!({})),
            Provider::text("Nothing."),
        ]);
        let ran =
            run(&shell, &provider, &["--strategy", "react", "--context", context, "What is here?"]);
        assert_eq!(ran.code, 0, "{context}: {ran:?}");
        let listed = only_run(&shell);
        assert_eq!((&listed["context"], &listed["state"]), (&json!(context), &json!("done")));
    }
}

/// ET16: the record of a run, with its fixed keys.
#[test]
fn et16_trajectories_are_exported_with_fixed_keys() {
    let shell = Shell::new();
    let provider = Provider::new(vec![
        Provider::call("file_list", &json!({})),
        Provider::text("Nothing."),
        Provider::error(401),
    ]);
    run(&shell, &provider, &["--strategy", "react", "--id", "first", "What is here?"]);
    run(&shell, &provider, &["--strategy", "react", "--id", "second", "And now?"]);
    let all = shell.ok(&["trajectories", "export"]).json_lines();
    assert_eq!(all.len(), 2);
    let keys: Vec<&String> = all[0].as_object().unwrap().keys().collect();
    let fixed = [
        "situation",
        "strategy",
        "plan",
        "calls",
        "results",
        "timing",
        "tokens",
        "rewards",
        "outcome",
    ];
    assert_eq!(keys, fixed);
    assert_eq!(all[0]["situation"]["request"], "What is here?");
    assert_eq!(
        all[0]["outcome"]["reason"].as_str().or(all[0]["outcome"]["stop"]["reason"].as_str()),
        Some("answered")
    );
    assert!(!all[0]["rewards"].as_object().unwrap().is_empty(), "judged");
    let one = shell.ok(&["trajectories", "export", "second"]).json_lines();
    assert_eq!(one, all[1..]);
    let ran = shell.run(&["trajectories", "export", "third"]);
    assert!(ran.code == 1 && ran.stderr.contains("there is no run third"), "{ran:?}");
}

#[test]
fn a_name_is_given_once() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::text("Yes."), Provider::text("Again.")]);
    assert_eq!(run(&shell, &provider, &["--id", "one", "--strategy", "react", "Yes?"]).code, 0);
    let ran = run(&shell, &provider, &["--id", "one", "--strategy", "react", "Yes?"]);
    assert!(ran.code == 2 && ran.stderr.contains("there is already a run one"), "{ran:?}");
    assert_eq!(provider.requests().len(), 1);
}

#[test]
fn settings_come_from_a_file_and_no_key_is_kept() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::text("Yes.")]);
    let settings = format!(
        "[model]\nname = \"scripted\"\nbase_url = \"{}\"\napi_key = \"sk-very-secret\"\n",
        provider.url()
    );
    let file = shell.write("model.toml", settings);
    shell.ok(&["run", "--strategy", "react", "--settings", &file, "Yes?"]);
    assert_eq!(only_run(&shell)["model"], "scripted");
    let kept = crate::shell::names(&shell.store().join("runs"));
    assert!(kept.contains(&"run.json".to_owned()), "{kept:?}");
    assert!(!holds(&shell.store(), "sk-very-secret"));
}

/// Whether any file below a folder holds these words.
fn holds(dir: &Path, words: &str) -> bool {
    std::fs::read_dir(dir).unwrap().flatten().any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => holds(&entry.path(), words),
        _ => {
            let bytes = std::fs::read(entry.path()).unwrap();
            bytes.windows(words.len()).any(|window| window == words.as_bytes())
        }
    })
}

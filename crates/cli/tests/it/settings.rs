//! `foldback.toml`, `foldback config`, and what the settings do.

use crate::provider::Provider;
use crate::run::{command, only_run, run};
use crate::shell::{Ran, Shell, line, quay};
use serde_json::{Value, json};
use std::io::Write as _;

/// Writes the user's own settings file, and returns its path.
pub(crate) fn user(shell: &Shell, text: &str) -> String {
    shell.folders(&[".config/foldback"]);
    shell.write(".config/foldback/foldback.toml", text)
}

/// The settings in force, as the rows of `foldback config`.
fn row(rows: &Value, key: &str) -> Value {
    let found = rows.as_array().unwrap().iter().find(|row| row["key"] == key);
    found.unwrap_or_else(|| panic!("{key}: {rows}")).clone()
}

#[test]
fn config_tells_each_setting_and_where_it_comes_from() {
    let shell = Shell::new();
    let own = user(
        &shell,
        "[agent]\nmax_replans = 1\n\n[model]\nname = \"小\"\napi_key = \"sk-very-secret\"\n",
    );
    let named = shell.write("named.toml", "[view]\nledger_lines = 4\n");
    shell.write("foldback.toml", "[agent]\nstrategy = \"react\"\n");
    let mut asked = shell.command();
    asked.args(["--json", "--store", "there", "--config", &named, "config"]);
    asked.env("FOLDBACK_MEMORY_BLOCK_MAX", "5");
    let rows = Ran::of(asked.output().unwrap()).json();
    let told = |key: &str| (row(&rows, key)["value"].clone(), row(&rows, key)["source"].clone());
    assert_eq!(told("agent.max_replans"), (json!(1), json!(format!("{own}:2"))));
    assert_eq!(told("model.name"), (json!("小"), json!(format!("{own}:5"))));
    assert_eq!(told("model.api_key"), (json!("[key]"), json!(format!("{own}:6"))));
    assert_eq!(told("view.ledger_lines"), (json!(4), json!(format!("{named}:2"))));
    assert_eq!(told("memory.block_max"), (json!(5), json!("FOLDBACK_MEMORY_BLOCK_MAX")));
    assert_eq!(told("memory.store"), (json!("there"), json!("--store")));
    assert_eq!(told("memory.block_min"), (json!(3), json!("built-in")));
    let (strategy, project) = told("agent.strategy");
    assert!(
        strategy == "react" && project.as_str().unwrap().ends_with("foldback.toml:2"),
        "{rows}"
    );

    let text = shell.ok(&["config"]);
    assert!(text.text().contains("agent.max_replans = 1  "), "{}", text.text());
    assert!(!text.text().contains("sk-very-secret"));
    // What holds without a setting is shown as well.
    let bare = shell.run_bare(&["config"]);
    let folder = shell.path(".local/share/foldback");
    for (key, value, source) in [
        ("memory.store", folder.to_str().unwrap(), "built-in"),
        ("view.policy", "auto", "built-in"),
        ("agent.max_calls", "1,000, if nothing else limits the run", "built-in"),
        ("memory.max_todos", "-", "built-in"),
    ] {
        let line = format!("{key} = {value}  {source}\n");
        assert!(!cfg!(target_os = "linux") || bare.text().contains(&line), "{line}{bare:?}");
    }
    assert_eq!(row(&rows, "view.policy")["default"], "auto");
    assert_eq!(
        row(&rows, "memory.max_todos"),
        json!({"key": "memory.max_todos", "value": null, "source": "built-in"})
    );
    let files = shell.json(&["--config", &named, "config", "path"]);
    let read: Vec<&str> =
        files.as_array().unwrap().iter().map(|f| f["path"].as_str().unwrap()).collect();
    assert_eq!((read[0], read[2], read.len()), (own.as_str(), named.as_str(), 3));
}

#[test]
fn a_file_of_settings_is_written_once_and_changes_nothing() {
    let shell = Shell::new();
    let before = shell.json(&["config"]);
    let said = shell.ok(&["config", "init"]);
    let path = shell.path(".config/foldback/foldback.toml");
    assert_eq!(said.text(), format!("wrote {}\n", path.display()));
    assert_eq!(shell.json(&["config"]), before);
    // A section from a page can be appended.
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"\n[view]\npolicy = \"cache-aware\"\n").unwrap();
    assert_eq!(row(&shell.json(&["config"]), "view.policy")["value"], "cache-aware");
    let again = shell.run(&["config", "init"]);
    assert!(again.code == 2 && again.stderr.contains("already exists"), "{again:?}");
}

#[test]
fn a_broken_setting_is_named_with_file_and_line() {
    let shell = Shell::new();
    let own = user(&shell, "[agent]\nmax_step = 4\n");
    let told = shell.run(&["todos"]);
    let expected =
        format!("{own}:2: there is no setting agent.max_step; did you mean agent.max_steps?");
    assert!(told.code == 2 && told.stderr.contains(&expected), "{told:?}");
    // The commands that help to repair it still work.
    assert!(shell.ok(&["config", "path"]).text().contains(&own));
}

/// A project comes from somebody else: a forbidden setting ends the command before anything is done.
#[test]
fn a_project_cannot_permit_what_its_user_did_not() {
    let shell = Shell::new();
    let provider = Provider::new(Vec::new());
    for said in [
        "[tools]\nhosts = [\"*\"]",
        "[tools]\napprove = true",
        "[model]\nbase_url = \"http://evil.example/v1\"",
    ] {
        shell.write("foldback.toml", said);
        let told = run(&shell, &provider, &["What is here?"]);
        assert!(told.code == 2 && told.stderr.contains("a project's file may not set"), "{told:?}");
    }
    assert!(provider.requests().is_empty());
    // The same text in a file that the user names counts as the user's.
    let named = shell.write("foldback.toml", "[tools]\nhosts = [\"docs.rs\"]");
    let rows = shell.json(&["--settings", &named, "config"]);
    assert_eq!(row(&rows, "tools.hosts")["value"], json!(["docs.rs"]));
}

/// Import, record and replay cut and offload as the settings say.
#[test]
fn the_memory_is_kept_as_the_settings_say() {
    let shell = Shell::new();
    let quay = shell.write("quay.jsonl", line("quay", quay()));
    let imported = shell.json(&["import", &quay]);
    let payloads = shell.json(&["doctor"])["payloads"].as_u64().unwrap();
    user(&shell, "[memory]\nblock_max = 3\noffload_tokens = 5\n");
    let smaller = shell.json(&["import", "--todo", "smaller", &quay]);
    assert!(smaller["blocks"].as_u64() > imported["blocks"].as_u64(), "{smaller} {imported}");
    let blocks = shell.json(&["blocks", "--todo", "smaller"]);
    let sizes = blocks.as_array().unwrap().iter().map(|block| {
        block["last_seq"].as_u64().unwrap() + 1 - block["first_seq"].as_u64().unwrap()
    });
    assert!(sizes.max() < Some(8), "{blocks}");
    let more = shell.json(&["doctor"])["payloads"].as_u64().unwrap() - payloads;
    assert!(more > payloads, "{more} {payloads}");
    let replayed = Ran::of(shell.command().args(["--json", "replay", &quay]).output().unwrap());
    assert_eq!(replayed.json()["payloads"].as_u64().unwrap(), more);
    assert_eq!(replayed.json()["blocks"], smaller["blocks"]);
    assert_eq!((replayed.code, &replayed.json()["lossless"]), (0, &json!(true)));
}

/// A message that is recorded is stored outside by the threshold of the environment.
#[test]
fn what_is_recorded_is_offloaded_as_the_settings_say() {
    let shell = Shell::new();
    let message = json!({"role": "tool", "tool_call_id": "c1", "content": "小雨 ".repeat(40)});
    let call = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    ]});
    let lines = shell.write("lines.jsonl", format!("{call}\n{message}\n"));
    for (tokens, payloads) in [("5000", 0), ("10", 1), ("weather", 1)] {
        let mut record = shell.command();
        record.arg("--store").arg(shell.path(tokens)).args(["record", "--todo", "t"]);
        match tokens {
            "weather" => record.env("FOLDBACK_MEMORY_OFFLOAD_TOOL_TOKENS", "{ weather = 5 }"),
            tokens => record.env("FOLDBACK_MEMORY_OFFLOAD_TOKENS", tokens),
        };
        record.stdin(std::fs::File::open(&lines).unwrap());
        assert_eq!(Ran::of(record.output().unwrap()).code, 0);
        let mut doctor = shell.command();
        doctor.arg("--store").arg(shell.path(tokens)).args(["--json", "doctor"]);
        assert_eq!(Ran::of(doctor.output().unwrap()).json()["payloads"], payloads);
    }
}

#[test]
fn the_window_is_as_wide_as_the_settings_say() {
    let shell = Shell::new();
    let quay = shell.write("quay.jsonl", line("quay", quay()));
    let widest = |shell: &Shell| {
        let ran = Ran::of(shell.command().args(["--json", "replay", &quay]).output().unwrap());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.json()["window_max_messages"].as_u64().unwrap()
    };
    let usual = widest(&shell);
    user(&shell, "[view]\nwindow_messages = 8\n");
    assert!(usual > 8 && widest(&shell) <= 8);
    let replayed = Ran::of(shell.command().args(["replay", &quay]).output().unwrap());
    assert!(replayed.text().contains("(bound 8)"), "{}", replayed.text());
}

/// What the model was first told, and with which tools.
fn first_request(provider: &Provider) -> (String, Vec<String>) {
    let request = provider.requests()[0].clone();
    let system = request["messages"][0]["content"].as_str().unwrap().to_owned();
    let tools = request["tools"].as_array().unwrap().iter();
    (system, tools.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect())
}

#[test]
fn a_run_goes_by_the_settings() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::text("没有。")]);
    user(
        &shell,
        "[agent]\nstrategy = \"react\"\ninstructions = \"Answer in 中文.\"\n\n\
         [view]\npolicy = \"full\"\n\n[tools]\nshell = false\nwrite = false\nhosts = [\"docs.rs\"]\n",
    );
    let ran = run(&shell, &provider, &["What is here?"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let listed = only_run(&shell);
    assert_eq!((&listed["strategy"], &listed["context"]), (&json!("react"), &json!("full")));
    let (system, tools) = first_request(&provider);
    assert!(system.ends_with("\n\nAnswer in 中文."), "{system}");
    let has = |name: &str| tools.iter().any(|tool| tool == name);
    assert!(has("file_read") && has("web_fetch"), "{tools:?}");
    assert!(!has("shell_run") && !has("file_write") && !has("file_edit"), "{tools:?}");
}

#[test]
fn a_flag_goes_before_the_settings() {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::text("Nothing.")]);
    user(&shell, "[agent]\nstrategy = \"flow\"\n\n[tools]\nhosts = [\"docs.rs\"]\n");
    let args = ["--strategy", "react", "--allow-net", "example.org", "What is here?"];
    assert_eq!(run(&shell, &provider, &args).code, 0);
    assert_eq!(only_run(&shell)["strategy"], "react");
    let web = provider.requests()[0]["tools"].to_string();
    assert!(web.contains("example.org") && !web.contains("docs.rs"), "{web}");
}

#[test]
fn steps_are_bounded_and_a_resumed_run_has_the_settings_that_it_began_with() {
    let shell = Shell::new();
    let provider = Provider::answering(|_| Provider::call("file_list", &json!({"path": "."})));
    user(&shell, "[agent]\nmax_steps = 2\ninstructions = \"Be brief.\"\n");
    let ran = run(&shell, &provider, &["--id", "look", "--strategy", "react", "Look around"]);
    assert_eq!((ran.code, provider.requests().len()), (1, 2), "{ran:?}");
    // The file has changed by now.
    user(&shell, "[agent]\nmax_steps = 5\ninstructions = \"Be long.\"\n");
    let again = shell.run(&["run", "--resume", "look"]);
    assert_eq!((again.code, provider.requests().len()), (1, 2), "{again:?}");
    let (system, _) = first_request(&provider);
    assert!(system.ends_with("Be brief."), "{system}");
}

/// A plan whose step fails is rebuilt as often as the settings allow. A further plan is no answer, and the answer is
/// requested once more.
#[test]
fn replans_are_bounded() {
    for (replans, asked) in [("0", 3), ("2", 5)] {
        let shell = Shell::new();
        let plan = json!({"action_plan": {"step1": {"function": "file_read", "args": {"path": "not-there"}}}});
        let provider = Provider::answering(move |_| Provider::text(&plan.to_string()));
        let mut run = command(&shell, &provider, &["--strategy", "one-plan", "--json", "Read it"]);
        run.env("FOLDBACK_AGENT_MAX_REPLANS", replans);
        let ran = Ran::of(run.output().unwrap());
        let plans = ran.json_lines().iter().filter(|event| event["event"] == "planned").count();
        assert_eq!((plans, provider.requests().len()), (asked - 2, asked), "{ran:?}");
    }
}

/// A prompt keeps to its budget: the tools for looking back give access to what does not fit.
#[test]
fn a_prompt_keeps_to_its_budget() {
    let sent = |budget: &str| {
        let shell = Shell::new();
        shell.folders(&["work"]);
        shell.write("work/long.md", "A line about the tides at Holm.\n".repeat(400));
        let provider = Provider::new(vec![
            Provider::call("file_read", &json!({"path": "long.md"})),
            Provider::text("It is long."),
        ]);
        user(&shell, budget);
        assert_eq!(run(&shell, &provider, &["--strategy", "react", "Read long.md"]).code, 0);
        provider.requests()[1]["messages"].to_string().len()
    };
    let (usual, bounded) = (sent(""), sent("[view]\nbudget_tokens = 4000\n"));
    assert!(bounded < usual / 2, "{bounded} of {usual}");
}

#[test]
fn limits_come_from_the_settings_and_a_project_lowers_them() {
    let shell = Shell::new();
    let provider = Provider::answering(|_| Provider::call("file_list", &json!({"path": "."})));
    user(&shell, "[agent]\nmax_calls = 4\n");
    shell.write("foldback.toml", "[agent]\nmax_calls = 3\n");
    let ran = run(&shell, &provider, &["--strategy", "react", "Look around"]);
    assert_eq!((ran.code, provider.requests().len()), (1, 3), "{ran:?}");
    assert!(only_run(&shell)["why"].as_str().unwrap().starts_with("--max-calls 3 is reached"));
    shell.write("foldback.toml", "[agent]\nmax_calls = 9\n");
    run(&shell, &provider, &["--strategy", "react", "Look around again"]);
    assert_eq!(provider.requests().len(), 7);
}

/// The demo's recorded turns were made by an agent without any settings.
#[test]
fn the_demo_is_as_it_is_whatever_is_set() {
    let shell = Shell::new();
    user(
        &shell,
        "[agent]\nmax_steps = 1\nstrategy = \"flow\"\n\n[memory]\nblock_max = 3\n\n[tools]\nwrite = false\n",
    );
    assert_eq!(
        shell.ok(&["--json", "run", "--demo"]).json_lines().last().unwrap()["state"],
        "done"
    );
}

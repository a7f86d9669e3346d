//! What a user of `foldback run` sees when the model cannot be asked, or something given makes no sense.

use crate::provider::Provider;
use crate::run::{only_run, run};
use crate::shell::Shell;
use serde_json::json;

/// The answer of a provider that refuses, once, and what is reported about it.
fn refused(status: u16, message: &str) -> (String, String) {
    let shell = Shell::new();
    let provider = Provider::new(vec![Provider::refusal(status, message)]);
    let ran = run(&shell, &provider, &["--strategy", "react", "Are you there?"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let why = only_run(&shell)["why"].as_str().unwrap().to_owned();
    (why.replace(&provider.url(), "URL"), ran.stderr)
}

#[test]
fn a_model_that_refuses_is_named() {
    assert_eq!(
        refused(401, "Incorrect API key").0,
        "The model failed: the provider answered with status 401: Incorrect API key (model scripted at \
         URL; it has no key: none in FOLDBACK_API_KEY or the settings is for this address)"
    );
    assert_eq!(
        refused(404, "模型不存在").0,
        "The model failed: the provider answered with status 404: 模型不存在 (model scripted at URL)"
    );
}

/// Each failed attempt is reported, to a person and to a program; then the answer is there.
#[test]
fn a_model_that_is_busy_is_asked_again_and_that_is_told() {
    for (status, is_json) in [(429, false), (500, true)] {
        let shell = Shell::new();
        let provider =
            Provider::new(vec![Provider::refusal(status, "busy"), Provider::text("Here I am.")]);
        let mut args = vec!["--strategy", "react", "Are you there?"];
        args.extend(is_json.then_some("--json"));
        let ran = run(&shell, &provider, &args);
        assert_eq!(ran.code, 0, "{ran:?}");
        let told = format!("no answer yet: the provider answered with status {status}: busy");
        if is_json {
            let events = ran.json_lines();
            let noted = events.iter().find(|event| event["event"] == "noted").unwrap();
            assert!(noted["text"].as_str().unwrap().starts_with(&told), "{noted}");
        } else {
            assert!(ran.stderr.replace('\n', " ").contains(&told), "{}", ran.stderr);
        }
    }
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let shell = Shell::new();
    shell.folders(&["work"]);
    let once = shell.write("once.toml", "[model]\nattempts = 1\n");
    let address = "http://127.0.0.1:9/v1";
    let given = ["--model", "m", "--base-url", address, "--settings", &once, "--strategy", "react"];
    let args: Vec<&str> = ["run"].into_iter().chain(given).chain(["Hello?"]).collect();
    let ran = shell.run(&args);
    assert_eq!(ran.code, 1, "{ran:?}");
    let why = only_run(&shell)["why"].as_str().unwrap().to_owned();
    assert!(why.contains("could not be reached") && why.contains("(model m at "), "{why}");
    assert!(why.contains(address), "{why}");
    // A user who wants only the answer learns that there is none.
    let quiet: Vec<&str> = ["--quiet"].into_iter().chain(args).collect();
    let ran = shell.run(&quiet);
    assert_eq!((ran.code, ran.text(), ran.stderr.lines().count()), (1, "", 1), "{ran:?}");
    assert!(ran.stderr.starts_with("error: the run hello-"), "{}", ran.stderr);
    assert!(ran.stderr.contains("is stopped: The model failed"), "{}", ran.stderr);
}

/// Each is refused with a sentence that names what was wrong and what was expected, before anything begins.
#[test]
fn what_is_given_wrongly_is_named() {
    let shell = Shell::new();
    shell.folders(&["work"]);
    let list = shell.write("list.json", "{\"servers\": {}}");
    let file = shell.write("file.txt", "a file");
    let model = ["--model", "m", "--base-url", "http://127.0.0.1:9/v1"];
    let cases: [(&[&str], &[&str]); 9] = [
        (
            &["--provider", "foo"],
            &["'foo' for '--provider", "openai, openai-compatible, anthropic"],
        ),
        (&["--allow-net", "http://docs.rs"], &["'http://docs.rs' for '--allow-net", "docs.rs, *."]),
        (&["--allow-private-net"], &["--allow-net <HOST>"]),
        (&["--demo", "--allow-net", "docs.rs", "--allow-private-net"], &["cannot be used with"]),
        (&["--mcp", &list], &["list.json", "missing field `mcpServers`", "{\"mcpServers\": "]),
        (&["--mcp", "not-there.json"], &["the list of MCP servers not-there.json cannot be used"]),
        (&["--documents", &file], &["file.txt is a file, not a folder"]),
        (&["--strategy", "deep-search"], &["name it with --search", "with --documents"]),
        (
            &["--base-url", "ftp://x"],
            &["\"ftp://x\" is not an address that begins with http:// or https://"],
        ),
    ];
    for (given, words) in cases {
        let rest = if given[0] == "--base-url" { &model[..2] } else { &model[..] };
        let args: Vec<&str> = ["run", "hi"].iter().chain(rest).chain(given).copied().collect();
        let ran = shell.run(&args);
        assert_eq!(ran.code, 2, "{given:?}: {ran:?}");
        for words in words {
            assert!(ran.stderr.contains(words), "{given:?}: {}", ran.stderr);
        }
    }
    assert_eq!(shell.json(&["sessions"]), json!([]));
}

/// The name of a model is corrected, and the run continues.
#[test]
fn a_run_goes_on_with_another_model() {
    let shell = Shell::new();
    let provider =
        Provider::new(vec![Provider::refusal(404, "no such model"), Provider::text("Here I am.")]);
    let ran = run(&shell, &provider, &["--strategy", "react", "--id", "call", "Are you there?"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let ran = shell.ok(&["run", "--resume", "call", "--model", "qwen3-32b"]);
    assert!(ran.text().contains("Here I am."), "{ran:?}");
    assert_eq!(provider.requests()[1]["model"], "qwen3-32b");
    assert_eq!(only_run(&shell)["model"], "qwen3-32b");
}

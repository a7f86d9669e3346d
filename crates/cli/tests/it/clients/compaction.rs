//! A client's own compaction, and what is said after it.

use super::{CLAUDE, FILES, client, commanding, forgetting, is_summary, wrapped_with};
use crate::shell::Shell;
use foldback_testkit::upstream::{Answer, Said, Seen};
use serde_json::{Value, json};

/// The question after the compaction.
const AGAIN: &str = "Which port does the ferry have?";

fn text(seen: &Seen) -> String {
    String::from_utf8_lossy(&seen.body).into_owned()
}

/// GW4, GW17, GW18: Claude Code sums up a folded session by its own command. What is said after that is in the same
/// todo, and its model finds what was read before, which neither the summary nor the request contains.
#[test]
fn gw4_claude_code_goes_on_behind_its_compaction() {
    let Some(claude) = client("bin/claude") else { return };
    let shell = Shell::new();
    shell.folders(&["home", "work"]);
    for n in 0..FILES {
        let line = |m: usize| format!("{n}.{m}: the line {} says nothing of value\n", m * 7);
        let text: String = (0..60).map(line).collect();
        let what = if n == 2 { "the port of the service ferry is 7302\n" } else { "" };
        shell.write(&format!("work/f{n}.txt"), format!("{text}{what}"));
    }
    let turn = |more: &[&str]| {
        let reads = forgetting(shell.path("work"));
        let script = move |seen: &Seen| {
            let body = text(seen);
            // What is found may hold what the summary was asked with.
            match (body.contains(AGAIN), body.contains("toolu_found")) {
                (false, _) if is_summary(seen) => {
                    Answer::Said(Said::text("<summary>Files were read.</summary>"))
                }
                (false, _) => reads(seen),
                (true, true) => Answer::Said(Said::text("I have found it.")),
                (true, false) => {
                    let query = json!({ "query": "port of the service ferry" });
                    let tool = "mcp__foldback__search_block";
                    Answer::Said(Said::text("I look.").call("toolu_found", tool, query))
                }
            }
        };
        let args = [&["-p", "--allowedTools=Read"], more].concat();
        let (ran, seen) = wrapped_with(&shell, &claude, &args, &CLAUDE, &[], script);
        assert_eq!(ran.code, 0, "{more:?}: {ran:?}");
        assert!(!ran.stderr.contains("refused"), "{more:?}: {ran:?}");
        (ran, seen)
    };
    let (_, seen) = turn(&["Read all files."]);
    assert!(seen.iter().any(|seen| text(seen).contains("[memory] Earlier parts")));
    let (_, seen) = turn(&["--continue", "/compact"]);
    assert!(seen.iter().any(is_summary), "{seen:?}");
    let (ran, seen) = turn(&["--continue", AGAIN]);
    assert!(ran.text().contains("I have found it."), "{ran:?}");
    let asked: Vec<_> = seen.iter().map(text).filter(|body| body.contains(AGAIN)).collect();
    // Claude Code also asks for something aside, which may come at any place.
    let (heard, asked): (Vec<_>, Vec<_>) =
        asked.iter().partition(|body| body.contains("toolu_found"));
    assert!(asked.iter().any(|body| body.contains("Files were read.")), "{asked:?}");
    assert!(asked.iter().all(|body| !body.contains("ferry is 7302")), "{asked:?}");
    assert!(heard.iter().any(|body| body.contains("ferry is 7302")), "{heard:?}");
    check_branches(&shell, AGAIN, "Read all files.");
}

/// GW4, GW17: Codex sums up by itself, in a sealed item or in words.
#[test]
fn gw4_codex_goes_on_behind_its_compaction() {
    let Some(codex) = client("bin/codex") else { return };
    for model in [&[][..], &["-m", "gpt-5.1-codex"]] {
        let shell = Shell::new();
        shell.folders(&["home", "work"]);
        shell.write("work/a.txt", "The port is 7001.\n");
        let turn = |more: &[&str]| {
            let args = [&["exec", "--skip-git-repo-check"], model, more].concat();
            let (ran, seen) = wrapped_with(&shell, &codex, &args, &[], &[], commanding);
            assert_eq!(ran.code, 0, "{more:?}: {ran:?}");
            assert!(ran.text().contains("The port is 7001."), "{more:?}: {ran:?}");
            seen
        };
        turn(&["Which port is it?"]);
        let limit = ["-c", "model_auto_compact_token_limit=2000"];
        let seen = turn(&[&limit[..], &["resume", "--last", "And again?"]].concat());
        assert!(seen.iter().any(|seen| text(seen).contains("compaction_trigger")), "{seen:?}");
        turn(&["resume", "--last", AGAIN]);
        check_branches(&shell, AGAIN, "Which port is it?");
        let found = shell.ok(&["search", "--todo", &shell.todos()[0], "which port"]);
        assert!(found.text().contains("7001"), "{found:?}");
    }
}

/// The store has one conversation: a branch that ends with what was said last, and another that begins with what was
/// said first.
#[track_caller]
fn check_branches(shell: &Shell, last: &str, first: &str) {
    let todos = shell.todos();
    assert_eq!(todos.len(), 1, "{todos:?}");
    let branches = shell.ok(&["export", "--todo", &todos[0], "--branches"]).json_lines();
    let texts: Vec<_> = branches.iter().map(|branch| branch["messages"].to_string()).collect();
    assert!(texts.len() > 1, "{texts:?}");
    assert!(texts.last().unwrap().contains(last), "{texts:?}");
    assert!(texts[0].contains(first) && !texts[0].contains(last), "{texts:?}");
    let said = |branch: &Value| branch["messages"].as_array().unwrap().len();
    assert!(branches.iter().all(|branch| said(branch) > 1), "{texts:?}");
    shell.ok(&["verify"]);
}

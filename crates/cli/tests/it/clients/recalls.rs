//! What left a client's requests is found again by tools of its own.

use super::{
    CLAUDE, FILES, HAND_ON, OPENCODE, OPENCODE_MODEL, client, forgetting, handing_on, wrapped_with,
};
use crate::shell::Shell;
use foldback_testkit::upstream::Seen;
use std::path::PathBuf;

/// GW7, GW18: an agent whose requests are folded finds with its own tools what left them, and so does its sub-agent in
/// a todo of its own, if there is a tool and a kind of sub-agent for that.
fn recalls(
    program: &PathBuf,
    args: &[&str],
    env: &[(&str, &str)],
    sub_agent: Option<(&'static str, &'static str)>,
) {
    let shell = Shell::new();
    shell.folders(&["home", "work"]);
    for n in 0..FILES {
        let line =
            |m: usize| format!("{n}.{m}: the line {} of this file says nothing of value\n", m * 7);
        let text: String = (0..60).map(line).collect();
        let what = if n == 2 { "the port of the service ferry is 7302\n" } else { "" };
        shell.write(&format!("work/f{n}.txt"), format!("{text}{what}"));
    }
    let reads = forgetting(shell.path("work"));
    let (ran, seen) = match sub_agent {
        None => wrapped_with(&shell, program, args, env, &[], reads),
        Some((tool, kind)) => {
            wrapped_with(&shell, program, args, env, &[], handing_on(tool, kind, reads))
        }
    };
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(shell.todos().len(), 1 + usize::from(sub_agent.is_some()), "{:?}", shell.todos());
    let text = |seen: &Seen| String::from_utf8_lossy(&seen.body).into_owned();
    let is_meant = |seen: &&Seen| seen.body.len() > 8_000 && !text(seen).contains(HAND_ON);
    let main: Vec<_> = seen.iter().filter(is_meant).collect();
    let sizes: Vec<_> = main.iter().map(|seen| seen.body.len()).collect();
    // What the client asks aside may come last.
    let (heard, asked): (Vec<String>, Vec<String>) = main
        .iter()
        .map(|seen| text(seen))
        .partition(|body| body.contains(&format!("\"toolu_{FILES}\"")));
    let (asks, hears) = (asked.last().unwrap(), heard.last().unwrap());
    assert!(asks.contains("[memory] Earlier parts"), "{sizes:?} {ran:?}");
    assert!(!asks.contains("ferry is 7302"), "{sizes:?}");
    assert!(hears.contains("ferry is 7302"), "{sizes:?} {hears}");
    // What the tool answered is not stored once more, as the files are. If a client asks for something aside, the
    // script takes that for a step, and a file is not read.
    let stored = shell.json(&["doctor"])["payloads"].as_u64().unwrap() as usize;
    assert!((FILES - 4..=FILES).contains(&stored), "{stored}: {ran:?}");
}

/// GW18: Claude Code.
#[test]
fn gw18_claude_code_recalls() {
    let Some(claude) = client("bin/claude") else { return };
    recalls(&claude, &["-p", "Read all files.", "--allowedTools", "Read"], &CLAUDE, None);
    let args = ["-p", HAND_ON, "--allowedTools", "Read,Agent"];
    recalls(&claude, &args, &CLAUDE, Some(("Agent", "general-purpose")));
}

/// GW18: OpenCode.
#[test]
fn gw18_opencode_recalls() {
    let Some(opencode) = client("bin/opencode") else { return };
    let [flag, model] = OPENCODE_MODEL;
    let args = |prompt| ["run", flag, model, prompt];
    recalls(&opencode, &args("Read all files."), &OPENCODE, None);
    recalls(&opencode, &args(HAND_ON), &OPENCODE, Some(("task", "general")));
}

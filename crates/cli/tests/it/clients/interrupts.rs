//! Clients that are interrupted while they are answered, and continue later.

use super::{CLAUDE, OPENCODE, OPENCODE_MODEL, client, starting, wrapped_with};
use crate::shell::{Ran, Shell};
use crate::slowly;
use foldback_testkit::upstream::{Answer, Said, Seen, Upstream};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// No client takes this long to ask.
const PATIENCE: Duration = Duration::from_secs(60);

/// The pause between two frames of an answer.
const PAUSE: Duration = Duration::from_millis(400);

fn telling(_: &Seen) -> Answer {
    Answer::Said(Said::text("The harbour was built in 1893, and the tale of it is long."))
}

/// Begins a turn with a provider that answers slowly, and interrupts it after this many frames of
/// the answer.
fn interrupted(shell: &Shell, name: &str, args: &[&str], env: &[(&str, &str)], frames: u32) -> Ran {
    let program = client(name).unwrap();
    let runtime = Runtime::new().unwrap();
    let provider = runtime.block_on(Upstream::start(telling));
    let slow = slowly::before(&format!("{}/", provider.url), PAUSE);
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(["wrap", "--anthropic-url", &slow]);
    command.args(["--openai-url", &format!("{slow}v1")]);
    let mut command = starting(shell, command, &program, args, env);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    // A client that also asks for a title names no tools there.
    let is_asked = |seen: &Seen| {
        let body = String::from_utf8_lossy(&seen.body);
        body.contains("Tell me of it.") && body.contains("\"tools\"")
    };
    while !provider.seen().iter().any(is_asked) {
        assert!(began.elapsed() < PATIENCE && child.try_wait().unwrap().is_none(), "{name}");
        std::thread::sleep(PAUSE / 8);
    }
    std::thread::sleep(PAUSE / 2 + frames * PAUSE);
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    Ran::of(child.wait_with_output().unwrap())
}

/// GW4, GW17: the exit code of an interrupted client is its own. Its question is recorded, and the session continues
/// after it in the same todo; the provider accepts what is sent.
#[test]
fn gw17_clients_are_interrupted_and_go_on() {
    type Case<'c> = (&'c str, i32, u32, Vec<&'c str>, Vec<&'c str>, &'c [(&'c str, &'c str)]);
    let cases: [Case<'_>; 3] = [
        ("bin/claude", 0, 3, vec!["-p"], vec!["-p", "--continue"], &CLAUDE),
        (
            "bin/codex",
            1,
            // After a sealed thought alone it would send that, which this provider refuses.
            0,
            vec!["exec", "--skip-git-repo-check"],
            vec!["exec", "--skip-git-repo-check", "resume", "--last"],
            &[],
        ),
        (
            "bin/opencode",
            130,
            // A second later, once it has begun to show the answer, it ignores the signal, wrapped or not.
            0,
            [&["run"], &OPENCODE_MODEL[..]].concat(),
            [&["run", "--continue"], &OPENCODE_MODEL[..]].concat(),
            &OPENCODE,
        ),
    ];
    for (name, code, frames, begin, go_on, env) in cases {
        let Some(program) = client(name) else { continue };
        let shell = Shell::new();
        shell.folders(&["home", "work"]);
        let ran =
            interrupted(&shell, name, &[&begin[..], &["Tell me of it."]].concat(), env, frames);
        assert_eq!(ran.code, code, "{name}: {ran:?}");
        assert!(!ran.text().contains("the tale of it is long"), "{name}: {ran:?}");
        let args = [&go_on[..], &["And then?"]].concat();
        let (ran, seen) = wrapped_with(&shell, &program, &args, env, &[], telling);
        assert_eq!(ran.code, 0, "{name}: {ran:?}");
        assert!(ran.text().contains("the tale of it is long"), "{name}: {ran:?}");
        let mut asked = seen.iter().map(|seen| String::from_utf8_lossy(&seen.body).into_owned());
        let asked = asked.rfind(|body| body.contains("And then?")).unwrap();
        assert!(asked.contains("Tell me of it."), "{name}: {asked}");
        assert_eq!(shell.todos().len(), 1, "{name}: {:?}", shell.todos());
        let todo = &shell.todos()[0];
        // What the client sent last, and the answer. It may send its first question in one message with the next.
        let branches = shell.ok(&["export", "--todo", todo, "--branches"]).json_lines();
        let last = branches.last().unwrap()["messages"].as_array().unwrap();
        let texts: String = last.iter().map(Value::to_string).collect();
        let said = ["Tell me of it.", "And then?", "tale of it is long"];
        let places =
            said.map(|said| texts.match_indices(said).map(|(at, _)| at).collect::<Vec<_>>());
        assert!(places.iter().all(|places| places.len() == 1), "{name}: {places:?} {texts}");
        assert!(places.concat().is_sorted(), "{name}: {texts}");
        let first = branches[0]["messages"].to_string();
        assert!(first.contains("Tell me of it."), "{name}: {first}");
    }
}

//! `foldback wrap` with a running gateway, and with a todo that is named.

use crate::gateway::{asking, exported, has_curl, provider, wrapped};
use crate::shell::{Ran, Shell};
use foldback_testkit::upstream::Upstream;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use tokio::runtime::Runtime;

/// A gateway in a process of its own.
pub(crate) struct Running {
    child: Child,
    pub(crate) url: String,
}

impl Running {
    pub(crate) fn begin(shell: &Shell, provider: &Upstream, args: &[&str]) -> Self {
        let mut command = shell.command();
        command.arg("--store").arg(shell.store()).args(["--json", "gateway"]).args(args);
        command.args(["--listen", "127.0.0.1:0", "--anthropic-url", &provider.url]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        Self { child, url: told["url"].as_str().unwrap().to_owned() }
    }

    pub(crate) fn end(mut self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended needs no signal.
        let _ = self.child.kill();
    }
}

/// Wraps a line of shell, with the gateway at this address.
fn beside(shell: &Shell, url: &str, options: &[&str], line: &str) -> Ran {
    let mut command: Command = shell.command();
    command.env_remove("FOLDBACK_GATEWAY_TOKEN");
    command.arg("--store").arg(shell.store()).args(["wrap", "--gateway", url]).args(options);
    Ran::of(command.args(["sh", "-c", line]).output().unwrap())
}

/// GW17: the program asks the running gateway, which continues when the program has ended; a note says if its store is
/// another one.
#[test]
fn gw17_a_gateway_that_runs_is_used() {
    if !has_curl() {
        return;
    }
    let (shell, other, runtime) = (Shell::new(), Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    let gateway = Running::begin(&shell, &provider, &[]);
    let line = asking("ANTHROPIC_BASE_URL", "/v1/messages", "Which berth?");
    let ran = beside(&shell, &gateway.url, &[], &format!("{line}; exit 7"));
    assert_eq!(ran.code, 7, "{ran:?}");
    assert_eq!(ran.json()["content"][0]["text"], "It is berth 七.");
    assert!(!ran.stderr.contains("another store"), "{ran:?}");
    for url in [gateway.url.clone(), format!("{}/v1/", gateway.url)] {
        let ran = beside(&other, &url, &[], &line);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.stderr.contains("records into another store than"), "{ran:?}");
    }
    assert!(!other.store().exists());
    gateway.end();
    assert_eq!(provider.seen().len(), 3);
    assert_eq!(exported(&shell, &shell.todos()[0])["messages"].as_array().unwrap().len(), 2);
    let silent = Running::begin(&shell, &provider, &["--no-record"]);
    let ran = beside(&shell, &silent.url, &[], &line);
    assert!(ran.code == 0 && ran.stderr.contains("records nothing"), "{ran:?}");
}

/// C9: of several gateways the conversation's own is asked, whatever their order; the next one if that is away.
#[test]
fn c9_a_conversation_stays_at_its_gateway() {
    if !has_curl() {
        return;
    }
    let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    let mut gateways: Vec<_> = (0..3).map(|_| Running::begin(&shell, &provider, &[])).collect();
    let listed: Vec<String> = gateways.iter().map(|gateway| gateway.url.clone()).collect();
    let nodes = |urls: &[String]| urls.join(",");
    let used = |urls: &[String]| beside(&shell, &nodes(urls), &[], "echo $ANTHROPIC_BASE_URL");
    let ran = used(&listed);
    assert_eq!(ran.code, 0, "{ran:?}");
    let own = ran.text().trim().to_owned();
    let reversed: Vec<String> = listed.iter().rev().cloned().collect();
    assert_eq!(used(&reversed).text().trim(), own);
    let others: Vec<String> = listed.iter().filter(|url| **url != own).cloned().collect();
    let next = used(&others).text().trim().to_owned();
    let at = gateways.iter().position(|gateway| gateway.url == own).unwrap();
    gateways.remove(at).end();
    let ran = used(&listed);
    assert_eq!((ran.code, ran.text().trim()), (0, &*next), "{ran:?}");
    assert!(ran.stderr.contains(&format!("the gateway at {own} is not ready")), "{ran:?}");
    gateways.into_iter().for_each(Running::end);
    let ran = used(&listed);
    assert!(ran.code == 1 && ran.stderr.contains("nothing answers at"), "{ran:?}");
    assert!(ran.stdout.is_empty(), "{ran:?}");
}

/// GW17: impossible combinations are refused before the program starts.
#[test]
fn gw17_what_a_running_gateway_cannot_be_given_is_refused() {
    let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    let ran = beside(&shell, "http://127.0.0.1:1", &[], "echo started");
    assert!(ran.code == 1 && ran.stderr.contains("nothing answers at"), "{ran:?}");
    let ran = beside(&shell, &provider.url, &[], "echo started");
    assert!(ran.code == 1 && ran.stderr.contains("is not a foldback gateway"), "{ran:?}");
    let gateway = Running::begin(&shell, &provider, &[]);
    let ran = beside(&shell, &gateway.url, &["--todo", "quay"], "echo started");
    assert!(ran.code == 2 && ran.stderr.contains("x-foldback-todo"), "{ran:?}");
    let ran = beside(&shell, &gateway.url, &["--no-record"], "echo started");
    assert!(ran.code == 2 && ran.stdout.is_empty(), "{ran:?}");
    let closed = Running::begin(&shell, &provider, &["--token", "t-canary"]);
    let ran = beside(&shell, &closed.url, &[], "echo started");
    assert!(ran.code == 1 && ran.stderr.contains("FOLDBACK_GATEWAY_TOKEN"), "{ran:?}");
    assert!(ran.stdout.is_empty(), "{ran:?}");
}

/// GW17: whatever the program says about itself, its conversation is in the todo that was named.
#[test]
fn gw17_a_todo_is_named() {
    if !has_curl() {
        return;
    }
    let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    for (name, question) in
        [("quay-7", "Which berth?"), ("quay-7", "Which pier?"), ("quay", "Which?")]
    {
        let line = asking("ANTHROPIC_BASE_URL", "/v1/messages", question);
        let ran = wrapped(&shell, &provider, &["--todo", name, "sh", "-c", &line]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    assert_eq!(shell.todos(), ["quay-7", "quay"]);
    assert_eq!(exported(&shell, "quay-7")["messages"].as_array().unwrap().len(), 4);
    assert!(provider.seen().iter().all(|seen| seen.header("x-foldback-todo").is_none()));
}

/// A program that cannot be started is named as shells name it, with their exit codes.
#[test]
fn a_program_that_is_not_there_is_named() {
    let shell = Shell::new();
    let plain = shell.write("plain", "echo 你好\n");
    let gone = shell.write("gone", "#!/nowhere/interpreter\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&gone, mode).unwrap();
    let folder = shell.path("").display().to_string();
    for (program, code, what) in [
        ("no-such-agent-工具", 127, "no-such-agent-工具 is not in PATH"),
        ("./nothing", 127, "there is no program ./nothing"),
        (&plain, 126, "plain cannot be executed: "),
        (&gone, 126, "gone cannot be executed: "),
        (&folder, 126, " cannot be executed: "),
    ] {
        let ran = shell.run(&["wrap", "--no-record", program]);
        assert_eq!(ran.code, code, "{program}: {ran:?}");
        assert!(ran.stderr.contains(what), "{program}: {ran:?}");
    }
}

//! `foldback gateway` and `foldback wrap`, between a client and a scripted provider.

use crate::shell::{Ran, Shell};
use foldback_testkit::upstream::{Answer, Said, Upstream};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// A provider that answers every question alike.
pub(crate) fn provider(runtime: &Runtime) -> Upstream {
    runtime.block_on(Upstream::start(|_| Answer::Said(Said::text("It is berth 七."))))
}

/// Whether the client of these tests is on this machine.
pub(crate) fn has_curl() -> bool {
    let is_here = Command::new("curl").arg("--version").output().is_ok();
    if !is_here {
        println!("SKIPPED: curl is not here");
    }
    is_here
}

/// A client as a line of shell: it asks the address in a variable.
pub(crate) fn asking(variable: &str, path: &str, question: &str) -> String {
    let body = json!({
        "model": "m",
        "max_tokens": 9,
        "messages": [{ "role": "user", "content": question }],
    });
    format!(
        "curl -sS --noproxy '*' -H 'anthropic-version: 2023-06-01' -H 'x-api-key: k-canary' \
         -H 'content-type: application/json' -A 'shell-agent/1' -d '{body}' \"${variable}{path}\""
    )
}

/// The command that wraps a program, with both APIs at this provider.
pub(crate) fn wrapping(shell: &Shell, provider: &Upstream) -> Command {
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args(["wrap", "--anthropic-url", &provider.url]);
    command.args(["--openai-url", &format!("{}/v1", provider.url)]);
    command
}

pub(crate) fn wrapped(shell: &Shell, provider: &Upstream, args: &[&str]) -> Ran {
    Ran::of(wrapping(shell, provider).args(args).output().unwrap())
}

pub(crate) fn exported(shell: &Shell, todo: &str) -> Value {
    serde_json::from_str(shell.ok(&["export", "--todo", todo]).text()).unwrap()
}

/// A gateway that runs beside the test.
pub(crate) struct Gateway {
    child: Child,
    pub(crate) told: Value,
}

impl Gateway {
    /// Starts it on a free port, with `args` after its own, and waits until it listens.
    pub(crate) fn start(command: &mut Command, args: &[&str]) -> Self {
        command.args(["--json", "gateway", "--listen", "127.0.0.1:0"]).args(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, told: serde_json::from_str(&line).unwrap() }
    }

    pub(crate) fn url(&self) -> &str {
        self.told["url"].as_str().unwrap()
    }

    /// The status of the answer to a request for one of its own pages.
    #[cfg(feature = "postgres")]
    pub(crate) fn status(&self, page: &str) -> String {
        let url = format!("{}/foldback/{page}", self.url());
        let asked = ["-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%{http_code}", &url];
        let asked = Command::new("curl").args(asked).output().unwrap();
        String::from_utf8(asked.stdout).unwrap()
    }

    /// Asks it a question by a client of its own.
    pub(crate) fn ask(&self, question: &str) -> Child {
        let script = asking("URL", "/v1/messages", question);
        let mut client = Command::new("sh");
        client.args(["-c", &script]).env("URL", self.url());
        client.stdout(Stdio::piped()).spawn().unwrap()
    }

    /// Asks it to end, as a supervisor does.
    pub(crate) fn terminate(&self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    }

    #[cfg(feature = "postgres")]
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end, and returns its exit code.
    pub(crate) fn code(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// Waits until something holds.
#[track_caller]
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "not within a minute: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// GW17: the program finds the gateway in its environment, its exit code is the command's, and what it said can be
/// searched.
#[test]
fn gw17_a_wrapped_program_is_recorded_and_its_exit_code_returned() {
    if !has_curl() {
        return;
    }
    let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    let anthropic = asking("ANTHROPIC_BASE_URL", "/v1/messages", "Which berth?");
    let ran = wrapped(&shell, &provider, &["sh", "-c", &format!("{anthropic}; exit 7")]);
    assert_eq!(ran.code, 7, "{ran:?}");
    assert_eq!(ran.json()["content"][0]["text"], "It is berth 七.");
    let openai = asking("OPENAI_BASE_URL", "/chat/completions", "Which pier?");
    let (traffic, recorded) = (shell.path("traffic"), ["--record", "traffic"]);
    let ran = wrapped(&shell, &provider, &[&recorded[..], &["sh", "-c", &openai]].concat());
    let files: Vec<_> = std::fs::read_dir(traffic).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(
        (ran.code, &ran.json()["choices"][0]["message"]["content"]),
        (0, &json!("It is berth 七."))
    );
    let todos = shell.todos();
    assert_eq!(todos.len(), 2, "{todos:?}");
    for todo in &todos {
        assert!(todo.starts_with("shell-agent-"), "{todo}");
        assert_eq!(exported(&shell, todo)["messages"].as_array().unwrap().len(), 2);
        let branches = shell.ok(&["export", "--todo", todo, "--branches"]).json_lines();
        assert_eq!((branches.len(), &branches[0]["branch"]), (1, &json!(1)));
        assert_eq!(branches[0]["messages"].as_array().unwrap().len(), 2, "{branches:?}");
        let found = shell.ok(&["search", "--todo", todo, "berth"]);
        assert!(found.text().contains("It is berth 七."), "{found:?}");
    }
    let seen = provider.seen();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|seen| seen.header("x-api-key") == Some("k-canary")), "{seen:?}");
}

/// GW15: what a wrapped program took is in the ledger, and what was saved is reported when it ends.
#[test]
fn gw15_the_ledger_of_a_wrapped_program() {
    if !has_curl() {
        return;
    }
    let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    assert_eq!(shell.json(&["ledger"]), json!([]), "there is no store yet");
    let load = foldback::MemoryTool::all().into_iter().find(|tool| tool.name == "load").unwrap();
    let schema: Value = serde_json::from_str(&load.parameters).unwrap();
    let tool = json!({ "name": "load", "description": load.description, "input_schema": schema });
    let mut messages = Vec::new();
    for n in 0..40 {
        let text = format!("Berth {n} holds crane {}. ", n * 31).repeat(120);
        let mark = json!({ "type": "ephemeral" });
        let block = json!({ "type": "text", "text": text, "cache_control": mark });
        messages.push(json!({ "role": "user", "content": [block] }));
        let body =
            json!({ "model": "claude-x", "max_tokens": 9, "tools": [tool], "messages": messages });
        shell.write(&format!("{n}.json"), body.to_string());
        messages.last_mut().unwrap()["content"] = json!(text);
        messages.push(json!({ "role": "assistant", "content": "It is berth 七." }));
    }
    let script = "for n in $(seq 0 39); do curl -sS --noproxy '*' -o /dev/null -A shell-agent/1 \
        -H 'anthropic-version: 1' -d @$n.json \"$ANTHROPIC_BASE_URL/v1/messages\"; done";
    let ran = wrapped(&shell, &provider, &["sh", "-c", script]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("40 requests, ") && ran.stderr.contains(" saved"), "{ran:?}");
    let ran = wrapped(
        &shell,
        &provider,
        &["sh", "-c", &asking("OPENAI_BASE_URL", "/chat/completions", "?")],
    );
    assert!(!ran.stderr.contains(" saved"), "{ran:?}");
    let rows = shell.json(&["ledger"]);
    let (billed, rows) = (provider.billed(), rows.as_array().unwrap());
    let sum = |key: &str| rows.iter().filter_map(|row| row["sent"][key].as_u64()).sum::<u64>();
    assert_eq!((rows.len(), rows[0]["requests"].as_u64()), (2, Some(40)), "{rows:?}");
    assert_eq!(
        (sum("read"), sum("read") + sum("written") + sum("plain")),
        (billed.read, billed.read + billed.written + billed.plain)
    );
    assert_eq!(
        shell.todos(),
        [rows[0]["name"].as_str().unwrap(), rows[1]["name"].as_str().unwrap()]
    );
    assert!(rows[0]["whole"]["cost"].as_f64() > rows[0]["sent"]["cost"].as_f64(), "{rows:?}");
    let models = shell.json(&["ledger", "--by", "model"]);
    assert_eq!((&models[0]["name"], &models[1]["name"]), (&json!("claude-x"), &json!("m")));
    let today = shell.json(&["ledger", "--by", "day", "--since", "2025-01-01"]);
    assert_eq!(
        (today.as_array().unwrap().len(), &today[0]["requests"]),
        (1, &json!(41)),
        "{today}"
    );
    assert_eq!(shell.json(&["ledger", "--since", "2999-01-01T00:00:00Z"]), json!([]));
    let table = shell.ok(&["ledger"]);
    assert!(table.text().contains("cost whole") && table.text().contains("all"), "{table:?}");
    assert_eq!(shell.run(&["ledger", "--since", "yesterday"]).code, 2);
}

/// GW16: the doctor tries out a gateway, checks a running one, and finds a base URL that does not answer.
#[test]
fn gw16_the_doctor_looks_at_gateways() {
    let shell = Shell::new();
    let looked = |url: Option<&str>, set: &[(&str, &str)], json: bool| {
        let mut command = shell.command();
        for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
            command.env_remove(name);
        }
        command.args(["doctor", "--gateway"]).args(url).args(json.then_some("--json"));
        Ran::of(command.envs(set.iter().copied()).output().unwrap())
    };
    let ran = looked(None, &[], false);
    let ok = ran.text().lines().filter(|line| line.starts_with("ok ")).count();
    assert_eq!((ran.code, ok, ran.text().lines().count()), (0, 7, 7), "{ran:?}");
    assert!(!shell.store().exists(), "the store is not touched");
    let stale = ("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
    let ran = looked(None, &[stale], true);
    let (told, checks) = (ran.json(), ran.json()["checks"].as_array().cloned().unwrap());
    let wrong: Vec<_> = checks.iter().filter(|check| check["ok"] == false).collect();
    assert_eq!((ran.code, &told["clean"], wrong.len()), (1, &json!(false), 1), "{told}");
    assert_eq!(wrong[0]["name"], "environment", "{told}");
    let ran = looked(Some("http://127.0.0.1:1"), &[], false);
    assert_eq!(ran.code, 1);
    assert!(ran.text().starts_with("wrong  health"), "{ran:?}");
    assert_eq!(shell.run(&["doctor", "--gateway", "--repair"]).code, 2);
}

/// GW17: a program that a signal ends, and one that is not there.
#[test]
fn gw17_programs_that_end_otherwise() {
    let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    let ran = wrapped(&shell, &provider, &["sh", "-c", "kill -TERM $$"]);
    assert_eq!(ran.code, 128 + 15, "{ran:?}");
    let ran = wrapped(&shell, &provider, &["no-such-agent"]);
    assert_eq!(ran.code, 127, "{ran:?}");
    assert!(ran.stderr.contains("no-such-agent is not in PATH"), "{ran:?}");
    let ran = wrapped(&shell, &provider, &["--openai-url", "nonsense", "true"]);
    assert_eq!(ran.code, 2, "{ran:?}");
}

/// GW12: a store that cannot be opened keeps nobody from working; what could not be done is reported at the end.
#[test]
fn gw12_a_broken_store_stops_no_program() {
    if !has_curl() {
        return;
    }
    let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    shell.write("store", "no folder");
    let script = asking("ANTHROPIC_BASE_URL", "/v1/messages", "Which berth?");
    let ran = wrapped(&shell, &provider, &["sh", "-c", &script]);
    assert_eq!(ran.json()["content"][0]["text"], "It is berth 七.");
    assert!(ran.stderr.contains("not recorded: "), "{ran:?}");
    let ran = wrapped(&shell, &provider, &["--fail-closed", "sh", "-c", &script]);
    assert_eq!((ran.code, ran.stdout.len()), (2, 0), "{ran:?}");
}

/// GW1, GW12: the gateway says where it listens, answers until it is asked to end, and has recorded everything then.
#[test]
fn gw12_a_gateway_that_is_ended_has_recorded_everything() {
    if !has_curl() {
        return;
    }
    let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
    let provider = provider(&runtime);
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).args([
        "--json",
        "gateway",
        "--listen",
        "127.0.0.1:0",
    ]);
    command.args(["--anthropic-url", &provider.url]);
    let mut gateway = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(gateway.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&told["anthropic"], &told["recording"]), (&json!(provider.url), &json!(true)));
    let script = asking("URL", "/v1/messages?beta=true", "Which berth?");
    let url = told["url"].as_str().unwrap();
    assert_eq!(told["listening"], url, "as the other servers call it: {told}");
    let asked = Command::new("sh").args(["-c", &script]).env("URL", url).output().unwrap();
    assert!(asked.status.success(), "{asked:?}");
    let health = format!("curl -sS --noproxy '*' {url}/foldback/health");
    let health = Command::new("sh").args(["-c", &health]).output().unwrap();
    let health: Value = serde_json::from_slice(&health.stdout).unwrap();
    assert_eq!((&health["gateway"], &health["recording"]), (&json!("foldback"), &json!(true)));
    let id = rustix::process::Pid::from_child(&gateway);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    assert!(gateway.wait().unwrap().success());
    let todos = shell.todos();
    assert_eq!(exported(&shell, &todos[0])["messages"].as_array().unwrap().len(), 2, "{todos:?}");
    assert_eq!(provider.seen()[0].path, "/v1/messages?beta=true");
}

/// GW12: a gateway that is asked to end accepts no connection any more, and finishes the answer in progress as long as
/// `--drain` allows.
#[test]
fn gw12_a_terminated_gateway_finishes_its_answers() {
    if !has_curl() {
        return;
    }
    for (drain, is_whole) in [("10m", true), ("1s", false)] {
        let (shell, runtime) = (Shell::new(), Runtime::new().unwrap());
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let provider = runtime.block_on(Upstream::start(move |_| {
            let _ = released.lock().unwrap().recv();
            Answer::Said(Said::text("It is berth 七."))
        }));
        let mut command = shell.command();
        command.arg("--store").arg(shell.store());
        let args = ["--anthropic-url", &provider.url, "--drain", drain];
        let gateway = Gateway::start(&mut command, &args);
        let client = gateway.ask("Which berth?");
        until("the provider is asked", || provider.seen().len() == 1);
        gateway.terminate();
        let address = gateway.url().trim_start_matches("http://").to_owned();
        until("no connection is accepted", || TcpStream::connect(&address).is_err());
        if is_whole {
            // Longer than it would wait by itself.
            std::thread::sleep(Duration::from_secs(11));
            release.send(()).unwrap();
        }
        let answer = String::from_utf8(client.wait_with_output().unwrap().stdout).unwrap();
        assert_eq!(answer.contains("It is berth 七."), is_whole, "{drain}: {answer}");
        assert_eq!(gateway.code(), Some(0), "{drain}");
        drop(release);
        if is_whole {
            let messages = &exported(&shell, &shell.todos()[0])["messages"];
            assert_eq!(messages.as_array().unwrap().len(), 2, "{messages}");
        }
    }
}

/// GW13: an address that other machines can reach is refused without a token, before anything says that it listens.
#[test]
fn gw13_an_open_address_is_refused_before_it_is_announced() {
    let shell = Shell::new();
    for address in ["0.0.0.0:0", "[::]:0"] {
        let ran = shell.run(&["gateway", "--listen", address]);
        assert!(ran.code == 2 && ran.stdout.is_empty(), "{ran:?}");
        // A machine may have no IPv6.
        let expected = ["can be reached from other machines", "listening on [::]:0"];
        assert!(expected.iter().any(|what| ran.stderr.contains(what)), "{ran:?}");
    }
}

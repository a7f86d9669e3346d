//! `foldback mcp`: the store as a server, for a client of its own, for the Python package `mcp`, and for the command line
//! of the MCP inspector.
//!
//! `FOLDBACK_PYTHON_MCP` names a Python that has the package, `FOLDBACK_MCP_INSPECTOR` the inspector's program; without
//! them their tests report that they are skipped.

use crate::shell::{Shell, line, quay};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// What is searched for in the conversation `quay`.
const QUESTION: &str = "max_attempts retry";

/// A server and the pipes to it.
struct Served {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// The command that serves the store of this shell.
fn serving(shell: &Shell, args: &[&str]) -> Command {
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).arg("mcp").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Served {
    fn start(shell: &Shell, args: &[&str]) -> Self {
        Self::of(&mut serving(shell, args))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut served = Self { child, input, output };
        let info = json!({"name": "shell", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        served.request("initialize", &params);
        served.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        served
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Whether a call failed, and its text.
    fn call(&mut self, tool: &str, arguments: &Value) -> (bool, String) {
        let answer = self.request("tools/call", &json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        (result["isError"] == true, text.to_owned())
    }

    /// Disconnects, and returns the exit code.
    fn leave(mut self) -> Option<i32> {
        drop(self.input.take());
        self.child.wait().unwrap().code()
    }
}

/// RC1: a client that goes away ends the server, whether it has begun or not.
#[test]
fn rc1_a_client_that_goes_away_ends_the_server() {
    let shell = Shell::with_quay();
    let mut served = Served::start(&shell, &["--todo", "quay"]);
    let (is_error, text) = served.call("search_block", &json!({"query": "max_attempts"}));
    assert!(!is_error && text.contains("max_attempts = 7"), "{text}");
    assert_eq!(served.leave(), Some(0));
    let unbegun = serving(&shell, &[]).stdin(Stdio::null()).output().unwrap();
    assert!(unbegun.status.success() && unbegun.stdout.is_empty(), "{unbegun:?}");
}

/// S16, S8: a server is a door of its own in the audit log, and what it records is redacted.
#[test]
fn s16_a_server_notes_what_is_looked_up() {
    let shell = Shell::with_quay();
    let mut command = serving(&shell, &["--todo", "quay", "--allow-record"]);
    command.env("FOLDBACK_MEMORY_AUDIT", "true").env("FOLDBACK_MEMORY_REDACT", "true");
    let mut served = Served::of(&mut command);
    served.call("search_block", &json!({"query": "max_attempts"}));
    served.call("load", &json!({"ref": "b_quay_999"}));
    served.call("record", &json!({"text": "password: Kx7!mQ2zP"}));
    assert_eq!(served.leave(), Some(0));
    let lines = shell.ok(&["--json", "audit"]).json_lines();
    let told =
        |n: usize| (lines[n]["door"].clone(), lines[n]["what"].clone(), lines[n]["error"].clone());
    assert_eq!(told(0), (json!("mcp"), json!("search_block"), json!(false)));
    assert_eq!(told(1), (json!("mcp"), json!("load"), json!(true)));
    assert_eq!(told(2), (json!("mcp"), json!("record"), json!(false)));
    assert_eq!(lines[3]["clean"], true);
    let kept = shell.ok(&["export", "--todo", "quay"]);
    assert!(kept.text().contains("password: [redacted password 1]"), "{kept:?}");
}

/// RC1: it does not listen on an address that can be reached from elsewhere.
#[test]
fn rc1_http_listens_on_loopback_alone() {
    let shell = Shell::with_quay();
    let ran = shell.run(&["mcp", "--http", "0.0.0.0:8765"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("0.0.0.0:8765 can be reached from other machines"), "{ran:?}");
    for wrong in [["--http", "8765"], ["--todo", "a b"]] {
        assert_eq!(shell.run(&["mcp", wrong[0], wrong[1]]).code, 2);
    }
    assert_eq!(shell.run(&["mcp", "--todo", "quay", "--any-todo"]).code, 2);
}

/// RC3: the todo of a folder, of all of them, and of none; a missing store is an answer, and none is made.
#[test]
fn rc3_the_todo_is_that_of_the_folder() {
    let shell = Shell::new();
    let mut served = Served::start(&shell, &["--any-todo"]);
    let (is_error, text) = served.call("search_block", &json!({"query": "tide"}));
    assert!(is_error && text.contains("there is no store at"), "{text}");
    assert!(!shell.store().exists());

    let file = shell.write("quay.jsonl", line("quay", quay()));
    shell.ok(&["import", &file]);
    let (is_error, text) = served.call("search_block", &json!({"query": QUESTION}));
    assert!(
        !is_error && text.contains("b_quay_001"),
        "a store that is made later is found: {text}"
    );
    let mut served = Served::start(&shell, &[]);
    let (is_error, text) = served.call("list_blocks", &json!({}));
    assert!(is_error && text.contains("The client does not say which folder"), "{text}");
    let mut served = Served::start(&shell, &["--folder", "."]);
    let (is_error, text) = served.call("list_blocks", &json!({}));
    assert!(is_error && text.contains("The store has no conversation from"), "{text}");
}

/// RC4: several servers work beside a writer; one that is killed leaves nothing locked.
#[test]
fn rc4_servers_work_beside_a_writer_and_a_killed_one_locks_nothing() {
    let shell = Shell::with_quay();
    let mut readers = [(); 3].map(|()| Served::start(&shell, &["--todo", "quay"]));
    let mut writers =
        [(); 2].map(|()| Served::start(&shell, &["--todo", "quay", "--allow-record"]));
    for round in 0..3 {
        for (n, writer) in writers.iter_mut().enumerate() {
            let note = json!({"text": format!("The buoy {round}{n} is lit.")});
            let (is_error, text) = writer.call("record", &note);
            assert!(!is_error, "{text}");
        }
        let said = format!("The crane {round} is out of order.");
        let said = json!({"role": "user", "content": said});
        let mut record = shell.command();
        record.arg("--store").arg(shell.store()).args(["record", "--todo", "quay"]);
        let mut record = record.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        writeln!(record.stdin.take().unwrap(), "{said}").unwrap();
        assert!(record.wait().unwrap().success());
        for reader in &mut readers {
            for expected in [format!("buoy {round}1"), format!("crane {round}")] {
                let (_, text) = reader.call("search_block", &json!({"query": expected, "k": 5}));
                assert!(text.contains(&expected), "{text}");
            }
        }
    }
    // While it may be at work.
    let [mut killed, mut other] = writers;
    let note = json!({"name": "record", "arguments": {"text": "The lamp is out. ".repeat(9_000)}});
    killed.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": note}));
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    let (is_error, text) = other.call("record", &json!({"text": "The dredger is back."}));
    assert!(!is_error, "{text}");
    let (_, text) = readers[0].call("search_block", &json!({"query": "dredger"}));
    assert!(text.contains("The dredger is back."), "{text}");
    for served in readers.into_iter().chain([other]) {
        assert_eq!(served.leave(), Some(0));
    }
    shell.ok(&["verify"]);
}

/// The Python to use, or `None` if there is none.
fn python() -> Option<String> {
    let python = std::env::var("FOLDBACK_PYTHON_MCP").ok().filter(|python| !python.is_empty());
    if python.is_none() {
        eprintln!("SKIPPED: set FOLDBACK_PYTHON_MCP to a Python that has the package mcp");
    }
    python
}

/// What the Python client got of a server.
fn asked(python: &str, how: &Value) -> Value {
    let client = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_client.py");
    let ran = Command::new(python).arg(client).arg(how.to_string()).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{how}: {said}");
    serde_json::from_slice(&ran.stdout).unwrap()
}

/// Checks what it got of the conversation `quay`.
fn check_quay(got: &Value, records: bool) {
    let names = got["tools"].as_array().unwrap();
    assert_eq!(names.len(), if records { 4 } else { 3 }, "{got}");
    assert_eq!(got["schemas"], true);
    for hints in got["hints"].as_array().unwrap() {
        assert!(hints.as_object().unwrap().values().all(Value::is_boolean), "{hints}");
    }
    assert_eq!(got["is_error"], false, "{got}");
    assert!(got["text"].as_str().unwrap().contains("max_attempts = 7"), "{got}");
    assert_eq!(got["structured"]["text"], got["text"]);
    let read = got["read"].as_array().unwrap();
    assert!(!read.is_empty() && read.iter().all(|it| it.as_str().unwrap().contains("<recalled-")));
    assert_eq!(got["templates"].as_array().unwrap().len(), 2);
    assert_eq!(got["next"]["cursor"], 1);
}

/// RC5: the Python client over standard input and output, by both ways of beginning.
#[test]
fn rc5_the_python_client_is_served_over_stdio() {
    let Some(python) = python() else { return };
    let shell = Shell::with_quay();
    for mode in ["auto", "legacy"] {
        let got = asked(&python, &over_stdio(&shell, mode, &["--todo", "quay", "--allow-record"]));
        check_quay(&got, true);
    }
}

/// RC5, RC3: the todo is that of the root which the Python client names, and no other.
#[test]
fn rc5_rc3_the_python_client_names_its_root() {
    let Some(python) = python() else { return };
    let shell = Shell::with_quay();
    shell.folders(&["lamp"]);
    let root = shell.path("lamp").canonicalize().unwrap();
    let at = "2025-03-01T10:00:00.000Z";
    let meta = json!({"id": "0199-lamp", "timestamp": at, "cwd": root,
        "originator": "codex", "cli_version": "0.50.0", "instructions": null});
    let said = json!({"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "Fuse LMP-77 of the lamp is loose."}]});
    let entry =
        |kind: &str, payload: &Value| json!({"timestamp": at, "type": kind, "payload": payload});
    let log = format!("{}\n{}\n", entry("session_meta", &meta), entry("response_item", &said));
    let log = shell.write("codex.jsonl", log);
    shell.ok(&["import", &log]);
    for mode in ["auto", "legacy"] {
        let mut how = over_stdio(&shell, mode, &[]);
        how["root"] = json!(root);
        how["query"] = json!("lamp fuse max_attempts");
        let got = asked(&python, &how);
        let text = got["text"].as_str().unwrap();
        assert!(text.contains("Fuse LMP-77") && !text.contains("max_attempts = 7"), "{got}");
        assert_eq!(got["read"].as_array().unwrap().len(), 1, "{got}");
    }
}

/// RC5: a program reads from stdout where the server listens, and from the error why it does not.
#[test]
fn rc5_the_address_is_a_result() {
    let shell = Shell::new();
    let mut command = serving(&shell, &["--http", "127.0.0.1:0", "--json", "--quiet"]);
    let mut server = command.spawn().unwrap();
    let mut told = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut told).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told.as_object().unwrap().len(), 1, "{told}");
    let url = told["listening"].as_str().unwrap();
    let address = url.strip_prefix("http://").and_then(|url| url.strip_suffix("/mcp")).unwrap();
    let ran = shell.run(&["mcp", "--http", address]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains(&format!("listening on {address}: ")), "{ran:?}");
    server.kill().unwrap();
    server.wait().unwrap();
}

/// How the Python client starts a server over the store of this shell.
fn over_stdio(shell: &Shell, mode: &str, args: &[&str]) -> Value {
    let command = shell.command();
    let store = shell.store();
    let args = [&["--store", store.to_str().unwrap(), "mcp"], args].concat();
    json!({
        "command": command.get_program().to_str(),
        "args": args,
        "cwd": shell.path(""),
        "mode": mode,
        "root": null,
        "query": QUESTION,
    })
}

/// RC5: the Python client over HTTP.
#[test]
fn rc5_the_python_client_is_served_over_http() {
    let Some(python) = python() else { return };
    let shell = Shell::with_quay();
    let mut server = serving(&shell, &["--todo", "quay", "--http", "127.0.0.1:0"]).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut told).unwrap();
    let url = told.trim_end();
    for mode in ["auto", "legacy"] {
        let how = json!({"url": url, "mode": mode, "root": null, "query": QUESTION});
        check_quay(&asked(&python, &how), false);
    }
    let ended = Command::new("kill").arg(server.id().to_string()).status().unwrap();
    assert!(ended.success());
    assert_eq!(server.wait().unwrap().code(), Some(0));
}

/// What the inspector's command line prints, asked over standard input and output.
fn inspected(inspector: &str, shell: &Shell, asked: &[&str]) -> Value {
    let program = shell.command().get_program().to_owned();
    let ran = Command::new(inspector)
        .args(["--cli".as_ref(), program.as_os_str(), "--store".as_ref()])
        .arg(shell.store())
        .args(["mcp", "--todo", "quay", "--method"])
        .args(asked)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{asked:?}: {said}");
    serde_json::from_slice(&ran.stdout).unwrap()
}

/// RC5: the inspector, which checks what it gets against the protocol's schemas.
#[test]
fn rc5_the_inspector_is_served() {
    let inspector = std::env::var("FOLDBACK_MCP_INSPECTOR").ok().filter(|it| !it.is_empty());
    let Some(inspector) = inspector else {
        eprintln!("SKIPPED: set FOLDBACK_MCP_INSPECTOR to the program mcp-inspector");
        return;
    };
    let shell = Shell::with_quay();
    let ask = |asked: &[&str]| inspected(&inspector, &shell, asked);
    let tools = ask(&["tools/list"]);
    let names: Vec<_> = tools["tools"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["search_block", "list_blocks", "load"]);
    let query = format!("query={QUESTION}");
    let found = ask(&["tools/call", "--tool-name", "search_block", "--tool-arg", &query]);
    assert_eq!(found["structuredContent"]["text"], found["content"][0]["text"]);
    let uri = found["content"][1]["uri"].as_str().unwrap();
    let read = ask(&["resources/read", "--uri", uri]);
    assert!(read["contents"][0]["text"].as_str().unwrap().contains("<recalled-"), "{read}");
    assert_eq!(
        ask(&["resources/templates/list"])["resourceTemplates"].as_array().unwrap().len(),
        2
    );
}

//! What two real servers with a small real model answered, and what the commands make of it.
//!
//! The answers are in `tests/recorded`. With `FOLDBACK_RECORD=1`, and `FOLDBACK_LLAMA` as in `llama.rs`, these tests
//! ask the servers and rewrite them, best with `--test-threads 1`.

use crate::llama::{Answer, Llama, folder};
use crate::shell::{Ran, Shell};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

/// A request's method and path, and the answer.
#[derive(Clone, Serialize, Deserialize)]
struct Exchange {
    asked: String,
    #[serde(flatten)]
    answer: Answer,
}

/// Exchanges with a server, in order.
#[derive(Clone)]
struct Cassette {
    file: PathBuf,
    /// Those that are still to be played.
    left: Arc<Mutex<Vec<Exchange>>>,
    /// Those that took place.
    done: Arc<Mutex<Vec<Exchange>>>,
    /// The server that is recorded, which ends with the test; without one, the file is played.
    server: Option<Arc<Llama>>,
}

/// The stand-in for a server. It outlives the test, and does not keep the recorded server.
struct Player {
    cassette: Cassette,
    server: Weak<Llama>,
}

impl Cassette {
    fn open(name: &str, server: impl Fn(&Path) -> Llama) -> Self {
        let folder = std::env::var_os("FOLDBACK_RECORD").and_then(|_| folder(name));
        let server = folder.map(|folder| Arc::new(server(&folder)));
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(name);
        let text = match server {
            Some(_) => String::new(),
            None => std::fs::read_to_string(&file).unwrap(),
        };
        let left = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        Self { file, left: Arc::new(Mutex::new(left)), done: Arc::default(), server }
    }

    fn player(&self) -> Player {
        let server = self.server.as_ref().map(Arc::downgrade).unwrap_or_default();
        Player { cassette: Self { server: None, ..self.clone() }, server }
    }

    fn answer(&self, server: Option<&Llama>, asked: &str, body: &[u8]) -> Option<Answer> {
        let exchange = match (server, asked.split_once(' ')) {
            (Some(server), Some((method, path))) => {
                let mut answer = server.exchange(method, path, body)?;
                // The path of the model is left out.
                answer.body = answer.body.replace(&*server.folder().to_string_lossy(), "llama");
                Exchange { asked: asked.to_owned(), answer }
            }
            _ => {
                let mut left = self.left.lock().unwrap();
                let at = left.iter().position(|exchange| exchange.asked == asked)?;
                left.remove(at)
            }
        };
        self.done.lock().unwrap().push(exchange.clone());
        Some(exchange.answer)
    }

    /// The answers of the model so far.
    fn answers(&self) -> Vec<Answer> {
        let done = self.done.lock().unwrap();
        let chats = done.iter().filter(|it| it.asked == "POST /v1/chat/completions");
        chats.map(|it| it.answer.clone()).collect()
    }

    /// Writes what was recorded, or checks that everything was played.
    fn close(self) {
        if self.server.is_none() {
            assert_eq!(self.left.lock().unwrap().len(), 0, "so many answers are left");
            return;
        }
        let done = self.done.lock().unwrap();
        let lines = done.iter().map(|exchange| serde_json::to_string(exchange).unwrap() + "\n");
        std::fs::write(&self.file, lines.collect::<String>()).unwrap();
    }
}

impl Respond for Player {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let asked = format!("{} {}", request.method, request.url.path());
        match self.cassette.answer(self.server.upgrade().as_deref(), &asked, &request.body) {
            Some(answer) => {
                ResponseTemplate::new(answer.status).set_body_raw(answer.body, &answer.kind)
            }
            None => ResponseTemplate::new(404),
        }
    }
}

/// Checks a server, runs a task with it, and returns the check. The content of the answers is not checked here, but
/// that each is counted as its server counts it, and kept word for word.
fn worked_with(cassette: &Cassette) -> Value {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let server = runtime.block_on(async {
        let server = MockServer::start().await;
        Mock::given(any()).respond_with(cassette.player()).mount(&server).await;
        server
    });
    let url = format!("{}/v1", server.uri());
    let shell = Shell::new();
    shell.folders(&["work"]);
    shell.write("work/notes.md", "The gate of 杭州湾 opens at 6.4 m.\n");
    let given = ["--model", "smollm2", "--base-url", &url];
    let check = shell.run(&[&["model", "check", "--json"][..], &given].concat()).json();
    let before = cassette.answers().len();

    let bounds = ["--tools", "file", "--max-calls", "3", "--strategy", "react", "--yes"];
    let task = ["--json", "--id", "gate", "--workspace", "work", "When does the gate open?"];
    let mut command = shell.command();
    command.arg("--store").arg(shell.store()).arg("run").args(given).args(bounds).args(task);
    let ran = Ran::of(command.env("FOLDBACK_MODEL_MAX_TOKENS", "64").output().unwrap());
    let report = ran.json_lines().into_iter().last().unwrap();
    let answers = cassette.answers().split_off(before);
    // An empty answer is asked for again within its call.
    let calls = report["calls"].as_u64().unwrap() as usize;
    assert!((1..=answers.len()).contains(&calls), "{report}");
    assert_eq!(report["input_tokens"], counted(&answers, "prompt_tokens"), "{report}");
    assert_eq!(report["output_tokens"], counted(&answers, "completion_tokens"), "{report}");
    // What the model said is kept word for word, and what it called.
    let kept = shell.ok(&["export", "--todo", "gate"]);
    let told = answers.iter().flat_map(|answer| [vec![said(answer)], called(answer)].concat());
    let told: Vec<String> = told.filter(|told| !told.is_empty()).collect();
    assert!(!told.is_empty(), "it said nothing and called nothing");
    for told in told {
        assert!(kept.text().contains(&told), "{told:?}: {}", kept.text());
    }
    check
}

/// The JSON of an answer, or of the pieces of a streamed one.
fn pieces(answer: &Answer) -> Vec<Value> {
    let lines = answer.body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// What the server itself counted.
fn counted(answers: &[Answer], member: &str) -> u64 {
    let all = answers.iter().flat_map(pieces);
    all.filter_map(|piece| piece["usage"][member].as_u64()).sum()
}

/// The first line of what the model said, as it is written in JSON.
fn said(answer: &Answer) -> String {
    let all = pieces(answer);
    let choices = all.iter().map(|piece| &piece["choices"][0]);
    let words = choices.filter_map(|choice| {
        choice["delta"]["content"].as_str().or(choice["message"]["content"].as_str())
    });
    words.collect::<String>().trim().lines().next().unwrap_or_default().replace('"', "\\\"")
}

/// The names of the tools that the model called.
fn called(answer: &Answer) -> Vec<String> {
    let calls = pieces(answer).into_iter().flat_map(|piece| {
        let choice = &piece["choices"][0];
        let of = |part: &str| choice[part]["tool_calls"].as_array().cloned().unwrap_or_default();
        [of("delta"), of("message")].concat()
    });
    calls.filter_map(|call| call["function"]["name"].as_str().map(str::to_owned)).collect()
}

/// What a check found: the questions that were answered with yes, and with no.
fn found(check: &Value, holds: bool) -> Vec<&str> {
    let findings = check["findings"].as_array().unwrap().iter();
    let so = findings.filter(|finding| finding["holds"] == holds);
    so.map(|finding| finding["question"].as_str().unwrap()).collect()
}

#[test]
fn llama_cpp_is_worked_with_as_it_answered() {
    let template = "templates/Qwen-Qwen2.5-7B-Instruct.jinja";
    let cassette =
        Cassette::open("llama-cpp.jsonl", |folder| Llama::cpp(folder, &folder.join(template)));
    let check = worked_with(&cassette);
    assert_eq!(check["is_usable"], true, "{check}");
    assert_eq!(check["settings"], json!(["context_tokens = 8192"]), "{check}");
    // A model of that size calls no tool when it should.
    assert!(matches!(found(&check, false)[..], [] | ["calls tools"]), "{check}");
    cassette.close();
}

#[test]
fn llama_cpp_python_is_worked_with_as_it_answered() {
    let cassette = Cassette::open("llama-cpp-python.jsonl", Llama::python);
    let check = worked_with(&cassette);
    assert_eq!(check["is_usable"], true, "{check}");
    assert!(found(&check, false).contains(&"accepts a required call"), "{check}");
    cassette.close();
}

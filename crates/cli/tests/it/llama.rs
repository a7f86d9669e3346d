//! Real servers on 127.0.0.1, if they were built: llama.cpp's and llama-cpp-python's, with a real model of 135 million
//! parameters.
//!
//! `FOLDBACK_LLAMA` names the folder that `.ci/make_llama` fills: `venv`, `lib`, `model.gguf` and `templates`.
//! Without it the tests of real servers say that they are skipped.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const ENVIRONMENT: &str = "FOLDBACK_LLAMA";

/// How long a server may take to load its model.
const PATIENCE: Duration = Duration::from_secs(120);

/// The folder of the servers; nothing if there is none.
pub(crate) fn folder(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(ENVIRONMENT).map(PathBuf::from);
    if folder.is_none() {
        eprintln!("SKIPPED {test}: set {ENVIRONMENT} to the folder that .ci/make_llama fills");
    }
    folder
}

/// Waits until no other test has a server: the threads of two would wait for each other, and take many times as long.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The chat templates that llama.cpp ships, by name.
pub(crate) fn templates(folder: &Path) -> Vec<(String, PathBuf)> {
    let listed = std::fs::read_dir(folder.join("templates")).unwrap();
    let paths = listed.map(|entry| entry.unwrap().path());
    let named = paths.filter(|path| path.extension().is_some_and(|end| end == "jinja"));
    let mut all: Vec<_> = named
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path))
        .collect();
    all.sort();
    all
}

/// A server, which ends with this value.
pub(crate) struct Llama {
    child: Child,
    at: String,
    folder: PathBuf,
}

impl Llama {
    /// llama.cpp's server with a window of 8,192 tokens, under a chat template.
    pub(crate) fn cpp(folder: &Path, template: &Path) -> Self {
        let port = free_port();
        let mut command = python(folder, "cpp_server.py");
        command.arg(folder.join("model.gguf")).arg(template).arg(port.to_string());
        Self::start(folder, command, port, "/health")
    }

    /// llama-cpp-python's server, which reads calls from ChatML.
    pub(crate) fn python(folder: &Path) -> Self {
        let port = free_port();
        let mut command = python(folder, "python_server.py");
        command
            .args(["--n_ctx", "8192", "--n_threads", "2"])
            .args(["--chat_format", "chatml-function-calling", "--host", "127.0.0.1"])
            .args(["--port", &port.to_string(), "--model"])
            .arg(folder.join("model.gguf"))
            .env("LLAMA_CPP_LIB_PATH", folder.join("lib"));
        Self::start(folder, command, port, "/v1/models")
    }

    fn start(folder: &Path, mut command: Command, port: u16, alive: &str) -> Self {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = quiet.spawn().unwrap();
        let mut server = Self { child, at: format!("127.0.0.1:{port}"), folder: folder.to_owned() };
        let began = Instant::now();
        while server.ask("GET", alive, None).0 != 200 {
            assert!(began.elapsed() < PATIENCE, "the server answers within two minutes");
            assert!(server.child.try_wait().unwrap().is_none(), "the server goes on");
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }

    /// The path of its model.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The base URL of its API.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.at)
    }

    /// The status and the text of an answer; 0 for a server that is not there.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, String) {
        let body = body.map(Value::to_string).unwrap_or_default();
        let answer = self.exchange(method, path, body.as_bytes());
        answer.map_or((0, String::new()), |answer| (answer.status, answer.body))
    }

    /// Sends a request, and returns the whole answer.
    pub(crate) fn exchange(&self, method: &str, path: &str, body: &[u8]) -> Option<Answer> {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {0}\r\ncontent-type: application/json\r\n\
             content-length: {1}\r\nconnection: close\r\n\r\n",
            self.at,
            body.len()
        );
        let mut stream = TcpStream::connect(&self.at).ok()?;
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).ok()?;
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).ok()?;
        Answer::read(&String::from_utf8_lossy(&bytes))
    }
}

/// What a server has answered.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The content type.
    pub(crate) kind: String,
    pub(crate) body: String,
}

impl Answer {
    fn read(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let head = head.to_ascii_lowercase();
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let value = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let kind = value("content-type: ").unwrap_or_default().to_owned();
        let is_chunked = value("transfer-encoding: ") == Some("chunked");
        let body = if is_chunked { joined(body)? } else { body.to_owned() };
        Some(Self { status, kind, body })
    }
}

/// The chunks of a body, without their lengths.
fn joined(mut chunks: &str) -> Option<String> {
    let mut body = String::new();
    loop {
        let (length, rest) = chunks.split_once("\r\n")?;
        let length = usize::from_str_radix(length.trim(), 16).ok()?;
        if length == 0 {
            return Some(body);
        }
        body.push_str(rest.get(..length)?);
        chunks = rest.get(length..)?.strip_prefix("\r\n")?;
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One of the scripts in `tests/llama`.
fn python(folder: &Path, script: &str) -> Command {
    let mut command = Command::new(folder.join("venv/bin/python"));
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/llama").join(script));
    command
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

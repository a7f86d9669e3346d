//! A server that speaks S3 for a test: in a process of its own, so that it can be killed.
//!
//! `FOLDBACK_S3S_FS` names its program; `cargo install s3s-fs --version 0.14.1 --features binary --locked` installs it.

#![expect(clippy::unwrap_used, reason = "a test says so by stopping")]

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ENVIRONMENT: &str = "FOLDBACK_S3S_FS";

/// The bucket that every server has.
pub const BUCKET: &str = "payloads";

/// The place in it where commands keep their payloads.
pub const PLACE: &str = "s3://payloads/team/a";

/// The id of the key that every server takes.
pub const KEY: &str = "AKIDTEST";

/// The secret of that key.
pub const SECRET: &str = "the-secret-of-the-tests";

/// A server that keeps its objects as files of a folder. It is stopped when it is dropped.
pub struct S3Server {
    program: PathBuf,
    dir: TempDir,
    port: u16,
    child: Option<Child>,
}

impl S3Server {
    /// Starts one with an empty bucket. `None` if its program is not there, after saying so.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start() -> Option<Self> {
        let Some(program) = std::env::var_os(ENVIRONMENT) else {
            println!("SKIPPED: {ENVIRONMENT} does not name the program s3s-fs");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(BUCKET)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { program: program.into(), dir, port, child: None };
        server.start_again();
        Some(server)
    }

    /// Starts it on the same port, with what it has.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start_again(&mut self) {
        let child = Command::new(&self.program)
            .args(["--host", "127.0.0.1", "--access-key", KEY, "--secret-key", SECRET])
            .args(["--port", &self.port.to_string()])
            .arg(self.dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.child = Some(child);
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the S3 server does not start");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills it, whatever it is doing.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Returns its address over HTTP.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Lets a command keep its payloads here.
    pub fn serve(&self, command: &mut Command) {
        let own = std::env::vars_os().map(|(name, _)| name);
        for name in own.filter(|name| name.to_string_lossy().starts_with("AWS_")) {
            command.env_remove(name);
        }
        command.envs([
            ("AWS_ENDPOINT_URL", self.endpoint().as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
            ("NO_PROXY", "127.0.0.1"),
            ("FOLDBACK_PAYLOADS", PLACE),
        ]);
    }

    /// Returns the files of its bucket that hold bytes.
    #[must_use]
    pub fn objects(&self) -> Vec<PathBuf> {
        files_below(&self.dir.path().join(BUCKET))
    }

    /// Returns the files of the objects with payloads.
    #[must_use]
    pub fn payloads(&self) -> Vec<PathBuf> {
        let is_payload = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            name.len() == 79 && name[52] == b'-'
        };
        self.objects().into_iter().filter(is_payload).collect()
    }

    /// Returns the files of all that it has, parts of uploads among them.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        files_below(self.dir.path())
    }

    /// Returns whether any part of an upload is there.
    #[must_use]
    pub fn has_parts(&self) -> bool {
        self.files().iter().any(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".upload_id-"))
        })
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the files below a folder, sorted. What is removed meanwhile is left out.
#[must_use]
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(files_below(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

//! A server that speaks S3, in a process of its own, so that it can be killed.
//!
//! `FOLDBACK_S3S_FS` names its program; `cargo install s3s-fs --version 0.14.1 --features binary --locked` installs it.
//! Without it the tests of object stores report that they are skipped.

use crate::payloads::files_below;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ENVIRONMENT: &str = "FOLDBACK_S3S_FS";

/// The bucket that every server has.
const BUCKET: &str = "payloads";

/// The place in it where commands keep their payloads.
pub(crate) const PLACE: &str = "s3://payloads/team/a";

const KEY: &str = "AKIDTEST";
pub(crate) const SECRET: &str = "the-secret-of-the-tests";

/// A server that speaks S3, and keeps its objects as files of a folder.
pub(crate) struct S3Server {
    program: PathBuf,
    dir: TempDir,
    port: u16,
    child: Option<Child>,
}

impl S3Server {
    /// Starts one with an empty bucket; `None` if its program is not there.
    pub(crate) fn start() -> Option<Self> {
        let Some(program) = std::env::var_os(ENVIRONMENT) else {
            println!("SKIPPED: {ENVIRONMENT} does not name the program s3s-fs");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join(BUCKET)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut server = Self { program: program.into(), dir, port, child: None };
        server.start_again();
        Some(server)
    }

    /// Starts it on the same port, with what it has.
    pub(crate) fn start_again(&mut self) {
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
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Lets a command keep its payloads here.
    pub(crate) fn serve(&self, command: &mut Command) {
        let own = std::env::vars_os().map(|(name, _)| name);
        for name in own.filter(|name| name.to_string_lossy().starts_with("AWS_")) {
            command.env_remove(name);
        }
        command.envs([
            ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
            ("NO_PROXY", "127.0.0.1".to_owned()),
            ("FOLDBACK_PAYLOADS", PLACE.to_owned()),
        ]);
    }

    /// The files of its bucket that hold bytes.
    pub(crate) fn objects(&self) -> Vec<PathBuf> {
        files_below(&self.dir.path().join(BUCKET))
    }

    /// The files of the objects with payloads.
    pub(crate) fn payloads(&self) -> Vec<PathBuf> {
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        let objects = self.objects().into_iter();
        objects.filter(|path| name(path).len() == 79 && name(path).as_bytes()[52] == b'-').collect()
    }

    /// The files of all that it has, parts of uploads among them.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        files_below(self.dir.path())
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.kill();
    }
}

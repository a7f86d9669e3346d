//! A folder to work in, and the command run there.

use foldback_core::Message;
use foldback_testkit::transcript;
use foldback_transcript::{Conversation, Envelope};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A folder of its own with a store in it.
pub(crate) struct Shell {
    dir: TempDir,
}

/// The output of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// A shell whose store holds the conversation `quay`.
    pub(crate) fn with_quay() -> Self {
        let shell = Self::new();
        let file = shell.write("quay.jsonl", line("quay", quay()));
        shell.ok(&["import", &file]);
        shell
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file and gives its path.
    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Makes folders, and their parents.
    pub(crate) fn folders(&self, names: &[&str]) {
        names.iter().for_each(|name| std::fs::create_dir_all(self.path(name)).unwrap());
    }

    /// The todos of the store, in order of creation.
    #[track_caller]
    pub(crate) fn todos(&self) -> Vec<String> {
        let todos = self.json(&["todos"]);
        let ids = todos.as_array().unwrap().iter().map(|row| row["todo_id"].as_str().unwrap());
        ids.map(str::to_owned).collect()
    }

    /// The command in this shell: nothing of the caller's environment reaches it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("foldback"));
        command.current_dir(self.dir.path());
        for name in ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(name);
        }
        let own = std::env::vars_os().map(|(name, _)| name);
        for name in own.filter(|name| name.to_string_lossy().starts_with("FOLDBACK_")) {
            command.env_remove(name);
        }
        command.env("HOME", self.dir.path());
        command.env_remove("XDG_DATA_HOME").env_remove("XDG_CONFIG_HOME");
        command.stdin(Stdio::null());
        command
    }

    /// Runs the command without saying where the store is.
    pub(crate) fn run_bare(&self, args: &[&str]) -> Ran {
        Ran::of(self.command().args(args).output().unwrap())
    }

    /// Runs the command with the store of this shell.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command().arg("--store").arg(self.store()).args(args).output().unwrap())
    }

    /// Runs the command with the store of this shell, while nobody reads its results.
    pub(crate) fn run_unread(&self, args: &[&str]) -> Ran {
        let mut command = self.command();
        command.arg("--store").arg(self.store()).args(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        Ran::of(child.wait_with_output().unwrap())
    }

    /// Runs a command that has to succeed.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
        ran
    }

    /// Runs a command that has to succeed, and reads its one JSON document.
    #[track_caller]
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(args);
        self.ok(&all).json()
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store")
    }
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            code: output.status.code().expect("the command was not killed"),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let lines = self.text().lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// A conversation as one line of foldback JSON Lines.
pub(crate) fn line(id: &str, messages: Vec<Message>) -> String {
    let conversation = Conversation::from_parts(Some(id.to_owned()), messages, Envelope::default());
    conversation.to_json_line() + "\n"
}

/// A session of some topics: a question, a large log, a Chinese question after a pause.
pub(crate) fn quay() -> Vec<Message> {
    transcript(
        "
        @2025-03-01T09:00:00Z
        system: You repair the service quay.
        user: Notices arrive twice since Monday. Find the cause, do not raise the retry limit.
        assistant: I look at the settings first.
        assistant> read_file({\"path\": \"config/default.toml\"})
        assistant> read_file({\"path\": \"src/sweeper.py\"})
        tool: [retry]
          max_attempts = 7
          lease_seconds = 45
        tool: def sweep(store):
          [big 6000 sweeper]
          raise StoreConflict('rule 2: an attempt was logged twice')
        assistant: The lease of 45 s is shorter than a send may take.
        user: Which test shows it?
        assistant> run({\"command\": \"pytest -v\"})
        tool !: [big 9000 pytest]
          FAILED test_slow_subscriber - subscriber 'pilot-office' received notice nt-0042 2 times
        assistant: test_slow_subscriber fails: pilot-office receives nt-0042 twice.
        @+20m
        user: 船闸那边收到过重复的通知吗?
        assistant> grep({\"pattern\": \"lock-keeper\", \"path\": \"logs/quay.log\"})
        tool: 07:52:15 delivered nt-2226 lock-keeper 200
          07:52:24 delivered nt-2226 lock-keeper 200
        assistant: 有一次:nt-2226,两次都返回 200。
        user: 谢谢。请把日志的时区写进文档。
        assistant> write_file({\"path\": \"docs/operations.md\", \"text\": \"日志时间是 UTC。\"})
        tool: written
        assistant: 已经写进 docs/operations.md。
        @+20m
        user: Now a release note for 0.8.1, please.
        assistant> write_file({\"path\": \"CHANGELOG.md\", \"text\": \"0.8.1: a send keeps its lease.\"})
        tool: written
        assistant: The note for 0.8.1 is in CHANGELOG.md.
        user: What was max_attempts at the beginning?
        assistant: It was 7, in config/default.toml.
        ",
    )
}

/// The names in a folder, everything below it included.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        names.push(entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            names.extend(self::names(&entry.path()));
        }
    }
    names.sort();
    names
}

//! A server that runs as a child process.

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;

/// A server that runs as a child process. Dropping this ends it and everything that it started.
#[derive(Debug)]
pub(crate) struct Child {
    process: tokio::process::Child,
    /// Its process group, as long as that number is its own.
    group: Option<u32>,
    last_words: LastWords,
    /// Ends when the program's standard error is closed.
    listening: Option<JoinHandle<()>>,
}

/// The variables of our own environment that a program inherits: what it needs to find programs and
/// the home folder, and to use the right language. Others may hold secrets.
const INHERITED: [&str; 17] = [
    "APPDATA",
    "HOME",
    "HOMEDRIVE",
    "HOMEPATH",
    "LANG",
    "LC_ALL",
    "LOCALAPPDATA",
    "LOGNAME",
    "PATH",
    "SHELL",
    "SYSTEMROOT",
    "TEMP",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "USERPROFILE",
];

/// How long a program may take to end by itself.
const GRACE: Duration = Duration::from_secs(2);

impl Child {
    pub(crate) fn start(
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        cwd: Option<&Path>,
    ) -> std::io::Result<(Self, ChildStdout, ChildStdin)> {
        let inherited = INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let mut program = Command::new(command);
        program
            .args(args)
            .env_clear()
            .envs(inherited)
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(cwd) = cwd {
            program.current_dir(cwd);
        }
        // A process group of its own: it ends as a whole, and Ctrl-C goes to the program that uses
        // it.
        #[cfg(unix)]
        program.process_group(0);
        let mut process = program.spawn()?;
        let missing = || std::io::Error::other("the program has no standard input or output");
        let input = process.stdin.take().ok_or_else(missing)?;
        let output = process.stdout.take().ok_or_else(missing)?;
        let last_words = LastWords::default();
        let errors = process.stderr.take();
        let listening = errors.map(|errors| tokio::spawn(last_words.clone().listen(errors)));
        let group = process.id();
        Ok((Self { process, group, last_words, listening }, output, input))
    }

    /// Kills it and everything that it started, and waits for its last output.
    pub(crate) async fn kill(&mut self) {
        let _ = self.process.start_kill();
        self.end_group();
        self.end().await;
    }

    /// Waits briefly for its end and its last output.
    pub(crate) async fn end(&mut self) {
        let ending = async {
            // A failure to wait for it changes nothing.
            if self.process.wait().await.is_ok() {
                self.end_group();
            }
            if let Some(listening) = self.listening.take() {
                let _ = listening.await;
            }
        };
        let _ = tokio::time::timeout(GRACE, ending).await;
    }

    /// Returns how it ended, if it has, and the end of its standard error.
    pub(crate) fn farewell(&mut self) -> String {
        let status = self.process.try_wait().ok().flatten();
        if status.is_some() {
            self.end_group();
        }
        let farewell = status.map(|status| format!(": {status}")).unwrap_or_default();
        farewell + &self.last_words()
    }

    /// Returns the end of its standard error, as the end of a sentence.
    pub(crate) fn last_words(&self) -> String {
        let words = self.last_words.text();
        if words.is_empty() { words } else { format!("; the last it wrote: {words}") }
    }

    /// Kills what is left of its process group, once: later its number may belong to another.
    fn end_group(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.group.take().and_then(|group| i32::try_from(group).ok())
            && let Some(group) = rustix::process::Pid::from_raw(group)
        {
            // If this fails, nothing is left to kill.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // What it started may outlive it. The runtime reaps it afterwards.
        self.end_group();
        let _ = self.process.start_kill();
    }
}

/// The end of what a program wrote to its standard error.
#[derive(Clone, Debug, Default)]
struct LastWords(Arc<Mutex<VecDeque<u8>>>);

impl LastWords {
    /// How many bytes are kept.
    const KEPT: usize = 2_048;

    async fn listen(self, mut errors: ChildStderr) {
        let mut bytes = [0; 4_096];
        while let Ok(read @ 1..) = errors.read(&mut bytes).await {
            let mut kept = self.0.lock();
            kept.extend(&bytes[..read]);
            let surplus = kept.len().saturating_sub(Self::KEPT);
            kept.drain(..surplus);
        }
    }

    fn text(&self) -> String {
        let bytes: Vec<u8> = self.0.lock().iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        // A character that was cut at the beginning is not a character.
        text.trim_start_matches(char::REPLACEMENT_CHARACTER).trim().to_owned()
    }
}

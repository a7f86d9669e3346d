//! The scene of the tests: a workspace that may be written, and things outside that may not be touched.

use crate::probe::{AS_PROBE, attempt_if_asked};
use foldback_sandbox::{Command, Finished, Sandbox, SandboxError};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The exit code of a probe whose attempt was refused.
pub(crate) const REFUSED: i32 = 77;

pub(crate) struct Scene {
    pub(crate) workspace: TempDir,
    pub(crate) outside: TempDir,
}

impl Scene {
    /// A scene, or nothing if commands cannot be sandboxed, which the test then reports.
    pub(crate) fn new(test: &str) -> Option<Self> {
        attempt_if_asked();
        match Sandbox::available() {
            Ok(()) => {}
            Err(SandboxError::Unavailable(why)) => {
                println!("SKIPPED {test}: {why}");
                return None;
            }
            Err(error) => panic!("{error}"),
        }
        let scene =
            Self { workspace: tempfile::tempdir().unwrap(), outside: tempfile::tempdir().unwrap() };
        std::fs::write(scene.secret(), "秘密 secret").unwrap();
        Some(scene)
    }

    /// A file outside, of the same user.
    pub(crate) fn secret(&self) -> PathBuf {
        self.outside.path().join("secret.txt")
    }

    /// May write the workspace, and run the probe.
    pub(crate) fn sandbox(&self) -> Sandbox {
        let probe = std::env::current_exe().unwrap();
        Sandbox::new().read_system().read(probe).write(self.workspace.path())
    }

    /// A shell command in the workspace.
    pub(crate) fn sh(&self, sandbox: &Sandbox, script: &str) -> Finished {
        let command = Command::new("sh").args(["-c", script]).folder(self.workspace.path());
        sandbox.run(&command.joined()).unwrap()
    }

    /// The same without a sandbox.
    pub(crate) fn sh_outside(&self, script: &str) -> Output {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", script]).current_dir(self.workspace.path()).output().unwrap()
    }

    pub(crate) fn probe(
        &self,
        sandbox: &Sandbox,
        name: &str,
        about: impl AsRef<OsStr>,
    ) -> Finished {
        let sandbox =
            sandbox.clone().env("FOLDBACK_PROBE", name).env("FOLDBACK_ABOUT", about.as_ref());
        let command = Command::new(std::env::current_exe().unwrap())
            .args(AS_PROBE)
            .folder(self.workspace.path());
        sandbox.run(&command.joined()).unwrap()
    }

    pub(crate) fn probe_outside(&self, name: &str, about: impl AsRef<OsStr>) -> Output {
        self.probe_command(name, about).output().unwrap()
    }

    pub(crate) fn probe_command(
        &self,
        name: &str,
        about: impl AsRef<OsStr>,
    ) -> std::process::Command {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command
            .args(AS_PROBE)
            .env("FOLDBACK_PROBE", name)
            .env("FOLDBACK_ABOUT", about.as_ref())
            .current_dir(self.workspace.path());
        command
    }

    /// What works outside is refused inside.
    pub(crate) fn refuses(&self, name: &str, about: impl AsRef<OsStr>) {
        let about = about.as_ref();
        let control = self.probe_outside(name, about);
        assert_eq!(control.status.code(), Some(0), "outside: {}", words(&control));
        self.refuses_inside(name, about);
    }

    /// Does the same when the right that it takes outside may be missing.
    pub(crate) fn refuses_with_right(&self, name: &str, about: impl AsRef<OsStr>) {
        let about = about.as_ref();
        let control = self.probe_outside(name, about);
        match control.status.code() {
            Some(0) => {}
            Some(REFUSED) => println!("{name}: refused outside too: {}", words(&control)),
            other => panic!("outside: {other:?}: {}", words(&control)),
        }
        self.refuses_inside(name, about);
    }

    fn refuses_inside(&self, name: &str, about: &OsStr) {
        let inside = self.probe(&self.sandbox(), name, about);
        assert_eq!(inside.status.code(), Some(REFUSED), "{name}: {}", inside.stdout.text());
    }
}

/// Waits for something that will soon be true.
pub(crate) fn wait_until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "it never came to be");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Kills the processes that are in this folder, and returns whether there were any.
pub(crate) fn clear(folder: &Path) -> bool {
    let found = processes_in(folder);
    for process in &found {
        let process = rustix::process::Pid::from_raw(*process as i32).unwrap();
        let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
    }
    wait_until(|| processes_in(folder).is_empty());
    !found.is_empty()
}

pub(crate) fn words(output: &Output) -> String {
    let both = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&both).into_owned()
}

/// A process of the same user that has nothing to do with the sandbox. It ends with the test.
pub(crate) struct Bystander(Child);

impl Bystander {
    pub(crate) fn new() -> Self {
        let mut sleep = std::process::Command::new("sleep");
        sleep.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(sleep.spawn().unwrap())
    }

    pub(crate) fn id(&self) -> String {
        self.0.id().to_string()
    }

    pub(crate) fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The processes that are in this folder.
pub(crate) fn processes_in(folder: &Path) -> Vec<u32> {
    let folder = folder.canonicalize().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let here = processes.filter(|entry| {
        std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder)
    });
    here.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

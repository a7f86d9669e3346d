//! How Linux restricts a command: rules, filters, a supervisor, and a watch from outside.

mod attributes;
mod calls;
mod census;
mod channel;
mod filters;
mod kernel;
mod launch;
mod requests;
mod room;
mod rules;
mod scratch;
mod stop;
mod supervisor;
mod watch;

pub use stop::Stop;

use crate::{Command, Finished, Limits, Sandbox, SandboxError};
use kernel::Image;
use launch::Launch;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Resource;
use scratch::Scratch;
use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use watch::{Outside, watch};

/// The folders of programs, if nothing else was said.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The most processes and threads that any command may run at once: room for all is made beforehand.
const MOST: usize = 1 << 16;

/// Checks whether a command that does nothing can be run: each step may be forbidden here, as some containers forbid
/// tracing. It is tried once.
pub(crate) fn available() -> Result<(), SandboxError> {
    static TRIED: OnceLock<Result<(), String>> = OnceLock::new();
    let tried = TRIED.get_or_init(|| match try_once() {
        Err(SandboxError::Unavailable(why)) => Err(why),
        Err(error) => Err(format!("a command that does nothing cannot be run: {error}")),
        Ok(finished) if finished.status.success() => Ok(()),
        Ok(finished) => Err(format!(
            "a command that does nothing ended with {}: {}",
            finished.status,
            finished.stdout.text()
        )),
    });
    tried.clone().map_err(SandboxError::Unavailable)
}

fn try_once() -> Result<Finished, SandboxError> {
    let limits = Limits { time: Duration::from_secs(30), free_bytes: 0, ..Limits::default() };
    let command = Command::new("sh").args(["-c", ":"]).joined();
    run(&Sandbox::new().read_system().limits(limits), &command)
}

pub(crate) fn run(sandbox: &Sandbox, command: &Command) -> Result<Finished, SandboxError> {
    census::available()?;
    let scratch = Scratch::new().map_err(start("making a temporary folder"))?;
    let environment = environment(sandbox, scratch.path());
    let program = program(&command.program, &environment)?;
    let mut writable = sandbox.write.clone();
    writable.push(scratch.path().to_owned());
    let ruleset = rules::ruleset(sandbox, &writable)?;
    writable.iter().try_for_each(|path| room::check(path, sandbox.limits.free_bytes))?;

    let pipes = || pipe_with(PipeFlags::CLOEXEC).map_err(|e| start("making a pipe")(e.into()));
    let (stdout, stdout_end) = pipes()?;
    let (stderr, stderr_end) = match command.joined {
        true => (None, same(&stdout_end)?),
        false => pipes().map(|(stderr, end)| (Some(stderr), end))?,
    };
    let (stdin_end, stdin) = match command.stdin.is_empty() {
        true => (nothing()?, None),
        false => pipes().map(|(end, stdin)| (end, Some(stdin)))?,
    };

    let launch = Launch {
        image: Image::new(
            text(program.as_os_str())?,
            arguments(command)?,
            variables(&environment)?,
        ),
        folder: text(command.folder.as_os_str())?,
        ruleset,
        filters: filters::Filters::of(sandbox.network)?,
        limits: limits(sandbox),
        most: sandbox.limits.processes.clamp(1, MOST),
        stdin: stdin_end,
        stdout: stdout_end,
        stderr: stderr_end,
    };
    let launched = launch.start()?;
    let outside = Outside { stdin, stdout, stderr, writable, limits: &sandbox.limits };
    watch(launched, outside, command)
}

fn environment(sandbox: &Sandbox, scratch: &Path) -> Vec<(OsString, OsString)> {
    let mut all = sandbox.environment.clone();
    all.entry("PATH".into()).or_insert_with(|| PATH.into());
    all.entry("HOME".into()).or_insert_with(|| scratch.into());
    all.insert("TMPDIR".into(), scratch.into());
    all.into_iter().collect()
}

/// Returns the path of a program.
fn program(name: &OsStr, environment: &[(OsString, OsString)]) -> Result<PathBuf, SandboxError> {
    if name.as_bytes().contains(&b'/') {
        return Ok(name.into());
    }
    let path = environment.iter().find(|(variable, _)| variable == "PATH");
    let path = path.map(|(_, value)| value.clone()).unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|p| p.is_file());
    found.ok_or_else(|| SandboxError::Program { program: name.to_owned(), path })
}

fn arguments(command: &Command) -> Result<Vec<CString>, SandboxError> {
    let all = std::iter::once(&command.program).chain(&command.args);
    all.map(|argument| text(argument)).collect()
}

fn variables(environment: &[(OsString, OsString)]) -> Result<Vec<CString>, SandboxError> {
    let pair = |(name, value): &(OsString, OsString)| {
        let mut pair = name.clone();
        pair.push("=");
        pair.push(value);
        text(&pair)
    };
    environment.iter().map(pair).collect()
}

fn text(text: &OsStr) -> Result<CString, SandboxError> {
    CString::new(text.as_bytes()).map_err(|_| SandboxError::Nul(text.to_owned()))
}

/// Sets the limits that the kernel enforces for each process.
fn limits(sandbox: &Sandbox) -> Vec<(Resource, u64)> {
    let limits = &sandbox.limits;
    vec![
        (Resource::Core, 0),
        (Resource::Data, limits.memory),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Memlock, 1 << 20),
        (Resource::Msgqueue, 0),
        (Resource::Nofile, limits.open_files),
    ]
}

fn nothing() -> Result<OwnedFd, SandboxError> {
    std::fs::File::open("/dev/null").map(OwnedFd::from).map_err(start("opening /dev/null"))
}

fn same(end: &OwnedFd) -> Result<OwnedFd, SandboxError> {
    end.try_clone().map_err(start("making a pipe"))
}

fn start(step: &'static str) -> impl FnOnce(io::Error) -> SandboxError {
    move |source| SandboxError::Start { step, source }
}

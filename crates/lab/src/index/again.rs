//! Starts this program again for a part of a measurement.

use super::part::{MARKS, Part};
use foldback_bench::BenchError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The command that runs a [`Part`]: a program and its first arguments. The part follows them as JSON,
/// and the result is the only line on stdout.
#[derive(Clone, Debug)]
pub struct Again {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

/// The system calls that make something durable, and the one by which marks are recognised.
const TRACED: &str = "trace=fsync,fdatasync,msync,openat";

impl Again {
    /// Creates the command from a program and its first arguments.
    pub fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { program: program.into(), arguments, environment: Vec::new() }
    }

    /// Sets a variable for the command: what must not be read in the list of processes.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Runs a part and reads its result.
    pub(super) fn run<T: DeserializeOwned>(&self, part: &impl Serialize) -> Result<T, BenchError> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(json(part)?);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output = command.output().map_err(|source| BenchError::Io {
            what: format!("{} could not be started", self.program.display()),
            source,
        })?;
        result(&output)
    }

    /// Returns how many syncs a part makes between its marks; `None` if `strace` is not available or
    /// may not trace.
    pub(super) fn syncs(&self, part: &Part, dir: &Path) -> Result<Option<u64>, BenchError> {
        let log = dir.join("strace.log");
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", TRACED, "-o"]).arg(&log);
        command.arg(&self.program).args(&self.arguments).arg(json(part)?);
        let Ok(output) = command.output() else { return Ok(None) };
        let Ok(log) = std::fs::read_to_string(&log) else { return Ok(None) };
        match count_syncs(&log) {
            Some(count) => Ok(Some(count)),
            // It did not finish: either the part failed, or the tracer did.
            None if log.is_empty() => Ok(None),
            None => result(&output),
        }
    }
}

/// Returns the number of syncs between the marks in a log of strace; `None` if a mark is missing.
fn count_syncs(log: &str) -> Option<u64> {
    let [begin, end] = MARKS;
    let mut lines = log.lines();
    lines.find(|line| line.contains(begin))?;
    let mut count = 0;
    for line in lines {
        if line.contains(end) {
            return Some(count);
        }
        // A call that another thread interrupts is logged twice: begun and resumed.
        count +=
            u64::from(["fsync(", "fdatasync(", "msync("].iter().any(|call| line.contains(call)));
    }
    None
}

fn json(part: &impl Serialize) -> Result<String, BenchError> {
    serde_json::to_string(part).map_err(|error| {
        BenchError::Input(format!(
            "a part of the measurement cannot be sent to another process: {error}"
        ))
    })
}

/// Returns what a process wrote to stdout, or why it stopped.
fn result<T: DeserializeOwned>(output: &Output) -> Result<T, BenchError> {
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let why = said.lines().last().unwrap_or_default().trim_start_matches("error: ");
        return Err(BenchError::Input(format!(
            "a part of the measurement stopped with {}: {why}",
            output.status
        )));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| {
        BenchError::Input(format!("a part of the measurement gave no result: {error}; {said}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn syncs_between_the_marks_are_counted() {
        let log = "
            12 fdatasync(3) = 0
            12 openat(AT_FDCWD, \"/a/counting-begins\", O_WRONLY|O_CREAT) = 4
            12 fdatasync(3) = 0
            13 fsync(5 <unfinished ...>
            12 fdatasync(3) = 0
            13 <... fsync resumed>) = 0
            12 openat(AT_FDCWD, \"/a/b\", O_RDONLY) = 4
            12 msync(0x7f, 4096, MS_SYNC) = 0
            12 openat(AT_FDCWD, \"/a/counting-ends\", O_WRONLY|O_CREAT) = 4
            12 fdatasync(3) = 0";
        assert_eq!(count_syncs(log), Some(4));
        assert_eq!(count_syncs("12 openat(\"/a/counting-begins\") = 4"), None);
        assert_eq!(count_syncs(""), None);
    }

    #[test]
    fn a_part_that_stops_says_why() {
        let store = PathBuf::from("nowhere");
        let part = Part::ContestOpen { workload: store.clone(), store };
        let again = Again::new("sh", ["-c", "echo 'error: it is dark' >&2; exit 2"]);
        let error = again.run::<serde_json::Value>(&part).unwrap_err().to_string();
        assert!(error.ends_with("it is dark"), "{error}");
        let silent = Again::new("true", [""; 0]).run::<serde_json::Value>(&part);
        assert!(silent.unwrap_err().to_string().contains("gave no result"));
        assert!(Again::new("no/such/program", [""; 0]).run::<u64>(&part).is_err());
    }
}

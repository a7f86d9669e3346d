//! The memory held by everything below a supervisor.

use crate::SandboxError;
use rustix::process::Pid;
use std::fs;

/// Checks whether it can be measured.
///
/// # Errors
/// [`SandboxError::Unavailable`] if the kernel does not list children.
pub(super) fn available() -> Result<(), SandboxError> {
    match fs::read_to_string("/proc/thread-self/children") {
        Ok(_) => Ok(()),
        Err(error) => Err(SandboxError::Unavailable(format!(
            "memory cannot be counted: /proc with CONFIG_PROC_CHILDREN is needed: {error}"
        ))),
    }
}

/// Whether everything below this process holds more than this many bytes of memory. Shared memory is counted once.
pub(super) fn holds_more_than(supervisor: Pid, most: u64) -> bool {
    let processes = processes(supervisor);
    let sum = |held: fn(&Process) -> u64| processes.iter().map(held).sum::<u64>() << 10;
    // The second is exact, but takes long.
    sum(Process::resident) > most && sum(Process::share) > most
}

/// A process, by its threads. Its first thread may be gone while others live, and then shows nothing.
struct Process(Vec<i32>);

impl Process {
    /// What it holds, in KiB, including shared memory.
    fn resident(&self) -> u64 {
        self.tells("status", "VmRSS:").unwrap_or(0)
    }

    /// What it holds, with only its part of shared memory. A process may hide that, and is then taken to share nothing.
    fn share(&self) -> u64 {
        self.tells("smaps_rollup", "Pss:").unwrap_or_else(|| self.resident())
    }

    fn tells(&self, file: &str, field: &str) -> Option<u64> {
        let read = |thread| fs::read_to_string(format!("/proc/{thread}/{file}")).ok();
        self.0.iter().find_map(|thread| kib(&read(thread)?, field))
    }
}

/// Every process below this one.
fn processes(supervisor: Pid) -> Vec<Process> {
    let mut found = Vec::new();
    let mut next = vec![supervisor.as_raw_nonzero().get()];
    while let Some(process) = next.pop() {
        let Ok(entries) = fs::read_dir(format!("/proc/{process}/task")) else { continue };
        let numbers =
            entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let threads: Vec<i32> = numbers.collect();
        for thread in &threads {
            let children = fs::read_to_string(format!("/proc/{process}/task/{thread}/children"));
            let children = children.unwrap_or_default();
            next.extend(children.split_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
        }
        if process != supervisor.as_raw_nonzero().get() {
            found.push(Process(threads));
        }
    }
    found
}

/// The value of `field: 123 kB`.
fn kib(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

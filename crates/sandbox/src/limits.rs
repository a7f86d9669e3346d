//! How much a command may use.

use std::time::Duration;

/// How much a command may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may run.
    pub time: Duration,
    /// How much memory all of its processes may hold together, in bytes; no single one can ask for more.
    pub memory: u64,
    /// How many processes and threads may live at once, from 1 to 65,536; what is beyond is taken as the
    /// nearer of both. A command that starts more is ended.
    pub processes: usize,
    /// How large a file may become that it writes, in bytes.
    pub file_bytes: u64,
    /// How much room must be left on each file system that it may write, in bytes. Where less is left, the
    /// command is not run; where it gets less, whoever took it, the command is ended.
    pub free_bytes: u64,
    /// How many files a process may have open.
    pub open_files: u64,
    /// How many bytes are kept of each of its two outputs: half from the beginning, half from the end.
    pub output_bytes: usize,
}

impl Default for Limits {
    /// Two minutes, 4 GiB of memory, 256 processes and threads, files up to 1 GiB while 256 MiB are left,
    /// 1,024 open files, 256 KiB of each output.
    fn default() -> Self {
        Self {
            time: Duration::from_secs(120),
            memory: 4 << 30,
            processes: 256,
            file_bytes: 1 << 30,
            free_bytes: 256 << 20,
            open_files: 1_024,
            output_bytes: 256 << 10,
        }
    }
}

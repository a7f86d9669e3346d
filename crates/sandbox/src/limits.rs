//! The limits of a command.

use std::time::Duration;

/// The limits of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may run.
    pub time: Duration,
    /// The most memory, in bytes, that all of its processes may hold together; no single one can ask for more.
    pub memory: u64,
    /// The most processes and threads that may live at once, from 1 to 65,536; a value outside is taken as the nearer
    /// of the two. A command that starts more is ended.
    pub processes: usize,
    /// The greatest size, in bytes, of a file that it writes.
    pub file_bytes: u64,
    /// The space, in bytes, that must be left on each file system that it may write to. With less, the command is not
    /// run; if the space drops below it, no matter who used it, the command is ended.
    pub free_bytes: u64,
    /// The most files that a process may have open.
    pub open_files: u64,
    /// The most bytes that are kept of each of its two outputs: half from the beginning, half from the end.
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

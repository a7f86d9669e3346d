//! Starts a command: a supervisor, and under it the process that gives up its rights and becomes it.
//!
//! ```text
//! this process ---- channel ---- supervisor          outside the sandbox; ends when the channel does
//!                                   command          inside, with all that it starts
//! ```

use super::channel::{Message, send};
use super::filters::Filters;
use super::kernel::{self, Image};
use super::supervisor::Supervisor;
use crate::SandboxError;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, chdir, getpid, getrlimit, kill_process, set_child_subreaper,
    set_parent_process_death_signal, setrlimit, setsid, umask,
};
use rustix::thread::set_no_new_privs;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// The setup of a command.
pub(super) struct Launch {
    pub(super) image: Image,
    pub(super) folder: CString,
    pub(super) ruleset: OwnedFd,
    pub(super) filters: Filters,
    pub(super) limits: Vec<(Resource, u64)>,
    /// The most processes and threads that may live at once.
    pub(super) most: usize,
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

/// The descriptors of this process that the supervisor and the command's process keep.
#[derive(Clone, Copy)]
struct Ends<'a> {
    channel: BorrowedFd<'a>,
    /// The command's process waits until something arrives here.
    go: BorrowedFd<'a>,
    wait: BorrowedFd<'a>,
}

/// A supervisor and the channel to it. When the channel closes, it ends the command and everything that it started.
pub(super) struct Launched {
    pub(super) supervisor: Pid,
    pub(super) channel: OwnedFd,
}

/// The steps between the fork and the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Session,
    Trace,
    Stdio,
    Folder,
    Limits,
    Capabilities,
    Rules,
    Filters,
    Program,
}

impl Step {
    const ALL: [Self; 9] = [
        Self::Session,
        Self::Trace,
        Self::Stdio,
        Self::Folder,
        Self::Limits,
        Self::Capabilities,
        Self::Rules,
        Self::Filters,
        Self::Program,
    ];

    /// The step with this number.
    pub(super) fn of(number: i32) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// The error of this step: `Start`, or `Unavailable` if no command can be sandboxed here.
    pub(super) fn error(self, errno: Errno) -> SandboxError {
        let (step, holds) = match self {
            Self::Session => ("beginning a session", true),
            Self::Trace => ("tracing it, as /proc/sys/kernel/yama/ptrace_scope may forbid", false),
            Self::Stdio => ("handing over its input and outputs", true),
            Self::Folder => ("entering its folder", true),
            Self::Limits => ("setting its limits", false),
            Self::Capabilities => ("dropping capabilities", false),
            Self::Rules => ("restricting it with Landlock", false),
            Self::Filters => ("restricting it with seccomp", false),
            Self::Program => ("running the program", true),
        };
        let source = io::Error::from(errno);
        if holds {
            SandboxError::Start { step, source }
        } else {
            SandboxError::Unavailable(format!("{step}: {source}"))
        }
    }
}

impl Launch {
    /// Starts the supervisor and the command.
    ///
    /// # Errors
    /// When no process can be created.
    pub(super) fn start(self) -> Result<Launched, SandboxError> {
        let failed = |source| SandboxError::Start { step: "making its supervisor", source };
        let (channel, inner) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
                .map_err(|errno| failed(errno.into()))?;
        let (go, wait) = pipe_with(PipeFlags::CLOEXEC)
            .map(|(wait, go)| (go, wait))
            .map_err(|errno| failed(errno.into()))?;
        let threads = Vec::with_capacity(self.most);
        let ends = Ends { channel: inner.as_fd(), go: go.as_fd(), wait: wait.as_fd() };
        let supervisor = kernel::fork(|| self.supervise(ends, threads)).map_err(failed)?;
        Ok(Launched { supervisor, channel })
    }

    /// Starts the command, and becomes its supervisor.
    fn supervise(&self, ends: Ends<'_>, mut threads: Vec<Pid>) -> i32 {
        // A process that loses its parent below becomes a child of this process.
        if setsid().is_err() || set_child_subreaper(Some(getpid())).is_err() {
            return 1;
        }
        let command = kernel::fork(|| {
            let (step, errno) = self.confine(ends);
            send(ends.channel, Message::Failed(step as i32, errno));
            127
        });
        let Ok(command) = command else { return 1 };
        let began = kernel::trace(command)
            .and_then(|()| Ok(rustix::io::write(ends.go, &[1])?))
            .and_then(|_| kernel::close_all_but(ends.channel));
        if let Err(error) = began {
            let _ = kill_process(command, Signal::KILL);
            send(ends.channel, Message::Failed(Step::Trace as i32, errno(&error)));
            return 1;
        }
        threads.push(command);
        let supervisor = Supervisor::new(ends.channel, command, threads, self.most);
        match supervisor.run() {
            Ok(()) => i32::from(!send(ends.channel, Message::Gone)),
            Err(_) => 1,
        }
    }

    /// Gives up all rights except those that were granted, and becomes the command; returns why not.
    fn confine(&self, ends: Ends<'_>) -> (Step, Errno) {
        match self.give_up_rights(ends) {
            Ok(()) => (Step::Program, errno(&self.image.execute())),
            Err(failed) => failed,
        }
    }

    fn give_up_rights(&self, ends: Ends<'_>) -> Result<(), (Step, Errno)> {
        let at = |step| move |errno| (step, errno);
        let at_io = |step| move |error: io::Error| (step, errno(&error));
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(at(Step::Session))?;
        // From here on it is traced.
        rustix::io::read(ends.wait, &mut [0]).map_err(at(Step::Trace))?;
        setsid().map_err(at(Step::Session))?;
        umask(Mode::from_raw_mode(0o022));
        rustix::stdio::dup2_stdin(&self.stdin).map_err(at(Step::Stdio))?;
        rustix::stdio::dup2_stdout(&self.stdout).map_err(at(Step::Stdio))?;
        rustix::stdio::dup2_stderr(&self.stderr).map_err(at(Step::Stdio))?;
        kernel::keep_only_stdio().map_err(at_io(Step::Stdio))?;
        chdir(self.folder.as_c_str()).map_err(at(Step::Folder))?;
        for (resource, most) in &self.limits {
            let before = getrlimit(*resource).maximum;
            let most = Some(before.map_or(*most, |before| before.min(*most)));
            let limit = Rlimit { current: most, maximum: most };
            setrlimit(*resource, limit).map_err(at(Step::Limits))?;
        }
        kernel::drop_capabilities().map_err(at_io(Step::Capabilities))?;
        set_no_new_privs(true).map_err(at(Step::Rules))?;
        kernel::restrict(self.ruleset.as_fd()).map_err(at_io(Step::Rules))?;
        let filtered = |_| (Step::Filters, Errno::NOTSUP);
        seccompiler::apply_filter(&self.filters.known).map_err(filtered)?;
        let listener = kernel::install_asking(&self.filters.asked).map_err(at_io(Step::Filters))?;
        seccompiler::apply_filter(&self.filters.unsupported).map_err(filtered)?;
        seccompiler::apply_filter(&self.filters.refused).map_err(filtered)?;
        if !send(ends.channel, Message::Confined(listener.as_fd())) {
            return Err((Step::Filters, Errno::PIPE));
        }
        Ok(())
    }
}

fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

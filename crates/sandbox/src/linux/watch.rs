//! Watches a command from outside: moves its input and outputs, answers its requests, and ends it if it must.

use super::census;
use super::channel::{Message, receive};
use super::launch::{Launched, Step};
use super::requests::Requests;
use super::room;
use crate::{Captured, Command, Finished, KilledBy, Limits, SandboxError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Signal, WaitOptions, kill_process, waitpid};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// The interval at which memory and space are checked.
const LOOK: Duration = Duration::from_millis(50);

/// How long killed processes may take to end; then their supervisor is killed, too. A process that waits for a disk
/// dies when that answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// The outside ends of a command, and its limits.
pub(super) struct Outside<'a> {
    pub(super) stdin: Option<OwnedFd>,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: Option<OwnedFd>,
    pub(super) writable: Vec<PathBuf>,
    pub(super) limits: &'a Limits,
}

/// Waits until a command and all that it started are gone.
///
/// # Errors
/// When it could not be started, or was lost.
pub(super) fn watch(
    launched: Launched,
    outside: Outside<'_>,
    command: &Command,
) -> Result<Finished, SandboxError> {
    Watch::new(launched, outside, command).and_then(Watch::until_gone)
}

struct Watch<'a> {
    launched: Launched,
    limits: &'a Limits,
    command: &'a Command,
    writable: Vec<PathBuf>,
    stdin: Option<OwnedFd>,
    /// How many bytes of the input were taken.
    taken: usize,
    outputs: [(Option<OwnedFd>, Captured); 2],
    requests: Option<Requests>,
    began: Instant,
    looked: Instant,
    ending: Option<Instant>,
    killed_by: Option<KilledBy>,
    status: Option<ExitStatus>,
    failed: Option<SandboxError>,
}

/// The source of an event.
#[derive(Clone, Copy)]
enum Source {
    Channel,
    Stop,
    Input,
    Output(usize),
    Questions,
}

impl<'a> Watch<'a> {
    fn new(
        launched: Launched,
        outside: Outside<'a>,
        command: &'a Command,
    ) -> Result<Self, SandboxError> {
        let Outside { stdin, stdout, stderr, writable, limits } = outside;
        for pipe in stdin.iter().chain([&stdout]).chain(&stderr) {
            let failed = |e: Errno| SandboxError::Start { step: "making a pipe", source: e.into() };
            let flags = fcntl_getfl(pipe).map_err(failed)?;
            fcntl_setfl(pipe, flags | OFlags::NONBLOCK).map_err(failed)?;
        }
        let captured = || Captured::new(limits.output_bytes);
        let now = Instant::now();
        Ok(Self {
            launched,
            limits,
            command,
            writable,
            stdin,
            taken: 0,
            outputs: [(Some(stdout), captured()), (stderr, captured())],
            requests: None,
            began: now,
            looked: now,
            ending: None,
            killed_by: None,
            status: None,
            failed: None,
        })
    }

    fn until_gone(mut self) -> Result<Finished, SandboxError> {
        let mut gone = false;
        while !gone {
            for source in self.ready()? {
                match source {
                    Source::Channel => gone |= self.hear(),
                    Source::Stop => self.end(KilledBy::Stopped),
                    Source::Input => self.feed(),
                    Source::Output(which) => {
                        self.drain(which);
                    }
                    Source::Questions => self.answer(),
                }
            }
            self.look();
            if self.ending.is_some_and(|at| at.elapsed() > PATIENCE) {
                return Err(SandboxError::Lost);
            }
        }
        // Nobody can write any more.
        for which in 0..self.outputs.len() {
            while self.drain(which) {}
        }
        let [(_, stdout), (_, stderr)] = self.outputs;
        match (self.failed, self.status) {
            (Some(failed), _) => Err(failed),
            (None, None) => Err(SandboxError::Lost),
            (None, Some(status)) => Ok(Finished {
                status,
                stdout,
                stderr,
                took: self.began.elapsed(),
                killed_by: self.killed_by,
            }),
        }
    }

    /// The sources that are ready, after waiting if necessary.
    fn ready(&self) -> Result<Vec<Source>, SandboxError> {
        let mut waiting = vec![(Source::Channel, self.launched.channel.as_fd(), PollFlags::IN)];
        if let (Some(stop), None) = (&self.command.stop, self.ending) {
            waiting.push((Source::Stop, stop.event(), PollFlags::IN));
        }
        if let Some(stdin) = &self.stdin {
            waiting.push((Source::Input, stdin.as_fd(), PollFlags::OUT));
        }
        for (which, (output, _)) in self.outputs.iter().enumerate() {
            let output = output.as_ref();
            waiting.extend(output.map(|o| (Source::Output(which), o.as_fd(), PollFlags::IN)));
        }
        if let Some(requests) = &self.requests {
            waiting.push((Source::Questions, requests.event(), PollFlags::IN));
        }
        let event = |(_, file, flags): &(_, _, _)| PollFd::from_borrowed_fd(*file, *flags);
        let mut events: Vec<_> = waiting.iter().map(event).collect();
        match poll(&mut events, Some(&self.patience())) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(error) => {
                return Err(SandboxError::Start { step: "waiting for it", source: error.into() });
            }
        }
        let ready = waiting.iter().zip(&events).filter(|(_, event)| !event.revents().is_empty());
        Ok(ready.map(|((source, ..), _)| *source).collect())
    }

    /// How long to wait until limits are checked.
    fn patience(&self) -> Timespec {
        let left = self.limits.time.saturating_sub(self.began.elapsed());
        let left = if self.ending.is_some() { LOOK } else { left.min(LOOK) };
        // A little more, so that the time has come when the waiting is over.
        let left = left + Duration::from_millis(1);
        Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() }
    }

    /// Handles the supervisor's messages; returns whether that was the last.
    fn hear(&mut self) -> bool {
        match receive(&self.launched.channel) {
            Some(Message::Confined(listener)) => {
                self.requests = Some(Requests::new(listener, &self.writable));
            }
            Some(Message::Failed(step, errno)) => {
                self.failed = Some(Step::of(step).map_or(SandboxError::Lost, |at| at.error(errno)));
            }
            Some(Message::Exited(status)) => {
                self.status = Some(ExitStatus::from_raw(status));
                self.ending.get_or_insert_with(Instant::now);
            }
            Some(Message::TooMany) => {
                self.killed_by.get_or_insert(KilledBy::Processes);
                self.ending.get_or_insert_with(Instant::now);
            }
            Some(Message::Gone) => return true,
            None => {
                self.failed.get_or_insert(SandboxError::Lost);
                return true;
            }
        }
        false
    }

    /// Ends the command and everything that it started.
    fn end(&mut self, by: KilledBy) {
        if self.ending.is_none() {
            self.ending = Some(Instant::now());
            self.killed_by = Some(by);
            // The supervisor sees its end of the channel close.
            let _ = shutdown(&self.launched.channel, Shutdown::Write);
        }
    }

    /// Checks the limits that the kernel does not enforce.
    fn look(&mut self) {
        if self.ending.is_some() {
            return;
        }
        if self.began.elapsed() >= self.limits.time {
            return self.end(KilledBy::Time);
        }
        if self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Instant::now();
        if self.writable.iter().any(|path| room::is_short(path, self.limits.free_bytes)) {
            self.end(KilledBy::Disk);
        } else if census::holds_more_than(self.launched.supervisor, self.limits.memory) {
            self.end(KilledBy::Memory);
        }
    }

    fn answer(&mut self) {
        if let Some(requests) = &self.requests
            && let Err(error) = requests.answer()
            // The asking thread may be gone.
            && !matches!(error.raw_os_error(), Some(libc::ENOENT | libc::EINTR))
        {
            // Nobody is left to ask.
            self.requests = None;
        }
    }

    /// Writes as much of the input as the command takes.
    fn feed(&mut self) {
        let Some(stdin) = &self.stdin else { return };
        match rustix::io::write(stdin, &self.command.stdin[self.taken..]) {
            Ok(written) => self.taken += written,
            Err(Errno::AGAIN | Errno::INTR) => return,
            Err(_) => self.stdin = None,
        }
        if self.taken >= self.command.stdin.len() {
            self.stdin = None;
        }
    }

    /// Reads as much output as a pipe holds; returns whether there may be more at once.
    fn drain(&mut self, which: usize) -> bool {
        let mut bytes = [0; 64 << 10];
        let (pipe, captured) = &mut self.outputs[which];
        let Some(open) = pipe else { return false };
        match rustix::io::read(&*open, &mut bytes) {
            Ok(read) if read > 0 => {
                captured.push(&bytes[..read]);
                true
            }
            Err(Errno::INTR) => true,
            Err(Errno::AGAIN) => false,
            _ => {
                *pipe = None;
                false
            }
        }
    }
}

impl Drop for Launched {
    /// Ends the supervisor, if it did not end by itself: everything that it traces dies with it.
    fn drop(&mut self) {
        if let Ok(None) = waitpid(Some(self.supervisor), WaitOptions::NOHANG) {
            let _ = kill_process(self.supervisor, Signal::KILL);
            while let Err(Errno::INTR) = waitpid(Some(self.supervisor), WaitOptions::empty()) {}
        }
    }
}

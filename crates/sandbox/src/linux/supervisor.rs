//! The process above a command, outside the sandbox: it knows and counts every process and thread, by
//! tracing them, and kills what is left when the command ends or has to.
//!
//! No other way counts what root starts and misses nobody: a daemon leaves its parents, its session and its group. A
//! traced process stays traced from its first instruction on, and dies with its tracer.

use super::channel::{Message, send};
use super::kernel::{self, Traced};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait, waitpid};
use std::os::fd::BorrowedFd;

/// A command, and everything that it started.
pub(super) struct Supervisor<'a> {
    channel: BorrowedFd<'a>,
    command: Pid,
    /// Every live thread, by its number. Room for all of them was made beforehand: nothing may be allocated here.
    threads: Vec<Pid>,
    /// The most that may live at once.
    most: usize,
    ending: bool,
}

impl<'a> Supervisor<'a> {
    pub(super) fn new(
        channel: BorrowedFd<'a>,
        command: Pid,
        threads: Vec<Pid>,
        most: usize,
    ) -> Self {
        Self { channel, command, threads, most, ending: false }
    }

    /// Runs until nothing is left of the command.
    ///
    /// # Errors
    /// When the kernel does not report what happens to children.
    pub(super) fn run(mut self) -> Result<(), Errno> {
        let events = kernel::news_of_children().map_err(|error| {
            // Everything traced dies with this process.
            Errno::from_io_error(&error).unwrap_or(Errno::IO)
        })?;
        loop {
            loop {
                match wait(WaitOptions::NOHANG) {
                    Ok(Some((thread, status))) => self.hear(thread, status.as_raw()),
                    Err(Errno::CHILD) => return Ok(()),
                    Err(Errno::INTR) => {}
                    _ => break,
                }
            }
            let mut ready = [
                PollFd::new(&events, PollFlags::IN),
                PollFd::from_borrowed_fd(self.channel, PollFlags::IN),
            ];
            let watched = if self.ending { &mut ready[..1] } else { &mut ready[..] };
            let polled = poll(watched, None);
            if polled.is_ok() && !ready[1].revents().is_empty() {
                // Nothing is ever received from there: it was closed.
                self.end();
            }
            kernel::forget_news(&events);
        }
    }

    /// Handles a change of a thread's state.
    fn hear(&mut self, thread: Pid, status: i32) {
        match Traced::of(status) {
            Traced::Ended => {
                // An orphan is reported twice: by its tracer, then by its new parent.
                self.threads.retain(|known| *known != thread);
                if thread == self.command {
                    send(self.channel, Message::Exited(status));
                    self.end();
                }
            }
            _ if self.ending => self.kill(thread),
            Traced::Started => {
                // It continues once the other is known, or is gone already: so no more are started than are counted.
                if let Some(started) = kernel::other_of(thread)
                    && !self.threads.contains(&started)
                    && let Ok(Some((_, status))) = waitpid(Some(started), WaitOptions::empty())
                {
                    self.hear(started, status.as_raw());
                }
                self.go_on(thread, 0);
            }
            Traced::Executes => {
                let before = kernel::other_of(thread);
                self.threads.retain(|known| Some(*known) != before);
                self.know(thread);
                self.go_on(thread, 0);
            }
            // Before its first instruction, so that no unknown thread runs.
            Traced::Begins => {
                self.know(thread);
                self.go_on(thread, 0);
            }
            Traced::Signal(signal) => self.go_on(thread, signal),
            Traced::Halts => kernel::leave_halted(thread),
        }
    }

    fn go_on(&self, thread: Pid, signal: i32) {
        if !self.ending {
            kernel::go_on(thread, signal);
        }
    }

    /// Registers a thread.
    fn know(&mut self, thread: Pid) {
        if self.ending || self.threads.contains(&thread) {
            return;
        }
        if self.threads.len() >= self.most {
            send(self.channel, Message::TooMany);
            self.end();
            self.kill(thread);
            return;
        }
        self.threads.push(thread);
    }

    /// Kills all. A thread that is being started at this moment stops before its first instruction, and is reported
    /// then.
    fn end(&mut self) {
        self.ending = true;
        self.threads.iter().for_each(|thread| self.kill(*thread));
    }

    /// It is traced, and its end was not reported: the number is still its own.
    fn kill(&self, thread: Pid) {
        let _ = kill_process(thread, Signal::KILL);
    }
}

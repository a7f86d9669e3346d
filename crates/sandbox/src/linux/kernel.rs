//! Calls to the kernel that no safe crate offers. Nothing else in this crate is `unsafe`.
//!
//! Code between a fork and what follows it must not allocate and not wait for a lock: another
//! thread may have held it at that moment. Everything here except [`Image::new`] obeys that.
#![expect(
    unsafe_code,
    reason = "forking, executing, tracing and seccomp's questions have no safe form"
)]

use rustix::process::Pid;
use std::ffi::{CString, c_char};
use std::io::{Error, Result};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::panic::{self, AssertUnwindSafe};
use std::ptr;

/// Runs `child` in a new process, whose exit code is what it returns, with all signals blocked. Returns the process's
/// id.
///
/// `child` must not allocate and not wait for a lock.
pub(super) fn fork(child: impl FnOnce() -> i32) -> Result<Pid> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: both sets are valid to write to, and `sigfillset` initialises the first. The child leaves only by
    // `_exit`, so nothing that this process owns is dropped twice.
    let forked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let forked = libc::fork();
        if forked == 0 {
            // The parent of this process may have chosen to ignore its children.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            // Nothing below may unwind into what the parent was doing.
            libc::_exit(panic::catch_unwind(AssertUnwindSafe(child)).unwrap_or(1));
        }
        let result = checked(forked.into());
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        result?
    };
    Pid::from_raw(forked as i32).ok_or_else(|| Error::other("a process without an id"))
}

/// A program with its arguments and environment, ready to run without another allocation.
pub(super) struct Image {
    program: CString,
    arguments: Texts,
    environment: Texts,
}

impl Image {
    pub(super) fn new(
        program: CString,
        arguments: Vec<CString>,
        environment: Vec<CString>,
    ) -> Self {
        Self { program, arguments: Texts::new(arguments), environment: Texts::new(environment) }
    }

    /// Becomes this program, with no signal blocked or ignored. It returns only if that failed.
    pub(super) fn execute(&self) -> Error {
        let mut none = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the set is initialised before it is read. The texts end with a byte 0 and the lists with
        // a null pointer, and both live in `self`.
        unsafe {
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            libc::sigemptyset(none.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
            libc::execve(
                self.program.as_ptr(),
                self.arguments.pointers.as_ptr(),
                self.environment.pointers.as_ptr(),
            );
        }
        Error::last_os_error()
    }
}

/// Texts in the form for `execve`.
struct Texts {
    pointers: Vec<*const c_char>,
    /// The texts that the pointers point to.
    _texts: Vec<CString>,
}

impl Texts {
    fn new(texts: Vec<CString>) -> Self {
        let pointers = texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect();
        Self { pointers, _texts: texts }
    }
}

/// Closes every open file but this one.
pub(super) fn close_all_but(kept: BorrowedFd<'_>) -> Result<()> {
    let kept = kept.as_raw_fd() as u32;
    if kept > 0 {
        close_range(0, kept - 1, 0)?;
    }
    close_range(kept + 1, u32::MAX, 0)
}

/// Has every open file except the first three closed when a program is run.
pub(super) fn keep_only_stdio() -> Result<()> {
    close_range(3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

fn close_range(first: u32, last: u32, flags: u32) -> Result<()> {
    // SAFETY: it takes only numbers. The owner of these files never runs again in this process.
    checked(unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) }).map(drop)
}

/// Gives up every capability, including those that root gets by running a program. A process without any stays without.
pub(super) fn drop_capabilities() -> Result<()> {
    const LAST: i32 = 63;
    /// Version 3 of the interface: 64 bits in two halves.
    const VERSION: u32 = 0x2008_0522;
    let header = [VERSION, 0];
    let none = [0_u32; 6];
    // SAFETY: `prctl` takes numbers here; `capset` reads a header of two words and two times three words.
    unsafe {
        for capability in 0..=LAST {
            // Fails beyond the last that the kernel knows, and for a process without any.
            libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
        }
        checked(libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr())).map(drop)
    }
}

/// The version of Landlock's interface that the kernel has.
///
/// # Errors
/// When it has none, or it is not switched on.
pub(super) fn landlock_abi() -> Result<i64> {
    const VERSION: u32 = 1;
    let none = ptr::null::<libc::c_void>();
    // SAFETY: it reads nothing if the size is 0.
    checked(unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) })
}

/// Restricts this process to a ruleset of Landlock. It must have no way to new privileges.
pub(super) fn restrict(ruleset: BorrowedFd<'_>) -> Result<()> {
    // SAFETY: it takes only numbers.
    let restricted =
        unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) };
    checked(restricted).map(drop)
}

/// Installs a filter that asks, and returns the file from which its requests are read.
pub(super) fn install_asking(filter: &[libc::sock_filter]) -> Result<OwnedFd> {
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    // SAFETY: the kernel copies the program, and does not write to it. It returns a new file.
    unsafe {
        let listener = checked(libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            // Once a request has been read, only a deadly signal takes it back.
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
            &raw const program,
        ))?;
        Ok(OwnedFd::from_raw_fd(listener as i32))
    }
}

/// Traces a child of this process, and everything that it will start. A traced process dies with this process.
pub(super) fn trace(child: Pid) -> Result<()> {
    let options = libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    ptrace(libc::PTRACE_SEIZE, child, options as usize).map(drop)
}

/// Lets a stopped thread continue, and delivers this signal if it is not 0. It may be dead by now.
pub(super) fn go_on(thread: Pid, signal: i32) {
    let _ = ptrace(libc::PTRACE_CONT, thread, signal as usize);
}

/// Leaves a thread halted until it gets a signal to continue. It may be dead by now.
pub(super) fn leave_halted(thread: Pid) {
    let _ = ptrace(libc::PTRACE_LISTEN, thread, 0);
}

/// The thread that a stop is about: the one that this one has [started](Traced::Started), or the number that it had
/// before it [ran a program](Traced::Executes).
pub(super) fn other_of(thread: Pid) -> Option<Pid> {
    let mut number: libc::c_ulong = 0;
    ptrace(libc::PTRACE_GETEVENTMSG, thread, (&raw mut number) as usize).ok()?;
    Pid::from_raw(i32::try_from(number).ok()?)
}

fn ptrace(request: libc::c_uint, thread: Pid, data: usize) -> Result<i64> {
    let thread = thread.as_raw_nonzero().get();
    // SAFETY: the requests of this module read `data` as a number, but for one, which writes a word to
    // where it points: to a variable of the one caller that gives a place.
    checked(unsafe { libc::ptrace(request, thread, ptr::null_mut::<libc::c_void>(), data) } as i64)
}

/// The result of `wait` for a traced thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Traced {
    /// It is gone.
    Ended,
    /// It stopped because it has started another.
    Started,
    /// It stopped because it has become another program. It is now the only thread of its process, and has the number
    /// of its first.
    Executes,
    /// It stopped before its first instruction, or to be continued.
    Begins,
    /// It is about to receive this signal.
    Signal(i32),
    /// It was asked to halt, with its whole process.
    Halts,
}

impl Traced {
    pub(super) fn of(status: i32) -> Self {
        if !libc::WIFSTOPPED(status) {
            return Self::Ended;
        }
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                Self::Started
            }
            libc::PTRACE_EVENT_EXEC => Self::Executes,
            libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Self::Begins,
            libc::PTRACE_EVENT_STOP => Self::Halts,
            0 => Self::Signal(signal),
            _ => Self::Signal(0),
        }
    }
}

/// A file that becomes readable when a child changes state. Signals must be blocked.
pub(super) fn news_of_children() -> Result<OwnedFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the set is initialised before it is read; the result is a new file.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGCHLD);
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        let news = checked(libc::signalfd(-1, set.as_ptr(), flags).into())?;
        Ok(OwnedFd::from_raw_fd(news as i32))
    }
}

/// Makes it readable for events from now on.
pub(super) fn forget_news(news: &OwnedFd) {
    let mut bytes = [0; size_of::<libc::signalfd_siginfo>()];
    while rustix::io::read(news, &mut bytes).is_ok() {}
}

/// A call that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    /// Its id, until it is answered.
    pub(super) id: u64,
    /// The thread that called.
    pub(super) thread: u32,
    pub(super) call: i64,
    pub(super) arguments: [u64; 6],
}

/// The next request.
pub(super) fn question(listener: BorrowedFd<'_>) -> Result<Question> {
    // SAFETY: all bits 0 are a valid value, and what the kernel expects.
    let mut asked: libc::seccomp_notif = unsafe { MaybeUninit::zeroed().assume_init() };
    control(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &mut asked)?;
    Ok(Question {
        id: asked.id,
        thread: asked.pid,
        call: asked.data.nr.into(),
        arguments: asked.data.args,
    })
}

/// Whether the asking thread is still waiting; then everything learnt about its process is correct.
pub(super) fn waits(listener: BorrowedFd<'_>, question: &Question) -> bool {
    let mut id = question.id;
    control(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id).is_ok()
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The call was made for the command, and succeeded.
    Done,
    /// The call fails with this error number.
    Fail(i32),
}

/// Answers. It does not matter if nobody is waiting any more.
pub(super) fn answer(listener: BorrowedFd<'_>, question: &Question, answer: Answer) {
    let error = match answer {
        Answer::Done => 0,
        Answer::Fail(error) => -error,
    };
    let mut response = libc::seccomp_notif_resp { id: question.id, val: 0, error, flags: 0 };
    let _ = control(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &mut response);
}

fn control<T>(listener: BorrowedFd<'_>, request: libc::Ioctl, value: &mut T) -> Result<()> {
    debug_assert_eq!(
        (request as usize >> 16) & 0x3FFF,
        size_of::<T>(),
        "the ioctl is of this type"
    );
    // SAFETY: the request gives the size of what it reads and writes, which is that of `T`.
    checked(unsafe { libc::ioctl(listener.as_raw_fd(), request, ptr::from_mut(value)) }.into())
        .map(drop)
}

fn checked(result: i64) -> Result<i64> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

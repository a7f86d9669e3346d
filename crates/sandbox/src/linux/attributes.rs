//! Carries out changes of a file's mode, owner and times for a command, on what it may write.
//!
//! Landlock does not cover these calls: without this, a command could change the mode of every file of its user. The
//! file is found as the command would find it, the kernel is asked for its place, and the change is made on that very
//! file.

use super::kernel::{self, Answer, Question};
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, Timespec, Timestamps, UTIME_NOW, chmod, fstat, open,
    openat2, utimensat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// The set-user-id and set-group-id bits of a file, which no command may set.
const SET_ID: u32 = 0o6000;

/// The greatest length of a path, its byte 0 included.
const PATH_MOST: usize = libc::PATH_MAX as usize;

/// A change that a command asked for.
pub(super) struct Attributes {
    target: Target,
    change: Change,
}

/// A file, as a command names it.
struct Target {
    /// The folder that a relative path starts from, by its number in the command.
    folder: i32,
    /// The address of the path in the memory of the command; without one, `folder` itself is meant.
    path: Option<u64>,
    /// Whether a link at the path's end is followed.
    follow: bool,
}

enum Change {
    Mode(u32),
    /// User and group; with `u32::MAX` each stays as it is.
    Owner(u32, u32),
    Times(Times),
}

/// The address of two times in the memory of the command; 0 means now.
struct Times {
    place: u64,
    unit: Unit,
}

/// The unit of what follows the whole seconds.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), expect(dead_code, reason = "other calls are not there"))]
enum Unit {
    Nothing,
    Microseconds,
    Nanoseconds,
}

/// Returns the change that a call asks for, if it asks for one.
pub(super) fn of(question: &Question) -> Option<Attributes> {
    let at = question.arguments;
    let here = |path| Target::at(libc::AT_FDCWD, path, true);
    let owner = |user: u64, group: u64| Change::Owner(user as u32, group as u32);
    let (target, change) = match question.call {
        libc::SYS_fchmod => (Target::open(at[0]), Change::Mode(at[1] as u32)),
        libc::SYS_fchmodat => (Target::at(at[0] as i32, at[1], true), Change::Mode(at[2] as u32)),
        libc::SYS_fchown => (Target::open(at[0]), owner(at[1], at[2])),
        libc::SYS_fchownat => (Target::flagged(at[0], at[1], at[4]), owner(at[2], at[3])),
        libc::SYS_utimensat if at[1] == 0 => {
            (Target::open(at[0]), Change::times(at[2], Unit::Nanoseconds))
        }
        libc::SYS_utimensat => {
            (Target::flagged(at[0], at[1], at[3]), Change::times(at[2], Unit::Nanoseconds))
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_fchmodat2 => (Target::flagged(at[0], at[1], at[3]), Change::Mode(at[2] as u32)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chmod => (here(at[0]), Change::Mode(at[1] as u32)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_chown => (here(at[0]), owner(at[1], at[2])),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_lchown => (Target::at(libc::AT_FDCWD, at[0], false), owner(at[1], at[2])),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utime => (here(at[0]), Change::times(at[1], Unit::Nothing)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_utimes => (here(at[0]), Change::times(at[1], Unit::Microseconds)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_futimesat => {
            (Target::at(at[0] as i32, at[1], true), Change::times(at[2], Unit::Microseconds))
        }
        _ => return None,
    };
    Some(Attributes { target, change })
}

impl Attributes {
    /// Makes the change, if the file is below one of these folders.
    pub(super) fn make(
        &self,
        question: &Question,
        listener: BorrowedFd<'_>,
        writable: &[PathBuf],
    ) -> Answer {
        match self.try_make(question, listener, writable) {
            Ok(()) => Answer::Done,
            Err(errno) => Answer::Fail(errno.raw_os_error()),
        }
    }

    fn try_make(
        &self,
        question: &Question,
        listener: BorrowedFd<'_>,
        writable: &[PathBuf],
    ) -> Result<(), Errno> {
        let process = Process::of(question)?;
        let times = match &self.change {
            Change::Times(times) => Some(times.read(&process)?),
            _ => None,
        };
        let file = self.target.find(&process, || kernel::waits(listener, question))?;
        let name = format!("/proc/self/fd/{}", file.as_raw_fd());
        let place = fs::read_link(&name).map_err(|_| Errno::PERM)?;
        if !writable.iter().any(|folder| place.starts_with(folder)) {
            return Err(Errno::PERM);
        }
        // This process may have more rights than the command, which must not profit from them.
        let known = fstat(&file)?;
        if known.st_uid != geteuid().as_raw() {
            return Err(Errno::PERM);
        }
        match (&self.change, times) {
            (Change::Mode(mode), _) if mode & SET_ID != 0 => Err(Errno::PERM),
            (Change::Mode(mode), _) => chmod(&name, Mode::from_raw_mode(mode & 0o1777)),
            (Change::Owner(user, group), _) => {
                let stays = |asked: u32, is: u32| asked == u32::MAX || asked == is;
                let same = stays(*user, known.st_uid) && stays(*group, known.st_gid);
                if same { Ok(()) } else { Err(Errno::PERM) }
            }
            (Change::Times(_), Some(times)) => utimensat(CWD, &name, &times, AtFlags::empty()),
            (Change::Times(_), None) => Err(Errno::INVAL),
        }
    }
}

impl Target {
    fn open(file: u64) -> Self {
        Self { folder: file as i32, path: None, follow: true }
    }

    fn at(folder: i32, path: u64, follow: bool) -> Self {
        Self { folder, path: Some(path), follow }
    }

    fn flagged(folder: u64, path: u64, flags: u64) -> Self {
        let follow = flags as i32 & libc::AT_SYMLINK_NOFOLLOW == 0;
        Self::at(folder as i32, path, follow)
    }

    /// Returns the file, if the asking thread was still waiting when everything about it was known.
    fn find(&self, process: &Process, waits: impl Fn() -> bool) -> Result<OwnedFd, Errno> {
        let path = self.path.map(|place| process.path(place)).transpose()?;
        let folder = process.opened(self.folder);
        if !waits() {
            return Err(Errno::SRCH);
        }
        match path {
            // A file given by its number, or a folder given by an empty path.
            None => folder,
            Some(path) if path.is_empty() => folder,
            Some(path) => {
                // For an absolute path, the folder does not matter.
                let folder = if path[0] == b'/' { folder.or_else(|_| root())? } else { folder? };
                let last = if self.follow { OFlags::empty() } else { OFlags::NOFOLLOW };
                let flags = OFlags::PATH | OFlags::CLOEXEC | last;
                // What /proc shows for one process is different for another here.
                openat2(folder, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
            }
        }
    }
}

impl Change {
    fn times(place: u64, unit: Unit) -> Self {
        Self::Times(Times { place, unit })
    }
}

impl Times {
    fn read(&self, process: &Process) -> Result<Timestamps, Errno> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        if self.place == 0 {
            return Ok(Timestamps { last_access: now, last_modification: now });
        }
        let words = if self.unit == Unit::Nothing { 2 } else { 4 };
        let mut bytes = [0; 32];
        let bytes = &mut bytes[..words * 8];
        process.read(self.place, bytes)?;
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at * 8..][..8]);
            i64::from_ne_bytes(word)
        };
        let time = |which: usize| match self.unit {
            Unit::Nothing => Timespec { tv_sec: word(which), tv_nsec: 0 },
            Unit::Microseconds => Timespec {
                tv_sec: word(which * 2),
                tv_nsec: word(which * 2 + 1).saturating_mul(1_000),
            },
            Unit::Nanoseconds => Timespec { tv_sec: word(which * 2), tv_nsec: word(which * 2 + 1) },
        };
        Ok(Timestamps { last_access: time(0), last_modification: time(1) })
    }
}

/// The thread that asked, in `/proc`.
struct Process {
    folder: String,
    memory: File,
}

impl Process {
    fn of(question: &Question) -> Result<Self, Errno> {
        let folder = format!("/proc/{}", question.thread);
        let memory = File::open(format!("{folder}/mem")).map_err(|_| Errno::PERM)?;
        Ok(Self { folder, memory })
    }

    /// The open file with this number, or the working folder.
    fn opened(&self, number: i32) -> Result<OwnedFd, Errno> {
        let name = match number {
            libc::AT_FDCWD => format!("{}/cwd", self.folder),
            number if number >= 0 => format!("{}/fd/{number}", self.folder),
            _ => return Err(Errno::BADF),
        };
        let found = open(name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        found.map_err(|error| if error == Errno::NOENT { Errno::BADF } else { error })
    }

    /// The path at that address, without its byte 0.
    fn path(&self, place: u64) -> Result<Vec<u8>, Errno> {
        /// The smallest page size: memory can be read to the end of the page that it starts on.
        const PAGE: u64 = 4096;
        let mut path = Vec::new();
        while path.len() < PATH_MOST {
            let place = place.wrapping_add(path.len() as u64);
            let mut bytes = [0; PAGE as usize];
            let bytes = &mut bytes[..(PAGE - place % PAGE) as usize];
            self.read(place, bytes)?;
            let end = bytes.iter().position(|byte| *byte == 0);
            path.extend_from_slice(&bytes[..end.unwrap_or(bytes.len())]);
            if end.is_some() {
                return Ok(path);
            }
        }
        Err(Errno::NAMETOOLONG)
    }

    fn read(&self, place: u64, bytes: &mut [u8]) -> Result<(), Errno> {
        self.memory.read_exact_at(bytes, place).map_err(|_| Errno::FAULT)
    }
}

fn root() -> Result<OwnedFd, Errno> {
    open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

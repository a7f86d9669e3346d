//! Reads what a process did to its files, as traced by `strace`.

use crate::{Error, doing};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The system calls that change files or print something. One that the images do not handle is an error.
const CALLS: &str = "open,openat,creat,close,lseek,write,pwrite64,writev,pwritev,ftruncate,fsync,fdatasync,\
    rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,link,linkat,copy_file_range,sendfile,fallocate,dup,\
    dup2,dup3";

/// One action of a process.
pub(super) enum Event {
    Open {
        fd: i32,
        place: Place,
        creates: bool,
        truncates: bool,
        appends: bool,
    },
    Close {
        fd: i32,
    },
    Seek {
        fd: i32,
        to: usize,
    },
    Write {
        fd: i32,
        at: Option<usize>,
        bytes: Vec<u8>,
    },
    Copy {
        from: i32,
        to: i32,
        count: usize,
    },
    Length {
        fd: i32,
        length: usize,
    },
    /// Room is reserved up to `end`.
    Room {
        fd: i32,
        end: usize,
    },
    Sync {
        fd: i32,
    },
    Rename {
        from: Place,
        to: Place,
    },
    Remove {
        place: Place,
    },
    Folder {
        place: Place,
    },
    /// A line on standard output.
    Said(String),
}

/// A path. If it is relative, it is below an open folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) folder: Option<i32>,
    pub(super) path: PathBuf,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { place, .. } => write!(f, "open {}", place.path.display()),
            Self::Close { fd } => write!(f, "close {fd}"),
            Self::Seek { fd, to } => write!(f, "seek {fd} to {to}"),
            Self::Write { fd, at, bytes } => write!(f, "write {} to {fd} at {at:?}", bytes.len()),
            Self::Copy { from, to, count } => write!(f, "copy {count} from {from} to {to}"),
            Self::Length { fd, length } => write!(f, "cut {fd} to {length}"),
            Self::Room { fd, end } => write!(f, "take room for {fd} up to {end}"),
            Self::Sync { fd } => write!(f, "sync {fd}"),
            Self::Rename { from, to } => {
                write!(f, "rename {} to {}", from.path.display(), to.path.display())
            }
            Self::Remove { place } => write!(f, "remove {}", place.path.display()),
            Self::Folder { place } => write!(f, "make the folder {}", place.path.display()),
            Self::Said(line) => write!(f, "say {line:?}"),
        }
    }
}

/// Runs a command, and returns everything that it did.
pub(super) fn of(work: &Command, out: &Path) -> Result<Vec<Event>, Error> {
    let mut strace = Command::new("strace");
    // Strings are complete and in hexadecimal digits, so that no quote in one ends it.
    strace.args(["-f", "-qq", "-xx", "-s", "16777216", "-e", "signal=none", "-e"]);
    strace.arg(format!("trace={CALLS}")).arg("-o").arg(out).arg(work.get_program());
    strace.args(work.get_args()).stdin(Stdio::null()).stdout(Stdio::null());
    let ended = strace.status().map_err(|error| Error::Strace(error.to_string()))?;
    if !ended.success() {
        return Err(Error::Strace(format!("the traced process ended with {ended}")));
    }
    let text = std::fs::read_to_string(out).map_err(doing("read a trace"))?;
    read(&text)
}

fn read(text: &str) -> Result<Vec<Event>, Error> {
    let mut events = Vec::new();
    let mut begun: HashMap<&str, &str> = HashMap::new();
    let mut said = String::new();
    for line in text.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(first) = rest.strip_suffix(" <unfinished ...>") {
            match closed(first) {
                // Its end may be traced after another thread was given the same descriptor.
                Some(fd) => events.push(Event::Close { fd }),
                None => drop(begun.insert(thread, first)),
            }
            continue;
        }
        let whole = match rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
            Some((_, end)) => format!("{}{end}", begun.remove(thread).unwrap_or_default()),
            None => rest.to_owned(),
        };
        let Some(call) = Call::of(&whole) else { continue };
        if call.name == "write" && call.number(0) == Some(1) {
            said.push_str(&String::from_utf8_lossy(&call.strings().concat()));
            while let Some((line, rest)) = said.split_once('\n') {
                events.push(Event::Said(line.to_owned()));
                said = rest.to_owned();
            }
            continue;
        }
        events.extend(call.event()?);
    }
    Ok(events)
}

/// Returns the descriptor that an unfinished call closes.
fn closed(begun: &str) -> Option<i32> {
    begun.strip_prefix("close(")?.parse().ok()
}

/// A call that succeeded.
struct Call<'a> {
    name: &'a str,
    arguments: &'a str,
    result: i64,
}

impl<'a> Call<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (name, rest) = line.split_once('(')?;
        let (arguments, result) = rest.rsplit_once(") ")?;
        let result = result.trim_start().strip_prefix("= ")?;
        let result: i64 = result.split(' ').next()?.parse().ok()?;
        (result >= 0).then_some(Self { name, arguments, result })
    }

    fn event(&self) -> Result<Option<Event>, Error> {
        let fd = || self.number(0).and_then(|fd| i32::try_from(fd).ok());
        let size = |at| self.number(at).and_then(|size| usize::try_from(size).ok());
        let result = usize::try_from(self.result).ok();
        let flags = |flag| self.arguments.contains(flag);
        let event = match self.name {
            "open" | "openat" | "creat" => self.place(0).map(|place| Event::Open {
                fd: self.result as i32,
                place,
                creates: flags("O_CREAT") || self.name == "creat",
                truncates: flags("O_TRUNC") || self.name == "creat",
                appends: flags("O_APPEND"),
            }),
            "close" => fd().map(|fd| Event::Close { fd }),
            "lseek" => fd().zip(result).map(|(fd, to)| Event::Seek { fd, to }),
            "write" | "writev" | "pwrite64" | "pwritev" => {
                let mut bytes = self.strings().concat();
                bytes.truncate(result.unwrap_or(0));
                let at = if self.name.starts_with('p') { self.last() } else { None };
                fd().map(|fd| Event::Write { fd, at, bytes })
            }
            "ftruncate" => fd().zip(size(1)).map(|(fd, length)| Event::Length { fd, length }),
            // Mode 0 is the only one in use here.
            "fallocate" if self.number(1) == Some(0) => {
                let end = size(2).zip(size(3)).map(|(from, count)| from + count);
                fd().zip(end).map(|(fd, end)| Event::Room { fd, end })
            }
            "fsync" | "fdatasync" => fd().map(|fd| Event::Sync { fd }),
            "rename" | "renameat" | "renameat2" => {
                self.place(0).zip(self.place(1)).map(|(from, to)| Event::Rename { from, to })
            }
            "unlink" | "unlinkat" | "rmdir" => self.place(0).map(|place| Event::Remove { place }),
            "mkdir" | "mkdirat" => self.place(0).map(|place| Event::Folder { place }),
            "copy_file_range" => {
                let to = self.number(2).and_then(|to| i32::try_from(to).ok());
                let count = result.filter(|count| *count > 0);
                fd().zip(to).zip(count).map(|((from, to), count)| Event::Copy { from, to, count })
            }
            name => return Err(Error::Strace(format!("the images do not handle the call {name}"))),
        };
        Ok(event)
    }

    /// Returns the argument at this place, if it is a number. In the calls for which this is used, no string comes
    /// before it.
    fn number(&self, at: usize) -> Option<i64> {
        self.arguments.split(", ").nth(at)?.parse().ok()
    }

    /// Returns the last argument.
    fn last(&self) -> Option<usize> {
        self.arguments.rsplit(", ").next()?.parse().ok()
    }

    /// Returns the `nth` path of the call, and the folder that it is below.
    fn place(&self, nth: usize) -> Option<Place> {
        let path = self.strings().into_iter().nth(nth)?;
        let path = PathBuf::from(String::from_utf8(path).ok()?);
        let before = self.arguments.split('"').nth(2 * nth)?;
        let folder = before.trim_end_matches(", ").rsplit(", ").next()?.parse().ok();
        Some(Place { folder: folder.filter(|_| path.is_relative()), path })
    }

    /// Returns the strings among the arguments. Each byte is written as `\x` and two digits.
    fn strings(&self) -> Vec<Vec<u8>> {
        let digits = |text: &str| {
            let bytes = text.split("\\x").skip(1);
            bytes.filter_map(|byte| u8::from_str_radix(byte.get(..2)?, 16).ok()).collect()
        };
        self.arguments.split('"').skip(1).step_by(2).map(digits).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_as_strace_writes_them() {
        let text = r#"
7 openat(AT_FDCWD, "\x2f\x72\x2f\xc3\xa9", O_RDWR|O_CREAT|O_CLOEXEC, 0600) = 3
7 pwrite64(3, "\x00\x22\xff", 3, 4096)  = 3
8 write(4, "\x61\x62\x63" <unfinished ...>
7 fdatasync(3)                      = 0
8 <... write resumed>, 3) = 2
8 close(5 <unfinished ...>
7 openat(AT_FDCWD, "\x2f\x65", O_RDONLY) = 5
8 <... close resumed>) = 0
7 unlinkat(5, "\x62", AT_REMOVEDIR) = 0
7 rename("\x2f\x61", "\x2f\x62")    = -1 ENOENT (No such file or directory)
7 write(1, "\x6b\x0a\x6c", 3)       = 3
7 copy_file_range(3, NULL, 9, NULL, 1073741824, 0) = 12
7 exit_group(0)                     = ?
"#;
        let read: Vec<String> = read(text).unwrap().iter().map(ToString::to_string).collect();
        let expected = [
            "open /r/é",
            "write 3 to 3 at Some(4096)",
            "sync 3",
            "write 2 to 4 at None",
            "close 5",
            "open /e",
            "remove b",
            "say \"k\"",
            "copy 12 from 3 to 9",
        ];
        assert_eq!(read, expected);
        assert!(super::read("7 linkat(3, \"\\x61\", 4, \"\\x62\", 0) = 0\n").is_err());
    }
}

//! What a program tries in order to get out. The test program runs itself for it, inside the sandbox and outside: a
//! test that asks for a scene becomes the probe that the environment names.
#![expect(unsafe_code, reason = "a program that wants out calls the kernel as it likes")]

use crate::scene::REFUSED;
use foldback_sandbox::{Command, KilledBy, Limits, Sandbox};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::CommandExt;
use std::ptr::{null, null_mut};
use std::time::Duration;

/// The arguments with which the test program becomes a probe; any test with a scene would do.
pub(crate) const AS_PROBE: [&str; 3] =
    ["--exact", "commands::nothing_is_left_of_a_run", "--nocapture"];

/// Ends this process with the attempt of a probe, if the environment names one.
pub(crate) fn attempt_if_asked() {
    let (Ok(name), Ok(about)) = (std::env::var("FOLDBACK_PROBE"), std::env::var("FOLDBACK_ABOUT"))
    else {
        return;
    };
    let code = match attempt(&name, &about) {
        Ok(()) => 0,
        Err(error) => {
            println!("{name}: {error}");
            REFUSED
        }
    };
    std::process::exit(code);
}

fn attempt(name: &str, about: &str) -> Result<()> {
    let number = || about.parse::<i32>().unwrap();
    match name {
        "read" => fs::read(about).map(drop),
        "list" => fs::read_dir(about).map(drop),
        "write" => fs::write(about, "changed"),
        "append" => OpenOptions::new().append(true).open(about)?.write_all(b"changed"),
        "remove" => fs::remove_file(about),
        "truncate" => called(unsafe { libc::truncate(text(about).as_ptr(), 3) }.into()),
        "chmod" => fs::set_permissions(about, fs::Permissions::from_mode(0o640)),
        "touch" => {
            let times = [libc::timespec { tv_sec: 1_000_000, tv_nsec: 0 }; 2];
            let path = text(about);
            let (here, times) = (libc::AT_FDCWD, times.as_ptr());
            called(unsafe { libc::utimensat(here, path.as_ptr(), times, 0) }.into())
        }
        "fchmod" => File::open(about)?.set_permissions(fs::Permissions::from_mode(0o640)),
        "attribute" => {
            let (path, name) = (text(about), text("user.foldback"));
            let value = b"1";
            called(
                unsafe {
                    libc::setxattr(path.as_ptr(), name.as_ptr(), value.as_ptr().cast(), 1, 0)
                }
                .into(),
            )
        }
        "set-id" => made_with_set_id(about),
        "hard-link" => {
            fs::hard_link(about, "linked")?;
            fs::write("linked", "changed")
        }
        "symlink" => {
            let _ = fs::remove_file("soft");
            std::os::unix::fs::symlink(about, "soft")?;
            fs::write("soft", "changed")
        }
        "move-out" => {
            fs::write("mine", "changed")?;
            fs::rename("mine", about)
        }
        "move-in" => fs::rename(about, "stolen"),
        "watch" => unsafe {
            let watch = libc::inotify_init1(0);
            called(libc::inotify_add_watch(watch, text(about).as_ptr(), libc::IN_CREATE).into())
        },
        "memory" => {
            let mut byte = [0];
            let maps = fs::read_to_string(format!("/proc/{about}/maps"))?;
            let place = u64::from_str_radix(maps.split('-').next().unwrap(), 16).unwrap();
            let memory = File::open(format!("/proc/{about}/mem"))?;
            std::os::unix::fs::FileExt::read_at(&memory, &mut byte, place).map(drop)
        }
        "tcp" => TcpStream::connect(about).map(drop),
        "udp" => UdpSocket::bind("127.0.0.1:0")?.send_to(b"hello", about).map(drop),
        "serve" => TcpListener::bind("127.0.0.1:0").map(drop),
        "unix" => UnixStream::connect(about).map(drop),
        "abstract" => UnixStream::connect_addr(&SocketAddr::from_abstract_name(about)?).map(drop),
        "pair" => sent_beside_a_pair(about),
        "netlink" => socket(libc::AF_NETLINK, libc::SOCK_RAW),
        "raw" => socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC),
        "ptrace" => unsafe {
            let nothing = null_mut::<libc::c_void>();
            called(libc::ptrace(libc::PTRACE_SEIZE, number(), nothing, nothing))
        },
        "peek" => unsafe {
            let mut byte = 0_u8;
            let maps = format!("/proc/{about}/maps");
            // Inside the map cannot be read; the call is what counts.
            let maps = fs::read_to_string(maps).unwrap_or_else(|_| "400000-".to_owned());
            let place = usize::from_str_radix(maps.split('-').next().unwrap(), 16).unwrap();
            let here = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
            let there = libc::iovec { iov_base: place as *mut _, iov_len: 1 };
            called(
                libc::process_vm_readv(number(), &raw const here, 1, &raw const there, 1, 0) as i64
            )
        },
        "signal" => called(unsafe { libc::kill(number(), libc::SIGCONT) }.into()),
        "kill" => called(unsafe { libc::kill(number(), libc::SIGKILL) }.into()),
        "limit" => unsafe {
            let limit = libc::rlimit { rlim_cur: 1_000, rlim_max: 1_000 };
            called(libc::prlimit(number(), libc::RLIMIT_CPU, &raw const limit, null_mut()).into())
        },
        "slow-down" => {
            let who = number() as libc::id_t;
            called(unsafe { libc::setpriority(libc::PRIO_PROCESS, who, 19) }.into())
        }
        "inherited" => {
            let mut text = String::new();
            File::open(format!("/proc/self/fd/{about}"))?.read_to_string(&mut text)?;
            called(unsafe { libc::fcntl(number(), libc::F_GETFD) }.into())
        }
        "capabilities" => held_capabilities(),
        "mount" => mounted(about),
        "unshare" => called(unsafe { libc::unshare(libc::CLONE_NEWNS) }.into()),
        "user-namespace" => in_a_new_process(|| unsafe { libc::unshare(libc::CLONE_NEWUSER) }),
        "chroot" => called(unsafe { libc::chroot(text(about).as_ptr()) }.into()),
        "keyring" => unsafe {
            let (kind, name) = (text("user"), text("foldback"));
            let process = -2_i64;
            let key = libc::syscall(
                libc::SYS_add_key,
                kind.as_ptr(),
                name.as_ptr(),
                b"1".as_ptr(),
                1_usize,
                process,
            );
            called(key)
        },
        "io-uring" => unsafe {
            let mut parameters = [0_u8; 256];
            called(libc::syscall(libc::SYS_io_uring_setup, 4, parameters.as_mut_ptr()))
        },
        "bpf" => unsafe {
            // BPF_MAP_CREATE: an array of one entry, key and value of 4 bytes.
            let mut attributes = [0_u32; 32];
            attributes[..4].copy_from_slice(&[2, 4, 4, 1]);
            called(libc::syscall(libc::SYS_bpf, 0, attributes.as_ptr(), size_of_val(&attributes)))
        },
        "shared-memory" => unsafe {
            let id = libc::shmget(libc::IPC_PRIVATE, 4096, 0o600);
            called(id.into())?;
            called(libc::shmctl(id, libc::IPC_RMID, null_mut()).into())
        },
        "seccomp" => unsafe {
            // A filter of its own, with which it could answer itself.
            let mut allow =
                [libc::sock_filter { code: 6, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW }];
            let program = libc::sock_fprog { len: 1, filter: allow.as_mut_ptr() };
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
            called(libc::syscall(libc::SYS_seccomp, 1, flags, &raw const program))
        },
        "clone3" => unsafe {
            let mut arguments = [0_u64; 8];
            arguments[0] = libc::CLONE_NEWUSER as u64;
            arguments[4] = libc::SIGCHLD as u64;
            let size = size_of_val(&arguments);
            let made = libc::syscall(libc::SYS_clone3, arguments.as_mut_ptr(), size);
            if made == 0 {
                libc::_exit(0);
            }
            called(made)
        },
        "clone" => started_with(number() as u64),
        "forbidden" => forbidden(about),
        "change-flags" => file_flags(about),
        "change-version" => file_version(about),
        "lease" => controlled(about, libc::F_SETLEASE, libc::F_RDLCK),
        "notify" => {
            const DN_CREATE: i32 = 4;
            // It tells by a signal that would end this program.
            unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
            controlled(about, libc::F_NOTIFY, DN_CREATE)
        }
        "allocate-undumpable" => {
            called(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) }.into())?;
            allocated(number() as usize, libc::MAP_SHARED)
        }
        "allocate-headless" => headless(number() as usize),
        "execute" => {
            std::thread::spawn(|| std::thread::sleep(Duration::from_secs(600)));
            Err(std::process::Command::new("echo").arg("ran").exec())
        }
        "deep" => (0..number()).try_for_each(|_| {
            fs::create_dir("深")?;
            std::env::set_current_dir("深")?;
            fs::write("file", "")
        }),
        "fork" => forked(number()),
        "threads" => threads(number()),
        "allocate" => allocated(number() as usize, libc::MAP_PRIVATE),
        "allocate-shared" => allocated(number() as usize, libc::MAP_SHARED),
        "hold" => {
            let _held = vec![1_u8; (number() as usize) << 20];
            fs::write(format!("held-{}", std::process::id()), "")?;
            std::thread::sleep(Duration::from_secs(600));
            Ok(())
        }
        "fill" => filled(about),
        "host" => {
            let exe = std::env::current_exe().unwrap();
            let limits = Limits { time: Duration::from_secs(600), ..Limits::default() };
            let sandbox = Sandbox::new().read_system().read(exe).write(".").limits(limits);
            let script = "(setsid setsid sleep 600 &); touch ready; sleep 600";
            let command = Command::new("sh").args(["-c", script]).folder(about);
            sandbox.run(&command).map(drop).map_err(Error::other)
        }
        _ => panic!("nothing is known of the probe {name}"),
    }
}

/// A process that is started with these bits of `clone`. If it is, it lives in the workspace for long.
fn started_with(bits: u64) -> Result<()> {
    unsafe {
        let flags = bits | libc::SIGCHLD as u64;
        let started = libc::syscall(libc::SYS_clone, flags, 0_usize, 0_usize, 0_usize, 0_usize);
        if started == 0 {
            libc::setsid();
            libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
            libc::sleep(600);
            libc::_exit(0);
        }
        called(started)
    }
}

/// Whether commands can be sandboxed when this call is forbidden.
fn forbidden(call: &str) -> Result<()> {
    let call = match call {
        "ptrace" => libc::SYS_ptrace,
        "seccomp" => libc::SYS_seccomp,
        "landlock_restrict_self" => libc::SYS_landlock_restrict_self,
        _ => panic!("nothing is known of the call {call}"),
    };
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        // The number of the call; is it this one? Then EPERM.
        step(0x20, 0, 0, 0),
        step(0x15, 0, 1, call as u32),
        step(0x06, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    unsafe {
        called(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0).into())?;
        let mode = libc::SECCOMP_MODE_FILTER;
        called(libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program).into())?;
    }
    Sandbox::available().map_err(Error::other)
}

/// Changes a harmless flag of a file through a file that was opened for reading.
fn file_flags(path: &str) -> Result<()> {
    const NO_DUMP: libc::c_long = 0x40;
    let (file, mut flags) = (File::open(path)?, 0);
    unsafe {
        called(libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETFLAGS, &raw mut flags).into())?;
        flags ^= NO_DUMP;
        called(libc::ioctl(file.as_raw_fd(), libc::FS_IOC_SETFLAGS, &raw const flags).into())
    }
}

fn file_version(path: &str) -> Result<()> {
    let (file, version) = (File::open(path)?, 12_345 as libc::c_long);
    let request = libc::FS_IOC_SETVERSION;
    called(unsafe { libc::ioctl(file.as_raw_fd(), request, &raw const version) }.into())
}

fn controlled(path: &str, request: i32, about: i32) -> Result<()> {
    let file = File::open(path)?;
    called(unsafe { libc::fcntl(file.as_raw_fd(), request, about) }.into())
}

/// Memory that is held by a process whose first thread is gone.
fn headless(mebibytes: usize) -> Result<()> {
    let mut status = 0;
    unsafe {
        let child = libc::fork();
        called(child.into())?;
        if child == 0 {
            std::thread::spawn(move || {
                let taken = allocated(mebibytes, libc::MAP_SHARED);
                libc::_exit(taken.map_or(1, |()| 0));
            });
            // Of this thread alone.
            libc::syscall(libc::SYS_exit, 0);
        }
        called(libc::waitpid(child, &raw mut status, 0).into())?;
    }
    if status == 0 { Ok(()) } else { Err(Error::other(format!("status {status}"))) }
}

fn called(result: i64) -> Result<()> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(()) }
}

fn text(text: &str) -> CString {
    CString::new(text).unwrap()
}

fn socket(family: i32, kind: i32) -> Result<()> {
    called(
        unsafe { libc::socket(family, kind, libc::IPPROTO_ICMP * i32::from(family == 2)) }.into(),
    )
}

/// A file that would run with its owner's rights, by either way.
fn made_with_set_id(path: &str) -> Result<()> {
    let born = OpenOptions::new().create_new(true).write(true).mode(0o4755).open(path);
    if born.is_ok() && fs::metadata(path)?.permissions().mode() & 0o4000 != 0 {
        return fs::remove_file(path);
    }
    fs::write(path, "")?;
    let changed = fs::set_permissions(path, fs::Permissions::from_mode(0o4755));
    fs::remove_file(path)?;
    changed
}

/// A socket of a pair is not a way to a socket elsewhere.
fn sent_beside_a_pair(path: &str) -> Result<()> {
    let mut pair = [0; 2];
    let kind = libc::SOCK_DGRAM;
    called(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) }.into())?;
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as u16;
    for (place, byte) in address.sun_path.iter_mut().zip(path.bytes()) {
        *place = byte as libc::c_char;
    }
    let (address, size) = ((&raw const address).cast(), size_of_val(&address) as u32);
    let sent = unsafe { libc::sendto(pair[0], b"hello".as_ptr().cast(), 5, 0, address, size) };
    called(sent as i64)
}

fn held_capabilities() -> Result<()> {
    let header = [0x2008_0522_u32, 0];
    let mut sets = [0_u32; 6];
    called(unsafe { libc::syscall(libc::SYS_capget, header.as_ptr(), sets.as_mut_ptr()) })?;
    let bounding = (0..64).any(|c| unsafe { libc::prctl(libc::PR_CAPBSET_READ, c, 0, 0, 0) } == 1);
    let may_gain = unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } == 0;
    match (sets, bounding && may_gain) {
        ([0, 0, 0, 0, 0, 0], false) => Err(Error::from(ErrorKind::PermissionDenied)),
        _ => Ok(()),
    }
}

/// In a namespace of its own, if possible, so that nothing stays mounted.
fn mounted(path: &str) -> Result<()> {
    let (path, kind, root) = (text(path), text("tmpfs"), text("/"));
    unsafe {
        if libc::unshare(libc::CLONE_NEWNS) == 0 {
            let private = libc::MS_REC | libc::MS_PRIVATE;
            called(libc::mount(null(), root.as_ptr(), null(), private, null()).into())?;
        }
        let kind = kind.as_ptr();
        called(libc::mount(kind, path.as_ptr(), kind, 0, null()).into())
    }
}

fn in_a_new_process(what: impl Fn() -> i32) -> Result<()> {
    let mut status = 0;
    unsafe {
        let child = libc::fork();
        called(child.into())?;
        if child == 0 {
            let code = if what() < 0 { *libc::__errno_location() } else { 0 };
            libc::_exit(code);
        }
        called(libc::waitpid(child, &raw mut status, 0).into())?;
    }
    match libc::WEXITSTATUS(status) {
        0 => Ok(()),
        errno => Err(Error::from_raw_os_error(errno)),
    }
}

/// That many processes at once.
fn forked(count: i32) -> Result<()> {
    let mut made = Vec::new();
    let mut failed = None;
    for _ in 0..count {
        match unsafe { libc::fork() } {
            0 => unsafe {
                libc::pause();
                libc::_exit(0);
            },
            child if child < 0 => {
                failed = Some(Error::last_os_error());
                break;
            }
            child => made.push(child),
        }
    }
    println!("processes: {}", made.len());
    for child in made {
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, null_mut(), 0);
        }
    }
    failed.map_or(Ok(()), Err)
}

/// Whether a command is ended that takes the space that is left, and one that takes little is not.
fn filled(folder: &str) -> Result<()> {
    let at = rustix::fs::statvfs(folder)?;
    let free_bytes = (at.f_bavail * at.f_frsize).saturating_sub(4 << 20);
    let limits = Limits { free_bytes, ..Limits::default() };
    let sandbox = Sandbox::new().read_system().write(folder).limits(limits);
    let run = |files: u32| {
        let script = format!(
            "i=0; while [ $i -lt {files} ]; do head -c 500000 /dev/zero > $i || exit; \
             i=$((i + 1)); done; sleep 0.3"
        );
        sandbox.run(&Command::new("sh").args(["-c", &script]).folder(folder).joined())
    };
    let little = run(2).map_err(Error::other)?;
    let much = run(24).map_err(Error::other)?;
    match (little.killed_by, much.killed_by) {
        (None, Some(KilledBy::Disk)) => Ok(()),
        other => Err(Error::other(format!("{other:?}"))),
    }
}

/// That many threads at once.
fn threads(count: i32) -> Result<()> {
    let mut made = 0;
    for _ in 0..count {
        std::thread::Builder::new().spawn(|| std::thread::sleep(Duration::from_secs(600)))?;
        made += 1;
        println!("threads: {made}");
    }
    Ok(())
}

/// That many MiB, each page of them written to.
fn allocated(mebibytes: usize, kind: i32) -> Result<()> {
    let size = mebibytes << 20;
    let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, kind | libc::MAP_ANONYMOUS);
    let place = unsafe { libc::mmap(null_mut(), size, protection, kind, -1, 0) };
    if place == libc::MAP_FAILED {
        return Err(Error::last_os_error());
    }
    for page in (0..size).step_by(4096) {
        unsafe { place.cast::<u8>().add(page).write_volatile(1) };
    }
    // As much as it takes until the limits are checked.
    std::thread::sleep(Duration::from_millis(500));
    Ok(())
}

//! S13: what a command may not do, each beside a control that the same works without a sandbox (where
//! that harms nobody and the user of the test has the right to it).

use crate::probe::AS_PROBE;
use crate::scene::{Bystander, REFUSED, Scene, clear, processes_in, wait_until, words};
use foldback_sandbox::{Command, KilledBy, Limits};
use std::cell::RefCell;
use std::fs::{self, File};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::ExitStatusExt;
use std::process::{self, Stdio};

/// S13: one escape: its number, its name, and what happens in a scene.
macro_rules! escapes {
    ($($(#[$doc:meta])* $name:ident = |$scene:ident| $body:block)*) => {
        $($(#[$doc])* #[test] fn $name() {
            let Some($scene) = Scene::new(stringify!($name)) else { return };
            $body
        })*
    };
}

escapes! {
    /// S13: the passwords of the system.
    s13_01_reads_shadow = |scene| {
        scene.refuses_with_right("read", "/etc/shadow");
    }

    /// S13: files and folders of the same user.
    s13_02_reads_the_users_files = |scene| {
        scene.refuses("read", scene.secret());
        scene.refuses("list", scene.outside.path());
    }

    /// S13: a new file outside.
    s13_03_writes_outside = |scene| {
        scene.refuses("write", scene.outside.path().join("new.txt"));
        scene.refuses("append", scene.secret());
    }

    /// S13: a path that begins in the workspace and leaves it.
    s13_04_climbs_out = |scene| {
        let name = scene.outside.path().file_name().unwrap().to_str().unwrap();
        scene.refuses("write", format!("../{name}/secret.txt"));
        scene.refuses("read", format!("../{name}/../{name}/secret.txt"));
    }

    /// S13: a link in the workspace to a file outside.
    s13_05_follows_a_link_out = |scene| {
        scene.refuses("symlink", scene.secret());
        assert_eq!(fs::read_to_string(scene.secret()).unwrap(), "changed", "by the control alone");
    }

    /// S13: a second name in the workspace for a file outside.
    s13_06_links_a_file_in = |scene| {
        scene.refuses("hard-link", scene.secret());
    }

    /// S13: files carried over the border, either way.
    s13_07_moves_over_the_border = |scene| {
        scene.refuses("move-out", scene.outside.path().join("moved"));
        fs::write(scene.outside.path().join("other"), "").unwrap();
        fs::remove_file(scene.workspace.path().join("mine")).unwrap();
        let control = scene.probe_outside("move-in", scene.outside.path().join("other"));
        assert!(control.status.success());
        let inside = scene.probe(&scene.sandbox(), "move-in", scene.secret());
        assert_eq!(inside.status.code(), Some(REFUSED));
        assert!(scene.secret().exists());
    }

    /// S13: a file outside cut short or removed.
    s13_08_cuts_or_removes = |scene| {
        scene.refuses("truncate", scene.secret());
        let spare = scene.outside.path().join("spare");
        fs::write(&spare, "").unwrap();
        let control = scene.probe_outside("remove", spare);
        assert!(control.status.success());
        let inside = scene.probe(&scene.sandbox(), "remove", scene.secret());
        assert_eq!(inside.status.code(), Some(REFUSED));
        assert!(scene.secret().exists());
    }

    /// S13: mode and times of a file outside, which Landlock alone does not hold.
    s13_09_changes_mode_or_times = |scene| {
        for name in ["chmod", "touch"] {
            scene.refuses(name, scene.secret());
        }
        scene.refuses_with_right("attribute", scene.secret());
        // Through a link, and on a file that may be read.
        let sandbox = scene.sandbox().read(scene.outside.path());
        fs::set_permissions(scene.secret(), fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(scene.secret(), scene.workspace.path().join("link")).unwrap();
        for (name, about) in [("chmod", "link"), ("fchmod", "link"), ("touch", "link")] {
            let inside = scene.probe(&sandbox, name, about);
            assert_eq!(inside.status.code(), Some(REFUSED), "{name}: {}", inside.stdout.text());
        }
        let after = fs::metadata(scene.secret()).unwrap();
        assert_eq!(after.mode() & 0o777, 0o600);
        // In the workspace it works.
        fs::write(scene.workspace.path().join("mine"), "").unwrap();
        for name in ["chmod", "fchmod", "touch"] {
            let inside = scene.probe(&scene.sandbox(), name, "mine");
            assert_eq!(inside.status.code(), Some(0), "{name}: {}", inside.stdout.text());
        }
        let mine = fs::metadata(scene.workspace.path().join("mine")).unwrap();
        assert_eq!((mine.mode() & 0o777, mine.mtime()), (0o640, 1_000_000));
    }

    /// S13: a program left behind that runs with its owner's rights.
    s13_10_leaves_a_set_id_program = |scene| {
        scene.refuses("set-id", scene.workspace.path().join("owned"));
    }

    /// S13: memory and environment of a process outside.
    s13_11_reads_memory_of_others = |scene| {
        let bystander = Bystander::new();
        scene.refuses("memory", bystander.id());
        scene.refuses("read", format!("/proc/{}/environ", bystander.id()));
        let host = process::id();
        let inside = scene.probe(&scene.sandbox().read("/proc"), "read", format!("/proc/{host}/environ"));
        assert_eq!(inside.status.code(), Some(REFUSED), "even where /proc may be read");
    }

    /// S13: a server of this machine or another, by TCP.
    s13_12_connects_by_tcp = |scene| {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap().to_string();
        scene.refuses("tcp", &address);
        let inside = scene.probe(&scene.sandbox().allow_network(true), "tcp", &address);
        assert_eq!(inside.status.code(), Some(0), "where it was allowed: {}", inside.stdout.text());
    }

    /// S13: a datagram: a name server is asked so.
    s13_13_sends_by_udp = |scene| {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        scene.refuses("udp", server.local_addr().unwrap().to_string());
    }

    /// S13: a server for others.
    s13_14_serves = |scene| {
        scene.refuses("serve", "");
    }

    /// S13: a UNIX socket by its path: of a container engine, an agent of keys, a desktop.
    s13_15_connects_to_a_unix_socket = |scene| {
        let path = scene.workspace.path().join("socket");
        let _server = UnixListener::bind(&path).unwrap();
        scene.refuses("unix", &path);
        let inside = scene.probe(&scene.sandbox().allow_network(true), "unix", &path);
        assert_eq!(inside.status.code(), Some(REFUSED), "with the network too");
    }

    /// S13: a UNIX socket without a path.
    s13_16_connects_to_an_abstract_socket = |scene| {
        let name = format!("foldback-{}", process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _server = UnixListener::bind_addr(&address).unwrap();
        scene.refuses("abstract", name);
    }

    /// S13: half of a connected pair, used as a way elsewhere.
    s13_17_sends_beside_a_pair = |scene| {
        let path = scene.workspace.path().join("datagrams");
        let _server = UnixDatagram::bind(&path).unwrap();
        scene.refuses("pair", &path);
    }

    /// S13: sockets to the kernel, and raw ones.
    s13_18_opens_netlink_or_raw_sockets = |scene| {
        scene.refuses("netlink", "");
        scene.refuses_with_right("raw", "");
        let inside = scene.probe(&scene.sandbox().allow_network(true), "netlink", "");
        assert_eq!(inside.status.code(), Some(REFUSED), "with the network too");
    }

    /// S13: another process, traced or peeked into.
    s13_19_traces = |scene| {
        let bystander = Bystander::new();
        scene.refuses_with_right("ptrace", bystander.id());
        scene.refuses_with_right("peek", bystander.id());
    }

    /// S13: a fork bomb, also as root, whom no limit of the kernel binds.
    s13_20_forks_without_end = |scene| {
        let limits = Limits { processes: 24, ..Limits::default() };
        let sandbox = scene.sandbox().limits(limits);
        assert_eq!(scene.probe_outside("fork", "60").status.code(), Some(0));
        let few = scene.probe(&sandbox, "fork", "10");
        assert_eq!((few.status.code(), few.killed_by), (Some(0), None));
        let inside = scene.probe(&sandbox, "fork", "60");
        assert_eq!(inside.killed_by, Some(KilledBy::Processes));
        // Each process of the bomb starts two, in sessions of their own.
        let bomb = "setsid sh bomb.sh & setsid sh bomb.sh & sleep 600";
        fs::write(scene.workspace.path().join("bomb.sh"), bomb).unwrap();
        let inside = scene.sh(&sandbox, "sh bomb.sh");
        assert_eq!(inside.killed_by, Some(KilledBy::Processes), "{}", inside.stdout.text());
        assert_eq!(processes_in(scene.workspace.path()), Vec::<u32>::new());
        // A chain of which no two live long beside each other.
        let chain = "echo $((${1:-0} + 1)) > links; setsid sh chain.sh $((${1:-0} + 1)) & exit";
        fs::write(scene.workspace.path().join("chain.sh"), chain).unwrap();
        let links = "sh chain.sh; while [ $(cat links) -lt 50 ] 2>/dev/null; do :; done";
        let inside = scene.sh(&sandbox, links);
        assert_eq!(inside.killed_by, None, "{}", inside.stdout.text());
        assert_eq!(processes_in(scene.workspace.path()), Vec::<u32>::new());
    }

    /// S13: threads without end.
    s13_21_starts_threads_without_end = |scene| {
        assert_eq!(scene.probe_outside("threads", "60").status.code(), Some(0));
        let sandbox = scene.sandbox().limits(Limits { processes: 24, ..Limits::default() });
        assert_eq!(scene.probe(&sandbox, "threads", "10").status.code(), Some(0));
        let inside = scene.probe(&sandbox, "threads", "60");
        assert_eq!(inside.killed_by, Some(KilledBy::Processes));
        assert!(!inside.stdout.text().contains("threads: 24"), "{}", inside.stdout.text());
    }

    /// S13: a file that was open when the command was started.
    s13_22_uses_an_open_file = |scene| {
        let secret = File::open(scene.secret()).unwrap();
        // A second number for it, which children inherit.
        let inherited = rustix::io::dup(&secret).unwrap();
        let number = inherited.as_raw_fd().to_string();
        scene.refuses("inherited", &number);
        let inside = scene.sh(&scene.sandbox(), &format!("cat <&{number}"));
        assert!(!inside.status.success());
        assert!(!inside.stdout.text().contains("secret"));
    }

    /// S13: the environment, in which keys stand.
    s13_23_reads_the_environment = |scene| {
        let held: Vec<_> = std::env::vars().map(|(name, _)| name).collect();
        assert!(held.len() > 3, "there is something to hide");
        let control = String::from_utf8(scene.sh_outside("env").stdout).unwrap();
        assert!(held.iter().any(|name| control.contains(&format!("{name}="))));
        let inside = scene.sh(&scene.sandbox().env("GIVEN", "值"), "env").stdout.text();
        let mut names: Vec<_> = inside.lines().filter_map(|l| Some(l.split_once('=')?.0)).collect();
        names.sort_unstable();
        // The shell sets the folder that it is in.
        assert_eq!(names, ["GIVEN", "HOME", "PATH", "PWD", "TMPDIR"]);
    }

    /// S13: more output than anybody wants to keep.
    s13_24_writes_a_gigabyte_of_output = |scene| {
        const GIGABYTE: u64 = 1_000_000_000;
        let script = format!("yes 天 | head -c {GIGABYTE}");
        let limits = Limits { output_bytes: 1_000, ..Limits::default() };
        let inside = scene.sh(&scene.sandbox().limits(limits), &script);
        assert!(inside.status.success() && inside.truncated());
        assert_eq!(inside.stdout.bytes().len(), 1_000);
        assert_eq!(inside.stdout.omitted(), GIGABYTE - 1_000, "all of it was written");
    }

    /// S13: memory without end, in one process and in shared pages.
    s13_25_takes_memory_without_end = |scene| {
        let limits = Limits { memory: 128 << 20, ..Limits::default() };
        let sandbox = scene.sandbox().limits(limits);
        for name in ["allocate", "allocate-shared"] {
            assert_eq!(scene.probe_outside(name, "400").status.code(), Some(0));
            let small = scene.probe(&sandbox, name, "32");
            assert_eq!(small.status.code(), Some(0), "{name}: {}", small.stdout.text());
        }
        let inside = scene.probe(&sandbox, "allocate", "400");
        assert_eq!(inside.status.code(), Some(REFUSED));
        let inside = scene.probe(&sandbox, "allocate-shared", "400");
        assert_eq!(inside.killed_by, Some(KilledBy::Memory), "{}", inside.stdout.text());
    }

    /// S13: memory without end, by many processes that each take little.
    s13_26_takes_memory_by_many = |scene| {
        let exe = std::env::current_exe().unwrap();
        let six = format!(
            "for i in 1 2 3 4 5 6; do FOLDBACK_PROBE=hold FOLDBACK_ABOUT=48 \
             {} {} & done; \
             while [ $(ls held-* 2>/dev/null | wc -l) -lt 6 ]; do sleep 0.02; done",
            exe.display(),
            AS_PROBE.join(" ")
        );
        let enough = Limits { memory: 2 << 30, ..Limits::default() };
        let control = scene.sh(&scene.sandbox().limits(enough), &six);
        assert_eq!((control.status.code(), control.killed_by), (Some(0), None));
        let little = Limits { memory: 160 << 20, ..Limits::default() };
        let inside = scene.sh(&scene.sandbox().limits(little), &format!("rm held-*; {six}; sleep 60"));
        assert_eq!(inside.killed_by, Some(KilledBy::Memory), "{}", inside.stdout.text());
    }

    /// S13: the disk filled, by one file or by many.
    s13_27_fills_the_disk = |scene| {
        let one = "head -c 3000000 /dev/zero > large";
        assert!(scene.sh_outside(one).status.success());
        let limits = Limits { file_bytes: 1_000_000, ..Limits::default() };
        let inside = scene.sh(&scene.sandbox().limits(limits), one);
        assert!(!inside.status.success());
        assert_eq!(fs::metadata(scene.workspace.path().join("large")).unwrap().len(), 1_000_000);
        // A file system of which others take little, while this happens.
        let Ok(small) = tempfile::tempdir_in("/dev/shm") else {
            println!("SKIPPED s13_27 by many: there is no /dev/shm");
            return;
        };
        let mut host = scene.probe_command("fill", small.path());
        // There is its temporary folder too: no other disk counts.
        let host = host.env("TMPDIR", small.path()).output().unwrap();
        assert_eq!(host.status.code(), Some(0), "{}", words(&host));
    }

    /// S13: a signal to who started it, or to anybody.
    s13_28_signals_others = |scene| {
        scene.refuses("signal", process::id().to_string());
        let (mut one, other) = (Bystander::new(), Bystander::new());
        let inside = scene.probe(&scene.sandbox(), "kill", one.id());
        assert_eq!(inside.status.code(), Some(REFUSED));
        assert!(one.lives());
        assert!(scene.probe_outside("kill", other.id()).status.success());
        // It is gone, or on its way.
        let other = RefCell::new(other);
        wait_until(|| !other.borrow_mut().lives());
    }

    /// S13: another process bound or slowed until it is as good as dead.
    s13_29_limits_others = |scene| {
        let bystander = Bystander::new();
        scene.refuses("slow-down", bystander.id());
        scene.refuses("limit", bystander.id());
    }

    /// S13: root's rights, kept or regained by a set-user-id program.
    s13_30_keeps_capabilities = |scene| {
        scene.refuses("capabilities", "");
        // Needs no right but a set-user-id bit, where there is such a program.
        let inside = scene.sh(&scene.sandbox(), "su -c id nobody </dev/null");
        assert!(!inside.status.success(), "{}", inside.stdout.text());
    }

    /// S13: another view of the file system.
    s13_31_mounts = |scene| {
        scene.refuses_with_right("mount", scene.workspace.path());
    }

    /// S13: namespaces, in which there are new rights, by each call that makes one.
    s13_32_makes_namespaces = |scene| {
        for name in ["unshare", "user-namespace", "clone3"] {
            scene.refuses_with_right(name, "");
        }
    }

    /// S13: another root.
    s13_33_changes_root = |scene| {
        scene.refuses_with_right("chroot", scene.workspace.path());
    }

    /// S13: devices: the kernel's log, disks, the terminal, memory that all share.
    s13_34_opens_devices = |scene| {
        scene.refuses_with_right("read", "/dev/tty");
        scene.refuses_with_right("list", "/dev");
        let shared = format!("/dev/shm/foldback-{}", process::id());
        scene.refuses_with_right("write", &shared);
        let _ = fs::remove_file(shared);
    }

    /// S13: keys that the kernel keeps.
    s13_35_uses_the_keyring = |scene| {
        scene.refuses_with_right("keyring", "");
    }

    /// S13: ways into the kernel that ordinary programs do not need.
    s13_36_uses_io_uring_or_bpf = |scene| {
        scene.refuses_with_right("io-uring", "");
        scene.refuses_with_right("bpf", "");
    }

    /// S13: memory that belongs to nobody, and stays.
    s13_37_shares_memory = |scene| {
        scene.refuses_with_right("shared-memory", "");
    }

    /// S13: a filter of its own, which would be asked before the sandbox.
    s13_38_answers_itself = |scene| {
        scene.refuses("seccomp", "");
    }

    /// S13: what happens in a folder outside.
    s13_39_watches_outside = |scene| {
        scene.refuses("watch", scene.outside.path());
    }

    /// S13: a daemon that outlives the command: in a session of its own, deaf to signals, its parents dead.
    s13_40_leaves_a_daemon = |scene| {
        let script = "(trap '' HUP TERM; setsid setsid sh -c 'trap \"\" HUP TERM; touch up; sleep 600' \
                      </dev/null >/dev/null 2>&1 &); while ! [ -e up ]; do sleep 0.01; done";
        assert!(scene.sh_outside(script).status.success());
        assert!(clear(scene.workspace.path()), "outside it lives");
        fs::remove_file(scene.workspace.path().join("up")).unwrap();
        let inside = scene.sh(&scene.sandbox(), script);
        assert!(inside.status.success(), "{}", inside.stdout.text());
        assert_eq!(processes_in(scene.workspace.path()), Vec::<u32>::new());
    }

    /// S13: a command whose starter was killed.
    s13_41_outlives_its_starter = |scene| {
        let mut host = scene.probe_command("host", scene.workspace.path());
        // What a starter that is killed cannot remove goes with the workspace.
        host.env("TMPDIR", scene.workspace.path()).stdout(Stdio::null());
        let mut host = host.spawn().unwrap();
        wait_until(|| scene.workspace.path().join("ready").exists());
        assert!(processes_in(scene.workspace.path()).len() >= 3);
        host.kill().unwrap();
        host.wait().unwrap();
        wait_until(|| processes_in(scene.workspace.path()).is_empty());
    }

    /// S13: the system calls of another architecture, which go by other numbers.
    s13_42_calls_by_other_numbers = |scene| {
        let Some(program) = thirty_two_bits(&scene) else { return };
        let control = process::Command::new(&program).status().unwrap();
        if control.code() != Some(42) {
            println!("SKIPPED s13_42: the kernel knows no other architecture: {control}");
            return;
        }
        let inside = scene.sandbox().run(&Command::new(&program)).unwrap();
        assert_eq!(inside.status.signal(), Some(31), "SIGSYS: {:?}", inside.status);
    }

    /// S13: a process that nobody traces, or that is not the child of who started it.
    s13_43_leaves_its_tracer = |scene| {
        let clone = |bits: i32| scene.probe(&scene.sandbox(), "clone", bits.to_string());
        assert_eq!(clone(0).status.code(), Some(0), "without such a bit it works");
        for bits in [libc::CLONE_UNTRACED, libc::CLONE_PARENT] {
            assert!(scene.probe_outside("clone", bits.to_string()).status.success());
            assert!(clear(scene.workspace.path()), "outside it lives");
            let inside = clone(bits);
            assert_eq!(inside.status.code(), Some(REFUSED), "{}", inside.stdout.text());
            assert_eq!(processes_in(scene.workspace.path()), Vec::<u32>::new());
        }
    }

    /// S13: marks of a file that may only be read, and a halt for any program that writes it.
    s13_44_changes_what_it_may_read = |scene| {
        let sandbox = scene.sandbox().read(scene.outside.path());
        for (name, about) in [
            ("change-flags", scene.secret()),
            ("change-version", scene.secret()),
            ("lease", scene.secret()),
            ("notify", scene.outside.path().to_owned()),
        ] {
            scene.refuses_with_right(name, &about);
            let inside = scene.probe(&sandbox, name, about);
            let text = inside.stdout.text();
            assert_eq!(inside.status.code(), Some(REFUSED), "{name}: {text}");
            assert!(text.contains("Operation not permitted"), "{name}: {text}");
        }
    }

    /// S13: memory without end, of a process that does not show what it holds, or whose first thread is
    /// gone.
    s13_45_hides_its_memory = |scene| {
        let limits = Limits { memory: 128 << 20, ..Limits::default() };
        let sandbox = scene.sandbox().limits(limits);
        for name in ["allocate-undumpable", "allocate-headless"] {
            let control = scene.probe_outside(name, "400");
            assert_eq!(control.status.code(), Some(0), "{name}: {}", words(&control));
            let small = scene.probe(&sandbox, name, "32");
            assert_eq!(small.status.code(), Some(0), "{name}: {}", small.stdout.text());
            let inside = scene.probe(&sandbox, name, "400");
            assert_eq!(inside.killed_by, Some(KilledBy::Memory), "{name}: {}", inside.stdout.text());
        }
    }
}

/// A program of 32 bits whose exit code is 42: an ELF file with eight instructions' worth of code.
fn thirty_two_bits(scene: &Scene) -> Option<std::path::PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        println!("SKIPPED s13_42: it is about x86_64");
        return None;
    }
    let code = [0xB8, 1, 0, 0, 0, 0xBB, 42, 0, 0, 0, 0xCD, 0x80];
    let (at, head) = (0x0804_8000_u32, 84_u32);
    let mut elf = b"\x7FELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0\x01\0\0\0".to_vec();
    elf.extend([at + head, 52, 0, 0].iter().flat_map(|word| word.to_le_bytes()));
    elf.extend([52_u16, 32, 1, 0, 0, 0].iter().flat_map(|half| half.to_le_bytes()));
    let size = head + code.len() as u32;
    elf.extend([1, 0, at, at, size, size, 5, 0x1000].iter().flat_map(|w: &u32| w.to_le_bytes()));
    elf.extend(code);
    let path = scene.workspace.path().join("thirty-two");
    fs::write(&path, elf).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Some(path)
}

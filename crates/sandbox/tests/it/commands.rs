//! Ordinary commands run as they would without a sandbox.

use crate::probe::AS_PROBE;
use crate::scene::{REFUSED, Scene, processes_in, wait_until, words};
use foldback_sandbox::{Command, KilledBy, Limits, Sandbox, SandboxError, Stop};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

#[test]
fn input_outputs_and_status_are_the_commands_own() {
    let Some(scene) = Scene::new("commands") else { return };
    let command = Command::new("sh")
        .args(["-c", "cat; echo 错误 >&2; pwd; exit 3"])
        .stdin("输入 🙂\n")
        .folder(scene.workspace.path());
    let finished = scene.sandbox().run(&command).unwrap();
    let folder = scene.workspace.path().canonicalize().unwrap();
    assert_eq!(finished.status.code(), Some(3));
    assert_eq!(finished.stdout.text(), format!("输入 🙂\n{}\n", folder.display()));
    assert_eq!(finished.stderr.text(), "错误\n");
    assert_eq!((finished.killed_by, finished.truncated()), (None, false));
    let killed = scene.sh(&scene.sandbox(), "kill -9 $$");
    assert_eq!((killed.status.signal(), killed.killed_by), (Some(9), None));
}

#[test]
fn joined_outputs_come_in_their_order() {
    let Some(scene) = Scene::new("commands") else { return };
    let finished = scene.sh(&scene.sandbox(), "echo 1; echo 2 >&2; echo 3; echo 4 >&2");
    assert_eq!(finished.stdout.text(), "1\n2\n3\n4\n");
    assert_eq!(finished.stderr.text(), "");
}

/// More than pipes hold, in both directions at once; and a command that does not read.
#[test]
fn a_large_input_goes_through() {
    let Some(scene) = Scene::new("commands") else { return };
    let input = "0123456789abcdef".repeat(1 << 16);
    let limits = Limits { output_bytes: 2 << 20, ..Limits::default() };
    let sandbox = scene.sandbox().limits(limits);
    let echoed = sandbox.run(&Command::new("cat").stdin(input.as_str())).unwrap();
    assert_eq!(echoed.stdout.text(), input);
    let unread = sandbox.run(&Command::new("true").stdin(input.as_str())).unwrap();
    assert!(unread.status.success());
}

#[test]
fn what_programs_do_in_a_workspace_works() {
    let Some(scene) = Scene::new("commands") else { return };
    for script in [
        "mkdir -p 目录/b && echo 你好 > 目录/b/文件 && mv 目录/b/文件 f && ln f g && ln -s f h && cat h",
        "echo 1 > x && chmod 600 x && touch -d @1000000 x && cp -p x y && [ $(stat -c %a%Y y) = 6001000000 ]",
        "install -m 755 x z && [ -x z ] && ./z; [ $? != 126 ]",
        "tar cf t.tar x y && mkdir out && tar xf t.tar -C out && cmp x out/x",
        "echo 2 > \"$TMPDIR/t\" && cat \"$TMPDIR/t\" && mktemp && cd ~ && pwd",
        "echo gone > /dev/null && head -c 4 /dev/urandom | wc -c",
        "echo a | (cat & wait) | sort && (sleep 0.01 & wait $!)",
        "for i in 1 2 3 4 5 6 7 8 9 10; do (echo $i); done | tail -n 1",
        "timeout 0.05 sleep 60; [ $? = 124 ]",
        "sleep 60 & kill -STOP $! && kill -CONT $! && kill $!; wait $!; [ $? = 143 ]",
        "trap 'echo caught' USR1; kill -USR1 $$; trap 'exit 0' TERM; kill $$; exit 1",
        "rm -r 目录 out && ! [ -e out ]",
    ] {
        let finished = scene.sh(&scene.sandbox(), script);
        assert!(finished.status.success(), "{script}: {}", finished.stdout.text());
    }
}

/// A process whose second thread becomes another program is still one process.
#[test]
fn programs_that_are_run_by_a_thread_are_counted_once() {
    let Some(scene) = Scene::new("commands") else { return };
    let limits = Limits { processes: 8, ..Limits::default() };
    let exe = std::env::current_exe().unwrap();
    let script = format!(
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do {} {}; done | grep -c ran",
        exe.display(),
        AS_PROBE.join(" ")
    );
    let sandbox =
        scene.sandbox().limits(limits).env("FOLDBACK_PROBE", "execute").env("FOLDBACK_ABOUT", "");
    let finished = scene.sh(&sandbox, &script);
    assert_eq!((finished.stdout.text().as_str(), finished.killed_by), ("12\n", None));
}

/// Modes, owners and times go through by every way that a path can be given.
#[test]
fn attributes_are_changed_where_the_command_says() {
    let Some(scene) = Scene::new("commands") else { return };
    let script = "mkdir -p a/b && cd a && echo > b/文件 && ln -s b/文件 link && ln -s nowhere dangling
        chmod 640 ./b/../b/文件 && chmod 701 b && chmod u+x link && stat -c %a b b/文件
        touch -h -d @5 link && stat -c %Y link && touch -d @7 \"$PWD/b/文件\" && stat -c %Y b/文件
        chown \"$(id -u):$(id -g)\" b/文件 && echo same
        chmod 600 nothing 2>&1; chmod 600 dangling 2>&1; exec 5>b/文件; chmod 666 /dev/fd/5 2>&1; true";
    let finished = scene.sh(&scene.sandbox(), script);
    let text = finished.stdout.text();
    assert!(text.starts_with("701\n740\n5\n7\nsame\n"), "{text}");
    assert_eq!(text.matches("No such file or directory").count(), 1, "{text}");
    assert!(text.contains("dangling"), "{text}");
    assert_eq!(text.lines().count(), 8, "{text}");
}

#[test]
fn a_limit_of_time_ends_everything() {
    let Some(scene) = Scene::new("commands") else { return };
    let limits = Limits { time: Duration::from_millis(300), ..Limits::default() };
    let finished =
        scene.sh(&scene.sandbox().limits(limits), "trap '' TERM; echo begun; sleep 60 | sleep 60");
    assert_eq!(finished.killed_by, Some(KilledBy::Time));
    assert_eq!(finished.stdout.text(), "begun\n", "what was written by then is kept");
    assert_eq!(finished.status.signal(), Some(9));
}

#[test]
fn a_command_is_stopped_from_another_thread() {
    let Some(scene) = Scene::new("commands") else { return };
    let stop = Stop::new().unwrap();
    let command = Command::new("sh")
        .args(["-c", "touch begun; sleep 60"])
        .folder(scene.workspace.path())
        .stopped_by(stop.clone());
    let begun = scene.workspace.path().join("begun");
    let finished = std::thread::scope(|threads| {
        let running = threads.spawn(|| scene.sandbox().run(&command).unwrap());
        wait_until(|| begun.exists() || running.is_finished());
        stop.stop();
        running.join().unwrap()
    });
    assert_eq!(finished.killed_by, Some(KilledBy::Stopped));
    let later = scene.sandbox().run(&command).unwrap();
    assert_eq!(later.killed_by, Some(KilledBy::Stopped), "it stays said");
}

/// Concurrent runs from many threads do not mix.
#[test]
fn commands_run_beside_each_other() {
    let Some(scene) = Scene::new("commands") else { return };
    std::thread::scope(|threads| {
        for thread in 0..8 {
            let scene = &scene;
            threads.spawn(move || {
                for turn in 0..8 {
                    let script = format!("echo {thread}.{turn} | cat");
                    let finished = scene.sh(&scene.sandbox(), &script);
                    assert_eq!(finished.stdout.text(), format!("{thread}.{turn}\n"));
                }
            });
        }
    });
}

#[test]
fn what_cannot_be_started_is_said() {
    let Some(scene) = Scene::new("commands") else { return };
    let sandbox = scene.sandbox();
    let error =
        |sandbox: &Sandbox, command: Command| sandbox.run(&command).unwrap_err().to_string();
    assert_eq!(
        error(&sandbox, Command::new("no-such-program")),
        "the program no-such-program was not found in /usr/local/bin:/usr/bin:/bin"
    );
    let missing = error(&sandbox, Command::new("true").folder("/no/such/folder"));
    assert!(missing.contains("entering its folder: No such file"), "{missing}");
    let secret = error(&sandbox, Command::new(scene.secret()));
    assert!(secret.contains("running the program: Permission denied"), "{secret}");
    let absent = error(&sandbox.clone().read("/no/such/file"), Command::new("true"));
    assert!(absent.starts_with("/no/such/file cannot be granted"), "{absent}");
    let nul = sandbox.run(&Command::new("echo").args(["a\0b"])).unwrap_err();
    assert!(matches!(nul, SandboxError::Nul(_)), "{nul}");
}

/// Each step that a container may forbid is tried before commands are reported as available.
#[test]
fn where_a_step_is_forbidden_there_is_no_sandbox() {
    let Some(scene) = Scene::new("commands") else { return };
    for call in ["ptrace", "seccomp", "landlock_restrict_self"] {
        let tried = scene.probe_outside("forbidden", call);
        let words = words(&tried);
        assert_eq!(tried.status.code(), Some(REFUSED), "{call}: {words}");
        assert!(words.contains("no sandbox is available: "), "{call}: {words}");
    }
}

#[test]
fn any_number_of_processes_may_be_given() {
    let Some(scene) = Scene::new("commands") else { return };
    for processes in [0, usize::MAX] {
        let limits = Limits { processes, ..Limits::default() };
        assert!(scene.sh(&scene.sandbox().limits(limits), ":").status.success());
    }
}

#[test]
fn a_disk_without_room_is_said_before_anything_is_run() {
    let Some(scene) = Scene::new("commands") else { return };
    let limits = Limits { free_bytes: 1 << 60, ..Limits::default() };
    let command = Command::new("touch").args(["begun"]).folder(scene.workspace.path());
    let error = scene.sandbox().limits(limits).run(&command).unwrap_err().to_string();
    let folder = scene.workspace.path().display().to_string();
    assert!(error.starts_with(&format!("{folder} has ")), "{error}");
    assert!(error.contains("1099511627776 MiB and 1000 files were expected"), "{error}");
    assert!(!scene.workspace.path().join("begun").exists());
}

/// However deep, and whatever was forbidden there; the target of a link stays.
#[test]
fn a_deep_folder_of_a_run_is_removed() {
    let Some(scene) = Scene::new("commands") else { return };
    let exe = std::env::current_exe().unwrap();
    let script = format!(
        "cd $TMPDIR && echo $PWD && ln -s $OLDPWD link && touch $OLDPWD/kept && mkdir locked && \
         : > locked/file && {} {} && chmod 500 locked && chmod 0 .",
        exe.display(),
        AS_PROBE.join(" ")
    );
    let sandbox = scene.sandbox().env("FOLDBACK_PROBE", "deep").env("FOLDBACK_ABOUT", "5000");
    let finished = scene.sh(&sandbox, &script);
    let text = finished.stdout.text();
    assert!(finished.status.success(), "{text}");
    assert!(!fs::exists(text.lines().next().unwrap()).unwrap());
    assert!(scene.workspace.path().join("kept").exists());
}

/// A supervisor that does nothing any more is killed, and with it everything that it traces.
#[test]
fn a_lost_command_is_ended() {
    let Some(scene) = Scene::new("commands") else { return };
    let limits = Limits { time: Duration::from_secs(1), ..Limits::default() };
    let sandbox = scene.sandbox().limits(limits);
    let command = Command::new("sleep").args(["600"]).folder(scene.workspace.path());
    let lost = std::thread::scope(|threads| {
        let running = threads.spawn(|| sandbox.run(&command));
        wait_until(|| !processes_in(scene.workspace.path()).is_empty() || running.is_finished());
        let process = processes_in(scene.workspace.path())[0];
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
        let supervisor = Pid::from_raw(parent.trim().parse().unwrap()).unwrap();
        kill_process(supervisor, Signal::STOP).unwrap();
        running.join().unwrap()
    });
    assert!(matches!(lost, Err(SandboxError::Lost)), "{lost:?}");
    wait_until(|| processes_in(scene.workspace.path()).is_empty());
}

#[test]
fn nothing_is_left_of_a_run() {
    let Some(scene) = Scene::new("commands") else { return };
    let open = || fs::read_dir("/proc/self/fd").unwrap().count();
    let folder = scene.sh(&scene.sandbox(), "echo $TMPDIR; touch $TMPDIR/x").stdout.text();
    assert!(!fs::exists(folder.trim()).unwrap());
    // Other tests open files concurrently, but not one more with each run.
    let before = open();
    for _ in 0..40 {
        scene.sh(&scene.sandbox(), "true");
    }
    assert!(open() < before + 40);
}

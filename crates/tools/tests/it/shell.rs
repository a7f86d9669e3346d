//! `shell_run`: commands in the sandbox.

use crate::tools::Folder;
use foldback_sandbox::Sandbox;
use foldback_tool::{CallContext, Concurrency, Effect, Language, ToolErrorKind};
use foldback_tools::{Permissions, PermissionsError, toolset};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A workspace in which commands may be run, or nothing if there is no sandbox: the tool is then not
/// available at all.
fn folder(test: &str, permit: impl FnOnce(Permissions) -> Permissions) -> Option<Folder> {
    if let Err(why) = Sandbox::available() {
        println!("SKIPPED {test}: {why}");
        let refused = toolset(&Permissions::in_workspace("/tmp").with_shell());
        assert!(matches!(refused, Err(PermissionsError::Unavailable { tool: "shell_run", .. })));
        return None;
    }
    Some(Folder::permitting(&[("笔记.md", "小雨\n")], |permissions| {
        permit(permissions.with_shell())
    }))
}

/// Waits for something that will soon be so.
async fn wait_until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "it never came to be");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// S13: no command is run unless that is permitted.
#[test]
fn s13_commands_are_not_permitted_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let tools = toolset(&Permissions::in_workspace(folder.path())).unwrap();
    assert!(tools.iter().all(|tool| tool.spec().name() != "shell_run"));
}

#[tokio::test]
async fn a_command_runs_in_the_workspace_and_tells_its_exit_code() {
    let Some(folder) = folder("shell", |permissions| permissions) else { return };
    folder.says("shell_run", json!({"command": "cat 笔记.md"}), "小雨\n[exit code 0]").await;
    let arguments = json!({"command": "echo 1; echo 错 >&2; printf 2; exit 3"});
    folder.says("shell_run", arguments, "1\n错\n2\n[exit code 3]").await;
    folder.says("shell_run", json!({"command": "kill -9 $$"}), "[exit code 137]").await;
    folder.says("shell_run", json!({"command": "mkdir a; echo 雪 > a/b"}), "[exit code 0]").await;
    assert_eq!(folder.content("a/b"), "雪\n");
    folder.says("shell_run", json!({"command": "cat b", "cwd": "a"}), "雪\n[exit code 0]").await;
    let output = folder.call("shell_run", json!({"command": "printf 雪; exit 2"})).await.unwrap();
    let structured: Value = serde_json::from_str(&output.data.structured.unwrap()).unwrap();
    assert_eq!(structured, json!({"exit_code": 2, "output": "雪"}));
}

/// S13: the folders, the network and the environment are those that were permitted.
#[tokio::test]
async fn s13_a_command_has_the_rights_that_were_given() {
    let Some(folder) = folder("shell", |mut permissions| {
        permissions.shell.environment = ["CARGO_PKG_NAME".to_owned()].into();
        permissions
    }) else {
        return;
    };
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "秘密").unwrap();
    let read = folder.call("shell_run", json!({"command": format!("cat {}", secret.display())}));
    let read = read.await.unwrap().data.text;
    assert!(read.contains("Permission denied") && read.ends_with("[exit code 1]"), "{read}");
    let wrote = json!({"command": format!("echo x > {}", secret.display())});
    folder.call("shell_run", wrote).await.unwrap();
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "秘密");
    let environment = json!({"command": "echo $CARGO_PKG_NAME ${CARGO_MANIFEST_DIR-unset}"});
    folder.says("shell_run", environment, "foldback-tools unset\n[exit code 0]").await;
    let error = folder.call("shell_run", json!({"command": "ls", "cwd": ".."})).await.unwrap_err();
    assert!(error.message.starts_with("running a command in .. is not permitted; "), "{error}");
    let error = folder.call("shell_run", json!({"command": "ls", "cwd": "nowhere"})).await;
    assert!(error.unwrap_err().message.starts_with("nowhere is not a folder"));
}

/// S13: the time, memory and processes are those that were permitted, and what ended it is reported.
#[tokio::test]
async fn s13_a_command_that_goes_too_far_is_ended() {
    let Some(folder) = folder("shell", |mut permissions| {
        permissions.shell.processes = 16;
        permissions.shell.time_s = 60;
        permissions
    }) else {
        return;
    };
    let slow = json!({"command": "echo 开始; sleep 60", "timeout_s": 1});
    let error = folder.call("shell_run", slow).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Permanent);
    assert!(error.message.contains("its limit was 1 s"), "{error}");
    assert!(error.message.ends_with("It wrote:\n开始\n"), "{error}");
    let none = json!({"command": "touch begun", "timeout_s": 0});
    let error = folder.call("shell_run", none).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Arguments);
    assert!(error.message.contains("timeout_s is 0"), "{error}");
    let many = json!({"command": "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17; do sleep 60 & done"});
    let error = folder.call("shell_run", many).await.unwrap_err();
    assert!(error.message.contains("it started too many processes"), "{error}");
}

/// If the disk is already full, no command is blamed for it.
#[tokio::test]
async fn a_full_disk_is_told_before_a_command_is_run() {
    let Some(folder) = folder("shell", |mut permissions| {
        permissions.shell.free_mib = 1 << 40;
        permissions
    }) else {
        return;
    };
    let error = folder.call("shell_run", json!({"command": "touch begun"})).await.unwrap_err();
    assert!(error.message.starts_with("the command was not run: /"), "{error}");
    assert!(error.message.contains("1099511627776 MiB"), "{error}");
    assert!(!folder.path("begun").exists());
}

/// A long output is cut to its beginning and end; everything else passes whole.
#[tokio::test]
async fn a_long_output_keeps_both_ends() {
    let Some(folder) = folder("shell", |mut permissions| {
        permissions.shell.output_bytes = 30;
        permissions
    }) else {
        return;
    };
    let expected =
        "1\n2\n3\n4\n5\n6\n7\n8\n[... 3863 bytes left out ...]\n7\n998\n999\n1000\n[exit code 0]";
    folder.says("shell_run", json!({"command": "seq 1 1000"}), expected).await;
}

/// A call that is cancelled or abandoned ends its command, and all that it started.
#[tokio::test]
async fn s13_a_cancelled_call_ends_its_command() {
    let Some(folder) = folder("shell", |permissions| permissions) else { return };
    let tool = folder.toolbox.get("shell_run").unwrap();
    let begins = |name: &str| {
        json!({"command": format!("touch {name}; setsid sleep 600 & sleep 600")}).to_string()
    };
    let begun = async |name: &str| {
        wait_until(|| folder.path(name).exists()).await;
    };
    let context = CallContext::default();
    let first = begins("cancelled");
    let (error, ()) = tokio::join!(tool.call(&first, &context), async {
        begun("cancelled").await;
        context.cancelled.cancel();
    });
    assert!(error.unwrap_err().message.contains("it was stopped"));
    let (second, context) = (begins("dropped"), CallContext::default());
    tokio::select! {
        _ = tool.call(&second, &context) => panic!("it ended by itself"),
        () = begun("dropped") => {}
    }
    let here = folder.path(".").canonicalize().unwrap();
    let is_left = || {
        let mut processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes
            .any(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == here))
    };
    wait_until(|| !is_left()).await;
}

/// A plan's references are quoted, and the tool runs alone and is not repeated.
#[test]
fn a_plan_knows_what_a_command_is() {
    let Some(folder) = folder("shell", |permissions| permissions) else { return };
    let tool = folder.toolbox.get("shell_run").unwrap();
    let spec = tool.spec();
    assert_eq!((spec.effect, spec.concurrency), (Effect::Effectful, Concurrency::Exclusive));
    assert_eq!(spec.languages.get("command"), Some(&Language::Shell));
    assert!(spec.definition.description.contains("There is no network."));
    let time = |arguments: Value| tool.timeout(&arguments.to_string()).unwrap().as_secs();
    assert_eq!(time(json!({"command": "x", "timeout_s": 5})), 20);
    assert_eq!(time(json!({"command": "x", "timeout_s": 5_000})), 135, "no more than is permitted");
}

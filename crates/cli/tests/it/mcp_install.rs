//! `foldback mcp install` and `uninstall`: the files of clients.

use crate::clients::client;
use crate::shell::{Ran, Shell};
use serde_json::{Value, json};
use std::process::Command;

/// The command with the store of this shell and this file of the client's, relative to the home folder.
fn setup(shell: &Shell, args: &[&str]) -> Ran {
    let mut all = vec!["mcp"];
    all.extend(args);
    let mut command = shell.command();
    command.env_remove("CLAUDE_CONFIG_DIR").env_remove("CODEX_HOME");
    Ran::of(command.arg("--store").arg(shell.store()).args(all).output().unwrap())
}

fn read(shell: &Shell, file: &str) -> String {
    std::fs::read_to_string(shell.path(file)).unwrap()
}

/// RC5: each client's file gets the server, and loses it again; everything else in it stays.
#[test]
fn rc5_each_client_is_set_up_and_undone() {
    let claude = "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"git\": {}\n  }\n}\n";
    let opencode = "{\n  \"mcp\": {\n    \"git\": {\"type\": \"local\"}\n  }\n}\n";
    let own = [
        ("claude", ".claude.json", "/mcpServers/foldback", claude),
        ("opencode", ".config/opencode/opencode.json", "/mcp/foldback", opencode),
        ("cursor", ".cursor/mcp.json", "/mcpServers/foldback", claude),
    ];
    let of_project = [
        ("claude", ".mcp.json", "/mcpServers/foldback", claude),
        ("opencode", "opencode.json", "/mcp/foldback", opencode),
        ("cursor", ".cursor/mcp.json", "/mcpServers/foldback", claude),
    ];
    let all = own.map(|it| (it, false)).into_iter().chain(of_project.map(|it| (it, true)));
    for ((client, file, entry, before), is_project) in all {
        let shell = Shell::new();
        shell.folders(&[".config/opencode", ".cursor"]);
        shell.write(file, before);
        let args = |command| {
            let mut args = vec![command, client, "--yes"];
            args.extend(is_project.then_some("--project"));
            args
        };
        let ran = setup(&shell, &args("install"));
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.text().lines().any(|line| line.starts_with("+ ") && line.contains("foldback")));
        assert!(!ran.text().lines().any(|line| line.starts_with("- ")), "{ran:?}");
        let after: Value = serde_json::from_str(&read(&shell, file)).unwrap();
        let written = after.pointer(entry).unwrap();
        let arguments = match client {
            "opencode" => &written["command"],
            _ => &written["args"],
        };
        let arguments: Vec<_> = arguments.as_array().unwrap().iter().collect();
        assert!(arguments.contains(&&json!("mcp")) && arguments.contains(&&json!(shell.store())));
        // A client that may name no root works where it is started.
        assert_eq!(arguments.contains(&&json!(".")), client == "opencode", "{arguments:?}");
        assert!(setup(&shell, &args("install")).stderr.contains("already has it"));
        let ran = setup(&shell, &args("uninstall"));
        assert!(ran.code == 0 && ran.text().contains("- "), "{ran:?}");
        assert_eq!(read(&shell, file), before);
        assert!(setup(&shell, &args("uninstall")).stderr.contains("is not set up in"));
    }
}

/// RC5: Codex has TOML, and a missing file is created.
#[test]
fn rc5_codex_is_set_up_and_undone() {
    let shell = Shell::new();
    let ran = setup(&shell, &["install", "codex", "--yes", "--any-todo", "--allow-record"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let written = read(&shell, ".codex/config.toml");
    assert!(written.starts_with("[mcp_servers.foldback]\ncommand = \""), "{written}");
    let arguments = r#""--folder", ".", "--any-todo", "--allow-record"]"#;
    assert!(written.contains(arguments), "{written}");
    let ran = setup(&shell, &["install", "codex", "--yes", "--todo", "quay"]);
    assert!(ran.text().contains("\n- args") && ran.text().contains("\n+ args"), "{ran:?}");
    assert!(read(&shell, ".codex/config.toml").contains(r#""--todo", "quay"]"#));
    assert_eq!(setup(&shell, &["uninstall", "codex", "--yes"]).code, 0);
    assert_eq!(read(&shell, ".codex/config.toml"), "");
    let ran = setup(&shell, &["install", "codex", "--project", "--folder", "lamp", "--yes"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(read(&shell, ".codex/config.toml").contains("lamp\"]"));
}

/// RC5: nothing is changed unless the user has agreed, or if the file cannot be read.
#[test]
fn rc5_nothing_is_changed_without_a_yes() {
    let shell = Shell::new();
    shell.write(".claude.json", "{\"a\": 1}");
    let ran = setup(&shell, &["install", "claude"]);
    assert!(ran.code == 2 && ran.stderr.contains("--yes makes it without asking"), "{ran:?}");
    assert!(ran.text().contains("\"foldback\""), "the change is shown: {ran:?}");
    assert_eq!(read(&shell, ".claude.json"), "{\"a\": 1}");

    shell.write("opencode.json", "// mine\n{}");
    let ran = setup(&shell, &["install", "opencode", "--project", "--yes"]);
    assert!(ran.code == 2 && ran.stderr.contains("opencode.json is left as it is"), "{ran:?}");
    assert_eq!(read(&shell, "opencode.json"), "// mine\n{}");

    let printed = setup(&shell, &["install", "json"]).json();
    assert!(printed["mcpServers"]["foldback"]["command"].as_str().unwrap().ends_with("foldback"));
    assert_eq!(setup(&shell, &["uninstall", "json"]).code, 2);
}

/// RC5: the server is started with the settings of the command that installed it.
#[test]
fn rc5_a_server_has_the_settings_of_its_installation() {
    let shell = Shell::new();
    let settings = format!("[memory]\nstore = {:?}\nengine = \"redb\"\n", shell.store());
    shell.write("x.toml", settings);
    let install = ["--config", "x.toml", "--embedder", "none", "mcp", "install", "json"];
    let printed = shell.run_bare(&install).json();
    let arguments = printed["mcpServers"]["foldback"]["args"].as_array().unwrap();
    let of = |flag| arguments.iter().skip_while(move |it| **it != json!(flag)).nth(1);
    assert_eq!(of("--config"), Some(&json!(shell.path("x.toml"))), "{printed}");
    assert_eq!(of("--embedder"), Some(&json!("none")), "{printed}");
    assert_eq!(of("--store"), Some(&json!(shell.store())), "{printed}");
}

/// RC5: what is written is what released clients read, and the server that it names answers them.
#[test]
fn rc5_released_clients_find_what_is_installed() {
    let clients =
        [("claude", "Connected"), ("codex", "enabled"), ("opencode", "foldback connected")];
    for (name, told) in clients {
        let Some(program) = client(&format!("bin/{name}")) else { continue };
        let shell = Shell::with_quay();
        shell.folders(&["home"]);
        let home = |command: &mut Command| {
            command.env("HOME", shell.path("home")).current_dir(shell.path("home"));
            for kept in ["CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "CLAUDECODE"] {
                command.env_remove(kept);
            }
        };
        let mut install = shell.command();
        home(&mut install);
        install.arg("--store").arg(shell.store()).args(["mcp", "install", name, "--yes"]);
        assert!(install.output().unwrap().status.success(), "{name}");
        let mut list = Command::new(program);
        home(&mut list);
        list.env("OPENCODE_DISABLE_MODELS_FETCH", "1").env("OPENCODE_DISABLE_AUTOUPDATE", "1");
        list.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").args(["mcp", "list"]);
        let ran = list.output().unwrap();
        let text = [ran.stdout, ran.stderr].concat();
        let text = String::from_utf8_lossy(&text).replace("\u{1b}[90m", "");
        assert!(text.contains("foldback") && text.contains(told), "{name}: {text}");
    }
}

/// RC5: the server opens the store that this command's environment describes, whatever its client's does.
#[test]
fn rc5_payloads_and_embedder_of_the_environment_are_written() {
    let shell = Shell::new();
    let install = |set: &[(&str, &str)]| {
        let mut command = shell.command();
        command.arg("--store").arg(shell.store()).args(["mcp", "install", "json"]);
        Ran::of(command.envs(set.iter().copied()).output().unwrap()).json()
    };
    let of = |printed: &Value, flag: &str| {
        let arguments = printed["mcpServers"]["foldback"]["args"].as_array().unwrap();
        arguments.iter().skip_while(|it| **it != json!(flag)).nth(1).cloned()
    };
    shell.folders(&["模型"]);
    let model = shell.path("模型").canonicalize().unwrap();
    let set = [("FOLDBACK_PAYLOADS", "store"), ("FOLDBACK_MEMORY_EMBEDDER", "模型")];
    let printed = install(&set);
    assert_eq!(of(&printed, "--payloads"), Some(json!("store")), "{printed}");
    assert_eq!(of(&printed, "--embedder"), Some(json!(model)), "{printed}");
    // What a settings file says is left to the file.
    shell.folders(&[".config/foldback"]);
    shell.write(
        ".config/foldback/foldback.toml",
        "[memory]\npayloads = \"store\"\nembedder = \"none\"\n",
    );
    let printed = install(&[]);
    assert_eq!((of(&printed, "--payloads"), of(&printed, "--embedder")), (None, None), "{printed}");
}

/// RC5: the program is named by the path that it was called by, not by what a link leads to at present.
#[cfg(unix)]
#[test]
fn rc5_the_program_is_named_as_it_was_called() {
    let shell = Shell::new();
    shell.folders(&["bin", "工具"]);
    let program = assert_cmd::cargo::cargo_bin!("foldback");
    std::os::unix::fs::symlink(program, shell.path("工具/foldback")).unwrap();
    let link = shell.path("bin/foldback");
    std::os::unix::fs::symlink("../工具/foldback", &link).unwrap();
    let path = format!("{}:/usr/bin:/bin", shell.path("bin").display());
    for script in ["foldback mcp install json", "./bin/foldback mcp install json"] {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env("PATH", &path).env("HOME", shell.path(""));
        let printed = Ran::of(command.current_dir(shell.path("")).output().unwrap()).json();
        let named = &printed["mcpServers"]["foldback"]["command"];
        assert_eq!(named, &json!(link), "{script}");
    }
}

/// RC5: the file is changed even if nobody reads how, and the server opens the store with the engine that it has.
#[test]
fn rc5_the_engine_of_the_environment_is_written() {
    let shell = Shell::new();
    shell.write(".claude.json", "{}");
    let mut command = shell.command();
    command.env_remove("CLAUDE_CONFIG_DIR").env("FOLDBACK_MEMORY_ENGINE", "redb");
    command.arg("--store").arg(shell.store()).args(["mcp", "install", "claude", "--yes"]);
    command.stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let written: Value = serde_json::from_str(&read(&shell, ".claude.json")).unwrap();
    let arguments = written["mcpServers"]["foldback"]["args"].as_array().unwrap();
    let at = arguments.iter().position(|one| one == "--engine").unwrap();
    assert_eq!(arguments[at + 1], "redb");
}

//! An agent is given tools and few permissions: it learns what it may not do, and continues.

use crate::agent_injections::{results, written};
use crate::story::{in_memory, todo};
use foldback_agent::{Agent, CallForm, Executor, React, ReactSettings, Task};
use foldback_llm::{Answer, ScriptedModel};
use foldback_tool::Toolbox;
use foldback_tools::{Permissions, PermissionsError, toolset};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::net::TcpListener;
use std::sync::Arc;

/// The results of its calls that the model was sent, step by step, before it ended.
async fn told(permissions: &Permissions, form: CallForm, calls: &[(&str, Value)]) -> Vec<String> {
    let answers = calls.iter().map(|call| written(form, std::slice::from_ref(call)).1);
    let answers = answers.chain([Answer::text("Done.")]);
    let model = Arc::new(ScriptedModel::new(answers));
    let executor = Executor::new(Toolbox::new(toolset(permissions).unwrap()).unwrap());
    let settings = ReactSettings::default().with_calls(form);
    let agent = Agent::new(model.clone(), executor);
    let mut session = in_memory().session(&todo("work")).unwrap();
    let task = Task::new("run", "Do it.");
    let report = agent.run(&React::new(settings), &mut session, &task).await.unwrap();
    assert_eq!(report.answer(), Some("Done."), "what is refused ends no run");
    assert_eq!(model.left(), 0);
    let mut told: Vec<String> = Vec::new();
    for request in model.requests() {
        let texts = match form {
            CallForm::Native => results(&request),
            // A block that names a missing tool is reported in other words than results.
            CallForm::ExecuteTools => {
                request.messages[1..].iter().map(|m| m.text().into_owned()).collect()
            }
        };
        // What was reported is in several requests, until it is folded.
        told.extend(texts.into_iter().filter(|text| !told.contains(text)).collect::<Vec<_>>());
    }
    told.into_iter().filter(|text| !text.starts_with("<execute_tools>")).collect()
}

const FORMS: [CallForm; 2] = [CallForm::Native, CallForm::ExecuteTools];

/// S13: nothing is permitted unless it is granted: without permissions there is no tool.
#[test]
fn s13_nothing_is_permitted_by_default() {
    assert_eq!(toolset(&Permissions::default()).unwrap().len(), 0);
}

/// S13: files outside, commands and pages are refused if only a folder is permitted; each refusal is
/// reported, and the work continues.
#[tokio::test]
async fn s13_what_is_refused_is_told_and_the_run_goes_on() {
    for form in FORMS {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let secret = outside.path().join("secret.txt");
        std::fs::write(&secret, "秘密").unwrap();
        std::fs::write(inside.path().join("笔记.md"), "小雨").unwrap();
        std::os::unix::fs::symlink(&secret, inside.path().join("link")).unwrap();
        let calls = [
            ("file_read", json!({ "path": secret })),
            ("file_read", json!({ "path": "link" })),
            ("file_write", json!({ "path": outside.path().join("new"), "content": "x" })),
            ("file_edit", json!({ "path": secret, "old": "秘", "new": "x" })),
            ("shell_run", json!({ "command": format!("cat {}", secret.display()) })),
            ("web_fetch", json!({ "url": "http://127.0.0.1/" })),
            ("file_read", json!({ "path": "笔记.md" })),
        ];
        let told = told(&Permissions::in_workspace(inside.path()), form, &calls).await.join("\n");
        let new = outside.path().join("new");
        for refused in [
            format!("reading {} is not permitted", secret.display()),
            "reading link, which goes through a link that leads out".to_owned(),
            format!("writing {} is not permitted", new.display()),
            format!("writing {} is not permitted", secret.display()),
        ] {
            assert!(told.contains(&refused), "{refused}: {told}");
        }
        for tool in ["shell_run", "web_fetch"] {
            assert!(told.contains(tool), "{tool}: {told}");
        }
        assert!(told.contains("小雨") && !told.contains("秘密"), "{told}");
        assert_eq!(std::fs::read_to_string(&secret).unwrap(), "秘密");
        assert!(!outside.path().join("new").exists());
    }
}

/// S13: a host that is not named is not contacted, and commands reach neither other files nor the
/// network.
#[tokio::test]
async fn s13_the_network_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let inside = tempfile::tempdir().unwrap();
    let mut permissions = Permissions::in_workspace(inside.path()).with_host("docs.rs");
    let mut calls = vec![("web_fetch", json!({ "url": format!("http://127.0.0.1:{port}/") }))];
    match toolset(&permissions.clone().with_shell()) {
        Ok(_) => {
            permissions = permissions.with_shell();
            let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
            calls.push(("shell_run", json!({ "command": format!("bash -c '{connect}'") })));
        }
        Err(error @ PermissionsError::Unavailable { .. }) => {
            println!("SKIPPED the command of s13_the_network_is_refused: {error}");
        }
        Err(error) => panic!("{error}"),
    }
    for form in FORMS {
        let told = told(&permissions, form, &calls).await;
        assert!(
            told.iter().any(|text| text.contains("not permitted; permitted: docs.rs")),
            "{told:?}"
        );
        assert!(!told.iter().any(|text| text.contains("connected\n")), "{told:?}");
        assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "{told:?}");
    }
}

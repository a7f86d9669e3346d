//! Which conversation a call is about.

use crate::wire::{Wire, id, server, store};
use foldback::{Memory, Origin};
use foldback_mcp_server::Scope;
use serde_json::{Value, json};
use std::path::Path;

/// Records in which folder a todo was worked on.
fn work_in(memory: &Memory, todo: &str, folder: &Path) {
    let folder = Some(folder.to_str().unwrap().to_owned());
    let origin = Origin { source: Some("run".to_owned()), folder };
    memory.conversations().set_origin(&id(todo), &origin).unwrap();
}

fn uri(folder: &Path) -> String {
    format!("file://{}", folder.display())
}

/// RC3: the todo is the one of the client's folder; the client is asked once, and again when its roots have changed.
#[tokio::test]
async fn rc3_the_todo_comes_from_the_roots() {
    let memory = store(&["trip", "garden", "other"]);
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [one, two] = folders.each_ref().map(|folder| folder.path().canonicalize().unwrap());
    work_in(&memory, "trip", &one);
    work_in(&memory, "garden", &two);
    let (one, two) = (uri(&one), uri(&two));
    let server = server(&memory, Scope::roots());
    let mut wire = Wire::with_roots(server.for_client(), Some(&["file:///no/such", &one])).await;
    for _ in 0..2 {
        assert!(
            wire.text("search_block", json!({"query": "ferry"})).await.contains("ferry of trip")
        );
    }
    assert_eq!(wire.asked, 1);
    // No name in a call leads elsewhere.
    assert!(
        wire.text("load", json!({"ref": "b_garden_001"})).await.contains("Nothing is stored under")
    );

    let mut other = Wire::with_roots(server.for_client(), Some(&[&two])).await;
    assert!(other.text("list_blocks", json!({})).await.contains("ferry of garden"));
    wire.send(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})).await;
    wire.text("list_blocks", json!({})).await;
    assert_eq!(wire.asked, 2);
}

/// RC3: roots that change while the client answers are not taken from that answer afterwards.
#[tokio::test]
async fn rc3_an_answer_from_before_a_change_is_not_kept() {
    let memory = store(&["trip", "garden"]);
    let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let [one, two] = folders.each_ref().map(|folder| folder.path().canonicalize().unwrap());
    work_in(&memory, "trip", &one);
    work_in(&memory, "garden", &two);
    let mut wire = Wire::with_roots(server(&memory, Scope::roots()), Some(&[&uri(&one)])).await;
    wire.next_roots = Some(vec![uri(&two)]);
    wire.text("list_blocks", json!({})).await;
    assert!(wire.text("list_blocks", json!({})).await.contains("ferry of garden"));
    assert_eq!(wire.asked, 2);
}

/// RC3: the root of the file system is no folder of work, also beside one that is.
#[tokio::test]
async fn rc3_notes_go_into_the_folder_beside_the_root() {
    let memory = store(&[]);
    let folder = tempfile::tempdir().unwrap().path().join("杭州");
    let roots = ["file:///".to_owned(), uri(&folder)];
    let roots = roots.each_ref().map(String::as_str);
    let mut wire =
        Wire::with_roots(server(&memory, Scope::roots().recording()), Some(&roots)).await;
    wire.call("record", json!({"text": "The quay is shut."})).await;
    let todo = memory.todos(None, 9).unwrap().pop().unwrap();
    let origin = memory.conversations().info(&todo).unwrap().origin;
    assert_eq!(origin.folder.as_deref(), folder.to_str());
}

/// RC3: of the todos of a folder it is the one that was last recorded into.
#[tokio::test]
async fn rc3_the_latest_todo_of_a_folder_is_meant() {
    let memory = store(&["trip", "garden"]);
    let folder = tempfile::tempdir().unwrap().path().to_owned();
    for todo in ["trip", "garden"] {
        work_in(&memory, todo, &folder);
    }
    let mut wire = Wire::start(server(&memory, Scope::folder(folder))).await;
    assert!(wire.text("list_blocks", json!({})).await.contains("b_garden_001"));
}

/// RC3: if it is not known which is meant, the answer says what to do.
#[tokio::test]
async fn rc3_without_a_todo_the_answer_says_what_to_do() {
    let memory = store(&["trip"]);
    let check = async |roots: Option<&[&str]>, expected: &str| {
        let mut wire = Wire::with_roots(server(&memory, Scope::roots()), roots).await;
        let answer = wire.call("search_block", json!({"query": "ferry"})).await;
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(answer["isError"] == true && text.contains(expected), "{text}");
        assert!(text.contains("--todo ID") && !text.contains("trip"), "{text}");
    };
    check(None, "The client does not say which folder").await;
    check(Some(&[]), "The client's folder is not on this machine").await;
    check(Some(&["https://example.org"]), "The client's folder is not on this machine").await;
    check(Some(&["file:///no/such"]), "The store has no conversation from /no/such.").await;
    let mut wire = Wire::start(server(&memory, Scope::todo(id("gone")))).await;
    let answer = wire.call("list_blocks", json!({})).await;
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert!(answer["isError"] == true && text.contains("no todo gone"), "{text}");
    assert!(text.contains("`foldback todos`") && text.contains("--todo ID"), "{text}");
}

/// RC3: the user's own client may search all todos; what it names is loaded by its full name.
#[tokio::test]
async fn rc3_any_todo_searches_all_of_them() {
    let memory = store(&["trip", "garden"]);
    let mut wire = Wire::start(server(&memory, Scope::roots().with_any_todo())).await;
    let answer = wire.call("search_block", json!({"query": "ferry leaves", "k": 5})).await;
    let text = answer["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("ferry of trip") && text.contains("ferry of garden"), "{text}");
    assert!(text.contains("<recalled-"), "{text}");
    let references = answer["structuredContent"]["references"].as_array().unwrap();
    assert!(references.len() >= 2, "{references:?}");
    for reference in references {
        let loaded = wire.call("load", json!({"ref": reference})).await;
        assert_eq!(loaded["isError"], false, "{loaded}");
    }
    // What is open is loaded, too.
    assert!(wire.text("load", json!({"ref": "b_trip_003"})).await.contains("And the tide?"));
    for (tool, arguments) in [
        ("load", json!({"ref": "b_003"})),
        ("load", json!({"ref": "b_gone_001"})),
        ("load", json!({})),
        ("search_block", json!({"query": ""})),
        ("list_blocks", json!({})),
    ] {
        assert_eq!(wire.call(tool, arguments).await["isError"], true, "{tool}");
    }
    // Without the permission none of it is there.
    let mut wire = Wire::start(server(&memory, Scope::todo(id("trip")))).await;
    assert!(!wire.text("search_block", json!({"query": "ferry", "k": 9})).await.contains("garden"));
}

/// RC2, RC3: a folder without a record gets a todo of its own with the first note.
#[tokio::test]
async fn rc3_notes_of_a_folder_go_into_a_todo_of_its_own() {
    let memory = store(&["trip"]);
    let folder = tempfile::tempdir().unwrap().path().join("杭州 (1)");
    work_in(&memory, "trip", &folder);
    let server = server(&memory, Scope::folder(folder.clone()).recording());
    let mut wire = Wire::start(server).await;
    // Before that, nothing is found, which is no mistake; what is named does not exist.
    for (tool, arguments, is_error) in [
        ("list_blocks", json!({}), false),
        ("search_block", json!({"query": "码头"}), false),
        ("load", json!({"ref": "b_trip_001"}), true),
    ] {
        let answer = wire.call(tool, arguments).await;
        assert_eq!(answer["isError"], is_error, "{answer}");
        let text = answer["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("othing is recorded yet; record adds a note"), "{text}");
    }
    wire.call("record", json!({"text": "The quay is shut."})).await;
    assert!(wire.text("search_block", json!({"query": "quay"})).await.contains("shut"));
    let todo = memory.todos(None, 9).unwrap().pop().unwrap();
    let origin = memory.conversations().info(&todo).unwrap().origin;
    assert_eq!(
        origin,
        Origin {
            source: Some("mcp".to_owned()),
            folder: Some(folder.to_str().unwrap().to_owned()),
        }
    );
    assert_eq!(memory.len(&id("trip")).unwrap(), 5, "the other todo is as it was");
}

/// RC3: a client of the protocol of 2026 names its roots with the call, and nothing of them is kept.
#[tokio::test]
async fn rc3_roots_come_with_the_call_where_the_protocol_is_newer() {
    let memory = store(&["trip"]);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    work_in(&memory, "trip", &folder);
    let mut wire = Wire::connect(server(&memory, Scope::roots()));
    let params = |arguments: &Value, responses: Value| {
        let mut params = json!({
            "name": "search_block",
            "arguments": arguments,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
            },
        });
        if !responses.is_null() {
            params["inputResponses"] = responses;
        }
        params
    };
    let query = json!({"query": "ferry"});
    // Some clients send the arguments as a text.
    for arguments in [&query, &query, &json!(query.to_string())] {
        let asked = params(arguments, Value::Null);
        let asked = wire.request("tools/call", asked).await["result"].clone();
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        assert_eq!(asked["inputRequests"]["roots"]["method"], "roots/list");
        let roots = json!({"roots": {"roots": [{"uri": uri(&folder)}]}});
        let answer = wire.request("tools/call", params(arguments, roots)).await["result"].clone();
        assert!(
            answer["content"][0]["text"].as_str().unwrap().contains("ferry of trip"),
            "{answer}"
        );
    }
}

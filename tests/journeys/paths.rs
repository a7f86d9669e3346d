//! S4: no id or reference names a file outside the store.

use crate::story::{exchange, open, todo};
use foldback_core::TodoId;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::tempdir;

fn tricks() -> Vec<String> {
    let mut tricks: Vec<String> = [
        "..",
        ".",
        "../",
        "../..",
        "../../etc/passwd",
        "/etc/passwd",
        "//etc/passwd",
        "a/../../b",
        "./x",
        "x/.",
        "x/..",
        "~",
        "~root",
        "~/x",
        "$HOME",
        "${HOME}",
        "%HOME%",
        "`id`",
        "$(id)",
        "%2e%2e%2f",
        "%2e%2e/",
        "..%2f",
        "..%5c",
        "%252e%252e%252f",
        "..\\",
        "..\\..\\x",
        "C:\\x",
        "C:x",
        "\\\\host\\share",
        "\\\\?\\C:\\x",
        "file:///etc/passwd",
        "CON",
        "NUL.txt",
        "aux",
        "COM1",
        "x\0",
        "\0",
        "x\0/../y",
        "x\ny",
        "x\r\ny",
        "..\u{2215}x",
        "\u{ff0e}\u{ff0e}/",
        "\u{202e}x",
        "..;/",
        "..././",
        ".../...//",
        "a//b",
        "a/./b",
        " ",
        " ..",
        ".. ",
        "*",
        "?",
        "[a-z]",
        "|x",
        ">x",
        "<x",
        "&x",
        "'",
        "\"",
    ]
    .map(str::to_owned)
    .to_vec();
    tricks.push("x".repeat(4_096));
    tricks.push("../".repeat(1_000));
    tricks
}

fn files(dir: &Path) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path);
        }
    }
    found
}

#[test]
fn s4_no_trick_leaves_the_store() {
    let outer = tempdir().unwrap();
    let store = outer.path().join("store");
    std::fs::write(outer.path().join("secret"), "the secret outside").unwrap();
    let memory = open(&store);
    let own = todo("own");
    let mut session = memory.session(&own).unwrap();
    let large = "a large result that goes into a file\n".repeat(4_000);
    session.record_all(exchange(0, "x", &large).to_vec()).unwrap();
    session.close(foldback::Close::End).unwrap();
    drop(session);
    assert!(tricks().len() >= 60);
    let outside = |files: BTreeSet<PathBuf>| -> Vec<PathBuf> {
        files.into_iter().filter(|path| !path.starts_with(&store)).collect()
    };
    let before = outside(files(outer.path()));
    for trick in tricks() {
        // As a todo: refused, or an odd but harmless name (a reserved name is just letters here).
        if let Ok(id) = TodoId::new(&trick) {
            memory.session(&id).unwrap().record(foldback_core::Message::user("x")).unwrap();
            memory.maintenance().forget(&id).unwrap();
        }
        // As a foreign id: mapped to one that fits.
        let mapped = TodoId::from_foreign(&trick);
        memory.session(&mapped).unwrap().record_all(exchange(1, "y", &large).to_vec()).unwrap();
        memory.maintenance().forget(&mapped).unwrap();
        // As a reference.
        for reference in [
            trick.clone(),
            format!("store://{trick}"),
            format!("store://{trick}/1-aaaa"),
            format!("store://1-{trick}"),
            format!("b_{trick}_001"),
        ] {
            let arguments = serde_json::json!({ "ref": reference }).to_string();
            let answer = memory.recall(&own, "load", &arguments).unwrap();
            assert!(!answer.text.contains("the secret outside"), "{reference:?}");
            assert!(answer.is_error, "{reference:?}: {}", answer.text);
        }
    }
    assert_eq!(outside(files(outer.path())), before);
    assert!(memory.maintenance().verify().unwrap().is_clean());
}

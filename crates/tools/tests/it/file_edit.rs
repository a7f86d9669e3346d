//! `file_edit`.

use crate::tools::{Folder, put};
use serde_json::json;

const CODE: &str = "fn main() {\n    let 城市 = \"杭州\";\n    run(城市);\n    run(城市);\n}\n";

#[tokio::test]
async fn one_place_is_changed() {
    let folder = Folder::with(&[("main.rs", CODE)]);
    folder
        .says(
            "file_edit",
            json!({ "path": "main.rs", "old": "\"杭州\"", "new": "\"上海\"" }),
            "changed main.rs at line 2",
        )
        .await;
    assert_eq!(folder.content("main.rs"), CODE.replace("杭州", "上海"));
}

#[tokio::test]
async fn what_stands_several_times_must_be_meant_so() {
    let folder = Folder::with(&[("main.rs", CODE)]);
    let edit = json!({ "path": "main.rs", "old": "run(城市)", "new": "go()" });
    folder
        .fails(
            "file_edit",
            edit.clone(),
            "old occurs 2 times in main.rs, at the lines 3, 4. Give more of the text around the one \
             that is meant, or all: true.",
        )
        .await;
    assert_eq!(folder.content("main.rs"), CODE);
    let mut all = edit;
    all["all"] = json!(true);
    folder.says("file_edit", all, "changed main.rs at lines 3, 4").await;
    assert_eq!(folder.content("main.rs"), CODE.replace("run(城市)", "go()"));
}

#[tokio::test]
async fn the_nearest_place_is_shown() {
    let folder = Folder::with(&[("main.rs", CODE)]);
    let fails = async |old: &str, expected: &str| {
        folder
            .fails("file_edit", json!({ "path": "main.rs", "old": old, "new": "x" }), expected)
            .await;
    };
    fails(
        "\tlet 城市  = \"杭州\";\n\trun(城市);",
        "old does not occur in main.rs. The nearest is at the lines 2-3, but with other spacing:\n    \
         let 城市 = \"杭州\";\n    run(城市);\nTake old from there.",
    )
    .await;
    fails(
        "    let 城市 = \"广州\";",
        "old does not occur in main.rs. The nearest is at the lines 2-2:\n    let 城市 = \"杭州\";\nTake \
         old from there.",
    )
    .await;
    fails(
        "class Unrelated extends Nothing",
        "old does not occur in main.rs. Nothing in the file is similar; file_grep finds where a \
         text is.",
    )
    .await;
    fails("", "old is empty; file_write makes a new file").await;
    fails("x", "old and new are the same; nothing would change").await;
    assert_eq!(folder.content("main.rs"), CODE);
}

/// A reader of a file sees no difference between the two kinds of line end.
#[tokio::test]
async fn a_file_with_the_line_ends_of_windows_keeps_them() {
    let folder = Folder::with(&[("dos.txt", "one\r\ntwo\r\nthree\r\n")]);
    folder
        .says(
            "file_edit",
            json!({ "path": "dos.txt", "old": "one\ntwo", "new": "1\n1a\n2" }),
            "changed dos.txt at line 1",
        )
        .await;
    assert_eq!(folder.content("dos.txt"), "1\r\n1a\r\n2\r\nthree\r\n");
}

#[tokio::test]
async fn what_is_no_utf_8_is_not_spoilt() {
    let folder = Folder::with(&[]);
    put(&folder.path("gbk"), b"name: \xba\xba\xd7\xd6\n");
    put(&folder.path("binary"), b"name\0");
    folder
        .fails(
            "file_edit",
            json!({ "path": "gbk", "old": "name", "new": "x" }),
            "gbk is not UTF-8 (byte 6 is not text), so it cannot be edited without damage",
        )
        .await;
    put(&folder.path("binary"), b"name\0\xff");
    folder
        .fails(
            "file_edit",
            json!({ "path": "binary", "old": "name", "new": "x" }),
            "binary is not text: it is a binary file of 6 bytes. This tool works only on text.",
        )
        .await;
    assert_eq!(std::fs::read(folder.path("gbk")).unwrap(), b"name: \xba\xba\xd7\xd6\n");
}

/// Edits of one file that are made at once all take effect.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_edit_is_lost() {
    let lines: String = (0..30).map(|at| format!("<{at}>\n")).collect();
    let folder = Folder::with(&[("f", &lines)]);
    let edits = (0..30).map(|at| {
        let edit = json!({ "path": "f", "old": format!("<{at}>"), "new": format!("[{at}]") });
        folder.call("file_edit", edit)
    });
    assert!(futures::future::join_all(edits).await.iter().all(Result::is_ok));
    assert_eq!(folder.content("f"), lines.replace('<', "[").replace('>', "]"));
}

/// A replacement in a file with the line ends of Windows has them too, whichever the call used.
#[tokio::test]
async fn what_is_put_into_a_file_of_windows_ends_its_lines_as_it_does() {
    let folder = Folder::with(&[("dos.txt", "one\r\ntwo\r\nthree\r\n")]);
    let edit = async |old: &str, new: &str, expected: &str| {
        folder
            .call("file_edit", json!({ "path": "dos.txt", "old": old, "new": new }))
            .await
            .unwrap();
        assert_eq!(folder.content("dos.txt"), expected);
    };
    edit("two", "2\n杭州", "one\r\n2\r\n杭州\r\nthree\r\n").await;
    edit("one\r\n2", "1\n2", "1\r\n2\r\n杭州\r\nthree\r\n").await;
    // If a file has both, the new text stays as it was given.
    put(&folder.path("mixed"), b"a\r\nb\nc\n");
    folder
        .says(
            "file_edit",
            json!({ "path": "mixed", "old": "b\n", "new": "x\ny\n" }),
            "changed mixed at line 2",
        )
        .await;
    assert_eq!(folder.content("mixed"), "a\r\nx\ny\nc\n");
}

/// A reader sees the same text twice, whatever ends its lines: neither place is changed as if it were the only one.
#[tokio::test]
async fn both_line_ends_are_searched_where_a_file_has_both() {
    let mixed = "杭\n州\nX\r\n杭\r\n州\r\n";
    let folder = Folder::with(&[("mixed", mixed)]);
    let edit = json!({ "path": "mixed", "old": "杭\n州", "new": "上\n海" });
    folder
        .fails(
            "file_edit",
            edit.clone(),
            "old occurs 2 times in mixed, at the lines 1, 4. Give more of the text around the one that is meant, \
             or all: true.",
        )
        .await;
    assert_eq!(folder.content("mixed"), mixed);
    let mut all = edit;
    all["all"] = json!(true);
    folder.says("file_edit", all, "changed mixed at lines 1, 4").await;
    assert_eq!(folder.content("mixed"), "上\n海\nX\r\n上\r\n海\r\n");
    // More text around a place decides, also where that text has both line ends.
    folder
        .says(
            "file_edit",
            json!({ "path": "mixed", "old": "海\nX\n上", "new": "海\n上" }),
            "changed mixed at line 2",
        )
        .await;
    assert_eq!(folder.content("mixed"), "上\n海\n上\r\n海\r\n");
    // A call that names the line ends means those, and may change them.
    folder
        .says(
            "file_edit",
            json!({ "path": "mixed", "old": "上\r\n海\r\n", "new": "上\n海\n" }),
            "changed mixed at line 3",
        )
        .await;
    assert_eq!(folder.content("mixed"), "上\n海\n上\n海\n");
}

/// An edit of a small file would take 40 GB: it is refused before any of it is built.
#[tokio::test]
async fn an_edit_that_grows_too_large_is_refused_before_it_is_made() {
    let folder = Folder::with(&[("f", &"a".repeat(2_000_000))]);
    folder
        .fails(
            "file_edit",
            json!({ "path": "f", "old": "a", "new": "b".repeat(20_000), "all": true }),
            "f would have 40,000,000,000 bytes; files of up to 16,777,216 bytes may be written",
        )
        .await;
    assert_eq!(folder.content("f").len(), 2_000_000);
}

#[tokio::test]
async fn what_is_shown_of_a_near_place_is_short_and_no_more_is_claimed() {
    let near = async |content: &str, old: &str| {
        let folder = Folder::with(&[("f", content)]);
        let edit = json!({ "path": "f", "old": old, "new": "x" });
        folder.call("file_edit", edit).await.unwrap_err().message
    };
    let long = "长".repeat(1 << 20);
    let message = near(&format!("杭州; {long}\n"), &format!("广州; {long}")).await;
    assert!(message.contains("杭州") && message.contains("长…\n"), "{message}");
    assert!(message.len() < 5_000, "{} bytes", message.len());
    let lines: String = (0..40).map(|at| format!("{at} {}\n", "x".repeat(290))).collect();
    let message = near(&lines, &lines.replace("39 x", "39 y")).await;
    assert!(message.len() < 5_000, "{} bytes", message.len());
    // The lines differ after the part that is compared.
    let head = "x".repeat(400);
    let message = near(&format!("{head} one\n"), &format!(" {head} two")).await;
    assert!(message.contains("The nearest") && !message.contains("spacing"), "{message}");
    let long: String = (0..20_001).map(|at| format!("{at}\n")).collect();
    let message = near(&format!("{long}let city = 1;\n"), "let city = 2;").await;
    assert!(message.contains("first 20,000 lines"), "{message}");
}

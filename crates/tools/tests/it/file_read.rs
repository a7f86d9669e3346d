//! `file_read`.

use crate::tools::{Folder, put};
use foldback_planner::Catalog;
use serde_json::json;

const POEM: &str = "床前明月光\n疑是地上霜\n举头望明月\n低头思故乡\n";

#[tokio::test]
async fn a_file_is_answered_exactly() {
    let dos = "one\r\ntwo";
    let folder = Folder::with(&[("静夜思.txt", POEM), ("dos.txt", dos), ("empty", "")]);
    folder.says("file_read", json!({ "path": "静夜思.txt" }), POEM).await;
    folder.says("file_read", json!({ "path": "./dos.txt" }), dos).await;
    folder.says("file_read", json!({ "path": folder.path("dos.txt") }), dos).await;
    folder.says("file_read", json!({ "path": "empty" }), "[empty is empty]").await;
}

#[tokio::test]
async fn lines_are_answered_exactly() {
    let folder = Folder::with(&[("p", POEM)]);
    let lines = async |lines: &str, expected: &str| {
        folder.says("file_read", json!({ "path": "p", "lines": lines }), expected).await;
    };
    lines("2-3", "疑是地上霜\n举头望明月\n").await;
    lines("4", "低头思故乡\n").await;
    lines("3-", "举头望明月\n低头思故乡\n").await;
    lines(" 1 - 1 ", "床前明月光\n").await;
    lines("4-900", "低头思故乡\n").await;
    lines("", POEM).await;
    let fails = async |lines: &str, expected: &str| {
        folder.fails("file_read", json!({ "path": "p", "lines": lines }), expected).await;
    };
    fails("5-", "p has only 4 lines; line 5 was asked for").await;
    for wrong in ["0", "3-2", "a-b", "-5", "1-2-3", "１-２"] {
        fails(
            wrong,
            &format!(
                "lines {wrong:?} is not a range; \"10-40\", \"10-\" or \"10\" was expected, counted from 1"
            ),
        )
        .await;
    }
}

/// A cut answer says how to read on, and reading on that way gives every line once.
#[tokio::test]
async fn a_long_file_is_read_on_to_its_end() {
    let long: String = (0..5_000).map(|at| format!("第{at}行 line\n")).collect();
    let folder = Folder::permitting(&[("long", &long)], |mut permissions| {
        permissions.files.output_bytes = 10_000;
        permissions
    });
    let (mut read, mut lines, mut calls) = (String::new(), "1-".to_owned(), 0);
    loop {
        let output = folder.call("file_read", json!({ "path": "long", "lines": lines })).await;
        let text = output.unwrap().data.text;
        calls += 1;
        let Some((part, note)) = text.split_once('[') else {
            read.push_str(&text);
            break;
        };
        assert!(part.len() <= 10_000, "{}", part.len());
        read.push_str(part);
        assert!(note.contains("read on with lines"), "{note}");
        lines = note.split('"').nth(1).unwrap().to_owned();
    }
    assert_eq!(read, long);
    assert!(calls > 5, "{calls}");
}

#[tokio::test]
async fn a_line_that_is_too_long_is_cut_between_characters() {
    let long = format!("{}\nnext\n", "汉".repeat(100));
    let folder = Folder::permitting(&[("long", &long)], |mut permissions| {
        permissions.files.output_bytes = 100;
        permissions
    });
    let expected = format!(
        "{}\n[line 1 is too long to be shown whole: this is its beginning. file_grep shows the part of \
         it that matches. Read on after it with lines \"2-\"]",
        "汉".repeat(33)
    );
    folder.says("file_read", json!({ "path": "long" }), &expected).await;
    folder.says("file_read", json!({ "path": "long", "lines": "2-" }), "next\n").await;
}

#[tokio::test]
async fn what_is_no_text_is_told() {
    let folder = Folder::with(&[]);
    put(&folder.path("a.png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    folder
        .fails(
            "file_read",
            json!({ "path": "a.png" }),
            "a.png is not text: it is a binary file of 16 bytes. This tool works only on text.",
        )
        .await;
    // Chinese in GBK: shown as far as it is text, with a note.
    put(&folder.path("gbk"), b"name: \xba\xba\xd7\xd6\n");
    folder
        .says(
            "file_read",
            json!({ "path": "gbk" }),
            "name: \u{fffd}\u{fffd}\u{fffd}\u{fffd}\n[the file is not UTF-8: bytes that are not text \
             are shown as \u{fffd}]",
        )
        .await;
    for (name, bytes) in [
        (
            "little",
            [0xff, 0xfe]
                .into_iter()
                .chain("汉字\nab".encode_utf16().flat_map(u16::to_le_bytes))
                .collect::<Vec<u8>>(),
        ),
        (
            "big",
            [0xfe, 0xff]
                .into_iter()
                .chain("汉字\nab".encode_utf16().flat_map(u16::to_be_bytes))
                .collect(),
        ),
    ] {
        put(&folder.path(name), &bytes);
        folder.says("file_read", json!({ "path": name }), "汉字\nab").await;
        folder.says("file_read", json!({ "path": name, "lines": "2" }), "ab").await;
    }
}

/// A missing name is answered with the one that was likely meant, in any script and case; of several that
/// are equally alike, with the one that has the same extension. An unlike name is not suggested.
#[tokio::test]
async fn a_likely_name_is_told() {
    let folder = Folder::with(&[
        ("README.md", ""),
        ("src/main.rs", ""),
        ("src/config.toml", ""),
        ("src/config.yaml", ""),
        ("docs/潮汐表.md", ""),
        ("docs/caf\u{e9} notes.txt", ""),
        ("docs/z.md", ""),
    ]);
    for (path, likely) in [
        ("readme", Some("README.md")),
        ("README.txt", Some("README.md")),
        ("src/mian.rs", Some("src/main.rs")),
        ("scr/main.rs", Some("src/main.rs")),
        ("./src/../scr/main.rs", Some("src/main.rs")),
        ("src/conf.toml", Some("src/config.toml")),
        ("src/config.json", Some("src/config.toml")),
        ("src/config.yml", Some("src/config.yaml")),
        ("docs/潮汐.md", Some("docs/潮汐表.md")),
        ("docs/cafe\u{301} note.txt", Some("docs/caf\u{e9} notes.txt")),
        ("scr/other.rs", None),
        ("scr/mian.rs", None),
        ("docs/columns.md", None),
        ("docs/a.md", None),
        ("missing/deep/down.md", None),
    ] {
        let error = folder.call("file_read", json!({ "path": path })).await.unwrap_err();
        let shown = path.rsplit("../").next().unwrap();
        let guess = likely.map(|likely| format!("; did you mean {likely}?"));
        let next = match guess {
            Some(guess) => format!("{guess} file_list"),
            None => ". file_list".to_owned(),
        };
        let expected = format!("there is no {shown}{next} with a pattern finds files by name.");
        assert_eq!(error.to_string(), expected);
    }
    let whole = folder.path("src/mian.rs").display().to_string();
    let likely = "there is no src/mian.rs; did you mean src/main.rs?";
    let error = folder.call("file_read", json!({ "path": whole })).await.unwrap_err();
    assert!(error.to_string().starts_with(likely), "{error}");
    let error = folder.call("file_list", json!({ "path": "scr" })).await.unwrap_err();
    assert!(error.to_string().starts_with("there is no scr; did you mean src?"), "{error}");
}

#[tokio::test]
async fn errors_say_what_to_do_next() {
    let folder = Folder::with(&[("src/a.rs", "")]);
    let fails = async |path: &str, expected: &str| {
        folder.fails("file_read", json!({ "path": path }), expected).await;
    };
    fails("b.rs", "there is no b.rs. file_list with a pattern finds files by name.").await;
    fails("src", "src is a folder; a file was expected. file_list shows what is in it.").await;
    fails("src/a.rs/b", "src/a.rs/b cannot be reached: a part of the path is a file, not a folder")
        .await;
    fails("", "\"\" cannot be used: a path was expected, but it is empty; \".\" is the workspace")
        .await;
    fails(
        "~/notes",
        "\"~/notes\" cannot be used: ~ is not a folder here; give a path from the \
         workspace on, or one that begins with /",
    )
    .await;
    let error = folder.call("file_read", json!({ "file": "x" })).await.unwrap_err();
    assert!(error.message.contains("unknown field `file`"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_keeps_nobody_waiting() {
    let folder = Folder::with(&[]);
    let pipe = folder.path("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    folder
        .fails("file_read", json!({ "path": "pipe" }), "pipe cannot be used: it is no regular file")
        .await;
}

/// An answer is as long as a context shows whole, so that the note on how to read on is seen.
#[tokio::test]
async fn an_answer_is_short_enough_to_be_shown_whole() {
    let long: String = (0..4_000).map(|at| format!("第{at}行 line\n")).collect();
    let folder = Folder::with(&[("long", &long)]);
    for (tool, arguments) in
        [("file_read", json!({ "path": "long" })), ("file_grep", json!({ "pattern": "line" }))]
    {
        let text = folder.call(tool, arguments).await.unwrap().data.text;
        assert!((14 << 10..=17 << 10).contains(&text.len()), "{tool}: {} bytes", text.len());
        assert!(text.ends_with(']'), "{tool} says how to go on");
    }
}

/// Arguments as models write them: null for what is not wanted, and a number for a line.
#[tokio::test]
async fn arguments_as_models_write_them_are_taken() {
    let folder = Folder::with(&[("p", POEM)]);
    for (tool, arguments, expected) in [
        ("file_read", json!({ "path": "p", "lines": 2 }), "疑是地上霜\n"),
        ("file_read", json!({ "path": "p", "lines": null }), POEM),
        (
            "file_list",
            json!({ "path": null, "pattern": null, "depth": null, "ignored": null }),
            "p",
        ),
        (
            "file_grep",
            json!({ "pattern": "故乡", "path": null, "glob": null, "context": null, "ignored": null }),
            "p:4:低头思故乡",
        ),
        (
            "file_edit",
            json!({ "path": "p", "old": "床前", "new": "窗前", "all": null }),
            "changed p at line 1",
        ),
    ] {
        let catalog: Catalog = folder.toolbox.specs().cloned().collect();
        catalog.check_arguments(tool, &arguments.to_string()).unwrap();
        folder.says(tool, arguments, expected).await;
    }
}

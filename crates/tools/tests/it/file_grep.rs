//! `file_grep`.

use crate::tools::{Folder, put};
use serde_json::json;

fn notes() -> Folder {
    Folder::with(&[
        (".gitignore", "private/\n"),
        ("a.md", "one\n杭州 小雨 12°\nthree\nfour\n杭州 晴\nsix\n"),
        ("b/c.txt", "Hangzhou\r\nshanghai\r\n"),
        ("private/d.md", "杭州\n"),
    ])
}

#[tokio::test]
async fn lines_that_match_are_told_with_their_place() {
    let folder = notes();
    let grep = async |arguments, expected: &str| {
        folder.says("file_grep", arguments, expected).await;
    };
    grep(json!({ "pattern": "杭州" }), "a.md:2:杭州 小雨 12°\na.md:5:杭州 晴").await;
    grep(json!({ "pattern": "(?i)HANGZ" }), "b/c.txt:1:Hangzhou").await;
    grep(json!({ "pattern": "zhou$" }), "b/c.txt:1:Hangzhou").await;
    grep(json!({ "pattern": r"\d+°" }), "a.md:2:杭州 小雨 12°").await;
    grep(json!({ "pattern": "o", "glob": "*.txt" }), "b/c.txt:1:Hangzhou").await;
    grep(json!({ "pattern": "zh", "glob": "*.{c,txt}, *.md" }), "b/c.txt:1:Hangzhou").await;
    grep(
        json!({ "pattern": "杭州 ", "glob": "*.txt,*.{md,rs}" }),
        "a.md:2:杭州 小雨 12°\na.md:5:杭州 晴",
    )
    .await;
    grep(json!({ "pattern": "o", "path": "b" }), "b/c.txt:1:Hangzhou").await;
    grep(json!({ "pattern": "晴", "path": "a.md" }), "a.md:5:杭州 晴").await;
    grep(json!({ "pattern": "杭州", "path": "private" }), "private/d.md:1:杭州").await;
    grep(
        json!({ "pattern": "广州" }),
        "[nothing matches; files searched: 3]\n[left out by ignore files: 1; ask with ignored: true]",
    )
    .await;
    let found = folder.call("file_grep", json!({ "pattern": "晴" })).await.unwrap();
    assert_eq!(
        found.data.structured.as_deref(),
        Some(r#"{"matches":[{"path":"a.md","line":5,"text":"杭州 晴"}]}"#)
    );
}

#[tokio::test]
async fn lines_around_a_match_are_told_once() {
    let folder = notes();
    let grep = async |context: usize, expected: &str| {
        let arguments = json!({ "pattern": "杭州", "glob": "a.md", "context": context });
        folder.says("file_grep", arguments, expected).await;
    };
    grep(
        1,
        "a.md-1-one\na.md:2:杭州 小雨 12°\na.md-3-three\na.md-4-four\na.md:5:杭州 晴\na.md-6-six",
    )
    .await;
    let two = Folder::with(&[("x", "hit\na\nb\nc\nhit\n"), ("y", "hit\n")]);
    two.says(
        "file_grep",
        json!({ "pattern": "hit", "context": 1 }),
        "x:1:hit\nx-2-a\n--\nx-4-c\nx:5:hit\n--\ny:1:hit",
    )
    .await;
}

#[tokio::test]
async fn a_long_line_is_cut_around_its_match() {
    let line = format!("{}针{}", "草".repeat(5_000), "堆".repeat(5_000));
    let folder = Folder::with(&[("x", &line)]);
    let text = folder.call("file_grep", json!({ "pattern": "针" })).await.unwrap().data.text;
    assert!(text.contains("草针堆") && text.starts_with("x:1:…草") && text.ends_with("堆…"));
    assert!(text.chars().count() < 420, "{}", text.chars().count());
}

/// A line of many megabytes is searched in parts, and counts as one.
#[tokio::test]
async fn a_huge_line_is_searched_to_its_end() {
    let line = format!("{}针\nafter\n", "a".repeat(3_200_000));
    let folder = Folder::with(&[("x", &line)]);
    let text = folder.call("file_grep", json!({ "pattern": "针" })).await.unwrap().data.text;
    assert!(text.starts_with("x:1:…a") && text.ends_with("a针"), "{text}");
    folder.says("file_grep", json!({ "pattern": "after" }), "x:2:after").await;
    folder.says("file_read", json!({ "path": "x", "lines": "2" }), "after\n").await;
}

/// A line of a few megabytes, such as a file of JSON is, is one line to a pattern.
#[tokio::test]
async fn a_long_line_is_matched_as_one() {
    let half = "堆".repeat((1 << 20) / 3);
    let folder = Folder::with(&[("x", &format!("{half}针头{half}针{half}尾\n"))]);
    let grep = async |pattern: &str| {
        folder.call("file_grep", json!({ "pattern": pattern })).await.unwrap().data.text
    };
    assert!(grep("堆针头堆").await.starts_with("x:1:…堆"));
    assert_eq!(grep("针").await.lines().count(), 1, "one line is listed once");
    for pattern in ["^针", "^头", "堆$", "^堆{1,2}尾"] {
        assert_eq!(grep(pattern).await, "[nothing matches; files searched: 1]", "{pattern}");
    }
}

#[tokio::test]
async fn many_matches_are_cut_and_told() {
    let folder = Folder::permitting(&[("x", &"match\n".repeat(10_000))], |mut permissions| {
        permissions.files.output_bytes = 2_000;
        permissions
    });
    let text = folder.call("file_grep", json!({ "pattern": "match" })).await.unwrap().data.text;
    let (lines, note) = text.rsplit_once('\n').unwrap();
    assert!(lines.len() <= 2_000 && lines.lines().all(|line| line.ends_with(":match")));
    assert_eq!(
        note,
        format!(
            "[there may be more after {} matches; give a narrower pattern, path or glob]",
            lines.lines().count()
        )
    );
}

#[tokio::test]
async fn what_is_no_text_is_left_out() {
    let folder = Folder::with(&[]);
    put(&folder.path("binary"), b"needle\0needle");
    folder
        .says(
            "file_grep",
            json!({ "pattern": "needle" }),
            "[nothing matches; files searched: 0]\n[files that are not text: 1]",
        )
        .await;
    put(&folder.path("gbk"), b"needle \xba\xba\n");
    folder.says("file_grep", json!({ "pattern": "needle" }), "gbk:1:needle \u{fffd}\u{fffd}").await;
}

/// A pattern on which other engines never finish is searched in time linear in the text.
#[tokio::test]
async fn no_pattern_takes_for_ever() {
    let folder = Folder::with(&[("x", &format!("{}b\n", "a".repeat(100_000)))]);
    folder
        .says("file_grep", json!({ "pattern": "^(a+)+$" }), "[nothing matches; files searched: 1]")
        .await;
    let error = folder
        .call("file_grep", json!({ "pattern": "(((a{1000}){1000}){1000})" }))
        .await
        .unwrap_err();
    assert!(error.message.starts_with("pattern is not a valid regular expression: "), "{error}");
    let error = folder.call("file_grep", json!({ "pattern": "f(" })).await.unwrap_err();
    assert!(error.message.contains("put a backslash before each"), "{error}");
}

#[tokio::test]
async fn what_is_left_out_is_told_where_nothing_matches() {
    let folder =
        Folder::with(&[(".gitignore", "*.log\n"), ("a.log", "错误: disk\n"), ("b", "x\n")]);
    folder
        .says(
            "file_grep",
            json!({ "pattern": "错误" }),
            "[nothing matches; files searched: 2]\n[left out by ignore files: 1; ask with ignored: true]",
        )
        .await;
    folder
        .says("file_grep", json!({ "pattern": "错误", "ignored": true }), "a.log:1:错误: disk")
        .await;
}

/// A link does not count as an unreadable file: its target is searched in its own place.
#[cfg(unix)]
#[tokio::test]
async fn links_are_not_told_as_unreadable() {
    let folder = Folder::with(&[("src/a", "needle\n"), ("b", "x\n")]);
    std::os::unix::fs::symlink("src", folder.path("link")).unwrap();
    std::os::unix::fs::symlink("../b", folder.path("src/to_b")).unwrap();
    folder.says("file_grep", json!({ "pattern": "needle" }), "src/a:1:needle").await;
    folder
        .says(
            "file_grep",
            json!({ "pattern": "nowhere" }),
            "[nothing matches; files searched: 2]\n[links that were not followed: 2]",
        )
        .await;
}

#[tokio::test]
async fn patterns_of_other_engines_are_explained() {
    let folder = Folder::with(&[("x", "\u{feff}first\nsecond\n")]);
    folder
        .says(
            "file_grep",
            json!({ "pattern": r"first\nsecond" }),
            "[nothing matches; files searched: 1]\n[each line is searched by itself, so a pattern with \
             \\n matches nothing; give a pattern for one line]",
        )
        .await;
    folder.says("file_grep", json!({ "pattern": "^first" }), "x:1:first").await;
    let error = folder.call("file_grep", json!({ "pattern": "(?<!x)y" })).await.unwrap_err();
    assert!(error.message.contains("not supported: search for more"), "{error}");
    assert!(!error.message.contains("backslash"), "{error}");
}

//! `file_list`.

use crate::tools::Folder;
use serde_json::json;

const FILES: [(&str, &str); 9] = [
    (".git/HEAD", ""),
    (".github/ci.yml", ""),
    (".gitignore", "target/\n*.log\n!keep.log\n"),
    ("docs/说明.md", ""),
    ("keep.log", ""),
    ("noise.log", ""),
    ("src/lib.rs", ""),
    ("src/模块/mod.rs", ""),
    ("target/debug/a.rs", ""),
];

#[tokio::test]
async fn a_folder_is_listed_in_one_order_without_what_is_ignored() {
    let folder = Folder::with(&FILES);
    let note = "[left out by ignore files: 2; ask with ignored: true]";
    let listed = format!(".github/\n.gitignore\ndocs/\nkeep.log\nsrc/\n{note}");
    folder.says("file_list", json!({}), &listed).await;
    folder.says("file_list", json!({ "path": "src" }), "src/lib.rs\nsrc/模块/").await;
    folder
        .says(
            "file_list",
            json!({ "path": "src", "depth": 2 }),
            "src/lib.rs\nsrc/模块/\nsrc/模块/mod.rs",
        )
        .await;
    // Asked for by its name, it is shown.
    folder.says("file_list", json!({ "path": "target/debug" }), "target/debug/a.rs").await;
}

#[tokio::test]
async fn patterns_find_names_and_paths() {
    let folder = Folder::with(&FILES);
    let list = async |pattern: &str, expected: &str| {
        folder.says("file_list", json!({ "pattern": pattern }), expected).await;
    };
    list("*.rs", "src/lib.rs\nsrc/模块/mod.rs").await;
    list("src/*.rs", "src/lib.rs").await;
    list("./src/**/*.rs", "src/lib.rs\nsrc/模块/mod.rs").await;
    list("说*.{md,txt}", "docs/说明.md").await;
    list(
        "*.zip",
        "[. holds nothing that fits the pattern]\n[left out by ignore files: 2; ask with ignored: true]",
    )
    .await;
    folder
        .fails(
            "file_list",
            json!({ "pattern": "[" }),
            "\"[\" is not a pattern for file names: unclosed character class; missing ']'; \"*.rs\", \
             \"src/**/*.md\" or \"*.{yml,yaml}\" was expected",
        )
        .await;
    let found = folder.call("file_list", json!({ "pattern": "*.rs" })).await.unwrap();
    assert_eq!(
        found.data.structured.as_deref(),
        Some(r#"{"paths":["src/lib.rs","src/模块/mod.rs"]}"#)
    );
}

#[tokio::test]
async fn a_nested_ignore_file_goes_before_an_outer_one() {
    let folder = Folder::with(&[
        (".gitignore", "*.tmp\n"),
        ("a/.gitignore", "!b.tmp\n/deep\n"),
        ("a/b.tmp", ""),
        ("a/deep/x", ""),
        ("a/in/deep/x", ""),
        ("c.tmp", ""),
    ]);
    folder
        .says(
            "file_list",
            json!({ "depth": 9 }),
            ".gitignore\na/\na/.gitignore\na/b.tmp\na/in/\na/in/deep/\na/in/deep/x\n[left out by ignore \
             files: 2; ask with ignored: true]",
        )
        .await;
    folder
        .says(
            "file_list",
            json!({ "path": "a" }),
            "a/.gitignore\na/b.tmp\na/in/\n[left out by ignore files: 1; ask with ignored: true]",
        )
        .await;
}

#[tokio::test]
async fn a_long_list_is_cut_between_paths() {
    let names: Vec<String> = (0..1_000).map(|at| format!("文件{at:04}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let folder = Folder::permitting(&files, |mut permissions| {
        permissions.files.output_bytes = 1_000;
        permissions
    });
    let text = folder.call("file_list", json!({})).await.unwrap().data.text;
    let (paths, note) = text.rsplit_once('\n').unwrap();
    assert_eq!(paths, names[..paths.lines().count()].join("\n"));
    assert!(paths.lines().count() > 50 && paths.len() <= 1_000);
    assert_eq!(note, "[there is more; give a path further down, or a pattern]");
}

#[tokio::test]
async fn what_is_no_folder_is_told() {
    let folder = Folder::with(&[("a", "")]);
    folder
        .fails(
            "file_list",
            json!({ "path": "b" }),
            "there is no b. file_list with a pattern finds files by name.",
        )
        .await;
    folder.fails("file_list", json!({ "depth": 0 }), "depth is 0; 1 or more was expected").await;
    folder
        .fails(
            "file_list",
            json!({ "path": "a" }),
            "a is a file; a folder was expected. file_read reads it.",
        )
        .await;
}

/// A link to a folder around itself is shown, and not followed.
#[cfg(unix)]
#[tokio::test]
async fn links_are_not_followed_round_and_round() {
    let folder = Folder::with(&[("a/b", "")]);
    std::os::unix::fs::symlink("..", folder.path("a/up")).unwrap();
    folder.says("file_list", json!({ "depth": 50 }), "a/\na/b\na/up").await;
}

/// What an ignore file names is not reported as missing.
#[tokio::test]
async fn what_is_left_out_is_told_and_can_be_asked_for() {
    let folder =
        Folder::with(&[(".gitignore", "*.log\n"), ("logs/错误.log", ""), ("logs/b.log", "")]);
    let note = "[left out by ignore files: 2; ask with ignored: true]";
    folder
        .says("file_list", json!({ "path": "logs" }), &format!("[logs holds nothing]\n{note}"))
        .await;
    folder
        .says(
            "file_list",
            json!({ "pattern": "*.log" }),
            &format!("[. holds nothing that fits the pattern]\n{note}"),
        )
        .await;
    folder
        .says(
            "file_list",
            json!({ "pattern": "*.log", "ignored": true }),
            "logs/b.log\nlogs/错误.log",
        )
        .await;
}

/// A call that was cancelled does not say that there is too much.
#[tokio::test]
async fn why_a_list_ends_early_is_told() {
    let folder = Folder::with(&[("a", "text")]);
    let context = foldback_tool::CallContext::default();
    context.cancelled.cancel();
    for (tool, arguments) in [("file_list", "{}"), ("file_grep", r#"{"pattern": "text"}"#)] {
        let tool = folder.toolbox.get(tool).unwrap();
        let text = tool.call(arguments, &context).await.unwrap().data.text;
        assert_eq!(text, "[the call was cancelled before everything was seen]");
    }
}

#[tokio::test]
async fn a_file_is_told_as_a_file() {
    let folder = Folder::with(&[("说明.md", "")]);
    folder
        .fails(
            "file_list",
            json!({ "path": "说明.md" }),
            "说明.md is a file; a folder was expected. file_read reads it.",
        )
        .await;
}

#[tokio::test]
async fn several_patterns_may_be_given() {
    let folder = Folder::with(&[("a.ts", ""), ("b/c.tsx", ""), ("d.rs", "")]);
    folder.says("file_list", json!({ "pattern": "*.ts, *.tsx" }), "a.ts\nb/c.tsx").await;
    folder.says("file_list", json!({ "pattern": "*.{ts,tsx}" }), "a.ts\nb/c.tsx").await;
}

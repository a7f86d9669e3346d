//! `file_write`.

use crate::tools::{Folder, put};
use serde_json::json;

#[tokio::test]
async fn a_file_is_made_with_its_folders_or_replaced() {
    let folder = Folder::with(&[]);
    let write = async |content: &str, expected: &str| {
        folder
            .says("file_write", json!({ "path": "一/二/三.md", "content": content }), expected)
            .await;
    };
    write("汉字\n", "made 一/二/三.md: 7 bytes").await;
    write("👩‍👩‍👧 cafe\u{301}", "replaced 一/二/三.md: 25 bytes").await;
    assert_eq!(folder.content("一/二/三.md"), "👩‍👩‍👧 cafe\u{301}");
    let left: Vec<_> = std::fs::read_dir(folder.path("一/二")).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left beside it");
}

#[cfg(unix)]
#[tokio::test]
async fn the_rights_of_a_file_are_kept_and_links_stay_links() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::with(&[("run.sh", "old")]);
    std::fs::set_permissions(folder.path("run.sh"), PermissionsExt::from_mode(0o751)).unwrap();
    std::os::unix::fs::symlink("run.sh", folder.path("link")).unwrap();
    folder
        .says("file_write", json!({ "path": "link", "content": "new" }), "replaced run.sh: 3 bytes")
        .await;
    let meta = std::fs::metadata(folder.path("run.sh")).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o751);
    assert!(std::fs::symlink_metadata(folder.path("link")).unwrap().is_symlink());
    assert_eq!(folder.content("run.sh"), "new");
}

/// A name in another normal form is the same file, not a second one that looks the same.
#[tokio::test]
async fn a_name_means_the_same_in_each_normal_form() {
    let folder = Folder::with(&[("cafe\u{301}/re\u{301}sume\u{301}.txt", "old")]);
    folder
        .says(
            "file_write",
            json!({ "path": "caf\u{e9}/r\u{e9}sum\u{e9}.txt", "content": "new" }),
            "replaced cafe\u{301}/re\u{301}sume\u{301}.txt: 3 bytes",
        )
        .await;
    assert_eq!(folder.content("cafe\u{301}/re\u{301}sume\u{301}.txt"), "new");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 1);
}

#[tokio::test]
async fn what_cannot_be_written_is_told() {
    let folder = Folder::permitting(&[("src/a.rs", "old")], |mut permissions| {
        permissions.files.file_bytes = 10;
        permissions.with_read("/usr")
    });
    let fails = async |path: &str, content: &str, expected: &str| {
        folder.fails("file_write", json!({ "path": path, "content": content }), expected).await;
    };
    fails("src", "x", "src is a folder; the path of a file was expected").await;
    fails(
        "src/a.rs/b",
        "x",
        "src/a.rs/b cannot be reached: a part of the path is a file, not a folder",
    )
    .await;
    fails("x", "汉字汉字", "the content has 12 bytes; files of up to 10 bytes may be written")
        .await;
    fails(
        "/usr/x",
        "x",
        "writing /usr/x is not permitted; permitted: everything in the workspace but .git",
    )
    .await;
    fails(
        "../x",
        "x",
        "writing ../x is not permitted; permitted: everything in the workspace but .git",
    )
    .await;
    assert_eq!(folder.content("src/a.rs"), "old");
}

/// Hooks are programs that git runs for a person, outside of any sandbox.
#[tokio::test]
async fn what_git_keeps_for_itself_is_not_written() {
    let folder = Folder::with(&[(".git/config", "[core]\n"), (".gitignore", "")]);
    std::fs::create_dir(folder.path("sub")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(".git/hooks", folder.path("hooks")).unwrap();
    std::fs::create_dir(folder.path(".git/hooks")).unwrap();
    for path in [".git/hooks/pre-commit", ".git/config", "sub/.git", "sub/.GIT/config", "hooks/x"] {
        let edit = json!({ "path": path, "old": "core", "new": "x" });
        let write = json!({ "path": path, "content": "x" });
        for (tool, arguments) in [("file_write", write), ("file_edit", edit)] {
            let error = folder.call(tool, arguments).await.unwrap_err().message;
            assert_eq!(
                error,
                format!(
                    "writing {path} is not permitted; permitted: everything in the workspace but .git"
                )
            );
        }
    }
    folder.says("file_read", json!({ "path": ".git/config" }), "[core]\n").await;
    folder
        .says(
            "file_write",
            json!({ "path": ".gitignore", "content": "x" }),
            "replaced .gitignore: 1 byte",
        )
        .await;
}

/// What git runs may lie elsewhere: behind links, or in a repository without a folder `.git`.
#[cfg(unix)]
#[tokio::test]
async fn s13_what_git_keeps_elsewhere_is_not_written() {
    use std::os::unix::fs::symlink;
    let folder = Folder::with(&[
        ("仓库/HEAD", "ref: refs/heads/main\n"),
        ("仓库/objects/x", ""),
        ("仓库/refs/x", ""),
        ("my-hooks/post-commit", "old"),
        ("sub/.git/config", ""),
        ("data/objects/x", ""),
        ("data/refs/x", ""),
    ]);
    symlink("仓库", folder.path(".git")).unwrap();
    symlink("../../my-hooks", folder.path("sub/.git/hooks")).unwrap();
    symlink("sub/.git/hooks", folder.path("way")).unwrap();
    for path in [
        "仓库/hooks/post-commit",
        "仓库/config",
        ".git/hooks/post-commit",
        ".git/config",
        "data/../.git/config",
        "sub/.git/hooks/post-commit",
        "sub/.GIT/x",
        "way/post-commit",
        "data/HEAD",
    ] {
        let write = json!({ "path": path, "content": "x" });
        let error = folder.call("file_write", write).await.unwrap_err().message;
        assert!(error.starts_with(&format!("writing {path}")), "{error}");
        assert!(error.ends_with("everything in the workspace but .git"), "{error}");
    }
    folder
        .fails(
            "file_write",
            json!({ "path": "way/post-commit", "content": "x" }),
            "writing way/post-commit, which git keeps for itself, is not permitted; permitted: everything in the \
             workspace but .git",
        )
        .await;
    assert_eq!(folder.content("my-hooks/post-commit"), "old");
    // A folder that only resembles a repository is written, and so is a file beside one.
    for path in ["data/objects/y", "仓库.md", ".gitignore"] {
        folder.call("file_write", json!({ "path": path, "content": "x" })).await.unwrap();
    }
}

/// A rename needs no right to write the file that it replaces, so the tool asks.
#[tokio::test]
async fn a_read_only_file_is_not_replaced() {
    let folder = Folder::with(&[("锁.md", "old")]);
    let mut permissions = std::fs::metadata(folder.path("锁.md")).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(folder.path("锁.md"), permissions).unwrap();
    for (tool, arguments) in [
        ("file_write", json!({ "path": "锁.md", "content": "new" })),
        ("file_edit", json!({ "path": "锁.md", "old": "old", "new": "new" })),
    ] {
        let expected = "the system does not allow the use of 锁.md; leave it as it is";
        folder.fails(tool, arguments, expected).await;
    }
    assert_eq!(folder.content("锁.md"), "old");
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), 1, "nothing is left beside it");
}

/// Only root may give a file away, so only root can see whether it is given back.
#[cfg(unix)]
#[tokio::test]
async fn the_owner_of_a_file_is_kept() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
    let folder = Folder::with(&[("a", "old")]);
    if chown(folder.path("a"), Some(4_321), Some(1_234)).is_err() {
        return;
    }
    std::fs::set_permissions(folder.path("a"), PermissionsExt::from_mode(0o640)).unwrap();
    folder.call("file_write", json!({ "path": "a", "content": "new" })).await.unwrap();
    folder.call("file_edit", json!({ "path": "a", "old": "n", "new": "m" })).await.unwrap();
    let meta = std::fs::metadata(folder.path("a")).unwrap();
    assert_eq!((meta.uid(), meta.gid(), meta.mode() & 0o777), (4_321, 1_234, 0o640));
    assert_eq!(folder.content("a"), "mew");
}

/// A file is written as UTF-8; if it was something else, programs that read it may stumble.
#[tokio::test]
async fn another_encoding_than_before_is_told() {
    let folder = Folder::with(&[]);
    let utf_16: Vec<u8> = "\u{feff}杭州\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let with_mark = "\u{feff}杭州".as_bytes();
    for (old, new, told) in [
        (&utf_16[..], "雨\n", ". It was UTF-16 before, and is UTF-8 now"),
        (with_mark, "雨\n", ". It was UTF-8 with a byte order mark before, and is UTF-8 now"),
        (&b"name: \xba\xba\xd7\xd6\n"[..], "雨\n", ". It was not UTF-8 before, and is now"),
        (with_mark, "\u{feff}", ""),
        ("杭州".as_bytes(), "雨\n", ""),
        (b"", "雨\n", ""),
    ] {
        put(&folder.path("f"), old);
        let expected = format!("replaced f: {} bytes{told}", new.len());
        folder.says("file_write", json!({ "path": "f", "content": new }), &expected).await;
        assert_eq!(folder.content("f"), new);
    }
    // A character that the beginning of a long file cuts is no other encoding.
    put(&folder.path("f"), format!("x{}", "雨".repeat(40_000)).as_bytes());
    folder.says("file_write", json!({ "path": "f", "content": "雨" }), "replaced f: 3 bytes").await;
}

/// Many writers of one file: at any time it holds one of the contents, whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_file_is_never_seen_half_written() {
    let folder = Folder::permitting(&[("f", &"0".repeat(100_000))], |mut permissions| {
        permissions.files.output_bytes = 100_000;
        permissions
    });
    let contents: Vec<String> = (0..8).map(|at| at.to_string().repeat(100_000)).collect();
    let writes = contents
        .iter()
        .map(|content| folder.call("file_write", json!({ "path": "f", "content": content })));
    let reads = (0..40).map(|_| folder.call("file_read", json!({ "path": "f" })));
    let (written, read) =
        futures::join!(futures::future::join_all(writes), futures::future::join_all(reads));
    assert!(written.iter().all(Result::is_ok));
    for read in read {
        let text = read.unwrap().data.text;
        assert_eq!(text.len(), 100_000);
        assert!(contents.contains(&text));
    }
}

/// The content is written as it was given; a change of the line ends is reported.
#[tokio::test]
async fn other_line_ends_than_before_are_told() {
    let folder = Folder::with(&[("dos.txt", "one\r\ntwo\r\n")]);
    folder
        .says(
            "file_write",
            json!({ "path": "dos.txt", "content": "1\n2\n" }),
            "replaced dos.txt: 4 bytes. Its lines ended with \\r\\n before, and end with \\n now",
        )
        .await;
    assert_eq!(folder.content("dos.txt"), "1\n2\n");
}

/// A user's file that has the name of one of ours is neither used nor removed.
#[tokio::test]
async fn no_file_of_somebody_else_is_removed() {
    let folder = Folder::with(&[]);
    let names: Vec<String> =
        (0..2_000).map(|at| format!(".foldback-{}-{at}.tmp", std::process::id())).collect();
    for name in &names {
        put(&folder.path(name), b"mine");
    }
    folder.says("file_write", json!({ "path": "a", "content": "文" }), "made a: 3 bytes").await;
    folder.says("file_write", json!({ "path": "b", "content": "b" }), "made b: 1 byte").await;
    for name in &names {
        assert_eq!(std::fs::read(folder.path(name)).ok().as_deref(), Some(&b"mine"[..]), "{name}");
    }
    assert_eq!(std::fs::read_dir(folder.path("")).unwrap().count(), names.len() + 2);
}

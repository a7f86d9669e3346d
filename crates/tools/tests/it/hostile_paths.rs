//! Hostile paths against every tool for files: nothing outside is opened.

use crate::tools::put;
use foldback_tool::{CallContext, Toolbox};
use foldback_tools::{Permissions, toolset};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const SECRET: &str = "the secret that nobody may read";

/// Names that lead out, or are meant to, from a workspace beside a folder `outside`.
fn tricks(outside: &str) -> Vec<String> {
    let mut tricks: Vec<String> = [
        "..",
        "../",
        "../..",
        "../outside",
        "../outside/secret",
        "../../outside/secret",
        "a/../../outside/secret",
        "./../outside/secret",
        "x/../../outside/secret",
        "../work/../outside/secret",
        "..//outside///secret",
        ".//..//outside/secret",
        "/",
        "/etc/passwd",
        "//etc/passwd",
        "/etc/../etc/passwd",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd/../outside/secret",
        "/dev/zero",
        "/dev/fd/0",
        "~",
        "~root",
        "~/x",
        "~/../outside/secret",
        "$HOME",
        "${HOME}/x",
        "%HOME%",
        "`id`",
        "$(id)",
        "%2e%2e%2foutside%2fsecret",
        "%2e%2e/outside/secret",
        "..%2foutside%2fsecret",
        "..%252foutside%252fsecret",
        "..%5coutside",
        "..\\outside\\secret",
        "..\\..\\outside",
        "C:\\x",
        "C:x",
        "\\\\host\\share",
        "\\\\?\\C:\\x",
        "file:///etc/passwd",
        "file://../outside",
        "CON",
        "NUL.txt",
        "aux",
        "COM1",
        "secret\0",
        "\0",
        "../outside/secret\0.txt",
        "x\0/../y",
        "../outside/secret\n",
        "x\r\ny",
        "..\u{2215}outside\u{2215}secret",
        "\u{ff0e}\u{ff0e}/outside/secret",
        "\u{2024}\u{2024}/outside/secret",
        ".\u{200b}./outside/secret",
        "\u{202e}terces/edistuo/..",
        "..;/outside/secret",
        "..././outside/secret",
        ".../...//outside/secret",
        " ../outside/secret",
        ".. /outside/secret",
        "../outside /secret",
        "*/../../outside/secret",
        "../{outside}/secret",
        "[.][.]/outside/secret",
        "-",
        "--help",
        "|cat ../outside/secret",
        ">../outside/x",
        "link",
        "link/secret",
        "link/new",
        "linkfile",
        "deep/link/secret",
        "deep/../link/secret",
        "absolute",
        "absolute/secret",
        "up/outside/secret",
        "up/up/outside/secret",
        "dangling",
        "dangling/x",
        "round",
        "round/x",
        "chain",
        "chain/secret",
        "hidden/../../outside/secret",
    ]
    .map(str::to_owned)
    .to_vec();
    tricks.push(format!("{outside}/secret"));
    tricks.push(format!("/.{outside}/secret"));
    tricks.push(format!("{outside}/../outside/secret"));
    tricks.push(format!("file://{outside}/secret"));
    tricks.push("x".repeat(4_096));
    tricks.push("x/".repeat(5_000));
    tricks.push(format!("{}etc/passwd", "../".repeat(1_000)));
    tricks.push(format!("{}{outside}/secret", "../".repeat(40)));
    tricks.push(format!("{}secret", "link/../".repeat(500)));
    tricks
}

/// The contents outside of the workspace, with the time of each change.
fn outside(outer: &Path, work: &Path) -> BTreeMap<PathBuf, (std::time::SystemTime, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![outer.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            if path == work {
                continue;
            }
            let content = if meta.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            if meta.is_dir() {
                folders.push(path.clone());
            }
            found.insert(path, (meta.modified().unwrap(), content));
        }
    }
    found
}

/// S4, S13: no name reads, lists, searches, writes or edits anything outside of what is permitted. The
/// system itself reports each file and folder outside that is opened.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn s13_no_path_opens_anything_outside() {
    use rustix::fs::inotify;
    use std::mem::MaybeUninit;
    use std::os::unix::fs::symlink;

    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().canonicalize().unwrap();
    let (work, out) = (root.join("work"), root.join("outside"));
    for (path, content) in [
        ("work/deep/hidden/x", "inside"),
        ("outside/secret", SECRET),
        ("outside/sub/secret", SECRET),
    ] {
        put(&root.join(path), content.as_bytes());
    }
    symlink("../outside", work.join("link")).unwrap();
    symlink("../outside/secret", work.join("linkfile")).unwrap();
    symlink("../../outside", work.join("deep/link")).unwrap();
    symlink(&out, work.join("absolute")).unwrap();
    symlink("..", work.join("up")).unwrap();
    symlink("../outside/none", work.join("dangling")).unwrap();
    symlink("round", work.join("round")).unwrap();
    symlink("deep/link", work.join("chain")).unwrap();

    let tricks = tricks(out.to_str().unwrap());
    assert!(tricks.len() >= 90, "{}", tricks.len());
    let calls = |path: &str| -> Vec<(&'static str, Value)> {
        vec![
            ("file_read", json!({ "path": path })),
            ("file_list", json!({ "path": path, "depth": 9 })),
            ("file_list", json!({ "pattern": path })),
            ("file_grep", json!({ "path": path, "pattern": "." })),
            ("file_grep", json!({ "pattern": ".", "glob": path })),
            ("file_edit", json!({ "path": path, "old": "secret", "new": "spoilt" })),
            ("file_write", json!({ "path": path, "content": "spoilt" })),
            ("file_write", json!({ "path": format!("{path}/new"), "content": "spoilt" })),
        ]
    };
    let before = outside(&root, &work);
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    for folder in [&root, &out, &out.join("sub")] {
        let flags = inotify::WatchFlags::OPEN
            | inotify::WatchFlags::CREATE
            | inotify::WatchFlags::MODIFY
            | inotify::WatchFlags::DELETE
            | inotify::WatchFlags::MOVE;
        inotify::add_watch(&watch, folder, flags).unwrap();
    }
    let mut buffer = [MaybeUninit::uninit(); 64 << 10];
    let mut opened = || {
        let mut reader = inotify::Reader::new(&watch, &mut buffer);
        let mut names = Vec::new();
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
            // The workspace itself is in the watched folder; files in it may be opened.
            if name.as_deref() != Some("work") {
                names.push(name.unwrap_or_default());
            }
        }
        names
    };
    // The system does report it.
    std::fs::read(out.join("secret")).unwrap();
    assert_eq!(opened(), ["secret"]);

    let toolbox = Toolbox::new(toolset(&Permissions::in_workspace(&work)).unwrap()).unwrap();
    let mut made = 0;
    for trick in &tricks {
        for (tool, arguments) in calls(trick) {
            let tool = toolbox.get(tool).unwrap();
            let answer = match tool.call(&arguments.to_string(), &CallContext::default()).await {
                Ok(output) => output.data.text + output.data.structured.as_deref().unwrap_or(""),
                Err(error) => error.message,
            };
            assert!(!answer.contains("nobody"), "{arguments}: {answer}");
            assert_eq!(opened(), Vec::<String>::new(), "{arguments}");
            made += 1;
        }
    }
    assert_eq!(made, tricks.len() * 8);
    assert_eq!(outside(&root, &work), before);
}

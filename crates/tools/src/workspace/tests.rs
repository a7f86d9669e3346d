//! Tests of where paths lead.

use super::{Access, Workspace};
use crate::Permissions;
use std::path::Path;

/// Writes a file and the folders around it.
fn put(path: &Path, content: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// A folder with `work`, which may be written, `library`, which may be read, and `secret`.
fn folders() -> (tempfile::TempDir, Workspace) {
    let outer = tempfile::tempdir().unwrap();
    for path in ["work/src/a.rs", "library/文.md", "secret/key"] {
        put(&outer.path().join(path), b"content");
    }
    let permissions = Permissions::in_workspace(outer.path().join("work"))
        .with_read(outer.path().join("library"));
    let workspace = Workspace::open(&permissions).unwrap();
    (outer, workspace)
}

#[test]
fn paths_lead_into_each_folder_that_is_permitted() {
    let (outer, workspace) = folders();
    let library = outer.path().canonicalize().unwrap().join("library/文.md");
    let leads = |path: &str, access, shown: &str| match workspace.place(path, access) {
        Ok(place) => assert_eq!(place.shown, shown, "{path}"),
        Err(error) => panic!("{path}: {error}"),
    };
    leads("src/a.rs", Access::Write, "src/a.rs");
    leads("./src/../src//a.rs", Access::Write, "src/a.rs");
    leads("new/folder/../file", Access::Write, "new/file");
    leads(".", Access::Read, ".");
    leads("src/..", Access::Read, ".");
    leads(library.to_str().unwrap(), Access::Read, library.to_str().unwrap());
    leads("../library/文.md", Access::Read, library.to_str().unwrap());
    let error = workspace.place("../library/文.md", Access::Write).unwrap_err().message;
    assert_eq!(
        error,
        "writing ../library/文.md is not permitted; permitted: everything in the workspace but .git"
    );
    let error = workspace.place("/etc", Access::Read).unwrap_err().message;
    assert_eq!(
        error,
        format!(
            "reading /etc is not permitted; permitted: everything in the workspace, everything in {}",
            library.parent().unwrap().display()
        )
    );
}

/// Refusals do not reveal whether a file outside exists.
#[test]
fn refusals_tell_nothing_of_what_is_outside() {
    let (_outer, workspace) = folders();
    let refusal =
        |path: &str| workspace.place(path, Access::Read).unwrap_err().message.replace(path, "PATH");
    let expected = refusal("../secret/key");
    for path in ["../secret/none", "../none/key", "../secret/key/below", "../secret", "/root/x/y"] {
        assert_eq!(refusal(path), expected, "{path}");
    }
}

#[cfg(unix)]
#[test]
fn links_lead_where_they_may() {
    use std::os::unix::fs::symlink;
    let (outer, workspace) = folders();
    let at = |path: &str| outer.path().join(path);
    symlink("src", at("work/relative")).unwrap();
    symlink(at("work/src"), at("work/absolute")).unwrap();
    symlink("../library", at("work/books")).unwrap();
    symlink("../secret", at("work/way_out")).unwrap();
    symlink(at("secret/key"), at("work/src/key")).unwrap();
    symlink("nowhere", at("work/dangling")).unwrap();
    symlink("round", at("work/round")).unwrap();
    for path in ["relative/a.rs", "absolute/a.rs", "way_out/../work/src/a.rs"] {
        assert_eq!(workspace.place(path, Access::Write).unwrap().shown, "src/a.rs");
    }
    assert!(workspace.place("books/文.md", Access::Read).is_ok());
    for (path, access) in [
        ("books/文.md", Access::Write),
        ("way_out", Access::Read),
        ("way_out/key", Access::Read),
        ("way_out/new", Access::Write),
        ("src/key", Access::Read),
        ("src/key", Access::Write),
        ("relative/key", Access::Read),
        ("dangling", Access::Read),
        ("dangling", Access::Write),
        ("round", Access::Write),
    ] {
        assert!(workspace.place(path, access).is_err(), "{path}");
    }
}

/// The place is opened from the handle of the folder: a folder that was replaced by a link meanwhile
/// does not lead out.
#[cfg(unix)]
#[test]
fn a_link_that_was_put_there_meanwhile_leads_nowhere() {
    let (outer, workspace) = folders();
    let place = workspace.place("src/key", Access::Write).unwrap();
    let listed = workspace.place("src", Access::Read).unwrap();
    std::fs::rename(outer.path().join("work/src"), outer.path().join("work/old")).unwrap();
    std::os::unix::fs::symlink("../secret", outer.path().join("work/src")).unwrap();
    assert!(outer.path().join("work/src/key").exists(), "by its name it would be found");
    assert!(place.open_file().is_err());
    assert!(place.write(b"overwritten").is_err());
    assert!(listed.open_folder().is_err());
    assert_eq!(std::fs::read(outer.path().join("secret/key")).unwrap(), b"content");
}

#[test]
fn without_a_workspace_paths_are_absolute() {
    let outer = tempfile::tempdir().unwrap();
    put(&outer.path().join("a"), b"");
    let workspace = Workspace::open(&Permissions::default().with_read(outer.path())).unwrap();
    assert!(workspace.place(outer.path().join("a").to_str().unwrap(), Access::Read).is_ok());
    assert_eq!(
        workspace.place("a", Access::Read).unwrap_err().message,
        "\"a\" cannot be used: there is no workspace; give a path that begins with /"
    );
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_out_is_told_as_one() {
    let (outer, workspace) = folders();
    std::os::unix::fs::symlink("../secret", outer.path().join("work/way_out")).unwrap();
    assert_eq!(
        workspace.place("way_out/key", Access::Read).unwrap_err().message,
        format!(
            "reading way_out/key, which goes through a link that leads out of the workspace, is not \
             permitted; permitted: everything in the workspace, everything in {}",
            outer.path().canonicalize().unwrap().join("library").display()
        )
    );
}

/// A read-only folder inside a writable one is not written.
#[test]
fn the_innermost_folder_decides() {
    let outer = tempfile::tempdir().unwrap();
    put(&outer.path().join("vendor/own/a"), b"");
    let permissions =
        Permissions::in_workspace(outer.path()).with_read("vendor").with_write("vendor/own");
    let workspace = Workspace::open(&permissions).unwrap();
    assert!(workspace.place("b", Access::Write).is_ok());
    assert!(workspace.place("vendor/own/a", Access::Write).is_ok());
    assert!(workspace.place("vendor/b", Access::Read).is_ok());
    assert!(workspace.place("vendor/b", Access::Write).is_err());
}

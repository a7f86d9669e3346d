//! Nothing is permitted until permissions allow it.

use figment::Figment;
use figment::providers::{Format, Toml};
use foldback_tool::{Concurrency, Effect};
use foldback_tools::{Permissions, PermissionsError, WebPermissions, toolset};
use std::path::PathBuf;

fn names(permissions: &Permissions) -> Vec<String> {
    toolset(permissions).unwrap().iter().map(|tool| tool.spec().name().to_owned()).collect()
}

/// S13: deny by default.
#[test]
fn s13_nothing_is_permitted_by_default() {
    assert_eq!(names(&Permissions::default()), Vec::<String>::new());
    assert!(WebPermissions::default().permits("docs.rs").is_err());
    // A workspace alone permits nothing either.
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(names(&Permissions::default().workspace(dir.path())), Vec::<String>::new());
}

/// S13: a capability per tool: a permission to read gives no tool that writes.
#[test]
fn s13_reading_gives_no_tool_that_writes() {
    let dir = tempfile::tempdir().unwrap();
    let reading = Permissions::default().with_read(dir.path());
    assert_eq!(names(&reading), ["file_grep", "file_list", "file_read"]);
    let writing = Permissions::in_workspace(dir.path());
    assert_eq!(names(&writing), ["file_edit", "file_grep", "file_list", "file_read", "file_write"]);
}

/// MC21: tools come in families with a common prefix, in one order.
#[test]
fn mc21_the_tools_for_files_are_a_family() {
    let dir = tempfile::tempdir().unwrap();
    let tools = toolset(&Permissions::in_workspace(dir.path())).unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.spec().name()).collect();
    assert_eq!(names, ["file_edit", "file_grep", "file_list", "file_read", "file_write"]);
    for tool in tools {
        let spec = tool.spec();
        let reads = ["file_read", "file_list", "file_grep"].contains(&spec.name());
        assert_eq!(spec.effect == Effect::ReadOnly, reads, "{}", spec.name());
        assert_eq!(spec.concurrency == Concurrency::Parallel, reads, "{}", spec.name());
    }
}

#[test]
fn permissions_are_read_from_toml() {
    let text = r#"
        workspace = "/home/me/project"

        [files]
        read = [".", "/usr/share/doc"]
        write = ["out"]
        output_bytes = 1000

        [shell]
        allow = true
        environment = ["PATH"]

        [web]
        hosts = ["docs.rs", "*.example.org"]
    "#;
    let permissions: Permissions = Figment::from(Toml::string(text)).extract().unwrap();
    let mut expected = Permissions::default()
        .workspace("/home/me/project")
        .with_read(".")
        .with_read("/usr/share/doc")
        .with_write("out")
        .with_host("docs.rs")
        .with_host("*.example.org");
    expected.files.output_bytes = 1_000;
    expected.shell.allow = true;
    expected.shell.environment = ["PATH".to_owned()].into();
    assert_eq!(permissions, expected);
    assert_eq!(permissions.folder("out".as_ref()).unwrap(), PathBuf::from("/home/me/project/out"));
    assert_eq!(permissions.folder("/usr".as_ref()).unwrap(), PathBuf::from("/usr"));
}

#[test]
fn a_word_that_is_no_permission_is_named() {
    let error = Figment::from(Toml::string("[shell]\nnet = true")).extract::<Permissions>();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("net") && error.contains("network"), "{error}");
}

#[test]
fn what_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let check = |permissions: &Permissions, expected: &str| {
        let error = toolset(permissions).err().expect("they cannot be used").to_string();
        assert_eq!(error, expected);
    };
    check(
        &Permissions::default().with_read("src"),
        "the folder src is relative and no workspace is set; give an absolute folder, or a workspace",
    );
    let missing = dir.path().join("缺");
    check(
        &Permissions::in_workspace(&missing),
        &format!("the folder {} cannot be opened; a folder was expected", missing.display()),
    );
    let mut nothing = Permissions::in_workspace(dir.path());
    nothing.files.output_bytes = 0;
    check(&nothing, "files.output_bytes is 0, which leaves nothing to do; give at least 1");
}

#[test]
fn hosts_are_permitted_one_by_one_or_by_their_domain() {
    let web = Permissions::default().with_host("docs.rs").with_host("*.Example.org").web;
    for host in ["docs.rs", "DOCS.RS", "docs.rs.", "example.org", "a.b.example.org"] {
        assert_eq!(web.permits(host), Ok(()), "{host}");
    }
    for host in ["", "rs", "xdocs.rs", "docs.rs.evil.net", "badexample.org", "org", "127.0.0.1"] {
        assert!(web.permits(host).is_err(), "{host}");
    }
    assert_eq!(
        web.permits("evil.net").unwrap_err().to_string(),
        "fetching from evil.net is not permitted; permitted: *.Example.org, docs.rs"
    );
    assert_eq!(Permissions::default().with_host("*").web.permits("anywhere.net"), Ok(()));
}

/// A host may be written as a person writes it; a URL has it in the form that the network uses.
#[test]
fn hosts_of_every_script_are_compared_in_one_form() {
    let dir = tempfile::tempdir().unwrap();
    let permissions = Permissions::in_workspace(dir.path())
        .with_host("例え.テスト")
        .with_host("*.Bücher.example");
    permissions.check().unwrap();
    for host in
        ["xn--r8jz45g.xn--zckzah", "例え.テスト", "xn--bcher-kva.example", "a.bücher.example"]
    {
        assert_eq!(permissions.web.permits(host), Ok(()), "{host}");
    }
    for wrong in
        ["", "*.", "https://docs.rs/", "docs.rs/a", "docs.rs:80", "a@docs.rs", "a.*.rs", "do cs.rs"]
    {
        let error = Permissions::default().with_host(wrong).check().unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "{wrong:?} in web.hosts is not a host; one like \"docs.rs\", \"*.example.org\" or \"*\" was \
                 expected"
            )
        );
    }
    for right in ["*", "127.0.0.1", "[::1]", "localhost", "docs.rs."] {
        Permissions::default().with_host(right).check().unwrap();
    }
}

/// S13: the sandbox takes nothing back below a folder that commands may write. A folder that only the file tools would
/// protect is refused, instead of protected by half.
#[test]
fn s13_commands_have_no_folder_to_read_in_one_to_write() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("第三方/own")).unwrap();
    let here = dir.path().canonicalize().unwrap();
    let within = || Permissions::in_workspace(dir.path());
    let half = [
        within().with_read("第三方").with_shell(),
        within().with_read("第三方").with_write("第三方/own").with_shell(),
    ];
    for permissions in half {
        let error = toolset(&permissions).err().expect("it could be written").to_string();
        assert_eq!(
            error,
            format!(
                "the folder {} may only be read, but commands could write it, because they may write {} around \
                 it; give commands a folder to write that does not hold it, let them write both, or permit no \
                 commands",
                here.join("第三方").display(),
                here.display()
            )
        );
    }
    // Without commands the file tools protect it, and a folder for both is written by both.
    names(&within().with_read("第三方"));
    for permissions in [
        within().with_shell(),
        within().with_read("第三方").with_write("第三方").with_shell(),
        Permissions::default()
            .workspace(dir.path())
            .with_read(".")
            .with_write("第三方")
            .with_shell(),
    ] {
        let refused = toolset(&permissions).err();
        assert!(!matches!(refused, Some(PermissionsError::Nested { .. })), "{refused:?}");
    }
}

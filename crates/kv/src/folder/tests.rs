//! Reading and writing the format file.

use super::*;

#[test]
fn the_format_is_read_as_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(read(dir.path(), Engine::Sqlite).unwrap(), None);
    for state in [State::Unfinished, State::Finished] {
        write(dir.path(), Engine::Sqlite, FORMAT_VERSION, state).unwrap();
        assert_eq!(read(dir.path(), Engine::Sqlite).unwrap(), Some((FORMAT_VERSION, state)));
    }
    let text = fs::read_to_string(dir.path().join(FORMAT)).unwrap();
    assert_eq!(text, "foldback store\nversion 4\nengine sqlite\n");
}

#[test]
fn a_foreign_format_says_what_is_wrong() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let error = parse(Path::new("/s"), text).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
    check(
        "",
        r#"the folder /s is not a complete store: its FORMAT file does not begin with "foldback store""#,
    );
    check(
        "foldback store\nversion 5\nanything",
        "the store at /s has format version 5, but this program reads versions 1 to 4",
    );
    check(
        "foldback store\nversion 1\nengine sqlkte\n",
        r#"the folder /s is not a complete store: its FORMAT file names the unknown engine "sqlkte""#,
    );
    check(
        "foldback store\nversion x\n",
        "the folder /s is not a complete store: its FORMAT file states no version",
    );
    check(
        "foldback store\nversion 1\nengine sqlite\nmore\n",
        "the folder /s is not a complete store: its FORMAT file has lines that this version does not know",
    );
}

#[test]
fn a_creation_that_was_cut_short_is_done_again() {
    let dir = tempfile::tempdir().unwrap();
    let failing = || Err(Error::Full { path: "/".into() });
    assert!(open(dir.path(), Engine::Sqlite, Mode::ReadWrite, failing, || Ok(())).is_err());
    assert!(matches!(
        open(dir.path(), Engine::Sqlite, Mode::ReadOnly, || Ok(()), || Ok(())),
        Err(Error::Format { .. })
    ));
    let mut made = 0;
    for _ in 0..2 {
        let make = || {
            made += 1;
            Ok(())
        };
        open(dir.path(), Engine::Sqlite, Mode::ReadWrite, make, || Ok(())).unwrap();
    }
    assert_eq!(made, 1);
}

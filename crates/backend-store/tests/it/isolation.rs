//! S3, S4: references are bound to their todo, and no text reaches a path.

use crate::world::{World, noise};
use foldback_backend_store::Error;
use foldback_core::{Check, PayloadRef};
use foldback_kv::Registry;
use std::collections::BTreeSet;
use std::fs;

#[test]
fn s3_a_reference_of_another_todo_is_like_one_that_never_was() {
    let world = World::new();
    let other = world.another("todo002");
    let bytes = noise(100_000, 1);
    let mine = world.put(&bytes);
    for _ in 0..3 {
        world.put_in(&other, &noise(10, 2));
    }
    world.put_in(&other, b"second");
    let theirs = world.put_in(&other, b"third");
    let resolve = |reference: &PayloadRef| world.store.resolve(&world.todo, reference);

    // My own, by its short and by its long name.
    let full = PayloadRef { todo: Some(world.todo.id().clone()), ..mine.reference() };
    assert_eq!(resolve(&mine.reference()).unwrap(), mine);
    assert_eq!(resolve(&full).unwrap(), mine);

    // Another's: existing or not, with a right check or not, in a todo that exists or not.
    let foreign = PayloadRef { todo: Some(other.id().clone()), ..theirs.meta.reference() };
    let made_up = PayloadRef { n: 900, ..foreign.clone() };
    let wrong = PayloadRef { check: Check::of(b"x"), ..foreign.clone() };
    let nobody = PayloadRef { todo: Some("nobody".parse().unwrap()), ..theirs.meta.reference() };
    let never = PayloadRef { n: 900, ..mine.reference() };
    let mut told = BTreeSet::new();
    for reference in [made_up, wrong, nobody, foreign, theirs.meta.reference(), never] {
        let error = resolve(&reference).unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{error}");
        // But for the reference, one error says what the other says.
        told.insert(error.to_string().replace(&reference.to_string(), "X"));
    }
    assert_eq!(told.len(), 1, "{told:?}");

    // A mistake inside the own todo is reported, with the right reference.
    let slip = PayloadRef { check: Check::of(b"x"), ..mine.reference() };
    let error = resolve(&slip).unwrap_err();
    assert!(matches!(&error, Error::WrongCheck { meant, .. } if *meant == mine.reference()));
    assert!(
        error.to_string().ends_with(&format!("payload 1 of this todo is {}", mine.reference()))
    );
}

#[test]
fn s3_equal_bytes_of_two_todos_share_nothing() {
    let world = World::new();
    let other = world.another("todo002");
    let bytes = noise(100_000, 1);
    world.put(b"first");
    world.put(&bytes);
    let theirs = world.put_in(&other, &bytes);
    assert_eq!((theirs.meta.n, theirs.new), (1, true));
    assert_eq!(world.files().len(), 2);
    let deletes = world.store.forget(&world.todo);
    Registry::new(world.kv.clone()).remove(&world.todo, deletes).unwrap();
    world.store.remove_files(&world.todo).unwrap();
    assert_eq!(world.files().len(), 1);
    assert!(world.store.get(&other, 1).unwrap() == bytes);
    assert!(matches!(world.store.get(&other, 2), Err(Error::NotFound { .. })));
}

#[test]
fn s4_no_text_is_a_path() {
    let world = World::new();
    let secret = world.dir.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let meta = world.put(&noise(100_000, 1));
    let check = meta.check;
    let outside = secret.display();
    let mut corpus = vec![
        format!("store://../1-{check}"),
        format!("store://../../secret/1-{check}"),
        format!("store://..%2f..%2fsecret/1-{check}"),
        format!("store://%2e%2e/1-{check}"),
        format!("store://..\\..\\secret/1-{check}"),
        format!("store:///{outside}"),
        format!("store://{outside}/1-{check}"),
        format!("store://todo001/../todo001/1-{check}"),
        format!("store://todo001//1-{check}"),
        format!("store://todo001/1-{check}/"),
        format!("store://todo001/1-{check}\0"),
        format!("store://todo001\0/1-{check}"),
        format!("store://todo001/1-{check}\n"),
        format!("store://./1-{check}"),
        format!("store://.../1-{check}"),
        format!("store://\\\\host\\share/1-{check}"),
        format!("store://C:\\/1-{check}"),
        format!("store://~/1-{check}"),
        format!("store://$HOME/1-{check}"),
        format!("store://{}/1-{check}", "a".repeat(4096)),
        format!("store://\u{2025}/1-{check}"),
        format!("store://\u{ff0e}\u{ff0e}/1-{check}"),
        format!("file://{outside}"),
        "store://1-../.".to_owned(),
        "store://1-....".to_owned(),
        format!("store://-1-{check}"),
        format!("store://0x1-{check}"),
        format!("store://1e0-{check}"),
        format!("store://1.-{check}"),
        format!("store://１-{check}"),
        format!("store://99999999999999999999-{check}"),
        format!("store://1-{check}?x"),
        format!("store://1-{check}#x"),
        format!("STORE://1-{check}"),
        "/etc/passwd".to_owned(),
        String::new(),
    ];
    // Names that some system reserves are just todos that do not exist.
    for name in ["CON", "NUL", "LPT1", "aux", "lock", "..a", "a..", "-rf", "new-1-0", "1"] {
        corpus.push(format!("store://{name}/1-{check}"));
    }
    corpus.push(format!("store://{}-{check}", u64::MAX));
    corpus.push(format!("store://{}-{check}", u64::from(u32::MAX) + 1));
    let before = world.files();
    for text in &corpus {
        let Ok(reference) = text.parse::<PayloadRef>() else { continue };
        let error = world.store.resolve(&world.todo, &reference).unwrap_err();
        assert!(matches!(error, Error::NotFound { .. }), "{text}: {error}");
    }
    assert!(corpus.iter().filter(|text| text.parse::<PayloadRef>().is_ok()).count() > 8);
    for n in [0, 2, u64::from(u32::MAX), u64::from(u32::MAX) + 1, u64::MAX] {
        assert!(matches!(world.get(n), Err(Error::NotFound { .. })), "{n}");
    }
    assert_eq!(world.files(), before);
    // A todo is a number on disk, whatever it is called.
    let names: Vec<_> = ["CON", "..a", "-rf", "lock"].iter().map(|id| world.another(id)).collect();
    for todo in names {
        world.put_in(&todo, &noise(100_000, 1));
        let folder = world.dir.path().join("payloads").join(todo.no().to_string());
        assert!(folder.is_dir());
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), "secret");
    assert_eq!(fs::read_dir(world.dir.path()).unwrap().count(), 2);
}

#[cfg(unix)]
#[test]
fn s4_links_are_refused_and_not_followed() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    let bytes = noise(100_000, 1);
    world.put(&bytes);
    let file = world.files().remove(0);
    let aside = world.dir.path().join("aside");

    // The file itself, even with the right bytes behind the link.
    fs::rename(&file, &aside).unwrap();
    symlink(&aside, &file).unwrap();
    let error = world.get(1).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
    assert_eq!(world.store.verify(&world.todo).unwrap().len(), 1);
    // Storing the same bytes again replaces the link, and leaves its target alone.
    let kept = fs::read(&aside).unwrap();
    assert_eq!(world.put(&bytes).n, 1);
    assert!(world.get(1).unwrap() == bytes);
    assert_eq!(fs::read(&aside).unwrap(), kept);

    // A folder on the way.
    for folder in file.ancestors().skip(1).take(2) {
        let elsewhere = world.dir.path().join("elsewhere");
        fs::rename(folder, &elsewhere).unwrap();
        symlink(&elsewhere, folder).unwrap();
        assert!(matches!(world.get(1), Err(Error::Refused { .. })));
        let mut pending = world.store.begin(&world.todo).unwrap();
        let shard = &world.files();
        let error = world.store.prepare(&mut pending, &bytes).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert_eq!(&world.files(), shard);
        if folder.file_name().unwrap().len() != 2 {
            let removed = world.store.remove_files(&world.todo);
            assert!(matches!(removed, Err(Error::Refused { .. })));
            assert!(elsewhere.join(file.parent().unwrap().file_name().unwrap()).is_dir());
        }
        fs::remove_file(folder).unwrap();
        fs::rename(&elsewhere, folder).unwrap();
    }

    // The lock, which is opened for writing.
    let lock = file.ancestors().nth(2).unwrap().join("lock");
    fs::remove_file(&lock).unwrap();
    symlink(world.dir.path().join("made"), &lock).unwrap();
    let mut pending = world.store.begin(&world.todo).unwrap();
    assert!(world.store.prepare(&mut pending, &noise(100_000, 2)).is_err());
    assert!(!world.dir.path().join("made").exists());
    fs::remove_file(&lock).unwrap();

    // A pipe in the place of a file does not block.
    fs::remove_file(&file).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&file).status().unwrap();
    assert!(made.success());
    assert!(matches!(world.get(1), Err(Error::Refused { .. })));
}

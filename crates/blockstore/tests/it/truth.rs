//! Laws 1, 4 and 5: what is committed is read back whole, or the bad record is named.

use crate::fixture::{Writer, block, stored};
use foldback_blockstore::{BlockStore, Commit, Error, Head, IndexConfig, NewMessage};
use foldback_core::{BlockType, Message, SeqNo, SeqRange, TodoId, Vectors};
use foldback_kv::{Batch, Contended, Delete, Key, Registry, Space};

fn commit<'a>(writer: &'a Writer, head: Head, messages: &'a [NewMessage]) -> Commit<'a> {
    let (session, extra, delete) = (vec![1], vec![], vec![]);
    Commit { todo: &writer.todo, head, messages, blocks: &[], session, extra, delete }
}

fn new_message(text: &str) -> NewMessage {
    let vectors = Vectors::new(2, vec![0.6, 0.8, 1.0, 0.0]).unwrap();
    NewMessage { stored: stored(&Message::user(text)), vectors }
}

#[test]
fn bl1_what_is_committed_is_read_back() {
    let mut writer = Writer::in_memory();
    writer.say("one").say("二").close_as(BlockType::Qa, &["k"]).say("three").commit();
    let (store, todo) = (&writer.store, &writer.todo);
    assert_eq!(store.head(todo).unwrap().messages, 3);
    let texts: Vec<String> = store
        .messages(todo, 0..u64::MAX)
        .unwrap()
        .iter()
        .map(|stored| Message::from_json(stored.whole().unwrap()).unwrap().text().into_owned())
        .collect();
    assert_eq!(texts, ["one", "二", "three"]);
    assert_eq!(store.messages(todo, 1..2).unwrap().len(), 1);
    assert_eq!(store.messages(todo, 3..9).unwrap(), []);
    let last = store.last_block(todo).unwrap().unwrap();
    assert_eq!((last.range.len(), last.header.block_id.to_string()), (2, "b_t_001".to_owned()));
    assert_eq!(store.block(todo, 1).unwrap(), Some(last.clone()));
    assert_eq!(store.block(todo, 2).unwrap(), None);
    assert_eq!(store.blocks(todo, 0, 10).unwrap(), [last]);
    assert_eq!(store.blocks(todo, 1, 10).unwrap(), []);
    assert_eq!(store.session(todo).unwrap().unwrap(), b"state");
    let vectors = store.vectors(todo, SeqNo(0)).unwrap().unwrap();
    assert_eq!((vectors.model_id.as_str(), vectors.vectors.len()), ("bag-48", 1));
    assert_eq!(store.vectors(todo, SeqNo(9)).unwrap(), None);
}

#[test]
fn r10_of_two_writers_the_second_is_told() {
    let writer = Writer::in_memory();
    let messages = [new_message("a")];
    writer.store.commit(commit(&writer, Head::default(), &messages), "m").unwrap();
    let error = writer.store.commit(commit(&writer, Head::default(), &messages), "m").unwrap_err();
    assert!(error.is_conflict(), "{error}");
    assert!(matches!(error, Error::Conflict { expected: 0, found: 1, .. }));
    assert_eq!(writer.store.head(&writer.todo).unwrap().messages, 1);
}

#[test]
fn bl1_blocks_that_do_not_fit_are_refused_and_nothing_is_written() {
    let writer = Writer::in_memory();
    let messages = [new_message("a"), new_message("b")];
    let range = |a, b| SeqRange::new(SeqNo(a), SeqNo(b)).unwrap();
    let other = Registry::new(writer.kv.clone()).create(&TodoId::new("u").unwrap(), b"").unwrap();
    for (todo, n, range) in [
        (&writer.todo, 2, range(0, 0)),
        (&writer.todo, 1, range(1, 1)),
        (&writer.todo, 1, range(0, 2)),
        (&other, 1, range(0, 1)),
    ] {
        let blocks = [block(todo, n, range, BlockType::Chat, &[], 0)];
        let commit = Commit { blocks: &blocks, ..commit(&writer, Head::default(), &messages) };
        let error = writer.store.commit(commit, "m").unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
    }
    let extra = vec![(Key { space: Space::Payload, todo: other.no(), n: 1 }, vec![])];
    let foreign = Commit { extra, ..commit(&writer, Head::default(), &messages) };
    assert!(matches!(writer.store.commit(foreign, "m"), Err(Error::Refused { .. })));
    let delete = vec![Delete::todo(Space::Message, other.no())];
    let foreign = Commit { delete, ..commit(&writer, Head::default(), &messages) };
    assert!(matches!(writer.store.commit(foreign, "m"), Err(Error::Refused { .. })));
    let nan =
        NewMessage { vectors: Vectors::new(1, vec![f32::NAN]).unwrap(), ..messages[0].clone() };
    assert!(matches!(
        writer.store.commit(commit(&writer, Head::default(), &[nan]), "m"),
        Err(Error::Refused { .. })
    ));
    assert_eq!(writer.store.head(&writer.todo).unwrap(), Head::default());
}

/// What other crates add is theirs: a commit has no other way to write messages, blocks or states. Only a grant may
/// belong to another todo.
#[test]
fn additional_records_are_of_other_crates_only() {
    let writer = Writer::in_memory();
    let messages = [new_message("一")];
    let key = |space, todo| Key { space, todo, n: 7 };
    let no = writer.todo.no();
    for space in Space::ALL {
        let base = || commit(&writer, Head::default(), &messages);
        let may = matches!(
            space,
            Space::Payload
                | Space::PayloadBytes
                | Space::PayloadHash
                | Space::Grant
                | Space::Plan
                | Space::Sent
        );
        let put = Commit { extra: vec![(key(space, no), vec![1])], ..base() };
        let delete = Commit { delete: vec![Delete::one(key(space, no))], ..base() };
        let other = Commit { extra: vec![(key(space, no + 1), vec![1])], ..base() };
        for (commit, is_refused) in [(put, !may), (delete, !may), (other, space != Space::Grant)] {
            if is_refused {
                let refused = writer.store.commit(commit, "m").unwrap_err();
                assert!(matches!(refused, Error::Refused { .. }), "{space}: {refused}");
            }
        }
    }
    assert_eq!(writer.store.head(&writer.todo).unwrap(), Head::default());
    let extra = vec![(key(Space::Grant, no + 1), vec![1]), (key(Space::Plan, no), vec![1])];
    let base = commit(&writer, Head::default(), &messages);
    writer.store.commit(Commit { extra, ..base }, "m").unwrap();
}

#[test]
fn a_block_that_another_process_closed_without_a_message_is_a_conflict() {
    let mut writer = Writer::in_memory();
    writer.say("a").commit();
    let blocks = [block(
        &writer.todo,
        1,
        SeqRange::new(SeqNo(0), SeqNo(0)).unwrap(),
        BlockType::Chat,
        &[],
        0,
    )];
    let head = writer.store.head(&writer.todo).unwrap();
    let close = || Commit { blocks: &blocks, ..commit(&writer, head, &[]) };
    writer.store.commit(close(), "m").unwrap();
    assert!(writer.store.commit(close(), "m").unwrap_err().is_conflict());
}

#[test]
fn bs6_a_missing_record_is_named_and_the_rest_stays_readable() {
    let mut writer = Writer::in_memory();
    writer.lines(&["zero", "one", "two"]);
    let gone = Key { space: Space::Message, todo: writer.todo.no(), n: 1 };
    let delete = vec![Delete::one(gone)];
    writer.kv.commit(Batch { delete, ..Batch::default() }).unwrap();
    let (store, todo) = (&writer.store, &writer.todo);
    match store.messages(todo, 0..3).unwrap_err() {
        Error::Corrupt { key, .. } => assert_eq!(key, gone),
        other => panic!("{other}"),
    }
    assert_eq!(store.messages(todo, 2..3).unwrap().len(), 1);
    // The others are found, and so is what is left of the block.
    assert_eq!(crate::fixture::numbers(&crate::fixture::ask(store, todo, "two", 1)), [3]);
    let garbage = (Key { n: 0, ..gone }, b"garbage".to_vec());
    writer.kv.commit(Batch { put: vec![garbage], ..Batch::default() }).unwrap();
    assert!(matches!(store.messages(todo, 0..1), Err(Error::Corrupt { .. })));
    assert_eq!(crate::fixture::numbers(&crate::fixture::ask(store, todo, "two", 1)), [3]);
}

#[test]
fn s9_what_is_forgotten_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::indexed(dir.path());
    writer.lines(&["the canary sings", "something else"]);
    writer.store.maintain(&writer.todo).unwrap();
    assert!(dir.path().join(writer.todo.no().to_string()).exists());
    let delete = writer.store.forget(&writer.todo);
    Registry::new(writer.kv.clone()).remove(&writer.todo, delete).unwrap();
    writer.store.remove_index(&writer.todo).unwrap();
    assert!(!dir.path().join(writer.todo.no().to_string()).exists());
    let (store, todo) = (&writer.store, &writer.todo);
    assert_eq!(crate::fixture::ask(store, todo, "canary", 3), []);
    assert_eq!(store.blocks(todo, 0, 9).unwrap(), []);
    assert_eq!(store.vectors(todo, SeqNo(0)).unwrap(), None);
    assert_eq!(store.session(todo).unwrap(), None);
    let done = store.maintain(todo).unwrap();
    assert_eq!(done.indexed, 0);
}

#[test]
fn a_configuration_without_sense_is_refused() {
    let config = IndexConfig::default().with_batch_blocks(0);
    let error = BlockStore::open(foldback_kv::memory(), None, config).err().unwrap();
    assert!(error.to_string().contains("batch_blocks"), "{error}");
}

/// R5: a block's record in the place of another is damage, whichever todo it belongs to.
#[test]
fn r5_a_block_in_the_place_of_another_is_damage() {
    let mut writer = Writer::in_memory();
    writer.lines(&["one", "two", "three"]);
    let key = |n| Key { space: Space::Block, todo: writer.todo.no(), n };
    let second = writer.kv.get(key(2)).unwrap().unwrap();
    for n in [1, 3] {
        writer
            .kv
            .commit(Batch { put: vec![(key(n), second.clone())], ..Batch::default() })
            .unwrap();
    }
    let (store, todo) = (&writer.store, &writer.todo);
    for n in [1, 3] {
        let error = store.block(todo, n).unwrap_err();
        assert!(matches!(error, Error::Corrupt { key, .. } if key.n == u64::from(n)), "{error}");
    }
    assert_eq!(store.block(todo, 2).unwrap().unwrap().header.block_id.n(), 2);
    assert!(store.blocks(todo, 0, 9).is_err() && store.last_block(todo).is_err());
    assert_eq!(store.blocks(todo, 1, 1).unwrap().len(), 1);
}

//! Which embedder belongs to a store, and who is notified of a change.

use super::{Hashed, ask, choice, fill, open, with};
use crate::story::todo;
use foldback::core::{Embedder, Message, Scale};
use foldback::embedder::{Choice, StaticEmbedder};
use foldback::{Close, EmbeddingProgress, Engine, Memory, Mode};
use foldback_kv::{Key, Space};
use std::sync::Arc;
use std::time::Duration;
use tempfile::tempdir;

#[test]
fn the_last_choice_wins_and_every_vector_is_of_it() {
    let dir = tempdir().unwrap();
    let messages = fill(dir.path());
    let first = open(dir.path(), Hashed::slow("hashed-a"));
    first.embedding().choose(&choice()).unwrap();
    while first.embedding().progress().unwrap().done < messages / 4 {
        std::thread::sleep(Duration::from_millis(5));
    }
    // While that is under way, another process chooses another.
    let second = open(dir.path(), Hashed::new("hashed-b"));
    second.embedding().choose(&choice()).unwrap();
    assert!(second.embedding().reembed(|_| {}).unwrap().is_done());
    assert!(!first.embedding().reembed(|_| {}).unwrap().is_done());
    assert_eq!(first.embedding().progress().unwrap().done, 0, "none of the first is left");
    assert!(ask(&second, "large", "module13").1.contains("Used"));
    assert_eq!(second.maintenance().doctor().unwrap().findings, Vec::<String>::new());
}

/// BL5: a measured scale is kept with the model's id, and used from the next opening on.
#[test]
fn bl5_a_measured_scale_is_used() {
    let dir = tempdir().unwrap();
    let scale = Scale { same_topic: 0.31, answering: 0.22 };
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    assert_eq!(memory.embedding().embedder().same_topic(), 0.5);
    memory.embedding().set_scale("hashed-a", scale).unwrap();
    memory.embedding().set_scale("hashed-b", Scale { same_topic: 0.9, answering: 0.8 }).unwrap();
    drop(memory);
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    let found =
        (memory.embedding().embedder().same_topic(), memory.embedding().embedder().answering());
    assert_eq!(found, (scale.same_topic, scale.answering));
    assert_eq!(memory.embedding().scale("hashed-a").unwrap(), Some(scale));
    drop(memory);
    assert_eq!(open(dir.path(), Hashed::new("hashed-b")).embedding().embedder().same_topic(), 0.9);
}

/// A store in which no embedder was ever chosen uses the built-in one: messages recorded without its
/// vectors get them, and messages with nothing to embed count as done.
#[test]
fn a_store_that_never_chose_is_embedded_by_the_built_in_embedder() {
    let dir = tempdir().unwrap();
    let none: Arc<dyn Embedder> = Choice::WordsOnly.load().unwrap();
    let memory = Memory::open(dir.path(), with(Some(none))).unwrap();
    let mut session = memory.session(&todo("english")).unwrap();
    session.record(Message::user("Which port does the staging server use?")).unwrap();
    session.record(Message::assistant("")).unwrap();
    session.close(Close::End).unwrap();
    assert_eq!(memory.embedding().own().unwrap(), None);
    drop((session, memory));
    let memory = Memory::open(dir.path(), with(None)).unwrap();
    for _ in 0..500 {
        if memory.embedding().progress().unwrap().is_done() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(memory.embedding().progress().unwrap(), EmbeddingProgress { done: 2, messages: 2 });
    assert!(ask(&memory, "english", "staging port").1.contains("Used"));
}

/// A new table in the program replaces the one that a store remembers.
#[test]
fn a_new_built_in_table_is_adopted() {
    #[derive(serde::Serialize)]
    struct Record {
        choice: &'static str,
        model_id: &'static str,
        dim: u64,
    }
    let dir = tempdir().unwrap();
    let messages = fill(dir.path());
    let kv = foldback_kv::open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    let record = Record { choice: "builtin", model_id: "static-older-256", dim: 256 };
    let key = Key { space: Space::Meta, todo: 0, n: 1 };
    let put = vec![(key, rmp_serde::to_vec_named(&record).unwrap())];
    kv.commit(foldback_kv::Batch { put, ..Default::default() }).unwrap();
    drop(kv);
    let memory = Memory::open(dir.path(), with(None)).unwrap();
    let own = memory.embedding().own().unwrap().unwrap();
    assert_eq!((own.choice, own.model_id.as_str()), (Choice::BuiltIn, StaticEmbedder::MODEL_ID));
    assert_eq!(
        memory.embedding().reembed(|_| {}).unwrap(),
        EmbeddingProgress { done: messages, messages }
    );
    assert!(memory.embedding().trouble().is_none());
}

/// A custom embedder becomes a new store's own, and a process that opens the store with another is
/// notified.
#[test]
fn an_embedder_of_ones_own_is_remembered_and_another_is_told() {
    let dir = tempdir().unwrap();
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    let own = memory.embedding().own().unwrap().unwrap();
    assert_eq!(own.choice, Choice::Custom("hashed-a".to_owned()));
    assert!(memory.embedding().trouble().is_none());
    let mut session = memory.session(&todo("english")).unwrap();
    session.record(Message::user("Which port does the staging server use?")).unwrap();
    drop((session, memory));
    let other = open(dir.path(), Hashed::new("hashed-b"));
    let trouble = other.embedding().trouble().unwrap().to_string();
    assert!(trouble.contains("hashed-a") && trouble.contains("hashed-b"), "{trouble}");
    drop(other);
    let plain = Memory::open(dir.path(), with(None)).unwrap();
    let trouble = plain.embedding().trouble().unwrap().to_string();
    assert!(trouble.contains("hashed-a") && trouble.contains("program's own"), "{trouble}");
}

/// A process that had the store open before another embedder was chosen is notified, and a caller that
/// waits for the end is not told that it has come.
#[test]
fn a_writer_whose_embedder_is_no_longer_the_stores_hears_of_it() {
    let dir = tempdir().unwrap();
    fill(dir.path());
    let old = Memory::open(dir.path(), with(None)).unwrap();
    assert!(old.embedding().trouble().is_none());
    let new = open(dir.path(), Hashed::new("hashed-a"));
    new.embedding().choose(&choice()).unwrap();
    let mut left = 3;
    let mut session = old.session(&todo("english")).unwrap();
    // It continues recording while the others are embedded; the new messages are embedded as well.
    let end = new.embedding().reembed(|progress| {
        if left > 0 && progress.done > 100 {
            left -= 1;
            session
                .record(Message::user(&format!("The backup server has port 900{left}.")))
                .unwrap();
        }
    });
    let end = end.unwrap();
    assert!(end.is_done() && end.messages == 254 + 3, "{end:?}");
    let trouble = old.embedding().trouble().unwrap().to_string();
    assert!(trouble.contains("hashed-a") && trouble.contains("static-"), "{trouble}");
}

/// A scale that makes no sense is refused; one that is stored anyway is ignored.
#[test]
fn a_scale_that_makes_no_sense_keeps_nobody_from_a_store() {
    let dir = tempdir().unwrap();
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    for (same_topic, answering) in [(1.0, 0.4), (f32::NAN, 0.4), (0.5, f32::NAN), (0.3, 0.4)] {
        let error =
            memory.embedding().set_scale("hashed-a", Scale { same_topic, answering }).unwrap_err();
        assert!(error.to_string().contains("hashed-a"), "{error}");
    }
    drop(memory);
    let kv = foldback_kv::open(dir.path(), Engine::Sqlite, Mode::ReadWrite).unwrap();
    let scale = Scale { same_topic: 1.0, answering: f32::NAN };
    let scales = std::collections::BTreeMap::from([("hashed-a", scale)]);
    let key = Key { space: Space::Meta, todo: 0, n: 2 };
    let put = vec![(key, rmp_serde::to_vec_named(&scales).unwrap())];
    kv.commit(foldback_kv::Batch { put, ..Default::default() }).unwrap();
    drop(kv);
    let memory = open(dir.path(), Hashed::new("hashed-a"));
    assert_eq!(memory.embedding().embedder().same_topic(), 0.5);
    let trouble = memory.embedding().trouble().unwrap().to_string();
    assert!(trouble.contains("calibrate"), "{trouble}");
}

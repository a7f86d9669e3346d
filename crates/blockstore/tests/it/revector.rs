//! The vectors of a todo replaced by another model's, batch after batch.

use crate::fixture::{Bag, Writer, eager, numbers};
use foldback_blockstore::{BlockStore, Error, Finding, Hit, Maintained, SearchRequest, VectorSide};
use foldback_core::{Embedder, SeqNo, Vectors};
use foldback_kv::Todo;

const OTHER: Bag = Bag("other-48");

/// Vectors of the other model for the messages of a range.
fn others(store: &BlockStore, todo: &Todo, range: std::ops::Range<u64>) -> Vec<(SeqNo, Vectors)> {
    let stored = store.messages(todo, range.clone()).unwrap();
    let texts = stored.iter().map(|stored| format!("{:?}", stored.pieces));
    range.zip(texts).map(|(seq, text)| (SeqNo(seq), OTHER.embed(&[&text]).unwrap())).collect()
}

fn ask(store: &BlockStore, todo: &Todo, embedder: &Bag, question: &str) -> Vec<Hit> {
    let vectors = embedder.embed(&[question]).unwrap();
    let request = SearchRequest::new(question).vector(embedder, vectors.row(0).unwrap());
    store.searcher(todo).unwrap().search(&request).unwrap()
}

fn side(hits: &[Hit]) -> &VectorSide {
    &hits[0].explanation.vectors
}

#[test]
fn r11_indexes_are_made_again_once_all_vectors_are_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::indexed(dir.path());
    writer.fill(3, 60);
    let (store, todo) = (&writer.store, &writer.todo);
    store.maintain(todo).unwrap();
    // Another process, which has searched before.
    let reader = writer.reader(Some(dir.path()), eager());
    assert_eq!(*side(&ask(&reader, todo, &crate::fixture::MODEL, "word1 word2")), VectorSide::Used);
    assert_eq!(store.vector_state(todo).unwrap().until, 0);

    store.replace_vectors(todo, OTHER.0, &others(store, todo, 0..30), 30).unwrap();
    let state = store.vector_state(todo).unwrap();
    assert_eq!((state.model_id.as_str(), state.until, state.indexes_stale), (OTHER.0, 30, true));
    // Half-way nothing is wrong, and no index is made of both.
    assert_eq!(store.doctor(todo, true).unwrap(), Vec::<Finding>::new());
    assert_eq!(store.maintain(todo).unwrap(), Maintained::default());
    assert!(!numbers(&ask(store, todo, &OTHER, "word1 word2")).is_empty());

    store.replace_vectors(todo, OTHER.0, &others(store, todo, 30..60), 60).unwrap();
    assert!(store.finish_vectors(todo, &|| false).unwrap());
    assert!(!store.vector_state(todo).unwrap().indexes_stale);
    assert!(store.maintain(todo).unwrap().indexed > 0);
    for store in [store, &reader] {
        assert_eq!(*side(&ask(store, todo, &OTHER, "word1 word2")), VectorSide::Used);
        let old = ask(store, todo, &crate::fixture::MODEL, "word1 word2");
        assert!(matches!(side(&old), VectorSide::OtherModel { .. }), "{:?}", side(&old));
    }
    assert_eq!(
        store.searcher(todo).unwrap().blocks_on_disk(),
        store.last_block(todo).unwrap().unwrap().header.block_id.n()
    );
    assert_eq!(store.doctor(todo, false).unwrap(), Vec::<Finding>::new());
}

#[test]
fn a_writer_is_not_disturbed_and_a_missing_message_is_refused() {
    let mut writer = Writer::in_memory();
    writer.lines(&["the tide is high", "订单已经发货"]);
    let head = writer.store.head(&writer.todo).unwrap();
    let vectors = others(&writer.store, &writer.todo, 0..2);
    writer.store.replace_vectors(&writer.todo, OTHER.0, &vectors, 2).unwrap();
    assert_eq!(writer.store.head(&writer.todo).unwrap(), head);
    // The commit still expects the head from before.
    writer.lines(&["the ship leaves"]);
    let error = writer.store.replace_vectors(&writer.todo, OTHER.0, &vectors, 9).unwrap_err();
    assert!(
        matches!(&error, Error::Refused { why, .. } if why.contains("no message 8")),
        "{error}"
    );
    assert_eq!(writer.store.vector_state(&writer.todo).unwrap().until, 2);
}

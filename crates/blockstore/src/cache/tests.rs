//! The contents of the cache, and their memory.

use super::*;
use crate::{Commit, Head, NewMessage, SearchRequest};
use foldback_core::{
    Block, BlockHeader, BlockId, BlockType, CloseReason, Message, Piece, SeqNo, SeqRange,
    StoredMessage, TodoId, Vectors,
};
use foldback_kv::{Batch, Delete, Expect, Key, Kv, Space};

/// A todo of 40 blocks, each of one message and one vector.
fn filled(kv: &Arc<dyn Kv>, records: &Records, id: &str) -> Todo {
    let todo = Registry::new(kv.clone()).create(&TodoId::new(id).unwrap(), b"").unwrap();
    let (messages, blocks): (Vec<_>, Vec<_>) = (1..=40u32)
        .map(|n| {
            let json = Message::user(&format!("words of block {n}, 字{n}")).json().to_owned();
            let (pieces, offloads) = (vec![Piece::Text(json)], vec![]);
            let stored = StoredMessage { pieces, offloads, recall: false, recorded_at: 0 };
            let vectors = Vectors::new(64, vec![0.125; 64]).unwrap();
            let header = BlockHeader {
                block_id: BlockId::new(todo.id().clone(), n),
                todo_id: todo.id().clone(),
                block_type: BlockType::Chat,
                keywords: vec![],
                core_semantic: String::new(),
                create_time: "2025-01-01 10:00:00".to_owned(),
                data_ids: vec![],
            };
            let seq = SeqNo(u64::from(n) - 1);
            let range = SeqRange::new(seq, seq).unwrap();
            let block = Block { header, range, close_reason: CloseReason::End };
            (NewMessage { stored, vectors }, block)
        })
        .unzip();
    let commit = Commit {
        todo: &todo,
        head: Head::default(),
        messages: &messages,
        blocks: &blocks,
        session: vec![],
        extra: vec![],
        delete: vec![],
    };
    records.commit(commit, "m").unwrap();
    todo
}

/// The count is the memory used by the todos that are held, whatever was done to them.
#[test]
fn c8_the_memory_of_the_cache_is_counted_after_upkeep_too() {
    let dir = tempfile::tempdir().unwrap();
    let kv = foldback_kv::memory();
    let records = Records::new(kv.clone(), None);
    let todos = ["a", "b", "c"].map(|id| filled(&kv, &records, id));
    let [a, b, c] = &todos;
    let open = |cache_bytes| {
        let config = IndexConfig {
            index_after_blocks: 10,
            batch_blocks: 1,
            cache_bytes,
            ..IndexConfig::default()
        };
        let registry = Registry::new(kv.clone());
        Cache::new(records.clone(), registry, Some(dir.path().to_owned()), config)
    };
    let counted = |cache: &Cache| {
        let slots = cache.slots.lock();
        let held = slots.by_todo.iter().map(|(_, slot)| {
            let counted = slot.bytes.load(Ordering::Relaxed);
            assert_eq!(counted, slot.held(&slot.state.lock()));
            counted
        });
        assert_eq!(held.sum::<usize>(), slots.bytes);
        slots.bytes
    };
    let cache = open(usize::MAX);
    assert_eq!(counted(&cache), 0);
    for todo in &todos {
        cache.searcher(todo).unwrap();
    }
    let in_memory = counted(&cache);
    cache.maintain(a).unwrap();
    let after = counted(&cache);
    assert!(after < in_memory, "an index on disk takes less: {after} and {in_memory}");
    cache.maintain(a).unwrap();
    cache.searcher(a).unwrap();
    assert_eq!(counted(&cache), after, "nothing has changed");
    cache.remove_index(b).unwrap();
    assert!(counted(&cache) < after);
    // With a small bound, only the todo that is being searched is held.
    let small = open(1);
    for todo in [c, a, c] {
        small.maintain(todo).unwrap();
        small.searcher(todo).unwrap();
        assert_eq!(small.slots.lock().by_todo.len(), 1);
        assert!(counted(&small) > 0);
    }
}

/// C8: a graph takes no memory before it is loaded, and then its own.
#[test]
fn c8_a_graph_counts_once_it_is_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let kv = foldback_kv::memory();
    let records = Records::new(kv.clone(), None);
    let todos = ["a", "b", "c"].map(|id| filled(&kv, &records, id));
    let open = |cache_bytes| {
        let config = IndexConfig {
            index_after_blocks: 10,
            batch_blocks: 1,
            hnsw_after_vectors: 8,
            cache_bytes,
            ..IndexConfig::default()
        };
        let registry = Registry::new(kv.clone());
        Cache::new(records.clone(), registry, Some(dir.path().to_owned()), config)
    };
    let cache = open(usize::MAX);
    for todo in &todos {
        assert!(cache.maintain(todo).unwrap().graph_due);
    }
    let without = cache.slots.lock().bytes;
    for todo in &todos {
        assert!(cache.build_graph(todo).unwrap().graph_built);
    }
    let graphs = cache.slots.lock().bytes - without;
    assert!(graphs > 3 * 40 * 64, "{graphs}");

    let later = open(without + graphs / 6);
    for todo in &todos {
        assert!(later.searcher(todo).unwrap().blocks_on_disk() == 40);
    }
    let state = || {
        let slots = later.slots.lock();
        (slots.by_todo.len(), slots.bytes)
    };
    assert_eq!(state(), (3, without), "there is room for all of them");
    let [a, ..] = &todos;
    assert_eq!(later.searcher(a).unwrap().load_graph(), 40);
    later.searcher(a).unwrap();
    let (held, bytes) = state();
    assert_eq!(held, 1, "a graph takes more room than there is, and its todo is in use");
    assert!(bytes >= graphs / 3, "the graph is counted: {bytes}");
}

/// C7: a todo that was forgotten has no place in the cache, even if the upkeep reaches it afterwards, as it does in the
/// background.
#[test]
fn c7_a_forgotten_todo_takes_no_place() {
    let dir = tempfile::tempdir().unwrap();
    let kv = foldback_kv::memory();
    let records = Records::new(kv.clone(), None);
    let registry = Registry::new(kv.clone());
    let config = IndexConfig { index_after_blocks: 10, batch_blocks: 1, ..IndexConfig::default() };
    let cache = Cache::new(records.clone(), registry.clone(), Some(dir.path().into()), config);
    let kept = filled(&kv, &records, "kept");
    cache.searcher(&kept).unwrap();
    for n in 0..20 {
        let todo = filled(&kv, &records, &format!("gone-{n}"));
        cache.searcher(&todo).unwrap();
        if n % 2 == 0 {
            cache.maintain(&todo).unwrap();
        }
        let spaces = [Space::Message, Space::Block, Space::Vector, Space::Session, Space::Index];
        let delete = spaces.map(|space| Delete::todo(space, todo.no())).to_vec();
        registry.remove(&todo, delete).unwrap();
        cache.remove_index(&todo).unwrap();
        assert_eq!(cache.maintain(&todo).unwrap(), Maintained::default());
        assert!(!cache.build_graph(&todo).unwrap().graph_due);
        assert!(!cache.is_worth_an_index(&todo, 0).unwrap());
        assert_eq!(cache.slots.lock().by_todo.len(), 1, "after {} of them", n + 1);
    }
    assert!(cache.slots.lock().by_todo.contains(&kept.no()));
}

/// C8: todos whose indexes were looked after, and that were never searched, are counted and bounded, too.
#[test]
fn c8_todos_that_were_only_looked_after_take_bounded_room() {
    let dir = tempfile::tempdir().unwrap();
    let kv = foldback_kv::memory();
    let records = Records::new(kv.clone(), None);
    let config = IndexConfig { cache_bytes: 4 * SLOT_BYTES, ..IndexConfig::default() };
    let cache =
        Cache::new(records.clone(), Registry::new(kv.clone()), Some(dir.path().into()), config);
    for n in 0..12 {
        let todo = filled(&kv, &records, &format!("todo-{n}"));
        match n % 2 {
            0 => drop(cache.maintain(&todo).unwrap()),
            _ => assert!(!cache.is_worth_an_index(&todo, 40).unwrap()),
        }
        let slots = cache.slots.lock();
        assert!(slots.by_todo.len() <= 4, "after {n}: {}", slots.by_todo.len());
        assert!(slots.by_todo.contains(&todo.no()));
        assert!((SLOT_BYTES..=4 * SLOT_BYTES).contains(&slots.bytes));
    }
}

/// R4: where acknowledged blocks were lost and others recorded in their place, a process that was running all the while
/// finds the new ones, and not those that are gone.
#[test]
fn r4_blocks_that_took_the_place_of_lost_ones_are_found() {
    let kv = foldback_kv::memory();
    let records = Records::new(kv.clone(), None);
    let todo = filled(&kv, &records, "a");
    let cache =
        Cache::new(records.clone(), Registry::new(kv.clone()), None, IndexConfig::default());
    let found = |word: &str| {
        let searcher = cache.searcher(&todo).unwrap();
        let hits = searcher.search(&SearchRequest::new(word).k(1)).unwrap();
        let by_word = hits.iter().filter(|hit| hit.bm25 > 0.0);
        by_word.map(|hit| hit.block.header.block_id.n()).collect::<Vec<_>>()
    };
    let key = |space, n| Key { space, todo: todo.no(), n };
    let stored = |text: &str| {
        let (pieces, offloads) = (vec![Piece::Text(Message::user(text).json().to_owned())], vec![]);
        rmp_serde::to_vec(&StoredMessage { pieces, offloads, recall: false, recorded_at: 0 })
            .unwrap()
    };
    // As the last block, and then as one that others follow.
    for (word, before, is_continued) in [("lighthouse", "40", false), ("灯塔", "lighthouse", true)]
    {
        assert_eq!((found(word), found(before)), (vec![], vec![40]));
        let mut block = records.block(&todo, 40).unwrap().unwrap();
        block.header.core_semantic = format!("About the {word}.");
        let mut put = vec![
            (key(Space::Block, 40), rmp_serde::to_vec(&block).unwrap()),
            (key(Space::Message, 39), stored(&format!("the {word} instead"))),
        ];
        let head = records.head(&todo).unwrap();
        let next = if is_continued { head.after(1) } else { head };
        if is_continued {
            block.header.block_id = BlockId::new(todo.id().clone(), 41);
            block.range = SeqRange::new(SeqNo(40), SeqNo(40)).unwrap();
            put.push((key(Space::Block, 41), rmp_serde::to_vec(&block).unwrap()));
            put.push((key(Space::Message, 40), stored("and so on")));
        }
        let (head, next) = (head.to_number(), next.to_number());
        let expect = Some(Expect { todo: todo.no(), head, next });
        kv.commit(Batch { expect, put, ..Batch::default() }).unwrap();
        assert_eq!((found(word), found(before)), (vec![40], vec![]));
    }
}

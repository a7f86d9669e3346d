//! A memory as a source to search.

use foldback::core::{BlockId, Message, Reference, TodoId};
use foldback::{Close, Memory, Options};
use foldback_deep_search::SearchBackend;
use foldback_documents::TodoSearch;

fn todo(name: &str) -> TodoId {
    TodoId::new(name).unwrap()
}

/// A memory in which two things were said in `trip`, each in a block.
fn memory() -> Memory {
    let memory = Memory::in_memory(Options::default()).unwrap();
    let mut session = memory.session(&todo("trip")).unwrap();
    for (asked, said) in [
        ("When does the ferry Heron leave?", "The ferry leaves at 07:10."),
        ("大潮时潮差多少？", "大潮时潮差可达四点七米。"),
    ] {
        session.record_all(vec![Message::user(asked), Message::assistant(said)]).unwrap();
        session.close(Close::Switch).unwrap();
    }
    memory.session(&todo("reader")).unwrap();
    memory
}

/// DS9: what was said is found by the block that contains it, by whose name it can be loaded.
#[tokio::test]
async fn ds9_what_was_said_is_found_by_its_block() {
    let search = TodoSearch::own(memory(), todo("trip"));
    for (query, block, words) in [
        ("when does the ferry leave", "b_trip_001", "07:10"),
        ("大潮 潮差", "b_trip_002", "四点七米"),
    ] {
        let found = search.search(query, 2).await.unwrap();
        assert_eq!(found[0].url, block, "{query}");
        assert!(found[0].text.contains(words), "{}", found[0].text);
    }
}

/// TD2: of another todo, only what was granted is found.
#[tokio::test]
async fn td2_of_another_todo_what_was_granted_is_found() {
    let memory = memory();
    let search = TodoSearch::granted(memory.clone(), todo("reader"), todo("trip"));
    let urls = async |query: &str| -> Vec<String> {
        let found = search.search(query, 5).await.unwrap();
        found.into_iter().map(|passage| passage.url).collect()
    };
    assert_eq!(urls("when does the ferry leave").await, Vec::<String>::new());
    let block = Reference::Block(BlockId::new(todo("trip"), 1));
    memory.grants().grant(&todo("trip"), &todo("reader"), &[block]).unwrap();
    assert_eq!(urls("when does the ferry leave").await, ["b_trip_001"]);
    assert!(!urls("大潮 潮差").await.contains(&"b_trip_002".to_owned()));
}

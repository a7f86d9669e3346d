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

/// The newest messages are found before their block closes, take nobody else's place, and can be loaded by
/// the name of their block.
#[tokio::test]
async fn the_newest_messages_are_found() {
    let memory = memory();
    let mut session = memory.session(&todo("trip")).unwrap();
    let said = [
        Message::user("Where is the ferry Heron moored?"),
        Message::assistant("渡轮苍鹭号停在三号泊位。"),
    ];
    session.record_all(said.into()).unwrap();
    let search = TodoSearch::own(memory.clone(), todo("trip"));
    for query in ["苍鹭号泊位", "ferry Heron moored"] {
        let found = search.search(query, 1).await.unwrap();
        assert_eq!(found.len(), 1, "{query}");
        assert_eq!(found[0].url, "b_trip_003", "{query}");
        assert!(found[0].text.contains("三号泊位"), "{}", found[0].text);
    }
    let loaded = memory.recall(&todo("trip"), "load", r#"{"ref": "b_trip_003"}"#).unwrap();
    assert!(loaded.text.contains("三号泊位"), "{}", loaded.text);
    // Another todo sees none of it, even with all closed blocks granted.
    let blocks = [1, 2].map(|n| Reference::Block(BlockId::new(todo("trip"), n)));
    memory.grants().grant(&todo("trip"), &todo("reader"), &blocks).unwrap();
    let granted = TodoSearch::granted(memory, todo("reader"), todo("trip"));
    let found = granted.search("苍鹭号泊位", 5).await.unwrap();
    assert!(found.iter().all(|passage| passage.url != "b_trip_003"), "{found:?}");
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

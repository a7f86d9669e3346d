//! The README's first command, and what it shows.

use crate::story::workspace_root;
use crate::story::{in_memory, todo};

#[test]
fn the_example_offloads_folds_and_recalls() {
    let path = workspace_root().join("examples/coding-session.jsonl");
    let mut conversations = foldback_transcript::read_file(&path).unwrap();
    let conversation = conversations.next().unwrap().unwrap();
    assert!(conversation.messages.len() >= 60);
    assert_eq!(conversation.check(), []);
    let memory = in_memory();
    let id = todo("coding-session");
    memory.conversations().import(&id, &conversation).unwrap();
    assert_eq!(
        memory.conversations().export(&id).unwrap().to_original(),
        conversation.to_original()
    );
    let blocks = memory.blocks(&id, 0, 1_000).unwrap();
    assert!(blocks.len() >= 10, "{} blocks", blocks.len());
    assert!(blocks.iter().any(|block| !block.header.data_ids.is_empty()), "nothing was offloaded");
    let checkup = memory.maintenance().doctor().unwrap();
    assert!(checkup.is_clean(), "{:?}", checkup.findings);
    assert!(checkup.payloads >= 5);
}

#[test]
fn the_readme_names_the_two_commands() {
    let readme = std::fs::read_to_string(workspace_root().join("README.md")).unwrap();
    for command in
        ["cargo run --release -- replay examples/coding-session.jsonl", "cargo test --workspace"]
    {
        assert!(readme.contains(command), "the README does not say `{command}`");
    }
    let holder = readme.split('@').skip(1).step_by(2).find(|text| text.len() < 20);
    assert_eq!(holder, None, "the README has a gap");
    let ci = std::fs::read_to_string(workspace_root().join(".ci/run")).unwrap();
    assert!(ci.contains("cargo test --workspace"));
}

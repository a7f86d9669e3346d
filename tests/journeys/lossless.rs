//! Law 1 on real conversations: whatever goes in comes back byte for byte, the view stays small
//! and valid, and no unit is cut.

use crate::story::{engines, in_memory, open_on, todo};
use foldback::{Close, Engine, Memory};
use foldback_core::{Budget, Message, Pairing, PairingTracker, check_request};
use foldback_transcript::Conversation;
use rayon::prelude::*;

/// The results for one conversation.
#[derive(Default)]
struct Passage {
    messages: usize,
    blocks: usize,
    widest: usize,
}

#[test]
fn every_recorded_conversation_comes_back() {
    let conversations: Vec<_> =
        foldback_testkit::data::conversations(&["agent", "dialogue", "segmentation", "examples"])
            .map(|(_, conversation)| conversation)
            .collect();
    if conversations.is_empty() {
        eprintln!("SKIPPED: the folder with recorded conversations is not here");
        return;
    }
    let passages: Vec<Passage> =
        conversations.par_iter().map(|conversation| pass(conversation, &in_memory())).collect();
    let (mut all, mut count) = (Passage::default(), 0);
    for passage in passages {
        count += 1;
        all.messages += passage.messages;
        all.blocks += passage.blocks;
        all.widest = all.widest.max(passage.widest);
    }
    eprintln!(
        "{count} conversations, {} messages, {} blocks, widest window {}",
        all.messages, all.blocks, all.widest
    );
    assert!(count > 1_600, "only {count} conversations were found");
}

/// A sample of them on each persistent engine: every fortieth conversation, each as a todo of one
/// store, read again by the next opener.
#[test]
fn recorded_conversations_come_back_from_each_engine() {
    let conversations: Vec<_> =
        foldback_testkit::data::conversations(&["agent", "dialogue", "segmentation", "examples"])
            .map(|(_, conversation)| conversation)
            .step_by(40)
            .collect();
    if conversations.is_empty() {
        eprintln!("SKIPPED: the folder with recorded conversations is not here");
        return;
    }
    assert!(conversations.len() > 40, "only {} conversations were found", conversations.len());
    engines().into_par_iter().for_each(|engine| check_kept(engine, &conversations));
}

#[track_caller]
fn check_kept(engine: Engine, conversations: &[Conversation]) {
    let dir = tempfile::tempdir().unwrap();
    let name = |n: usize| todo(&format!("t{n}"));
    let memory = open_on(engine, dir.path());
    for (n, conversation) in conversations.iter().enumerate() {
        let mut session = memory.session(&name(n)).unwrap();
        for batch in conversation.messages.chunks(16) {
            session.record_all(batch.to_vec()).unwrap();
        }
        session.close(Close::End).unwrap();
    }
    drop(memory);
    let memory = open_on(engine, dir.path());
    for (n, conversation) in conversations.iter().enumerate() {
        let back = memory.conversations().export(&name(n)).unwrap().messages;
        let id = conversation.id.as_deref().unwrap_or_default();
        assert_eq!(back.len(), conversation.messages.len(), "{engine}, {id}");
        for (at, (sent, came)) in conversation.messages.iter().zip(&back).enumerate() {
            assert_eq!(came.json(), sent.json(), "{engine}, {id}: message {at}");
        }
    }
    assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new(), "{engine}");
}

fn pass(conversation: &Conversation, memory: &Memory) -> Passage {
    let id = conversation.id.clone().unwrap_or_default();
    let name = todo("t");
    let mut session = memory.session(&name).unwrap();
    let mut calls = PairingTracker::default();
    let mut widest = 0;
    for (at, message) in conversation.messages.iter().enumerate() {
        session.record(message.clone()).unwrap_or_else(|error| panic!("{id} {at}: {error}"));
        calls.observe(message);
        if !calls.open().is_empty() {
            continue;
        }
        let prompt = session.prompt(&Budget::default());
        let violations = check_request(prompt.messages.iter().map(AsRef::as_ref));
        assert_eq!(violations, [], "{id}: the prompt behind message {at}");
        assert!(prompt.window <= 12, "{id}: {} messages in view at {at}", prompt.window);
        widest = widest.max(prompt.window);
    }
    session.close(Close::End).unwrap();
    assert_blocks_are_the_transcript(memory, &id, &conversation.messages);
    let back = memory.conversations().export(&name).unwrap();
    for (at, (sent, came)) in conversation.messages.iter().zip(&back.messages).enumerate() {
        assert_eq!(came.json(), sent.json(), "{id}: message {at}");
    }
    assert_eq!(back.messages.len(), conversation.messages.len(), "{id}");
    let blocks = memory.blocks(&name, 0, usize::MAX).unwrap().len();
    Passage { messages: conversation.messages.len(), blocks, widest }
}

fn assert_blocks_are_the_transcript(memory: &Memory, id: &str, messages: &[Message]) {
    let blocks = memory.blocks(&todo("t"), 0, usize::MAX).unwrap();
    let mut next = 0;
    for block in &blocks {
        assert_eq!(block.range.first().0, next, "{id}: {}", block.header.block_id);
        next = block.range.last().0 + 1;
    }
    assert_eq!(next, messages.len() as u64, "{id}: a closed conversation has no open tail");
    // A unit is cut if its results are in a different block from its calls.
    let mut tracker = PairingTracker::default();
    let starts: Vec<u64> = blocks.iter().map(|block| block.range.first().0).collect();
    for (at, message) in messages.iter().enumerate() {
        let answers = tracker.observe(message) == Pairing::Answers;
        let cut = answers && starts.contains(&(at as u64));
        assert!(!cut, "{id}: a block begins at {at}, within a unit");
    }
}

//! One crate alone: cut a conversation into blocks, without a store, an index or a model.
//!
//! ```text
//! cargo run -p foldback-chunker --example one_crate_alone
//! ```
//!
//! Every crate of the workspace can be linked by itself. The chunker is a pure step: an event in,
//! closed blocks out. Its state is a small value that can be written down anywhere.

use foldback_chunker::{Chunker, ChunkerConfig, Described, Event, Input, describe};
use foldback_core::{BlockId, Message, Timestamp, TodoId, ToolCall, ToolCallId};
use std::error::Error;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let conversation = conversation();
    let todo = TodoId::new("holiday")?;
    let mut chunker = Chunker::new(ChunkerConfig::default());

    let mut closed = Vec::new();
    for message in &conversation {
        closed.extend(chunker.push(Event::Message(Input::of(message))));
    }
    closed.extend(chunker.push(Event::End));

    for (n, block) in (1..).zip(&closed) {
        // The metadata of a block is made without a model too.
        let messages = block.range.iter().filter_map(|seq| conversation.get(seq.0 as usize));
        let parts: Vec<Described<'_>> =
            messages.map(|message| Described::new(message, Timestamp(0))).collect();
        // Without a store, no reference in a text leads to anything.
        let header = describe(BlockId::new(todo.clone(), n), &parts, &|_| false);
        println!(
            "{}  messages {} to {}  closed by {}: {}",
            header.block_id,
            block.range.first(),
            block.range.last(),
            block.reason.as_str(),
            block.evidence
        );
        println!("    {}", header.core_semantic);
        println!("    {}\n", header.keywords.join(", "));
    }
    Ok(())
}

fn conversation() -> Vec<Message> {
    vec![
        Message::user("I need a hotel room in Cambridge for two nights from Friday."),
        Message::calls(
            "",
            vec![ToolCall::new("c1", "find_hotel", r#"{"city": "Cambridge", "nights": 2}"#)],
        ),
        Message::tool_result(&ToolCallId::new("c1"), "Gonville Hotel, 2 nights, 240 GBP"),
        Message::assistant("The Gonville Hotel has a room for two nights, 240 GBP."),
        Message::user("Book it, thank you!"),
        Message::assistant("Booked. Is there anything else?"),
        Message::user("What is the weather in Boston this week?"),
        Message::assistant("Boston: rain until Wednesday, then sun."),
        Message::user("And the temperature in Boston on Thursday?"),
        Message::assistant("14 degrees in Boston on Thursday, with sun."),
        Message::user("换个话题：帮我把“退订机票”翻译成英文。"),
        Message::assistant("“退订机票”的英文是 cancel a flight booking。"),
    ]
}

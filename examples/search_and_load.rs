//! Find what is no longer in view, and bring it back word for word.
//!
//! ```text
//! cargo run -p foldback --example search_and_load
//! ```
//!
//! The same three tools are what a model is given: `search_block`, `list_blocks` and `load`. Here
//! the program plays the model and calls them by hand.

use foldback::core::{Message, TodoId, ToolCall, ToolCallId};
use foldback::{Memory, Options, SearchRequest, Session};
use std::error::Error;

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let memory = Memory::in_memory(Options::default())?;
    let todo = TodoId::new("support-4711")?;
    let mut session = memory.session(&todo)?;
    fill(&mut session)?;

    // As a library: blocks with scores.
    let answer = memory.search(&todo, &SearchRequest::new("refund for the broken kettle").k(2))?;
    for hit in &answer.hits {
        println!("{}  {hit}", hit.block.header.block_id);
        println!("    {}", hit.block.header.core_semantic);
    }

    // As the model does it: a call, answered with text.
    let text = call(&mut session, "search_block", r#"{"query": "退款 水壶", "k": 1}"#)?;
    println!("\n{text}");

    // Everything of one block, or some lines of a large result.
    if let Some(hit) = answer.hits.first() {
        let id = &hit.block.header.block_id;
        println!("{}", call(&mut session, "load", &format!(r#"{{"ref": "{id}"}}"#))?);
    }
    Ok(())
}

fn call(session: &mut Session, tool: &str, arguments: &str) -> Result<String, Box<dyn Error>> {
    Ok(session.call(&ToolCall::new("by-hand", tool, arguments))?.text)
}

fn fill(session: &mut Session) -> Result<(), Box<dyn Error>> {
    session.record(Message::user("The kettle from order #K-20931 arrived broken."))?;
    session.record(Message::calls(
        "",
        vec![ToolCall::new("c1", "refund", r##"{"order": "#K-20931", "amount": "39.90"}"##)],
    ))?;
    session
        .record(Message::tool_result(&ToolCallId::new("c1"), "refunded 39.90 EUR, id RF-7719"))?;
    session.record(Message::assistant("I refunded 39.90 EUR for the broken kettle, RF-7719."))?;
    session.record(Message::user("另外，水壶的退款多久到账？"))?;
    session.record(Message::assistant("退款 RF-7719 通常三到五个工作日到账。"))?;
    for n in 0..30 {
        session.record(Message::user(&format!("And what is the price of lamp model L{n}?")))?;
        session.record(Message::assistant(&format!("Lamp L{n} costs {} EUR.", 20 + n)))?;
    }
    Ok(())
}

//! What the short form of the recall tools takes.

use foldback::{CacheAware, FoldPolicy, Memory, Options, ViewConfig};
use foldback_core::{Budget, Message, TodoId, TokenCounter, ToolCall, ToolCallId};
use foldback_o200k::O200k;

/// All three tools are declared under `cache-aware` once something is out of view, in at most 150 tokens.
#[test]
fn the_three_tools_take_few_tokens_under_cache_aware() {
    let marks = CacheAware::default().with_least_cached(64).with_most(12, 2_000).unwrap();
    let view = ViewConfig::default().with_fold_policy(FoldPolicy::CacheAware(marks));
    let memory = Memory::in_memory(Options::default().with_view(view)).unwrap();
    let mut session = memory.session(&TodoId::new("quay").unwrap()).unwrap();
    for n in 0..12 {
        let id = format!("c{n}");
        for message in [
            Message::user(&format!("Read part {n} of the log.")),
            Message::calls("", vec![ToolCall::new(&id, "read", &format!(r#"{{"part": {n}}}"#))]),
            Message::tool_result(&ToolCallId::new(&id), &format!("潮位 {n} m. ").repeat(40)),
            Message::assistant("It is read."),
        ] {
            session.record(message).unwrap();
        }
    }
    let prompt = session.prompt(&Budget::default());
    let names: Vec<&str> = prompt.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["search_block", "list_blocks", "load"]);
    let texts = prompt.tools.iter().flat_map(|t| [&t.name, &t.description, &t.parameters]);
    let tokens: usize = texts.map(|text| O200k.count(text)).sum();
    assert_eq!(tokens, 97, "what the account of `cache-aware` counts for them");
}

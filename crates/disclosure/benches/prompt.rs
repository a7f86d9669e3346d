//! Measures whether building a prompt costs the same after 10 blocks as after 10,000 (LV8: at most 1 ms).

#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up fails")]

use foldback_core::{
    Block, BlockHeader, BlockId, BlockType, Budget, CloseReason, Estimate, Message, SeqNo,
    SeqRange, TodoId, ToolCall, ToolCallId,
};
use foldback_disclosure::{LiveView, Marks, Shown, ViewConfig};
use std::sync::Arc;

fn main() {
    divan::main();
}

/// A view after this many blocks of six messages, with an open tail of five.
fn view(blocks: u32) -> LiveView {
    let todo = TodoId::new("bench").expect("a todo id");
    let mut view = LiveView::new(ViewConfig::default(), Marks::new(&[7; 32], &todo));
    let mut seq = 0;
    let mut say = |view: &mut LiveView, message: Message| {
        view.append(Shown::new(SeqNo(seq), Arc::new(message), Vec::new(), None));
        seq += 1;
        seq
    };
    say(&mut view, Message::system("You are a careful assistant. ".repeat(40).as_str()));
    let mut first = 0;
    for n in 1..=blocks {
        let last = (0..3).map(|i| exchange(&mut view, &mut say, n, i)).max().unwrap_or(1);
        let range = SeqRange::new(SeqNo(first), SeqNo(last - 1)).expect("a range");
        first = last;
        view.fold(&Block { header: header(&todo, n), range, close_reason: CloseReason::Loop });
    }
    exchange(&mut view, &mut say, blocks + 1, 0);
    exchange(&mut view, &mut say, blocks + 1, 1);
    say(&mut view, Message::user("What did the log say?"));
    view.set_todo_list(Some("- [x] read the log\n- [ ] fix the retry".to_owned()));
    view
}

fn exchange(
    view: &mut LiveView,
    say: &mut impl FnMut(&mut LiveView, Message) -> u64,
    n: u32,
    i: u32,
) -> u64 {
    let id = format!("call_{n}_{i}");
    let arguments = format!("{{\"path\":\"src/module_{n}.rs\",\"from\":{i}}}");
    say(view, Message::calls("Reading on.", vec![ToolCall::new(&id, "read", &arguments)]));
    say(
        view,
        Message::tool_result(&ToolCallId::new(&id), &"fn worker() { retry(3); }\n".repeat(60)),
    )
}

fn header(todo: &TodoId, n: u32) -> BlockHeader {
    BlockHeader {
        block_id: BlockId::new(todo.clone(), n),
        todo_id: todo.clone(),
        block_type: BlockType::ToolCall,
        keywords: vec!["read".to_owned(), format!("src/module_{n}.rs")],
        core_semantic: format!("Agent reads module {n}"),
        create_time: "2025-01-01 10:00:00".to_owned(),
        data_ids: Vec::new(),
    }
}

#[divan::bench(args = [10, 10_000])]
fn prompt(bencher: divan::Bencher<'_, '_>, blocks: u32) {
    let view = view(blocks);
    bencher.bench(|| view.prompt(&Budget::default(), &Estimate));
}

/// The first prompt after a fold, when nothing of the window has been counted.
#[divan::bench(args = [10, 10_000])]
fn prompt_uncounted(bencher: divan::Bencher<'_, '_>, blocks: u32) {
    bencher
        .with_inputs(|| view(blocks))
        .bench_values(|view| view.prompt(&Budget::default(), &Estimate));
}

/// What a session copies before each write.
#[divan::bench(args = [10, 10_000])]
fn clone(bencher: divan::Bencher<'_, '_>, blocks: u32) {
    let view = view(blocks);
    bencher.bench(|| view.clone());
}

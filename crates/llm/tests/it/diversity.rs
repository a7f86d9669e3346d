//! Varied observations.

use foldback_core::{Message, ToolCall, ToolCallId};
use foldback_llm::Diversity;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Twenty CVs, read one by one: the rhythm that a model falls into.
fn transcript(from: usize, to: usize) -> Vec<Arc<Message>> {
    let turn = |n: usize| {
        let id = ToolCallId::new(&format!("call_{n}"));
        let call = ToolCall::new(id.as_str(), "read_cv", &format!("{{\"n\":{n}}}"));
        let text = if n.is_multiple_of(2) {
            format!("简历 {n}: 张三,工程师")
        } else {
            format!("CV {n}: Ann")
        };
        [Message::calls("", vec![call]), Message::tool_result(&id, &text)]
    };
    (from..to).flat_map(turn).map(Arc::new).collect()
}

/// MC16: off is byte-identical, and the messages are the very same.
#[test]
fn mc16_off_changes_nothing() {
    let messages = transcript(0, 20);
    for (before, after) in messages.iter().zip(Diversity::off().render(&messages)) {
        assert!(Arc::ptr_eq(before, &after));
    }
}

/// MC16: several wordings occur, each with the whole result in it; calls keep their bytes.
#[test]
fn mc16_results_are_worded_differently() {
    let messages = transcript(0, 40);
    let varied = Diversity::seeded(1).render(&messages);
    let mut frames = BTreeSet::new();
    for (before, after) in messages.iter().zip(&varied) {
        assert_eq!(before.tool_calls(), after.tool_calls());
        assert_eq!((before.role(), before.tool_call_id()), (after.role(), after.tool_call_id()));
        if before.tool_call_id().is_none() {
            assert_eq!(before, after);
            continue;
        }
        let (before, after) = (before.text(), after.text());
        assert!(after.contains(before.as_ref()), "{after}");
        frames.insert(after.replace(before.as_ref(), ""));
    }
    assert!(frames.len() >= 8, "{frames:?}");
    assert!(frames.contains("结果:\n") && frames.contains("Result:\n"), "{frames:?}");
    assert_eq!(Diversity::seeded(1).render(&messages), varied, "the same seed, the same bytes");
    assert_ne!(Diversity::seeded(2).render(&messages), varied);
}

proptest! {
    /// MC16, MC20: a longer conversation begins with the bytes of the shorter one, whatever the
    /// seed; and what stood there before it was switched on keeps its bytes.
    #[test]
    fn mc20_only_new_items_change(seed: u64, on in 0..10_usize, now in 10..15_usize, then in 15..20_usize) {
        let before = transcript(0, on);
        let diversity = Diversity::seeded(seed).sparing(before.iter().map(Arc::as_ref));
        let stored: Vec<_> = transcript(0, then);
        let short = diversity.render(&transcript(0, now));
        let long = diversity.render(&stored);
        prop_assert_eq!(&long[..short.len()], &short[..]);
        prop_assert_eq!(&long[..before.len()], &before[..]);
        prop_assert_eq!(stored, transcript(0, then), "what is stored is as it was");
    }
}

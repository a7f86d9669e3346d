//! Results in varied wording, so that a model does not start to imitate its own context.

use foldback_core::{Content, Message, Role};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The text before and after a result. The first wording leaves it unchanged.
const WORDINGS: [(&str, &str); 6] = [
    ("", ""),
    ("Result:\n", ""),
    ("The tool answered:\n", ""),
    ("Output\n---\n", ""),
    ("", "\n---\nEnd of the output."),
    ("Observed:\n\n", "\n"),
];

/// The same, for results that are mostly Chinese.
const CHINESE_WORDINGS: [(&str, &str); 6] = [
    ("", ""),
    ("结果:\n", ""),
    ("工具返回:\n", ""),
    ("输出\n---\n", ""),
    ("", "\n---\n输出结束。"),
    ("观察到:\n\n", "\n"),
];

/// Returns the messages with the results of tools in varied wording. The wording is a function of the
/// seed and the call's id, so a result has the same bytes in every request; the transcript itself is
/// never changed, and the result itself stays intact inside its wording.
pub(crate) fn varied(seed: u64, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    messages.iter().map(|message| varied_one(seed, message)).collect()
}

fn varied_one(seed: u64, message: &Arc<Message>) -> Arc<Message> {
    let id = message.tool_call_id().filter(|_| *message.role() == Role::Tool);
    let (Some(id), Content::Text(text)) = (id, message.content()) else {
        return Arc::clone(message);
    };
    let wordings = if is_chinese(text) { CHINESE_WORDINGS } else { WORDINGS };
    let choice = xxh3_64_with_seed(id.as_str().as_bytes(), seed) % wordings.len() as u64;
    match wordings.get(choice as usize) {
        None | Some(("", "")) => Arc::clone(message),
        Some((before, behind)) => {
            let text = Content::Text(format!("{before}{text}{behind}"));
            Arc::new(message.with_body(text, Vec::new()))
        }
    }
}

/// Returns whether most letters at the beginning are Chinese characters.
fn is_chinese(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).take(200);
    let (mut chinese, mut all) = (0, 0);
    for letter in letters {
        all += 1;
        chinese += usize::from(matches!(letter, '\u{3400}'..='\u{9fff}'));
    }
    chinese * 2 > all
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::{ToolCall, ToolCallId};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// CVs, read one by one: the rhythm that a model falls into.
    fn transcript(count: usize) -> Vec<Arc<Message>> {
        let turn = |n: usize| {
            let id = ToolCallId::new(&format!("call_{n}"));
            let call = ToolCall::new(id.as_str(), "read_cv", &format!("{{\"n\":{n}}}"));
            let text = match n.is_multiple_of(2) {
                true => format!("简历 {n}: 张三,工程师"),
                false => format!("CV {n}: Ann"),
            };
            [Message::calls("", vec![call]), Message::tool_result(&id, &text)]
        };
        (0..count).flat_map(turn).map(Arc::new).collect()
    }

    /// MC16: several wordings occur, each with the whole result in it; calls keep their bytes.
    #[test]
    fn mc16_results_are_worded_differently() {
        let messages = transcript(40);
        let told = varied(1, &messages);
        let mut frames = BTreeSet::new();
        for (before, after) in messages.iter().zip(&told) {
            assert_eq!(before.tool_calls(), after.tool_calls());
            assert_eq!(
                (before.role(), before.tool_call_id()),
                (after.role(), after.tool_call_id())
            );
            if before.tool_call_id().is_none() {
                assert!(Arc::ptr_eq(before, after));
                continue;
            }
            let (before, after) = (before.text(), after.text());
            assert!(after.contains(before.as_ref()), "{after}");
            frames.insert(after.replace(before.as_ref(), ""));
        }
        assert!(frames.len() >= 8, "{frames:?}");
        assert!(frames.contains("结果:\n") && frames.contains("Result:\n"), "{frames:?}");
        assert_eq!(varied(1, &messages), told, "the same seed, the same bytes");
        assert_ne!(varied(2, &messages), told);
    }

    proptest! {
        /// MC16, MC20: a longer conversation begins with the bytes of the shorter one, whatever the seed,
        /// so that only new items get a new wording; and what is stored does not change.
        #[test]
        fn mc20_only_new_items_change(seed: u64, now in 0..15_usize, more in 0..10_usize) {
            let stored = transcript(now + more);
            let (short, long) = (varied(seed, &transcript(now)), varied(seed, &stored));
            prop_assert_eq!(&long[..short.len()], &short[..]);
            prop_assert_eq!(stored, transcript(now + more), "what is stored is as it was");
        }
    }
}

//! Observations in varied words, so that a model does not fall into imitating its own context.

use foldback_core::{Content, Message, Role};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// How the results of tools are worded in a request. The words are a function of the seed and the
/// call's id, so the same request has the same bytes whenever it is rendered; the transcript itself
/// is never touched, and the result stands in its new words letter by letter.
///
/// ```
/// use foldback_core::{Message, ToolCallId};
/// use foldback_llm::Diversity;
///
/// let result = Message::tool_result(&ToolCallId::new("c1"), "一切正常").into();
/// let varied = Diversity::seeded(7).render(&[result]);
/// assert!(varied[0].text().contains("一切正常"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diversity {
    /// `None` while it is off.
    seed: Option<u64>,
    /// The ids of calls whose results keep the bytes they have.
    spared: BTreeSet<String>,
}

/// What stands before a result and behind it. The first leaves it as it is.
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

impl Diversity {
    /// None: every result as it is.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// Varied by this seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { seed: Some(seed), spared: BTreeSet::new() }
    }

    /// The same, leaving the results of these messages as they are: what was sent before it was
    /// switched on, and may stand in a cache.
    #[must_use]
    pub fn sparing<'m>(mut self, messages: impl IntoIterator<Item = &'m Message>) -> Self {
        let ids = messages.into_iter().filter_map(|message| message.tool_call_id());
        self.spared.extend(ids.map(|id| id.as_str().to_owned()));
        self
    }

    /// The messages with their results so worded.
    #[must_use]
    pub fn render(&self, messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
        messages.iter().map(|message| self.render_one(message)).collect()
    }

    fn render_one(&self, message: &Arc<Message>) -> Arc<Message> {
        let Some((seed, id)) = self.seed.zip(message.tool_call_id()) else {
            return Arc::clone(message);
        };
        let is_text = matches!(message.content(), Content::Text(_));
        if *message.role() != Role::Tool || !is_text || self.spared.contains(id.as_str()) {
            return Arc::clone(message);
        }
        let text = message.text();
        let wordings = if is_chinese(&text) { CHINESE_WORDINGS } else { WORDINGS };
        let choice = xxh3_64_with_seed(id.as_str().as_bytes(), seed) % wordings.len() as u64;
        match wordings.get(choice as usize) {
            None | Some(("", "")) => Arc::clone(message),
            Some((before, behind)) => {
                let text = Content::Text(format!("{before}{text}{behind}"));
                Arc::new(message.with_body(text, Vec::new()))
            }
        }
    }
}

/// Whether most letters of the beginning are Chinese characters.
fn is_chinese(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic()).take(200);
    let (mut chinese, mut all) = (0, 0);
    for letter in letters {
        all += 1;
        chinese += usize::from(matches!(letter, '\u{3400}'..='\u{9fff}'));
    }
    chinese * 2 > all
}

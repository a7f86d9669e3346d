//! A request as a prefix cache sees it.

use super::breakpoints::content_blocks;
use crate::json_string::push_string;
use crate::{AllowedTools, ChatRequest, ToolChoice};
use foldback_core::{TokenCounter, ToolDefinition, message_tokens};
use xxhash_rust::xxh3::xxh3_64;

/// The tokens of a request: its tools first, then its messages in order.
///
/// They are not a model's tokens but represent them: a tool or message of `n` tokens by the counter
/// becomes `n` even parts of its text, each identified by its hash. So the same text gives the same
/// tokens, and texts that differ early have few in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestTokens {
    /// The tokens.
    pub ids: Vec<u32>,
    /// Where each message ends.
    pub ends: Vec<usize>,
    /// How many tokens the provider is asked to keep.
    pub kept: usize,
    /// How many content blocks each message has.
    pub blocks: Vec<usize>,
    /// The messages that a mark follows.
    pub marks: Vec<usize>,
    /// Where tools and standing instructions end.
    pub standing: usize,
    /// The choice of tools in one word, as it is sent to Anthropic.
    pub choice: String,
}

impl RequestTokens {
    /// Returns the tokens of a request. Kept are those before its last mark, or all if it has none,
    /// as in caches without marks.
    #[must_use]
    pub fn of(request: &ChatRequest, counter: &dyn TokenCounter) -> Self {
        let mut tokens = Self::default();
        for tool in &request.tools {
            let text = declaration(tool);
            tokens.push(&text, counter.count(&text));
        }
        tokens.standing = tokens.ids.len();
        for message in &request.messages {
            let is_standing =
                tokens.standing == tokens.ids.len() && message.role().is_instruction();
            tokens.push(&message.api_json(), message_tokens(counter, message));
            tokens.ends.push(tokens.ids.len());
            tokens.blocks.push(content_blocks(message));
            if is_standing {
                tokens.standing = tokens.ids.len();
            }
        }
        tokens.marks.clone_from(&request.cache_marks);
        tokens.choice = choice(&request.tool_choice).to_owned();
        let marked = request.cache_marks.last().and_then(|mark| tokens.ends.get(*mark)).copied();
        tokens.kept = marked.unwrap_or(tokens.ids.len());
        tokens
    }

    /// Puts `tokens` before these that begin every request of a session, such as tools that are not
    /// among its own.
    #[must_use]
    pub fn behind(self, tokens: usize) -> Self {
        let front = (0..tokens).map(|at| u32::try_from(at).unwrap_or(u32::MAX));
        Self {
            ids: front.chain(self.ids.iter().copied()).collect(),
            ends: self.ends.iter().map(|end| end + tokens).collect(),
            kept: self.kept + tokens,
            standing: self.standing + tokens,
            ..self
        }
    }

    fn push(&mut self, text: &str, count: usize) {
        let bytes = text.as_bytes();
        let edge = |at: usize| at * bytes.len() / count.max(1);
        self.ids.extend((0..count).map(|at| {
            let part = bytes.get(edge(at)..edge(at + 1)).unwrap_or_default();
            // The lower half of a good hash is a good hash.
            xxh3_64(part) as u32
        }));
    }
}

/// Returns the choice in one word. A set of tools is not sent; a single tool is sent by name.
fn choice(choice: &ToolChoice) -> &str {
    match choice {
        ToolChoice::Auto => "auto",
        ToolChoice::Required => "any",
        ToolChoice::ReplyOnly => "none",
        ToolChoice::Allowed(AllowedTools { required: false, .. }) => "auto",
        ToolChoice::Allowed(some) => match some.names.as_slice() {
            [one] => one,
            _ => "any",
        },
    }
}

/// Writes a tool as it is declared: its parts byte for byte.
fn declaration(tool: &ToolDefinition) -> String {
    let mut out = String::from("{\"name\":");
    push_string(&tool.name, &mut out);
    out.push_str(",\"description\":");
    push_string(&tool.description, &mut out);
    out.push_str(",\"parameters\":");
    out.push_str(&tool.parameters);
    out.push('}');
    out
}

//! How an answer has to begin.

use super::special::quoted_name;
use super::{CALL_BEGIN, NAME_BEGIN, TURN_BEGIN};
use crate::ToolChoice;
use foldback_core::ToolDefinition;

/// The beginning of an answer, for the model to go on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefill {
    /// The end of the prompt: the beginning of the assistant's turn and, where a call is required,
    /// of the call.
    pub text: String,
    /// A token that must not come: the beginning of a call, where only words may.
    pub banned: Option<&'static str>,
    /// Whether text and banned token hold the model to the choice. Where they do not, as with tools of
    /// two families or a call that is not required, a [`CallGrammar`](crate::CallGrammar) does.
    pub is_exact: bool,
}

/// The beginning of an answer under a choice among these tools.
///
/// ```
/// use foldback_core::ToolDefinition;
/// use foldback_llm::{Mask, ToolChoice, hermes_prefill};
///
/// let tools = ["browser_查询订单", "browser_查询物流", "shell_发起退款"].map(|name| ToolDefinition {
///     name: name.to_owned(),
///     description: String::new(),
///     parameters: "{}".to_owned(),
/// });
/// assert_eq!(hermes_prefill(&ToolChoice::Auto, &tools).text, "<|im_start|>assistant\n");
/// let browser = Mask::required().family("browser_").choice(&tools).unwrap();
/// let prefill = hermes_prefill(&browser, &tools);
/// assert_eq!(prefill.text, "<|im_start|>assistant\n<tool_call>{\"name\": \"browser_");
/// assert!(prefill.is_exact);
/// ```
#[must_use]
pub fn hermes_prefill(choice: &ToolChoice, tools: &[ToolDefinition]) -> Prefill {
    let turn = format!("{TURN_BEGIN}assistant\n");
    let exact = |text, banned| Prefill { text, banned, is_exact: true };
    match choice {
        ToolChoice::Auto => exact(turn, None),
        ToolChoice::ReplyOnly => exact(turn, Some(CALL_BEGIN)),
        ToolChoice::Required => exact(turn + CALL_BEGIN, None),
        ToolChoice::Allowed(some) => {
            let is_allowed = |tool: &ToolDefinition| some.names.contains(&tool.name);
            let are_all = tools.iter().all(is_allowed);
            match (some.names.as_slice(), some.required) {
                ([], false) => exact(turn, Some(CALL_BEGIN)),
                (_, false) => Prefill { text: turn, banned: None, is_exact: are_all },
                (_, true) if are_all => exact(turn + CALL_BEGIN, None),
                (names, true) => {
                    let shared = shared_name(names);
                    let begins =
                        |tool: &ToolDefinition| quoted_name(&tool.name).starts_with(&shared);
                    let is_exact = !tools.iter().any(|tool| begins(tool) && !is_allowed(tool));
                    let text = format!("{turn}{CALL_BEGIN}{NAME_BEGIN}{shared}");
                    Prefill { text, banned: None, is_exact }
                }
            }
        }
    }
}

/// What the names have in common: of one, all of it and its quote; of several, their family, up to
/// its last `_`, because a model goes on better from the end of a word.
fn shared_name(names: &[String]) -> String {
    let mut names = names.iter().map(|name| quoted_name(name));
    let Some(first) = names.next() else { return String::new() };
    let shared = |a: &str, b: &str| {
        let same = a.chars().zip(b.chars()).take_while(|(a, b)| a == b);
        same.map(|(c, _)| c.len_utf8()).sum::<usize>()
    };
    let length = names.map(|name| shared(&first, &name)).min();
    let Some(length) = length else { return first };
    let common = first.get(..length).unwrap_or_default();
    common.rfind('_').map_or(String::new(), |at| common.split_at(at + 1).0.to_owned())
}

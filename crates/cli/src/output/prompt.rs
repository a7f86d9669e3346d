//! A prompt as the model would get it, for a person and for a program.

use super::{Output, json::Exact, message, style, text};
use crate::error::CliError;
use foldback::FoldPolicy;
use foldback_core::{BlockId, Prompt, TodoId, ToolDefinition, thousands};
use serde::Serialize;

/// A prompt with the keys that scripts read.
#[derive(Serialize)]
struct PromptJson<'a> {
    messages: Vec<Exact<String>>,
    tools: Vec<ToolJson<'a>>,
    tokens: usize,
    block: Option<&'a BlockId>,
    loose: usize,
    pinned: usize,
    /// What does not fit into the budget.
    unfit: &'a [String],
    /// When blocks leave the view; absent for a sent request.
    #[serde(skip_serializing_if = "Option::is_none")]
    fold_policy: Option<&'static str>,
}

/// A tool as chat-completions declares it.
#[derive(Serialize)]
pub(crate) struct ToolJson<'a> {
    r#type: &'static str,
    function: FunctionJson<'a>,
}

#[derive(Serialize)]
struct FunctionJson<'a> {
    name: &'a str,
    description: &'a str,
    parameters: Exact<&'a str>,
}

/// Prints a prompt, as JSON or numbered and with its marks; `policy` made it, if known.
pub(crate) fn print(
    out: &Output,
    todo: &TodoId,
    prompt: &Prompt,
    policy: Option<&FoldPolicy>,
) -> Result<(), CliError> {
    if out.is_json() {
        return out.json(&PromptJson {
            messages: prompt.messages.iter().map(|m| Exact(m.api_json())).collect(),
            tools: prompt.tools.iter().map(ToolJson::from).collect(),
            tokens: prompt.tokens,
            block: prompt.block.as_ref(),
            loose: prompt.loose,
            pinned: prompt.pinned,
            unfit: &prompt.unfit,
            fold_policy: policy.map(FoldPolicy::name),
        });
    }
    let block = match &prompt.block {
        Some(block) => format!("block {} whole, ", style::paint(style::NAME, block)),
        None => String::new(),
    };
    out.line(format!(
        "{} · {}, about {}",
        style::paint(style::NAME, todo),
        text::count(prompt.messages.len() as u64, "message"),
        text::count(prompt.tokens as u64, "token"),
    ))?;
    if let Some(policy) = policy {
        out.line(format!(
            "{block}{} open, {} pinned, folded {}",
            thousands(prompt.loose as u64),
            thousands(prompt.pinned as u64),
            policy.name(),
        ))?;
    }
    if !prompt.tools.is_empty() {
        let names: Vec<_> = prompt.tools.iter().map(|tool| text::one_line(&tool.name)).collect();
        let whose = if policy.is_some() { "memory tools" } else { "tools" };
        out.line(style::paint(style::DIM, format!("{whose}: {}", names.join(", "))))?;
    }
    let volatile = prompt.messages.len().saturating_sub(prompt.volatile);
    for (at, shown) in prompt.messages.iter().enumerate() {
        out.line("")?;
        let mark = if at >= volatile { "changes from call to call" } else { "" };
        message::print(out, at as u64 + 1, shown, mark)?;
        if prompt.cache_marks.contains(&at) {
            let line =
                "┄┄┄┄ cache mark: what is above stays the same from call to call, until a fold";
            out.line(style::paint(style::DIM, text::fit(line, out.width())))?;
        }
    }
    for unfit in &prompt.unfit {
        out.note(unfit);
    }
    Ok(())
}

impl<'a> From<&'a ToolDefinition> for ToolJson<'a> {
    fn from(tool: &'a ToolDefinition) -> Self {
        Self {
            r#type: "function",
            function: FunctionJson {
                name: &tool.name,
                description: &tool.description,
                parameters: Exact(&tool.parameters),
            },
        }
    }
}

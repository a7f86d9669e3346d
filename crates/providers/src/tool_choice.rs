//! What a provider is sent about the tools that may be called now.
//!
//! | choice | OpenAI | others with its API (vLLM) | Anthropic |
//! |---|---|---|---|
//! | auto | nothing said | `auto` | nothing said |
//! | required | `required` | `required` | `any` |
//! | reply only | `none` | `none` | `none` |
//! | one tool, required | its name | its name | `tool` and its name |
//! | some tools | `allowed_tools` | `required` or `auto` | `any` or nothing |
//!
//! If tool calls are text, the choice is put [in words](in_words). If a set of tools cannot be
//! sent, [`Capabilities::allowed_tools`](foldback_llm::Capabilities) is false: the code that runs
//! the calls refuses the others.

use foldback_core::ToolDefinition;
use foldback_llm::{AllowedTools, ChatRequest, ModelError, ToolChoice, ToolNames};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A choice, reduced to what providers support. Names are those on the wire.
enum Choice {
    Auto,
    Required,
    None,
    One(String),
    Some { names: Vec<String>, required: bool },
}

/// Returns `tool_choice` for chat-completions; `sets` says whether `allowed_tools` is supported.
pub(crate) fn openai(
    request: &ChatRequest,
    names: &ToolNames,
    sets: bool,
) -> Result<Option<Value>, ModelError> {
    let function = |name: &String| json!({"type": "function", "function": {"name": name}});
    Ok(match choice(request, names)? {
        Choice::Auto => None,
        Choice::Required => Some(json!("required")),
        Choice::None => Some(json!("none")),
        Choice::One(name) => Some(function(&name)),
        Choice::Some { names, required } if sets => Some(json!({
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": if required { "required" } else { "auto" },
                "tools": names.iter().map(function).collect::<Vec<_>>(),
            },
        })),
        Choice::Some { required, .. } => required.then(|| json!("required")),
    })
}

/// Returns `tool_choice` for Anthropic's Messages API.
pub(crate) fn anthropic(
    request: &ChatRequest,
    names: &ToolNames,
) -> Result<Option<Value>, ModelError> {
    Ok(match choice(request, names)? {
        Choice::Auto | Choice::Some { required: false, .. } => None,
        Choice::Required | Choice::Some { required: true, .. } => Some(json!({"type": "any"})),
        Choice::None => Some(json!({"type": "none"})),
        Choice::One(name) => Some(json!({"type": "tool", "name": name})),
    })
}

/// The tools of a request that may be called.
pub(crate) struct Callable<'r> {
    pub(crate) tools: Vec<&'r ToolDefinition>,
    /// Whether one of them must be called.
    pub(crate) required: bool,
}

impl<'r> Callable<'r> {
    /// # Errors
    /// When the choice does not fit the tools.
    pub(crate) fn of(request: &'r ChatRequest) -> Result<Self, ModelError> {
        choice(request, &ToolNames::default())?;
        let all = request.tools.iter();
        Ok(match &request.tool_choice {
            ToolChoice::Auto => Self { tools: all.collect(), required: false },
            ToolChoice::Required => Self { tools: all.collect(), required: true },
            ToolChoice::ReplyOnly => Self { tools: Vec::new(), required: false },
            ToolChoice::Allowed(allowed) => Self {
                tools: all.filter(|tool| allowed.names.contains(&tool.name)).collect(),
                required: allowed.required,
            },
        })
    }
}

/// Returns the choice in words, for a model that gets it in no other way; `None` if anything is allowed.
pub(crate) fn in_words(request: &ChatRequest) -> Option<String> {
    if request.tools.is_empty() {
        return None;
    }
    match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::ReplyOnly => Some("Call no tool in this answer.".to_owned()),
        ToolChoice::Required => Some("Call a tool in this answer.".to_owned()),
        ToolChoice::Allowed(allowed) => {
            let names: Vec<_> = allowed.names.iter().map(|name| format!("`{name}`")).collect();
            let names = names.join(", ");
            let mut words = match (allowed.names.is_empty(), allowed.required) {
                (true, _) => "Call no tool in this answer.".to_owned(),
                (_, true) => format!("In this answer, call one of these tools: {names}."),
                (_, false) => format!("In this answer, call only these tools: {names}."),
            };
            if let Some(preference) = preference(request) {
                words.push(' ');
                words.push_str(&preference);
            }
            Some(words)
        }
    }
}

/// Returns the preferred tool, in words: no provider has a member for it.
pub(crate) fn preference(request: &ChatRequest) -> Option<String> {
    let ToolChoice::Allowed(AllowedTools { preferred: Some(preferred), names, .. }) =
        &request.tool_choice
    else {
        return None;
    };
    let others: Vec<_> =
        names.iter().filter(|name| *name != preferred).map(|name| format!("`{name}`")).collect();
    Some(match others.as_slice() {
        [] => format!("Use `{preferred}`."),
        others => format!(
            "Prefer `{preferred}` where it fits; these may be called as well: {}.",
            others.join(", ")
        ),
    })
}

fn choice(request: &ChatRequest, names: &ToolNames) -> Result<Choice, ModelError> {
    request.check_tool_choice()?;
    // Providers refuse a choice if there are no tools to choose from.
    if request.tools.is_empty() {
        return Ok(Choice::Auto);
    }
    Ok(match &request.tool_choice {
        ToolChoice::Auto => Choice::Auto,
        ToolChoice::Required => Choice::Required,
        ToolChoice::ReplyOnly => Choice::None,
        ToolChoice::Allowed(allowed) => some_tools(request, allowed, names),
    })
}

/// Returns the choice among tools that are all declared.
fn some_tools(request: &ChatRequest, allowed: &AllowedTools, names: &ToolNames) -> Choice {
    let mut seen = BTreeSet::new();
    let some: Vec<&String> = allowed.names.iter().filter(|name| seen.insert(*name)).collect();
    // The names are declared and distinct, so if their number is that of the tools, they are all of them.
    let is_all = some.len() == request.tools.len();
    match (some.as_slice(), allowed.required) {
        ([], _) => Choice::None,
        ([only], true) => Choice::One(names.wire(only)),
        (_, true) if is_all => Choice::Required,
        (_, false) if is_all => Choice::Auto,
        (some, required) => {
            Choice::Some { names: some.iter().map(|name| names.wire(name)).collect(), required }
        }
    }
}

//! The tools of the loop itself: ending the run, and reading the rest of a long result.

use super::ReactSettings;
use crate::trajectory::TerminateStatus;
use foldback_core::{ContextManager, ToolCall, ToolDefinition};
use serde::Deserialize;
use std::collections::BTreeMap;

const TERMINATE: &str = "terminate";
const READ: &str = "observation_read";

/// The tools that the loop gives to the model, according to its settings, and the results of which the model
/// was shown only a part.
#[derive(Debug)]
pub(crate) struct LoopTools {
    pub(crate) definitions: Vec<ToolDefinition>,
    /// The most characters of a result that are shown.
    most: Option<usize>,
    /// Long results by name.
    observations: BTreeMap<String, String>,
}

/// The answer to a call of one of them.
#[derive(Debug)]
pub(crate) struct LoopAnswer {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// Whether, and how, the run ends after this turn.
    pub(crate) terminates: Option<TerminateStatus>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Terminate {
    status: TerminateStatus,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    name: String,
    #[serde(default)]
    from: usize,
}

impl LoopTools {
    /// Creates the tools beside a context's own. They are the same for the whole run.
    pub(crate) fn new(settings: &ReactSettings, context: &dyn ContextManager) -> Self {
        // A policy with tools can bring back what it does not show.
        let most =
            settings.max_observe.filter(|_| context.tools().is_empty()).map(|most| most.max(1));
        let definition = |name: &str, description: &str, parameters: &str| ToolDefinition {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: parameters.to_owned(),
        };
        let mut definitions = Vec::new();
        if most.is_some() {
            definitions.push(definition(
                READ,
                "Continues reading a result that was shown in part.",
                r#"{"type":"object","properties":{"name":{"type":"string"},"from":{"type":"integer","minimum":0,"description":"The character to start from."}},"required":["name"],"additionalProperties":false}"#,
            ));
        }
        if settings.terminate {
            definitions.push(definition(
                TERMINATE,
                "Ends the work: when the request is met, or when you cannot continue.",
                r#"{"type":"object","properties":{"status":{"type":"string","enum":["success","failure"],"description":"How it went."}},"required":["status"],"additionalProperties":false}"#,
            ));
        }
        Self { definitions, most, observations: BTreeMap::new() }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.definitions.iter().any(|tool| tool.name == name)
    }

    /// Runs a call of one of them.
    pub(crate) fn call(&self, call: &ToolCall) -> LoopAnswer {
        let answer = if call.name == TERMINATE { terminate(call) } else { self.read(call) };
        answer.unwrap_or_else(|text| LoopAnswer { text, is_error: true, terminates: None })
    }

    /// Returns a result as the model is shown it: whole if it is not too long, otherwise its beginning and its
    /// end around a mark that says how to read the rest, which is kept under this name.
    pub(crate) fn shown(&mut self, name: &str, text: String) -> String {
        let Some(most) = self.most else { return text };
        let characters = text.chars().count();
        if characters <= most {
            return text;
        }
        let (head, tail) = (most - most / 3, most / 3);
        let beginning = characters_of(&text, 0, head);
        let end = characters_of(&text, characters - tail, tail);
        let left_out = characters - most;
        let shown = format!(
            "{beginning}\n[… {left_out} of {characters} characters left out; all of it: {READ} \
             {{\"name\":\"{name}\",\"from\":{head}}} …]\n{end}"
        );
        self.observations.insert(name.to_owned(), text);
        shown
    }

    fn read(&self, call: &ToolCall) -> Result<LoopAnswer, String> {
        let Read { name, from } = arguments(call)?;
        let text = self.observations.get(&name).ok_or_else(|| {
            let known: Vec<&str> = self.observations.keys().map(String::as_str).collect();
            format!(
                "there is no long result named {name:?} in this run; the long results are: {}",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            )
        })?;
        let (characters, most) = (text.chars().count(), self.most.unwrap_or(usize::MAX));
        if from >= characters {
            return Err(format!(
                "{name} has only {characters} characters; nothing begins at {from}"
            ));
        }
        let mut shown = characters_of(text, from, most).to_owned();
        let to = from.saturating_add(most);
        if to < characters {
            shown.push_str(&format!("\n[… characters {from} to {to} of {characters} …]"));
        }
        Ok(LoopAnswer { text: shown, is_error: false, terminates: None })
    }
}

fn terminate(call: &ToolCall) -> Result<LoopAnswer, String> {
    let Terminate { status } = arguments(call)?;
    let text = format!("The work ends with status: {status}");
    Ok(LoopAnswer { text, is_error: false, terminates: Some(status) })
}

fn arguments<'a, T: Deserialize<'a>>(call: &'a ToolCall) -> Result<T, String> {
    serde_json::from_str(&call.arguments).map_err(|error| {
        format!("Error (arguments): the arguments of {} do not fit: {error}", call.name)
    })
}

/// Returns a stretch of a text, in characters.
fn characters_of(text: &str, from: usize, count: usize) -> &str {
    let at = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |(at, _)| at);
    let rest = &text[at(from)..];
    let end = rest.char_indices().nth(count).map_or(rest.len(), |(at, _)| at);
    &rest[..end]
}

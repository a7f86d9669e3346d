//! The tools of a memory as programs offer them to models: names, descriptions, schemas, and the answers to calls.

use crate::{Error, Memory};
use foldback_core::{Message, TodoId};
use foldback_disclosure::{ANSWER_SCHEMA, Answer, tools};
use serde::Deserialize;

/// A tool of a memory, as every program that offers it to a model declares it: the agent, a server of
/// tools, a binding to another language.
///
/// ```
/// use foldback::core::{Message, TodoId};
/// use foldback::{Memory, MemoryTool, Options};
///
/// let names: Vec<_> = MemoryTool::all().iter().map(|tool| tool.name).collect();
/// assert_eq!(names, ["search_block", "list_blocks", "load", "record"]);
///
/// let memory = Memory::in_memory(Options::default())?;
/// let trip = TodoId::new("trip")?;
/// let noted = memory.call_tool(&trip, "record", r#"{"text": "八号码头 opens at 06:12."}"#)?;
/// assert!(!noted.is_error, "{}", noted.text);
/// let found = memory.call_tool(&trip, "search_block", r#"{"query": "八号码头"}"#)?;
/// assert!(found.text.contains("06:12") && found.references == ["b_trip_001"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryTool {
    /// The name to call it by.
    pub name: &'static str,
    /// The name to show on a screen.
    pub title: &'static str,
    /// Its purpose and when to use it.
    pub description: &'static str,
    /// The JSON schema of its arguments.
    pub parameters: String,
    /// The JSON schema of [its answer](Answer::structured).
    pub output: &'static str,
    /// Whether a call adds to the memory. None takes anything away.
    pub writes: bool,
}

/// The name of the tool that records a message.
const RECORD: &str = "record";

/// Arguments of `record`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    text: String,
}

impl MemoryTool {
    /// Returns the tools in the order in which they are declared: those that read, then `record`.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let reading = tools().map(|tool| Self {
            name: tool.name,
            title: tool.title,
            description: tool.description,
            parameters: tool.definition().parameters,
            output: ANSWER_SCHEMA,
            writes: false,
        });
        let recording = Self {
            name: RECORD,
            title: "Record a note",
            description: "Keeps a text of yours word for word: what was decided, found or left to do. \
                search_block finds it later.",
            parameters: r#"{"type":"object","properties":{"text":{"type":"string","description":"#
                .to_owned()
                + r#""All that is needed to understand it later."}},"required":["text"]}"#,
            output: ANSWER_SCHEMA,
            writes: true,
        };
        reading.into_iter().chain([recording]).collect()
    }
}

impl Memory {
    /// Answers a call of one of [the tools](MemoryTool::all) for a program that sees nothing of the todo. A
    /// mistake of the model is answered, too. A text given to `record` is stored as the model's own words,
    /// since a model wrote it; a missing todo is created.
    ///
    /// # Errors
    /// When there is no such todo, or the store fails.
    pub fn call_tool(&self, todo: &TodoId, tool: &str, arguments: &str) -> Result<Answer, Error> {
        if tool != RECORD {
            return self.recall(todo, tool, arguments);
        }
        let note = match serde_json::from_str::<Note>(arguments) {
            Ok(note) if !note.text.trim().is_empty() => note,
            _ => {
                let how = "Call record with {\"text\": \"We chose port 8443 for staging.\"}.";
                let what =
                    "\"text\" has to be a text that is not blank, and nothing else is accepted.";
                return Ok(Answer::error(RECORD, &format!("{what} {how}")));
            }
        };
        let recorded = self.session(todo)?.record(Message::assistant(&note.text))?;
        let closed: Vec<String> = recorded.closed.iter().map(ToString::to_string).collect();
        let told = match closed.as_slice() {
            [] => String::new(),
            closed => format!("; it closed {}", closed.join(", ")),
        };
        let text = format!("[record: kept as message #{} of {todo}{told}]", recorded.seq);
        let answer = Answer::said(&text).showing(closed);
        self.shared.note_call(Some(todo), tool, arguments, &answer)?;
        Ok(answer)
    }
}

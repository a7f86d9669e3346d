//! The last request of each context of a run, kept for `foldback view --sent`.

use super::folder::{RunFolder, Runs};
use crate::error::CliError;
use crate::output::json::Exact;
use crate::output::prompt::ToolJson;
use foldback_core::{
    Estimate, Message, Prompt, TodoId, TokenCounter as _, ToolDefinition, message_tokens,
};
use foldback_llm::ChatRequest;
use foldback_tool::canonical_tools;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs;
use std::io;
use std::path::PathBuf;

/// A request as it is kept.
#[derive(Serialize)]
struct Kept<'a> {
    messages: Vec<Exact<String>>,
    tools: Vec<ToolJson<'a>>,
}

/// A request as it is read again.
#[derive(Deserialize)]
struct Read {
    messages: Vec<Box<RawValue>>,
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    description: String,
    parameters: Box<RawValue>,
}

/// Keeps a request in place of the one before it. A request without a session is not kept, and a failure to write it
/// does not stop the request.
pub(super) fn keep(folder: &RunFolder, request: &ChatRequest) {
    let todo = request.session.as_deref().and_then(|todo| TodoId::new(todo).ok());
    let Some(path) = todo.map(|todo| folder.sent(&todo)) else { return };
    // In the form that a provider receives: in one order, with schemas in one form.
    let tools = canonical_tools(&request.tools);
    let kept = Kept {
        messages: request.messages.iter().map(|message| Exact(message.api_json())).collect(),
        tools: tools.iter().map(ToolJson::from).collect(),
    };
    let written = serde_json::to_string(&kept).map_err(io::Error::from).and_then(|json| {
        let json = folder.kept(&json);
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder)?;
        let file = tempfile::NamedTempFile::new_in(folder)?;
        fs::write(file.path(), json.as_bytes())?;
        file.persist(&path).map_err(|error| error.error)
    });
    drop(written);
}

/// The last request that the model received in this todo, from the run that it belongs to.
pub(crate) fn last_sent(runs: &Runs, todo: &TodoId) -> Result<Prompt, CliError> {
    let Some(path) = path_of(runs, todo)? else {
        return Err(CliError::NotFound(format!(
            "no request of {todo} is stored: `foldback run` stores the last one of each of its contexts"
        )));
    };
    let bad =
        |what: String| CliError::Usage(format!("{} is not a request: {what}", path.display()));
    let json = fs::read_to_string(&path).map_err(|source| CliError::Io {
        what: format!("{} could not be read", path.display()),
        source,
    })?;
    let read: Read = serde_json::from_str(&json).map_err(|error| bad(error.to_string()))?;
    let messages = read.messages.iter().map(|json| Message::from_json(json.get()));
    let messages = messages.map(|message| message.map(Into::into)).collect::<Result<Vec<_>, _>>();
    let tool = |Tool { function: Function { name, description, parameters } }| ToolDefinition {
        name,
        description,
        parameters: parameters.get().to_owned(),
    };
    let mut prompt = Prompt {
        messages: messages.map_err(|error| bad(error.to_string()))?,
        tools: read.tools.into_iter().map(tool).collect(),
        ..Prompt::default()
    };
    let texts = prompt.tools.iter().flat_map(|t| [&t.name, &t.description, &t.parameters]);
    let said = prompt.messages.iter().map(|message| message_tokens(&Estimate, message));
    prompt.tokens = said.chain(texts.map(|text| Estimate.count(text))).sum();
    Ok(prompt)
}

/// The file of the request: with the last turn of the todo, or of the todo whose name begins its own, as the todos of
/// sub-agents are named.
fn path_of(runs: &Runs, todo: &TodoId) -> Result<Option<PathBuf>, CliError> {
    let mut turns: Vec<_> = runs.list()?.into_iter().flatten().collect();
    turns.reverse();
    let mut name = todo.as_str();
    loop {
        let of = turns.iter().filter(|(_, record)| record.todo().as_str() == name);
        let mut paths = of.map(|(folder, _)| folder.sent(todo)).filter(|path| path.is_file());
        if let Some(path) = paths.next() {
            return Ok(Some(path));
        }
        let Some((parent, _)) = name.rsplit_once('.') else { return Ok(None) };
        name = parent;
    }
}

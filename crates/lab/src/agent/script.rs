//! The task that an agent is given: what it reads, and what it later has to write down.

use super::world::{Field, Service, World};
use serde_json::{Value, json};

/// A turn of the task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Turn {
    /// Calls that do not depend on what was read.
    Look(Vec<Call>),
    /// A fact is written down.
    Write(Need),
    /// The answer, which states these facts.
    Answer(Vec<Need>),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
}

/// A fact that is needed now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// The index of its service in the world.
    pub(crate) service: usize,
    pub(crate) field: Field,
}

/// The number of services that an agent reads about before it writes about the first.
const BEHIND: usize = 3;

/// The request.
pub(crate) const REQUEST: &str = "Go through all services of the project. Of each write down, in a file \
    of its own below reports/, the port that it listens on, the incident that it gave up on, its timeout \
    and the reading of its gauge. At the end tell me all readings.";

/// The system prompt.
pub(crate) const SYSTEM_PROMPT: &str = "You keep the records of a project. Read before you write, and write down \
    only what you have read.";

/// Returns the turns of the task: for each service, four things are read, and written down after three
/// more services were read; at the end all readings are reported.
pub(crate) fn turns(world: &World) -> Vec<Turn> {
    let mut turns = vec![Turn::Look(vec![
        call("file_list", json!({ "path": "services" })),
        call("file_list", json!({ "path": "docs" })),
    ])];
    let count = world.services.len();
    for at in 0..count + BEHIND {
        if let Some(service) = world.services.get(at) {
            turns.push(Turn::Look(vec![
                source(service, Field::Port),
                source(service, Field::Limit),
            ]));
            turns.push(Turn::Look(vec![source(service, Field::Incident)]));
            turns.push(Turn::Look(vec![source(service, Field::Reading)]));
        }
        if let Some(service) = at.checked_sub(BEHIND) {
            turns.extend(Field::ALL.map(|field| Turn::Write(Need { service, field })));
        }
    }
    let reading = |service| Need { service, field: Field::Reading };
    turns.push(Turn::Answer((0..count).map(reading).collect()));
    turns
}

/// Returns the call that reads a fact.
pub(crate) fn source(service: &Service, field: Field) -> Call {
    let name = &service.name;
    match field {
        Field::Port => call("file_read", json!({ "path": format!("services/{name}.toml") })),
        Field::Limit => call("file_read", json!({ "path": format!("docs/{name}.md") })),
        Field::Incident => call("file_read", json!({ "path": format!("logs/{name}.log") })),
        Field::Reading => call("gauge_read", json!({ "service": name })),
    }
}

/// Returns the words to search for a fact; its value is not among them.
pub(crate) fn question(service: &Service, field: Field) -> String {
    let name = &service.name;
    match field {
        Field::Port => format!("{name} listen port settings"),
        Field::Limit => format!("{name} 超时上限"),
        Field::Incident => format!("{name} ERROR gave up on incident"),
        Field::Reading => format!("reading of {name} gauge"),
    }
}

/// Returns the call that writes a fact down.
pub(crate) fn report(service: &Service, field: Field, value: &str) -> Call {
    let path = format!("reports/{}-{}.txt", service.name, field.name());
    call("file_write", json!({ "path": path, "content": format!("{value}\n") }))
}

fn call(tool: &'static str, arguments: Value) -> Call {
    Call { tool, arguments }
}

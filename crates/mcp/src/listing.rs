//! The tools that a server lists.

use crate::connection::Listed;
use crate::names::{checked, tool_name};
use crate::{McpServerConfig, Trust};
use foldback_core::ToolDefinition;
use foldback_planner::{ArgumentsError, Catalog};
use foldback_tool::{Concurrency, Effect, ToolSpec, canonical_schema};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use std::collections::{BTreeMap, BTreeSet};

/// The tools that a server lists, ordered by name: the order in which the server sends them does not
/// matter.
#[derive(Debug)]
pub(crate) struct Listing {
    server: String,
    /// The specification of each tool, by its own name.
    tools: BTreeMap<String, ToolSpec>,
    /// What was left out, and why.
    pub(crate) notes: Vec<String>,
}

/// How many characters of a description are shown.
const LONGEST_DESCRIPTION: usize = 2_000;

/// How many bytes a tool's schemas may have together; larger ones would fill the prompt.
const LARGEST_SCHEMA: usize = 32 << 10;

/// How many bytes the descriptions and schemas of all tools may have together.
const LARGEST_LISTING: usize = 256 << 10;

impl Listing {
    pub(crate) fn of(config: &McpServerConfig, listed: Listed) -> Self {
        let server = &config.name;
        let Listed { tools: mut listed, notes } = listed;
        let mut listing = Self { server: server.clone(), tools: BTreeMap::new(), notes };
        let mut bytes = 0;
        // Of two with one name, the same one is kept in whatever order they came.
        listed.sort_by_cached_key(|tool| {
            (tool.name.clone(), serde_json::to_string(tool).unwrap_or_default())
        });
        // A server that starts its list again lists the very same tool twice.
        listed.dedup();
        for tool in listed {
            let name = tool.name.clone().into_owned();
            let size = |spec: &ToolSpec| {
                let output = spec.output.as_ref().map_or(0, String::len);
                spec.definition.parameters.len() + spec.definition.description.len() + output
            };
            let why = match spec(config, tool) {
                _ if listing.tools.contains_key(&name) => "another tool has that name".to_owned(),
                Err(why) => why,
                Ok(spec) if bytes + size(&spec) > LARGEST_LISTING => {
                    "the tools before it take all the room".to_owned()
                }
                Ok(spec) => {
                    bytes += size(&spec);
                    listing.tools.insert(name, spec);
                    continue;
                }
            };
            listing.notes.push(left_out(server, &name, &why));
        }
        listing
    }

    /// Returns the tools under names that are not taken yet, each with its own name.
    pub(crate) fn named(
        &self,
        taken: &mut BTreeSet<String>,
    ) -> impl Iterator<Item = (ToolSpec, String)> {
        self.tools.iter().filter_map(move |(own_name, spec)| {
            let mut name = tool_name(&self.server, own_name);
            if taken.contains(&name) {
                name = checked(&name, &self.server, own_name);
            }
            // If this is taken too, it is the very same tool.
            taken.insert(name.clone()).then(|| {
                let mut spec = spec.clone();
                spec.definition.name = name;
                (spec, own_name.clone())
            })
        })
    }
}

/// Says that a tool cannot be used, for the person who started its server.
pub(crate) fn left_out(server: &str, tool: &str, why: &str) -> String {
    format!("the tool {:?} of the MCP server {server:?} is left out: {why}", shortened(tool))
}

/// Shortens a name for use in a sentence.
fn shortened(name: &str) -> String {
    name.chars().filter(|letter| is_visible(*letter)).take(LONGEST_SHOWN).collect()
}

/// How many characters of a name are shown.
const LONGEST_SHOWN: usize = 80;

/// Builds the specification of a tool. Its name is set later.
fn spec(config: &McpServerConfig, tool: Tool) -> Result<ToolSpec, String> {
    let parameters = parameters(&tool.input_schema)?;
    let output = tool.output_schema.as_deref().map(schema).transpose()?;
    if parameters.len() + output.as_ref().map_or(0, String::len) > LARGEST_SCHEMA {
        return Err("its schema is too large".to_owned());
    }
    let description = told(config, &tool);
    let mut spec = ToolSpec::new(ToolDefinition { name: String::new(), description, parameters });
    spec.server = Some(config.name.clone());
    spec.output = output;
    (spec.effect, spec.concurrency) = effect(config.trust, tool.annotations.as_ref());
    Ok(spec)
}

/// Returns the schema of a tool's arguments, if every provider accepts it: one that refuses it refuses
/// the whole request, whichever tool that is for.
fn parameters(arguments: &JsonObject) -> Result<String, String> {
    if let Some(word) = COMBINED.iter().find(|word| arguments.contains_key(**word)) {
        return Err(format!("its schema has {word} at its top, which not every provider accepts"));
    }
    let mut arguments = arguments.clone();
    let kind = arguments.entry("type").or_insert_with(|| "object".into());
    if kind != "object" {
        return Err("its arguments are not an object".to_owned());
    }
    let parameters = schema(&arguments)?;
    let definition = ToolDefinition {
        name: String::new(),
        description: String::new(),
        parameters: parameters.clone(),
    };
    let catalog: Catalog = [ToolSpec::new(definition)].into_iter().collect();
    match catalog.check_arguments("", "{}") {
        Err(ArgumentsError::Schema { reason, .. }) => {
            Err(format!("its schema cannot be used: {reason}"))
        }
        // Whether these arguments are valid does not matter.
        _ => Ok(parameters),
    }
}

/// What must not be at the top of a schema of arguments.
const COMBINED: [&str; 6] = ["$ref", "allOf", "anyOf", "enum", "not", "oneOf"];

/// Returns a schema in its canonical form, without invisible characters.
fn schema(schema: &JsonObject) -> Result<String, String> {
    let written = serde_json::to_string(schema).map_err(|_| "its schema is not JSON".to_owned())?;
    let written: String = written.chars().filter(|letter| is_visible(*letter)).collect();
    canonical_schema(&written).map_err(|_| "its schema is nested too deeply".to_owned())
}

/// Returns a description as the model reads it: whose words it is, and of which tool if its name had to
/// be changed; without invisible characters, and not too long.
fn told(config: &McpServerConfig, tool: &Tool) -> String {
    let (server, description) = (&config.name, tool.description.as_deref().unwrap_or_default());
    let is_kept = tool_name(server, &tool.name).ends_with(&format!("_{}", tool.name));
    let name = if is_kept { String::new() } else { format!(" {:?}", shortened(&tool.name)) };
    let mut letters = description.trim().chars().filter(|letter| is_visible(*letter));
    let mut text: String = letters.by_ref().take(LONGEST_DESCRIPTION).collect();
    if letters.next().is_some() {
        text.push('…');
    }
    if text.is_empty() {
        return format!(
            "A tool{name} of the MCP server {server:?}, which does not say what it does."
        );
    }
    format!("The MCP server {server:?} says of its tool{name}: {text}")
}

/// Returns whether a character is visible: invisible ones can hide words from a person who reads a
/// tool.
fn is_visible(letter: char) -> bool {
    let is_hidden = matches!(letter,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}');
    letter == '\n' || !(letter.is_control() || is_hidden)
}

/// Returns what running a tool does to the world, as far as its server is trusted.
fn effect(trust: Trust, hints: Option<&ToolAnnotations>) -> (Effect, Concurrency) {
    let Some(hints) = hints.filter(|_| trust == Trust::Hints) else {
        return (Effect::Effectful, Concurrency::Exclusive);
    };
    if hints.read_only_hint == Some(true) {
        (Effect::ReadOnly, Concurrency::Parallel)
    } else if hints.idempotent_hint == Some(true) && hints.destructive_hint == Some(false) {
        (Effect::Idempotent, Concurrency::Exclusive)
    } else {
        (Effect::Effectful, Concurrency::Exclusive)
    }
}

//! The tools that a server lists.

use crate::connection::Listed;
use crate::names::{checked, tool_name};
use crate::{McpServerConfig, Trust};
use foldback_core::ToolDefinition;
use foldback_planner::{ArgumentsError, Catalog};
use foldback_tool::{Concurrency, Effect, ToolSpec, canonical_schema};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use std::collections::{BTreeMap, BTreeSet};

/// The tools that a server lists, in the order of their names: however it shuffles them, they are told
/// the same way.
#[derive(Debug)]
pub(crate) struct Listing {
    server: String,
    /// What each is, by its own name.
    tools: BTreeMap<String, ToolSpec>,
    /// What was left out, and why.
    pub(crate) notes: Vec<String>,
}

/// How many characters of a description are told.
const LONGEST_DESCRIPTION: usize = 2_000;

/// How many bytes a tool's schemas may have together; a larger one would fill the prompt.
const LARGEST_SCHEMA: usize = 32 << 10;

/// How many bytes the descriptions and schemas of all tools may have together.
const LARGEST_LISTING: usize = 256 << 10;

impl Listing {
    pub(crate) fn of(config: &McpServerConfig, listed: Listed) -> Self {
        let server = &config.name;
        let Listed { tools: mut listed, notes } = listed;
        let mut listing = Self { server: server.clone(), tools: BTreeMap::new(), notes };
        let mut bytes = 0;
        // Of two with one name, the same one is kept whatever their order was.
        listed.sort_by_cached_key(|tool| {
            (tool.name.clone(), serde_json::to_string(tool).unwrap_or_default())
        });
        // The very same one is listed twice by a server that begins its list anew.
        listed.dedup();
        for tool in listed {
            let name = tool.name.clone().into_owned();
            let size = |spec: &ToolSpec| {
                let output = spec.output.as_ref().map_or(0, String::len);
                spec.definition.parameters.len() + spec.definition.description.len() + output
            };
            let why = match spec(config, tool) {
                _ if listing.tools.contains_key(&name) => "another one has that name".to_owned(),
                Err(why) => why,
                Ok(spec) if bytes + size(&spec) > LARGEST_LISTING => {
                    "the tools before it take all the room there is".to_owned()
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

    /// The tools under names that are not taken yet, each with its own name.
    pub(crate) fn named(
        &self,
        taken: &mut BTreeSet<String>,
    ) -> impl Iterator<Item = (ToolSpec, String)> {
        self.tools.iter().filter_map(move |(own_name, spec)| {
            let mut name = tool_name(&self.server, own_name);
            if taken.contains(&name) {
                name = checked(&name, &self.server, own_name);
            }
            // What is taken even so is the very same tool.
            taken.insert(name.clone()).then(|| {
                let mut spec = spec.clone();
                spec.definition.name = name;
                (spec, own_name.clone())
            })
        })
    }
}

/// That a tool cannot be used, for whoever started its server.
pub(crate) fn left_out(server: &str, tool: &str, why: &str) -> String {
    format!("the tool {:?} of the MCP server {server:?} is left out: {why}", shortened(tool))
}

/// A name for a sentence.
fn shortened(name: &str) -> String {
    name.chars().filter(|letter| is_visible(*letter)).take(LONGEST_SHOWN).collect()
}

/// How many characters of a name are told.
const LONGEST_SHOWN: usize = 80;

/// What is known of a tool. Its name is given later.
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

/// The schema of a tool's arguments, if every provider takes it: one that refuses it refuses the whole
/// request that it stands in, whatever tool that is for.
fn parameters(arguments: &JsonObject) -> Result<String, String> {
    if let Some(word) = COMBINED.iter().find(|word| arguments.contains_key(**word)) {
        return Err(format!("its schema has {word} at its top, which not every provider takes"));
    }
    let mut arguments = arguments.clone();
    let kind = arguments.entry("type").or_insert_with(|| "object".into());
    if kind != "object" {
        return Err("its arguments are no object".to_owned());
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
        // Whether these arguments would do is not asked.
        _ => Ok(parameters),
    }
}

/// What must not stand at the top of a schema of arguments.
const COMBINED: [&str; 6] = ["$ref", "allOf", "anyOf", "enum", "not", "oneOf"];

/// A schema in the one form that it is told in, without characters that are not seen.
fn schema(schema: &JsonObject) -> Result<String, String> {
    let written = serde_json::to_string(schema).map_err(|_| "its schema is no JSON".to_owned())?;
    let written: String = written.chars().filter(|letter| is_visible(*letter)).collect();
    canonical_schema(&written).map_err(|_| "its schema is nested too deep".to_owned())
}

/// A description as a model is told it: whose words they are, and of which tool where its name had to be
/// changed; without characters that are not seen, and not too long.
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

/// Whether a person would see a character: words can be hidden from whoever looks at a tool in others.
fn is_visible(letter: char) -> bool {
    let is_hidden = matches!(letter,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        | '\u{e0000}'..='\u{e0fff}');
    letter == '\n' || !(letter.is_control() || is_hidden)
}

/// What running a tool does to the world, as far as its server is believed.
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

//! What a body means to a tool, and how to write it.

use super::body;
use crate::encode::JsonCode;
use crate::json::{self, Member, Node, Value};
use crate::reference::{TextPart, cut};
use crate::template::{Flaw, quote_into, spell};
use crate::{ParseError, Position, Spelling, Template};
use foldback_tool::ToolSpec;
use std::collections::BTreeSet;

const SPELLING: Option<Spelling> = Some(Spelling::ExecuteTools);

/// The argument that receives plain text for an unknown tool; plan validation reports the tool.
const UNKNOWN: &str = "input";

/// Why a body cannot be read as arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// The body is plain text, which the tool does not accept.
    NoPrimary,
    /// The body is an object nested more than [`json::DEPTH_MOST`] levels deep.
    TooDeep,
}

/// Returns the arguments that a body stands for.
pub(super) fn read(
    body: &str,
    tool: Option<&ToolSpec>,
    at: Position,
    flaws: &mut Vec<Flaw>,
) -> Result<Template, Unread> {
    let text = body::text(body);
    if text.is_empty() {
        return Ok(Template::Object(Vec::new()));
    }
    let parameters = tool.map(Parameters::of);
    let primary = primary(tool, parameters.as_ref());
    if let Some(members) = object(&text, at)? {
        let is_known = |member: &Member| {
            parameters.as_ref().is_none_or(|parameters| parameters.may_hold(&member.key))
        };
        if members.is_empty() || primary.is_none() || members.iter().any(is_known) {
            let node = Node { at, value: Value::Object(members) };
            return Ok(Template::of_json(node, SPELLING, flaws));
        }
    }
    if let Some(parameters) = &parameters
        && let Some(members) = children(body, parameters, at, flaws)
    {
        return Ok(Template::Object(members));
    }
    let primary = primary.ok_or(Unread::NoPrimary)?;
    Ok(Template::Object(vec![(primary, Template::of_text(text, at, SPELLING, flaws))]))
}

/// Returns a body that stands for these arguments, if there is one.
pub(super) fn write(arguments: &Template, tool: Option<&ToolSpec>) -> Option<String> {
    let Template::Object(members) = arguments else { return None };
    let parameters = tool.map(Parameters::of);
    let plain = match members.as_slice() {
        [] => Some(String::new()),
        [(key, value)] if primary(tool, parameters.as_ref()).as_ref() == Some(key) => match value {
            Template::Text(text) => Some(text.clone()),
            Template::Whole(reference) => Some(reference.spelled(Spelling::ExecuteTools)),
            Template::Mixed(pieces) => Some(spell(pieces, Spelling::ExecuteTools)),
            _ => None,
        },
        _ => None,
    };
    let mut json = String::new();
    arguments.write(Spelling::ExecuteTools, &mut json);
    plain.into_iter().chain([json]).map(|text| escape(&text)).find(|body| {
        let mut flaws = Vec::new();
        let read = read(body, tool, Position::START, &mut flaws);
        flaws.is_empty() && read.as_ref() == Ok(arguments)
    })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns the argument that receives plain text.
fn primary(tool: Option<&ToolSpec>, parameters: Option<&Parameters>) -> Option<String> {
    match (tool, parameters) {
        (Some(tool), Some(parameters)) => tool.primary.clone().or_else(|| parameters.primary()),
        _ => Some(UNKNOWN.to_owned()),
    }
}

/// The parameters of a tool, according to its schema.
struct Parameters {
    /// The parameters that the schema names at its top level.
    names: BTreeSet<String>,
    /// The parameters that are strings.
    texts: BTreeSet<String>,
    required: Vec<String>,
}

impl Parameters {
    fn of(tool: &ToolSpec) -> Self {
        let schema: serde_json::Value =
            serde_json::from_str(&tool.definition.parameters).unwrap_or_default();
        let properties = schema.get("properties").and_then(serde_json::Value::as_object);
        let is_text =
            |schema: &serde_json::Value| schema.get("type").is_none_or(|kind| kind == "string");
        let required: Vec<String> = schema
            .get("required")
            .and_then(serde_json::Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect();
        let named = properties.into_iter().flatten().map(|(name, _)| name);
        Self {
            names: named.chain(&required).cloned().collect(),
            texts: properties
                .into_iter()
                .flatten()
                .filter(|(_, schema)| is_text(schema))
                .map(|(name, _)| name.clone())
                .collect(),
            required,
        }
    }

    /// Returns whether a name may be a parameter's; any name may if no parameter is known.
    fn may_hold(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.contains(name)
    }

    /// Returns the only parameter, else the only required one.
    fn primary(&self) -> Option<String> {
        match (self.names.len(), self.required.as_slice()) {
            (1, _) => self.names.first().cloned(),
            (_, [only]) => Some(only.clone()),
            _ => None,
        }
    }
}

/// Returns the members of a body that is a JSON object, in which references may be bare.
fn object(text: &str, at: Position) -> Result<Option<Vec<Member>>, Unread> {
    if !text.starts_with('{') {
        return Ok(None);
    }
    match json::read(text).or_else(|_| json::read(&quote_bare_references(text))) {
        Ok(Node { value: Value::Object(mut members), .. }) => {
            members.iter_mut().for_each(|member| member.at = at);
            Ok(Some(members))
        }
        Err(ParseError::TooDeep { .. }) => Err(Unread::TooDeep),
        _ => Ok(None),
    }
}

/// Puts references outside strings into quotes.
fn quote_bare_references(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut code = JsonCode::default();
    for part in cut(text, Spelling::ExecuteTools) {
        match part {
            TextPart::Reference(reference) if !code.is_in_string() => {
                quote_into(&reference.spelled(Spelling::ExecuteTools), &mut out);
            }
            TextPart::Reference(reference) => {
                out.push_str(&reference.spelled(Spelling::ExecuteTools));
            }
            TextPart::Text(text) | TextPart::Malformed { text, .. } => {
                code.pass(text);
                out.push_str(text);
            }
        }
    }
    out
}

/// Returns the arguments of a body that consists of `<name>value</name>`, every name a parameter.
fn children(
    body: &str,
    parameters: &Parameters,
    at: Position,
    flaws: &mut Vec<Flaw>,
) -> Option<Vec<(String, Template)>> {
    let mut members: Vec<(String, Template)> = Vec::new();
    let mut found = Vec::new();
    let mut rest = body.trim();
    while !rest.is_empty() {
        let (name, inside) = rest.strip_prefix('<')?.split_once('>')?;
        let (value, behind) = inside.split_once(&format!("</{name}>"))?;
        if !parameters.names.contains(name) || members.iter().any(|(known, _)| known == name) {
            return None;
        }
        let text = body::text(value);
        let is_json = !parameters.texts.contains(name);
        let value = match json::read(&text) {
            Ok(node) if is_json => Template::of_json(node, SPELLING, &mut found),
            _ => Template::of_text(text, at, SPELLING, &mut found),
        };
        members.push((name.to_owned(), value));
        rest = behind.trim_start();
    }
    flaws.append(&mut found);
    Some(members)
}

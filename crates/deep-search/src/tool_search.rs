//! A search tool as a backend: that of a search engine, or one of a server.

use crate::{Passage, SearchBackend};
use foldback_tool::{CallContext, Effect, Tool, ToolError, ToolOutput};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A [`SearchBackend`] made of a tool that takes a query and answers with results.
///
/// The query goes to its argument `query`, `q`, `question` or `search`, otherwise to its only required one.
/// Results are read from JSON: a list, or one in a member such as `results`; each has an address (`url`,
/// `link`, `uri`, `path`, `id`), a title and a text (`content`, `snippet`, `text`). A plain-text answer is one
/// result, whose address is the tool's name.
pub struct ToolSearch {
    tool: Arc<dyn Tool>,
    argument: String,
}

/// The names of an argument that takes a query.
const QUERIES: [&str; 6] = ["query", "q", "question", "search", "search_query", "text"];

/// The members that hold results.
const RESULTS: [&str; 8] =
    ["results", "items", "hits", "documents", "passages", "organic", "data", "result"];

/// The members of a result that hold its address, its title and its text, the best first.
const ADDRESSES: [&str; 7] = ["url", "link", "href", "uri", "path", "id", "source"];
const TITLES: [&str; 4] = ["title", "name", "heading", "filename"];
const TEXTS: [&str; 8] =
    ["content", "text", "snippet", "body", "description", "summary", "excerpt", "page_content"];

impl ToolSearch {
    /// Creates a search with this tool.
    ///
    /// # Errors
    /// When none of its arguments takes a query; the error is a sentence that says what was expected.
    pub fn new(tool: Arc<dyn Tool>) -> Result<Self, String> {
        let argument = query_argument(&tool.spec().definition.parameters);
        let name = tool.spec().name();
        let argument = argument.ok_or_else(|| {
            format!("the tool {name} has no argument for a query; one named query was expected")
        })?;
        Ok(Self { tool, argument })
    }
}

/// Returns the argument that takes a query, by the schema of the arguments.
fn query_argument(parameters: &str) -> Option<String> {
    let schema: Value = serde_json::from_str(parameters).ok()?;
    let properties = schema.get("properties")?.as_object()?;
    let named = QUERIES.iter().find(|name| properties.contains_key(**name));
    let required = || {
        let required = schema.get("required")?.as_array()?.iter().filter_map(Value::as_str);
        required.into_iter().find(|name| {
            properties.get(*name).and_then(|of| of.get("type")) == Some(&json!("string"))
        })
    };
    named.copied().or_else(required).map(str::to_owned)
}

/// Returns the results in an answer, best first.
fn passages(tool: &str, output: &ToolOutput) -> Vec<Passage> {
    let text = &output.data.text;
    let json = output.data.structured.as_deref().unwrap_or(text);
    let json: Option<Value> = serde_json::from_str(json).ok();
    let Some(found) = json.as_ref().and_then(results) else {
        let is_empty = text.trim().is_empty();
        let told = Passage {
            url: tool.to_owned(),
            title: tool.to_owned(),
            text: text.trim().to_owned(),
            bytes: None,
        };
        return if is_empty { Vec::new() } else { vec![told] };
    };
    let passage = |(at, result): (usize, &Value)| -> Option<Passage> {
        let (url, title, text) = match result {
            Value::String(text) => (None, None, Some(text.clone())),
            Value::Object(members) => {
                (first(members, &ADDRESSES), first(members, &TITLES), first(members, &TEXTS))
            }
            _ => return None,
        };
        let text = text.or_else(|| title.clone())?;
        // Two results without an address are still two sources.
        let url = url.unwrap_or_else(|| format!("{tool}#{}", at + 1));
        Some(Passage { title: title.unwrap_or_else(|| url.clone()), url, text, bytes: None })
    };
    found.iter().enumerate().filter_map(passage).collect()
}

/// Returns the list of results: the answer itself, a member of it, or a member of such a member.
fn results(answer: &Value) -> Option<&Vec<Value>> {
    match answer {
        Value::Array(results) => Some(results),
        Value::Object(members) => {
            let inside = RESULTS.iter().filter_map(|name| members.get(*name));
            inside.into_iter().find_map(|inside| match inside {
                Value::Array(results) => Some(results),
                Value::Object(members) => {
                    RESULTS.iter().find_map(|name| members.get(*name)?.as_array())
                }
                _ => None,
            })
        }
        _ => None,
    }
}

/// Returns the first of these members that has a value: a text, or a number as text.
fn first(members: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| match members.get(*name)? {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

impl SearchBackend for ToolSearch {
    fn search<'a>(
        &'a self,
        query: &'a str,
        k: usize,
    ) -> BoxFuture<'a, Result<Vec<Passage>, ToolError>> {
        async move { self.search_within(query, k, &CallContext::default()).await }.boxed()
    }

    fn search_within<'a>(
        &'a self,
        query: &'a str,
        k: usize,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Vec<Passage>, ToolError>> {
        async move {
            let arguments = json!({ &self.argument: query }).to_string();
            let output = self.tool.call(&arguments, context).await?;
            let mut found = passages(self.tool.spec().name(), &output);
            found.truncate(k);
            Ok(found)
        }
        .boxed()
    }

    fn effect(&self) -> Effect {
        self.tool.spec().effect
    }

    fn timeout(&self) -> Option<Duration> {
        self.tool.timeout("{}")
    }
}

impl fmt::Debug for ToolSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolSearch")
            .field("tool", &self.tool.spec().name())
            .field("argument", &self.argument)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;
    use foldback_tool::Data;

    fn found(text: &str) -> Vec<(String, String, String)> {
        let output = ToolOutput { data: Data { text: text.to_owned(), structured: None } };
        let passages = passages("web_search", &output).into_iter();
        passages.map(|passage| (passage.url, passage.title, passage.text)).collect()
    }

    fn one(url: &str, title: &str, text: &str) -> Vec<(String, String, String)> {
        vec![(url.to_owned(), title.to_owned(), text.to_owned())]
    }

    #[test]
    fn results_are_read_in_whatever_shape_they_come() {
        let result = one("https://a.example", "潮汐", "潮差六米");
        for json in [
            r#"{"results": [{"url": "https://a.example", "title": "潮汐", "content": "潮差六米"}]}"#,
            r#"[{"link": "https://a.example", "name": "潮汐", "snippet": "潮差六米"}]"#,
            r#"{"data": {"items": [{"uri": "https://a.example", "title": "潮汐", "text": "潮差六米"}]}}"#,
        ] {
            assert_eq!(found(json), result, "{json}");
        }
        assert_eq!(found(r#"["潮差六米"]"#), one("web_search#1", "web_search#1", "潮差六米"));
        assert_eq!(found(r#"[{"id": 7, "body": "x"}, 5]"#), one("7", "7", "x"));
        assert_eq!(found("潮差六米\n"), one("web_search", "web_search", "潮差六米"));
        assert_eq!(found(r#"{"results": []}"#), []);
        assert_eq!(found(" "), []);
    }

    #[test]
    fn the_argument_for_a_query_is_found() {
        let of = |properties: &str, required: &str| {
            let text = format!(r#"{{"properties": {properties}, "required": {required}}}"#);
            query_argument(&text)
        };
        let text = r#"{"type": "string"}"#;
        let both = format!(r#"{{"limit": {{"type": "integer"}}, "q": {text}}}"#);
        assert_eq!(of(&both, "[]").as_deref(), Some("q"));
        let other = format!(r#"{{"n": {{"type": "integer"}}, "wanted": {text}}}"#);
        assert_eq!(of(&other, r#"["n", "wanted"]"#).as_deref(), Some("wanted"));
        assert_eq!(of(&other, "[]"), None);
    }
}

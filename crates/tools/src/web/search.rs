//! `web_search`: the results of a search engine with the JSON interface of SearXNG.

use super::{Web, client, failed, said_no};
use crate::{PermissionsError, WebPermissions};
use foldback_core::ToolDefinition;
use foldback_tool::{CallContext, Effect, Tool, ToolError, ToolFuture, ToolOutput, ToolSpec};
use reqwest::Url;
use reqwest::header::ACCEPT;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The most results that are passed on.
const RESULTS: usize = 50;

/// Creates a tool that queries a search engine: `GET <url>/search?q=..&format=json`, as SearXNG answers it. The
/// engine's host need not be among the [hosts](WebPermissions::hosts), since it is named here; whether it may be
/// in a private network is still decided by the permissions.
///
/// # Errors
/// When `url` is not the address of a search engine, or no HTTP client is available.
pub fn web_search(
    url: &str,
    permissions: &WebPermissions,
) -> Result<Arc<dyn Tool>, PermissionsError> {
    let unavailable = |reason: String| PermissionsError::Unavailable { tool: "web_search", reason };
    let wrong = |error: String| unavailable(format!("{url} is not a valid address: {error}"));
    let mut engine = Url::parse(url.trim()).map_err(|error| wrong(error.to_string()))?;
    let Some(host) = engine.host_str().map(str::to_owned) else {
        return Err(wrong("it names no host".to_owned()));
    };
    if !engine.path().trim_end_matches('/').ends_with("/search") {
        let path = format!("{}/search", engine.path().trim_end_matches('/'));
        engine.set_path(&path);
    }
    let client = client(permissions, "web_search")?;
    let mut permissions = permissions.clone();
    permissions.hosts = [host].into();
    let web = Web { spec: spec(), client, permissions };
    web.check(&engine).map_err(|error| unavailable(error.message))?;
    Ok(Arc::new(WebSearch { web, engine }))
}

struct WebSearch {
    web: Web,
    engine: Url,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
}

/// The part of an engine's answer that is passed on.
#[derive(Default, Serialize, Deserialize)]
struct Found {
    #[serde(default)]
    results: Vec<FoundPage>,
}

#[derive(Serialize, Deserialize)]
struct FoundPage {
    url: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    content: String,
}

fn spec() -> ToolSpec {
    ToolSpec::new(ToolDefinition {
        name: "web_search".to_owned(),
        description: "Web pages that answer a query.".to_owned(),
        parameters: r#"{"type":"object","properties":{"query":{"type":"string"}},"required":["query"],"additionalProperties":false}"#
            .to_owned(),
    })
    .with_primary("query")
    .with_effect(Effect::Idempotent)
    .with_answers_data(true)
}

impl Tool for WebSearch {
    fn spec(&self) -> &ToolSpec {
        &self.web.spec
    }

    fn call<'a>(&'a self, arguments: &'a str, _context: &'a CallContext) -> ToolFuture<'a> {
        let time = Duration::from_secs(self.web.permissions.time_s);
        Box::pin(async move {
            let Arguments { query } = serde_json::from_str(arguments).map_err(|error| {
                ToolError::arguments(format!("the arguments do not fit: {error}"))
            })?;
            tokio::time::timeout(time, self.search(&query)).await.unwrap_or_else(|_| {
                let seconds = time.as_secs();
                let engine = &self.engine;
                let message = format!("{engine} did not answer within {seconds} seconds");
                Err(ToolError::transient(message))
            })
        })
    }
}

impl WebSearch {
    async fn search(&self, query: &str) -> Result<ToolOutput, ToolError> {
        let mut url = self.engine.clone();
        url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
        let sent = self.web.client.get(url).header(ACCEPT, "application/json").send().await;
        let mut response = sent.map_err(|error| failed(&self.engine, &error))?;
        let status = response.status();
        let (mut bytes, most) = (Vec::new(), self.web.permissions.output_bytes);
        while let Some(chunk) =
            response.chunk().await.map_err(|error| failed(&self.engine, &error))?
        {
            if bytes.len() + chunk.len() > most {
                let message = format!("{} answered with more than {most} bytes", self.engine);
                return Err(ToolError::permanent(message));
            }
            bytes.extend_from_slice(&chunk);
        }
        if !status.is_success() {
            let mut error = said_no(&self.engine, status, &String::from_utf8_lossy(&bytes));
            if status.as_u16() == 403 {
                error.message.push_str(
                    "; SearXNG answers JSON only where json is among search.formats in its settings.yml",
                );
            }
            return Err(error);
        }
        let found: Found = serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("{} does not answer like SearXNG: {error}", self.engine);
            ToolError::permanent(message)
        })?;
        let results = found.results.into_iter().take(RESULTS).collect();
        let json = serde_json::to_string(&Found { results });
        Ok(ToolOutput::json(json.map_err(|error| ToolError::permanent(error.to_string()))?))
    }
}

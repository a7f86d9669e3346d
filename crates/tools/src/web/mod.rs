//! `web_fetch`: the text of a page.

mod addresses;
mod page;
mod search;

pub use search::web_search;

use crate::{Permissions, PermissionsError, WebPermissions};
use addresses::{Resolver, is_public};
use foldback_core::{ToolDefinition, first_chars};
use foldback_tool::{CallContext, Effect, Tool, ToolError, ToolFuture, ToolOutput, ToolSpec};
use page::Page;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;
use std::error::Error;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most redirections that are followed.
const REDIRECTS: usize = 5;

/// The most characters that are shown of an answer that reports an error.
const EXCERPT: usize = 500;

/// Returns the tool, if pages may be fetched from any host.
///
/// # Errors
/// When no HTTP client is available.
pub(crate) fn tool(permissions: &Permissions) -> Result<Option<Arc<dyn Tool>>, PermissionsError> {
    let web = &permissions.web;
    if web.hosts.is_empty() {
        return Ok(None);
    }
    let client = client(web, "web_fetch")?;
    Ok(Some(Arc::new(Web { spec: spec(web), client, permissions: web.clone() })))
}

/// Creates the HTTP client of a tool; it resolves no private address, unless that is permitted.
fn client(permissions: &WebPermissions, tool: &'static str) -> Result<Client, PermissionsError> {
    // The process has one cryptography provider; one that is already installed will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder()
        .user_agent(concat!("foldback/", env!("CARGO_PKG_VERSION")))
        .dns_resolver(Resolver { private: permissions.private_addresses })
        // Each address is checked, so redirections are followed here; a proxy would resolve names itself.
        .redirect(Policy::none())
        .no_proxy()
        .build();
    client.map_err(|error| PermissionsError::Unavailable {
        tool,
        reason: format!("there is no HTTP client: {error}"),
    })
}

struct Web {
    spec: ToolSpec,
    client: Client,
    permissions: WebPermissions,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    url: String,
}

fn spec(permissions: &WebPermissions) -> ToolSpec {
    let hosts: Vec<_> = permissions.hosts.iter().map(String::as_str).collect();
    let hosts = if hosts.contains(&"*") { "any host".to_owned() } else { hosts.join(", ") };
    ToolSpec::new(ToolDefinition {
        name: "web_fetch".to_owned(),
        description: format!(
            "The text of a web page, from {hosts}. For HTML, it is what a person would read, with its \
             links numbered and listed at the end."
        ),
        parameters: r#"{"type":"object","properties":{"url":{"type":"string","description":"It begins with https:// or http://."}},"required":["url"],"additionalProperties":false}"#
            .to_owned(),
    })
    .with_primary("url")
    // Others see what is requested: it may be requested again, but not without need.
    .with_effect(Effect::Idempotent)
    .with_answers_data(true)
}

impl Tool for Web {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self, _arguments: &str) -> Option<Duration> {
        // A call ends by itself before this.
        Some(Duration::from_secs(self.permissions.time_s) + Duration::from_secs(5))
    }

    fn call<'a>(&'a self, arguments: &'a str, context: &'a CallContext) -> ToolFuture<'a> {
        let time = Duration::from_secs(self.permissions.time_s);
        Box::pin(async move {
            let Arguments { url } = serde_json::from_str(arguments).map_err(|error| {
                ToolError::arguments(format!("the arguments do not fit: {error}"))
            })?;
            tokio::select! {
                fetched = tokio::time::timeout(time, self.fetch(&url)) => {
                    fetched.unwrap_or_else(|_| Err(ToolError::transient(format!(
                        "{url} did not answer within {} seconds",
                        time.as_secs()
                    ))))
                }
                () = context.cancelled.cancelled() => {
                    Err(ToolError::permanent("the call was cancelled"))
                }
            }
        })
    }
}

impl Web {
    async fn fetch(&self, asked: &str) -> Result<ToolOutput, ToolError> {
        let mut url = Url::parse(asked.trim()).map_err(|error| {
            ToolError::arguments(format!("{asked} is not a valid URL: {error}"))
        })?;
        for _ in 0..=REDIRECTS {
            self.check(&url)?;
            let accept = "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1";
            let sent = self.client.get(url.clone()).header(ACCEPT, accept).send().await;
            let response = sent.map_err(|error| failed(&url, &error))?;
            match next(&url, &response)? {
                Some(next) => url = next,
                None => return self.read(&url, response).await,
            }
        }
        Err(ToolError::permanent(format!(
            "{asked} was redirected more than {REDIRECTS} times; the last URL was {url}"
        )))
    }

    /// Checks that this URL may be requested.
    fn check(&self, url: &Url) -> Result<(), ToolError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ToolError::arguments(format!(
                "{url} begins with {}:; http: or https: was expected",
                url.scheme()
            )));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(ToolError::arguments("a URL with a user name or password is not fetched"));
        }
        let host = url.host_str().unwrap_or_default();
        self.permissions.permits(host)?;
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        if address.is_ok_and(|at| !self.permissions.private_addresses && !is_public(at)) {
            return Err(ToolError::permanent(format!(
                "{host} is not an address on the public internet"
            )));
        }
        Ok(())
    }

    async fn read(&self, url: &Url, mut response: Response) -> Result<ToolOutput, ToolError> {
        let status = response.status();
        let media_type = response.headers().get(CONTENT_TYPE);
        let media_type = media_type.and_then(|value| value.to_str().ok()).map(str::to_owned);
        if status.is_success() {
            page::check(media_type.as_deref())?;
        }
        let most = self.permissions.output_bytes;
        let mut bytes = Vec::new();
        let mut is_cut = false;
        while let Some(chunk) = response.chunk().await.map_err(|error| failed(url, &error))? {
            let room = most - bytes.len();
            bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                is_cut = true;
                break;
            }
        }
        let page = Page { media_type, bytes, is_cut };
        let end = Instant::now() + Duration::from_secs(self.permissions.time_s);
        let text = tokio::task::spawn_blocking(move || page.text(end)).await;
        let text = text.unwrap_or_else(|_| Err(ToolError::permanent("the page cannot be read")));
        if !status.is_success() {
            return Err(said_no(url, status, &text.unwrap_or_default()));
        }
        let mut text = format!("{url}\n\n{}", text?);
        if is_cut {
            text.push_str(&format!(
                "\n[the page is longer; only its first {most} bytes were read]"
            ));
        }
        Ok(ToolOutput::text(text))
    }
}

/// Returns the URL that the server redirects to, if it does.
fn next(url: &Url, response: &Response) -> Result<Option<Url>, ToolError> {
    let status = response.status();
    let location = response.headers().get(LOCATION).filter(|_| status.is_redirection());
    let Some(location) = location else { return Ok(None) };
    let wrong = || ToolError::permanent(format!("{url} redirects to something that is not a URL"));
    let location = location.to_str().map_err(|_| wrong())?;
    url.join(location).map(Some).map_err(|_| wrong())
}

fn said_no(url: &Url, status: StatusCode, text: &str) -> ToolError {
    let message = format!("{url} answered {status}: {}", first_chars(text.trim(), EXCERPT));
    let passes = status.is_server_error()
        || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
    if passes { ToolError::transient(message) } else { ToolError::permanent(message) }
}

/// Returns the error for a server that could not be reached, with its root cause.
fn failed(url: &Url, error: &reqwest::Error) -> ToolError {
    let mut cause: &dyn Error = error;
    let mut is_refused = false;
    while let Some(deeper) = cause.source() {
        cause = deeper;
        is_refused |= cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied);
    }
    let message = format!("{url} cannot be fetched: {cause}");
    if is_refused { ToolError::permanent(message) } else { ToolError::transient(message) }
}

//! Whether a gateway works, and whether clients find it.

use crate::gateway::{HEALTH, READY};
use crate::guard::TOKEN;
use reqwest::{Client, Url};
use serde::Serialize;
use serde_json::Value;
use std::net::IpAddr;
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long an answer may take if another gateway can be asked instead.
const READY_PATIENCE: Duration = Duration::from_secs(2);

/// The variables by which clients find a provider, or a gateway in its place.
const BASE_URLS: [&str; 3] = ["ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE"];

/// The variables that name a proxy for the addresses that a gateway has.
const PROXIES: [&str; 4] = ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"];

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// The name of the check, in a word.
    pub name: &'static str,
    /// Whether all is well.
    pub ok: bool,
    /// What was found, and if it is wrong, what to do: a sentence without its full stop.
    pub what: String,
}

impl Check {
    pub(crate) fn new(name: &'static str, found: Result<String, String>) -> Self {
        let ok = found.is_ok();
        Self { name, ok, what: found.unwrap_or_else(|why| why) }
    }

    /// Checks a gateway that runs elsewhere: whether it answers, records, can write to its store, and which
    /// providers it passes requests on to.
    pub async fn of_gateway(url: &str, token: Option<&str>) -> Vec<Self> {
        let health = match health(url, token).await {
            Ok(health) => health,
            Err(why) => return vec![Self::new("health", Err(why))],
        };
        let text = |key: &str| health.get(key).and_then(Value::as_str).unwrap_or_default();
        let is = |key: &str| health.get(key).and_then(Value::as_bool);
        let trouble = match text("trouble") {
            "" => "it was started with --no-record, or without a store".to_owned(),
            trouble => trouble.to_owned(),
        };
        let recording = match is("recording") {
            Some(true) => Ok("conversations are recorded".to_owned()),
            _ => Err(format!("conversations are not recorded: {trouble}")),
        };
        let store = match is("writable") {
            Some(true) => Ok("the store accepts writes".to_owned()),
            _ => Err(format!("the store accepts no writes: {trouble}")),
        };
        let own = Running::bare(url);
        let behind = |name: &'static str| match text(name) {
            provider if Running::bare(provider) == own => {
                Err(format!("it passes requests on to itself; name the provider with --{name}-url"))
            }
            provider => Ok(format!("requests are passed on to {provider}")),
        };
        vec![
            Self::new("health", Ok(format!("foldback {} answers at {own}", text("version")))),
            Self::new("recording", recording),
            Self::new("store", store),
            Self::new("anthropic", behind("anthropic")),
            Self::new("openai", behind("openai")),
        ]
    }

    /// Checks what clients get from the environment: addresses without a server, and proxies on the way to this
    /// machine. `variable` reads it.
    pub async fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Vec<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let (mut checks, mut is_near) = (Vec::new(), false);
        for name in BASE_URLS {
            let Some(url) = set(name) else { continue };
            let found = match host(&url) {
                None => Err(format!("{name} is {url}, which is not an address; unset it")),
                Some(host) if !is_loopback(&host) => {
                    Ok(format!("{name} is {url}, another machine"))
                }
                Some(_) => {
                    is_near = true;
                    answers(name, &url).await
                }
            };
            checks.push(Self::new("environment", found));
        }
        if checks.is_empty() {
            let none =
                "no base URL is set: clients call their providers, unless `wrap` starts them";
            checks.push(Self::new("environment", Ok(none.to_owned())));
        }
        let proxy = PROXIES.into_iter().find(|name| set(name).is_some());
        let spared = ["no_proxy", "NO_PROXY"].into_iter().find_map(set).unwrap_or_default();
        let spares = |host: &str| ["*", "127.0.0.1", "127.0.0.0/8"].contains(&host.trim());
        let found = match proxy.filter(|_| !spared.split(',').any(spares)) {
            None => Ok("requests to this machine do not go through a proxy".to_owned()),
            Some(proxy) if is_near => Err(format!(
                "{proxy} is between clients and a gateway on this machine; set NO_PROXY=127.0.0.1"
            )),
            Some(proxy) => Ok(format!(
                "{proxy} is set; `wrap` bypasses it, and other clients need NO_PROXY=127.0.0.1"
            )),
        };
        checks.push(Self::new("proxy", found));
        checks
    }
}

/// A gateway that runs elsewhere, as it describes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Running {
    /// Its address, without a version.
    pub url: String,
    /// The name of the store that it records into, if it does.
    pub store: Option<String>,
}

impl Running {
    /// Returns the address of a gateway without what clients add to it: a slash at its end, or `/v1`.
    #[must_use]
    pub fn bare(url: &str) -> &str {
        let url = url.trim_end_matches('/');
        url.strip_suffix("/v1").unwrap_or(url)
    }

    /// Returns whether a gateway at an address takes requests: it answers within two seconds that it has opened its store.
    pub async fn is_ready(url: &str) -> bool {
        let Ok(client) = client() else { return false };
        let asked = client
            .get(format!("{}{READY}", Running::bare(url)))
            .timeout(READY_PATIENCE)
            .send()
            .await;
        asked.is_ok_and(|answer| answer.status().is_success())
    }

    /// Finds the gateway at an address.
    ///
    /// # Errors
    /// When no gateway answers there, or it requires another token: a sentence without its full stop.
    pub async fn at(url: &str, token: Option<&str>) -> Result<Self, String> {
        let health = health(url, token).await?;
        let store = health.get("store").and_then(Value::as_str).map(str::to_owned);
        let is_recording = health.get("recording").and_then(Value::as_bool) == Some(true);
        Ok(Self { url: Running::bare(url).to_owned(), store: store.filter(|_| is_recording) })
    }
}

/// Returns what a gateway reports of itself.
async fn health(url: &str, token: Option<&str>) -> Result<Value, String> {
    let base = Running::bare(url);
    let request = client()?.get(format!("{base}{HEALTH}?write"));
    let request = match token {
        Some(token) => request.header(TOKEN, token),
        None => request,
    };
    let answer = request.send().await.map_err(|_| {
        format!(
            "nothing answers at {base}; `foldback gateway` starts a gateway at its default address"
        )
    })?;
    let status = answer.status();
    if status == reqwest::StatusCode::FORBIDDEN {
        return Err(format!(
            "{base} requires a token, or a different one; set FOLDBACK_GATEWAY_TOKEN to the gateway's"
        ));
    }
    let health = answer.text().await.unwrap_or_default();
    let health: Value = serde_json::from_str(&health).unwrap_or_default();
    match health.get("gateway").and_then(Value::as_str) {
        Some("foldback") => Ok(health),
        _ => Err(format!("the server at {base} is not a foldback gateway (status {status})")),
    }
}

/// Checks whether a server answers at an address of this machine that clients use.
async fn answers(name: &str, url: &str) -> Result<String, String> {
    // Any answer shows that a server is there: a model server has other pages, and a gateway passes on none of its
    // own.
    match client()?.get(format!("{}{HEALTH}", Running::bare(url))).send().await {
        Ok(_) => Ok(format!("{name} is {url}, which answers")),
        Err(_) => Err(format!(
            "{name} is {url}, where nothing answers: the gateway there has ended; unset {name}, or start it again"
        )),
    }
}

/// Creates a client that uses no proxy.
pub(crate) fn client() -> Result<Client, String> {
    // One cryptography provider for the process; if another is already installed, it is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = Client::builder().no_proxy().timeout(PATIENCE).build();
    client.map_err(|error| error.to_string())
}

fn host(url: &str) -> Option<String> {
    Url::parse(url).ok()?.host_str().map(str::to_owned)
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

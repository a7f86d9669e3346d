//! The configuration of servers.

use crate::McpError;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A server, and how it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServerConfig {
    /// The prefix of its tools' names.
    pub name: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// Whether its hints are trusted.
    pub trust: Trust,
    /// How long a call may take.
    pub timeout: Duration,
    /// How long it may take to start and to list its tools.
    pub start_timeout: Duration,
    /// How often it is started again after it has ended. It is started when the next call is made.
    pub restarts: u32,
}

/// How to reach a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A program that is started; it speaks over its standard input and output.
    Program {
        /// Its name or path.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment, in addition to the few variables that every program needs: `PATH`, `HOME`
        /// and such.
        env: BTreeMap<String, String>,
        /// The folder it runs in; by default that of the process that starts it.
        cwd: Option<PathBuf>,
    },
    /// An address that speaks streamable HTTP.
    Url {
        /// The address.
        url: String,
        /// Headers for each request.
        headers: BTreeMap<String, String>,
    },
}

/// Whether a server's hints about its tools are trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// No: each of its tools counts as having an effect on the world each time.
    #[default]
    None,
    /// Yes: what it calls read-only or idempotent may run early, in parallel and again.
    Hints,
}

/// The servers in the form that other clients use. Their own additions are ignored.
#[derive(Deserialize)]
struct Written {
    #[serde(rename = "mcpServers", deserialize_with = "each")]
    servers: Vec<(String, Value)>,
}

/// Returns all entries of an object, duplicates included.
fn each<'de, D: Deserializer<'de>>(written: D) -> Result<Vec<(String, Value)>, D::Error> {
    struct Each;
    impl<'de> Visitor<'de> for Each {
        type Value = Vec<(String, Value)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object of servers by name")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(entry) = map.next_entry()? {
                found.push(entry);
            }
            Ok(found)
        }
    }
    written.deserialize_map(Each)
}

#[derive(Deserialize)]
struct WrittenServer {
    #[serde(rename = "type")]
    kind: Option<String>,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    disabled: bool,
    /// Our own: whether its hints are trusted.
    #[serde(default)]
    trust: bool,
    /// Our own: how long a call may take, in seconds.
    timeout_s: Option<u64>,
    /// Our own: how long it may take to start and to list its tools, in seconds.
    start_timeout_s: Option<u64>,
}

impl McpServerConfig {
    /// Creates a server that is a program.
    pub fn program(
        name: impl Into<String>,
        command: impl Into<String>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        let (command, env) = (command.into(), BTreeMap::new());
        Self::at(name, Endpoint::Program { command, args, env, cwd: None })
    }

    /// Creates a server at an address.
    pub fn url(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::at(name, Endpoint::Url { url: url.into(), headers: BTreeMap::new() })
    }

    /// Creates a server with the default limits: a minute for a call, half a minute to start, three
    /// restarts.
    pub fn at(name: impl Into<String>, endpoint: Endpoint) -> Self {
        Self {
            name: name.into(),
            endpoint,
            trust: Trust::default(),
            timeout: Duration::from_secs(60),
            start_timeout: Duration::from_secs(30),
            restarts: 3,
        }
    }

    /// Reads the servers of a configuration in the form that other clients use, JSON with
    /// `mcpServers`, in the order of their names. Those that are `disabled` are left out. `trust` (a
    /// boolean), `timeout_s` and `start_timeout_s` of a server are our own.
    ///
    /// # Errors
    /// When it does not have that form; names the server.
    pub fn read(json: &str) -> Result<Vec<Self>, McpError> {
        let written: Written = serde_json::from_str(json).map_err(|error| {
            McpError::Config(format!(
                "this is not a configuration of MCP servers: {error}; {{\"mcpServers\": {{\"name\": \
                 {{\"command\": .., \"args\": [..]}}}}}} was expected"
            ))
        })?;
        let mut servers = BTreeMap::new();
        for (name, server) in written.servers {
            let server: WrittenServer = serde_json::from_value(server).map_err(|error| {
                McpError::Config(format!("the MCP server {name:?} cannot be read: {error}"))
            })?;
            if servers.contains_key(&name) {
                return Err(McpError::Config(format!(
                    "the MCP server {name:?} is configured twice; one entry for each name was expected"
                )));
            }
            servers.insert(name, server);
        }
        let used = servers.into_iter().filter(|(_, server)| !server.disabled);
        used.map(|(name, server)| server.config(name)).collect()
    }
}

impl WrittenServer {
    fn config(self, name: String) -> Result<McpServerConfig, McpError> {
        let wrong = |what: &str| {
            Err(McpError::Config(format!("the MCP server {name:?} {what} was expected")))
        };
        if name.trim().is_empty() {
            return wrong("has an empty name; one that its tools can be named after");
        }
        if let Some(kind) = self.kind.as_deref()
            && !["stdio", "http", "streamable-http", "streamableHttp"].contains(&kind)
        {
            return wrong(&format!("is of the type {kind:?}; \"stdio\" or \"http\""));
        }
        for (key, time) in
            [("timeout_s", self.timeout_s), ("start_timeout_s", self.start_timeout_s)]
        {
            if time == Some(0) {
                return wrong(&format!("has a {key} of 0; at least 1"));
            }
        }
        if let Some((place, value)) = self.variable() {
            return wrong(&format!(
                "has {value:?} in its {place}, and variables are not expanded; the value itself"
            ));
        }
        match (self.kind.as_deref(), &self.command, &self.url) {
            (Some("stdio"), None, Some(_)) => {
                return wrong("is of the type \"stdio\" and has a url; a command");
            }
            (Some(kind), Some(_), None) if kind != "stdio" => {
                return wrong(&format!("is of the type {kind:?} and has a command; a url"));
            }
            _ => {}
        }
        if let Some(command) = &self.command {
            if command.trim().is_empty() {
                return wrong("has an empty command; the name or path of a program");
            }
            // A path may contain spaces; the name of a program does not.
            let first = command.split_whitespace().next().unwrap_or_default();
            if first.len() < command.trim().len() && !first.contains(['/', '\\']) {
                return wrong(&format!(
                    "has the command {command:?}; the program alone, and the rest in args,"
                ));
            }
        }
        let endpoint = match (self.command, self.url) {
            (Some(command), None) => {
                Endpoint::Program { command, args: self.args, env: self.env, cwd: self.cwd }
            }
            (None, Some(url)) => Endpoint::Url { url, headers: self.headers },
            (None, None) => return wrong("has neither a command nor a url; one of them"),
            (Some(_), Some(_)) => return wrong("has a command and a url; one of them"),
        };
        let mut config = McpServerConfig::at(name, endpoint);
        config.trust = if self.trust { Trust::Hints } else { Trust::None };
        config.timeout = self.timeout_s.map_or(config.timeout, Duration::from_secs);
        config.start_timeout =
            self.start_timeout_s.map_or(config.start_timeout, Duration::from_secs);
        Ok(config)
    }

    /// Returns a value that contains a variable which other clients expand, and its place. An
    /// argument of several words may be a script, which has variables of its own.
    fn variable(&self) -> Option<(&'static str, &str)> {
        let words = self.args.iter().filter(|arg| !arg.contains(char::is_whitespace));
        let places = self.env.values().map(|value| ("env", value));
        let places = places.chain(words.map(|value| ("args", value)));
        let places = places.chain(self.headers.values().map(|value| ("headers", value)));
        let places = places.chain(self.command.iter().map(|value| ("command", value)));
        let mut places = places.chain(self.url.iter().map(|value| ("url", value)));
        places.find(|(_, value)| value.contains("${")).map(|(place, value)| (place, value.as_str()))
    }
}

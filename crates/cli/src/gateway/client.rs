//! The known clients, and how each is pointed at a gateway.

use super::recall::SERVER;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::path::Path;

/// A program that is pointed at a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Reads the usual variables, and MCP servers from an argument.
    ClaudeCode,
    /// Reads the address from an argument.
    Codex,
    /// Reads the address from a variable that holds settings.
    OpenCode,
    /// Reads the usual variables: aider, and anything built on the providers' own libraries.
    Other,
}

/// Settings of OpenCode, as JSON.
const OPENCODE: &str = "OPENCODE_CONFIG_CONTENT";

/// Headers that Claude Code sends with each request, one per line.
const CLAUDE_HEADERS: &str = "ANTHROPIC_CUSTOM_HEADERS";

/// The addresses and headers that a program needs to use a gateway.
pub(crate) struct Pointer<'a> {
    /// The gateway's address.
    pub(crate) url: &'a str,
    /// The address of the server with the memory's tools, if the program is given one.
    pub(crate) recall: Option<&'a str>,
    /// The headers to send with each request.
    pub(crate) headers: &'a [(&'static str, String)],
}

/// The arguments and variables to start a program with.
pub(crate) struct Launch {
    /// Arguments that go before its own.
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(&'static str, String)>,
}

impl Client {
    /// The client that a program is.
    pub(crate) fn of(program: &Path) -> Self {
        match program.file_stem().and_then(|name| name.to_str()) {
            Some("claude") => Self::ClaudeCode,
            Some("codex") => Self::Codex,
            Some("opencode") => Self::OpenCode,
            _ => Self::Other,
        }
    }

    /// Whether its models are shown the tools of an MCP server. The newest versions of Codex call them from programs
    /// that they write, so that no request shows whether they are there.
    pub(crate) fn has_tools(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::OpenCode)
    }

    /// Builds the launch of the program so that it uses the gateway. `variable` reads the environment.
    pub(crate) fn launch(
        self,
        pointer: &Pointer<'_>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Launch, String> {
        let Pointer { url, recall, headers } = *pointer;
        if let (Some((name, _)), Self::Codex | Self::Other) = (headers.first(), self) {
            return Err(format!(
                "{name} would have to be sent with each request, but this program is not known to send custom headers; \
                 use Claude Code or OpenCode, or leave out --gateway: a gateway of its own needs none"
            ));
        }
        let with_version = format!("{url}/v1");
        let mut launch = Launch {
            arguments: Vec::new(),
            environment: vec![
                ("ANTHROPIC_BASE_URL", url.to_owned()),
                ("OPENAI_BASE_URL", with_version.clone()),
                ("OPENAI_API_BASE", with_version.clone()),
            ],
        };
        // Requests to this machine bypass proxies.
        for name in ["NO_PROXY", "no_proxy"] {
            let own = variable(name).filter(|hosts| !hosts.is_empty());
            let hosts = own.into_iter().chain(["127.0.0.1".to_owned()]);
            launch.environment.push((name, hosts.collect::<Vec<_>>().join(",")));
        }
        match self {
            Self::ClaudeCode => {
                if !headers.is_empty() {
                    let own = variable(CLAUDE_HEADERS).filter(|own| !own.trim().is_empty());
                    let ours = headers.iter().map(|(name, value)| format!("{name}: {value}"));
                    let all: Vec<_> = own.into_iter().chain(ours).collect();
                    launch.environment.push((CLAUDE_HEADERS, all.join("\n")));
                }
                if let Some(recall) = recall {
                    launch.arguments.extend(claude_code());
                    launch.environment.push((RECALL, recall.to_owned()));
                }
            }
            Self::Codex => {
                launch.arguments =
                    vec!["-c".into(), format!("openai_base_url={}", json!(with_version)).into()];
            }
            Self::OpenCode => {
                let own = variable(OPENCODE);
                let pointer = Pointer { url: &with_version, ..*pointer };
                let settings = opencode(own.as_deref(), &pointer)?;
                launch.environment.push((OPENCODE, settings));
                // It expects the version in either address.
                launch.environment.push(("ANTHROPIC_BASE_URL", with_version));
            }
            Self::Other => {}
        }
        Ok(launch)
    }
}

/// The variable from which Claude Code reads the address of the MCP server: other users of this machine see a program's
/// arguments.
const RECALL: &str = "FOLDBACK_RECALL_URL";

/// The MCP server for Claude Code. Its tools only read, so it need not ask for permission each time.
fn claude_code() -> [OsString; 2] {
    let url = format!("${{{RECALL}}}");
    let server = json!({ "type": "http", "url": url, "alwaysLoad": true });
    let servers = json!({ "mcpServers": { SERVER: server } });
    let tools =
        ["search_block", "list_blocks", "load"].map(|tool| format!("mcp__{SERVER}__{tool}"));
    [format!("--mcp-config={servers}").into(), format!("--allowedTools={}", tools.join(",")).into()]
}

/// OpenCode's settings with the address for both providers. Everything else that the user has set stays; an address of
/// the user's would be lost, and a key sent elsewhere, so it is refused.
fn opencode(own: Option<&str>, pointer: &Pointer<'_>) -> Result<String, String> {
    let Pointer { url, recall, headers } = *pointer;
    let own = own.filter(|text| !text.trim().is_empty()).unwrap_or("{}");
    let mut settings: Value = serde_json::from_str(own)
        .map_err(|error| format!("{OPENCODE} is not valid JSON: {error}"))?;
    for provider in ["anthropic", "openai"] {
        let options = object_at(&mut settings, &["provider", provider, "options"])?;
        let address = options.insert("baseURL".to_owned(), json!(url));
        if address.is_some_and(|own| own != *url) {
            return Err(format!(
                "{OPENCODE} names an address for {provider}; name it with \
                 --anthropic-url or --openai-url, and requests are passed on to it"
            ));
        }
        if !headers.is_empty() {
            let own = object_at(&mut settings, &["provider", provider, "options", "headers"])?;
            own.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))));
        }
    }
    if let Some(recall) = recall {
        let server = json!({ "type": "remote", "url": recall, "enabled": true });
        object_at(&mut settings, &["mcp"])?.insert(SERVER.to_owned(), server);
    }
    Ok(settings.to_string())
}

/// The object under keys of OpenCode's settings, each inside the one before; created if it is missing.
fn object_at<'s>(
    settings: &'s mut Value,
    keys: &[&str],
) -> Result<&'s mut Map<String, Value>, String> {
    let wrong = |key: &str| format!("{OPENCODE} has no object around or under {key:?}");
    let mut at = settings;
    for key in keys {
        let object = at.as_object_mut().ok_or_else(|| wrong(key))?;
        at = object.entry(*key).or_insert_with(|| json!({}));
    }
    at.as_object_mut().ok_or_else(|| wrong(keys.last().copied().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::{CLAUDE_HEADERS, Client, Pointer, opencode};
    use std::path::Path;

    #[test]
    fn gw17_clients_are_known_by_the_name_of_their_program() {
        assert_eq!(Client::of(Path::new("/usr/bin/codex")), Client::Codex);
        assert_eq!(Client::of(Path::new("opencode")), Client::OpenCode);
        assert_eq!(Client::of(Path::new("claude")), Client::ClaudeCode);
        assert_eq!(Client::of(Path::new("aider")), Client::Other);
    }

    const NOTHING: Pointer<'_> =
        Pointer { url: "http://127.0.0.1:1/v1", recall: None, headers: &[] };

    #[test]
    fn gw17_settings_of_the_user_stay() {
        let own = r#"{"theme":"dark","provider":{"openai":{"options":{"apiKey":"k"}}}}"#;
        let settings = opencode(Some(own), &NOTHING).unwrap();
        assert_eq!(
            settings,
            r#"{"theme":"dark","provider":{"openai":{"options":{"apiKey":"k","baseURL":"http://127.0.0.1:1/v1"}},"anthropic":{"options":{"baseURL":"http://127.0.0.1:1/v1"}}}}"#
        );
        let other = r#"{"provider":{"openai":{"options":{"baseURL":"https://mine/v1"}}}}"#;
        assert!(opencode(Some(other), &NOTHING).unwrap_err().contains("--openai-url"));
        assert!(opencode(Some("[1]"), &NOTHING).unwrap_err().contains("provider"));
        assert!(opencode(Some("{"), &NOTHING).unwrap_err().contains("not valid JSON"));
    }

    #[test]
    fn gw17_headers_stand_beside_those_of_the_user() {
        let headers = [("x-foldback-todo", "quay".to_owned())];
        let pointer = Pointer { headers: &headers, ..NOTHING };
        let own = r#"{"provider":{"openai":{"options":{"headers":{"x-own":"1"}}}}}"#;
        let settings = opencode(Some(own), &pointer).unwrap();
        assert!(settings.contains(r#""headers":{"x-own":"1","x-foldback-todo":"quay"}"#));
        let own = |name: &str| (name == CLAUDE_HEADERS).then(|| "x-own: 1".to_owned());
        let launch = Client::ClaudeCode.launch(&pointer, own).unwrap();
        let sent = launch.environment.iter().find(|(name, _)| *name == CLAUDE_HEADERS);
        assert_eq!(sent.unwrap().1, "x-own: 1\nx-foldback-todo: quay");
        let refused = Client::Codex.launch(&pointer, |_| None).err().unwrap();
        assert!(refused.contains("x-foldback-todo") && refused.contains("--gateway"), "{refused}");
    }
}

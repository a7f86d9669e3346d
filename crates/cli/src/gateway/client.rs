//! The clients that are known, and how each is pointed at a gateway.

use super::recall::SERVER;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;

/// A program that is pointed at a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Reads the usual variables, and servers of tools from an argument.
    ClaudeCode,
    /// Reads the address from an argument.
    Codex,
    /// Reads it from a variable that holds settings.
    OpenCode,
    /// Reads the usual variables: aider, and whatever is built on the providers' own libraries.
    Other,
}

/// Settings of OpenCode, as JSON.
const OPENCODE: &str = "OPENCODE_CONFIG_CONTENT";

/// What a program is started with.
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

    /// Whether its models are shown the tools of a server that it is given. Codex's newest call them from programs that
    /// they write, so that no request shows whether they are there.
    pub(crate) fn has_tools(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::OpenCode)
    }

    /// How it is started so that it asks the gateway at `url`, and has the tools of the server at `recall`. `variable`
    /// reads the environment.
    pub(crate) fn launch(
        self,
        url: &str,
        recall: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Launch, String> {
        let with_version = format!("{url}/v1");
        let mut launch = Launch {
            arguments: Vec::new(),
            environment: vec![
                ("ANTHROPIC_BASE_URL", url.to_owned()),
                ("OPENAI_BASE_URL", with_version.clone()),
                ("OPENAI_API_BASE", with_version.clone()),
            ],
        };
        // Requests to this machine go through no proxy.
        for name in ["NO_PROXY", "no_proxy"] {
            let own = variable(name).filter(|hosts| !hosts.is_empty());
            let hosts = own.into_iter().chain(["127.0.0.1".to_owned()]);
            launch.environment.push((name, hosts.collect::<Vec<_>>().join(",")));
        }
        match self {
            Self::ClaudeCode => {
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
                let settings = opencode(variable(OPENCODE).as_deref(), &with_version, recall)?;
                launch.environment.push((OPENCODE, settings));
                // It wants the version in either address.
                launch.environment.push(("ANTHROPIC_BASE_URL", with_version));
            }
            Self::Other => {}
        }
        Ok(launch)
    }
}

/// Where Claude Code reads the address of the server of tools: other users of this machine see a program's arguments.
const RECALL: &str = "FOLDBACK_RECALL_URL";

/// The server of tools for Claude Code. Its tools only read, so it need not ask the person for leave each time.
fn claude_code() -> [OsString; 2] {
    let url = format!("${{{RECALL}}}");
    let server = json!({ "type": "http", "url": url, "alwaysLoad": true });
    let servers = json!({ "mcpServers": { SERVER: server } });
    let tools =
        ["search_block", "list_blocks", "load"].map(|tool| format!("mcp__{SERVER}__{tool}"));
    [format!("--mcp-config={servers}").into(), format!("--allowedTools={}", tools.join(",")).into()]
}

/// OpenCode's settings with the address for both providers. All else that the user has set stays; an address of the
/// user's would be lost, and a key sent elsewhere, so it is refused.
fn opencode(own: Option<&str>, url: &str, recall: Option<&str>) -> Result<String, String> {
    let own = own.filter(|text| !text.trim().is_empty()).unwrap_or("{}");
    let mut settings: Value =
        serde_json::from_str(own).map_err(|error| format!("{OPENCODE} holds no JSON: {error}"))?;
    for provider in ["anthropic", "openai"] {
        let mut at = &mut settings;
        for key in ["provider", provider, "options", "baseURL"] {
            let object = at.as_object_mut();
            let object =
                object.ok_or_else(|| format!("{OPENCODE} has no object around {key:?}"))?;
            at = object.entry(key).or_insert_with(|| json!({}));
        }
        if at.as_str().is_some_and(|own| own != url) {
            return Err(format!(
                "{OPENCODE} names an address for {provider}; expected was none: name it with \
                 --anthropic-url or --openai-url, and requests are passed on to there"
            ));
        }
        *at = json!(url);
    }
    if let (Some(recall), Some(settings)) = (recall, settings.as_object_mut()) {
        let servers = settings.entry("mcp").or_insert_with(|| json!({})).as_object_mut();
        let servers = servers.ok_or_else(|| format!("{OPENCODE} has no object under \"mcp\""))?;
        servers
            .insert(SERVER.to_owned(), json!({ "type": "remote", "url": recall, "enabled": true }));
    }
    Ok(settings.to_string())
}

#[cfg(test)]
mod tests {
    use super::{Client, opencode};
    use std::path::Path;

    #[test]
    fn gw17_clients_are_known_by_the_name_of_their_program() {
        assert_eq!(Client::of(Path::new("/usr/bin/codex")), Client::Codex);
        assert_eq!(Client::of(Path::new("opencode")), Client::OpenCode);
        assert_eq!(Client::of(Path::new("claude")), Client::ClaudeCode);
        assert_eq!(Client::of(Path::new("aider")), Client::Other);
    }

    #[test]
    fn gw17_settings_of_the_user_stay() {
        let own = r#"{"theme":"dark","provider":{"openai":{"options":{"apiKey":"k"}}}}"#;
        let settings = opencode(Some(own), "http://127.0.0.1:1/v1", None).unwrap();
        assert_eq!(
            settings,
            r#"{"theme":"dark","provider":{"openai":{"options":{"apiKey":"k","baseURL":"http://127.0.0.1:1/v1"}},"anthropic":{"options":{"baseURL":"http://127.0.0.1:1/v1"}}}}"#
        );
        let other = r#"{"provider":{"openai":{"options":{"baseURL":"https://mine/v1"}}}}"#;
        assert!(opencode(Some(other), "u", None).unwrap_err().contains("--openai-url"));
        assert!(opencode(Some("[1]"), "u", None).unwrap_err().contains("provider"));
        assert!(opencode(Some("{"), "u", None).unwrap_err().contains("no JSON"));
    }
}

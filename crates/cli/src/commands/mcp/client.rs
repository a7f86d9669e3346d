//! The clients that foldback can be set up for, and where each keeps its servers.

use super::What;
use super::{json_entry, toml_entry};
use crate::cli::Globals;
use crate::error::CliError;
use clap::ValueEnum;
use directories::BaseDirs;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A client of MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Client {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// opencode
    Opencode,
    /// Cursor
    Cursor,
    /// Any other: the lines are printed
    Json,
}

/// The server's name among those of a client.
const NAME: &str = "foldback";

/// How a client starts the server.
pub(super) struct Start {
    program: String,
    arguments: Vec<String>,
}

impl Client {
    /// The file that it reads its servers from: the user's own, or the project's in the working folder. `None` for a
    /// client whose files are not known here.
    ///
    /// # Errors
    /// When the user's home folder is unknown.
    pub(super) fn file(self, of_project: bool) -> Result<Option<PathBuf>, CliError> {
        if of_project {
            let name = match self {
                Self::Claude => ".mcp.json",
                Self::Codex => ".codex/config.toml",
                Self::Opencode => "opencode.json",
                Self::Cursor => ".cursor/mcp.json",
                Self::Json => return Ok(None),
            };
            return Ok(Some(PathBuf::from(name)));
        }
        let folders = BaseDirs::new().ok_or_else(|| {
            let what = "your home folder is unknown; set HOME, or use --project";
            CliError::Usage(what.to_owned())
        })?;
        let home = folders.home_dir();
        let named = |variable: &str| {
            std::env::var_os(variable).filter(|folder| !folder.is_empty()).map(PathBuf::from)
        };
        Ok(Some(match self {
            Self::Claude => match named("CLAUDE_CONFIG_DIR") {
                Some(folder) => folder.join(".claude.json"),
                None => home.join(".claude.json"),
            },
            Self::Codex => {
                named("CODEX_HOME").unwrap_or_else(|| home.join(".codex")).join("config.toml")
            }
            Self::Opencode => {
                let config = named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
                config.join("opencode").join("opencode.json")
            }
            Self::Cursor => home.join(".cursor").join("mcp.json"),
            Self::Json => return Ok(None),
        }))
    }

    /// Whether it starts the server in the working folder. Codex names no roots, and opencode did not before June 2026.
    fn starts_in_folder(self) -> bool {
        matches!(self, Self::Codex | Self::Opencode)
    }

    /// The text of its file with the server added.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(super) fn with(self, text: &str, start: &Start) -> Result<String, String> {
        match self {
            Self::Codex => toml_entry::with(text, NAME, &start.program, &start.arguments),
            _ => json_entry::with(text, self.section(), NAME, &self.entry(start)),
        }
    }

    /// The text of its file without the server; `None` if it is not there.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(super) fn without(self, text: &str) -> Result<Option<String>, String> {
        match self {
            Self::Codex => toml_entry::without(text, NAME),
            _ => json_entry::without(text, self.section(), NAME),
        }
    }

    fn section(self) -> &'static str {
        if self == Self::Opencode { "mcp" } else { "mcpServers" }
    }

    fn entry(self, start: &Start) -> Value {
        let Start { program, arguments } = start;
        match self {
            Self::Opencode => {
                let command: Vec<&String> = std::iter::once(program).chain(arguments).collect();
                json!({"type": "local", "command": command, "enabled": true})
            }
            Self::Claude => json!({"type": "stdio", "command": program, "args": arguments}),
            _ => json!({"command": program, "args": arguments}),
        }
    }
}

impl Start {
    /// How this program is started as a server, over the current store.
    ///
    /// # Errors
    /// When the path of this program is unknown.
    pub(super) fn of(what: &What, client: Client, globals: &Globals) -> Result<Self, CliError> {
        let program = own_path().map_err(|source| CliError::Io {
            what: "the path of the foldback program is unknown".to_owned(),
            source,
        })?;
        let mut arguments = vec!["mcp".to_owned()];
        if let Some(file) = &globals.settings.named {
            arguments.extend(["--config".to_owned(), absolute(file)]);
        }
        let store = globals.store.as_ref().or(globals.settings.memory.store.as_ref());
        if let Some(store) = store {
            arguments.extend(["--store".to_owned(), absolute(store)]);
        }
        // The server has the files of settings, but not the flags and the environment of this command.
        let is_ours = |key: &str| {
            let source = globals.settings.source_of(key).unwrap_or_default();
            source.starts_with("--") || source.starts_with("FOLDBACK_")
        };
        if is_ours("memory.engine") {
            // An address may hold a password, which does not belong in a settings file; it comes from the environment.
            let engine = globals.truth()?.engine().name().to_owned();
            arguments.extend(["--engine".to_owned(), engine]);
        }
        if let Some(tenant) = globals.tenant() {
            arguments.extend(["--tenant".to_owned(), tenant.to_string()]);
        }
        let payloads = globals.settings.memory.payloads.as_ref();
        if let Some(payloads) = globals.payloads.as_ref().or(payloads)
            && is_ours("memory.payloads")
        {
            arguments.extend(["--payloads".to_owned(), payloads.clone()]);
        }
        if let Some(embedder) = &globals.embedder
            && is_ours("memory.embedder")
        {
            arguments.extend(["--embedder".to_owned(), embedder.to_string()]);
        }
        if let Some(todo) = &what.todo {
            arguments.extend(["--todo".to_owned(), todo.to_string()]);
        }
        let here = (what.todo.is_none() && client.starts_in_folder()).then(|| PathBuf::from("."));
        if let Some(folder) = what.folder.clone().or(here) {
            let named = if folder == Path::new(".") { ".".to_owned() } else { absolute(&folder) };
            arguments.extend(["--folder".to_owned(), named]);
        }
        for (flag, is_given) in
            [("--any-todo", what.any_todo), ("--allow-record", what.allow_record)]
        {
            arguments.extend(is_given.then(|| flag.to_owned()));
        }
        Ok(Self { program: program.display().to_string(), arguments })
    }
}

/// The path of this program as it was called, found in PATH where it was called by name. Symbolic links in it stay, because
/// package managers put the program of the next version behind the same link.
fn own_path() -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let called = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    let found: Vec<PathBuf> = match called.components().nth(1) {
        Some(_) => vec![called],
        None => {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&folders).map(|folder| folder.join(&called)).collect()
        }
    };
    let real = program.canonicalize()?;
    // A caller may pass any name.
    let is_own = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == real);
    let own = found.into_iter().find(is_own).and_then(|path| std::path::absolute(path).ok());
    Ok(own.unwrap_or(program))
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}

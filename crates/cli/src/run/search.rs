//! The sources that a run searches: documents, which it can open from its workspace, the web, an MCP server's tool or a
//! memory.

use super::NamedModels;
use super::screen::Screen;
use super::search_in::SearchIn;
use super::settings::RunSettings;
use crate::cli::Globals;
use crate::encryption_key::encryption_key;
use crate::error::CliError;
use crate::output::text;
use crate::store;
use foldback::Memory;
use foldback_core::{BlockId, Reference, TodoId};
use foldback_deep_search::{DeepSearch, SearchBackend, ToolSearch};
use foldback_documents::{DocumentFolder, DocumentSettings, Indexed, TodoSearch};
use foldback_mcp::is_tool_of;
use foldback_tool::Tool;
use foldback_tools::{WebPermissions, web_search};
use std::path::{Component, Path};
use std::sync::Arc;

/// The sources of a run's search besides files.
pub(crate) struct Surroundings<'a> {
    globals: &'a Globals,
    screen: &'a Screen,
    memory: &'a Memory,
    /// The run's own todo.
    todo: &'a TodoId,
    /// The tools of MCP servers.
    tools: &'a [Arc<dyn Tool>],
}

impl<'a> Surroundings<'a> {
    /// The sources of a run whose conversation is in this todo of the store, with the tools of MCP servers.
    pub(crate) fn new(
        globals: &'a Globals,
        screen: &'a Screen,
        (memory, todo): (&'a Memory, &'a TodoId),
        tools: &'a [Arc<dyn Tool>],
    ) -> Self {
        Self { globals, screen, memory, todo, tools }
    }
}

/// The deep search of a run, if it was given something to search.
pub(crate) async fn deep_search(
    settings: &RunSettings,
    models: &NamedModels,
    around: &Surroundings<'_>,
) -> Result<Option<DeepSearch>, CliError> {
    let Some(search_in) = settings.search_in()? else { return Ok(None) };
    let backend: Arc<dyn SearchBackend> = match search_in {
        SearchIn::Folder(folder) => Arc::new(documents(&folder, settings, around).await?),
        SearchIn::Searxng(url) => {
            let private_addresses = settings.allow_private_net;
            let permissions = WebPermissions { private_addresses, ..WebPermissions::default() };
            let tool = web_search(&url, &permissions)
                .map_err(|error| CliError::Usage(format!("--search: {error}")))?;
            Arc::new(ToolSearch::new(tool).map_err(CliError::Usage)?)
        }
        SearchIn::Mcp { server, tool } => {
            let found = around.tools.iter().find(|one| is_tool_of(one.spec(), &server, &tool));
            let missing = || {
                let names: Vec<&str> = around.tools.iter().map(|tool| tool.spec().name()).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                CliError::Usage(format!(
                    "--search mcp:{server}/{tool}: the server has no such tool, or did not start; available \
                     tools: {names}"
                ))
            };
            Arc::new(
                ToolSearch::new(Arc::clone(found.ok_or_else(missing)?)).map_err(CliError::Usage)?,
            )
        }
        SearchIn::Memory(todo) => Arc::new(todo_search(todo, around)?),
    };
    let search = around.globals.settings.search.of(settings.effort());
    let search = DeepSearch::new(backend).with_settings(search);
    Ok(Some(around.globals.settings.search.with_models(search, models)?))
}

/// Reads and indexes the documents of a folder; those that have not changed since an earlier run are not indexed again.
async fn documents(
    folder: &Path,
    settings: &RunSettings,
    around: &Surroundings<'_>,
) -> Result<DocumentFolder, CliError> {
    let store = store::folder(around.globals)?.join("documents");
    // With an encrypted store, no index of them is kept.
    let is_kept = encryption_key(around.globals)?.is_none();
    let of = folder.to_owned();
    // This may take a while, during which the run can be stopped.
    let opening = tokio::task::spawn_blocking(move || {
        let settings = DocumentSettings::default();
        match is_kept {
            true => DocumentFolder::open_with_store(&of, settings, &store),
            false => DocumentFolder::open(&of, settings),
        }
    });
    let documents = opening.await.map_err(|error| CliError::Io {
        what: format!("the documents in {} could not be read", folder.display()),
        source: error.into(),
    })??;
    let read = documents.indexed();
    if read.documents == 0 {
        let (folder, others) = (folder.display(), passed_over(&read));
        let what = format!(
            "there is no document in {folder}: expected texts in UTF-8, HTML or PDF{others}"
        );
        return Err(CliError::Usage(what));
    }
    around.screen.note(&counted(&read));
    Ok(documents.with_prefix(&prefix(folder, settings.workspace.as_deref())))
}

/// Searches what was said, in the run itself or in another todo. Naming another todo lets the run
/// read its blocks, and that is recorded like any grant.
fn todo_search(other: Option<TodoId>, around: &Surroundings<'_>) -> Result<TodoSearch, CliError> {
    let Surroundings { memory, todo, .. } = around;
    let Some(other) = other.filter(|other| other != *todo) else {
        return Ok(TodoSearch::own((*memory).clone(), (*todo).clone()));
    };
    let info = memory.find(&other).map_err(CliError::from)?;
    let mut blocks = Vec::new();
    let mut last = 0;
    loop {
        let found = memory.blocks(info.id(), last, 256)?;
        let Some(newest) = found.last() else { break };
        last = newest.header.block_id.n();
        let named = found.iter().map(|block| block.header.block_id.n());
        blocks.extend(named.map(|n| Reference::Block(BlockId::new(other.clone(), n))));
    }
    memory.grants().grant(&other, todo, &blocks)?;
    Ok(TodoSearch::granted((*memory).clone(), (*todo).clone(), other))
}

/// What was read, on a line.
fn counted(read: &Indexed) -> String {
    let documents = text::count(read.documents as u64, "document");
    format!("{documents} to search{}", passed_over(read))
}

/// The skipped files: `; skipped: scan.png (unsupported file extension)`.
fn passed_over(read: &Indexed) -> String {
    read.passed_over().map_or_else(String::new, |files| format!("; skipped: {files}"))
}

/// The path from the workspace to the documents: relative if they are in it, and otherwise
/// absolute.
fn prefix(folder: &Path, workspace: Option<&Path>) -> String {
    let within = workspace.and_then(|workspace| folder.strip_prefix(workspace).ok());
    let is_within = within.is_some();
    let parts = within.unwrap_or(folder).components().filter_map(|part| match part {
        Component::Normal(part) => Some(format!("{}/", part.to_string_lossy())),
        _ => None,
    });
    let path: String = parts.collect();
    if is_within { path } else { format!("/{path}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_documents::{SkipReason, Skipped};

    #[test]
    fn documents_are_reached_from_the_workspace() {
        let prefix = |folder, workspace| prefix(Path::new(folder), Some(Path::new(workspace)));
        assert_eq!(prefix("/home/me/project/docs/港口", "/home/me/project"), "docs/港口/");
        assert_eq!(prefix("/home/me/project", "/home/me/project"), "");
        assert_eq!(prefix("/srv/docs", "/home/me/project"), "/srv/docs/");
    }

    #[test]
    fn what_is_passed_over_is_named() {
        let first = vec!["0.pdf".to_owned(), "1.pdf".to_owned(), "2.pdf".to_owned()];
        let skipped = [Skipped { why: SkipReason::NoUtf8, files: 7, first }].into();
        let read = Indexed { documents: 1, skipped, ..Indexed::default() };
        assert_eq!(
            counted(&read),
            "1 document to search; skipped: 0.pdf, 1.pdf, 2.pdf and 4 more (not UTF-8)"
        );
        assert_eq!(
            counted(&Indexed { documents: 2, ..Indexed::default() }),
            "2 documents to search"
        );
    }
}

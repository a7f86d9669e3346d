//! The documents of a run, whose links can be followed from its workspace.

use super::NamedModels;
use super::screen::Screen;
use super::settings::RunSettings;
use crate::cli::Globals;
use crate::error::CliError;
use crate::output::text;
use crate::store;
use foldback_deep_search::DeepSearch;
use foldback_documents::{DocumentFolder, DocumentSettings, Indexed};
use std::path::{Component, Path};
use std::sync::Arc;

/// The documents of a run, read and indexed; what did not change since a run before is not read again.
pub(crate) fn documents(
    settings: &RunSettings,
    globals: &Globals,
    models: &NamedModels,
    screen: &Screen,
) -> Result<Option<DeepSearch>, CliError> {
    let Some(folder) = &settings.documents else { return Ok(None) };
    let store = store::folder(globals)?.join("documents");
    let documents = DocumentFolder::open_with_store(folder, DocumentSettings::default(), &store)?;
    let read = documents.indexed();
    if read.documents == 0 {
        let (folder, others) = (folder.display(), passed_over(&read));
        let what =
            format!("there is no document in {folder}: texts in UTF-8 were expected{others}");
        return Err(CliError::Usage(what));
    }
    screen.note(&counted(&read));
    let search = globals.settings.search.of(settings.effort());
    let prefix = prefix(folder, settings.workspace.as_deref());
    let documents = documents.with_prefix(&prefix);
    let search = DeepSearch::new(Arc::new(documents)).with_settings(search);
    Ok(Some(globals.settings.search.with_models(search, models)?))
}

/// What was read, on a line.
fn counted(read: &Indexed) -> String {
    let documents = text::count(read.documents as u64, "document");
    format!("{documents} to search{}", passed_over(read))
}

/// What was not: `; passed over: scan.pdf (not the ending of a text)`.
fn passed_over(read: &Indexed) -> String {
    read.passed_over().map_or_else(String::new, |files| format!("; passed over: {files}"))
}

/// What leads from the workspace to the documents: a path below it, where they are in it, else the
/// whole path.
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
            "1 document to search; passed over: 0.pdf, 1.pdf, 2.pdf and 4 more (no UTF-8)"
        );
        assert_eq!(
            counted(&Indexed { documents: 2, ..Indexed::default() }),
            "2 documents to search"
        );
    }
}

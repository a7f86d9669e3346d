//! The files of a folder that are documents.

use crate::content::Content;
use crate::{SkipReason, Skipped};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use ignore::WalkBuilder;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Which files of a folder are documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DocumentSettings {
    /// The extensions of their names, without a dot and in lower case.
    pub extensions: BTreeSet<String>,
    /// How large a document may be, in bytes.
    pub max_file_bytes: u64,
    /// How large a PDF may be, in bytes.
    pub max_pdf_bytes: u64,
    /// How many documents there may be; the first by path are taken.
    pub max_files: usize,
}

/// Plain text, Markdown and the like, HTML, PDF, tables, and source code.
const EXTENSIONS: &[&str] = &[
    "adoc", "c", "cc", "cpp", "cs", "css", "csv", "go", "h", "hpp", "htm", "html", "java", "js",
    "json", "kt", "log", "lua", "markdown", "md", "mdx", "org", "pdf", "php", "proto", "py", "rb",
    "rs", "rst", "sh", "sql", "swift", "tex", "text", "toml", "ts", "tsx", "txt", "xhtml", "xml",
    "yaml", "yml",
];

impl Default for DocumentSettings {
    /// Returns settings for texts, HTML and code of up to 2 MiB and PDFs of up to 64 MiB, 20,000 in total.
    fn default() -> Self {
        Self {
            extensions: EXTENSIONS.iter().map(|ending| (*ending).to_owned()).collect(),
            max_file_bytes: 2 << 20,
            max_pdf_bytes: 64 << 20,
            max_files: 20_000,
        }
    }
}

/// A folder that is held open: everything read from it is inside it, whatever links say.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    dir: Dir,
}

/// A document.
#[derive(Debug)]
pub(crate) struct Document {
    /// Its path in the folder, with `/` between its parts.
    pub(crate) path: String,
    pub(crate) content: Content,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let path = path.canonicalize()?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority())?;
        Ok(Self { path, dir })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Passes each document, in the order of paths, to `take`, which may say why it is not one after all.
    /// Everything else in the folder is returned, except what is hidden or named by an ignore file.
    pub(crate) fn documents<E>(
        &self,
        settings: &DocumentSettings,
        mut take: impl FnMut(Document) -> Result<Option<SkipReason>, E>,
    ) -> Result<Arc<[Skipped]>, E> {
        let walk = WalkBuilder::new(&self.path)
            .require_git(false)
            .parents(false)
            .git_global(false)
            .sort_by_file_name(Ord::cmp)
            .build();
        let (mut skipped, mut taken) = (BTreeMap::new(), 0);
        let mut skip = |path, why| Skipped::count(&mut skipped, path, why);
        for entry in walk {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let (path, why) = self.unreadable(&error);
                    skip(path, why);
                    continue;
                }
            };
            let Some(kind) = entry.file_type().filter(|kind| !kind.is_dir()) else { continue };
            let Ok(within) = entry.path().strip_prefix(&self.path) else { continue };
            let ending = entry.path().extension().and_then(|ending| ending.to_str());
            let ending = ending.unwrap_or_default().to_lowercase();
            let path = joined(within);
            let content = match &path {
                _ if kind.is_symlink() => Err(SkipReason::Link),
                _ if !kind.is_file() => Err(SkipReason::Special),
                _ if !settings.extensions.contains(&ending) => Err(SkipReason::Ending),
                Some(_) if taken >= settings.max_files => {
                    Err(SkipReason::Behind { documents: settings.max_files })
                }
                Some(_) => self.content(within, &ending, settings),
                None => Err(SkipReason::Name),
            };
            let path = path.unwrap_or_else(|| within.to_string_lossy().into_owned());
            let why = match content {
                Ok(content) => take(Document { path: path.clone(), content })?,
                Err(why) => Some(why),
            };
            match why {
                Some(why) => skip(path, why),
                None => taken += 1,
            }
        }
        Ok(Skipped::rarest_first(skipped))
    }

    /// Returns the path in the folder that could not be walked, and why.
    fn unreadable(&self, error: &ignore::Error) -> (String, SkipReason) {
        let path = path_of(error).unwrap_or(&self.path);
        let within = path.strip_prefix(&self.path).unwrap_or(path);
        let within = if within.as_os_str().is_empty() { Path::new(".") } else { within };
        let kind = error.io_error().map_or(io::ErrorKind::Other, io::Error::kind);
        (within.to_string_lossy().into_owned(), SkipReason::Unreadable(kind))
    }

    /// Returns the content of a file with this extension, or why it is not a document.
    fn content(
        &self,
        path: &Path,
        ending: &str,
        settings: &DocumentSettings,
    ) -> Result<Content, SkipReason> {
        let is_pdf = ending == "pdf";
        let most = if is_pdf { settings.max_pdf_bytes } else { settings.max_file_bytes };
        let bytes = self.bytes(path, most);
        let bytes = bytes.map_err(|error| SkipReason::Unreadable(error.kind()))?;
        if bytes.len() as u64 > most {
            return Err(SkipReason::Large { most });
        }
        if is_pdf {
            return Ok(Content::Pdf(bytes));
        }
        if bytes.contains(&0) {
            return Err(SkipReason::Binary);
        }
        if matches!(ending, "html" | "htm" | "xhtml") {
            return Ok(Content::Html(bytes));
        }
        let text = String::from_utf8(bytes).map_err(|_| SkipReason::NoUtf8)?;
        let is_markdown = matches!(ending, "md" | "markdown" | "mdx");
        Ok(Content::Text { text, is_markdown })
    }

    /// Returns the bytes of a file, up to one more than this many.
    fn bytes(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.dir.open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Returns the bytes of a file, within the limits of these settings.
    pub(crate) fn whole(&self, path: &str, settings: &DocumentSettings) -> io::Result<Vec<u8>> {
        self.bytes(Path::new(path), settings.max_pdf_bytes.max(settings.max_file_bytes))
    }

    /// Returns whether these bytes of a file are this text.
    pub(crate) fn holds(&self, path: &str, bytes: &Range<u64>, text: &str) -> bool {
        let read = || -> io::Result<Vec<u8>> {
            let mut file = self.dir.open(path)?;
            file.seek(SeekFrom::Start(bytes.start))?;
            let mut read = Vec::with_capacity(text.len());
            file.take(bytes.end.saturating_sub(bytes.start)).read_to_end(&mut read)?;
            Ok(read)
        };
        read().is_ok_and(|read| read == text.as_bytes())
    }
}

/// Returns a path with `/` between its parts, if it is Unicode text.
fn joined(path: &Path) -> Option<String> {
    let parts = path.components().map(|part| match part {
        Component::Normal(part) => part.to_str(),
        _ => None,
    });
    Some(parts.collect::<Option<Vec<_>>>()?.join("/"))
}

/// Returns the path that an error is about.
fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => {
            path_of(err)
        }
        ignore::Error::Loop { child, .. } => Some(child),
        ignore::Error::Partial(errors) => errors.iter().find_map(path_of),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    /// A folder that may not be read is reported by its name.
    #[test]
    fn an_unreadable_folder_has_a_name() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = Folder::open(temporary.path()).unwrap();
        let error = |path: PathBuf| {
            let err = Box::new(ignore::Error::Io(io::ErrorKind::PermissionDenied.into()));
            let err = Box::new(ignore::Error::WithPath { path, err });
            folder.unreadable(&ignore::Error::WithDepth { depth: 1, err })
        };
        let why = SkipReason::Unreadable(io::ErrorKind::PermissionDenied);
        assert_eq!(error(folder.path().join("私/b")), ("私/b".to_owned(), why));
        assert_eq!(error(folder.path().to_owned()), (".".to_owned(), why));
        assert_eq!(why.to_string(), "cannot be read: permission denied");
    }
}

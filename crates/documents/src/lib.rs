//! Folders of documents (texts, Markdown, HTML, PDF, code) as a source for deep search.
//!
//! A [`DocumentFolder`] reads a folder, cuts its documents into passages and searches them with a memory of
//! its own. What it finds has a [`PassageUrl`]: the file and the bytes of the passage, so that an answer can
//! be checked against its sources. The text of HTML and PDF is read within limits of size and time; a passage
//! of a PDF names its page. A [`TodoSearch`] searches a memory in the same way.
//!
//! It is a search backend, not a tool: an agent that is to read files in a folder uses the tools of
//! `foldback-tools`. It writes nothing into the folder, follows no link out of it, and reads no
//! pictures. The text of a document is data.
//!
//! ```
//! use foldback_deep_search::SearchBackend;
//! use foldback_documents::{DocumentFolder, DocumentSettings};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! std::fs::write(folder.path().join("租约.md"), "# 租约\n\n租约每十秒续期一次。\n")?;
//! let documents = DocumentFolder::open(folder.path(), DocumentSettings::default())?;
//! let found = documents.search("租约多久续期", 3).await?;
//! assert_eq!(found[0].url, "租约.md#bytes=0-40");
//! assert!(found[0].text.contains("每十秒"));
//! // The URL appears in an answer; what it points at can be read back.
//! assert_eq!(documents.read(&found[0].url)?, found[0]);
//! # Ok(())
//! # }
//! ```

mod content;
mod document_folder;
mod files;
mod index;
mod passage_url;
mod passages;
mod passed_over;
mod pdf;
mod todo_search;

pub use document_folder::{DocumentFolder, DocumentsError, Indexed};
pub use files::DocumentSettings;
pub use passage_url::{PassageUrl, PassageUrlError, Within};
pub use passed_over::{SkipReason, Skipped};
pub use todo_search::TodoSearch;

//! Large data handed to tools by reference: bytes, text or a file, checked, and never by way of the
//! conversation.

mod files;
mod handing;

use crate::{Error, Session};
use foldback_core::{Reference, ToolAnswer, ToolCall};
use handing::{Handing, Trouble};
use std::path::PathBuf;
use tempfile::TempDir;

/// Which arguments of which tools take references, and in which form each tool wants what they name.
///
/// ```
/// use foldback::{HandedAs, TakesReferences};
///
/// let declared = TakesReferences::new()
///     .argument("render_slides", "source", HandedAs::Path)
///     .argument("count_words", "texts", HandedAs::Text);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakesReferences {
    arguments: Vec<(String, String, HandedAs)>,
    bounds: Bounds,
}

/// How much one call may hand over, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    memory: u64,
    files: u64,
}

/// The form in which a tool is handed what a reference names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandedAs {
    /// Beside the call, as bytes in memory; the argument keeps the reference.
    Bytes,
    /// In the place of the reference, as text in memory.
    Text,
    /// In the place of the reference, as the path of a file that can only be read. It is written part
    /// by part, and is gone with the [`Handed`] value. It stands in a folder of the system's temporary
    /// one that nobody else can open; of a process that is killed, the folder stays there.
    Path,
}

/// What became of a call whose references were looked up.
#[derive(Debug)]
pub enum HandOver {
    /// The tool can be run.
    Ready(Handed),
    /// A reference is not one, leads nowhere, or what it names cannot be handed over. The answer is
    /// for the model, and says what to do.
    Refused(ToolAnswer),
}

/// A call that is ready to be run. Its files live as long as the value.
///
/// It is for the tool alone: into the conversation goes the call as the model made it
/// ([`Session::record`]), or the texts would enter it after all.
#[derive(Debug)]
pub struct Handed {
    /// The call, with texts and paths in the place of references.
    pub call: ToolCall,
    /// What was handed over, in the order of the arguments; of a list that names something twice, once.
    pub parts: Vec<HandedPart>,
    /// Removed with the value.
    _folder: Option<TempDir>,
}

/// What one reference named.
#[derive(Debug)]
pub struct HandedPart {
    /// The argument in which it stood.
    pub argument: String,
    /// The reference, in full.
    pub reference: Reference,
    /// What it names. A block is its messages as JSON Lines, each exactly as it was recorded.
    pub content: HandedContent,
}

/// Bytes that were checked, in the form that was declared.
#[derive(Debug, PartialEq, Eq)]
pub enum HandedContent {
    /// The bytes.
    Bytes(Vec<u8>),
    /// The text.
    Text(String),
    /// A file that holds the bytes.
    Path(PathBuf),
}

impl Default for TakesReferences {
    fn default() -> Self {
        Self::new()
    }
}

impl TakesReferences {
    /// The most references in one call.
    pub const MAX_REFERENCES: usize = 256;
    /// The most bytes that one call is handed in memory, as bytes or as text, unless
    /// [`at_most`](Self::at_most) says otherwise: 64 MiB.
    pub const MAX_MEMORY: u64 = 64 << 20;
    /// The most bytes that one call is handed in files, unless [`at_most`](Self::at_most) says
    /// otherwise: 16 GiB.
    pub const MAX_FILES: u64 = 16 << 30;

    /// No tool takes references.
    #[must_use]
    pub fn new() -> Self {
        let bounds = Bounds { memory: Self::MAX_MEMORY, files: Self::MAX_FILES };
        Self { arguments: Vec::new(), bounds }
    }

    /// The same, and one call is handed at most so many bytes in memory, and so many in files. A
    /// text is counted wherever it is put, bytes once in an argument, a file once in the call.
    #[must_use]
    pub fn at_most(mut self, memory: u64, files: u64) -> Self {
        self.bounds = Bounds { memory, files };
        self
    }

    /// The same, and this argument of this tool takes a reference or a list of them.
    #[must_use]
    pub fn argument(mut self, tool: &str, argument: &str, form: HandedAs) -> Self {
        self.arguments.retain(|(t, a, _)| (t.as_str(), a.as_str()) != (tool, argument));
        self.arguments.push((tool.to_owned(), argument.to_owned(), form));
        self
    }

    fn form(&self, tool: &str, argument: &str) -> Option<HandedAs> {
        let found = self.arguments.iter().find(|(t, a, _)| t == tool && a == argument);
        found.map(|(_, _, form)| *form)
    }
}

impl Session {
    /// Looks up the references in a tool's call: what they name is handed to the tool, and only the
    /// tool's result enters the conversation. References may lead into this todo, or to what was
    /// granted to it. A call of a tool that takes none comes back as it is.
    ///
    /// # Errors
    /// When the store fails, or a temporary file cannot be written. A mistake of the model, and
    /// damage of what it asks for, is an answer.
    pub fn hand_over(
        &self,
        call: &ToolCall,
        declared: &TakesReferences,
    ) -> Result<HandOver, Error> {
        let mut handing = Handing::new(self, call, declared.bounds);
        match handing.arguments(declared) {
            Ok(arguments) => {
                let call = ToolCall::new(call.id.as_str(), &call.name, &arguments);
                let Handing { parts, folder, .. } = handing;
                Ok(HandOver::Ready(Handed { call, parts, _folder: folder }))
            }
            Err(Trouble::Mistake(what)) => {
                let text = format!("[{}: error] {what}", call.name);
                Ok(HandOver::Refused(ToolAnswer { text, is_error: true }))
            }
            Err(Trouble::Failure(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_one_for_each_argument() {
        let declared = TakesReferences::new()
            .argument("render", "source", HandedAs::Path)
            .argument("render", "source", HandedAs::Text);
        assert_eq!(declared.form("render", "source"), Some(HandedAs::Text));
        assert_eq!(declared.form("render", "title"), None);
        assert_eq!(declared.form("count", "source"), None);
    }
}

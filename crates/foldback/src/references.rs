//! Large data handed to tools by reference: bytes, text or a file, checked, and never by way of the
//! conversation.

use crate::{Error, Memory, Session, texts};
use foldback_backend_store::Error as PayloadError;
use foldback_core::{PayloadRef, Reference, TodoId, ToolAnswer, ToolCall};
use foldback_kv::Todo;
use serde_json::value::RawValue;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakesReferences {
    arguments: Vec<(String, String, HandedAs)>,
}

/// The form in which a tool is handed what a reference names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandedAs {
    /// Beside the call, as bytes in memory; the argument keeps the reference.
    Bytes,
    /// In the place of the reference, as text in memory.
    Text,
    /// In the place of the reference, as the path of a file that can only be read. It is written part
    /// by part, whatever its size, and is gone with the [`Handed`] value.
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
#[derive(Debug)]
pub struct Handed {
    /// The call, with texts and paths in the place of references.
    pub call: ToolCall,
    /// What was handed over, in the order of the arguments.
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

impl TakesReferences {
    /// No tool takes references.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
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
        let mut handing = Handing { session: self, call, parts: Vec::new(), folder: None };
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

impl Memory {
    /// Writes what a reference names to `out`, each part after it was checked, and says how many
    /// bytes: of a payload its bytes, of a block its messages as JSON Lines. Of a payload no more
    /// than a few megabytes are in memory at once.
    ///
    /// # Errors
    /// [`Error::NoTodo`]; [`Error::NoReference`] for what is not there or was not granted to `todo`;
    /// damage; and when `out` fails. When damage is found late, what comes before it is written.
    pub fn write_reference(
        &self,
        todo: &TodoId,
        reference: &Reference,
        out: impl Write,
    ) -> Result<u64, Error> {
        self.shared.write_reference(&self.find(todo)?, reference, out)
    }
}

impl crate::memory::Shared {
    fn write_reference(
        &self,
        todo: &Todo,
        reference: &Reference,
        out: impl Write,
    ) -> Result<u64, Error> {
        let from = self.locate(todo, reference)?;
        match reference {
            Reference::Payload { n, .. } => Ok(self.payloads.write_to(&from, *n, out)?),
            Reference::Block(id) => self.write_block(&from, id.n(), out),
        }
    }

    fn write_block(&self, todo: &Todo, n: u32, mut out: impl Write) -> Result<u64, Error> {
        let block = self.blocks.block(todo, n)?;
        let block = block.ok_or(Error::Internal("a block that was located is gone"))?;
        let mut bytes = 0;
        for seq in block.range.iter() {
            // Between the tokens of JSON a line break is as good as a space, and inside of texts
            // none can stand.
            let mut line = texts::exact_message(self, todo, seq)?.json().replace(['\n', '\r'], " ");
            line.push('\n');
            let written = out.write_all(line.as_bytes());
            written.map_err(|source| PayloadError::Stream { doing: "write", source })?;
            bytes += line.len() as u64;
        }
        Ok(bytes)
    }
}

/// A call whose references are being looked up.
struct Handing<'a> {
    session: &'a Session,
    call: &'a ToolCall,
    parts: Vec<HandedPart>,
    folder: Option<TempDir>,
}

/// Why a call is not handed over.
enum Trouble {
    /// The model's mistake, or damage: a sentence for the model.
    Mistake(String),
    Failure(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Failure(error)
    }
}

/// What every refusal ends with.
const NEXT: &str = "Use a reference as it was shown; search_block and list_blocks show them.";

impl Handing<'_> {
    /// The call's arguments with what replaces the references; everything else stays as it stands.
    fn arguments(&mut self, declared: &TakesReferences) -> Result<String, Trouble> {
        let takes = |key: &str| declared.form(&self.call.name, key);
        let Some(members) = self.call.members() else {
            let is_declared = declared.arguments.iter().any(|(tool, ..)| *tool == self.call.name);
            if is_declared {
                return Err(Trouble::Mistake("The arguments are no JSON object.".to_owned()));
            }
            return Ok(self.call.arguments.clone());
        };
        if !members.iter().any(|(key, _)| takes(key).is_some()) {
            return Ok(self.call.arguments.clone());
        }
        let mut replaced = Vec::with_capacity(members.len());
        for (key, value) in members {
            let value = match takes(&key) {
                Some(form) if value.get() != "null" => self.value(&key, value, form)?,
                _ => value.get().to_owned(),
            };
            replaced.push(format!("{}:{value}", quoted(&key)));
        }
        Ok(format!("{{{}}}", replaced.join(",")))
    }

    fn value(&mut self, key: &str, value: &RawValue, form: HandedAs) -> Result<String, Trouble> {
        if let Ok(text) = serde_json::from_str::<String>(value.get()) {
            return self.reference(key, &text, form);
        }
        let Ok(texts) = serde_json::from_str::<Vec<String>>(value.get()) else {
            let what = format!("{key:?} has to be a reference, or a list of references. {NEXT}");
            return Err(Trouble::Mistake(what));
        };
        let values: Result<Vec<String>, Trouble> =
            texts.iter().map(|text| self.reference(key, text, form)).collect();
        Ok(format!("[{}]", values?.join(",")))
    }

    fn reference(&mut self, key: &str, text: &str, form: HandedAs) -> Result<String, Trouble> {
        let asked = shortened(text);
        let reference = Reference::parse_in(self.session.todo(), text.trim()).map_err(|_| {
            let what = format!(
                "{key:?} takes a block (b_<todo>_<nnn>) or a stored part (store://<n>-<check>), not \
                 {asked:?}. {NEXT}"
            );
            Trouble::Mistake(what)
        })?;
        let (content, replaced) = match form {
            HandedAs::Bytes => {
                (HandedContent::Bytes(self.bytes(&reference, &asked)?), quoted(text))
            }
            HandedAs::Text => {
                let bytes = self.bytes(&reference, &asked)?;
                let text = String::from_utf8(bytes).map_err(|_| {
                    let what = format!("{asked} is binary, and {key:?} takes text.");
                    Trouble::Mistake(what)
                })?;
                let replaced = quoted(&text);
                (HandedContent::Text(text), replaced)
            }
            HandedAs::Path => {
                let path = self.file(&reference, &asked)?;
                let replaced = quoted(&path.to_string_lossy());
                (HandedContent::Path(path), replaced)
            }
        };
        self.parts.push(HandedPart { argument: key.to_owned(), reference, content });
        Ok(replaced)
    }

    fn bytes(&self, reference: &Reference, asked: &str) -> Result<Vec<u8>, Trouble> {
        let mut bytes = Vec::new();
        self.write(reference, asked, &mut bytes)?;
        Ok(bytes)
    }

    /// A file with what the reference names, which can only be read.
    fn file(&mut self, reference: &Reference, asked: &str) -> Result<PathBuf, Trouble> {
        let name = match reference {
            Reference::Block(id) => format!("{}-block-{}.jsonl", self.parts.len() + 1, id.n()),
            Reference::Payload { n, .. } => format!("{}-payload-{n}", self.parts.len() + 1),
        };
        let folder = match self.folder.take() {
            Some(folder) => folder,
            None => {
                let made = tempfile::Builder::new().prefix("foldback-").tempdir();
                made.map_err(|source| failed(&std::env::temp_dir(), source))?
            }
        };
        let path = self.folder.insert(folder).path().join(name);
        let file = private_file(&path).map_err(|source| failed(&path, source))?;
        let mut out = BufWriter::new(file);
        self.write(reference, asked, &mut out)?;
        out.flush().and_then(|()| seal(&path)).map_err(|source| failed(&path, source))?;
        Ok(path)
    }

    fn write(
        &self,
        reference: &Reference,
        asked: &str,
        out: &mut impl Write,
    ) -> Result<(), Trouble> {
        let Session { memory, todo, .. } = self.session;
        // Inside the own todo a wrong check is told apart, so that a slip can be mended.
        if let Reference::Payload { n, check, todo: of } = reference
            && of == todo.id()
            && let Err(error) = memory.payloads.resolve(todo, &PayloadRef::local(*n, *check))
        {
            return Err(told(error.into(), asked));
        }
        let written = memory.write_reference(todo, reference, out);
        written.map(drop).map_err(|error| told(error, asked))
    }
}

/// What the model is told of an error that is its own or one of a single block or payload.
fn told(error: Error, asked: &str) -> Trouble {
    use foldback_blockstore::Error as BlockError;
    let what = match error {
        Error::NoReference { .. } | Error::Payloads(PayloadError::NotFound { .. }) => {
            format!("Nothing is stored under {asked:?} in this task. {NEXT}")
        }
        Error::Payloads(PayloadError::WrongCheck { meant, .. }) => {
            format!("{asked} does not exist: part {} of this task is {meant}.", meant.n)
        }
        Error::Payloads(PayloadError::Corrupt { .. })
        | Error::Blocks(BlockError::Corrupt { .. })
        | Error::Damaged { .. } => {
            format!("{asked} is damaged and cannot be handed over. Others can be.")
        }
        error => return Trouble::Failure(error),
    };
    Trouble::Mistake(what)
}

fn failed(path: &Path, source: io::Error) -> Trouble {
    Trouble::Failure(Error::Io { path: path.to_owned(), source })
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Lets the file be read only.
fn seal(path: &Path) -> io::Result<()> {
    let mut permissions = fs::metadata(path)?.permissions();
    permissions.set_readonly(true);
    fs::set_permissions(path, permissions)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().filter(|c| !c.is_control()).take(80).collect();
    if short.len() < text.len() && short.chars().count() == 80 {
        short.push('…');
    }
    short
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
        assert_eq!(shortened(&"长".repeat(100)).chars().count(), 81);
    }
}

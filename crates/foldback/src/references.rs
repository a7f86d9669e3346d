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
        let mut handing = Handing {
            session: self,
            call,
            left: declared.bounds,
            references: 0,
            parts: Vec::new(),
            folder: None,
        };
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

    /// How many bytes the reference names: of a payload exactly, of a block those of its large parts.
    fn size_of(&self, todo: &Todo, reference: &Reference) -> Result<u64, Error> {
        let from = self.locate(todo, reference)?;
        match reference {
            Reference::Payload { n, .. } => Ok(self.payloads.meta(&from, *n)?.bytes),
            Reference::Block(id) => {
                let block = self.blocks.block(&from, id.n())?;
                let range = block.map_or(0..0, |block| block.range.as_u64());
                let stored = self.blocks.messages(&from, range)?;
                let offloads = stored.iter().flat_map(|message| &message.offloads);
                Ok(offloads.map(|offload| offload.bytes).sum())
            }
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
    /// What may still be handed over.
    left: Bounds,
    /// How many references there were so far, each as often as it stands there.
    references: usize,
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
        self.references += 1;
        if self.references > TakesReferences::MAX_REFERENCES {
            let most = TakesReferences::MAX_REFERENCES;
            let what = format!("A call takes at most {most} references; make several calls.");
            return Err(Trouble::Mistake(what));
        }
        let (content, replaced) = match form {
            HandedAs::Bytes if self.is_handed(key, &reference) => return Ok(quoted(text)),
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
                if self.is_handed(key, &reference) {
                    return Ok(replaced);
                }
                (HandedContent::Text(text), replaced)
            }
            HandedAs::Path => {
                let path = match self.file_of(&reference) {
                    Some(path) => path,
                    None => self.file(&reference, &asked)?,
                };
                let replaced = quoted(&path.to_string_lossy());
                if self.is_handed(key, &reference) {
                    return Ok(replaced);
                }
                (HandedContent::Path(path), replaced)
            }
        };
        self.parts.push(HandedPart { argument: key.to_owned(), reference, content });
        Ok(replaced)
    }

    /// Whether a part of this argument holds what the reference names.
    fn is_handed(&self, key: &str, reference: &Reference) -> bool {
        self.parts.iter().any(|part| part.argument == key && part.reference == *reference)
    }

    /// The file that was written for the reference, if there is one.
    fn file_of(&self, reference: &Reference) -> Option<PathBuf> {
        let part = self.parts.iter().filter(|part| part.reference == *reference);
        part.into_iter().find_map(|part| match &part.content {
            HandedContent::Path(path) => Some(path.clone()),
            _ => None,
        })
    }

    fn bytes(&mut self, reference: &Reference, asked: &str) -> Result<Vec<u8>, Trouble> {
        let what = || {
            format!(
                "{asked} is too large to be handed over in memory: a call is handed at most {} of \
                 bytes and text. Give fewer references, or use a tool that takes files.",
                megabytes(self.left.memory)
            )
        };
        let mut out = Bounded { out: Vec::new(), left: self.left.memory, is_full: false };
        self.write(reference, asked, &mut out).map_err(|trouble| match trouble {
            Trouble::Mistake(_) if out.is_full => Trouble::Mistake(what()),
            trouble => trouble,
        })?;
        let Bounded { out, left, .. } = out;
        self.left.memory = left;
        Ok(out)
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
        let mut out = Bounded { out: BufWriter::new(file), left: self.left.files, is_full: false };
        self.write(reference, asked, &mut out)?;
        self.left.files = out.left;
        out.flush().and_then(|()| seal(&path)).map_err(|source| failed(&path, source))?;
        Ok(path)
    }

    /// Writes what the reference names, if there is room for it: that is known before it is read, of a
    /// block about, and then seen.
    fn write(
        &self,
        reference: &Reference,
        asked: &str,
        out: &mut Bounded<impl Write>,
    ) -> Result<(), Trouble> {
        let Session { memory, todo, .. } = self.session;
        // Inside the own todo a wrong check is told apart, so that a slip can be mended.
        if let Reference::Payload { n, check, todo: of } = reference
            && of == todo.id()
            && let Err(error) = memory.payloads.resolve(todo, &PayloadRef::local(*n, *check))
        {
            return Err(told(error.into(), asked));
        }
        let size = memory.size_of(todo, reference).map_err(|error| told(error, asked))?;
        out.is_full = size > out.left;
        if !out.is_full {
            match memory.write_reference(todo, reference, &mut *out) {
                Ok(_) => return Ok(()),
                Err(_) if out.is_full => {}
                Err(error) => return Err(told(error, asked)),
            }
        }
        let what = format!("{asked} is more than one call is handed. Give fewer references.");
        Err(Trouble::Mistake(what))
    }
}

/// A writer that takes so many bytes and no more.
struct Bounded<W> {
    out: W,
    left: u64,
    /// Whether there was more than it takes.
    is_full: bool,
}

impl<W: Write> Write for Bounded<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_full = bytes.len() as u64 > self.left;
        if self.is_full {
            return Err(io::Error::other("there is no room left"));
        }
        let written = self.out.write(bytes)?;
        self.left -= written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
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

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1 << 20))
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

//! The arguments of one call, and what their references name.

use super::files::{Bounded, private_file, seal};
use super::{Bounds, HandedAs, HandedContent, HandedPart, TakesReferences};
use crate::error::Failure;
use crate::{Error, Session};
use foldback_backend_store::Error as PayloadError;
use foldback_blockstore::Error as BlockError;
use foldback_core::{PayloadRef, Reference, ToolCall};
use serde_json::value::RawValue;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A call whose references are being looked up.
pub(super) struct Handing<'a> {
    session: &'a Session,
    call: &'a ToolCall,
    /// What may still be handed over.
    left: Bounds,
    /// How many references there were so far, each as often as it stands there.
    references: usize,
    pub(super) parts: Vec<HandedPart>,
    pub(super) folder: Option<TempDir>,
}

/// Why a call is not handed over.
pub(super) enum Trouble {
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

impl<'a> Handing<'a> {
    pub(super) fn new(session: &'a Session, call: &'a ToolCall, left: Bounds) -> Self {
        Self { session, call, left, references: 0, parts: Vec::new(), folder: None }
    }

    /// The call's arguments with what replaces the references; everything else stays as it stands.
    pub(super) fn arguments(&mut self, declared: &TakesReferences) -> Result<String, Trouble> {
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
            return Err(trouble_with(asked, error.into()));
        }
        let size = memory.size_of(todo, reference).map_err(|error| trouble_with(asked, error))?;
        out.is_full = size > out.left;
        if !out.is_full {
            match memory.write_reference(todo, reference, &mut *out) {
                Ok(_) => return Ok(()),
                Err(_) if out.is_full => {}
                Err(error) => return Err(trouble_with(asked, error)),
            }
        }
        let what = format!("{asked} is more than one call is handed. Give fewer references.");
        Err(Trouble::Mistake(what))
    }
}
/// An error that is the model's own, or one of a single block or payload, as a sentence for the model.
fn trouble_with(asked: &str, error: Error) -> Trouble {
    let what = match error.failure() {
        Failure::NoReference { .. } | Failure::Payloads(PayloadError::NotFound { .. }) => {
            format!("Nothing is stored under {asked:?} in this task. {NEXT}")
        }
        Failure::Payloads(PayloadError::WrongCheck { meant, .. }) => {
            format!("{asked} does not exist: part {} of this task is {meant}.", meant.n)
        }
        Failure::Payloads(PayloadError::Corrupt { .. })
        | Failure::Blocks(BlockError::Corrupt { .. })
        | Failure::Damaged { .. } => {
            format!("{asked} is damaged and cannot be handed over. Others can be.")
        }
        _ => return Trouble::Failure(error),
    };
    Trouble::Mistake(what)
}

fn failed(path: &Path, source: io::Error) -> Trouble {
    Trouble::Failure(Failure::Io { path: path.to_owned(), source }.into())
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
    fn what_was_asked_for_is_quoted_in_short() {
        assert_eq!(shortened(&"长".repeat(100)).chars().count(), 81);
        assert_eq!(shortened("store://1-abcd"), "store://1-abcd");
    }
}

//! `foldback load`.

mod lines;
mod payload_json;

use super::TodoArg;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::block::range;
use crate::output::json::Exact;
use crate::output::terminal::{Form, Shown};
use crate::output::{Output, message, style};
use crate::{outfile, store};
use clap::Args;
use foldback::{AuditEvent, ErrorKind, Memory, Todo};
use foldback_backend_store::{Error as PayloadError, Excerpt, Meta, Position};
use foldback_core::{
    Block, BlockHeader, BlockId, CloseReason, Message, PayloadRef, Reference, thousands,
};
use lines::{Lines, lines_of};
use payload_json::PayloadJson;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Bring back a block or a payload, word for word
///
/// A block is printed message by message, each exactly as it was recorded. A payload is printed byte for byte, so that
/// it can be redirected into a file; with --lines or --match, only those lines. What another todo has granted is loaded
/// by its full name (b_<todo>_<nnn>, store://<todo>/<n>-<check>).
///
/// With --out, the file receives a payload's bytes, in a few megabytes of memory whatever the size, or a block's
/// messages as JSON Lines, one message in memory at a time; it appears once it is complete. `-` is not a file: without
/// --out, a payload's bytes go to stdout.
///
/// JSON, for a block: {"kind": "block", "header": {...}, "messages": [...]}; for a payload: {"kind": "payload", "ref",
/// "bytes", "first_line", "last_line", "text" or "base64", "next"}; `bytes` is the size of the whole payload, and
/// `next` the place to continue at if the answer was cut short, as --lines and --from take it. With --out: {"kind":
/// "file", "ref", "bytes", "path"}.
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback load --todo coding-session b_coding-session_003
  foldback load --todo coding-session store://2-k4qd > config.toml
  foldback load --todo coding-session store://2-k4qd --out config.toml
  foldback load --todo coding-session store://5-ab2c --lines 100-140
  foldback load --todo coding-session store://5-ab2c --match 'FAILED|Error'")]
pub(crate) struct Load {
    #[command(flatten)]
    todo: TodoArg,

    /// A block's id (b_...) or a payload's reference (store://...), as `blocks`, `search` and `view` show it; a payload's
    /// may name its lines: store://5-ab2c#lines=100-140
    #[arg(value_name = "REF")]
    reference: String,

    /// Only these lines of a payload: A-B, A- or A, counted from 1
    #[arg(long, value_name = "A-B", value_parser = Lines::from_str)]
    lines: Option<Lines>,

    /// Only lines of a payload that match this regular expression
    #[arg(long = "match", value_name = "RE", conflicts_with = "lines")]
    pattern: Option<String>,

    /// With --match, this many lines of context around each match
    #[arg(long, value_name = "N", default_value_t = 0, requires = "pattern")]
    context: usize,

    /// With --match, begin at this line
    #[arg(long, value_name = "LINE", requires = "pattern")]
    from: Option<Position>,

    /// Print about this many tokens of a payload at most
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,

    /// Write everything into this file, for tools that read files
    #[arg(long, value_name = "FILE", conflicts_with_all = ["lines", "pattern", "max_tokens"])]
    out: Option<PathBuf>,
}

#[derive(Serialize)]
struct BlockJson<'a> {
    kind: &'static str,
    header: &'a BlockHeader,
    messages: Vec<Exact<&'a str>>,
}

#[derive(Serialize)]
struct FileJson {
    kind: &'static str,
    r#ref: String,
    bytes: u64,
    path: String,
}

/// What a reference leads to, read but not yet shown.
enum Found {
    Block(Box<Block>, Vec<Message>),
    /// Lines of a payload.
    Excerpt(PayloadRef, Meta, Excerpt),
    /// A whole payload.
    Bytes(PayloadRef, Meta, Vec<u8>),
    /// A whole payload that is read while it is printed.
    Payload(Todo, Meta),
}

impl Load {
    pub(crate) fn run(mut self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let (reference, lines) = lines_of(&self.reference).map_err(CliError::Usage)?;
        let reference = Reference::parse_in(&self.todo.todo, reference)
            .map_err(|error| CliError::Usage(error.to_string()))?;
        if lines.is_some() {
            if self.lines.is_some() || self.pattern.is_some() || self.out.is_some() {
                let what = "a reference with #lines= excludes --lines, --match and --out";
                return Err(CliError::Usage(what.to_owned()));
            }
            self.lines = lines;
        }
        let memory = store::open_for_reading(globals)?;
        let references = [reference.to_string()];
        // Content is given only if the access is recorded.
        let noted = |is_given: bool| {
            memory.audit().note(&AuditEvent {
                todo: Some(&self.todo.todo),
                what: "load",
                references: &references,
                query: self.pattern.as_deref(),
                given: if is_given { references.as_slice() } else { &[] },
                is_error: !is_given,
            })
        };
        if let Some(path) = &self.out {
            // What is then written is noted by the memory.
            let todo = self.check(&memory, &reference).or_else(|error| {
                noted(false)?;
                Err(error)
            })?;
            return Self::file(&memory, &todo, &reference, path, out);
        }
        let found = match &reference {
            Reference::Block(id) => self.block(&memory, id),
            Reference::Payload { n, check, .. } => {
                self.payload(&memory, &reference, &PayloadRef::local(*n, *check), out)
            }
        };
        noted(found.as_ref().is_ok_and(|found| !self.is_without_match(found)))?;
        self.print(&memory, found?, out)
    }

    /// Resolves the todo that the reference leads to.
    fn locate(&self, memory: &Memory, reference: &Reference) -> Result<Todo, CliError> {
        let todo = &self.todo.todo;
        // A missing todo is reported differently from a reference that leads nowhere.
        memory.find(todo)?;
        memory.references().locate(todo, reference).map_err(|error| match reference {
            _ if error.kind() != ErrorKind::NotFound => error.into(),
            // Nothing that another todo has not granted is revealed, not even whether it exists.
            Reference::Block(id) => self.no_block(id),
            Reference::Payload { .. } => {
                PayloadError::NotFound { reference: reference.to_string() }.into()
            }
        })
    }

    /// Returns the open messages of the todo, if this is their id.
    fn open_block(&self, memory: &Memory, id: &BlockId) -> Result<Option<Block>, CliError> {
        if *id.todo() != self.todo.todo {
            return Ok(None);
        }
        Ok(memory.open_block(id.todo())?.filter(|open| open.header.block_id == *id))
    }

    fn no_block(&self, id: &BlockId) -> CliError {
        let todo = &self.todo.todo;
        CliError::NotFound(format!(
            "todo {todo} has no block {id}; `foldback blocks --todo {todo}` lists its blocks"
        ))
    }

    /// Returns the todo, if the reference leads somewhere from it.
    fn check(&self, memory: &Memory, reference: &Reference) -> Result<Todo, CliError> {
        let todo = memory.find(&self.todo.todo)?;
        if let Reference::Payload { n, check, todo: of } = reference
            && of == todo.id()
        {
            // Within the same todo, a wrong check is reported as such.
            memory.payloads().resolve(&todo, &PayloadRef::local(*n, *check))?;
        }
        self.locate(memory, reference)?;
        Ok(todo)
    }

    fn file(
        memory: &Memory,
        todo: &Todo,
        reference: &Reference,
        path: &Path,
        out: &Output,
    ) -> Result<Outcome, CliError> {
        let bytes = outfile::write(path, |file| {
            Ok(memory.references().write(todo.id(), reference, file)?)
        })?;
        if out.is_json() {
            let path = path.display().to_string();
            out.json(&FileJson { kind: "file", r#ref: reference.to_string(), bytes, path })?;
        } else {
            let bytes = thousands(bytes);
            out.note(format_args!("{}: {bytes} bytes of {reference}", path.display()));
        }
        Ok(Outcome::Done)
    }

    fn block(&self, memory: &Memory, id: &BlockId) -> Result<Found, CliError> {
        if self.lines.is_some() || self.pattern.is_some() || self.max_tokens.is_some() {
            let what = "--lines, --match and --max-tokens are for payloads (store://...); a block is always printed whole";
            return Err(CliError::Usage(what.to_owned()));
        }
        let block = match self.open_block(memory, id)? {
            Some(open) => open,
            None => {
                let from = self.locate(memory, &Reference::Block(id.clone()))?;
                memory.block(from.id(), id)?.ok_or_else(|| self.no_block(id))?
            }
        };
        let messages = memory.messages(&block.header.todo_id, block.range.as_u64())?;
        Ok(Found::Block(Box::new(block), messages))
    }

    fn payload(
        &self,
        memory: &Memory,
        reference: &Reference,
        local: &PayloadRef,
        out: &Output,
    ) -> Result<Found, CliError> {
        let todo = if *reference.todo() == self.todo.todo {
            memory.find(&self.todo.todo)?
        } else {
            self.locate(memory, reference)?
        };
        let payloads = memory.payloads();
        let meta = payloads.resolve(&todo, local)?;
        let name = if *todo.id() == self.todo.todo {
            meta.reference()
        } else {
            PayloadRef { todo: Some(todo.id().clone()), ..meta.reference() }
        };
        let budget = self.max_tokens.unwrap_or(usize::MAX);
        let excerpt = match (&self.pattern, self.lines) {
            (Some(pattern), _) => {
                let from = self.from.unwrap_or_else(|| Position::from(1));
                payloads.matching(&todo, meta.n, pattern, self.context, budget, from)?
            }
            (None, Some(Lines { first, last })) => {
                payloads.lines(&todo, meta.n, first, last, budget)?
            }
            // A budget without lines starts at the first line.
            (None, None) if self.max_tokens.is_some() => {
                payloads.lines(&todo, meta.n, 1, u64::MAX, budget)?
            }
            (None, None) if out.is_json() => {
                let bytes = payloads.get(&todo, meta.n)?;
                return Ok(Found::Bytes(name, meta, bytes));
            }
            (None, None) => return Ok(Found::Payload(todo, meta)),
        };
        Ok(Found::Excerpt(name, meta, excerpt))
    }

    /// Returns whether no line matches the pattern.
    fn is_without_match(&self, found: &Found) -> bool {
        self.pattern.is_some()
            && matches!(found, Found::Excerpt(_, _, excerpt) if excerpt.matches == 0)
    }

    fn print(&self, memory: &Memory, found: Found, out: &Output) -> Result<Outcome, CliError> {
        let outcome = Outcome::clean_if(!self.is_without_match(&found));
        match found {
            Found::Block(block, messages) => print_block(&block, &messages, out)?,
            Found::Excerpt(name, meta, excerpt) => self.excerpt(&name, &meta, &excerpt, out)?,
            Found::Bytes(name, meta, bytes) => {
                let whole = (1.min(meta.lines), meta.lines);
                out.json(&PayloadJson::new(&name, &meta, bytes, whole, None))?;
            }
            Found::Payload(todo, meta) => {
                let mut stdout = Shown::stdout(Form::Bytes);
                memory.payloads().write_to(&todo, meta.n, &mut stdout)?;
                stdout.end().map_err(CliError::Output)?;
            }
        }
        Ok(outcome)
    }

    fn excerpt(
        &self,
        name: &PayloadRef,
        meta: &Meta,
        excerpt: &Excerpt,
        out: &Output,
    ) -> Result<(), CliError> {
        let mut bytes = Vec::new();
        for run in &excerpt.runs {
            // Separate runs of lines begin on lines of their own.
            if bytes.last().is_some_and(|last| *last != b'\n') {
                bytes.push(b'\n');
            }
            bytes.extend_from_slice(&run.content);
        }
        let lines = (excerpt.first_line(), excerpt.last_line());
        if out.is_json() {
            out.json(&PayloadJson::new(name, meta, bytes, lines, excerpt.next))?;
        } else {
            let open = bytes.last().is_some_and(|last| *last != b'\n');
            out.bytes(&bytes)?;
            if open {
                out.bytes(b"\n")?;
            }
            if let Some(next) = excerpt.next {
                out.note(format_args!(
                    "there is more, from line {next} of {}",
                    excerpt.total_lines
                ));
            } else if self.pattern.is_some() && excerpt.matches == 0 {
                out.note("no line matches; the pattern is a case-sensitive regular expression");
            }
        }
        Ok(())
    }
}

fn print_block(block: &Block, messages: &[Message], out: &Output) -> Result<(), CliError> {
    if out.is_json() {
        let messages = messages.iter().map(|message| Exact(message.json())).collect();
        return out.json(&BlockJson { kind: "block", header: &block.header, messages });
    }
    out.line(format!(
        "{} · messages {} · {} · {}",
        style::paint(style::NAME, &block.header.block_id),
        range(block.range),
        block.header.block_type,
        match block.close_reason {
            CloseReason::Open => "still open".to_owned(),
            reason => format!("closed by {reason}"),
        }
    ))?;
    for (seq, shown) in block.range.iter().zip(messages) {
        out.line("")?;
        message::print(out, seq.0, shown, "")?;
    }
    Ok(())
}

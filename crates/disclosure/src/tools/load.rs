//! `load`: the text of a block, or of a part that is stored outside.

use super::argument::{Argument, ArgumentKind, Arguments};
use super::block_text::BlockText;
use super::load_words::{
    begun, end_line, head, no_such_place, nothing_matches, tell_escapes, tell_rest,
};
use super::page::{page, pattern};
use super::payload_origin::PayloadOrigin;
use super::{Answer, RecallSource, Tool, not_searched, search_block};
use crate::Error;
use crate::cut::one_line;
use crate::ledger::shown_id;
use crate::marks::Origin;
use crate::quoted_text::QuotedText;
use foldback_backend_store::{Error as PayloadError, Excerpt, Meta, Position, preview};
use foldback_blockstore::Error as BlockError;
use foldback_core::{
    BlockId, PayloadKind, PayloadRef, Reference, Source, ToolDefinition, thousands,
};

pub(crate) const TOOL: Tool = Tool {
    name: "load",
    title: "Load a block or a stored part",
    description: "Returns the text of a block (b_...) or a stored part (store://...) word for word, \
        long ones in pages.",
    arguments: &[
        Argument {
            name: "ref",
            help: "As it was shown.",
            kind: ArgumentKind::Text,
            required: true,
        },
        Argument {
            name: "lines",
            help: "\"10-40\", or \"10-\" for all from line 10 on.",
            kind: ArgumentKind::Lines,
            required: false,
        },
        Argument {
            name: "match",
            help: "A regular expression: only lines that match, and those around them.",
            kind: ArgumentKind::Text,
            required: false,
        },
    ],
    example: r#"{"ref": "store://3-k4qd", "lines": "1-80"}"#,
    run,
};

/// The tokens of [`shortest`] as the chat-completions API takes it, counted with o200k.
pub(crate) const SHORTEST_TOKENS: u64 = 35;

/// Returns the tool in its shortest form, for prompts in which every token counts: what it leaves unsaid is said by the
/// notices and the ledger that name it, and by its answers. It takes the same arguments; of those that are not in its
/// schema, mostly `lines` is used, which its description names.
pub(crate) fn shortest() -> ToolDefinition {
    ToolDefinition {
        name: TOOL.name.to_owned(),
        description: "Text of ref, lines".to_owned(),
        parameters: r#"{"type":"object","properties":{"ref":{"type":"string"}}}"#.to_owned(),
    }
}

/// The greatest number of tokens of an answer's text.
const BUDGET: usize = 4_000;

/// Lines shown around a match.
const CONTEXT: usize = 2;

/// How many first bytes of a binary payload are examined.
const BINARY_HEAD: u64 = 512;

fn run(recall: &RecallSource<'_>, arguments: &Arguments) -> Result<Answer, Error> {
    let asked = arguments.text("ref").unwrap_or_default().trim();
    let own = recall.todo.id();
    let Ok(reference) = Reference::parse_in(own, asked) else {
        let are_words = are_words(asked);
        let (found, not_searched) = match are_words {
            true => search_block::search(recall, asked)?,
            false => <_>::default(),
        };
        let searched = if are_words { ", and no block matches these words" } else { "" };
        let unsearched = match not_searched.is_empty() {
            true => String::new(),
            false => format!(" {}", not_searched::line(&not_searched)),
        };
        return Ok(found.unwrap_or_else(|| {
            let answer = Answer::error(
                TOOL.name,
                &format!(
                    "{:?} is not a reference{searched}. A block looks like b_<todo>_<nnn>, a stored \
                     part like store://<n>-<check>; search_block and list_blocks show them.{unsearched}",
                    one_line(asked, 60)
                ),
            );
            answer.without(not_searched)
        }));
    };
    if reference.todo() == own {
        return Loading { recall, arguments, asked, is_own: true }.load(&reference);
    }
    let granted = match recall.grants {
        Some(grants) => grants.granted(recall.todo, &reference)?,
        None => None,
    };
    let Some(other) = granted else { return Ok(not_found(asked)) };
    let recall = &RecallSource { todo: &other, open: None, view: None, ..*recall };
    Loading { recall, arguments, asked, is_own: false }.load(&reference)
}

/// Runs `load` for a full reference that may lead into any todo: into the one that `recall` reads,
/// which is nobody's own, so that everything has its full name.
///
/// # Errors
/// When the store fails.
pub fn load_elsewhere(
    recall: &RecallSource<'_>,
    reference: &Reference,
    arguments: &str,
) -> Result<Answer, Error> {
    let arguments = match TOOL.read(arguments) {
        Ok(arguments) => arguments,
        Err(answer) => return Ok(*answer),
    };
    let asked = arguments.text("ref").unwrap_or_default().trim();
    Loading { recall, arguments: &arguments, asked, is_own: false }.load(reference)
}

/// Returns whether a text that is not a reference is meant as words to search for: they begin with a
/// letter or a digit, are on one line, and are not a path that names a drive or leads back.
fn are_words(asked: &str) -> bool {
    let mut parts = asked.trim_end_matches('/').split(['/', '\\']);
    asked.starts_with(char::is_alphanumeric)
        && !asked.starts_with("b_")
        && !asked.contains("://")
        && !asked.contains(char::is_control)
        && asked.get(1..2) != Some(":")
        && !parts.any(|part| matches!(part, "" | "." | ".."))
}

/// One call, and the todo that its reference leads to.
#[derive(Clone, Copy)]
struct Loading<'a> {
    /// The source to read from.
    recall: &'a RecallSource<'a>,
    arguments: &'a Arguments,
    /// The reference as it was requested.
    asked: &'a str,
    /// Whether it leads into the caller's own todo. What comes from another one has its full name,
    /// and is not a quote: it is kept by value, so that it outlives the other todo.
    is_own: bool,
}

/// What is missing and what belongs to another todo are reported alike.
fn not_found(asked: &str) -> Answer {
    Answer::error(
        TOOL.name,
        &format!(
            "Nothing is stored under {:?} in this task. Use a reference as it was shown; \
             search_block and list_blocks show them.",
            one_line(asked, 80)
        ),
    )
}

impl Loading<'_> {
    fn load(self, reference: &Reference) -> Result<Answer, Error> {
        let answer = match reference {
            Reference::Block(id) => self.block(id)?,
            Reference::Payload { n, check, .. } => self.payload(&PayloadRef::local(*n, *check))?,
        };
        let is_foreign = !self.is_own && !answer.is_error;
        Ok(Answer { is_foreign, ..answer })
    }

    fn block(self, id: &BlockId) -> Result<Answer, Error> {
        let Self { recall, arguments, asked, is_own } = self;
        let damaged = |detail: &str| {
            let detail = one_line(detail, 120);
            Answer::error(
                TOOL.name,
                &format!("The block is damaged ({detail}). Others can be loaded."),
            )
        };
        let block = match recall.block(id) {
            Ok(Some(block)) => block,
            Ok(None) => return Ok(not_found(asked)),
            Err(BlockError::Corrupt { detail, .. }) => return Ok(damaged(&detail)),
            Err(error) => return Err(error.into()),
        };
        let text = if is_own {
            BlockText::read(recall, &block)
        } else {
            BlockText::read_elsewhere(recall, &block)
        };
        let text = match text {
            Ok(text) => text,
            Err(BlockError::Corrupt { detail, .. }) => return Ok(damaged(&detail)),
            Err(error) => return Err(error.into()),
        };
        let body = text.body();
        let id = if is_own { shown_id(id) } else { id.to_string() };
        let matching = match arguments.text("match").map(pattern).transpose() {
            Ok(matching) => matching,
            Err(wrong) => return Ok(Answer::error(TOOL.name, &wrong)),
        };
        let lines = arguments.lines("lines").unwrap_or((Position::from(1), u64::MAX));
        let page = match page(body.text(), lines, matching.as_ref(), BUDGET, recall.tokens) {
            Ok(page) => page,
            Err(has) => {
                let total = body.text().lines().count() as u64;
                let message = no_such_place(&id, lines.0, &has, total);
                return Ok(Answer::error(TOOL.name, &message));
            }
        };
        let mut answer = QuotedText::default();
        let Some((first, _)) = page.runs.first() else {
            answer.push(&nothing_matches(&id, arguments));
            return Ok(Answer::of(answer));
        };
        let first = begun(lines.0, *first);
        let until = (page.last, page.total);
        let shown = (matching.is_some(), !text.leaves_out);
        answer.push(&head(&id, first, until, page.next, shown));
        answer.push(&text.open());
        for (line, run) in &page.runs {
            if matching.is_some() {
                answer.push(&format!("[line {line}]\n"));
            }
            answer.push(&text.goes_on(&body, run.start).unwrap_or_default());
            answer.append_part(&body, run.clone());
            end_line(&mut answer);
        }
        answer.push(&text.close());
        tell_escapes(&mut answer);
        let next = tell_rest(&mut answer, &id, arguments, page.next);
        let payloads = block.header.data_ids.iter().map(|name| self.full(name));
        let references = std::iter::once(id).chain(payloads).collect();
        Ok(Answer { next, ..Answer::of(answer).showing(references) })
    }

    fn payload(self, reference: &PayloadRef) -> Result<Answer, Error> {
        let Self { recall, arguments, asked, is_own } = self;
        let meta = match recall.payloads.resolve(recall.todo, reference) {
            Ok(meta) => meta,
            Err(error) => return refusal(error, asked),
        };
        let todo = (!is_own).then(|| recall.todo.id().clone());
        let name = PayloadRef { todo, ..meta.reference() }.to_string();
        if meta.kind == PayloadKind::Binary {
            return self.binary(&meta, &name);
        }
        let (from, last) = arguments.lines("lines").unwrap_or((Position::from(1), u64::MAX));
        let matching = arguments.text("match");
        let excerpt = match matching {
            Some(pattern) => {
                recall.payloads.matching(recall.todo, meta.n, pattern, CONTEXT, BUDGET, from)
            }
            None => recall.payloads.lines(recall.todo, meta.n, from, last, BUDGET),
        };
        let excerpt = match excerpt {
            Ok(excerpt) => excerpt,
            Err(PayloadError::BadRange { has, .. }) => {
                let message = no_such_place(&name, from, &has, meta.lines);
                return Ok(Answer::error(TOOL.name, &message));
            }
            Err(error) => return refusal(error, &name),
        };
        let mut answer = QuotedText::default();
        if excerpt.runs.is_empty() && matching.is_some() {
            answer.push(&nothing_matches(&name, arguments));
            let next = tell_rest(&mut answer, &name, arguments, excerpt.next);
            return Ok(Answer { next, ..Answer::of(answer).showing(vec![name]) });
        }
        let first = begun(from, excerpt.first_line());
        let until = (excerpt.last_line(), excerpt.total_lines);
        answer.push(&head(&name, first, until, excerpt.next, (matching.is_some(), true)));
        let source = is_own.then_some(Source::Payload(meta.n));
        self.in_marks(&mut answer, &meta, &name, |answer| {
            push_runs(answer, source, &excerpt, matching.is_some());
        })?;
        tell_escapes(&mut answer);
        let next = tell_rest(&mut answer, &name, arguments, excerpt.next);
        Ok(Answer { next, ..Answer::of(answer).showing(vec![name]) })
    }

    fn binary(self, meta: &Meta, name: &str) -> Result<Answer, Error> {
        let Self { recall, .. } = self;
        let end = meta.bytes.min(BINARY_HEAD);
        let bytes = match recall.payloads.read_range(recall.todo, meta.n, 0..end) {
            Ok(bytes) => bytes,
            Err(error) => return refusal(error, name),
        };
        let mut answer = QuotedText::default();
        answer.push(&format!(
            "[load: {name}, {} bytes of binary data]\nThe content is not text; it begins:\n",
            thousands(meta.bytes)
        ));
        self.in_marks(&mut answer, meta, name, |answer| {
            answer.push_quote(&preview(&bytes, meta.kind, 200, recall.tokens), None);
            end_line(answer);
        })?;
        answer.push("Pass the reference to a tool that reads such data.");
        Ok(Answer::of(answer).showing(vec![name.to_owned()]))
    }

    /// Returns the name of one of the todo's payloads, as it can be loaded from where the answer is read.
    fn full(self, name: &str) -> String {
        let own = self.recall.todo.id();
        match Reference::parse_in(own, name) {
            Ok(reference) if !self.is_own => reference.to_string(),
            _ => name.to_owned(),
        }
    }

    /// Adds what `push` adds of a payload, between marks that state its origin.
    fn in_marks(
        self,
        answer: &mut QuotedText,
        meta: &Meta,
        name: &str,
        push: impl FnOnce(&mut QuotedText),
    ) -> Result<(), Error> {
        let Self { recall, is_own, .. } = self;
        let PayloadOrigin { from, trust } = match is_own {
            true => PayloadOrigin::own(recall, meta)?,
            false => PayloadOrigin::elsewhere(recall, meta)?,
        };
        let kind = meta.kind.to_string();
        let (payload, kind, from) = (Some(name), Some(kind.as_str()), from.as_deref());
        let origin = Origin { payload, kind, from, trust, ..Origin::default() };
        answer.push(&format!("{}\n", recall.marks.open(&origin)));
        push(answer);
        answer.push(&format!("{}\n", recall.marks.close()));
        Ok(())
    }
}

fn push_runs(answer: &mut QuotedText, source: Option<Source>, excerpt: &Excerpt, numbered: bool) {
    for run in &excerpt.runs {
        if numbered {
            answer.push(&format!("[line {}]\n", run.first_line));
        }
        // Text that is not UTF-8 reads differently from what is stored, so it cannot be quoted.
        match std::str::from_utf8(&run.content) {
            Ok(text) => {
                answer.push_quote(text, source.map(|source| (source, run.bytes.start)));
            }
            Err(_) => answer.push_quote(&run.text(), None),
        }
        end_line(answer);
    }
}

/// Answers a mistake of the model or damage of one payload; any other failure is an error.
fn refusal(error: PayloadError, asked: &str) -> Result<Answer, Error> {
    let answer = |text: String| Ok(Answer::error(TOOL.name, &text));
    match error {
        PayloadError::NotFound { .. } => Ok(not_found(asked)),
        PayloadError::WrongCheck { reference, meant } => answer(format!(
            "{reference} does not exist: part {} of this task is {meant}. Call load with \
             {{\"ref\": \"{meant}\"}} if you mean that.",
            meant.n
        )),
        PayloadError::BadPattern { why, .. } => {
            answer(format!("The pattern in \"match\" cannot be used: {}", one_line(&why, 300)))
        }
        PayloadError::Corrupt { what, .. } => answer(format!(
            "{asked} is damaged ({}). Other parts can be loaded.",
            one_line(&what, 120)
        )),
        error => Err(error.into()),
    }
}

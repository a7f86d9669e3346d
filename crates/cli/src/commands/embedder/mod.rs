//! `foldback embedder`.

mod calibrate;
mod choose;
mod scale;

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::store;
use calibrate::Calibrate;
use choose::Use;
use clap::{Args, Subcommand};
use foldback::embedder::Choice;
use foldback::{EmbeddingProgress, Memory};
use foldback_core::thousands;
use serde::Serialize;

/// Show or change the embedder, or measure what a model's cosines mean
#[derive(Args)]
pub(crate) struct Embedder {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Show(Show),
    Use(Use),
    Calibrate(Calibrate),
}

/// Show the store's embedder, and how many messages have its vectors
///
/// JSON: {"embedder", "model_id", "dim", "same_topic", "answering", "calibrated", "done", "messages", "trouble",
/// "last_error"}; `done` of `messages` have vectors of this model or nothing to embed, `trouble` says why the embedder
/// is not the intended one, `last_error` which message it last refused.
#[derive(Args)]
struct Show {}

#[derive(Serialize)]
struct EmbedderJson {
    embedder: String,
    model_id: String,
    dim: usize,
    same_topic: f32,
    answering: f32,
    done: u64,
    messages: u64,
}

#[derive(Serialize)]
struct ShowJson {
    #[serde(flatten)]
    embedder: EmbedderJson,
    calibrated: bool,
    trouble: Option<String>,
    last_error: Option<String>,
}

impl Embedder {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        match self.action {
            Action::Show(_) => show(globals, out),
            Action::Use(action) => action.run(globals, out),
            Action::Calibrate(action) => action.run(globals, out),
        }
    }
}

fn show(globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
    let memory = store::open_for_search(globals)?;
    // A damaged record was reported on opening.
    let own = memory.embedding().own().ok().flatten();
    let mut shown =
        Shown::of(&memory, own.as_ref().map(|own| own.choice.clone()).unwrap_or_default());
    // The stored choice is shown even if the embedder cannot be loaded.
    if let (Some(own), Some(_)) = (own, memory.embedding().trouble()) {
        (shown.model_id, shown.dim) = (own.model_id, own.dim);
    }
    let measured =
        memory.embedding().scale(&shown.model_id).ok().flatten().filter(|scale| scale.is_sound());
    if let Some(scale) = measured {
        (shown.same_topic, shown.answering) = (scale.same_topic, scale.answering);
    }
    let progress = memory.embedding().progress()?;
    let failures = memory.embedding().failures()?;
    if out.is_json() {
        out.json(&ShowJson {
            embedder: EmbedderJson::of(&shown, progress),
            calibrated: measured.is_some(),
            trouble: memory.embedding().trouble().map(|trouble| trouble.to_string()),
            last_error: failures.map(|failures| failures.last),
        })?;
        return Ok(Outcome::Done);
    }
    print(out, &shown, progress)?;
    if measured.is_none() && matches!(shown.choice, Choice::Model(_)) {
        out.note("its scale was not measured in this store: `foldback embedder calibrate`");
    }
    if let Some(failures) = failures {
        let refused = text::count(failures.messages, "message");
        out.note(format_args!("it refused {refused}; the last error: {}", failures.last));
    }
    Ok(Outcome::Done)
}

/// An embedder as shown to a person.
struct Shown {
    choice: Choice,
    model_id: String,
    dim: usize,
    same_topic: f32,
    answering: f32,
}

impl Shown {
    fn of(memory: &Memory, choice: Choice) -> Self {
        let embedder = memory.embedding().embedder();
        Self {
            choice,
            model_id: embedder.model_id().to_owned(),
            dim: embedder.dim(),
            same_topic: embedder.same_topic(),
            answering: embedder.answering(),
        }
    }
}

impl EmbedderJson {
    fn of(shown: &Shown, progress: EmbeddingProgress) -> Self {
        let Shown { choice, model_id, dim, same_topic, answering } = shown;
        Self {
            embedder: choice.to_string(),
            model_id: model_id.clone(),
            dim: *dim,
            same_topic: *same_topic,
            answering: *answering,
            done: progress.done,
            messages: progress.messages,
        }
    }
}

fn print(out: &Output, shown: &Shown, progress: EmbeddingProgress) -> Result<(), CliError> {
    let choice = shown.choice.to_string();
    out.line(format!(
        "{}: {}",
        style::paint(style::NAME, text::one_line(&choice)),
        text::one_line(&shown.model_id)
    ))?;
    if shown.choice == Choice::WordsOnly {
        return out.line("  searches use words alone");
    }
    out.line(format!(
        "  {} numbers a vector; same topic at cosine {:.2}, an answer at {:.2}",
        shown.dim, shown.same_topic, shown.answering
    ))?;
    out.line(format!(
        "  {} of {} embedded by it",
        thousands(progress.done),
        text::count(progress.messages, "message")
    ))
}

//! `foldback embedder`.

mod calibrate;

use crate::cli::{self, Globals};
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::store;
use calibrate::Calibrate;
use clap::{Args, Subcommand};
use foldback::core::Embedder as Port;
use foldback::embedder::{
    CalibrateError, Calibration, Choice, OwnCalibration, SCALES_DIFFER, calibrate_on_own_texts,
};
use foldback::{EmbeddingProgress, Memory};
use foldback_core::thousands;
use serde::Serialize;

/// Show or change what makes vectors of texts, or measure what a model's cosines mean
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
/// JSON: {"embedder", "model_id", "dim", "same_topic", "answering", "calibrated", "done",
/// "messages", "trouble", "last_error"}; `done` of `messages` have vectors of this model or nothing
/// to embed, `trouble` says why the embedder is not what it should be, `last_error` which message it
/// refused last.
#[derive(Args)]
struct Show {}

/// Make an embedder the store's own, and embed its messages again
///
/// Searches go on meanwhile, by words and by the vectors that are there already. A model's own
/// scale is measured where the store has none for it, on built-in texts in the language of the
/// store's messages; `foldback embedder calibrate` measures it on conversations.
///
/// JSON: {"embedder", "model_id", "dim", "same_topic", "answering", "done", "messages"}
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback embedder use ~/models/multilingual-e5-small
  foldback embedder use builtin")]
struct Use {
    /// builtin, none (words alone), or the folder or name of a model
    #[arg(value_name = "EMBEDDER", value_parser = cli::embedder)]
    choice: Choice,

    /// Leave embedding to whoever next has the store open for writing, which should be for long
    #[arg(long)]
    no_wait: bool,
}

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
    // That the record is damaged was said on opening.
    let own = memory.embedding().own().ok().flatten();
    let mut shown =
        Shown::of(&memory, own.as_ref().map(|own| own.choice.clone()).unwrap_or_default());
    // What is remembered is shown even where it cannot be loaded.
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

/// An embedder as it is shown.
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

impl Use {
    fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let new = self.choice.load()?;
        let globals = Globals { embedder: None, ..globals.clone() };
        let memory = store::open_with(&globals, new.clone())?;
        let is_measured =
            memory.embedding().scale(new.model_id()).is_ok_and(|scale| scale.is_some());
        if matches!(self.choice, Choice::Model(_)) && !is_measured {
            out.note("measuring the model's scale on built-in texts");
            let measured = on_own_texts(new.as_ref(), &sample(&memory)?, out)?;
            memory.embedding().set_scale(new.model_id(), measured.scale)?;
        }
        // Opened again, the memory stands on the measured scale.
        drop(memory);
        let memory = store::open_with(&globals, new)?;
        memory.embedding().choose(&self.choice)?;
        let is_left = self.no_wait || self.choice == Choice::WordsOnly;
        let progress = if is_left { memory.embedding().progress()? } else { wait(&memory, out)? };
        let shown = Shown::of(&memory, self.choice);
        if out.is_json() {
            out.json(&EmbedderJson::of(&shown, progress))?;
        } else {
            print(out, &shown, progress)?;
        }
        if self.no_wait && shown.choice != Choice::WordsOnly && !progress.is_done() {
            out.note(
                "the rest is embedded while a process has the store open for writing: a program \
                 that runs for long, or this command without --no-wait",
            );
        }
        let is_done = is_left || progress.is_done();
        if !is_done {
            let own = memory.embedding().own()?.map(|own| own.model_id);
            let left = text::count(progress.messages.saturating_sub(progress.done), "message");
            if own.as_deref() == Some(shown.model_id.as_str()) {
                out.note(format_args!(
                    "{left} were recorded meanwhile by a process that still embeds by another \
                     model; start it again, and they are embedded by the next that writes"
                ));
            } else {
                out.note("another embedder was chosen meanwhile");
            }
        }
        if let Some(failures) = memory.embedding().failures()? {
            let refused = text::count(failures.messages, "message");
            out.note(format_args!(
                "the model refused {refused}; the last error: {}",
                failures.last
            ));
        }
        Ok(Outcome::clean_if(is_done))
    }
}

/// Text from the beginning of the store's first conversations, which tells their language.
fn sample(memory: &Memory) -> Result<String, CliError> {
    const TODOS: usize = 16;
    const MESSAGES: u64 = 8;
    const CHARS: usize = 500;
    let mut sample = String::new();
    for todo in memory.todos(None, TODOS)? {
        let messages = memory.messages(&todo, 0..memory.len(&todo)?.min(MESSAGES));
        // One that is damaged tells nothing.
        for message in messages.into_iter().flatten() {
            sample.extend(message.text().chars().take(CHARS));
            sample.push('\n');
        }
    }
    Ok(sample)
}

/// What a model's cosines mean on the built-in texts that suit it and the sample; says so when
/// another language gives another scale.
fn on_own_texts(embedder: &dyn Port, sample: &str, out: &Output) -> Result<Calibration, CliError> {
    let mut found = calibrate_on_own_texts(embedder, sample).map_err(failed)?.into_iter();
    let Some(OwnCalibration { language, measured }) = found.next() else {
        return Err(CliError::Usage("there are no built-in texts to measure on".to_owned()));
    };
    for other in found {
        let (one, two) = (measured.scale.same_topic, other.measured.scale.same_topic);
        if (one - two).abs() > SCALES_DIFFER {
            out.note(format_args!(
                "the built-in texts give different scales: same topic at {one:.2} in {language}, \
                 which is taken, and at {two:.2} in {}; `foldback embedder calibrate FILE...` \
                 measures on your own conversations",
                other.language
            ));
        }
    }
    Ok(measured)
}

/// Embeds what is to be embedded, with a bar.
fn wait(memory: &Memory, out: &Output) -> Result<EmbeddingProgress, CliError> {
    let before = memory.embedding().progress()?;
    let mut bar = out.progress("embedding", before.messages - before.done.min(before.messages));
    let mut shown = before.done;
    Ok(memory.embedding().reembed(|progress| {
        bar.advance(progress.done.saturating_sub(shown));
        shown = shown.max(progress.done);
    })?)
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
        return out.line("  searches go by words alone");
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

fn failed(error: CalibrateError) -> CliError {
    CliError::Usage(error.to_string())
}

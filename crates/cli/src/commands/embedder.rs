//! `foldback embedder`.

use crate::cli::{self, Globals};
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::sources::{Sourced, Sources};
use crate::store;
use clap::{Args, Subcommand};
use foldback::core::{Embedder as Port, Message};
use foldback::embedder::{
    CalibrateError, Calibration, Choice, Conversation, Distribution, OwnCalibration, Question,
    SCALES_DIFFER, calibrate, calibrate_on_own_texts,
};
use foldback::{EmbeddingProgress, Memory};
use foldback_core::thousands;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

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

/// Measure which cosines stand for "same topic" and "answers it"
///
/// Reads conversations whose changes of topic are known (`boundaries`), or several, each of which is
/// a topic; their questions (`qa` with `evidence`) measure the second cosine. Without files, built-in
/// texts are used, in English or Chinese as the store's messages are, or in the one that the model
/// knows better. The result is kept in the store, where there is
/// one, and used whenever it is opened with that model.
///
/// JSON: {"model_id", "same_topic", "answering", "balanced_accuracy", "within", "across", "answers",
/// "others", "stored"}, the middle four each {"pairs", "p10", "p50", "p90"}
#[derive(Args)]
struct Calibrate {
    /// The embedder [default: the store's own]
    #[arg(long, value_name = "EMBEDDER", value_parser = cli::embedder)]
    model: Option<Choice>,

    /// Files or folders of conversations, or - for standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
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

#[derive(Serialize)]
struct CalibrationJson<'a> {
    model_id: &'a str,
    same_topic: f32,
    answering: f32,
    balanced_accuracy: f64,
    within: PairsJson,
    across: PairsJson,
    answers: PairsJson,
    others: PairsJson,
    stored: bool,
}

#[derive(Serialize)]
struct PairsJson {
    pairs: usize,
    p10: f32,
    p50: f32,
    p90: f32,
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

impl Calibrate {
    fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let has_store = store::exists(globals)?;
        let named = self.model.or_else(|| globals.embedder.clone());
        let globals = Globals { embedder: None, ..globals.clone() };
        let choice = match named {
            Some(named) => named,
            None if has_store => {
                let own = store::open_for_reading(&globals)?.embedding().own()?;
                own.map(|own| own.choice).unwrap_or_default()
            }
            None => Choice::BuiltIn,
        };
        let embedder = choice.load()?;
        let measured = if self.files.is_empty() {
            let sample = match has_store {
                true => sample(&store::open_for_reading(&globals)?)?,
                false => String::new(),
            };
            on_own_texts(embedder.as_ref(), &sample, out)?
        } else {
            let set = read(&self.files, out)?;
            calibrate(embedder.as_ref(), &[set]).map_err(failed)?
        };
        if has_store {
            let memory = store::open_with(&globals, embedder)?;
            memory.embedding().set_scale(&measured.model_id, measured.scale)?;
        }
        print_calibration(out, &measured, has_store)?;
        Ok(Outcome::Done)
    }
}

/// So many messages are read to measure a model, and of each so many characters: more tell no more.
const MOST_MESSAGES: usize = 20_000;
const MOST_CHARS: usize = 3_000;

/// The conversations of the files, up to [`MOST_MESSAGES`].
fn read(files: &[PathBuf], out: &Output) -> Result<Vec<Conversation>, CliError> {
    let sources = Sources::new(files)?;
    let survey = sources.survey(out)?;
    let (mut read, mut messages) = (Vec::new(), 0);
    for sourced in survey.conversations() {
        if messages >= MOST_MESSAGES {
            out.note(format_args!(
                "measured on the first {}",
                text::count(messages as u64, "message")
            ));
            break;
        }
        let mut found = conversation(&sourced?);
        found.truncate(MOST_MESSAGES - messages);
        messages += found.messages.len();
        read.push(found);
    }
    Ok(read)
}

/// What is said in a conversation, where its topic changes, and what is asked about it.
fn conversation(sourced: &Sourced) -> Conversation {
    let source = &sourced.conversation;
    let field = |key: &str| -> Value {
        let text = source.envelope.get(key);
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    };
    let ids: Vec<Value> = source
        .messages
        .iter()
        .map(|message| serde_json::from_str(message.json()).unwrap_or(Value::Null)["id"].take())
        .collect();
    let place = |id: &Value| ids.iter().position(|known| !known.is_null() && known == id);
    let questions = field("qa").as_array().cloned().unwrap_or_default();
    let questions = questions.iter().filter_map(|question| {
        let evidence = question["evidence"].as_array()?;
        let answers: Vec<usize> = evidence.iter().filter_map(place).collect();
        let text = question["question"].as_str()?.to_owned();
        (!answers.is_empty()).then_some(Question { text, answers })
    });
    let changes = field("boundaries");
    let changes = changes.as_array().into_iter().flatten().filter_map(Value::as_u64);
    Conversation {
        messages: source.messages.iter().map(beginning).collect(),
        changes: changes.filter_map(|change| usize::try_from(change).ok()).collect(),
        questions: questions.collect(),
    }
}

fn beginning(message: &Message) -> String {
    message.text().chars().take(MOST_CHARS).collect()
}

fn print_calibration(out: &Output, measured: &Calibration, stored: bool) -> Result<(), CliError> {
    let Calibration { model_id, scale, balanced_accuracy, within, across, answers, others } =
        measured;
    if out.is_json() {
        return out.json(&CalibrationJson {
            model_id,
            same_topic: scale.same_topic,
            answering: scale.answering,
            balanced_accuracy: *balanced_accuracy,
            within: within.into(),
            across: across.into(),
            answers: answers.into(),
            others: others.into(),
            stored,
        });
    }
    out.line(format!(
        "{}: same topic at cosine {:.2} (balanced accuracy {balanced_accuracy:.2}), an answer at {:.2}",
        style::paint(style::NAME, text::one_line(model_id)),
        scale.same_topic,
        scale.answering
    ))?;
    for (name, found) in [
        ("within a topic", within),
        ("across a change", across),
        ("question, answer", answers),
        ("question, other", others),
    ] {
        out.line(format!("  {name:<17} {found}"))?;
    }
    out.line(if stored { "  kept in the store" } else { "  not kept: there is no store" })
}

impl From<&Distribution> for PairsJson {
    fn from(found: &Distribution) -> Self {
        let [p10, p50, p90] = [0.1, 0.5, 0.9].map(|share| found.at(share));
        Self { pairs: found.len(), p10, p50, p90 }
    }
}

fn failed(error: CalibrateError) -> CliError {
    CliError::Usage(error.to_string())
}

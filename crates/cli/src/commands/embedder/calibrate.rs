//! `foldback embedder calibrate`.

use super::scale::{failed, on_own_texts, sample};
use crate::cli::{self, Globals};
use crate::error::{CliError, Outcome};
use crate::output::{Output, style, text};
use crate::sources::{Sourced, Sources};
use crate::store;
use clap::Args;
use foldback::core::Message;
use foldback::embedder::{Calibration, Choice, Conversation, Distribution, Question, calibrate};
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

/// Measure which cosines mean "same topic" and "answers it"
///
/// Reads conversations whose changes of topic are known (`boundaries`), or several conversations, each of which is a
/// topic; their questions (`qa` with `evidence`) measure the second cosine. Without files, built-in texts are used, in
/// English or Chinese as the store's messages are, or in the language that the model knows better. The result is kept
/// in the store, if there is one, and used whenever the store is opened with that model.
///
/// JSON: {"model_id", "same_topic", "answering", "balanced_accuracy", "within", "across", "answers",
/// "others", "stored"}, the middle four each {"pairs", "p10", "p50", "p90"}
#[derive(Args)]
pub(super) struct Calibrate {
    /// The embedder [default: the store's own]
    #[arg(long, value_name = "EMBEDDER", value_parser = cli::embedder)]
    model: Option<Choice>,

    /// Files or folders of conversations, or - for standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
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

impl Calibrate {
    pub(super) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
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

/// The number of messages that are read to measure a model, and the characters of each: more would change nothing.
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

/// The messages of a conversation, where its topic changes, and the questions about it.
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

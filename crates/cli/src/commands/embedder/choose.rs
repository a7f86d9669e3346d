//! `foldback embedder use`.

use super::scale::{on_own_texts, sample};
use super::{EmbedderJson, Shown, print};
use crate::cli::{self, Globals};
use crate::error::{CliError, Outcome};
use crate::output::{Output, text};
use crate::store;
use clap::Args;
use foldback::embedder::Choice;
use foldback::{EmbeddingProgress, Memory};

/// Make an embedder the store's own, and embed its messages again
///
/// Searches continue meanwhile, by words and by the vectors that already exist. A model's own scale
/// is measured if the store has none for it, on built-in texts in the language of the store's
/// messages; `foldback embedder calibrate` measures it on conversations.
///
/// JSON: {"embedder", "model_id", "dim", "same_topic", "answering", "done", "messages"}
#[derive(Args)]
#[command(after_long_help = "Examples:
  foldback embedder use ~/models/multilingual-e5-small
  foldback embedder use builtin")]
pub(super) struct Use {
    /// builtin, none (words alone), or the folder or name of a model
    #[arg(value_name = "EMBEDDER", value_parser = cli::embedder)]
    choice: Choice,

    /// Leave embedding to the next long-running process that has the store open for writing
    #[arg(long)]
    no_wait: bool,
}

impl Use {
    pub(super) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
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
        // Opened again, the memory uses the measured scale.
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
                "the rest is embedded while a process has the store open for writing: a long-running \
                 program, or this command without --no-wait",
            );
        }
        let is_done = is_left || progress.is_done();
        if !is_done {
            let own = memory.embedding().own()?.map(|own| own.model_id);
            let left = text::count(progress.messages.saturating_sub(progress.done), "message");
            if own.as_deref() == Some(shown.model_id.as_str()) {
                out.note(format_args!(
                    "{left} were recorded meanwhile by a process that still uses another \
                     model; restart it, and the next process that writes embeds them"
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

/// Embeds what is missing, with a progress bar.
fn wait(memory: &Memory, out: &Output) -> Result<EmbeddingProgress, CliError> {
    let before = memory.embedding().progress()?;
    let mut bar = out.progress("embedding", before.messages - before.done.min(before.messages));
    let mut shown = before.done;
    Ok(memory.embedding().reembed(|progress| {
        bar.advance(progress.done.saturating_sub(shown));
        shown = shown.max(progress.done);
    })?)
}

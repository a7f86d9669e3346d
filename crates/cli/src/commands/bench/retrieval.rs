//! `foldback bench retrieval`.

use super::named_settings::{Measured, NamedSettings};
use super::{Inputs, Outputs, print};
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, text};
use crate::store;
use clap::Args;
use foldback::embedder::Choice;
use foldback_bench::retrieval::measure;

/// Measure how much of the evidence for questions a search finds
///
/// Conversations with questions (`qa`, with the ids of the messages that answer them, or spans of messages) are
/// recorded as an import does it, and every question is searched for. Recall is the share of the answering messages in
/// the first 1, 5 and 10 blocks, and in the first blocks that together have at most 500, 1,000, 2,000 and 4,000 tokens:
/// whole blocks in order of rank, up to the first that does not fit. Tokens are o200k's, a message's frame included.
/// For comparison, there are words alone and meaning alone, one vector a block, and windows of 4 and 6 messages.
///
/// Questions of category 5 (LoCoMo's adversarial ones, which its conversations do not answer), and those whose evidence
/// is in no message, are left out and counted. With --embedder, that model is measured besides the built-in one, and
/// gives the headline figures.
///
/// JSON: {"questions", "hit_at_1", "recall_at": {"1", "5", "10"}, "recall_at_tokens": {"500", "1000",
/// "2000", "4000"}, "took_us_p50", "hit_at", "curve", "block_tokens", "embedder", "left_out":
/// {"adversarial", "without_evidence"}, "categories": [{"file", "category", ...}], "settings":
/// [{"embedder", "cuts", "vectors", "ranking", ..., "files": [{"file", ...}]}]}, and with settings of [memory] that
/// are not the built-in ones "settings_in_force": [{"key", "value", "source", "not_measured"}]; the last says why the
/// figures are not those of a setting, where they are not. The text names them below the figures.
#[derive(Args)]
pub(crate) struct Retrieval {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    outputs: Outputs,
}

impl Retrieval {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let mut choices = vec![Choice::BuiltIn];
        choices.extend(globals.embedder.clone().filter(|named| *named != Choice::BuiltIn));
        let embedders: Vec<_> = choices.iter().map(Choice::load).collect::<Result<_, _>>()?;
        let settings = NamedSettings::of(Measured::Search, globals);
        let found = measure(&self.inputs.cases(out)?, &embedders, &store::shaped(globals))?;
        self.outputs.write_csv(&found.sheet_of_each())?;
        self.outputs.write_page(|| Ok(settings.on(found.page()?)))?;
        if out.is_json() {
            settings.json(&found, out)?;
            return Ok(Outcome::Done);
        }
        let sheets = found.sheets();
        if sheets.is_empty() {
            let what =
                "no conversation has questions (`qa`) with evidence; there is nothing to measure";
            return Err(CliError::NotFound(what.to_owned()));
        }
        sheets.iter().try_for_each(|sheet| print(sheet, out))?;
        out.line("")?;
        out.line("means: blocks with one vector each; windows: blocks of that many messages each")?;
        let (questions, took) = (found.all.questions as u64, found.took_us_p50);
        out.line(format!(
            "{}, a search took {took} us (median)",
            text::count(questions, "question")
        ))?;
        if !found.left_out.is_none() {
            out.line(format!(
                "left out: {} of category 5 (LoCoMo's adversarial ones, which its conversations do \
                 not answer), {} without evidence in the conversation",
                found.left_out.adversarial, found.left_out.without_evidence
            ))?;
        }
        settings.print(out)?;
        Ok(Outcome::Done)
    }
}

//! `foldback bench segmentation`.

use super::named_settings::{Measured, NamedSettings};
use super::{Inputs, Outputs, print};
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::Output;
use crate::store;
use clap::Args;
use foldback_bench::segmentation::measure;

/// Measure how well changes of topic are detected
///
/// Conversations are recorded as an import does it, and topic cuts (blocks that closed by topic, gap or switch) are
/// compared with the `boundaries` that a conversation gives. For comparison there are all block boundaries, no cut at
/// all, the right number of even cuts, and TextTiling (Hearst 1997: with its paper's parameters, and by message with
/// parameters that suit dialogue). For sessions with tool calls and without boundaries, which have one task, topic cuts
/// are counted. Pk and WindowDiff are means over the conversations with a boundary, with windows of half a mean
/// segment, at least 2 messages; F1 is exact to the message.
///
/// JSON: {"conversations", "pk", "wd", "f1", "boundary_ratio", "blocks": {"pk", "wd", "f1"}, "no_cut",
/// "even_cuts", "text_tiling", "text_tiling_by_message", "single_task": {"sessions", "topic_cuts", "topic_cuts_each"},
/// "left_out", "files": [{"file", ...the same}]}, and with settings of [memory] that are not the built-in ones
/// "settings_in_force": [{"key", "value", "source"}]. The text names them below the figures.
#[derive(Args)]
pub(crate) struct Segmentation {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    outputs: Outputs,
}

impl Segmentation {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let settings = NamedSettings::of(Measured::Cuts, globals);
        let found = measure(&self.inputs.cases(out)?, &store::temporary_options(globals)?)?;
        self.outputs.write_csv(&found.sheet_of_each())?;
        self.outputs.write_page(|| Ok(settings.on(found.page()?)))?;
        if out.is_json() {
            settings.json(&found, out)?;
            return Ok(Outcome::Done);
        }
        let sheets = found.sheets();
        if sheets.is_empty() {
            let what = "no conversation names its `boundaries`, and none is an agent's session; \
                there is nothing to measure";
            return Err(CliError::NotFound(what.to_owned()));
        }
        sheets.iter().try_for_each(|sheet| print(sheet, out))?;
        settings.print(out)?;
        Ok(Outcome::Done)
    }
}

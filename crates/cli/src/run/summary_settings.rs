//! Who writes the summaries of a run's context, and what they keep.

use super::settings::RunSettings;
use crate::error::CliError;
use foldback_policies::Policy;

impl RunSettings {
    /// Refuses settings of summaries that nobody writes.
    pub(super) fn check_summaries(&self) -> Result<(), CliError> {
        let is_asked = self.summary_model.is_some() || !self.summary_fields.is_empty();
        let is_written = self.context()?.is_some_and(Policy::takes_summaries);
        if is_asked && !is_written {
            let what = "--summary-model and --summary-fields are for --context stm-ltm, stm-ltm:compress \
                        and summary-top-n; other contexts write no such summaries";
            return Err(CliError::Usage(what.to_owned()));
        }
        Ok(())
    }

    /// The fields that summaries keep.
    pub(super) fn summary_fields(&self) -> Vec<String> {
        let fields = self.summary_fields.iter().map(|field| field.trim().to_owned());
        fields.filter(|field| !field.is_empty()).collect()
    }

    /// The model that writes summaries, where one does.
    pub(super) fn summary_model(&self) -> Option<&str> {
        self.summary_model.as_deref().map(str::trim).filter(|name| !name.is_empty())
    }
}

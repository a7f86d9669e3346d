//! Who writes the summaries of a run's context, and what they keep.

use super::settings::RunSettings;
use crate::error::CliError;
use crate::settings::ViewSettings;
use foldback_policies::{Policy, PolicyChoice};

impl RunSettings {
    /// The same, with what settings say of summaries where the context has some and no flag says otherwise.
    pub(super) fn with_summaries_of(mut self, view: &ViewSettings) -> Self {
        let policy = self.context().ok().and_then(PolicyChoice::policy);
        if !policy.is_some_and(Policy::takes_summaries) {
            return self;
        }
        if self.summary_model.is_none() {
            self.summary_model.clone_from(&view.summary_model);
        }
        if self.summary_fields.is_empty() {
            self.summary_fields.clone_from(&view.summary_fields);
        }
        self
    }

    /// The same, with what `newer` says of what is searched and of summaries in the place of what was said
    /// before. Under a context without summaries there is nothing to say of them.
    pub(super) fn with_newer_looks(mut self, newer: &Self) -> Self {
        if newer.search.is_some() || newer.documents.is_some() {
            self.search.clone_from(&newer.search);
        }
        let is_said = newer.summary_model.is_some() || !newer.summary_fields.is_empty();
        let policy = self.context().ok().and_then(PolicyChoice::policy);
        if is_said || !policy.is_some_and(Policy::takes_summaries) {
            self.summary_model.clone_from(&newer.summary_model);
            self.summary_fields.clone_from(&newer.summary_fields);
        }
        self
    }

    /// The same under this policy. What flags say of summaries goes where it has none.
    pub(crate) fn under(self, policy: Policy) -> Self {
        let mut settings = self.with_context(policy.name());
        if !policy.takes_summaries() {
            settings.summary_model = None;
            settings.summary_fields.clear();
        }
        settings
    }

    /// Refuses settings of summaries that nobody writes.
    pub(super) fn check_summaries(&self) -> Result<(), CliError> {
        let is_asked = self.summary_model.is_some() || !self.summary_fields.is_empty();
        let is_written = self.context()?.policy().is_some_and(Policy::takes_summaries);
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

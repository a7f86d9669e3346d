//! The model for the summaries of a run's context, and what they keep.

use super::settings::RunSettings;
use crate::error::CliError;
use crate::settings::ViewSettings;
use foldback_policies::{Policy, PolicyChoice};

impl RunSettings {
    /// Completes the settings of summaries if the context has some and no flag says otherwise.
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

    /// Replaces the source of searches and the settings of summaries with those of `newer`. A context without summaries
    /// has no such settings.
    pub(super) fn with_newer_looks(mut self, newer: &Self) -> Self {
        if newer.search.is_some() || newer.documents.is_some() {
            self.search.clone_from(&newer.search);
        }
        let policy = self.context().ok().and_then(PolicyChoice::policy);
        let is_written = policy.is_some_and(Policy::takes_summaries);
        if !is_written || newer.summary_model.is_some() {
            self.summary_model.clone_from(&newer.summary_model);
        }
        if !is_written || !newer.summary_fields.is_empty() {
            self.summary_fields.clone_from(&newer.summary_fields);
        }
        self
    }

    /// Sets this policy. The flags for summaries are dropped if it has none.
    pub(crate) fn under(self, policy: Policy) -> Self {
        let mut settings = self.with_context(policy.name());
        if !policy.takes_summaries() {
            settings.summary_model = None;
            settings.summary_fields.clear();
        }
        settings
    }

    /// Refuses settings of summaries that are never written.
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

    /// The model that writes summaries, if there is one.
    pub(super) fn summary_model(&self) -> Option<&str> {
        self.summary_model.as_deref().map(str::trim).filter(|name| !name.is_empty())
    }
}

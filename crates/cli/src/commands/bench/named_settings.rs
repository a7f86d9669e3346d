//! The settings of a measurement that are not the built-in ones, so that nobody takes its figures for those of the
//! defaults.

use crate::cli::Globals;
use crate::commands::config::Row;
use crate::error::CliError;
use crate::output::Output;
use foldback::embedder::Choice;
use foldback_bench::report::{Page, Section};
use serde::Serialize;

/// The subject of a measurement: how conversations are cut, what a search finds in them, or what a model is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Measured {
    Cuts,
    Search,
    Prompts,
}

/// The settings in force that differ from the built-in ones, as far as they affect the measurement.
pub(super) struct NamedSettings(Vec<Named>);

#[derive(Serialize)]
struct Named {
    #[serde(flatten)]
    row: Row,
    /// Why the figures do not reflect this setting, if they do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_measured: Option<&'static str>,
}

#[derive(Serialize)]
struct WithSettings<'a, T> {
    #[serde(flatten)]
    found: &'a T,
    settings_in_force: &'a [Named],
}

impl NamedSettings {
    pub(super) fn of(measured: Measured, globals: &Globals) -> Self {
        let is_usual = globals.embedder.as_ref().is_none_or(|named| *named == Choice::BuiltIn);
        let rows = globals.settings.differing().map(Row::of);
        let rows = rows.filter(|row| !is_usual || row.key != "memory.embedder");
        let named = rows.filter_map(|row| {
            let not_measured = measured.by(&row.key)?.err();
            Some(Named { row, not_measured })
        });
        Self(named.collect())
    }

    /// Prints the results as JSON, with these settings.
    pub(super) fn json<T: Serialize>(&self, found: &T, out: &Output) -> Result<(), CliError> {
        match &self.0[..] {
            [] => out.json(found),
            settings_in_force => out.json(&WithSettings { found, settings_in_force }),
        }
    }

    /// Prints them below the figures.
    pub(super) fn print(&self, out: &Output) -> Result<(), CliError> {
        if !self.0.is_empty() {
            out.line("")?;
        }
        self.0.iter().try_for_each(|named| out.line(named.line()))
    }

    /// Adds a section with these settings to the page.
    pub(super) fn on(&self, mut page: Page) -> Page {
        if !self.0.is_empty() {
            let section = Section::new("Settings that are not the built-in ones");
            let section = self.0.iter().fold(section, |section, named| section.note(&named.line()));
            page.section(section);
        }
        page
    }
}

impl Named {
    fn line(&self) -> String {
        let Row { key, source, .. } = &self.row;
        let setting = format!("{key} = {} ({source})", self.row.value());
        match self.not_measured {
            None => format!("measured with {setting}"),
            Some(why) => format!("not measured: {setting}; {why}"),
        }
    }
}

impl Measured {
    /// Whether the figures reflect this setting, or why not; `None` if it does not affect them.
    fn by(self, key: &str) -> Option<Result<(), &'static str>> {
        let prompts = self == Self::Prompts;
        match key {
            "memory.store" | "memory.engine" | "memory.payloads" => None,
            "memory.index_after_blocks"
            | "memory.index_after_passages"
            | "memory.graph_after_vectors"
            | "memory.search_cache_mib" => (self != Self::Cuts)
                .then_some(Err("conversations are searched in memory, without an index on disk")),
            "view.summary_model" => prompts.then_some(Err("summaries are made by rule")),
            "model.least_cached_tokens" => {
                prompts.then_some(Err("prefixes of 1,024 tokens and more are cached here"))
            }
            "model.prices" | "model.cache_life_seconds" => prompts.then_some(Ok(())),
            key if key.starts_with("memory.") => Some(Ok(())),
            key if key.starts_with("view.") => prompts.then_some(Ok(())),
            _ => None,
        }
    }
}

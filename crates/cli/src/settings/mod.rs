//! The settings of foldback: from `foldback.toml`, the environment and flags, with the source of each value.
//!
//! A setting is a field of one of the sections below and a line of `docs/settings.md`; its environment variable follows
//! from its key. `project.rs` says what a project's file may contain.

mod agent;
mod flow;
mod in_force;
mod key;
mod layer;
mod memory;
mod page;
mod problem;
mod project;
mod search;
mod tools;
mod view;

pub(crate) use agent::AgentSettings;
pub(crate) use flow::FlowSection;
pub(crate) use in_force::{InForce, Places, Source};
pub(crate) use key::Key;
pub(crate) use memory::MemorySettings;
pub(crate) use page::{commented_file, default_of};
pub(crate) use search::SearchSettings;
pub(crate) use tools::ToolSettings;
pub(crate) use view::ViewSettings;

use foldback_providers::ModelSettings;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Every setting, by section.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    pub(crate) memory: MemorySettings,
    pub(crate) view: ViewSettings,
    pub(crate) agent: AgentSettings,
    pub(crate) flow: FlowSection,
    pub(crate) model: ModelSettings,
    /// Further models, by names of the user's choice, for roles that name them.
    pub(crate) models: BTreeMap<String, ModelSettings>,
    pub(crate) tools: ToolSettings,
    pub(crate) search: SearchSettings,
}

/// The settings that a run keeps, so that it resumes as it began: all but the models, whose keys are kept nowhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Kept {
    memory: MemorySettings,
    view: ViewSettings,
    agent: AgentSettings,
    flow: FlowSection,
    tools: ToolSettings,
    search: SearchSettings,
}

/// A setting that makes no sense: its key, and a sentence.
type Wrong = (&'static str, String);

impl Settings {
    /// The settings that a run keeps.
    pub(crate) fn kept(&self) -> Kept {
        let Self { memory, view, agent, flow, tools, search, .. } = self.clone();
        Kept { memory, view, agent, flow, tools, search }
    }

    /// These as a run has kept them, with the current models and store, and how that is kept.
    pub(crate) fn going_on(self, kept: Kept) -> Self {
        let Kept { memory, view, agent, flow, tools, search } = kept;
        let today = self.memory;
        let today = MemorySettings {
            store: today.store,
            engine: today.engine,
            payloads: today.payloads,
            embedder: today.embedder,
            redact: today.redact,
            redaction_key_file: today.redaction_key_file,
            encryption_key_file: today.encryption_key_file,
            encryption_key_command: today.encryption_key_command,
            audit: today.audit,
            ..memory
        };
        Self { memory: today, view, agent, flow, tools, search, ..self }
    }

    /// Refuses what no type can refuse.
    fn check(&self) -> Result<(), Wrong> {
        self.memory.check()?;
        self.view.check()?;
        self.agent.check()?;
        self.flow.check()?;
        self.tools.check()?;
        self.search.check()
    }
}

//! The page of a session in the inspector: the same picture, drawn by the same scripts, from what a store holds.

use super::page::{SCRIPTS, STYLE};
use super::painter::MESSAGES_MOST;
use super::{Page, painted};
use crate::error::CliError;
use crate::replay::{Run, Stop};
use crate::settings::InForce;
use crate::sources::Sourced;
use crate::store::Temporary;
use foldback::{Memory, Options};
use foldback_core::{Timestamp, TodoId, thousands};
use foldback_inspector::{Drawing, Drawn};
use foldback_kv::Engine;
use foldback_policies::Policy;

/// Draws sessions of a store by replaying them into memory.
pub(crate) struct Replaying {
    options: Options,
    settings: InForce,
}

impl Replaying {
    /// With the options of a temporary store.
    pub(crate) fn new(options: Options, settings: InForce) -> Self {
        let options = options.with_engine(Engine::Memory).with_clock(|| Timestamp(0));
        Self { options, settings }
    }

    fn drawn(&self, memory: &Memory, todo: &TodoId, policy: Policy) -> Result<Drawn, CliError> {
        let messages = memory.len(todo)?;
        if messages > MESSAGES_MOST as u64 {
            return Err(CliError::Usage(format!(
                "The session has {} messages, and one of over {} is not replayed here. For its figures, run \
                 `foldback export --todo {todo} > session.jsonl` and `foldback replay session.jsonl`.",
                thousands(messages),
                thousands(MESSAGES_MOST as u64)
            )));
        }
        let conversation = memory.conversations().export(todo)?;
        let sourced = Sourced::new(conversation, todo.to_string(), 1);
        let view = self.settings.view.of(policy.view());
        let temporary = Temporary::new(&self.options.clone().with_view(view))?;
        let run = Run {
            memory: temporary.memory(),
            todo: todo.clone(),
            sourced: &sourced,
            policy,
            cache_life: None,
            stop: Stop::End,
        };
        let (report, picture) = painted(&run, true, &mut |_| Ok(()))?;
        let mut page = Page::new();
        page.push(report, picture)?;
        let index = page.index()?;
        Ok(Drawn { index, picture: page.into_pictures().pop() })
    }
}

impl Drawing for Replaying {
    fn draw(&self, memory: &Memory, todo: &TodoId, by_gateway: bool) -> Result<Drawn, String> {
        let policy = if by_gateway { Policy::CacheAware } else { Policy::Foldback };
        self.drawn(memory, todo, policy).map_err(|error| error.sentence())
    }

    fn scripts(&self) -> String {
        SCRIPTS.concat()
    }

    fn style(&self) -> String {
        STYLE.to_owned()
    }
}

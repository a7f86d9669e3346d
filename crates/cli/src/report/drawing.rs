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

/// A browser holds the picture several times over: as text, as values, and as what is drawn.
const BYTES_MOST: usize = 32_000_000;

/// How many messages are measured at once.
const STEP: u64 = 8;

/// Returns whether the messages of a todo have more than this many bytes together.
fn exceeds(memory: &Memory, todo: &TodoId, messages: u64, most: usize) -> Result<bool, CliError> {
    let mut bytes = 0;
    for from in (0..messages).step_by(STEP as usize) {
        let step = memory.messages(todo, from..messages.min(from + STEP))?;
        bytes += step.iter().map(|message| message.json().len()).sum::<usize>();
        if bytes > most {
            return Ok(true);
        }
    }
    Ok(false)
}

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
        let too_large = if messages > MESSAGES_MOST as u64 {
            let most = thousands(MESSAGES_MOST as u64);
            Some(format!(
                "has {} messages, more than the {most} that can be drawn, so it",
                thousands(messages)
            ))
        } else if exceeds(memory, todo, messages, BYTES_MOST)? {
            let most = format!("{} MB", BYTES_MOST / 1_000_000);
            Some(format!("has over {most} of messages, too many to draw, so it"))
        } else {
            None
        };
        if let Some(too_large) = too_large {
            return Err(CliError::Usage(format!(
                "The session {too_large} is not replayed here. For its figures, run `foldback export --todo {todo} > \
                 session.jsonl` and `foldback replay session.jsonl`."
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

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::Message;

    #[test]
    fn the_bytes_of_all_messages_count() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let todo = TodoId::new("logs").unwrap();
        let messages: Vec<_> = (0..20).map(|n| Message::user(&format!("berth {n} 泊位"))).collect();
        let bytes = messages.iter().map(|message| message.json().len()).sum::<usize>();
        memory.session(&todo).unwrap().record_all(messages).unwrap();
        assert!(!exceeds(&memory, &todo, 20, bytes).unwrap());
        assert!(exceeds(&memory, &todo, 20, bytes - 1).unwrap());
    }
}

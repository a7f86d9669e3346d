//! Restores a session from the store.

use crate::error::Failure;
use crate::live::{Live, Open, Saved};
use crate::memory::Shared;
use crate::{Error, ErrorKind, texts};
use foldback_backend_store::Error as PayloadError;
use foldback_blockstore::{Head, ReadMessage};
use foldback_chunker::Chunker;
use foldback_core::{Message, SeqNo, StoredMessage};
use foldback_disclosure::{Attribution, LiveView, Shown};
use foldback_kv::Todo;
use std::sync::Arc;

impl Live {
    /// Returns the state of a todo's session after its last durable message: the saved part, and
    /// around it the closed blocks in view and the open tail, read from the records.
    pub(crate) fn load(memory: &Shared, todo: &Todo) -> Result<Self, Error> {
        // Another process may write between two reads; everything read must be of one moment.
        loop {
            let head = memory.blocks.head(todo)?;
            let live = Self::load_at(memory, todo, head)?;
            if memory.blocks.head(todo)? != head {
                continue;
            }
            let (state, records) = (live.chunker.next().0, head.messages);
            if state != records {
                return Err(
                    Failure::StateMismatch { todo: todo.id().clone(), state, records }.into()
                );
            }
            return Ok(live);
        }
    }

    fn load_at(memory: &Shared, todo: &Todo, head: Head) -> Result<Self, Error> {
        let Some(bytes) = memory.blocks.session(todo)? else {
            return Ok(Self::new(memory, todo, head));
        };
        Self::of_bytes(memory, todo, head, &bytes)
    }

    /// Returns the state that was saved as `bytes`, completed from the records.
    pub(crate) fn of_bytes(
        memory: &Shared,
        todo: &Todo,
        head: Head,
        bytes: &[u8],
    ) -> Result<Self, Error> {
        let list = Arc::new(memory.list_of(todo)?);
        let saved: Saved = rmp_serde::from_slice(bytes)
            .map_err(|error| Failure::State { todo: todo.id().clone(), what: error.to_string() })?;
        let state = saved.chunker.of_model(memory.embedder.model_id());
        let chunker = Chunker::restore(memory.chunker.clone(), state);
        let open_from = chunker.open_from();
        let open = read_open(memory, todo, open_from, chunker.next())?;
        let shown =
            |open: &Open| Shown::new(open.seq, open.message.clone(), open.offloads.clone(), None);
        let mut closed = Vec::new();
        for n in saved.view.first_in_view(saved.blocks).max(1)..=saved.blocks {
            let Some(block) = memory.blocks.block(todo, n)? else { continue };
            let body = read_open(memory, todo, block.range.first(), block.range.last().next())?;
            closed.push((block, body.iter().map(shown).collect()));
        }
        let pins = saved.view.pins().iter().map(|seq| read_pinned(memory, todo, *seq));
        let pins = pins.collect::<Result<Vec<_>, Error>>()?;
        let names = saved.config.as_ref().map(|config| config.names().clone()).unwrap_or_default();
        let config = memory.view.clone().or(saved.config).unwrap_or_default().with_names(names);
        let view = LiveView::restore(
            config,
            memory.marks(todo),
            saved.view,
            pins,
            closed,
            open.iter().map(shown).collect(),
        );
        let numbers = Arc::new(memory.numbers_of(todo)?);
        let bytes = memory.bytes_held(todo, head.messages)?;
        Ok(Self { head, chunker, view, open, blocks: saved.blocks, list, numbers, bytes })
    }
}

/// Returns the messages of a range. A damaged one is replaced by a [mark](stand_in). The mark is not recorded as a
/// message, but it is part of the description of a block that closes around it.
pub(crate) fn read_open(
    memory: &Shared,
    todo: &Todo,
    from: SeqNo,
    to: SeqNo,
) -> Result<Vec<Open>, Error> {
    let stored = memory.blocks.messages_each(todo, from.0..to.0)?;
    let times = |(_, stored): &ReadMessage| stored.as_ref().ok().map(|stored| stored.recorded_at);
    let mut at = stored.iter().find_map(times).unwrap_or_default();
    let mut open = Vec::with_capacity(stored.len());
    for (seq, stored) in stored {
        let read = stored.map_err(Error::from).and_then(|stored| {
            at = stored.recorded_at;
            let message = readable(memory, todo, seq, &stored)?;
            Ok(Open::new(seq, &Arc::new(message), &stored))
        });
        open.push(match read {
            Err(error) if error.kind() == ErrorKind::Corrupt => {
                let message = Arc::new(stand_in(&error));
                Open { seq, message, offloads: Vec::new(), recorded_at: at, recall: false }
            }
            read => read?,
        });
    }
    Ok(open)
}

/// Returns a pinned message, and whose it is.
pub(crate) fn read_pinned(
    memory: &Shared,
    todo: &Todo,
    seq: SeqNo,
) -> Result<(Attribution, Arc<Message>), Error> {
    let Some(open) = read_open(memory, todo, seq, seq.next())?.pop() else {
        return texts::attributed(memory, todo, seq);
    };
    Ok((Attribution::find(&memory.blocks, todo, seq, &open.message)?, open.message))
}

/// Returns the mark that is shown in place of a damaged message.
fn stand_in(error: &Error) -> Message {
    Message::user(&format!("[this message is damaged: {error}]"))
}

/// Returns the exact message. A damaged payload is one text less in the view, and no reason to stop.
pub(crate) fn readable(
    memory: &Shared,
    todo: &Todo,
    seq: SeqNo,
    stored: &StoredMessage,
) -> Result<Message, Error> {
    match texts::fill(memory, todo, seq, stored, 0) {
        Err(error) if is_damage(&error) => texts::light_message(todo, seq, stored, texts::DAMAGED),
        message => message,
    }
}

/// Returns whether a text is gone permanently, not just temporarily.
fn is_damage(error: &Error) -> bool {
    let is_missing = matches!(error.failure(), Failure::Payloads(PayloadError::NotFound { .. }));
    is_missing || error.kind() == ErrorKind::Corrupt
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Close, Memory, Options};
    use foldback_core::{Budget, Role, TodoId, ToolCall, ToolCallId};
    use foldback_kv::{Batch, Key, Space};

    const MARK: &str = "[this message is damaged: ";

    /// R4: a damaged message that is pinned, in a block in view, or open does not stop its todo: a mark is shown in its
    /// place, new messages are recorded, the damaged record stays as it is, and the doctor reports it.
    #[test]
    fn r4_a_session_opens_around_damaged_messages() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let id = TodoId::new("quay").unwrap();
        let mut session = memory.session(&id).unwrap();
        session.record(Message::user("always answer in French")).unwrap();
        session.pin(SeqNo(0)).unwrap();
        for n in 0..30 {
            session.record(Message::user(&format!("what is in hold {n}?"))).unwrap();
            session.record(Message::assistant(&format!("{n} barrels of 鲱鱼"))).unwrap();
            if n % 6 == 5 {
                session.close(Close::End).unwrap();
            }
        }
        session.record(Message::user("and in the log?")).unwrap();
        let call = ToolCall::new("call_1", "read", "{}");
        let asked = session.record(Message::calls("", vec![call])).unwrap().seq;
        let result = Message::tool_result(&ToolCallId::new("call_1"), "the heron flies at noon");
        session.record(result).unwrap();
        let whole = session.prompt(&Budget::default());
        let in_block = SeqNo(session.live.open.first().unwrap().seq.0 - 2);
        drop(session);

        let todo = memory.find(&id).unwrap();
        let at = |seq: SeqNo| Key { space: Space::Message, todo: todo.no(), n: seq.0 };
        let damaged = [SeqNo(0), in_block, asked];
        let put = damaged.map(|seq| (at(seq), vec![0xc1, 7])).to_vec();
        memory.shared.kv.commit(Batch { put, ..Batch::default() }).unwrap();

        let mut session = memory.session(&id).unwrap();
        let prompt = session.prompt(&Budget::default());
        let marks = prompt.messages.iter().filter(|message| message.text().contains(MARK));
        assert_eq!(marks.count(), 3, "{:?}", prompt.messages);
        assert!(whole.messages.iter().all(|message| !message.text().contains(MARK)));
        let said = prompt.messages.iter().map(|message| message.text()).collect::<String>();
        assert!(said.contains("the heron flies at noon"), "{said}");
        // Its call is gone, so it is not an answer to one.
        assert!(prompt.messages.iter().all(|message| *message.role() != Role::Tool));
        let again = memory.session(&id).unwrap().prompt(&Budget::default());
        assert_eq!(again.messages, prompt.messages);

        let before = session.len();
        session.record(Message::assistant("At noon.")).unwrap();
        session.close(Close::End).unwrap();
        session.record(Message::user("thank you")).unwrap();
        drop(session);
        assert_eq!(memory.len(&id).unwrap(), before + 2);
        for seq in damaged {
            assert_eq!(memory.shared.kv.get(at(seq)).unwrap(), Some(vec![0xc1, 7]));
        }
        let findings = memory.maintenance().doctor().unwrap().findings;
        for seq in damaged {
            let named = format!("message {seq}");
            assert!(findings.iter().any(|found| found.contains(&named)), "{named}: {findings:?}");
        }
    }
}

//! The open messages as the block that they would be if they were closed now: what a search and `load`
//! see of a conversation in progress.

use crate::live::Open;
use crate::memory::Shared;
use crate::recovery::readable;
use crate::{Error, ErrorKind, Memory, texts};
use foldback_backend_store::Pending;
use foldback_blockstore::{OpenMessages, ReadMessage, Searcher};
use foldback_chunker::{Described, describe};
use foldback_core::{Block, BlockHeader, BlockId, CloseReason, Timestamp, TodoId};
use foldback_kv::Todo;
use std::cell::RefCell;
use std::sync::Arc;

impl Memory {
    /// Returns the open messages of a todo, as the block that they would be if they were closed now;
    /// `None` if there are none. Its id is the one that the next closed block gets, which begins with the
    /// same message: it can be loaded by that id before and after.
    ///
    /// ```
    /// use foldback::core::{CloseReason, Message, TodoId};
    /// use foldback::{Memory, Options};
    ///
    /// let memory = Memory::in_memory(Options::default())?;
    /// let ports = TodoId::new("ports")?;
    /// memory.session(&ports)?.record(Message::user("八号码头 opens at 06:12."))?;
    /// let open = memory.open_block(&ports)?.ok_or("nothing is open")?;
    /// assert_eq!(open.header.block_id.to_string(), "b_ports_001");
    /// assert_eq!(open.close_reason, CloseReason::Open);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When there is no such todo or the store fails.
    pub fn open_block(&self, todo: &TodoId) -> Result<Option<Block>, Error> {
        self.shared.open_block(&self.find(todo)?)
    }
}

impl Shared {
    /// See [`Memory::open_block`]. Damaged messages are left out of its description, and a search of it names them.
    pub(crate) fn open_block(&self, todo: &Todo) -> Result<Option<Block>, Error> {
        let open = self.blocks.open_messages(todo)?;
        open.map(|open| self.describe_open(todo, open)).transpose()
    }

    fn describe_open(&self, todo: &Todo, open: OpenMessages) -> Result<Block, Error> {
        let messages = self.readable_open(todo, open.messages)?;
        let header = self.header_of(todo, None, open.id, &messages)?;
        Ok(Block { header, range: open.range, close_reason: CloseReason::Open })
    }

    /// Returns the messages whose records are intact, whatever they carry.
    fn readable_open(&self, todo: &Todo, messages: Vec<ReadMessage>) -> Result<Vec<Open>, Error> {
        let mut open = Vec::new();
        for (seq, stored) in messages {
            let Ok(stored) = stored else { continue };
            let message = match readable(self, todo, seq, &stored) {
                Err(error) if error.kind() != ErrorKind::Corrupt => {
                    texts::light_message(todo, seq, &stored, texts::UNREADABLE)
                }
                message => message,
            };
            open.extend(message.ok().map(|message| Open::new(seq, &Arc::new(message), &stored)));
        }
        Ok(open)
    }

    /// Returns a search of a todo for a caller that does not see its open messages.
    pub(crate) fn searcher_with_open(&self, todo: &Todo) -> Result<Searcher, Error> {
        self.blocks.searcher_with_open(todo, |open| self.describe_open(todo, open))
    }

    /// Describes these messages as a block with this id. Of the references in their texts, it
    /// lists those that can be loaded, or that can be once what is pending is committed.
    pub(crate) fn header_of(
        &self,
        todo: &Todo,
        pending: Option<&Pending>,
        id: BlockId,
        messages: &[Open],
    ) -> Result<BlockHeader, Error> {
        let parts: Vec<_> = messages
            .iter()
            .map(|open| {
                Described::new(&open.message, Timestamp(open.recorded_at))
                    .with_offloads(&open.offloads)
                    .with_recall(open.recall)
            })
            .collect();
        // Most texts name nothing. The names of those that do are looked up together.
        let names = RefCell::new(Vec::new());
        let note = |name: &str| {
            names.borrow_mut().push(name.to_owned());
            false
        };
        let header = describe(id.clone(), &parts, &note);
        let names = names.into_inner();
        if names.is_empty() {
            return Ok(header);
        }
        let leading = self.leading_to_payloads(todo, pending, &names)?;
        Ok(describe(id, &parts, &|name: &str| leading.contains(&name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Options, SearchRequest, Session};
    use foldback_core::{Message, Reference, SeqNo, SeqRange, ToolCall, ToolCallId};
    use std::fs;

    /// R4: what the system refuses now is not called damaged, and what is damaged is.
    #[cfg(unix)]
    #[test]
    fn r4_what_cannot_be_read_now_is_not_called_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let memory = Memory::open(dir.path(), Options::default()).unwrap();
        let id = TodoId::new("quay").unwrap();
        let mut session = memory.session(&id).unwrap();
        session.record(Message::calls("", vec![ToolCall::new("c", "read", "{}")])).unwrap();
        let log = "the heron flies at noon\n".repeat(10_000);
        session.record(Message::tool_result(&ToolCallId::new("c"), &log)).unwrap();
        let todo = memory.find(&id).unwrap();
        let seen = || {
            let open = memory.shared.blocks.open_messages(&todo).unwrap().unwrap();
            let open = memory.shared.readable_open(&todo, open.messages).unwrap();
            open.iter().map(|open| open.message.text()).collect::<String>()
        };
        assert_eq!(seen(), log);
        let folder = dir.path().join(format!("payloads/{}", todo.no()));
        let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let file = files.max_by_key(|file| fs::metadata(file).unwrap().len()).unwrap();
        let aside = dir.path().join("aside");
        fs::rename(&file, &aside).unwrap();
        assert_eq!(seen(), texts::DAMAGED);
        fs::rename(&aside, &file).unwrap();
        // A link to itself, which the system refuses to follow.
        fs::rename(&folder, &aside).unwrap();
        std::os::unix::fs::symlink(&folder, &folder).unwrap();
        assert_eq!(seen(), texts::UNREADABLE);
        assert!(memory.open_block(&id).unwrap().is_some());
        fs::remove_file(&folder).unwrap();
        fs::rename(&aside, &folder).unwrap();
        assert_eq!(seen(), log);
    }

    /// R10: messages that were open when another process closed a part of them are searched to their end.
    #[test]
    fn r10_what_is_closed_meanwhile_hides_nothing() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let id = TodoId::new("quay").unwrap();
        let mut session = memory.session(&id).unwrap();
        session.record(Message::user("where is the ledger?")).unwrap();
        let todo = memory.find(&id).unwrap();
        let mut open = memory.shared.open_block(&todo).unwrap().unwrap();
        for n in 0..20 {
            let (call, path) = (format!("call_{n}"), format!(r#"{{"path":"{n}.csv"}}"#));
            session.record(Message::calls("", vec![ToolCall::new(&call, "read", &path)])).unwrap();
            session.record(Message::tool_result(&ToolCallId::new(&call), "a page")).unwrap();
            session.record(Message::assistant("Not there.")).unwrap();
            session.record(Message::user("look at the next page")).unwrap();
        }
        session.record(Message::user("the heron flies at noon")).unwrap();
        assert!(session.blocks() > 1);
        // As seen by a reader that reads the blocks before the other's commits, and the end after them.
        let last = SeqNo(session.len() - 1);
        open.range = SeqRange::new(open.range.first(), last).unwrap();
        let searcher = memory.shared.blocks.searcher(&todo).unwrap().with_open(open).unwrap();
        let request = SearchRequest::new("heron at noon");
        let answer = searcher.search_with(&request, memory.shared.embedder.as_ref()).unwrap();
        let best = &answer.hits.first().unwrap().block;
        assert!(best.range.iter().any(|seq| seq == last), "{best:?}");
        assert_eq!(best.header.block_id.n(), session.blocks() + 1);
    }

    /// MD1: of the references in texts, those are listed that can be loaded: what the todo itself stored, also in the
    /// same transaction, and what a sub-agent's todo granted.
    #[test]
    fn md1_a_reference_that_can_be_loaded_is_listed() {
        let memory = Memory::in_memory(Options::default()).unwrap();
        let [plan, research] = ["plan", "research"].map(|id| TodoId::new(id).unwrap());
        let log = "潮位 3.2 米\n".repeat(2_000);
        let read = || {
            let call = Message::calls("", vec![ToolCall::new("c", "read", "{}")]);
            [call, Message::tool_result(&ToolCallId::new("c"), &log)]
        };
        memory.session(&research).unwrap().record_all(read().to_vec()).unwrap();
        let own = memory.open_block(&research).unwrap().unwrap().header.data_ids.remove(0);
        let granted = Reference::parse_in(&research, &own).unwrap();
        let mut session = memory.session(&plan).unwrap();
        let told = format!("It is in {own} and {granted}, not in store://9-abcd or {own}x.");
        let mut messages = read().to_vec();
        for n in 0..20 {
            messages.push(Message::user(&format!("where is the level of day {n}?")));
            messages.push(Message::assistant(&told));
        }
        let listed = |session: &Session| {
            let (last, _) = session.last_closed().last().unwrap();
            assert!(last.range.first() > SeqNo(1), "{last:?}");
            let open = memory.open_block(&plan).unwrap().unwrap();
            assert_eq!(open.header.data_ids, last.header.data_ids);
            open.header.data_ids
        };
        session.record_all(messages.clone()).unwrap();
        assert_eq!(listed(&session), std::slice::from_ref(&own));
        memory.grants().grant(&research, &plan, std::slice::from_ref(&granted)).unwrap();
        session.refresh().unwrap();
        session.record_all(messages[2..].to_vec()).unwrap();
        assert_eq!(listed(&session), [own, granted.to_string()]);
    }
}

//! A todo with blocks and payloads in memory, for the tools to read.

use foldback_backend_store::{BackendConfig, BackendStore, preview};
use foldback_blockstore::{
    BlockStore, Commit, IndexConfig, NewMessage, PayloadTexts, WhyUnsearched,
};
use foldback_core::{
    Block, BlockHeader, BlockId, BlockType, CloseReason, EmbedError, Embedder, Escape, Estimate,
    Message, Offload, PayloadRef, Piece, Role, SeqNo, SeqRange, Site, Source, StoredMessage,
    TodoId, TokenCounter, ToolCall, Vectors, escape_into,
};
use foldback_disclosure::{Answer, Fragment, Marks, RecallSource, run_tool};
use foldback_kv::{Batch, Key, Kv, Registry, Space, Todo};
use std::ops::Range;
use std::sync::Arc;

/// The secret behind the marks of recalled text.
pub(crate) const SECRET: [u8; 32] = [7; 32];

pub(crate) struct Library {
    kv: Arc<dyn Kv>,
    registry: Registry,
    pub(crate) blocks: BlockStore,
    pub(crate) payloads: BackendStore,
    pub(crate) complex: bool,
    /// Whether each payload's origin is noted with it.
    pub(crate) notes_origins: bool,
}

impl Library {
    pub(crate) fn new() -> Self {
        let kv = foldback_kv::memory();
        Self {
            kv: kv.clone(),
            registry: Registry::new(kv.clone()),
            blocks: BlockStore::open_with_payloads(
                kv.clone(),
                Arc::new(Texts(payloads(kv.clone()))),
                None,
                IndexConfig::default(),
            )
            .unwrap(),
            payloads: payloads(kv),
            complex: true,
            notes_origins: true,
        }
    }

    pub(crate) fn todo(&self, id: &str) -> Todo {
        self.registry.create(&TodoId::new(id).unwrap(), b"").unwrap()
    }

    /// Records the messages of a script as one block, large results as payloads.
    pub(crate) fn block(&self, todo: &Todo, script: &str) -> Vec<PayloadRef> {
        self.block_of(todo, foldback_testkit::transcript(script))
    }

    /// Writes over the bytes of a payload.
    pub(crate) fn damage_payload(&self, todo: &Todo, n: u64) {
        let key = Key { space: Space::PayloadBytes, todo: todo.no(), n };
        self.kv.commit(Batch { put: vec![(key, vec![9, 9])], ..Batch::default() }).unwrap();
    }

    /// Writes over the record of a block.
    pub(crate) fn damage(&self, todo: &Todo, n: u64) {
        let key = Key { space: Space::Block, todo: todo.no(), n };
        self.kv.commit(Batch { put: vec![(key, vec![0xc1])], ..Batch::default() }).unwrap();
    }

    /// Records messages in which the tools' results are answers of memory tools.
    pub(crate) fn recall_block(&self, todo: &Todo, messages: Vec<Message>) {
        self.write(todo, messages, true, true);
    }

    /// Records messages that are not in a block yet.
    pub(crate) fn open_tail(&self, todo: &Todo, messages: Vec<Message>) {
        self.write(todo, messages, false, false);
    }

    pub(crate) fn block_of(&self, todo: &Todo, messages: Vec<Message>) -> Vec<PayloadRef> {
        self.write(todo, messages, false, true)
    }

    fn write(
        &self,
        todo: &Todo,
        messages: Vec<Message>,
        recall: bool,
        closes: bool,
    ) -> Vec<PayloadRef> {
        let head = self.blocks.head(todo).unwrap();
        let n = self.blocks.last_block(todo).unwrap().map_or(0, |b| b.header.block_id.n()) + 1;
        let mut pending = self.payloads.begin(todo).unwrap();
        let mut references = Vec::new();
        let mut new = Vec::new();
        for (seq, message) in (head.messages..).zip(&messages) {
            if self.notes_origins {
                pending.set_origin(seq);
            }
            let text = message.text();
            let is_large = Estimate.count(&text) > 500 && *message.role() == Role::Tool;
            let mut stored = if is_large {
                let meta = self.payloads.prepare(&mut pending, text.as_bytes()).unwrap().meta;
                references.push(meta.reference());
                let offload = Offload {
                    site: Site::Content,
                    n: meta.n,
                    check: meta.check,
                    kind: meta.kind,
                    bytes: meta.bytes,
                    lines: meta.lines,
                    tokens: Estimate.count(&text) as u64,
                    preview: preview(text.as_bytes(), meta.kind, 200, &Estimate),
                };
                with_hole(message, Source::Payload(meta.n), offload)
            } else {
                plain(message)
            };
            stored.recall = recall && *message.role() == Role::Tool;
            let vectors = Words.embed(&[&text]).unwrap();
            new.push(NewMessage { stored, vectors });
        }
        let calls = messages.iter().any(|message| !message.tool_calls().is_empty());
        let first = messages[0].text().chars().take(40).collect();
        let id = BlockId::new(todo.id().clone(), n);
        let header = BlockHeader {
            block_id: id,
            todo_id: todo.id().clone(),
            block_type: if calls { BlockType::ToolCall } else { BlockType::Chat },
            keywords: Vec::new(),
            core_semantic: first,
            create_time: format!("2025-01-{:02} 10:00:00", n.min(28)),
            data_ids: references.iter().map(ToString::to_string).collect(),
        };
        let last = SeqNo(head.messages + messages.len() as u64 - 1);
        let range = SeqRange::new(SeqNo(head.messages), last).unwrap();
        let block = Block { header, range, close_reason: CloseReason::Loop };
        let commit = Commit {
            todo,
            head,
            messages: &new,
            blocks: if closes { std::slice::from_ref(&block) } else { &[] },
            session: Vec::new(),
            extra: pending.into_puts(),
            delete: Vec::new(),
        };
        self.blocks.commit(commit, Words.model_id()).unwrap();
        references
    }

    /// Runs a tool and checks what holds for every answer.
    #[track_caller]
    pub(crate) fn run(&self, todo: &Todo, tool: &str, arguments: &str) -> Answer {
        let answer =
            run_tool(&self.recall_source(todo), &ToolCall::new("c", tool, arguments)).unwrap();
        assert_eq!(self.joined(todo, &answer), answer.text, "pieces joined are the text");
        let first = answer.text.lines().next().unwrap();
        assert!(first.starts_with(&answer.note[..answer.note.len().min(40)]), "{first}");
        // Words in place of a reference are searched for.
        let tools = if tool == "load" { vec![tool, "search_block"] } else { vec![tool] };
        let is_named = tools.iter().any(|tool| answer.note.starts_with(&format!("[{tool}: ")));
        assert!(is_named, "{}", answer.note);
        answer
    }

    pub(crate) fn recall_source<'a>(&'a self, todo: &'a Todo) -> RecallSource<'a> {
        RecallSource {
            todo,
            marks: Marks::new(&SECRET, todo.id()),
            blocks: &self.blocks,
            payloads: &self.payloads,
            embedder: &Words,
            tokens: &Estimate,
            grants: None,
            complex: self.complex,
            open: None,
            view: None,
        }
    }

    /// The pieces of an answer, each quote read from its source.
    fn joined(&self, todo: &Todo, answer: &Answer) -> String {
        let mut out = String::new();
        for fragment in &answer.fragments {
            match fragment {
                Fragment::Literal(text) => out.push_str(text),
                Fragment::Quote { source: Source::Payload(n), range } => {
                    let bytes = self.payloads.read_range(todo, *n, range.clone()).unwrap();
                    out.push_str(&String::from_utf8(bytes).unwrap());
                }
                Fragment::Quote { source: Source::Message(seq, site), range } => {
                    let stored = self.blocks.messages(todo, seq.0..seq.0 + 1).unwrap();
                    let json = stored[0]
                        .json(|source, _| match source {
                            Source::Payload(n) => {
                                self.payloads.get(todo, n).map(|b| String::from_utf8(b).unwrap())
                            }
                            Source::Message(..) => panic!("a quote of a quote"),
                        })
                        .unwrap();
                    let message = Message::from_json(&json).unwrap();
                    let text = site.text(&message).unwrap();
                    out.push_str(&text[range.start as usize..range.end as usize]);
                }
            }
        }
        out
    }
}

fn payloads(kv: Arc<dyn Kv>) -> BackendStore {
    BackendStore::open(kv, None, BackendConfig::default()).unwrap()
}

/// The payloads as the search reads them.
struct Texts(BackendStore);

impl PayloadTexts for Texts {
    fn read(&self, todo: &Todo, n: u64, bytes: Range<u64>) -> Result<Vec<u8>, WhyUnsearched> {
        self.0.read_range(todo, n, bytes).map_err(|_| WhyUnsearched::Damaged)
    }
}

pub(crate) fn plain(message: &Message) -> StoredMessage {
    StoredMessage {
        pieces: vec![Piece::Text(message.json().to_owned())],
        offloads: Vec::new(),
        recall: false,
        recorded_at: 0,
    }
}

fn with_hole(message: &Message, source: Source, offload: Offload) -> StoredMessage {
    let mut literal = String::new();
    escape_into(&message.text(), Escape::Minimal, &mut literal);
    let (before, after) = message.json().split_once(&literal).unwrap();
    StoredMessage {
        pieces: vec![
            Piece::Text(before.to_owned()),
            Piece::Hole { source, range: None, layers: vec![Escape::Minimal] },
            Piece::Text(after.to_owned()),
        ],
        offloads: vec![offload],
        recall: false,
        recorded_at: 0,
    }
}

/// An embedder that knows whole words and nothing of their meaning.
pub(crate) struct Words;

impl Embedder for Words {
    fn model_id(&self) -> &str {
        "words-64"
    }

    fn dim(&self) -> usize {
        64
    }

    fn same_topic(&self) -> f32 {
        0.6
    }

    fn embed(&self, texts: &[&str]) -> Result<Vectors, EmbedError> {
        let mut values = Vec::new();
        for text in texts {
            let mut row = [0.0_f32; 64];
            for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
                if !word.is_empty() {
                    let hash = word.bytes().fold(7_usize, |h, b| h.wrapping_mul(31) + b as usize);
                    row[hash % 64] += 1.0;
                }
            }
            let norm = row.iter().map(|v| v * v).sum::<f32>().sqrt();
            values.extend(row.iter().map(|v| if norm > 0.0 { v / norm } else { 0.0 }));
        }
        Ok(Vectors::new(64, values).unwrap())
    }
}

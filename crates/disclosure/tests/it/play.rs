//! A conversation played into a view, and a prompt as lines.

use crate::library::SECRET;
use foldback_core::{
    Block, BlockHeader, BlockId, BlockType, Budget, Check, CloseReason, Estimate, Message, Offload,
    PayloadKind, Prompt, SeqNo, SeqRange, Site, TodoId, TokenCounter,
};
use foldback_disclosure::{Attribution, LiveView, Marks, Shown, ViewConfig};
use std::sync::Arc;

/// A view, and the messages and blocks that it was given.
#[derive(Clone)]
pub(crate) struct Play {
    pub(crate) view: LiveView,
    pub(crate) config: ViewConfig,
    pub(crate) shown: Vec<Shown>,
    pub(crate) blocks: Vec<Block>,
    /// Texts of more tokens than this are stored outside.
    pub(crate) offload_tokens: usize,
}

impl Play {
    pub(crate) fn new(config: ViewConfig) -> Self {
        let view = LiveView::new(config.clone(), marks());
        Self { view, config, shown: Vec::new(), blocks: Vec::new(), offload_tokens: 500 }
    }

    pub(crate) fn script(script: &str) -> Self {
        let mut play = Self::new(ViewConfig::default());
        play.say(script);
        play
    }

    /// Appends the messages of a script.
    pub(crate) fn say(&mut self, script: &str) {
        for message in foldback_testkit::transcript(script) {
            self.append(message, None);
        }
    }

    pub(crate) fn append(&mut self, message: Message, recall: Option<&str>) {
        let offloads = if recall.is_some() { Vec::new() } else { self.offloads(&message) };
        let seq = SeqNo(self.shown.len() as u64);
        let shown = Shown::new(seq, Arc::new(message), offloads, recall.map(str::to_owned));
        self.shown.push(shown.clone());
        self.view.append(shown);
    }

    /// Seals all messages except the last `open`.
    pub(crate) fn fold(&mut self, open: usize) -> bool {
        let first = self.blocks.last().map_or(0, |block| block.range.last().0 + 1);
        let Some(end) = (self.shown.len() as u64).checked_sub(open as u64 + 1) else {
            return false;
        };
        let Some(range) = SeqRange::new(SeqNo(first), SeqNo(end)) else { return false };
        let block = block("t", self.blocks.len() as u32 + 1, range);
        let folded = self.view.fold(&block);
        self.blocks.push(block);
        folded
    }

    /// The view restored from its snapshot and the messages.
    pub(crate) fn restored(&self) -> LiveView {
        let snapshot = self.view.snapshot();
        let bytes = serde_json::to_vec(&snapshot).unwrap();
        let snapshot: foldback_disclosure::Snapshot = serde_json::from_slice(&bytes).unwrap();
        let pins = snapshot.pins().iter().map(|seq| self.attributed(*seq)).collect();
        let bare = |shown: &Shown| Shown { recall: None, ..shown.clone() };
        let messages = |from: usize, to: usize| self.shown[from..to].iter().map(bare).collect();
        let closed = self.blocks.len() as u32;
        let first = snapshot.first_in_view(closed).max(1) as usize;
        let in_view = self.blocks.iter().skip(first - 1).map(|block| {
            let range = block.range.as_u64();
            (block.clone(), messages(range.start as usize, range.end as usize))
        });
        let split = self.blocks.last().map_or(0, |block| block.range.last().0 as usize + 1);
        LiveView::restore(
            self.config.clone(),
            marks(),
            snapshot,
            pins,
            in_view.collect(),
            messages(split, self.shown.len()),
        )
    }

    /// Pins a message, as the keeper of the messages does.
    pub(crate) fn pin(&mut self, seq: SeqNo) {
        let (whose, message) = self.attributed(seq);
        self.view.pin(whose, message);
    }

    fn attributed(&self, seq: SeqNo) -> (Attribution, Arc<Message>) {
        let message = self.shown[seq.0 as usize].message.clone();
        let before = self.shown[..seq.0 as usize].iter().rev();
        let before = before.map(|shown| (shown.seq, shown.message.as_ref()));
        (Attribution::among(seq, &message, before), message)
    }

    pub(crate) fn prompt(&self) -> Prompt {
        self.view.prompt(&Budget::default(), &Estimate)
    }

    pub(crate) fn prompt_within(&self, tokens: usize) -> Prompt {
        self.view.prompt(&Budget { tokens: Some(tokens) }, &Estimate)
    }

    /// Large contents and whole arguments of a message.
    fn offloads(&self, message: &Message) -> Vec<Offload> {
        let mut sites = Vec::new();
        if message.tool_call_id().is_some() {
            sites.push(Site::Content);
        }
        for (at, call) in (0_u32..).zip(message.tool_calls()) {
            let keys = call.members().map_or(0, |members| members.len() as u32);
            sites.extend((0..keys).map(|key| Site::Argument(at, key)));
        }
        let n = self.shown.iter().map(|shown| shown.offloads.len()).sum::<usize>() as u64;
        let large = sites.into_iter().filter_map(|site| {
            let text = site.text(message)?.into_owned();
            (Estimate.count(&text) > self.offload_tokens).then_some((site, text))
        });
        (n + 1..)
            .zip(large)
            .map(|(n, (site, text))| Offload {
                site,
                n,
                check: Check::of(text.as_bytes()),
                kind: PayloadKind::Log,
                bytes: text.len() as u64,
                lines: text.lines().count() as u64,
                tokens: Estimate.count(&text) as u64,
                preview: text.lines().next().unwrap_or_default().chars().take(60).collect(),
            })
            .collect()
    }
}

/// The marks of the todo `t`, to which all blocks belong.
pub(crate) fn marks() -> Marks {
    Marks::new(&SECRET, &TodoId::new("t").unwrap())
}

pub(crate) fn block(todo: &str, n: u32, range: SeqRange) -> Block {
    let todo_id = TodoId::new(todo).unwrap();
    let header = BlockHeader {
        block_id: BlockId::new(todo_id.clone(), n),
        todo_id,
        block_type: BlockType::ToolCall,
        keywords: vec!["read".to_owned(), format!("文件_{n}.txt")],
        core_semantic: format!("Agent reads part {n}"),
        create_time: "2025-01-01 10:00:00".to_owned(),
        data_ids: Vec::new(),
    };
    Block { header, range, close_reason: CloseReason::Loop }
}

/// A prompt as numbered lines: role, what it calls or answers, and its text, long ones shortened.
pub(crate) fn lines(prompt: &Prompt) -> String {
    let mut out = String::new();
    for (at, message) in prompt.messages.iter().enumerate() {
        let stable = prompt.messages.len() - prompt.volatile;
        let mark = if at >= stable {
            "~"
        } else if prompt.cache_marks.contains(&at) {
            "*"
        } else {
            " "
        };
        out.push_str(&format!("{at}{mark}{}", message.role().as_str()));
        if let Some(id) = message.tool_call_id() {
            out.push_str(&format!(" #{id}"));
        }
        let text = message.text();
        let text: String = match text.char_indices().nth(900) {
            Some((end, _)) => format!("{}...", &text[..end]),
            None => text.to_string(),
        };
        if !text.is_empty() {
            let text = format!(": {}", text.replace('\n', "\n    "));
            out.push_str(&text.replace("\n    \n", "\n\n"));
        }
        out.push('\n');
        for call in message.tool_calls() {
            let arguments: String = call.arguments.chars().take(120).collect();
            out.push_str(&format!("    > {}({arguments}) #{}\n", call.name, call.id));
        }
    }
    let Prompt { window, loose, pinned, .. } = prompt;
    let block = prompt.block.as_ref().map_or("-".to_owned(), ToString::to_string);
    out.push_str(&format!("block {block}, window {window}, loose {loose}, pinned {pinned}\n"));
    for unfit in &prompt.unfit {
        out.push_str(&format!("unfit: {unfit}\n"));
    }
    out
}

/// Every text that a prompt holds, for asking whether something is in view.
pub(crate) fn everything(prompt: &Prompt) -> String {
    prompt.messages.iter().map(|message| message.json()).collect::<Vec<_>>().join("\n")
}

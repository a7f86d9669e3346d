//! A summary, the last messages, and files of what left: what deepagents 0.7 does by default.
//!
//! - A tool result of more than 80,000 characters, or a user's message of more than 200,000, goes to
//!   a file when it comes; its first and last lines stay.
//! - Before each request, long arguments of old calls that write or edit files are clipped.
//! - When the request reaches a size, all but the last messages are appended to one file of history
//!   and give way to a summary that names the file.
//! - `grep` and `read_file` find it again.
//!
//! Where the original and a recording do not fit, the rival is favoured: the two tools take 130
//! tokens in place of 927, the other tools and the original's system prompt cost nothing, `grep`
//! also takes regular expressions and gives lines at once, the history keeps arguments whole, and the
//! summary is made of the words as they came. The original leaves the results of seven tools of its
//! own (`read_file`, `grep`, `ls`, ..) where they are, because those cut their answers themselves; a
//! recorded tool of such a name is not known to do so, and its results are moved like all others.
//! `docs/benchmarks.md` compares it with the original, request by request.

mod clip;
mod files;
mod preview;
mod tools;
mod transcript;

use crate::Counters;
use crate::extractive::SUMMARY_TOKENS;
use crate::log::Log;
use crate::policy::{self, Rule};
use crate::summarizer::Summarizer;
use files::Files;
use foldback_core::{
    Content, ContextManager, Message, Part, Role, SideCall, TodoId, ToolAnswer, ToolCall,
    ToolDefinition,
};

/// The file of all that left the history.
const HISTORY: &str = "/conversation_history/session.md";

/// The folder of large results.
const RESULTS: &str = "large_tool_results";

/// A tool result of more characters goes to a file: 20,000 tokens of 4.
const RESULT_CHARACTERS: usize = 80_000;

/// A user's message of more characters goes to a file: 50,000 tokens of 4.
const QUESTION_CHARACTERS: usize = 200_000;

/// When history goes to the file, and how much of it stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeepAgents {
    /// From so many tokens of a request on, history is summed up.
    pub trigger_tokens: usize,
    /// What stays at the end; a unit that the cut would part stays whole.
    pub keep: Span,
    /// From this size on, old arguments are clipped.
    pub clip_from: Span,
    /// The messages at the end whose arguments are not clipped.
    pub clip_keep: Span,
    /// The model's window in tokens, where it is known: a request that is still larger than 95 % of
    /// it has the results at its end moved to files as well.
    pub window_tokens: Option<usize>,
    /// What stands beside the recorded messages in each request and counts for its size: tokens of a
    /// system prompt and tools that were not recorded.
    pub outside_tokens: usize,
    /// The greatest number of tokens of a summary.
    pub summary_tokens: usize,
}

/// A part of a history, or its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// So many messages.
    Messages(usize),
    /// So many tokens.
    Tokens(usize),
}

impl Default for DeepAgents {
    /// What the original does for a model whose window it does not know: 170,000 tokens, the last 6
    /// messages; arguments are clipped behind the last 20.
    fn default() -> Self {
        Self {
            trigger_tokens: 170_000,
            keep: Span::Messages(6),
            clip_from: Span::Messages(20),
            clip_keep: Span::Messages(20),
            window_tokens: None,
            outside_tokens: 0,
            summary_tokens: SUMMARY_TOKENS,
        }
    }
}

impl DeepAgents {
    /// What the original does for a window of so many tokens: at 85 % of it history is summed up and
    /// arguments are clipped, and the last 10 % stay.
    #[must_use]
    pub fn with_window(tokens: usize) -> Self {
        let (trigger_tokens, keep) = (hundredths(tokens, 85), Span::Tokens(tokens / 10));
        Self {
            trigger_tokens,
            keep,
            clip_from: Span::Tokens(trigger_tokens),
            clip_keep: keep,
            window_tokens: Some(tokens),
            ..Self::default()
        }
    }

    /// A context that holds nothing yet.
    #[must_use]
    pub fn start(self, todo: TodoId, tokens: impl Into<Counters>) -> Box<dyn ContextManager> {
        policy::start(Offloading::new(self), todo, tokens)
    }
}

struct Offloading {
    config: DeepAgents,
    tools: Vec<ToolDefinition>,
    files: Files,
    summarizer: Summarizer,
    /// How many messages of the history have been looked at for arguments to clip.
    clipped: usize,
}

impl Rule for Offloading {
    fn again(&self) -> Self {
        Self::new(self.config)
    }

    fn apply(&mut self, log: &mut Log) {
        self.move_newest(log);
        if !log.is_model_next() {
            return;
        }
        self.clip(log);
        if self.size(log) >= self.config.trigger_tokens {
            self.sum_up(log);
            self.shrink_tail(log);
        }
    }

    fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    fn call(&self, call: &ToolCall) -> Option<ToolAnswer> {
        tools::call(&self.files, call)
    }

    fn side_calls(&mut self) -> Vec<SideCall> {
        self.summarizer.side_calls()
    }
}

impl Offloading {
    fn new(config: DeepAgents) -> Self {
        Self {
            config,
            tools: tools::definitions(),
            files: Files::default(),
            summarizer: Summarizer::new(config.summary_tokens),
            clipped: 0,
        }
    }

    /// The tokens of the request that would be sent now.
    fn size(&self, log: &Log) -> usize {
        log.tokens() + self.config.outside_tokens
    }

    /// Moves the newest message to a file if it is a large one.
    fn move_newest(&mut self, log: &mut Log) {
        let Some(at) = log.history().len().checked_sub(1) else { return };
        let Some(entry) = log.history().get(at).filter(|entry| entry.may_move_out()) else {
            return;
        };
        let (folder, most) = match entry.recorded().role() {
            Role::Tool => (RESULTS, RESULT_CHARACTERS),
            Role::User => ("large_messages", QUESTION_CHARACTERS),
            _ => return,
        };
        let text = entry.recorded().text();
        if text.len() > most && text.chars().count() > most {
            let moved = self.moved_out(folder, entry.recorded());
            log.move_out(at, moved);
        }
    }

    /// Clips long arguments in front of the messages that stay as they are.
    fn clip(&mut self, log: &mut Log) {
        let is_due = match self.config.clip_from {
            Span::Messages(n) => log.history().len() + usize::from(log.lead().is_some()) >= n,
            Span::Tokens(n) => log.kept_tokens() + self.config.outside_tokens >= n,
        };
        if !is_due {
            return;
        }
        let end = start_of_last(log, self.config.clip_keep);
        for at in self.clipped..end {
            let clipped = log.history().get(at).and_then(|entry| clip::clipped(entry.recorded()));
            if let Some(message) = clipped {
                log.stand_in(at, message);
            }
        }
        self.clipped = self.clipped.max(end);
    }

    /// Moves history to the file, and puts a summary in its place.
    fn sum_up(&mut self, log: &mut Log) {
        let mut newest = start_of_last(log, self.config.keep);
        if matches!(self.config.keep, Span::Tokens(_)) {
            // A message that is larger than all that may stay does stay if it is the newest.
            newest = newest.min(log.history().len().saturating_sub(1));
        }
        let gone = log.drop_front(log.cut_at_or_before(newest));
        self.clipped = self.clipped.saturating_sub(gone.len());
        if let Some(summary) = self.summarizer.sum_up(&gone, log) {
            self.files.append(HISTORY, &transcript::section(&gone));
            let text = format!(
                "This conversation was long and has been summed up. All that left it stands word \
                 for word in {HISTORY}: look there (grep, read_file) for what the summary \
                 lacks.\n\n<summary>\n{summary}\n</summary>"
            );
            log.set_lead(Some(Message::user(&text)));
        }
    }

    /// Moves the results at the end to files if the request still does not fit the window.
    fn shrink_tail(&mut self, log: &mut Log) {
        let Some(window) = self.config.window_tokens else { return };
        if self.size(log) <= hundredths(window, 95) {
            return;
        }
        for at in (0..log.history().len()).rev() {
            let Some(entry) = log.history().get(at) else { return };
            if *entry.recorded().role() != Role::Tool {
                return;
            }
            let text = entry.recorded().text();
            if entry.may_move_out() && preview::stub("", &text).len() < text.len() {
                let moved = self.moved_out(RESULTS, entry.recorded());
                log.move_out(at, moved);
            }
        }
    }

    /// A message whose text was moved to a file of its own; what is no text stays.
    fn moved_out(&mut self, folder: &str, message: &Message) -> Message {
        let id = message.tool_call_id().map_or("message", |id| id.as_str());
        let text = message.text();
        let path = self.files.create(folder, id, &text);
        let stub = preview::stub(&path, &text);
        let content = match message.content() {
            Content::Parts(parts) => {
                let others = parts.iter().filter(|part| matches!(part, Part::Other(_))).cloned();
                Content::Parts([Part::Text(stub)].into_iter().chain(others).collect())
            }
            _ => Content::Text(stub),
        };
        message.with_body(content, message.tool_calls().to_vec())
    }
}

/// So many hundredths of a window.
fn hundredths(window: usize, n: usize) -> usize {
    window.saturating_mul(n) / 100
}

/// Where the last messages of this extent begin: an index into the history, its length if not one
/// message is small enough.
fn start_of_last(log: &Log, span: Span) -> usize {
    let history = log.history();
    match span {
        Span::Messages(n) => history.len().saturating_sub(n),
        Span::Tokens(n) => {
            let mut left = n;
            let fits = |entry: &&crate::log::Entry| {
                let enough = left.checked_sub(entry.tokens());
                left = enough.unwrap_or(left);
                enough.is_some()
            };
            history.len() - history.iter().rev().take_while(fits).count()
        }
    }
}

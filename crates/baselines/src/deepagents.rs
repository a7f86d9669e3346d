//! A summary, the last messages, and files of what left the history: what deepagents 0.7 does by
//! default.
//!
//! - A tool result of more than 80,000 characters, or a user's message of more than 200,000, goes to a
//!   file when it arrives; its first and last lines stay.
//! - Before each request, long arguments of old calls that write or edit files are clipped.
//! - When the request reaches a size, all but the last messages are appended to one history file and
//!   replaced by a summary that names the file.
//! - `grep` and `read_file` find it again.
//!
//! Where the original and a recording do not match, this policy is given the advantage: the two tools
//! take 129 tokens instead of 927, the other tools and the original's system prompt cost nothing,
//! `grep` also takes regular expressions and returns lines at once, the history keeps arguments whole,
//! and the summary is made from the original words. The original leaves the results of seven of its own
//! tools (`read_file`, `grep`, `ls`, ..) in place, because those cut their answers themselves; a
//! recorded tool of such a name is not known to do so, and its results are moved like all others.
//! `docs/benchmarks.md` compares this policy with the original, request by request.

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

/// The file of everything that left the history.
const HISTORY: &str = "/conversation_history/session.md";

/// The folder of large results.
const RESULTS: &str = "large_tool_results";

/// A tool result with more characters than this goes to a file: 20,000 tokens of 4.
const RESULT_CHARACTERS: usize = 80_000;

/// A user's message with more characters than this goes to a file: 50,000 tokens of 4.
const QUESTION_CHARACTERS: usize = 200_000;

/// The policy: when history goes to the file, and how much of it stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeepAgents {
    /// The size of a request from which on history is summed up, in tokens.
    pub trigger_tokens: usize,
    /// What stays at the end; a unit that the cut would split stays whole.
    pub keep: Span,
    /// The size from which on old arguments are clipped.
    pub clip_from: Span,
    /// The messages at the end whose arguments are not clipped.
    pub clip_keep: Span,
    /// The model's window in tokens, if it is known: if a request is still larger than 95 % of it, the
    /// results at its end are moved to files as well.
    pub window_tokens: Option<usize>,
    /// The tokens in each request besides the recorded messages that count towards its size: a system
    /// prompt and tools that were not recorded.
    pub outside_tokens: usize,
    /// The maximum number of tokens in a summary.
    pub summary_tokens: usize,
}

/// The extent of a part of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A number of messages.
    Messages(usize),
    /// A number of tokens.
    Tokens(usize),
}

impl Default for DeepAgents {
    /// What the original does for a model whose window it does not know: 170,000 tokens, the last 6
    /// messages; arguments are clipped before the last 20.
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
    /// Returns what the original does for a window of this many tokens: at 85 % of it, history is
    /// summed up and arguments are clipped, and the last 10 % stay.
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

    /// Returns an empty context.
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
    /// The number of messages in the history that have been checked for arguments to clip.
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

    /// Returns the tokens of the request that would be sent now.
    fn size(&self, log: &Log) -> usize {
        log.tokens() + self.config.outside_tokens
    }

    /// Moves the newest message to a file if it is large.
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

    /// Clips long arguments before the messages that stay unchanged.
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
            // A message larger than everything that may stay is kept if it is the newest.
            newest = newest.min(log.history().len().saturating_sub(1));
        }
        let gone = log.drop_front(log.cut_at_or_before(newest));
        self.clipped = self.clipped.saturating_sub(gone.len());
        if let Some(summary) = self.summarizer.sum_up(&gone, log) {
            self.files.append(HISTORY, &transcript::section(&gone));
            let text = format!(
                "This conversation was long and has been summarised. What was removed is kept word \
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

    /// Returns a message whose text was moved to a separate file; content that is not text stays.
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

/// Returns a percentage of a window.
fn hundredths(window: usize, n: usize) -> usize {
    window.saturating_mul(n) / 100
}

/// Returns the index in the history at which the last messages of this extent begin: its length if no
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

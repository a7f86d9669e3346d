//! `foldback replay`.

use super::import::{tell, tell_odd};
use super::search::snippet_line;
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::block;
use crate::output::snippet::{show, words};
use crate::output::{Output, prompt, style, text};
use crate::replay::{
    Event, Many, Policy, Report, Run, Sample, Screen, Stop, Totals, replay, replay_full, samples,
    summary,
};
use crate::sources::{Sourced, Sources, Survey};
use crate::store::{self, Temporary};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use foldback::{Memory, Options};
use foldback_core::{Prompt, TodoId};
use rayon::prelude::*;
use std::path::PathBuf;

/// Feed recorded conversations through a live session, and prove that nothing is lost
///
/// Every message is recorded as if it happened now. Blocks are shown as they close, with why they
/// closed; large parts as they are stored outside. Before each assistant message (in a conversation
/// without any, after each user message) the prompt is built as the model would get it, counted with
/// o200k, and set against keeping everything. At the end every message is rebuilt from the store and
/// compared byte for byte with its source, blocks and open tail are checked to be the sequence, and
/// every payload's hash is checked. Then a few searches show that what folded is found.
///
/// Without --store the store is a temporary one, in memory unless --engine names another. With
/// --store (FOLDBACK_STORE does not count here) the conversations stay there, and a replay that was
/// stopped goes on where it was; what is there already is measured all the same.
///
/// The exit code is 1 when a conversation did not come back exactly, a prompt was no valid request,
/// a call was parted from its result, or the window was over 12 messages.
#[derive(Args)]
#[command(after_long_help = "\
Cost with a prompt cache, for each call, in ordinary input tokens:
  0.1 x what the prompt shares with the beginning of the one before, in whole messages
  + 1.25 x the rest of its stable part, which is written into the cache
  + 1.0 x the volatile suffix (todo list, notices), which is not
The tools of the memory count as part of each of its prompts; the agent's own tools, which are the
same either way, do not count.

JSON, a line for each conversation: {\"id\", \"messages\", \"blocks\", \"policy\", \"calls\",
\"input_tokens\", \"peak_tokens\", \"cached_tokens\", \"cost_units\", \"lossless\", \"orphans\",
\"window_max_messages\", ...}; \"full\" holds the figures of keeping everything.

Examples:
  foldback replay examples/coding-session.jsonl
  foldback replay --at 30 examples/coding-session.jsonl      the prompt of the 30th call
  foldback replay --json recordings/ | jq .lossless")]
pub(crate) struct Replay {
    /// Files (foldback JSON Lines, chat-completions arrays or bodies, plain or .zst), folders of
    /// such files, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// What decides what a model is sent
    #[arg(
        long,
        value_name = "P",
        default_value = Policy::Foldback.as_str(),
        value_parser = PossibleValuesParser::new(Policy::ALL.map(Policy::as_str)).map(policy),
    )]
    policy: Policy,

    /// Print the prompt of call N, counted from 1, and nothing else; nothing is kept
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    at: Option<u64>,
}

/// So many conversations are in memory at once, for each thread.
const BATCH: usize = 8;

/// Where conversations are recorded.
enum Place {
    /// Each in a store of its own that is gone afterwards.
    Temporary(Box<Options>),
    /// All in a store that stays.
    Kept(Memory),
}

impl Replay {
    pub(crate) fn run(self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        let sources = Sources::new(&self.files)?;
        let survey = sources.survey(out)?;
        if let Some(at) = self.at {
            return self.prompt_of(at, &sources, &survey, out);
        }
        let keeps = globals.store.is_some() && self.policy == Policy::Foldback;
        let place = if keeps {
            survey.check_todos(None)?;
            Place::Kept(store::open_for_writing(globals, out)?)
        } else {
            Place::Temporary(Box::new(store::temporary_options(globals)))
        };
        // What stays is recorded to the end, whoever still reads.
        let out = &if keeps { out.finishing() } else { out.clone() };
        if survey.conversations == 1 {
            let sourced = sources.conversations().next().transpose()?;
            let sourced = sourced.ok_or_else(|| changed(&self.files))?;
            self.one(&sourced, &place, out)
        } else {
            self.many(&sources, &survey, &place, out)
        }
    }

    /// One conversation, with everything that happens to it.
    fn one(&self, sourced: &Sourced, place: &Place, out: &Output) -> Result<Outcome, CliError> {
        let todo = sourced.todo();
        if let Place::Kept(_) = place {
            tell(out, sourced, &todo);
        } else {
            tell_odd(out, sourced);
        }
        if self.policy == Policy::Full {
            let report = replay_full(sourced, Stop::End)?.0;
            return self.print_one(out, &report, None);
        }
        let temporary;
        let (memory, name) = match place {
            Place::Kept(memory) => (memory, "kept in the store"),
            Place::Temporary(options) => {
                temporary = Temporary::new(options)?;
                (temporary.memory(), "a temporary store")
            }
        };
        let run = Run { memory, todo, sourced, stop: Stop::End };
        let report = if out.is_json() {
            replay(&run, &mut |_| Ok(()))?
        } else {
            let screen = Screen::begin(out, sourced, self.policy, name)?;
            replay(&run, &mut |event| screen.show(&event))?
        };
        self.print_one(out, &report, Some((memory, &run.todo)))
    }

    fn print_one(
        &self,
        out: &Output,
        report: &Report,
        recorded: Option<(&Memory, &TodoId)>,
    ) -> Result<Outcome, CliError> {
        if out.is_json() {
            out.json(report)?;
            return Ok(Outcome::clean_if(report.is_clean()));
        }
        let mut totals = Totals::default();
        totals.add(report);
        summary(out, &totals, self.policy)?;
        for problem in &report.problems {
            out.line(format!("  {}", style::paint(style::BAD, text::one_line(problem))))?;
        }
        if let Some((memory, todo)) = recorded.filter(|_| !out.is_quiet()) {
            recalls(memory, todo, out)?;
        }
        Ok(Outcome::clean_if(report.is_clean()))
    }

    /// Many conversations, a line each. What is printed stands in the order of the input.
    fn many(
        &self,
        sources: &Sources,
        survey: &Survey,
        place: &Place,
        out: &Output,
    ) -> Result<Outcome, CliError> {
        let many = if out.is_json() { None } else { Some(Many::begin(out)?) };
        let mut progress = out.progress("replaying", survey.messages);
        let mut totals = Totals::default();
        let mut conversations = sources.conversations();
        let size = rayon::current_num_threads() * BATCH;
        loop {
            let batch: Vec<_> = conversations.by_ref().take(size).collect::<Result<_, _>>()?;
            if batch.is_empty() {
                break;
            }
            let reports: Vec<_> = match place {
                // One store has one writer at a time, so threads would only wait for each other.
                Place::Kept(memory) => {
                    batch.iter().map(|sourced| self.silently(sourced, Some(memory), None)).collect()
                }
                Place::Temporary(options) => batch
                    .par_iter()
                    .map(|sourced| self.silently(sourced, None, Some(options)))
                    .collect(),
            };
            for report in reports {
                let report = report?;
                totals.add(&report);
                progress.around(|| match &many {
                    Some(many) => many.row(&report),
                    None => out.json(&report),
                })?;
                progress.advance(report.messages);
            }
        }
        drop(progress);
        if many.is_some() {
            summary(out, &totals, self.policy)?;
        }
        Ok(Outcome::clean_if(totals.is_clean()))
    }

    fn silently(
        &self,
        sourced: &Sourced,
        kept: Option<&Memory>,
        options: Option<&Options>,
    ) -> Result<Report, CliError> {
        if self.policy == Policy::Full {
            return Ok(replay_full(sourced, Stop::End)?.0);
        }
        let temporary = options.map(Temporary::new).transpose()?;
        let memory = kept.or_else(|| temporary.as_ref().map(Temporary::memory));
        let memory = memory.ok_or(foldback::Error::Internal("a replay has no store"))?;
        replay(&Run { memory, todo: sourced.todo(), sourced, stop: Stop::End }, &mut |_| Ok(()))
    }

    /// The prompt of one call.
    fn prompt_of(
        &self,
        at: u64,
        sources: &Sources,
        survey: &Survey,
        out: &Output,
    ) -> Result<Outcome, CliError> {
        if survey.conversations != 1 {
            return Err(CliError::Usage(format!(
                "--at shows a call of one conversation, and the input holds {}",
                survey.conversations
            )));
        }
        let sourced = sources.conversations().next().transpose()?;
        let sourced = sourced.ok_or_else(|| changed(&self.files))?;
        let todo = sourced.todo();
        let stop = Stop::Call(at);
        let mut found: Option<Prompt> = None;
        let calls = if self.policy == Policy::Full {
            let (report, prompt) = replay_full(&sourced, stop)?;
            found = prompt;
            report.calls
        } else {
            // It only looks, so it never touches a store that stays.
            let memory = Memory::in_memory(Options::default())?;
            let run = Run { memory: &memory, todo: todo.clone(), sourced: &sourced, stop };
            let report = replay(&run, &mut |event| {
                if let Event::Prompt(prompt) = event {
                    found = Some(prompt.clone());
                }
                Ok(())
            })?;
            report.calls
        };
        match found {
            Some(found) => {
                prompt::print(out, &todo, &found)?;
                Ok(Outcome::Done)
            }
            None => Err(CliError::NotFound(format!(
                "the conversation has {}, so there is no call {at}",
                text::count(calls, "call")
            ))),
        }
    }
}

/// Shows that what folded is found, by words that one early block alone holds.
fn recalls(memory: &Memory, todo: &TodoId, out: &Output) -> Result<(), CliError> {
    let samples = samples(memory, todo)?;
    if samples.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.line(style::paint(style::HEAD, "What folded is found again"))?;
    for sample in samples {
        match sample {
            Sample::Search { query, found, range, right, snippet } => {
                let other = if right { "" } else { ", another block than the words are of" };
                out.line(format!("  search \"{query}\""))?;
                let found = style::paint(style::NAME, found);
                out.line(format!("    → {found}, messages {}{other}", block::range(range)))?;
                if let Some(snippet) = snippet {
                    let line = snippet_line(&snippet, &words(&query), out.width() - 6);
                    out.line(format!("      {line}"))?;
                }
            }
            Sample::Load { reference, pattern, line, lines, text } => {
                let name = style::paint(style::NAME, &reference);
                out.line(format!("  load {name} --match {pattern}"))?;
                out.line(format!("    → line {} of {}", text::number(line), text::number(lines)))?;
                let shown = show(&text, &[pattern], out.width() - 6);
                out.line(format!("      {shown}"))?;
            }
        }
    }
    Ok(())
}

fn policy(name: String) -> Policy {
    let named = Policy::ALL.into_iter().find(|policy| policy.as_str() == name);
    // The names were checked before.
    named.unwrap_or(Policy::Foldback)
}

fn changed(files: &[PathBuf]) -> CliError {
    let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    CliError::Usage(format!("{} changed while it was read", files.join(", ")))
}

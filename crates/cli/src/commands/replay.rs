//! `foldback replay`.

use super::import::{is_passed, tell, tell_odd, tell_skipped};
use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{Output, prompt, style, text};
use crate::policy_names;
use crate::replay::{
    Event, Many, Report, Run, Screen, Stop, Totals, recalls, replay, replay_baseline, summary,
};
use crate::report::{Page, Picture, can_be_written, painted};
use crate::sources::{Sourced, Sources, Survey, changed};
use crate::store::{self, Temporary};
use clap::Args;
use clap::builder::TypedValueParser as _;
use foldback::{KNOWN_SECRET, Memory, Options, ViewConfig};
use foldback_core::{CacheTerms, Prompt, Timestamp, TodoId};
use foldback_policies::Policy;
use rayon::prelude::*;
use std::path::PathBuf;
use std::time::Duration;

/// Feed recorded conversations through a live session, and prove that nothing is lost
///
/// Every message is recorded as if it happened now. Blocks are shown as they close, with the reason; large parts as
/// they are stored outside. Before each assistant message (in a conversation without any, after each user message) the
/// prompt is built as the model would get it, counted with o200k, and compared with keeping everything and with a
/// summary plus the last messages (extracted by rule, where others ask a model). At the end every message is rebuilt
/// from the store and compared byte for byte with its source, blocks and open tail are checked to form the whole
/// sequence, and every payload's hash is checked. Then a few searches show that folded content is found.
///
/// Without --store the store is temporary, and in memory unless --engine names another. With
/// --store (FOLDBACK_STORE does not count here) the conversations stay there, and a replay that was
/// stopped continues where it was; messages that are already there are measured all the same.
///
/// The exit code is 1 if a conversation did not come back exactly, a prompt was not a valid
/// request, a call was separated from its result, or the window was over 12 messages.
#[derive(Args)]
#[command(after_long_help = "\
Cost with a prompt cache, for each call, in ordinary input tokens:
  0.1 x what the prompt shares with the beginning of the one before, in runs of 16 tokens
  + 1.25 x the rest of its stable part, which is written into the cache
  + 1.0 x what no cache holds: prefixes under 1,024 tokens, the volatile suffix
or every token at 1.0, if that is less for the whole conversation. The cache never forgets, unless --cache-life says
so: then the times that messages carry count.
The tools that the recording declares count in front of every prompt, and those of the memory in front of
its own. Searches and loads that a model might have made are not among the calls; foldback bench savings
counts them.

JSON, a line for each conversation: {\"id\", \"messages\", \"blocks\", \"policy\", \"calls\",
\"input_tokens\", \"peak_tokens\", \"cached_tokens\", \"cost_units\", \"lossless\", \"orphans\",
\"window_max_messages\", \"window_bound\", ...}; \"loose_messages\" counts calls by how many open messages
they showed, and \"latest_block\" those that showed it \"whole\" and by its \"line\"; \"full\" holds the figures of keeping
everything, and \"baselines\" those of each baseline by its name, with how many messages it had
\"forgotten\" at the end.

Examples:
  foldback replay examples/coding-session.jsonl
  foldback replay --report session.html examples/coding-session.jsonl
  foldback replay --at 30 examples/coding-session.jsonl      the prompt of the 30th call
  foldback replay --json recordings/ | jq .lossless")]
pub(crate) struct Replay {
    /// Files of conversations or session logs (see `foldback import --help`), plain or .zst, folders
    /// of such files, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Report damaged lines, files that hold no conversation, unreadable files in a folder, and
    /// conversations whose todo holds something else, and continue after them
    #[arg(long)]
    lenient: bool,

    /// The policy that decides what a model is sent; strict and cache-aware are short for the first two
    #[arg(
        long,
        value_name = "P",
        default_value = Policy::Foldback.name(),
        value_parser = policy_names::parser(Policy::names()).map(policy),
    )]
    policy: Policy,

    /// Let the provider's cache lose what was not read for this many seconds [default: model.cache_life_seconds, or
    /// never]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    cache_life: Option<u64>,

    /// Print only the prompt of call N, counted from 1; nothing is kept
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    at: Option<u64>,

    /// Write a page that shows what happened: a self-contained HTML file
    #[arg(long, value_name = "OUT.html", conflicts_with = "at")]
    report: Option<PathBuf>,
}

/// The number of conversations in memory at once, per thread.
const BATCH: usize = 8;

/// Where conversations are recorded.
enum Place {
    /// Each in a store of its own that is removed afterwards.
    Temporary(Box<Options>),
    /// All in a store that stays.
    Kept(Memory),
}

impl Replay {
    pub(crate) fn run(mut self, globals: &Globals, out: &Output) -> Result<Outcome, CliError> {
        self.cache_life = self.cache_life.or(globals.settings.model.cache_life_seconds);
        self.check_report(globals)?;
        let sources = Sources::new(&self.files)?.lenient(self.lenient);
        let survey = sources.survey(out)?;
        if let Some(at) = self.at {
            return self.prompt_of(at, &survey, globals, out);
        }
        tell_skipped(out, &survey)?;
        if survey.conversations == 0 {
            return Ok(Outcome::Done);
        }
        let keeps = globals.store.is_some() && self.policy.is_foldback();
        if keeps && self.policy.name() != Policy::Foldback.name() {
            return Err(CliError::Usage(format!(
                "--policy {} replays into a temporary store; leave out --store",
                self.policy.name()
            )));
        }
        let place = if keeps {
            Place::Kept(store::open_for_writing(globals, out)?)
        } else {
            let mut options = store::temporary_options(globals)?;
            options = options.with_view(globals.settings.view.of(self.view()));
            // The same input gives the same page: a message without a time does not get the current one. And however
            // long a replay takes, no cache goes cold meanwhile.
            let now = if self.report.is_some() { Timestamp(0) } else { (options.clock)() };
            options = options.with_clock(move || now);
            Place::Temporary(Box::new(options))
        };
        // A kept conversation is recorded to the end, and a page is written, even if nobody reads the output any more.
        let finishes = keeps || self.report.is_some();
        let out = &if finishes { out.finishing() } else { out.clone() };
        if survey.conversations == 1 {
            let sourced = survey.conversations().next().transpose()?;
            let sourced = sourced.ok_or_else(|| changed(&self.files))?;
            self.one(&sourced, &place, out)
        } else {
            self.many(&survey, &place, out)
        }
    }

    /// How long the provider's cache keeps what is not read; `None` for ever.
    fn life(&self) -> Option<Duration> {
        self.cache_life.map(Duration::from_secs)
    }

    /// The replay of a conversation into a memory, up to where it stops.
    fn replayed<'a>(&self, memory: &'a Memory, sourced: &'a Sourced, stop: Stop) -> Run<'a> {
        let (policy, cache_life) = (self.policy, self.life());
        Run { memory, todo: sourced.todo(), sourced, policy, cache_life, stop }
    }

    /// How the memory shows a conversation.
    fn view(&self) -> ViewConfig {
        let life = self.life().unwrap_or(Duration::MAX);
        self.policy.view_at(CacheTerms { life, ..CacheTerms::default() })
    }

    /// A page shows the memory at work from the first message on.
    fn check_report(&self, globals: &Globals) -> Result<(), CliError> {
        let Some(path) = &self.report else { return Ok(()) };
        if !self.policy.is_foldback() {
            return Err(CliError::Usage(format!(
                "--report shows the policy foldback beside the others; leave out --policy {}",
                self.policy.name()
            )));
        }
        if globals.store.is_some() {
            let what = "--report replays into a temporary store; leave out --store";
            return Err(CliError::Usage(what.to_owned()));
        }
        can_be_written(path)
    }

    /// Writes the page, if one was asked for.
    fn write_report(&self, page: &Page, out: &Output) -> Result<(), CliError> {
        let Some(path) = &self.report else { return Ok(()) };
        let bytes = text::bytes(page.write(path)?);
        out.note(format_args!("the report is in {} ({bytes})", path.display()));
        Ok(())
    }

    /// Replays one conversation, and prints everything that happens to it.
    fn one(&self, sourced: &Sourced, place: &Place, out: &Output) -> Result<Outcome, CliError> {
        let todo = sourced.todo();
        if let Place::Kept(_) = place {
            tell(out, sourced, &todo);
        } else {
            tell_odd(out, sourced);
        }
        if let Policy::Baseline(baseline) = self.policy {
            let report = replay_baseline(sourced, baseline, self.life(), Stop::End)?.0;
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
        let run = self.replayed(memory, sourced, Stop::End);
        let screen = match out.is_json() {
            true => None,
            false => Some(Screen::begin(out, sourced, self.policy, name)?),
        };
        let (report, picture) = painted(&run, self.report.is_some(), &mut |event| {
            screen.as_ref().map_or(Ok(()), |screen| screen.show(event))
        })?;
        let outcome = self.print_one(out, &report, Some((memory, &run.todo)))?;
        let mut page = Page::new();
        page.push(report, picture)?;
        self.write_report(&page, out)?;
        Ok(outcome)
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

    /// Replays many conversations, and prints a line for each, in the order of the input.
    fn many(&self, survey: &Survey<'_>, place: &Place, out: &Output) -> Result<Outcome, CliError> {
        let many = if out.is_json() { None } else { Some(Many::begin(out)?) };
        let mut progress = out.progress("replaying", survey.messages);
        let mut totals = Totals::default();
        let mut page = Page::new();
        let mut conversations = survey.conversations();
        let size = rayon::current_num_threads() * BATCH;
        loop {
            let batch: Vec<_> = conversations.by_ref().take(size).collect::<Result<_, _>>()?;
            if batch.is_empty() {
                break;
            }
            let paints = self.report.is_some() && page.has_room();
            let reports: Vec<_> = match place {
                // A store has one writer at a time, so threads would only wait for each other.
                Place::Kept(memory) => {
                    batch.iter().map(|sourced| self.silently(sourced, memory, false)).collect()
                }
                Place::Temporary(options) => batch
                    .par_iter()
                    .map(|sourced| {
                        let temporary = Temporary::new(options)?;
                        self.silently(sourced, temporary.memory(), paints)
                    })
                    .collect(),
            };
            for report in reports {
                let (report, picture) = match report {
                    Err(CliError::Memory(error)) if is_passed(&error, self.lenient) => {
                        progress.around(|| out.note(format_args!("skipped: {error}")));
                        continue;
                    }
                    report => report?,
                };
                totals.add(&report);
                progress.around(|| match &many {
                    Some(many) => many.row(&report),
                    None => out.json(&report),
                })?;
                progress.advance(report.messages);
                if self.report.is_some() {
                    page.push(report, picture)?;
                }
            }
        }
        drop(progress);
        if many.is_some() {
            summary(out, &totals, self.policy)?;
        }
        self.write_report(&page, out)?;
        Ok(Outcome::clean_if(totals.is_clean()))
    }

    fn silently(
        &self,
        sourced: &Sourced,
        memory: &Memory,
        paints: bool,
    ) -> Result<(Report, Option<Picture>), CliError> {
        if let Policy::Baseline(baseline) = self.policy {
            return Ok((replay_baseline(sourced, baseline, self.life(), Stop::End)?.0, None));
        }
        let run = self.replayed(memory, sourced, Stop::End);
        painted(&run, paints, &mut |_| Ok(()))
    }

    /// Prints the prompt of one call.
    fn prompt_of(
        &self,
        at: u64,
        survey: &Survey<'_>,
        globals: &Globals,
        out: &Output,
    ) -> Result<Outcome, CliError> {
        if survey.conversations != 1 {
            return Err(CliError::Usage(format!(
                "--at shows a call of one conversation, but the input holds {}",
                survey.conversations
            )));
        }
        let sourced = survey.conversations().next().transpose()?;
        let sourced = sourced.ok_or_else(|| changed(&self.files))?;
        let todo = sourced.todo();
        let stop = Stop::Call(at);
        let mut found: Option<Prompt> = None;
        let mut calls = 0;
        if let Policy::Baseline(baseline) = self.policy {
            let (report, prompt) = replay_baseline(&sourced, baseline, self.life(), stop)?;
            (found, calls) = (prompt, report.calls);
        } else {
            // It only reads, so it never touches a store that stays.
            let options = store::shaped(globals).with_secret(KNOWN_SECRET);
            let options = options.with_view(globals.settings.view.of(self.view()));
            let memory = Memory::in_memory(options)?;
            let run = self.replayed(&memory, &sourced, stop);
            replay(&run, &mut |event| {
                if let Event::Call { prompt, .. } = event {
                    calls += 1;
                    found = (calls == at).then(|| prompt.clone());
                }
                Ok(())
            })?;
        }
        match found {
            Some(found) => {
                let policy = self.policy.is_foldback().then(|| self.view());
                let policy = policy.as_ref().map(|view| view.fold_policy());
                prompt::print(out, &todo, &found, policy)?;
                Ok(Outcome::Done)
            }
            None => Err(CliError::NotFound(format!(
                "the conversation has {}, so there is no call {at}",
                text::count(calls, "call")
            ))),
        }
    }
}

fn policy(name: String) -> Policy {
    // The names were checked earlier.
    Policy::named(&name).unwrap_or(Policy::Foldback)
}

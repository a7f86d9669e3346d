//! Commands on a conversation that do not go to the agent: `/recall retry limit`.

use super::Chat;
use crate::cli::Cli;
use crate::commands;
use crate::error::CliError;
use crate::run::{self, Account, Order};
use crate::store;
use clap::Parser as _;
use foldback_core::TodoId;
use foldback_policies::PolicyChoice;
use serde::Serialize;

/// The commands, each with its arguments and what it does.
pub(super) const COMMANDS: [(&str, &str, &str); 9] = [
    ("recall", "WORDS", "find what was said, word for word"),
    ("load", "REF", "bring a block or a payload back: b_..., store://..."),
    ("blocks", "", "list the closed blocks of the conversation"),
    ("view", "", "show what the model would be sent now"),
    ("list", "", "show the todo list"),
    ("cost", "", "show what the conversation has taken so far"),
    ("policy", "[NAME]", "show the context policy, or continue under another"),
    ("help", "", "list these"),
    ("quit", "", "leave; so does Ctrl-D"),
];

/// What a conversation has taken.
#[derive(Serialize)]
struct CostJson<'a> {
    todo: Option<&'a TodoId>,
    turns: usize,
    calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    cached_tokens: u64,
    cost: Option<f64>,
}

#[derive(Serialize)]
struct PolicyJson<'a> {
    policy: &'a str,
    about: &'a str,
    /// Whether the policy was chosen by prices.
    auto: bool,
}

impl Chat<'_> {
    /// Runs the command after the slash. An error in it is printed, and the conversation continues.
    pub(super) fn command(&mut self, text: &str) -> Result<(), CliError> {
        let (name, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let rest = rest.trim();
        let done = match name {
            "recall" if rest.is_empty() => Err(lacks("/recall needs words to look for")),
            "load" if rest.is_empty() => {
                Err(lacks("/load needs a reference, such as b_trip_001 or store://..."))
            }
            "recall" => self.foldback("search", rest.split_whitespace()),
            "load" => self.foldback("load", rest.split_whitespace()),
            "blocks" | "view" => self.foldback(name, std::iter::empty()),
            "list" => self.list(),
            "cost" => self.cost(),
            "policy" => self.policy(rest),
            "help" => self.help(),
            _ => Err(CliError::Usage(format!(
                "there is no /{name}; /help lists the commands, and // begins a text with a slash"
            ))),
        };
        match done {
            Err(error @ CliError::Output(_)) => Err(error),
            Err(error) => {
                self.wrong(&error);
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Runs a command of foldback on the conversation.
    fn foldback<'w>(
        &self,
        command: &str,
        words: impl Iterator<Item = &'w str>,
    ) -> Result<(), CliError> {
        let todo = self.begun()?.ok_or_else(nothing_said)?;
        let words: Vec<&str> = words.collect();
        // Arguments that begin with a dash are words, too.
        let mut args = vec!["foldback", command, "--todo", todo.as_str()];
        args.extend((!words.is_empty()).then_some("--"));
        args.extend(words);
        let Cli { command, .. } =
            Cli::try_parse_from(args).map_err(|error| CliError::Usage(first_line(&error)))?;
        let mut out = self.desk.out.clone();
        commands::run(command, self.desk.globals, &mut out).map(drop)
    }

    fn list(&self) -> Result<(), CliError> {
        let todo = self.begun()?.ok_or_else(nothing_said)?;
        let memory = store::open_for_reading(self.desk.globals)?;
        let session = memory.session(&todo)?;
        let list = session.todo_list();
        if self.desk.out.is_json() {
            return self.desk.out.json(&list);
        }
        if list.items().is_empty() {
            self.desk.out.remark("the todo list is empty");
        }
        let width = self.desk.out.width();
        list.items().iter().try_for_each(|item| self.desk.out.line(run::todo_line(item, width)))
    }

    fn cost(&self) -> Result<(), CliError> {
        let turns = self.turns()?;
        let sum = |sum: Account, turn: &crate::run::RunRecord| sum.plus(&turn.account);
        let account = turns.iter().fold(Account::default(), sum);
        if !self.desk.out.is_json() {
            run::print_account(&account, self.desk.out);
            return Ok(());
        }
        self.desk.out.json(&CostJson {
            todo: self.todo.as_ref(),
            turns: turns.len(),
            calls: account.calls,
            input_tokens: account.usage.input,
            output_tokens: account.usage.output,
            cached_tokens: account.usage.cached_read,
            cost: account.cost,
        })
    }

    fn policy(&mut self, name: &str) -> Result<(), CliError> {
        let mut settings = self.settings.clone();
        if !name.is_empty() {
            settings = match name.parse()? {
                PolicyChoice::Auto => settings.with_context(PolicyChoice::AUTO),
                PolicyChoice::Named(policy) => settings.under(policy),
            };
        }
        let order = self.order(String::new(), self.place()?);
        let ready = run::prepare(Order { settings: settings.clone(), ..order }, &self.desk)?;
        // A refused policy changes nothing.
        let auto = ready.is_auto()?;
        self.settings = settings;
        let (policy, about) = (ready.policy.name(), ready.policy.about());
        match self.desk.out.is_json() {
            true => self.desk.out.json(&PolicyJson { policy, about, auto }),
            false if auto => {
                let auto = PolicyChoice::AUTO;
                self.desk.out.line(format!("{auto}, by prices {policy}: {about}"))
            }
            false => self.desk.out.line(format!("{policy}: {about}")),
        }
    }

    fn help(&self) -> Result<(), CliError> {
        for (name, behind, does) in COMMANDS {
            let name = format!("/{name} {behind}");
            self.desk.out.remark(format_args!("{name:16}{does}"));
        }
        self.desk.out.remark("a line that ends in \\ continues on the next; Ctrl-C ends a turn");
        Ok(())
    }
}

fn nothing_said() -> CliError {
    CliError::NotFound("nothing has been said yet".to_owned())
}

fn lacks(what: &str) -> CliError {
    CliError::Usage(what.to_owned())
}

/// The first line of an argument error, without the usage below it.
fn first_line(error: &clap::Error) -> String {
    let told = error.to_string();
    let told = told.lines().next().unwrap_or_default();
    told.strip_prefix("error: ").unwrap_or(told).to_owned()
}

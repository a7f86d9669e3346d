//! A conversation with the agent in a terminal, or line by line from a program.

mod command;
mod input;

use crate::cli::Globals;
use crate::error::{CliError, Outcome};
use crate::output::{self, Output};
use crate::run::{
    self, Desk, Ends, Heard, Limits, Order, Place, RunRecord, RunSettings, RunState, Runs, Signals,
    TERMINATED,
};
use crate::store;
use foldback_core::TodoId;
use input::{Input, Typed};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A conversation in progress.
pub(crate) struct Chat<'a> {
    desk: Desk<'a>,
    /// The conversation, once something was said in it, or if its name was given.
    todo: Option<TodoId>,
    settings: RunSettings,
    limits: Limits,
    /// Whether every turn had an answer.
    is_clean: bool,
}

/// Talks until the end of the input.
pub(crate) fn talk(
    todo: Option<TodoId>,
    settings: RunSettings,
    limits: Limits,
    globals: &Globals,
    out: &Output,
) -> Result<Outcome, CliError> {
    let desk = Desk::new(globals, out, Ends::Turn)?;
    let settings = settings.with_full_documents()?;
    let mut chat = Chat { desk, todo, settings, limits, is_clean: true };
    let mut input = Input::open(globals, out)?;
    let went = chat.go_on(&mut input);
    input.keep();
    chat.desk.close()?;
    went?;
    if let Some(todo) = chat.begun()? {
        out.remark(format_args!("`foldback chat --todo {todo}` continues it"));
    }
    if chat.desk.leaving.is_meant() {
        std::process::exit(TERMINATED);
    }
    // The person at the terminal has seen it.
    Ok(Outcome::clean_if(chat.is_clean || input.is_edited()))
}

impl Chat<'_> {
    /// Takes the input, text by text, until it ends or the user leaves.
    fn go_on(&mut self, input: &mut Input) -> Result<(), CliError> {
        self.greet()?;
        self.listen(input.is_edited())?;
        while !self.desk.leaving.is_meant() {
            // A question that nobody waits for any more still has the keyboard.
            let typed = match self.desk.pending_line(input::PROMPT)? {
                Some(line) => line.map_or(Typed::End, Typed::Text),
                None => input.next()?,
            };
            match typed {
                Typed::End => break,
                Typed::Interrupt => {
                    self.desk.out.remark("Ctrl-D leaves, and /help lists the commands");
                }
                Typed::Unreadable => {
                    self.is_clean = false;
                    self.wrong(&CliError::Usage(
                        "a line that is not UTF-8 was left out".to_owned(),
                    ));
                }
                Typed::Text(text) if text.trim().is_empty() => {}
                Typed::Text(text) => match text.strip_prefix('/') {
                    // Two slashes begin a text.
                    Some(rest) if rest.starts_with('/') => self.turn(rest)?,
                    // An editor that completes the command adds a space.
                    Some(rest) if matches!(rest.trim(), "quit" | "exit") => break,
                    Some(rest) => self.command(rest)?,
                    None => self.turn(&text)?,
                },
            }
        }
        Ok(())
    }

    /// Shows the conversation, its policy and its model, and refuses a conversation that cannot be worked on.
    fn greet(&mut self) -> Result<(), CliError> {
        run::tell_of_project(&self.desk);
        let place = self.place()?;
        let is_new = matches!(place, Place::New(_));
        let ready = run::prepare(self.order(String::new(), place), &self.desk)?;
        let name = match &self.todo {
            Some(todo) if is_new => format!("{todo} (new)"),
            Some(todo) => todo.to_string(),
            None => "a new conversation".to_owned(),
        };
        let (policy, model) = (ready.policy.name(), ready.model());
        self.desk.out.remark(format_args!("{name} · context {policy} · model {model} · /help"));
        Ok(())
    }

    /// Ends the process if it is asked to while no turn is running. A turn handles the request itself.
    fn listen(&self, is_edited: bool) -> Result<(), CliError> {
        let is_at_work = Arc::clone(&self.desk.is_at_work);
        let terminal = input::terminal_as_it_is();
        // Start before anything is typed: the editor restores the state that it finds once it has a line.
        let mut signals = self.desk.block_on(async { Signals::open() })?;
        self.desk.spawn(async move {
            loop {
                let heard = signals.next().await;
                // The editor receives Ctrl-C as a key.
                if is_at_work.load(Ordering::Relaxed) || heard == Heard::Interrupt && is_edited {
                    continue;
                }
                input::restore_terminal(terminal.as_ref());
                std::process::exit(heard.code());
            }
        });
        Ok(())
    }

    fn order(&self, task: String, place: Place) -> Order {
        Order { task, place, settings: self.settings.clone(), limits: self.limits }
    }

    /// The conversation, if something was said in it.
    fn begun(&self) -> Result<Option<TodoId>, CliError> {
        let Some(todo) = &self.todo else { return Ok(None) };
        match store::open_for_reading(self.desk.globals) {
            Err(CliError::NotFound(_)) => Ok(None),
            memory => Ok(memory?.find(todo).is_ok().then(|| todo.clone())),
        }
    }

    /// The conversation for the next turn.
    fn place(&self) -> Result<Place, CliError> {
        Ok(match self.begun()? {
            Some(todo) => Place::Next(todo),
            None => Place::New(self.todo.clone()),
        })
    }

    /// Runs a turn, and prints its result. A failure of the turn does not end the conversation.
    fn turn(&mut self, text: &str) -> Result<(), CliError> {
        let runs = Runs::of(self.desk.globals)?;
        let mut place = self.place()?;
        if let Place::New(name) = &mut place
            && name.as_ref().is_none_or(|name| runs.open(name).is_ok())
        {
            // A turn that failed before anything was said leaves a run all the same.
            *name = Some(runs.name_for(text)?);
            self.todo.clone_from(name);
        }
        match run::begin(self.order(text.trim().to_owned(), place), &self.desk) {
            Ok(record) => {
                self.is_clean &= record.state == RunState::Done;
                let is_said = self.desk.is_said.load(Ordering::Relaxed);
                run::print_turn(&record, is_said, self.desk.out)
            }
            Err(error) if matches!(error, CliError::Output(_)) => Err(error),
            Err(error) => {
                self.is_clean = false;
                self.forget_beginning()?;
                self.wrong(&error);
                Ok(())
            }
        }
    }

    /// Removes the run of a first turn in which nothing was said: its name is still free.
    fn forget_beginning(&self) -> Result<(), CliError> {
        if let (Some(todo), None) = (&self.todo, self.begun()?)
            && let Ok((folder, record)) = Runs::of(self.desk.globals)?.open(todo)
            && record.state == RunState::Stopped
        {
            folder.discard();
        }
        Ok(())
    }

    /// Reports what went wrong; the conversation continues.
    fn wrong(&self, error: &CliError) {
        output::error(error.sentence());
    }

    /// The turns of the conversation so far.
    fn turns(&self) -> Result<Vec<RunRecord>, CliError> {
        match &self.todo {
            Some(todo) => Runs::of(self.desk.globals)?.of_todo(todo),
            None => Ok(Vec::new()),
        }
    }
}

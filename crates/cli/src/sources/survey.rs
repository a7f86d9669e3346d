//! The first pass over all inputs: what they hold, and what each conversation is called.

use super::naming::{Beginnings, Known, Names, Seen, Stored, names};
use super::{Holders, Sourced, Sources, goes_back, is_damage, is_other};
use crate::error::CliError;
use crate::output::{Output, text};
use foldback_core::{Message, Role, TodoId, thousands};
use foldback_transcript::Conversation;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// The result of the first pass.
pub(crate) struct Survey<'a> {
    sources: &'a Sources,
    out: Output,
    /// How many conversations there are, without those that others contain.
    pub(crate) conversations: u64,
    /// How many messages they hold.
    pub(crate) messages: u64,
    /// How many damaged lines and files without a conversation were skipped.
    pub(crate) skipped: u64,
    seen: Vec<Seen>,
    names: HashMap<Place, VecDeque<Decided>>,
    /// Which names were given, and why.
    notes: Vec<String>,
}

/// The input that holds a conversation, and the conversation's id in it.
type Place = (usize, Option<String>);

/// What a conversation would be called if there were no others, and what it is called; `None` if it is skipped.
type Decided = (String, Option<String>);

impl Sources {
    /// Reads everything once, and reports which names conversations get. The first input with an error ends the pass,
    /// or gives a note if it is skipped.
    pub(crate) fn survey(&self, out: &Output) -> Result<Survey<'_>, CliError> {
        let survey = self.read_once(out)?;
        survey.tell_names();
        Ok(survey)
    }

    /// Reads everything once as [`survey`](Self::survey) does, before the names are final.
    pub(crate) fn read_once(&self, out: &Output) -> Result<Survey<'_>, CliError> {
        self.notes.iter().for_each(|note| out.note(note));
        let mut progress = out.progress("reading", self.inputs.len() as u64);
        let (mut seen, mut lens, mut skipped) = (Vec::new(), Vec::new(), 0);
        for (at, input) in self.inputs.iter().enumerate() {
            let mut items = input.conversations().peekable();
            let mut first = true;
            while let Some(item) = items.next() {
                match item {
                    Ok(Sourced { conversation, file, line, .. }) => {
                        lens.push(conversation.messages.len() as u64);
                        let beginnings = Beginnings::of(&conversation.messages);
                        let least = least(&conversation);
                        let id = conversation.id;
                        seen.push(Seen { input: at, file, line, id, beginnings, least });
                    }
                    Err(error) => {
                        let alone = first && items.peek().is_none();
                        // A file that holds no conversation counts as damage beside files that do.
                        let damages = is_other(&error) && !alone && !self.is_lenient();
                        if damages || !self.passes(input, &error) {
                            let helps = input.is_in_folder() || is_damage(&error) && !alone;
                            return Err(self.with_hint(error, helps));
                        }
                        progress.around(|| out.note(format_args!("skipped: {error}")));
                        skipped += 1;
                    }
                }
                first = false;
            }
            progress.advance(1);
        }
        drop(progress);
        if seen.is_empty() && !self.is_lenient() {
            return Err(CliError::Usage(format!(
                "none of the {} holds a conversation",
                text::count(self.inputs.len() as u64, "file")
            )));
        }
        let mut survey = Survey {
            sources: self,
            out: out.clone(),
            conversations: 0,
            messages: 0,
            skipped,
            seen,
            names: HashMap::new(),
            notes: Vec::new(),
        };
        let decided = survey.name(&Nothing);
        let of_kept = decided.iter().zip(&lens).filter(|(name, _)| name.is_some());
        (survey.conversations, survey.messages) =
            of_kept.fold((0, 0), |(count, sum), (_, len)| (count + 1, sum + len));
        Ok(survey)
    }

    /// Suggests --lenient if it would help and the command has it.
    fn with_hint(&self, error: CliError, helps: bool) -> CliError {
        match self.lenient {
            Some(false) if helps => CliError::Usage(format!(
                "{}; --lenient reports damage and continues after it",
                error.sentence().trim_end_matches('.')
            )),
            _ => error,
        }
    }
}

impl Survey<'_> {
    /// Gives each conversation its name, and returns the names.
    fn name(&mut self, known: &dyn Known) -> Vec<Option<String>> {
        let Names { plain, names: decided, notes } = names(&self.seen, known);
        let mut names: HashMap<Place, VecDeque<_>> = HashMap::new();
        for ((seen, plain), name) in self.seen.iter().zip(plain).zip(&decided) {
            let place = (seen.input, seen.id.clone());
            names.entry(place).or_default().push_back((plain, name.clone()));
        }
        (self.names, self.notes) = (names, notes);
        decided
    }

    /// Gives the conversations that share an id the names that an earlier import gave them. Where secrets are replaced,
    /// files cannot be compared with what is stored in this way, and they get the names that the files alone decide.
    pub(crate) fn name_as_in(&mut self, holders: &Holders<'_>) {
        if !holders.memory().is_redacting() {
            self.name(&InStore { holders, held: RefCell::default() });
        }
    }

    /// Reports which names were given.
    pub(crate) fn tell_names(&self) {
        self.notes.iter().for_each(|note| self.out.note(note));
    }

    /// Returns the conversations one after the other, with the names that the survey gave them.
    /// They are read again now: one that appeared after the survey is reported and left for the
    /// next time.
    pub(crate) fn conversations(&self) -> impl Iterator<Item = Result<Sourced, CliError>> + '_ {
        let mut names = self.names.clone();
        let inputs = self.sources.inputs.iter().enumerate();
        let all = inputs.flat_map(|(at, input)| input.conversations().map(move |item| (at, item)));
        all.filter_map(move |(at, item)| {
            let sourced = match item {
                Ok(sourced) => sourced,
                Err(error) => {
                    let input = self.sources.inputs.get(at);
                    let passes = input.is_some_and(|input| self.sources.passes(input, &error));
                    return (!passes).then_some(Err(error));
                }
            };
            let place = (at, sourced.conversation.id.clone());
            match names.get_mut(&place).and_then(VecDeque::pop_front) {
                Some((plain, name)) => name.map(|name| Ok(Sourced { plain, name, ..sourced })),
                None => {
                    self.out.note(format_args!(
                        "the conversation in {}, line {}, was not there when reading began and is \
                         left for the next time",
                        sourced.file, sourced.line
                    ));
                    None
                }
            }
        })
    }

    /// How much was skipped, in words; `None` if nothing was.
    pub(crate) fn skipped(&self) -> Option<String> {
        match self.skipped {
            0 => None,
            1 => Some("1 line or file skipped".to_owned()),
            many => Some(format!("{} lines or files skipped", thousands(many))),
        }
    }

    /// Checks that there is at most one conversation if --todo names a todo.
    pub(crate) fn check_named(&self, named: Option<&TodoId>) -> Result<(), CliError> {
        if named.is_some() && self.conversations > 1 {
            return Err(CliError::Usage(format!(
                "--todo names one todo, but the input holds {} conversations; without --todo, \
                 each goes into the todo of its own id",
                self.conversations
            )));
        }
        Ok(())
    }
}

/// A store that knows nothing.
struct Nothing;

impl Known for Nothing {
    fn held(&self, _: &TodoId) -> Option<Rc<Stored>> {
        None
    }

    fn others_of(&self, _: &str) -> Vec<TodoId> {
        Vec::new()
    }
}

/// A store whose todos are read once.
struct InStore<'s> {
    holders: &'s Holders<'s>,
    held: RefCell<HashMap<TodoId, Option<Rc<Stored>>>>,
}

impl Known for InStore<'_> {
    fn held(&self, todo: &TodoId) -> Option<Rc<Stored>> {
        let mut held = self.held.borrow_mut();
        let read = || self.holders.held(todo).map(Rc::new);
        held.entry(todo.clone()).or_insert_with(read).clone()
    }

    fn others_of(&self, id: &str) -> Vec<TodoId> {
        self.holders.others_of(id)
    }
}

/// Returns how many first messages two versions of a conversation have in common at least, if it may go back to an earlier
/// point: the instructions, and something that is said.
fn least(conversation: &Conversation) -> Option<usize> {
    let speaks = |message: &Message| !matches!(message.role(), Role::System | Role::Developer);
    let first = conversation.messages.iter().position(speaks)?;
    goes_back(conversation).then_some(first + 1)
}

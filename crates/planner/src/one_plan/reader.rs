//! Reads OnePlan JSON while it is being written.

use super::step_object::{self, Lowered};
use super::{Intent, OnePlan};
use crate::json::{Done, Member, Node, Tree, Value};
use crate::{Finding, FindingKind, Form, ParseError, Plan, Position, Step, StepId};
use std::collections::BTreeMap;

/// The key whose object holds the steps.
const PLAN: &str = "action_plan";

/// The mode in which a planner declines to plan.
const REACT: &str = "react";

/// The number of characters after a `{` within which its first key must appear, not counting space and
/// comments. It limits what is read a second time when the `{` turns out to be text.
const FIRST_KEY_WITHIN: usize = 512;

/// The number of characters of space and comments before first keys that are read a second time, in a
/// whole text.
const BLANKS_WITHIN: usize = 1 << 16;

/// A reader of OnePlan JSON that is still being written: [`push`](Self::push) takes the next part of
/// the text, of any length, and returns the steps whose objects have closed.
///
/// ```
/// use foldback_planner::{OnePlanEvent, OnePlanReader, StepId};
///
/// let mut reader = OnePlanReader::new();
/// let events = reader.push(r#"{"action_plan": {"step1": {"function": "search", "args": {}}, "st"#);
/// let [OnePlanEvent::Step(step)] = events.as_slice() else { panic!("step1 has closed") };
/// assert_eq!(step.id, StepId(1));
/// assert!(reader.push(r#"ep2": {"function": "#).is_empty());
/// // The text ends here: step2 is never emitted.
/// assert!(reader.finish().is_err());
/// ```
#[derive(Debug)]
pub struct OnePlanReader {
    /// The position of the next character.
    at: Position,
    state: State,
    /// The text after a `{` whose first key is not complete yet.
    held: Vec<(Position, char)>,
    /// The number of those characters that are space or in comments.
    held_blanks: usize,
    /// The number of such characters that may still be read a second time.
    blanks_left: usize,
    steps: BTreeMap<StepId, Step>,
    /// The position of each step's key, including steps with errors.
    numbers: BTreeMap<StepId, Position>,
    findings: Vec<Finding>,
    /// The reason not to plan, if one was declared.
    react: Option<String>,
    /// Whether `action_plan` was seen, or it is known that there will be none.
    found: bool,
    /// How an object that had no plan so far broke off.
    broken: Option<ParseError>,
    failed: Option<ParseError>,
}

/// An event of reading a text.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OnePlanEvent {
    /// The object of a step has closed, and it has no error of its own.
    Step(Step),
    /// There is a finding.
    Finding(Finding),
    /// The text cannot be read any further; [`OnePlanReader::finish`] returns the same error.
    Failed(ParseError),
}

#[derive(Debug)]
enum State {
    Prose,
    Object {
        tree: Tree,
        /// Whether this is an object: a key and a colon were read.
        is_object: bool,
        /// Whether it contains a plan: `action_plan` was read.
        is_plan: bool,
        /// Whether no object before it did.
        is_first: bool,
    },
    Failed,
}

impl Default for OnePlanReader {
    fn default() -> Self {
        Self::new()
    }
}

impl OnePlanReader {
    /// Returns a reader that has read nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            at: Position::START,
            state: State::Prose,
            held: Vec::new(),
            held_blanks: 0,
            blanks_left: BLANKS_WITHIN,
            steps: BTreeMap::new(),
            numbers: BTreeMap::new(),
            findings: Vec::new(),
            react: None,
            found: false,
            broken: None,
            failed: None,
        }
    }

    /// Takes the next part of the text. The combined output of all calls does not depend on how the
    /// text was split.
    pub fn push(&mut self, text: &str) -> Vec<OnePlanEvent> {
        let mut events = Vec::new();
        for c in text.chars() {
            self.take(c, &mut events);
            self.at.pass(c);
        }
        events
    }

    /// Ends the text.
    ///
    /// # Errors
    /// When there is no plan in the text, the plan breaks off, or it is not JSON even when read
    /// leniently.
    pub fn finish(mut self) -> Result<OnePlan, ParseError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        if let State::Object { tree, is_plan, is_object, .. } = &self.state
            && (*is_plan || (*is_object && !self.found))
        {
            return Err(tree.truncated());
        }
        if !self.found {
            return Err(self.broken.unwrap_or(ParseError::NoPlan {
                expected: "one JSON object with `action_plan`, or with `mode`",
            }));
        }
        let intent = match self.react {
            Some(reason) => Intent::React { reason },
            None => Intent::Plan(Plan {
                form: Form::OnePlan,
                steps: self.steps.into_values().collect(),
            }),
        };
        if matches!(&intent, Intent::Plan(_)) && self.numbers.is_empty() {
            let message = "`action_plan` contains no steps; expected `step1` at least";
            self.findings.push(Finding::of_plan(FindingKind::EmptyPlan, message));
        }
        Ok(OnePlan { intent, findings: self.findings.into_iter().collect(), places: self.numbers })
    }

    fn take(&mut self, c: char, events: &mut Vec<OnePlanEvent>) {
        match &mut self.state {
            State::Failed => {}
            State::Prose => {
                if c == '{' {
                    self.begin(self.at);
                }
            }
            State::Object { tree, is_object, is_plan, .. } => {
                if !*is_object {
                    self.held.push((self.at, c));
                }
                let done = tree.push(c);
                if !*is_object && (c.is_whitespace() || tree.is_in_comment()) {
                    self.held_blanks += 1;
                }
                match done {
                    Ok(done) => self.take_done(done, events),
                    Err(error) if *is_plan => self.fail(error, events),
                    Err(error) if *is_object => {
                        self.broken.get_or_insert(error);
                        self.state = State::Prose;
                        // The character that breaks this object may begin another.
                        self.take(c, events);
                    }
                    Err(_) => self.read_again(events),
                }
                let blanks = self.held_blanks.min(self.blanks_left);
                if self.held.len() > FIRST_KEY_WITHIN + blanks {
                    self.read_again(events);
                }
            }
        }
    }

    /// Handles a `{` at a position.
    fn begin(&mut self, at: Position) {
        let mut tree = Tree::new(at, Some(PLAN));
        // An opening brace is always taken.
        let _ = tree.push('{');
        self.state =
            State::Object { tree, is_object: false, is_plan: false, is_first: !self.found };
        self.held.clear();
        self.held_blanks = 0;
    }

    /// Handles a `{` that was text: the text held back after it is read again.
    fn read_again(&mut self, events: &mut Vec<OnePlanEvent>) {
        self.state = State::Prose;
        self.blanks_left = self.blanks_left.saturating_sub(self.held_blanks);
        self.held_blanks = 0;
        let end = self.at;
        for (at, c) in std::mem::take(&mut self.held) {
            self.at = at;
            self.take(c, events);
        }
        self.at = end;
    }

    fn take_done(&mut self, done: Vec<Done>, events: &mut Vec<OnePlanEvent>) {
        for done in done {
            match done {
                Done::Key(at, key) => self.take_key(at, &key, events),
                Done::Member(member) => self.take_step(member, events),
                Done::Root(root) => self.take_root(root, events),
            }
        }
    }

    fn take_key(&mut self, at: Position, key: &str, events: &mut Vec<OnePlanEvent>) {
        let State::Object { is_object, is_plan, is_first, .. } = &mut self.state else { return };
        *is_object = true;
        self.held.clear();
        self.held_blanks = 0;
        if key != PLAN {
            return;
        }
        let is_second = !*is_first && !*is_plan;
        *is_plan = true;
        self.found = true;
        if is_second {
            self.second_plan(at, events);
        }
    }

    /// Handles the object of a step that has closed.
    fn take_step(&mut self, member: Member, events: &mut Vec<OnePlanEvent>) {
        if !matches!(self.state, State::Object { is_first: true, .. }) {
            return;
        }
        let key_at = member.at;
        let Lowered { id, step, findings } = step_object::lower(member);
        let mut is_sound = step.is_some();
        for finding in findings {
            is_sound &= !finding.kind.is_error();
            self.report(finding, events);
        }
        let Some(id) = id else { return };
        if let Some(first) = self.numbers.get(&id) {
            let message = format!("{id} occurs twice: at {first} and at {key_at}");
            let finding = Finding::of_step(FindingKind::DuplicateStep, id, message).at(key_at);
            self.report(finding, events);
            return;
        }
        self.numbers.insert(id, key_at);
        if let Some(step) = step {
            self.steps.insert(id, step.clone());
            if is_sound {
                events.push(OnePlanEvent::Step(step));
            }
        }
    }

    /// Handles the end of the object that began in the text.
    fn take_root(&mut self, root: Node, events: &mut Vec<OnePlanEvent>) {
        let State::Object { is_plan, is_first, .. } =
            std::mem::replace(&mut self.state, State::Prose)
        else {
            return;
        };
        let at = root.at;
        let Value::Object(members) = root.value else { return };
        let text_of = |key: &str| {
            members.iter().find(|member| member.key == key).and_then(|member| {
                if let Value::Text(text) = &member.node.value { Some(text.clone()) } else { None }
            })
        };
        let mode = text_of("mode").filter(|mode| mode.eq_ignore_ascii_case(REACT));
        let is_react = mode.is_some();
        if !is_plan && is_react {
            if self.found {
                self.second_plan(at, events);
            } else {
                self.found = true;
                self.react = Some(text_of("reason").unwrap_or_default());
                if let Some(mode) = mode.filter(|mode| mode != REACT) {
                    let message = format!("the mode `{mode}` was read as `{REACT}`");
                    let finding = Finding::of_plan(FindingKind::Leniency, message).at(at);
                    self.report(finding, events);
                }
            }
        }
        if !is_plan || !is_first {
            return;
        }
        if is_react {
            let message =
                "the text gives both `action_plan` and `\"mode\": \"react\"`; expected one";
            self.report(Finding::of_plan(FindingKind::Syntax, message).at(at), events);
        }
        let mut plans = 0;
        for member in &members {
            let finding = if member.key != PLAN {
                let message = format!("the key `{}` beside `action_plan` was ignored", member.key);
                Finding::of_plan(FindingKind::Leniency, message)
            } else if plans > 0 {
                let message = "`action_plan` occurs twice in one object; expected it once";
                Finding::of_plan(FindingKind::DuplicateKey, message)
            } else {
                plans += 1;
                let value = &member.node.value;
                if matches!(value, Value::Object(_)) {
                    continue;
                }
                let found = value.kind();
                let message = format!("`action_plan` is {found}; expected an object of steps");
                Finding::of_plan(FindingKind::Syntax, message)
            };
            self.report(finding.at(member.at), events);
        }
    }

    fn second_plan(&mut self, at: Position, events: &mut Vec<OnePlanEvent>) {
        let message = "there is a second plan in the text; expected one";
        self.report(Finding::of_plan(FindingKind::Syntax, message).at(at), events);
    }

    fn report(&mut self, finding: Finding, events: &mut Vec<OnePlanEvent>) {
        self.findings.push(finding.clone());
        events.push(OnePlanEvent::Finding(finding));
    }

    fn fail(&mut self, error: ParseError, events: &mut Vec<OnePlanEvent>) {
        self.state = State::Failed;
        self.failed = Some(error.clone());
        events.push(OnePlanEvent::Failed(error));
    }
}

//! A reader of GBNF for tests: it reports whether a text may be written, and what may come next, by
//! the rules of llama.cpp.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::str::Chars;

/// What one place in a rule holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    /// One character: of these ranges, or of all others.
    Char {
        ranges: Vec<(char, char)>,
        is_negated: bool,
    },
    Rule(usize),
}

/// A parsed grammar.
#[derive(Debug)]
pub(super) struct Gbnf {
    /// The alternatives of each rule.
    rules: Vec<Vec<Vec<Item>>>,
}

/// The ways in which a text may continue: each a stack of places in rules, the next character's last.
pub(super) type State = BTreeSet<Vec<(usize, usize, usize)>>;

impl Gbnf {
    pub(super) fn read(text: &str) -> Self {
        let mut reader = Reader { names: BTreeMap::new(), rules: Vec::new() };
        reader.rule_named("root");
        for line in text.lines() {
            let (name, body) = line.split_once(" ::= ").unwrap_or_else(|| panic!("{line}"));
            assert!(name.bytes().all(|b| b.is_ascii_alphanumeric()), "{name}");
            let mut chars = body.chars().peekable();
            let alternatives = reader.alternatives(&mut chars);
            assert_eq!(chars.next(), None, "{line}");
            let rule = reader.rule_named(name);
            assert!(reader.rules[rule].is_none(), "{name} is defined twice");
            reader.rules[rule] = Some(alternatives);
        }
        let names = reader.names;
        let rules = reader.rules.into_iter().enumerate().map(|(at, rule)| {
            rule.unwrap_or_else(|| panic!("undefined: {:?}", names.iter().find(|(_, r)| **r == at)))
        });
        let gbnf = Self { rules: rules.collect() };
        gbnf.check_left_recursion();
        gbnf
    }

    /// Fails on left-recursive rules, which llama.cpp refuses.
    fn check_left_recursion(&self) {
        for rule in 0..self.rules.len() {
            let (mut open, mut seen) = (vec![rule], BTreeSet::new());
            while let Some(at) = open.pop() {
                for alternative in &self.rules[at] {
                    for item in alternative {
                        let Item::Rule(next) = item else { break };
                        assert_ne!(*next, rule, "rule {rule} begins with itself");
                        if seen.insert(*next) {
                            open.push(*next);
                        }
                        if !self.is_empty(*next, 0) {
                            break;
                        }
                    }
                }
            }
        }
    }

    fn is_empty(&self, rule: usize, depth: usize) -> bool {
        depth < 20
            && self.rules[rule].iter().any(|alternative| {
                alternative.iter().all(|item| match item {
                    Item::Char { .. } => false,
                    Item::Rule(rule) => self.is_empty(*rule, depth + 1),
                })
            })
    }

    pub(super) fn start(&self) -> State {
        let mut state = State::new();
        for alternative in 0..self.rules[0].len() {
            self.open(vec![(0, alternative, 0)], &mut state);
        }
        state
    }

    /// Follows rules until a character comes next, or the end.
    fn open(&self, mut stack: Vec<(usize, usize, usize)>, state: &mut State) {
        let Some((rule, alternative, at)) = stack.pop() else {
            state.insert(stack);
            return;
        };
        match self.rules[rule][alternative].get(at) {
            None => self.open(stack, state),
            Some(Item::Char { .. }) => {
                stack.push((rule, alternative, at));
                state.insert(stack);
            }
            Some(Item::Rule(next)) => {
                // A rule that ends with another is left before that one begins.
                if at + 1 < self.rules[rule][alternative].len() {
                    stack.push((rule, alternative, at + 1));
                }
                for alternative in 0..self.rules[*next].len() {
                    let mut stack = stack.clone();
                    stack.push((*next, alternative, 0));
                    self.open(stack, state);
                }
            }
        }
    }

    /// Returns the state after more text; `None` if the text may not be written.
    pub(super) fn advance(&self, state: &State, more: &str) -> Option<State> {
        let mut state = state.clone();
        for c in more.chars() {
            let mut next = State::new();
            for stack in &state {
                let Some((rule, alternative, at)) = stack.last() else { continue };
                let Item::Char { ranges, is_negated } = &self.rules[*rule][*alternative][*at]
                else {
                    unreachable!("a character comes next");
                };
                if ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *is_negated {
                    let mut stack = stack.clone();
                    stack.pop();
                    stack.push((*rule, *alternative, at + 1));
                    self.open(stack, &mut next);
                }
            }
            state = next;
        }
        (!state.is_empty()).then_some(state)
    }

    pub(super) fn after(&self, text: &str) -> Option<State> {
        self.advance(&self.start(), text)
    }

    pub(super) fn may_end(state: &State) -> bool {
        state.contains(&Vec::new())
    }

    /// Returns whether a whole text may be written.
    pub(super) fn admits(&self, text: &str) -> bool {
        self.after(text).is_some_and(|state| Self::may_end(&state))
    }
}

struct Reader {
    names: BTreeMap<String, usize>,
    rules: Vec<Option<Vec<Vec<Item>>>>,
}

impl Reader {
    fn rule_named(&mut self, name: &str) -> usize {
        let next = self.rules.len();
        let rule = *self.names.entry(name.to_owned()).or_insert(next);
        if rule == next {
            self.rules.push(None);
        }
        rule
    }

    fn rule_of(&mut self, alternatives: Vec<Vec<Item>>) -> Item {
        self.rules.push(Some(alternatives));
        Item::Rule(self.rules.len() - 1)
    }

    fn alternatives(&mut self, chars: &mut Peekable<Chars<'_>>) -> Vec<Vec<Item>> {
        let mut alternatives = vec![Vec::new()];
        while let Some(c) = chars.next_if(|c| *c != ')') {
            let before = alternatives.last().map_or(0, Vec::len);
            let items = alternatives.last_mut().unwrap();
            match c {
                ' ' => continue,
                '|' => {
                    alternatives.push(Vec::new());
                    continue;
                }
                '"' => {
                    while let Some(c) = chars.next_if(|c| *c != '"') {
                        let c = if c == '\\' { escaped(chars) } else { c };
                        items.push(Item::Char { ranges: vec![(c, c)], is_negated: false });
                    }
                    chars.next();
                }
                '[' => items.push(class(chars)),
                '(' => {
                    let inner = self.alternatives(chars);
                    assert_eq!(chars.next(), Some(')'));
                    let group = self.rule_of(inner);
                    alternatives.last_mut().unwrap().push(group);
                }
                c => {
                    let mut name = String::from(c);
                    while let Some(c) = chars.next_if(char::is_ascii_alphanumeric) {
                        name.push(c);
                    }
                    let rule = self.rule_named(&name);
                    alternatives.last_mut().unwrap().push(Item::Rule(rule));
                }
            }
            self.repeat(chars, alternatives.last_mut().unwrap(), before);
        }
        alternatives
    }

    /// Repeats what was read last; a literal is repeated as a whole.
    fn repeat(&mut self, chars: &mut Peekable<Chars<'_>>, items: &mut Vec<Item>, from: usize) {
        let (least, most) = match chars.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => {
                let text: String = chars.clone().skip(1).take_while(|c| *c != '}').collect();
                let (least, most) = text.split_once(',').unwrap();
                chars.by_ref().take(text.len() + 1).for_each(|_| {});
                (least.parse().unwrap(), Some(most.parse::<usize>().unwrap()))
            }
            _ => return,
        };
        chars.next();
        let repeated = items.split_off(from);
        (0..least).for_each(|_| items.extend(repeated.clone()));
        match most {
            None => {
                let rule = self.rules.len();
                let again = [repeated, vec![Item::Rule(rule)]].concat();
                let item = self.rule_of(vec![again, Vec::new()]);
                items.push(item);
            }
            Some(most) => {
                let mut rest: Vec<Item> = Vec::new();
                for _ in least..most {
                    let once = [repeated.clone(), rest].concat();
                    rest = vec![self.rule_of(vec![once, Vec::new()])];
                }
                items.extend(rest);
            }
        }
    }
}

fn class(chars: &mut Peekable<Chars<'_>>) -> Item {
    let is_negated = chars.next_if_eq(&'^').is_some();
    let mut ranges: Vec<(char, char)> = Vec::new();
    while let Some(c) = chars.next_if(|c| *c != ']') {
        let c = if c == '\\' { escaped(chars) } else { c };
        let mut ahead = chars.clone();
        let is_range = ahead.next() == Some('-') && ahead.next() != Some(']');
        let to = if is_range {
            chars.next();
            match chars.next().unwrap() {
                '\\' => escaped(chars),
                to => to,
            }
        } else {
            c
        };
        ranges.push((c, to));
    }
    chars.next();
    Item::Char { ranges, is_negated }
}

fn escaped(chars: &mut Peekable<Chars<'_>>) -> char {
    match chars.next().unwrap() {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'x' => {
            let digits: String = chars.by_ref().take(2).collect();
            char::from(u8::from_str_radix(&digits, 16).unwrap())
        }
        c @ ('"' | '\\' | ']' | '[') => c,
        c => panic!("GBNF has no escape {c:?}"),
    }
}

//! One session as a whole: turns its lines into a tree, and the tree into conversations.

use super::caller::Callers;
use super::line::{Line, Parent};
use super::message::{Facts, Messages, messages, reference};
use super::tree::{Begin, Link, Node, Thread, threads};
use crate::conversion::Conversion;
use crate::draft::{push_member, quoted};
use crate::format::{Context, Format};
use crate::record::object_of;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The lines of a session, and the tree that some of them make.
pub(super) struct Session<'r> {
    lines: Vec<Line<'r>>,
    nodes: Vec<Node>,
    /// The line of each node.
    chained: Vec<usize>,
    /// The agents of the scopes after the first, which is the session's own.
    agents: Vec<String>,
    /// Lines that repeat an earlier line word for word.
    repeated: Vec<usize>,
}

impl<'r> Session<'r> {
    pub(super) fn of(mut lines: Vec<Line<'r>>) -> Self {
        count_prompts(&mut lines);
        let mut chained = Vec::new();
        let mut repeated = Vec::new();
        let mut known: HashMap<&str, usize> = HashMap::new();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.is_chained()) {
            match line.uuid.as_deref().and_then(|uuid| known.get(uuid)) {
                // The first one counts. A different one with the same id is kept raw.
                Some(first) => {
                    let first = chained.get(*first).and_then(|first| lines.get(*first));
                    if first.is_some_and(|first: &Line<'_>| first.record.text == line.record.text) {
                        repeated.push(at);
                    }
                }
                None => {
                    known.extend(line.uuid.as_deref().map(|uuid| (uuid, chained.len())));
                    chained.push(at);
                }
            }
        }
        let link = |uuid: &str| known.get(uuid).map_or(Link::Missing, |at| Link::To(*at));
        let (mut agents, mut calls) = (Numbers::default(), Numbers::default());
        let mut responses = HashMap::new();
        let nodes = chained
            .iter()
            .filter_map(|at| lines.get(*at))
            .map(|line| {
                let scope = line.agent.as_deref().map_or(0, |agent| agents.of((0, agent)) + 1);
                let mut number = |id| calls.of((scope, id));
                Node {
                    parent: match &line.parent {
                        Parent::Is(uuid) => link(uuid),
                        Parent::Root => Link::Root,
                        Parent::Unsaid => Link::Missing,
                    },
                    logical: line.logical.as_deref().map_or(Link::Root, link),
                    boundary: line.is_boundary(),
                    scope,
                    speaks: line.said.is_some(),
                    meta: line.meta,
                    calls: line.calls.iter().map(|id| number(id.as_ref())).collect(),
                    answers: line.answers.iter().map(|id| number(id.as_ref())).collect(),
                    response: line.response.as_ref().map(|response| {
                        let next = responses.len();
                        *responses.entry((scope, response)).or_insert(next)
                    }),
                }
            })
            .collect();
        let agents = agents.names.into_iter().map(|(_, agent)| agent.to_owned()).collect();
        Self { nodes, chained, agents, repeated, lines }
    }

    pub(super) fn into_lines(self) -> Vec<Line<'r>> {
        self.lines
    }

    /// Returns every conversation that has a message; none if there is no message at all.
    pub(super) fn conversations(&self, context: Context<'_>) -> Vec<Conversion> {
        let mut threads: Vec<_> = self.threads().into_iter().map(|t| self.said_in(t)).collect();
        // Anything that is not a message is kept by the conversation of its thread, else by the
        // first one of its scope, else by the first of all.
        threads.retain(|thread| !thread.messages.drafts.is_empty());
        let mut of_scope = vec![0; self.agents.len() + 1];
        for (number, said) in threads.iter().enumerate().rev() {
            if let Some(first) = of_scope.get_mut(said.thread.scope) {
                *first = number;
            }
        }
        let mut owners = vec![0; self.lines.len()];
        for (node, at) in self.nodes.iter().zip(&self.chained) {
            if let (Some(owner), Some(first)) = (owners.get_mut(*at), of_scope.get(node.scope)) {
                *owner = *first;
            }
        }
        for (number, said) in threads.iter().enumerate() {
            for at in said.thread.nodes.iter().filter_map(|node| self.chained.get(*node)) {
                if let Some(owner) = owners.get_mut(*at) {
                    *owner = number;
                }
            }
        }
        let mut kept: Vec<Vec<usize>> = vec![Vec::new(); threads.len()];
        let mut repeated: Vec<Vec<usize>> = kept.clone();
        let mut repeats = self.repeated.iter().copied().peekable();
        for (at, owner) in owners.into_iter().enumerate() {
            let lists = if repeats.next_if_eq(&at).is_some() { &mut repeated } else { &mut kept };
            if let Some(list) = lists.get_mut(owner) {
                list.push(at);
            }
        }
        let session = threads.first().and_then(|said| self.session_of(&said.thread));
        let mut names = Names { session, counts: HashMap::new() };
        let mut callers = Callers::of(&self.lines);
        let mut all = Vec::with_capacity(threads.len());
        for ((said, kept), repeated) in threads.into_iter().zip(kept).zip(repeated) {
            let name = names.next(&said.thread, &self.agents);
            let mut conversion = Conversion::new(Format::ClaudeCodeLog, name);
            for (key, value) in said.facts.iter() {
                conversion.fact(key, value.get());
            }
            self.place(&said, &mut callers, &names, &mut conversion, context);
            self.keep(&said, &kept, &repeated, &mut conversion);
            conversion.unfinished_response(said.messages.open);
            for draft in said.messages.drafts {
                conversion.add(draft);
            }
            all.push(conversion);
        }
        all
    }

    fn threads(&self) -> Vec<Thread> {
        let mut threads = threads(&self.nodes, self.hint());
        // Side chains that name no agent share a scope; none of them is the active one.
        let nameless = self.agents.iter().position(String::is_empty).map(|at| at + 1);
        let rank = |thread: &Thread| {
            let first = thread.nodes.first().filter(|_| Some(thread.scope) == nameless).copied();
            (thread.scope, first)
        };
        threads.sort_by_key(rank);
        threads
    }

    /// Returns the session that a thread belongs to: that of its last line, because earlier lines
    /// may be copies from an older session.
    fn session_of(&self, thread: &Thread) -> Option<String> {
        let line = |node: &usize| self.chained.get(*node).and_then(|at| self.lines.get(*at));
        let mut lines = thread.nodes.iter().rev().filter_map(line);
        lines.find_map(|line| line.session.as_deref().map(str::to_owned))
    }

    /// Returns the line that the log names as the last of the active thread, if it does so after
    /// everything that was said.
    fn hint(&self) -> Option<usize> {
        let mut main = self.nodes.iter().zip(&self.chained).rev();
        let (_, &last) = main.find(|(node, _)| node.speaks && node.scope == 0)?;
        let behind = self.lines.get(last + 1..)?;
        let prompt = behind.iter().rev().find(|line| line.kind == "last-prompt")?;
        let leaf = prompt.record.object()?.text("leafUuid")?.into_owned();
        let is_leaf = |at: &usize| {
            self.lines.get(*at).is_some_and(|line| line.uuid.as_deref() == Some(leaf.as_str()))
        };
        let leaf = self.chained.iter().position(is_leaf)?;
        self.nodes.get(leaf).filter(|node| node.scope == 0).map(|_| leaf)
    }

    /// Returns what is said in a thread.
    fn said_in(&self, thread: Thread) -> SaidIn<'r> {
        let line = |node: &usize| self.chained.get(*node).and_then(|at| self.lines.get(*at));
        let said = thread.nodes.iter().filter_map(line).filter(|line| line.said.is_some());
        // A summary replaces what it sums up only if that is missing.
        let mut heard = matches!(thread.begin, Begin::Fork(_));
        let (mut lines, mut summaries) = (Vec::new(), Vec::new());
        for line in said {
            if line.summary && heard {
                summaries.push(line.record.line);
            } else {
                heard = true;
                lines.push(line);
            }
        }
        let facts = lines.first().map(|line| Facts::of(line)).unwrap_or_default();
        let mut messages = messages(&lines, &facts);
        messages.silent.extend(summaries);
        SaidIn { thread, facts, messages }
    }

    /// Records the relation of a conversation to the others.
    fn place(
        &self,
        said: &SaidIn<'_>,
        callers: &mut Callers,
        names: &Names,
        conversion: &mut Conversion,
        context: Context<'_>,
    ) {
        let thread = &said.thread;
        let line = |node: usize| self.chained.get(node).and_then(|at| self.lines.get(*at));
        // The metadata beside an agent's log says which call started it.
        let meta = context.meta.and_then(object_of);
        let mut call = meta.and_then(|meta| Some(meta.text("toolUseId")?.into_owned()));
        if let Some(meta) = context.meta {
            conversion.fact("meta", meta);
        }
        if let Some(agent) = thread.scope.checked_sub(1).and_then(|at| self.agents.get(at)) {
            if let Some(parent) = &names.session {
                conversion.fact_text("parent_session", parent);
            }
            let first = thread.nodes.iter().filter_map(|node| line(*node));
            let first = first.filter(|line| line.said.is_some()).take(1).next();
            call = callers.take(agent, first).or(call);
        }
        if let Some(call) = call {
            conversion.fact_text("parent_call", &call);
        }
        match thread.begin {
            Begin::Root => {}
            Begin::Fork(node) => {
                let same = self.nodes.get(node).is_some_and(|node| node.scope == thread.scope);
                let key = if same { "fork_point" } else { "parent_line" };
                if let Some(line) = line(node) {
                    conversion.fact(key, &reference(line));
                }
            }
            Begin::Missing => conversion.fact("partial", "true"),
        }
        let seams: Vec<_> = thread
            .seams
            .iter()
            .filter_map(|node| line(*node))
            .map(|line| line.record.line.to_string())
            .collect();
        if !seams.is_empty() {
            conversion.fact("seams", &format!("[{}]", seams.join(",")));
        }
    }

    /// Keeps every line that is in no message.
    fn keep(
        &self,
        said: &SaidIn<'_>,
        kept: &[usize],
        repeated: &[usize],
        conversion: &mut Conversion,
    ) {
        let in_thread: HashSet<usize> =
            said.thread.nodes.iter().filter_map(|node| self.chained.get(*node)).copied().collect();
        let mut unread = String::new();
        for &at in kept {
            let Some(line) = self.lines.get(at) else { continue };
            let number = line.record.line;
            let is_message = line.said.is_some() && in_thread.contains(&at);
            if is_message && !said.messages.silent.contains(&number) {
                continue;
            }
            if let Some(why) = &line.unread {
                push_member(&number.to_string(), &quoted(why), &mut unread);
            }
            conversion.record(&line.kind, number, &line.record.text);
        }
        if let Some(unread) = unread.strip_prefix(',') {
            conversion.fact("unread_lines", &format!("{{{unread}}}"));
        }
        let repeated: Vec<_> = repeated
            .iter()
            .filter_map(|at| self.lines.get(*at))
            .map(|line| line.record.line.to_string())
            .collect();
        if !repeated.is_empty() {
            conversion.fact("repeated_lines", &format!("[{}]", repeated.join(",")));
        }
    }
}

/// Counts the prompts before each line of the session and of each agent. Side chains that name no agent have no order.
fn count_prompts(lines: &mut [Line<'_>]) {
    let mut counts: HashMap<Option<Cow<'_, str>>, u64> = HashMap::new();
    for line in lines.iter_mut().filter(|line| line.agent.as_deref() != Some("")) {
        let count = counts.entry(line.agent.clone()).or_default();
        *count += u64::from(line.is_prompt());
        line.follows(*count);
    }
}

/// A thread and its messages.
struct SaidIn<'r> {
    thread: Thread,
    facts: Facts<'r>,
    messages: Messages,
}

/// Numbers for names, by first appearance.
#[derive(Default)]
struct Numbers<'n> {
    names: Vec<(usize, &'n str)>,
    numbers: HashMap<(usize, &'n str), usize>,
}

impl<'n> Numbers<'n> {
    fn of(&mut self, name: (usize, &'n str)) -> usize {
        *self.numbers.entry(name).or_insert_with(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }
}

/// The ids of the conversations.
struct Names {
    session: Option<String>,
    /// How many conversations of a scope have an id.
    counts: HashMap<usize, u64>,
}

impl Names {
    fn next(&mut self, thread: &Thread, agents: &[String]) -> Option<String> {
        let count = self.counts.entry(thread.scope).or_default();
        *count += 1;
        let session = self.session.as_deref()?;
        let agent = thread.scope.checked_sub(1).and_then(|at| agents.get(at));
        Some(match (agent.map(String::as_str), *count - 1) {
            (None, 0) => session.to_owned(),
            (None, n) => format!("{session}-branch-{n}"),
            (Some(""), n) => format!("{session}-side-{}", n + 1),
            (Some(agent), 0) => format!("{session}-agent-{agent}"),
            (Some(agent), n) => format!("{session}-agent-{agent}-branch-{n}"),
        })
    }
}

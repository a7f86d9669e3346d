//! Finds the threads of a session: which lines make up one conversation. Pure functions over numbers.

/// A line in the tree of a session, described by what it says about others. Lines are numbered in
/// the order of the file; scopes, responses and calls by their first appearance.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    /// The line before it.
    pub(super) parent: Link,
    /// The line before it across a compaction, if `parent` is the root.
    pub(super) logical: Link,
    /// Whether it begins a window of the model, so that something certainly came before it.
    pub(super) boundary: bool,
    /// The agent whose lines these are; threads stay inside their scope.
    pub(super) scope: usize,
    /// Whether somebody says it, so that it is more than a link.
    pub(super) speaks: bool,
    /// Whether the client made it.
    pub(super) meta: bool,
    /// The response of the model that it is a part of.
    pub(super) response: Option<usize>,
    /// The calls that it makes.
    pub(super) calls: Vec<usize>,
    /// The calls that it answers.
    pub(super) answers: Vec<usize>,
}

/// What a line says about the line before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Link {
    /// There is none.
    #[default]
    Root,
    /// This one.
    To(usize),
    /// One that the file does not hold.
    Missing,
}

/// The lines of one conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) scope: usize,
    /// In the order of the file.
    pub(super) nodes: Vec<usize>,
    pub(super) begin: Begin,
    /// Lines before which a line is missing, so that the nearest earlier one was taken instead.
    pub(super) seams: Vec<usize>,
}

/// Where a thread begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// With its first line.
    Root,
    /// After this line, which belongs to another thread.
    Fork(usize),
    /// With lines that the file does not hold.
    Missing,
}

/// Returns all threads, scope after scope: first the active one, then the branches in the order of
/// the file. Every line that speaks is in exactly one. `hint` is a line that the log names as the
/// last of the active thread; it counts if the line that speaks last does not lead to it. The cost
/// is linear in the lines, whatever they say about each other.
pub(super) fn threads(nodes: &[Node], hint: Option<usize>) -> Vec<Thread> {
    let mut leaves: Vec<Vec<usize>> = Vec::new();
    for (at, node) in nodes.iter().enumerate().filter(|(_, node)| node.speaks) {
        push_at(&mut leaves, node.scope, at);
    }
    if let Some(hint) = hint
        && let Some(leaves) = nodes.get(hint).and_then(|node| leaves.get_mut(node.scope))
        && let Some(&last) = leaves.last()
        && !Forest::new(nodes).thread(last).nodes.contains(&hint)
    {
        leaves.push(hint);
    }
    let mut forest = Forest::new(nodes);
    let mut all: Vec<Thread> = Vec::new();
    for mut leaves in leaves {
        let active = all.len();
        while let Some(leaf) = leaves.pop() {
            if forest.is_free(leaf) {
                all.push(forest.thread(leaf));
            }
        }
        if let Some(branches) = all.get_mut(active + 1..) {
            branches.sort_by_key(|thread| thread.nodes.first().copied());
        }
    }
    all
}

struct Forest<'n> {
    nodes: &'n [Node],
    /// The thread that a line was taken into; threads count from 1.
    taken: Vec<usize>,
    count: usize,
    /// The nearest earlier line that speaks in the same scope and is not continued later.
    before: Vec<Option<usize>>,
    responses: Vec<Vec<usize>>,
    results: Vec<Vec<usize>>,
    meta_children: Vec<Vec<usize>>,
}

impl<'n> Forest<'n> {
    fn new(nodes: &'n [Node]) -> Self {
        let mut responses = Vec::new();
        let mut results = Vec::new();
        let mut meta_children = vec![Vec::new(); nodes.len()];
        for (at, node) in nodes.iter().enumerate() {
            if let Some(response) = node.response {
                push_at(&mut responses, response, at);
            }
            for &call in &node.answers {
                push_at(&mut results, call, at);
            }
            if let (true, Link::To(parent)) = (node.meta && node.speaks, node.parent) {
                push_at(&mut meta_children, parent, at);
            }
        }
        let before = nearest_ended(nodes);
        let taken = vec![0; nodes.len()];
        Self { nodes, taken, count: 0, before, responses, results, meta_children }
    }

    fn scope(&self, at: usize) -> Option<usize> {
        self.nodes.get(at).map(|node| node.scope)
    }

    fn is_free(&self, at: usize) -> bool {
        self.taken.get(at) == Some(&0)
    }

    fn take(&mut self, at: usize, into: &mut Vec<usize>) {
        if let Some(taken) = self.taken.get_mut(at) {
            *taken = self.count;
            into.push(at);
        }
    }

    /// Returns whether the thread that is being taken has it.
    fn is_own(&self, at: usize) -> bool {
        self.taken.get(at) == Some(&self.count)
    }

    /// Takes the thread that ends with `leaf`.
    fn thread(&mut self, leaf: usize) -> Thread {
        self.count += 1;
        let (mut nodes, mut seams) = (Vec::new(), Vec::new());
        let scope = self.scope(leaf).unwrap_or(0);
        let mut at = leaf;
        let begin = loop {
            self.take(at, &mut nodes);
            let next = match self.next(at) {
                Next::Begin(begin) => break begin,
                Next::At(next) if !self.is_own(next) => next,
                // In a cycle, the true parent of a line is not known.
                Next::At(_) | Next::Unknown => match self.before.get(at).copied().flatten() {
                    Some(next) if !self.is_own(next) => {
                        seams.push(at);
                        next
                    }
                    _ => break Begin::Missing,
                },
            };
            if !self.is_free(next) {
                break Begin::Fork(next);
            }
            at = next;
        };
        self.add_back(&mut nodes);
        nodes.sort_unstable();
        seams.reverse();
        Thread { scope, nodes, begin, seams }
    }

    /// Returns the line before `at`, as far as the lines show it.
    fn next(&self, at: usize) -> Next {
        let Some(node) = self.nodes.get(at) else { return Next::Unknown };
        match (node.parent, node.logical) {
            (Link::To(to), _) | (Link::Root, Link::To(to)) => {
                if self.scope(to) == Some(node.scope) {
                    Next::At(to)
                } else if node.scope > 0 {
                    Next::Begin(Begin::Fork(to))
                } else {
                    Next::Unknown
                }
            }
            (Link::Root, Link::Root) if !node.boundary => Next::Begin(Begin::Root),
            _ => Next::Unknown,
        }
    }

    /// Adds what one chain cannot hold, because parallel calls make a tree: the other lines of its
    /// responses, the results of its calls, and what the client said to those.
    fn add_back(&mut self, nodes: &mut Vec<usize>) {
        let chain = nodes.len();
        for i in 0..chain {
            let response = nodes.get(i).and_then(|at| self.nodes.get(*at)?.response);
            let lines = response.and_then(|response| self.responses.get_mut(response));
            // All free lines of a response are taken now, so no later thread looks here again.
            for line in lines.map(std::mem::take).unwrap_or_default() {
                if self.is_free(line) {
                    self.take(line, nodes);
                }
            }
        }
        let all = self.nodes;
        let calls_of = |at: &usize| all.get(*at).map_or(&[][..], |node| &node.calls);
        let answers_of = |at: &usize| all.get(*at).map_or(&[][..], |node| &node.answers);
        let mut answered: std::collections::HashSet<usize> =
            nodes.iter().flat_map(answers_of).copied().collect();
        let calls: Vec<usize> = nodes.iter().flat_map(calls_of).copied().collect();
        for call in calls {
            let lines = self.results.get_mut(call).map(std::mem::take).unwrap_or_default();
            for line in lines {
                let new = answers_of(&line).iter().any(|call| !answered.contains(call));
                if new && self.is_free(line) {
                    answered.extend(answers_of(&line));
                    self.take(line, nodes);
                }
            }
        }
        let mut i = 0;
        while let Some(&at) = nodes.get(i) {
            i += 1;
            let Some(node) = self.nodes.get(at) else { continue };
            // A result, or what was just said about one.
            if node.answers.is_empty() && !(node.meta && i > chain) {
                continue;
            }
            for child in self.meta_children.get_mut(at).map(std::mem::take).unwrap_or_default() {
                if self.is_free(child) {
                    self.take(child, nodes);
                }
            }
        }
    }
}

enum Next {
    At(usize),
    Begin(Begin),
    Unknown,
}

/// Returns, for each line, the nearest earlier line that speaks in its scope and that nothing after
/// the line continues: the one that it most likely followed if its own parent cannot be found.
fn nearest_ended(nodes: &[Node]) -> Vec<Option<usize>> {
    // The last line that continues a line, through any number of others.
    let mut last: Vec<usize> = (0..nodes.len()).collect();
    for (at, node) in nodes.iter().enumerate().rev() {
        if let Link::To(parent) = node.parent
            && parent < at
            && let Some(&end) = last.get(at)
            && let Some(of_parent) = last.get_mut(parent)
        {
            *of_parent = end.max(*of_parent);
        }
    }
    let mut ending: Vec<Vec<usize>> = Vec::new();
    for (at, end) in last.into_iter().enumerate() {
        push_at(&mut ending, end, at);
    }
    let mut nearest: Vec<Option<usize>> = Vec::new();
    nodes
        .iter()
        .enumerate()
        .map(|(at, node)| {
            let found = nearest.get(node.scope).copied().flatten();
            for ended in ending.get_mut(at).map(std::mem::take).unwrap_or_default() {
                if let Some(Node { speaks: true, scope, .. }) = nodes.get(ended) {
                    if nearest.len() <= *scope {
                        nearest.resize(scope + 1, None);
                    }
                    if let Some(nearest) = nearest.get_mut(*scope) {
                        *nearest = (*nearest).max(Some(ended));
                    }
                }
            }
            found
        })
        .collect()
}

/// Adds to the list of that number, making room for it.
fn push_at(lists: &mut Vec<Vec<usize>>, number: usize, value: usize) {
    if lists.len() <= number {
        lists.resize_with(number + 1, Vec::new);
    }
    if let Some(list) = lists.get_mut(number) {
        list.push(value);
    }
}

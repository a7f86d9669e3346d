//! Results in the place where chat APIs want them: behind the message that calls.

use crate::draft::Draft;
use std::collections::HashMap;

/// A message, and what it has to do with calls.
pub(super) struct Turn {
    pub(super) draft: Draft,
    /// The calls that it makes.
    pub(super) calls: Vec<String>,
    /// The call that it answers.
    pub(super) answers: Option<String>,
}

/// The messages in their order, but each result directly behind its call and the results before
/// it: logs write what the user typed meanwhile, or half of the next response, in between. Where an
/// id stands for several calls, a result answers the last one that is open. A result without its
/// call stays where it is.
pub(super) fn in_order(turns: Vec<Turn>) -> Vec<Draft> {
    let mut groups: Vec<Group> = Vec::with_capacity(turns.len());
    let mut open: HashMap<String, Vec<usize>> = HashMap::new();
    for Turn { draft, calls, answers } in turns {
        let caller = answers.as_ref().and_then(|id| open.get_mut(id)?.pop());
        if let Some(group) = caller.and_then(|at| groups.get_mut(at)) {
            group.results.push(draft);
            continue;
        }
        for id in calls {
            open.entry(id).or_default().push(groups.len());
        }
        groups.push(Group { draft, results: Vec::new() });
    }
    groups.into_iter().flat_map(|group| std::iter::once(group.draft).chain(group.results)).collect()
}

/// A message and the results of its calls.
struct Group {
    draft: Draft,
    results: Vec<Draft>,
}

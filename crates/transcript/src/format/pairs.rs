//! Puts results where chat APIs require them: after the message that calls.

use crate::draft::Draft;
use std::collections::HashMap;

/// A message, with its calls or the call that it answers.
pub(super) struct Turn {
    pub(super) draft: Draft,
    /// The calls that it makes.
    pub(super) calls: Vec<String>,
    /// The call that it answers.
    pub(super) answers: Option<String>,
}

/// Returns the messages in order, except that each result follows its call and the results before
/// it: logs write what the user typed meanwhile, or half of the next response, in between. If
/// several calls share an id, a result answers the last open one. A result without its call stays
/// where it is.
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

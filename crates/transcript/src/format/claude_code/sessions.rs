//! Tells the sessions of an input apart, where the logs of several follow each other.

use super::line::{Line, Parent};
use std::collections::{HashMap, HashSet};

/// Returns the lines of each session, in the order of the input. Lines with several session ids are one session if they
/// make one tree: a resumed session holds copies of an older one. A session whose first line follows one that is missing
/// stays with what is before it. So does what has no session, or one in which nothing is said.
pub(super) fn sessions(lines: Vec<Line<'_>>) -> Vec<Vec<Line<'_>>> {
    let places = places(&lines);
    let mut numbers = HashMap::new();
    let mut all: Vec<Vec<_>> = Vec::new();
    for (line, place) in lines.into_iter().zip(places) {
        let number = *numbers.entry(place).or_insert(all.len());
        if number == all.len() {
            all.push(Vec::new());
        }
        if let Some(session) = all.get_mut(number) {
            session.push(line);
        }
    }
    all
}

/// Returns the number of the session of each line.
fn places(lines: &[Line<'_>]) -> Vec<usize> {
    let mut numbers = HashMap::new();
    for id in lines.iter().filter(|line| line.said.is_some()).filter_map(|l| l.session.as_deref()) {
        let next = numbers.len();
        numbers.entry(id).or_insert(next);
    }
    let mut last = 0;
    let mut places: Vec<_> = lines
        .iter()
        .map(|line| {
            let own = line.session.as_deref().and_then(|id| numbers.get(id));
            last = own.copied().unwrap_or(last);
            last
        })
        .collect();
    if numbers.len() < 2 {
        return places;
    }
    let mut joined = Joined((0..numbers.len()).collect());
    // A copy may have the id of its original.
    let (mut own, mut first) = (HashSet::new(), HashMap::new());
    for (line, place) in lines.iter().zip(&places) {
        if let Some(uuid) = line.uuid.as_deref() {
            own.insert((*place, uuid));
            first.entry(uuid).or_insert(*place);
        }
    }
    let mut begun = HashSet::new();
    let mut before = None;
    for (line, place) in lines.iter().zip(&places) {
        if line.is_chained() {
            let parent = match &line.parent {
                Parent::Is(uuid) => Some(uuid.as_ref()),
                Parent::Root | Parent::Unsaid => line.logical.as_deref(),
            };
            let known = match parent {
                Some(uuid) if own.contains(&(*place, uuid)) => Some(*place),
                Some(uuid) => first.get(uuid).copied(),
                None => None,
            };
            let is_root = parent.is_none() && line.parent == Parent::Root && !line.is_boundary();
            let is_first = begun.insert(*place);
            let other = known.or(before.filter(|_| is_first && !is_root));
            joined.join(*place, other.unwrap_or(*place));
        }
        before = Some(*place);
    }
    places.iter_mut().for_each(|place| *place = joined.root(*place));
    places
}

/// Which sessions are one: each leads to an earlier one, or to itself.
struct Joined(Vec<usize>);

impl Joined {
    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        if let Some(later) = self.0.get_mut(one.max(other)) {
            *later = one.min(other);
        }
    }

    /// Returns the first session that a session is one with.
    fn root(&mut self, mut at: usize) -> usize {
        while let Some(&next) = self.0.get(at).filter(|next| **next != at) {
            // Later searches take half the way.
            let far = self.0.get(next).copied().unwrap_or(next);
            if let Some(leads) = self.0.get_mut(at) {
                *leads = far;
            }
            at = far;
        }
        at
    }
}

//! Unique names for conversations, whether they share an id or have none.

use super::folder::stem;
use foldback_core::{Message, TodoId};
use foldback_transcript::comparable;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use xxhash_rust::xxh3::Xxh3;

/// The properties of a conversation that decide its name.
pub(super) struct Seen {
    /// The input that holds it.
    pub(super) input: usize,
    pub(super) file: String,
    pub(super) line: u64,
    /// Its own id.
    pub(super) id: Option<String>,
    pub(super) beginnings: Beginnings,
    /// If it may go back to an earlier point, how many of its first messages another version of it has at least.
    pub(super) least: Option<usize>,
}

impl Seen {
    /// Returns how well it fits what a todo holds: whether one is the beginning of the other, and how many messages both
    /// begin with. `None` if that is another conversation.
    fn fit(&self, todo: &TodoId, stored: &Stored) -> Option<Fit> {
        if !may_be(todo, stored.foreign_id.as_deref(), self.id.as_deref()) {
            return None;
        }
        let held = &stored.beginnings;
        let (is_exact, common) = (held.is_of(&self.beginnings), held.common(&self.beginnings));
        let is_version = self.least.is_some_and(|least| common >= least);
        (is_exact || is_version).then_some((is_exact, common))
    }

    fn place(&self) -> String {
        format!("{}, line {}", self.file, self.line)
    }
}

/// A hash of the first 0, 1, 2, ... messages of a conversation, 16 bytes each, so that two
/// conversations can be compared when neither is in memory any more.
pub(super) struct Beginnings(Vec<u128>);

impl Beginnings {
    pub(super) fn of(messages: &[Message]) -> Self {
        let mut hash = Xxh3::new();
        let none = hash.digest128();
        let each = messages.iter().map(|message| {
            let json = comparable(message.json());
            hash.update(&(json.len() as u64).to_le_bytes());
            hash.update(json.as_bytes());
            hash.digest128()
        });
        Self(std::iter::once(none).chain(each).collect())
    }

    /// Returns how many messages both begin with.
    pub(super) fn common(&self, other: &Self) -> usize {
        let same = self.0.iter().zip(&other.0).take_while(|(one, other)| one == other);
        same.count().saturating_sub(1)
    }

    /// Returns whether one of the two is the beginning of the other.
    fn is_of(&self, other: &Self) -> bool {
        let least = self.0.len().min(other.0.len()).saturating_sub(1);
        least > 0 && self.common(other) == least
    }

    fn whole(&self) -> u128 {
        self.0.last().copied().unwrap_or_default()
    }
}

/// What a todo holds.
pub(super) struct Stored {
    /// The conversation's id, if that is not the todo's.
    pub(super) foreign_id: Option<String>,
    pub(super) beginnings: Beginnings,
}

/// Returns whether a todo may hold a conversation with this id. `foreign_id` is the id of the one that it holds, or its
/// name if it has no id, if that is not the todo's.
pub(super) fn may_be(todo: &TodoId, foreign_id: Option<&str>, id: Option<&str>) -> bool {
    match (foreign_id, id) {
        (None, Some(id)) => *todo == TodoId::from_foreign(id),
        (Some(name), None) => *todo == TodoId::from_foreign(name),
        (None, None) => true,
        (own, id) => own == id,
    }
}

/// How well a conversation fits what a todo holds; the greatest fits best.
type Fit = (bool, usize);

/// The decision on each conversation, in their order, with the reasons in sentences.
pub(super) struct Names {
    /// What they would be called if there were no others.
    pub(super) plain: Vec<String>,
    /// `None` for one that is skipped, because another holds all its messages.
    pub(super) names: Vec<Option<String>>,
    pub(super) notes: Vec<String>,
}

/// What the store knows.
pub(super) trait Known {
    /// Returns what a todo holds; `None` if it holds nothing.
    fn held(&self, todo: &TodoId) -> Option<Rc<Stored>>;

    /// Returns the todos that hold conversations with this id under another name.
    fn others_of(&self, id: &str) -> Vec<TodoId>;
}

/// Gives each conversation a name that maps to a todo of its own: its own id, or else the name of
/// its file, with its line unless it is the first of the file without an id. Of conversations with
/// the same name, those that are the beginning of another are skipped; of the others one keeps the
/// name, the one that the store knows by it, and the rest get the name followed by that of their
/// file, or by a number.
pub(super) fn names(all: &[Seen], known: &dyn Known) -> Names {
    let mut nameless = BTreeSet::new();
    let name = |seen: &Seen| match &seen.id {
        Some(id) => id.clone(),
        // The file may grow.
        None if nameless.insert(seen.input) => stem(&seen.file),
        None => format!("{}-{}", stem(&seen.file), seen.line),
    };
    let plain: Vec<_> = all.iter().map(name).collect();
    let mut names: Vec<_> = plain.iter().cloned().map(Some).collect();
    let mut alike: BTreeMap<TodoId, Vec<usize>> = BTreeMap::new();
    for (at, name) in names.iter().flatten().enumerate() {
        alike.entry(TodoId::from_foreign(name)).or_default().push(at);
    }
    let mut taken: BTreeSet<TodoId> = alike.keys().cloned().collect();
    let mut changes = BTreeMap::new();
    for group in alike.values().filter(|group| group.len() > 1) {
        let Some(name) = group.first().and_then(|at| plain.get(*at)) else { continue };
        let group: Vec<_> = group.iter().filter_map(|at| Some((*at, all.get(*at)?))).collect();
        changes.extend(changed(name, &group, &mut taken, known));
    }
    let mut notes = Vec::with_capacity(changes.len());
    for (at, Change { name, note }) in changes {
        notes.push(note);
        if let Some(decided) = names.get_mut(at) {
            *decided = name;
        }
    }
    Names { plain, names, notes }
}

/// The new name of a conversation that does not keep its own, and why.
struct Change {
    name: Option<String>,
    note: String,
}

/// Decides on the conversations that would all be called `name`, except the one that keeps it.
fn changed(
    name: &str,
    group: &[(usize, &Seen)],
    taken: &mut BTreeSet<TodoId>,
    known: &dyn Known,
) -> Vec<(usize, Change)> {
    // Files that are named after their conversation come first.
    let is_other = |seen: &Seen| seen.id.as_ref().is_some_and(|id| !stem(&seen.file).ends_with(id));
    let mut group = group.to_vec();
    group.sort_by_key(|(_, seen)| is_other(seen));
    let holders = holders(&group);
    let of_other = |(at, seen): &(usize, &Seen)| {
        holders.get(&seen.beginnings.whole()).copied().filter(|(holder, _)| holder != at)
    };
    let kept: Vec<_> = group.iter().filter(|one| of_other(one).is_none()).copied().collect();
    let mut own = own_names(name, &kept, taken, known);
    let keeper = kept.iter().find(|(at, _)| own.get(at).is_some_and(|own| own == name));
    let keeper = keeper.map(|(_, seen)| *seen);
    let mut changes = Vec::new();
    for (at, seen) in group {
        let (new, what) = match (of_other(&(at, seen)), own.remove(&at)) {
            (Some((_, holder)), _) => {
                let more = if holder.beginnings.whole() == seen.beginnings.whole() {
                    "the same messages are"
                } else {
                    "its messages and more are"
                };
                (None, format!("is skipped, because {more} in {}", holder.place()))
            }
            (None, Some(own)) if own == name => continue,
            (None, own) => {
                let new = own.unwrap_or_else(|| free(name, seen, keeper, taken, known));
                let other = keeper.map_or("the store".to_owned(), Seen::place);
                let what =
                    format!("is called {new:?}, because its name is taken by the one in {other}");
                (Some(new), what)
            }
        };
        let note = format!("the conversation {name:?} in {} {what}", seen.place());
        changes.push((at, Change { name: new, note }));
    }
    changes
}

/// Returns the names of those that an earlier import has recorded: those that fit exactly first. Of the others, the first
/// one is called `name` if the store has nothing by it.
fn own_names(
    name: &str,
    kept: &[(usize, &Seen)],
    taken: &mut BTreeSet<TodoId>,
    known: &dyn Known,
) -> HashMap<usize, String> {
    if let [(only, _)] = kept {
        return HashMap::from([(*only, name.to_owned())]);
    }
    let mut given = HashMap::new();
    let mut is_given = false;
    for is_exact in [true, false] {
        for (at, seen) in kept {
            if given.contains_key(at) {
                continue;
            }
            let is_free = |other: &str, todo: &TodoId| {
                if other == name { !is_given } else { !taken.contains(todo) }
            };
            if let Some(own) = own_name(name, seen, is_exact, is_free, known) {
                is_given |= own == name;
                taken.insert(TodoId::from_foreign(&own));
                given.insert(*at, own);
            }
        }
    }
    if !is_given && known.held(&TodoId::from_foreign(name)).is_none() {
        let keeper = kept.iter().find(|(at, _)| !given.contains_key(at));
        given.extend(keeper.map(|(at, _)| (*at, name.to_owned())));
    }
    given
}

/// For each beginning, the longest conversation that has it; of equally long ones, the first.
fn holders<'a>(group: &[(usize, &'a Seen)]) -> HashMap<u128, (usize, &'a Seen)> {
    let mut longest: Vec<_> = group.to_vec();
    longest.sort_by_key(|(_, seen)| std::cmp::Reverse(seen.beginnings.0.len()));
    let mut holders = HashMap::new();
    for (at, seen) in longest {
        for beginning in &seen.beginnings.0 {
            holders.entry(*beginning).or_insert((at, seen));
        }
    }
    holders
}

/// Returns the name whose todo holds the conversation from an earlier import, the one that fits best.
fn own_name(
    name: &str,
    seen: &Seen,
    is_exact: bool,
    is_free: impl Fn(&str, &TodoId) -> bool,
    known: &dyn Known,
) -> Option<String> {
    let own = std::iter::once((name.to_owned(), TodoId::from_foreign(name)));
    let others: Box<dyn Iterator<Item = (String, TodoId)>> = match &seen.id {
        Some(id) => {
            let others = known.others_of(id).into_iter();
            Box::new(others.map(|todo| (todo.as_str().to_owned(), todo)))
        }
        // Without an id, only the name shows whose a todo is.
        None => Box::new(other_names(name, &seen.file).map_while(|other| {
            let todo = TodoId::from_foreign(&other.name);
            let may_be = other.is_of_file || known.held(&todo).is_some();
            may_be.then_some((other.name, todo))
        })),
    };
    let mut best: Option<(Fit, String)> = None;
    for (name, todo) in own.chain(others) {
        let fit = known.held(&todo).and_then(|held| seen.fit(&todo, &held));
        let fit = fit.filter(|fit| (fit.0 || !is_exact) && is_free(&name, &todo));
        // Of equals, the first.
        if let Some(fit) = fit
            && best.as_ref().is_none_or(|(best, _)| fit > *best)
        {
            best = Some((fit, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Returns a name that is not taken yet, whose todo is new.
fn free(
    name: &str,
    seen: &Seen,
    keeper: Option<&Seen>,
    taken: &mut BTreeSet<TodoId>,
    known: &dyn Known,
) -> String {
    let is_elsewhere = keeper.is_none_or(|keeper| seen.file != keeper.file);
    let mut names =
        other_names(name, &seen.file).filter(move |other| is_elsewhere || !other.is_of_file);
    let chosen = names.find(|other| {
        let todo = TodoId::from_foreign(&other.name);
        !taken.contains(&todo) && known.held(&todo).is_none()
    });
    let chosen = chosen.map(|other| other.name).unwrap_or_default();
    taken.insert(TodoId::from_foreign(&chosen));
    chosen
}

/// A name for a conversation that cannot have its own.
pub(super) struct OtherName {
    pub(super) name: String,
    /// Whether it is that of its file, and not a number.
    pub(super) is_of_file: bool,
}

/// Returns the names for a conversation of this file that cannot have its own, in the order in which they are tried.
pub(super) fn other_names(name: &str, file: &str) -> impl Iterator<Item = OtherName> + use<> {
    let (name, stem) = (name.to_owned(), stem(file));
    let of_file =
        (stem != name).then(|| OtherName { name: format!("{name}-{stem}"), is_of_file: true });
    let numbered =
        (2_u64..).map(move |n| OtherName { name: format!("{name}-{n}"), is_of_file: false });
    of_file.into_iter().chain(numbered)
}

#[cfg(test)]
mod tests;

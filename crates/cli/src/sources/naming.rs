//! Unique names for conversations, whether they share an id or have none.

use super::folder::stem;
use foldback_core::{Message, TodoId};
use foldback_transcript::comparable;
use std::cmp::Reverse;
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
    fn fit(&self, held: &Beginnings) -> Option<(bool, usize)> {
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

/// The decision on each conversation, in their order, with the reasons in sentences.
pub(super) struct Names {
    /// `None` for one that is skipped, because another holds all its messages.
    pub(super) names: Vec<Option<String>>,
    pub(super) notes: Vec<String>,
}

/// Returns what a todo holds; `None` if it holds nothing.
pub(super) type Held<'h> = dyn Fn(&TodoId) -> Option<Rc<Beginnings>> + 'h;

/// Gives each conversation a name that maps to a todo of its own: its own id, or else the name of
/// its file, with its line unless it is the first of the file without an id. Of conversations with
/// the same name, those that are the beginning of another are skipped; of the others one keeps the
/// name, the one that `held` knows by it, and the rest get the name followed by that of their
/// file, or by a number.
pub(super) fn names(all: &[Seen], held: &Held<'_>) -> Names {
    let mut nameless = BTreeSet::new();
    let name = |seen: &Seen| match &seen.id {
        Some(id) => id.clone(),
        // The file may grow.
        None if nameless.insert(seen.input) => stem(&seen.file),
        None => format!("{}-{}", stem(&seen.file), seen.line),
    };
    let mut names: Vec<_> = all.iter().map(name).map(Some).collect();
    let mut alike: BTreeMap<TodoId, Vec<usize>> = BTreeMap::new();
    for (at, name) in names.iter().flatten().enumerate() {
        alike.entry(TodoId::from_foreign(name)).or_default().push(at);
    }
    let mut taken: BTreeSet<TodoId> = alike.keys().cloned().collect();
    let mut changes = BTreeMap::new();
    for group in alike.values().filter(|group| group.len() > 1) {
        let group: Vec<_> = group.iter().filter_map(|at| Some((*at, all.get(*at)?))).collect();
        let name = group.first().and_then(|(at, _)| names.get(*at).cloned().flatten());
        changes.extend(changed(&name.unwrap_or_default(), &group, &mut taken, held));
    }
    let mut notes = Vec::with_capacity(changes.len());
    for (at, Change { name, note }) in changes {
        notes.push(note);
        if let Some(decided) = names.get_mut(at) {
            *decided = name;
        }
    }
    Names { names, notes }
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
    held: &Held<'_>,
) -> Vec<(usize, Change)> {
    let holders = holders(group);
    let group = by_place(name, group, &holders, held);
    // The names that an earlier import has given go to their conversations, before others take one.
    let mut own = HashMap::new();
    for is_exact in [true, false] {
        let kept = group.iter().filter(|(at, seen)| is_kept(*at, seen, &holders)).skip(1);
        for (at, seen) in kept.filter(|(at, _)| !own.contains_key(at)).collect::<Vec<_>>() {
            if let Some(name) = own_name(name, seen, is_exact, taken, held) {
                taken.insert(TodoId::from_foreign(&name));
                own.insert(*at, name);
            }
        }
    }
    let mut changes = Vec::new();
    let mut keeper = None;
    for (at, seen) in group {
        let whole = seen.beginnings.whole();
        let holder = holders.get(&whole).filter(|(held_by, _)| *held_by != at);
        let (new, what, other) = match (holder, keeper) {
            (Some((_, holder)), _) if holder.beginnings.whole() == whole => {
                (None, "is skipped, because the same messages are".to_owned(), *holder)
            }
            (Some((_, holder)), _) => {
                (None, "is skipped, because its messages and more are".to_owned(), *holder)
            }
            (None, None) => {
                keeper = Some(seen);
                continue;
            }
            (None, Some(keeper)) => {
                let own = own.remove(&at);
                let new = own.unwrap_or_else(|| free(name, seen, keeper, taken, held));
                let what = format!("is called {new:?}, because its name is taken by the one");
                (Some(new), what, keeper)
            }
        };
        let (place, other) = (seen.place(), other.place());
        let note = format!("the conversation {name:?} in {place} {what} in {other}");
        changes.push((at, Change { name: new, note }));
    }
    changes
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

/// Returns whether no other conversation holds all messages of one.
fn is_kept(at: usize, seen: &Seen, holders: &HashMap<u128, (usize, &Seen)>) -> bool {
    holders.get(&seen.beginnings.whole()).is_none_or(|(by, _)| *by == at)
}

/// The one that the name's todo holds comes first, and then those whose file is named after them: they keep their names,
/// whatever files are added.
fn by_place<'a>(
    name: &str,
    group: &[(usize, &'a Seen)],
    holders: &HashMap<u128, (usize, &Seen)>,
    held: &Held<'_>,
) -> Vec<(usize, &'a Seen)> {
    let is_open = group.iter().filter(|(at, seen)| is_kept(*at, seen, holders)).count() > 1;
    let known = if is_open { held(&TodoId::from_foreign(name)) } else { None };
    let mut group = group.to_vec();
    group.sort_by_cached_key(|(at, seen)| {
        let fit = known.as_ref().and_then(|known| seen.fit(known));
        let is_other = seen.id.as_ref().is_some_and(|id| !stem(&seen.file).ends_with(id));
        (!is_kept(*at, seen, holders), Reverse(fit), is_other)
    });
    group
}

/// Returns the name whose todo holds the conversation from an earlier import, the one that fits best.
fn own_name(
    name: &str,
    seen: &Seen,
    is_exact: bool,
    taken: &BTreeSet<TodoId>,
    held: &Held<'_>,
) -> Option<String> {
    let names = other_names(name, &seen.file).map(|other| {
        let todo = TodoId::from_foreign(&other.name);
        (held(&todo), todo, other)
    });
    let in_store = names.take_while(|(held, _, other)| held.is_some() || other.is_of_file);
    let fitting = in_store.filter_map(|(held, todo, other)| {
        let fit = seen.fit(held.as_deref()?).filter(|fit| fit.0 || !is_exact)?;
        (!taken.contains(&todo)).then_some((fit, other.name))
    });
    fitting.max_by_key(|(fit, _)| *fit).map(|(_, name)| name)
}

/// Returns a name that is not taken yet, whose todo is new.
fn free(
    name: &str,
    seen: &Seen,
    keeper: &Seen,
    taken: &mut BTreeSet<TodoId>,
    held: &Held<'_>,
) -> String {
    let is_elsewhere = seen.file != keeper.file;
    let mut names =
        other_names(name, &seen.file).filter(move |other| is_elsewhere || !other.is_of_file);
    let chosen = names.find(|other| {
        let todo = TodoId::from_foreign(&other.name);
        !taken.contains(&todo) && held(&todo).is_none()
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
mod tests {
    use super::*;

    /// Conversations by input, id and the texts of their messages, and what they are called.
    #[track_caller]
    fn check(all: &[(usize, &str, Option<&str>, &str)], expected: &[Option<&str>]) -> Vec<String> {
        check_with(&[], all, expected)
    }

    fn beginnings(texts: &str) -> Beginnings {
        let messages: Vec<_> = texts.chars().map(|c| Message::user(&c.to_string())).collect();
        Beginnings::of(&messages)
    }

    /// Checks them in a store that holds these todos.
    #[track_caller]
    fn check_with(
        todos: &[(&str, &str)],
        all: &[(usize, &str, Option<&str>, &str)],
        expected: &[Option<&str>],
    ) -> Vec<String> {
        let held = |todo: &TodoId| {
            let found = todos.iter().find(|(name, _)| *name == todo.as_str());
            found.map(|(_, texts)| Rc::new(beginnings(texts)))
        };
        let seen = all.iter().zip(1..).map(|((input, file, id, texts), line)| Seen {
            input: *input,
            file: (*file).to_owned(),
            line,
            id: id.map(str::to_owned),
            beginnings: beginnings(texts),
            // Those of this file may go back.
            least: file.ends_with("log.jsonl").then_some(2),
        });
        let Names { names, notes } = names(&seen.collect::<Vec<_>>(), &held);
        assert_eq!(names.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
        notes
    }

    #[test]
    fn a_name_that_is_one_s_own_stays() {
        let all =
            [(0, "a.jsonl", Some("会话"), "一"), (1, "b.jsonl", None, "一"), (2, "c", None, "")];
        assert!(check(&all, &[Some("会话"), Some("b"), Some("c")]).is_empty());
        let lines =
            [(0, "a.jsonl", None, "x"), (0, "a.jsonl", Some("y"), "x"), (0, "a.jsonl", None, "x")];
        assert!(check(&lines, &[Some("a"), Some("y"), Some("a-3")]).is_empty());
        // It grows.
        let more = [lines[0], lines[1], lines[2], (0, "a.jsonl", None, "z")];
        assert!(check(&more, &[Some("a"), Some("y"), Some("a-3"), Some("a-4")]).is_empty());
    }

    #[test]
    fn what_another_begins_with_is_passed_over() {
        let all = [
            (0, "p/s1.jsonl", Some("s1"), "一二"),
            (1, "p/s2.jsonl", Some("s1"), "一二三"),
            (2, "p/s3.jsonl", Some("s1"), "一二三"),
            (3, "p/s4.jsonl", Some("s1"), ""),
            (4, "p/s5.jsonl", Some("s5"), "一二"),
        ];
        let notes = check(&all, &[None, Some("s1"), None, None, Some("s5")]);
        assert_eq!(notes.len(), 3);
        assert!(notes[0].contains("p/s1.jsonl, line 1 is skipped"), "{notes:?}");
        assert!(notes[0].ends_with("its messages and more are in p/s2.jsonl, line 2"), "{notes:?}");
        assert!(notes[1].contains("the same messages are in p/s2.jsonl"), "{notes:?}");
    }

    #[test]
    fn a_name_stays_with_the_conversation_that_the_store_has_by_it() {
        let todos = [("s1", "一二"), ("s1-later", "三"), ("s1-2", "四五")];
        // A file that is read earlier is new, or has its own todo.
        let all = [
            (0, "a.jsonl", Some("s1"), "六"),
            (1, "b.jsonl", Some("s1"), "一二七"),
            (2, "later.jsonl", Some("s1"), "三"),
            (3, "moved.jsonl", Some("s1"), "四五六"),
        ];
        let expected = ["s1-a", "s1", "s1-later", "s1-2"].map(Some);
        let notes = check_with(&todos, &all, &expected);
        assert!(notes[0].contains("a.jsonl, line 1 is called \"s1-a\""), "{notes:?}");
        // A name that the store has given to another conversation is not used.
        let all = [(0, "b.jsonl", Some("s1"), "一"), (1, "later.jsonl", Some("s1"), "八")];
        check_with(&todos, &all, &["s1", "s1-3"].map(Some));
    }

    #[test]
    fn conversations_that_begin_alike_keep_their_names() {
        let todos = [("m", "I甲"), ("m-2", "I乙"), ("m-3", "I丙")];
        let file = |input: usize, texts: &'static str| (input, "m.json", None, texts);
        // Another one comes between, and one goes.
        let all = [file(0, "I甲"), file(1, "I丁"), file(2, "I乙"), file(3, "I丙子")];
        check_with(&todos, &all, &["m", "m-4", "m-2", "m-3"].map(Some));
        check_with(&todos, &[file(0, "I甲"), file(1, "I丙")], &["m", "m-3"].map(Some));
        // A log that went back is known by more than its instructions, and takes no name of another.
        let todos = [("s", "I甲乙丙"), ("s-log", "I甲丁戊")];
        let log = |texts: &'static str| (0, "log.jsonl", Some("s"), texts);
        let all = [log("I甲丁己"), (1, "s.jsonl", Some("s"), "I甲乙丙丑")];
        check_with(&todos, &all, &["s-log", "s"].map(Some));
        let all = [log("I己"), (1, "s.jsonl", Some("s"), "I甲乙丙丑")];
        check_with(&todos, &all, &["s-2", "s"].map(Some));
    }

    #[test]
    fn others_of_one_name_get_their_file_s_or_a_number() {
        // The file that has the name keeps it, whatever its position; a name that is taken is not used.
        let all = [
            (0, "a/other.jsonl", Some("s1"), "ab"),
            (1, "a/s1.jsonl", Some("s1"), "ac"),
            (2, "b/other.jsonl", Some("s1"), "ad"),
            (1, "a/s1.jsonl", Some("s1"), "ae"),
            (3, "s1-3.jsonl", None, "x"),
            (1, "a/s1.jsonl", Some("s1"), "af"),
        ];
        let expected = ["s1-other", "s1", "s1-5", "s1-2", "s1-3", "s1-4"].map(Some);
        let notes = check(&all, &expected);
        assert_eq!(notes.len(), 4);
        assert!(notes[0].contains("other.jsonl, line 1 is called \"s1-other\""), "{notes:?}");
        assert!(notes[0].ends_with("in a/s1.jsonl, line 2"), "{notes:?}");
        // Files of one name that hold no id.
        let bare = [(0, "a/one.json", None, "x"), (1, "b/one.json", None, "y")];
        check(&bare, &[Some("one"), Some("one-2")]);
    }
}

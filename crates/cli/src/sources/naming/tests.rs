//! The names of conversations that share an id, or have none.

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

/// Todos by their names and the texts of their messages. What is before a hyphen is the id of the conversation, except for
/// those of `m`, which have none, and of `run`, which have their own.
struct Todos<'t>(&'t [(&'t str, &'t str)]);

impl Todos<'_> {
    fn foreign_id(name: &str) -> Option<String> {
        name.split_once('-')
            .map(|(id, _)| id.to_owned())
            .filter(|id| !["m", "run"].contains(&id.as_str()))
    }
}

impl Known for Todos<'_> {
    fn held(&self, todo: &TodoId) -> Option<Rc<Stored>> {
        let (name, texts) = self.0.iter().find(|(name, _)| *name == todo.as_str())?;
        let foreign_id = Self::foreign_id(name);
        Some(Rc::new(Stored { foreign_id, beginnings: beginnings(texts) }))
    }

    fn others_of(&self, id: &str) -> Vec<TodoId> {
        let of_id = self.0.iter().filter(|(name, _)| Self::foreign_id(name).as_deref() == Some(id));
        of_id.map(|(name, _)| TodoId::from_foreign(name)).collect()
    }
}

/// Checks them in a store that holds these todos.
#[track_caller]
fn check_with(
    todos: &[(&str, &str)],
    all: &[(usize, &str, Option<&str>, &str)],
    expected: &[Option<&str>],
) -> Vec<String> {
    let seen = all.iter().zip(1..).map(|((input, file, id, texts), line)| Seen {
        input: *input,
        file: (*file).to_owned(),
        line,
        id: id.map(str::to_owned),
        beginnings: beginnings(texts),
        // Those of this file may go back.
        least: file.ends_with("log.jsonl").then_some(2),
    });
    let Names { names, notes, .. } = names(&seen.collect::<Vec<_>>(), &Todos(todos));
    assert_eq!(names.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    notes
}

#[test]
fn a_name_that_is_one_s_own_stays() {
    let all = [(0, "a.jsonl", Some("会话"), "一"), (1, "b.jsonl", None, "一"), (2, "c", None, "")];
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
    // The one that went back far keeps its name beside one that has another.
    let todos = [("s", "甲乙丙丁"), ("s-other", "甲乙戊己")];
    let log = (0, "log.jsonl", Some("s"), "甲乙庚");
    let all = [log, (1, "other.jsonl", Some("s"), "甲乙戊己")];
    check_with(&todos, &all, &["s", "s-other"].map(Some));
    // The store has another one by the name, and a todo of another id is none of its.
    check_with(&[("m", "I甲")], &[file(0, "I新"), file(1, "I又")], &["m-2", "m-3"].map(Some));
    let runs = [("run", "甲"), ("run-2", "甲")];
    let of = |file: &str, texts: &str| Seen {
        input: 0,
        file: file.to_owned(),
        line: 1,
        id: Some("run".to_owned()),
        beginnings: beginnings(texts),
        least: None,
    };
    let decided = names(&[of("a.jsonl", "甲一"), of("b.jsonl", "甲二")], &Todos(&runs)).names;
    assert_eq!(decided, ["run", "run-b"].map(|name| Some(name.to_owned())));
}

/// The store knows whose a todo is, whatever the file is called now, and although numbers are missing.
#[test]
fn a_conversation_is_found_under_any_name() {
    let todos = [("s", "甲"), ("s-4", "乙"), ("s-old", "丙"), ("t-old", "丁")];
    let file = |input, name: &'static str, texts: &'static str| (input, name, Some("s"), texts);
    let all = [file(0, "a.jsonl", "甲"), file(1, "new.jsonl", "丙丁"), file(2, "b.jsonl", "乙")];
    check_with(&todos, &all, &["s", "s-old", "s-4"].map(Some));
    let all = [file(0, "a.jsonl", "甲"), file(1, "old.jsonl", "丁"), file(2, "b.jsonl", "戊")];
    check_with(&todos, &all, &["s", "s-2", "s-b"].map(Some));
}

/// A todo whose id does not show the name of its conversation keeps it as the conversation's id.
#[test]
fn a_name_that_is_kept_is_that_of_a_conversation_without_an_id() {
    let todo = TodoId::from_foreign("计划");
    assert!(may_be(&todo, Some("计划"), None) && may_be(&todo, None, None));
    assert!(may_be(&todo, Some("计划"), Some("计划")) && may_be(&todo, None, Some("计划")));
    assert!(!may_be(&todo, Some("别的"), None) && !may_be(&todo, Some("计划"), Some("别的")));
    assert!(!may_be(&TodoId::from_foreign("s-2"), Some("s"), None));
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

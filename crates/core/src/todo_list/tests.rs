//! What a todo list accepts, and how the states of its items change.

use super::*;

fn id(text: &str) -> TodoId {
    TodoId::new(text).unwrap()
}

fn item(name: &str, after: &[&str]) -> TodoItem {
    TodoItem::new(id(name), &format!("做 {name}")).after(after.iter().map(|on| id(on)))
}

#[track_caller]
fn check_refused(items: Vec<TodoItem>, expected: TodoListError) {
    assert_eq!(TodoList::new(items).unwrap_err(), expected);
}

/// TD4: a list that makes no sense is refused by an error that names the item.
#[test]
fn td4_a_list_is_sound_or_refused() {
    let a = || id("a");
    check_refused(vec![item("a", &[]), item("a", &[])], TodoListError::Duplicate(a()));
    check_refused(
        vec![item("a", &["b"])],
        TodoListError::UnknownDependency { item: a(), on: id("b") },
    );
    check_refused(vec![item("a", &["a"])], TodoListError::Cycle(a()));
    check_refused(
        vec![item("z", &[]), item("a", &["c"]), item("b", &["a"]), item("c", &["b", "z"])],
        TodoListError::Cycle(a()),
    );
    let mut foreign = item("a", &[]);
    let reference: Reference = "b_other_001".parse().unwrap();
    foreign.references.push(reference.clone());
    check_refused(vec![foreign], TodoListError::ForeignReference { item: a(), reference });
    let many = (0..=TodoList::MAX_ITEMS).map(|n| item(&format!("i{n}"), &[])).collect();
    check_refused(many, TodoListError::TooMany { items: 1_001 });
    check_refused(vec![TodoItem::new(a(), " \n")], TodoListError::NoTitle(a()));
    let repeated = |what: &str| TodoListError::Repeated { item: a(), what: what.to_owned() };
    check_refused(vec![item("b", &[]), item("a", &["b", "b"])], repeated("b"));
    let mut twice = item("a", &[]);
    twice.references = vec!["b_a_001".parse().unwrap(), "b_a_001".parse().unwrap()];
    check_refused(vec![twice], repeated("b_a_001"));
    // A long chain and a wide fan are not circles, in whatever order they are listed.
    let chain = (0..900).rev().map(|n| match n {
        0 => item("n0", &[]),
        1 => item("n1", &["n0"]),
        n => item(&format!("n{n}"), &[&format!("n{}", n - 1), "n0"]),
    });
    TodoList::new(chain.collect()).unwrap();
}

/// TD4: no item takes unbounded room, and characters count alike in every script.
#[test]
fn td4_an_item_takes_bounded_room() {
    type Fill = fn(&mut TodoItem, usize);
    let fills: [(Fill, usize, &str); 4] = [
        (|item, n| item.title = "长".repeat(n), TodoList::MAX_TITLE, "characters in its title"),
        (
            |item, n| item.result = Some("长".repeat(n)),
            TodoList::MAX_RESULT,
            "characters in its result",
        ),
        (
            |item, n| item.depends_on = (0..n).map(|n| id(&format!("n{n}"))).collect(),
            TodoList::MAX_DEPENDENCIES,
            "dependencies",
        ),
        (
            |item, n| {
                let reference = |n| format!("b_a_{n:03}").parse().unwrap();
                item.references = (1..=n).map(reference).collect();
            },
            TodoList::MAX_REFERENCES,
            "references",
        ),
    ];
    let others: Vec<TodoItem> = (0..200).map(|n| item(&format!("n{n}"), &[])).collect();
    for (fill, most, what) in fills {
        let list = |n: usize| {
            let mut full = item("a", &[]);
            fill(&mut full, n);
            TodoList::new([&[full], others.as_slice()].concat())
        };
        list(most).unwrap();
        let error = TodoListError::TooLarge { item: id("a"), what, size: most + 1, most };
        assert_eq!(list(most + 1).unwrap_err(), error);
    }
    let mut list = TodoList::new(vec![item("a", &[])]).unwrap();
    let long = "长".repeat(TodoList::MAX_RESULT + 1);
    assert!(list.add_result(&id("a"), Some(&long), &[]).is_err());
    assert_eq!(list.item(&id("a")).unwrap().result, None, "what is refused changes nothing");
}

/// TD4: a cancelled item holds nobody up; a failed one does, and the error names the step.
#[test]
fn td4_a_cancelled_item_releases_those_who_wait_for_it() {
    use ItemState::{Cancelled, Failed, InProgress};
    let mut list = TodoList::new(vec![item("a", &[]), item("b", &["a"])]).unwrap();
    list.set_state(&id("a"), Failed).unwrap();
    assert_eq!(
        list.set_state(&id("b"), InProgress).unwrap_err().to_string(),
        "item b cannot become in_progress: it waits for a, which failed; restart a, or drop \
         the dependency"
    );
    assert_eq!(list.ready().count(), 0);
    for state in [InProgress, Cancelled] {
        list.set_state(&id("a"), state).unwrap();
    }
    assert_eq!(list.ready().count(), 1);
    list.set_state(&id("b"), InProgress).unwrap();
}

/// BL9: a task is being wrapped up when nothing is left to be started and half is settled; another
/// item reverses that.
#[test]
fn bl9_a_list_that_grows_is_not_closing_any_more() {
    let list = |states: &[ItemState]| {
        let with = |(n, state): (usize, &ItemState)| TodoItem {
            state: *state,
            ..item(&format!("n{n}"), &[])
        };
        TodoList::new(states.iter().enumerate().map(with).collect()).unwrap()
    };
    use ItemState::{Cancelled, Completed, InProgress, Pending};
    assert!(!TodoList::default().is_closing());
    assert!(!list(&[InProgress]).is_closing());
    assert!(list(&[Completed]).is_closing());
    assert!(!list(&[Completed, Pending]).is_closing());
    assert!(list(&[Completed, InProgress]).is_closing());
    assert!(!list(&[Completed, InProgress, InProgress]).is_closing());
    assert!(list(&[Completed, Cancelled, InProgress]).is_closing());
}

/// TD4: states follow each other, and a waiting item is not started.
#[test]
fn td4_states_follow_each_other() {
    use ItemState::{Cancelled, Completed, Failed, InProgress, Pending};
    let mut list = TodoList::new(vec![item("a", &[]), item("b", &["a"])]).unwrap();
    let ready = |list: &TodoList| list.ready().map(|i| i.id.to_string()).collect::<Vec<_>>();
    assert_eq!(ready(&list), ["a"]);
    let refused = |list: &mut TodoList, name: &str, state| {
        let before = list.clone();
        let error = list.set_state(&id(name), state).unwrap_err().to_string();
        assert_eq!(*list, before, "what is refused changes nothing");
        error
    };
    for state in [InProgress, Completed] {
        assert_eq!(
            refused(&mut list, "b", state),
            format!("item b cannot become {state}: it waits for a, which is not completed")
        );
    }
    assert_eq!(refused(&mut list, "c", Pending), "the todo list has no item c");
    for state in [InProgress, Failed] {
        list.set_state(&id("a"), state).unwrap();
    }
    assert_eq!(refused(&mut list, "a", Completed), "item a is failed and cannot become completed");
    for state in [InProgress, Cancelled, Pending, Completed] {
        list.set_state(&id("a"), state).unwrap();
    }
    assert_eq!(refused(&mut list, "a", Pending), "item a is completed and cannot become pending");
    assert_eq!((list.open(), list.is_closing(), ready(&list)), (1, false, vec!["b".to_owned()]));
    list.set_state(&id("b"), InProgress).unwrap();
    assert!(list.is_closing(), "one item is left, and it is being worked on");
}

/// TD4: an item returns references of its own todo, each once.
#[test]
fn td4_an_item_keeps_what_it_returned() {
    let mut list = TodoList::new(vec![item("a", &[]), item("b", &["a"])]).unwrap();
    let own: Reference = "b_a_001".parse().unwrap();
    list.add_result(&id("a"), Some("三行"), &[own.clone(), own.clone()]).unwrap();
    let kept = list.item(&id("a")).unwrap();
    assert_eq!(
        (kept.references.as_slice(), kept.result.as_deref()),
        (&[own.clone()][..], Some("三行"))
    );
    assert!(list.add_result(&id("b"), None, &[own]).is_err());
}

/// TD4: a stored list is read with its checks, and may leave out what has a default.
#[test]
fn td4_a_list_comes_back_from_json() {
    let json = r#"[{"id":"a","title":"读"},{"id":"b","title":"写","state":"in_progress","depends_on":["a"]}]"#;
    let list: TodoList = serde_json::from_str(json).unwrap();
    assert_eq!(list.item(&id("b")).unwrap().state, ItemState::InProgress);
    let again: TodoList = serde_json::from_str(&serde_json::to_string(&list).unwrap()).unwrap();
    assert_eq!(again, list);
    let wrong = serde_json::from_str::<TodoList>(&json.replace("[\"a\"]", "[\"b\"]"));
    assert!(wrong.unwrap_err().to_string().contains("depends on itself"));
}

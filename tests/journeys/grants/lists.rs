//! TD4: a list that a model wrote grants nothing by itself, and its items come and go.

use super::{check_loads, check_not_child, check_not_found, completed, names, plan, prompt, work};
use crate::story::{engines, in_memory, open_on, todo};
use foldback::ErrorKind;
use foldback::core::{ItemState, TodoItem, TodoList};
use foldback_core::Message;

/// TD4: a list that a model wrote grants nothing: not by claiming references, not by naming someone
/// else's todo as an item.
#[test]
fn td4_a_list_grants_nothing_by_itself() {
    let memory = in_memory();
    let secret = work(&mut memory.session(&todo("stranger")).unwrap(), "机密");
    let mut parent = memory.session(&todo("plan")).unwrap();
    let mut item = TodoItem::new(todo("stranger"), "看看别人的东西");
    item.references = secret.to_vec();
    let claims = TodoList::new(vec![item.clone()]).unwrap();
    let refused = parent.set_todo_list(&claims).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotPermitted);
    assert!(refused.to_string().starts_with("item stranger has not returned"), "{refused}");
    assert!(parent.todo_list().items().is_empty());

    item.references.clear();
    let send = TodoItem::new(todo("send"), "发送").after([todo("stranger")]);
    parent.set_todo_list(&TodoList::new(vec![item, send]).unwrap()).unwrap();
    let child = parent.child_session(&todo("stranger")).unwrap();
    assert_eq!(child.parent().unwrap(), None, "a todo with a life of its own is nobody's child");
    let outcome = completed(&secret);
    check_not_child(parent.finish_item(&todo("stranger"), &outcome));
    let refused = child.return_to_parent(&outcome).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotPermitted);
    assert!(refused.to_string().contains("was not begun as a child of a todo that"), "{refused}");
    for reference in &secret {
        check_not_found(&memory, &todo("plan"), &reference.to_string());
    }
    assert_eq!(memory.grants().list(&todo("stranger")).unwrap(), []);
    assert_eq!(parent.todo_list().open(), 2, "what is refused changes nothing");

    // Nor is anything pushed to an unrelated todo; the others get what they wait for.
    let mut list = parent.todo_list().items().to_vec();
    list.push(TodoItem::new(todo("mine"), "自己的"));
    list.push(TodoItem::new(todo("next"), "然后").after([todo("mine")]));
    list[0] = TodoItem::new(todo("stranger"), "等着").after([todo("mine")]);
    parent.set_todo_list(&TodoList::new(list).unwrap()).unwrap();
    let own = work(&mut parent.child_session(&todo("mine")).unwrap(), "自己");
    let came = parent.finish_item(&todo("mine"), &completed(&own)).unwrap();
    assert_eq!(came.left_out, [todo("stranger")]);
    assert_eq!(came.grants.len(), 4, "{:?}", names(&came.grants));
    check_loads(&memory, &todo("plan"), &own);
    check_loads(&memory, &todo("next"), &own);
    check_not_found(&memory, &todo("stranger"), &own[0].to_string());
    parent.child_session(&todo("stranger")).unwrap();
    check_not_found(&memory, &todo("stranger"), &own[0].to_string());
}

/// TD4: a todo that its own host has begun does not become a child because a list names it; its host's
/// word makes it a child, and then it gets what it waited for.
#[test]
fn td4_a_list_adopts_no_todo_that_is_there() {
    for engine in engines() {
        let dir = tempfile::tempdir().unwrap();
        let memory = open_on(engine, dir.path());
        let mut victim = memory.session(&todo("victim")).unwrap();
        let mut parent = memory.session(&todo("plan")).unwrap();
        let waits = TodoItem::new(todo("victim"), "等着").after([todo("research")]);
        let list = vec![TodoItem::new(todo("research"), "调研"), waits];
        parent.set_todo_list(&TodoList::new(list).unwrap()).unwrap();
        let mut child = parent.child_session(&todo("research")).unwrap();
        let returned = work(&mut child, "潮汐");
        let came = child.return_to_parent(&completed(&returned)).unwrap();
        assert_eq!((came.grants.len(), came.left_out), (2, vec![todo("victim")]));
        assert_eq!(victim.parent().unwrap(), None);
        check_not_found(&memory, &todo("victim"), &returned[0].to_string());

        let mut begun = memory.session(&todo("other-plan")).unwrap();
        begun.child_session(&todo("hers")).unwrap();
        check_not_child(parent.child_session(&todo("hers")));
        parent.refresh().unwrap();
        let same = parent.child_session(&todo("victim")).unwrap();
        assert_eq!(same.parent().unwrap(), Some(todo("plan")));
        check_loads(&memory, &todo("victim"), &returned);
        assert_eq!(names(&memory.grants().list(&todo("victim")).unwrap()).len(), 2);
        // The session that was open meanwhile continues.
        victim.record(Message::user("继续")).unwrap();
        assert_eq!(victim.parent().unwrap(), Some(todo("plan")));
        // Beginning it once more returns nothing that was revoked.
        memory.grants().revoke(&todo("research"), &todo("victim"), &returned[0]).unwrap();
        memory.grants().revoke(&todo("research"), &todo("victim"), &returned[1]).unwrap();
        parent.child_session(&todo("victim")).unwrap();
        check_not_found(&memory, &todo("victim"), &returned[0].to_string());
        assert_eq!(memory.maintenance().doctor().unwrap().findings, Vec::<String>::new());
    }
}

/// TD4: of two parents that begin the same todo at once, one is its parent, and the other gets an
/// error.
#[test]
fn td4_a_todo_has_one_parent() {
    let memory = in_memory();
    for n in 0..50 {
        let begin = |parent: String| {
            let memory = memory.clone();
            let child = todo(&format!("child-{n}"));
            std::thread::spawn(move || {
                let mut parent = memory.session(&todo(&parent)).unwrap();
                match parent.child_session(&child) {
                    Ok(child) => {
                        assert_eq!(child.parent().unwrap().as_ref(), Some(parent.todo()));
                        true
                    }
                    not_child => {
                        check_not_child(not_child);
                        false
                    }
                }
            })
        };
        let won = ["a", "b"].map(|name| begin(format!("{name}-{n}"))).map(|t| t.join().unwrap());
        assert_eq!(won.iter().filter(|won| **won).count(), 1);
    }
}

/// TD4: an item's returns are gone with the item; its grants are not.
#[test]
fn td4_an_item_that_is_left_out_is_gone_with_what_it_returned() {
    let memory = in_memory();
    let mut parent = memory.session(&todo("plan")).unwrap();
    parent.set_todo_list(&plan()).unwrap();
    let returned = work(&mut parent.child_session(&todo("research")).unwrap(), "潮汐");
    parent.finish_item(&todo("research"), &completed(&returned)).unwrap();
    let other = TodoItem::new(todo("other"), "别的");
    parent.set_todo_list(&TodoList::new(vec![other]).unwrap()).unwrap();
    parent.set_todo_list(&plan()).unwrap();
    let item = parent.todo_list().item(&todo("research")).unwrap();
    assert_eq!((item.state, item.references.len()), (ItemState::Pending, 0));
    check_loads(&memory, &todo("plan"), &returned);
}

/// TD4: states follow each other; an item that later waits for a completed one gets its references too.
#[test]
fn td4_the_list_goes_on_and_later_items_get_what_they_depend_on() {
    let memory = in_memory();
    let mut parent = memory.session(&todo("plan")).unwrap();
    parent.set_todo_list(&plan()).unwrap();
    let early = parent.set_item_state(&todo("draft"), ItemState::InProgress).unwrap_err();
    assert_eq!(
        early.to_string(),
        "item draft cannot become in_progress: it waits for research, which is not completed"
    );
    let returned = work(&mut parent.child_session(&todo("research")).unwrap(), "潮汐");
    parent.finish_item(&todo("research"), &completed(&returned)).unwrap();

    // The model rewrites the list, without the returns, and with one more item.
    let mut items = plan().items().to_vec();
    items[0].state = ItemState::Completed;
    items.push(TodoItem::new(todo("figures"), "画图").after([todo("research")]));
    parent.set_todo_list(&TodoList::new(items.clone()).unwrap()).unwrap();
    let item = parent.todo_list().item(&todo("research")).unwrap();
    assert_eq!(item.references, returned, "what was returned stays with its item");
    assert_eq!(item.result.as_deref(), Some("潮位 3.2 米"));
    check_loads(&memory, &todo("figures"), &returned);
    // A revoked grant is not restored by writing the list again.
    memory.grants().revoke(&todo("research"), &todo("figures"), &returned[0]).unwrap();
    parent.set_todo_list(&TodoList::new(items.clone()).unwrap()).unwrap();
    check_not_found(&memory, &todo("figures"), &returned[0].to_string());

    items[0].state = ItemState::Pending;
    let back = parent.set_todo_list(&TodoList::new(items).unwrap()).unwrap_err();
    assert_eq!(back.to_string(), "item research is completed and cannot become pending");
    parent.set_todo_list(&TodoList::default()).unwrap();
    assert!(!prompt(&parent).1.contains("Todo list"));
}

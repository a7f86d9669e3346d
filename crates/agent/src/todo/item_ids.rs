//! The names of a todo list's items: a short one for the model, and the todo that it means.

use foldback_core::{TodoId, TodoList};

/// The separator between a todo and the name of one of its items. No name contains it, so two todos never
/// have items with the same id.
const SEPARATOR: char = '.';

/// The replacement for [`SEPARATOR`] in a name that a model gives.
const IN_NAMES: &str = ":";

/// Returns the todo of the item that a model calls `name` in the list of `parent`: `<parent>.<name>`. The whole
/// id may be used as well. A name that ids cannot hold (`读取`) becomes one that they can, always the same.
pub(crate) fn item_id(parent: &TodoId, list: &TodoList, name: &str) -> TodoId {
    let name = name.trim();
    let known = list.items().iter().find(|item| item.id.as_str() == name);
    known.map_or_else(|| child_id(parent, own_part(parent, name)), |item| item.id.clone())
}

/// Returns the todo of something that `parent` calls `name`.
pub(crate) fn child_id(parent: &TodoId, name: &str) -> TodoId {
    let name = TodoId::from_foreign(&name.replace(SEPARATOR, IN_NAMES));
    TodoId::from_foreign(&format!("{parent}{SEPARATOR}{name}"))
}

/// Returns the name by which a model calls an item of the list of `parent`.
pub(crate) fn short_name<'i>(parent: &TodoId, id: &'i TodoId) -> &'i str {
    own_part(parent, id.as_str())
}

/// Returns a text for the model, with the short names of items. References keep theirs.
pub(crate) fn as_told(parent: &TodoId, text: &str) -> String {
    let prefix = format!("{parent}{SEPARATOR}");
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._:-/".contains(c);
    let (mut told, mut from) = (String::with_capacity(text.len()), 0);
    for (at, _) in text.match_indices(&prefix) {
        let (before, name) = (&text[..at], &text[at + prefix.len()..]);
        if !before.ends_with(is_part) && name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            told.push_str(&text[from..at]);
            from = at + prefix.len();
        }
    }
    told.push_str(&text[from..]);
    told
}

fn own_part<'n>(parent: &TodoId, name: &'n str) -> &'n str {
    let own = name.strip_prefix(parent.as_str());
    own.and_then(|rest| rest.strip_prefix(SEPARATOR)).filter(|own| !own.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_core::TodoItem;

    fn id(id: &str) -> TodoId {
        TodoId::new(id).unwrap()
    }

    fn of(parent: &str, name: &str) -> String {
        item_id(&id(parent), &TodoList::default(), name).to_string()
    }

    /// TD4: an item has a todo of its own, with a readable name.
    #[test]
    fn td4_an_item_is_named_after_its_list() {
        assert_eq!(of("report", "read"), "report.read");
        assert_eq!(of("report", " read "), "report.read");
        assert_eq!(of("report", "report.read"), "report.read", "its whole id is a name, too");
        assert_eq!(of("report", "1.2"), "report.1:2");
        assert_eq!(of("report.1", "2"), "report.1.2", "which is another todo");
        assert_eq!(of("report", "report."), "report.report:");
        assert_eq!(short_name(&id("report"), &id("report.read")), "read");
        assert_eq!(short_name(&id("report"), &id("draft.read")), "draft.read");
    }

    /// TD4: a model is shown the names that it gave, and nothing else in a text changes.
    #[test]
    fn td4_texts_name_items_as_the_model_does() {
        let told = |text: &str| as_told(&id("a"), text);
        assert_eq!(told("item a.read waits for a.draft"), "item read waits for draft");
        assert_eq!(told("读取a.read，之后"), "读取read，之后");
        assert_eq!(told("data. A panda.b a. b_a.read_001"), "data. A panda.b a. b_a.read_001");
        assert_eq!(told("store://a.read/1-abcd"), "store://a.read/1-abcd");
    }

    /// TD4: any name is accepted, in any language, and different ones stay different.
    #[test]
    fn td4_foreign_names_become_ids() {
        let names = ["读取报告", "读取", "e\u{301}tude", "étude", "👩‍👩‍👧", "a/b", "..", "."];
        let mut ids: Vec<String> =
            names.iter().map(|name| of("任务".len().to_string().as_str(), name)).collect();
        for (name, id) in names.iter().zip(&ids) {
            let parent = TodoId::new("6").unwrap();
            assert_eq!(of("6", name), *id, "always the same");
            let short = short_name(&parent, &TodoId::new(id).unwrap()).to_owned();
            assert_eq!(of("6", &short), *id, "what the model is told leads back: {short}");
        }
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), names.len());
    }

    /// TD4: ids stay within their length however deep the lists are nested, and are found again.
    #[test]
    fn td4_deep_lists_have_ids_as_well() {
        let mut parent = id("task");
        for depth in 0..40 {
            let item = child_id(&parent, "a-rather-long-name-of-an-item");
            assert!(item.as_str().len() <= TodoId::MAX_LEN, "{depth}: {item}");
            let list = TodoList::new(vec![TodoItem::new(item.clone(), "深")]).unwrap();
            let told = short_name(&parent, &item).to_owned();
            assert_eq!(item_id(&parent, &list, &told), item, "{depth}");
            assert_eq!(item_id(&parent, &list, "a-rather-long-name-of-an-item"), item);
            assert_ne!(item, parent);
            parent = item;
        }
    }
}

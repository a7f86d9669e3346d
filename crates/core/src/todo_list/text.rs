//! The todo list as shown to the model.

use super::{ItemState, TodoItem, TodoList};
use crate::{TokenCounter, one_line};
use std::collections::{BTreeMap, BTreeSet};

/// The most tokens in a list's text, except for one line that says what is left out.
const BUDGET: usize = 800;

/// The most tokens in the line that says what is left out.
const GAP: usize = 10;

/// This many items to be started precede those that are kept only for reference.
const NEXT: usize = 8;

/// The most references that are named of one item.
const REFERENCES: usize = 4;

impl TodoList {
    /// Returns the list in at most about 800 tokens, one line per item, in the list's order. If not all fit, the items
    /// in progress come first, then failures, the next items, what those wait for, the other items to do, and what was
    /// settled last.
    ///
    /// ```text
    /// 1. [x] Read the report (read): three pages; load b_read_001, store://read/1-k4qd
    /// 2. [>] Sum it up (sum-up), after 1
    /// 3. [ ] Send it (send), after 2
    /// ```
    #[must_use]
    pub fn text(&self, tokens: &dyn TokenCounter) -> String {
        let numbers: BTreeMap<_, usize> =
            self.items().iter().zip(1..).map(|(item, number)| (&item.id, number)).collect();
        let mut order: Vec<usize> = (0..self.items().len()).collect();
        let ranks = ranks(self);
        order.sort_by_key(|at| ranks.get(*at).copied());
        let mut left = BUDGET;
        let mut kept: BTreeMap<usize, String> = BTreeMap::new();
        for at in order {
            let Some(item) = self.items().get(at) else { continue };
            let after = item.depends_on.iter().filter_map(|on| numbers.get(on));
            let after: Vec<String> = after.take(8).map(usize::to_string).collect();
            let line = line(at + 1, item, &after.join(", "));
            let Some(rest) = left.checked_sub(tokens.count(&line) + GAP) else { break };
            left = rest;
            kept.insert(at, line);
        }
        let mut out = String::new();
        let mut next = 0;
        let end = self.items().len();
        for (at, line) in kept.into_iter().chain([(end, String::new())]) {
            match at - next {
                0 => {}
                1 => out.push_str("(1 item is left out)\n"),
                hidden => out.push_str(&format!("({hidden} items are left out)\n")),
            }
            out.push_str(&line);
            next = at + 1;
        }
        out
    }
}

/// Returns how dispensable each item is: the least dispensable is shown first.
fn ranks(list: &TodoList) -> Vec<(u8, usize)> {
    let items = list.items();
    let mut pending = 0;
    let open = items.iter().filter(|item| item.state.is_open());
    let needed: BTreeSet<_> = open.flat_map(|item| &item.depends_on).collect();
    let rank = |(at, item): (usize, &TodoItem)| match item.state {
        ItemState::InProgress => (0, at),
        ItemState::Failed => (1, at),
        ItemState::Pending => {
            pending += 1;
            (if pending <= NEXT { 2 } else { 4 }, at)
        }
        ItemState::Completed if needed.contains(&item.id) => (3, items.len() - at),
        ItemState::Completed | ItemState::Cancelled => (5, items.len() - at),
    };
    items.iter().enumerate().map(rank).collect()
}

fn line(number: usize, item: &TodoItem, after: &str) -> String {
    let mark = match item.state {
        ItemState::Pending => ' ',
        ItemState::InProgress => '>',
        ItemState::Completed => 'x',
        ItemState::Failed => '!',
        ItemState::Cancelled => '-',
    };
    // A truncated name could be another item's.
    let (title, id) = (one_line(&item.title, 120), &item.id);
    let mut line = format!("{number}. [{mark}] {title} ({id})");
    if item.state.is_open() && !after.is_empty() {
        line.push_str(&format!(", after {after}"));
    }
    if let Some(result) = item.result.as_deref().filter(|result| !result.trim().is_empty()) {
        line.push_str(&format!(": {}", one_line(result, 160)));
    }
    for (i, reference) in item.references.iter().take(REFERENCES).enumerate() {
        line.push_str(if i == 0 { "; load " } else { ", " });
        line.push_str(&reference.to_string());
    }
    if let Some(more) = item.references.len().checked_sub(REFERENCES).filter(|more| *more > 0) {
        line.push_str(&format!(" and {more} more"));
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Estimate, TodoId};

    fn id(text: &str) -> TodoId {
        TodoId::new(text).unwrap()
    }

    /// TD4: the list reads in its order, with states, dependencies and what came back.
    #[test]
    fn td4_the_list_is_told_in_its_order() {
        let mut list = TodoList::new(vec![
            TodoItem::new(id("read"), "读\n报告"),
            TodoItem::new(id("sum-up"), "Sum it up").after([id("read")]),
            TodoItem::new(id("send"), "Send it").after([id("sum-up"), id("read")]),
        ])
        .unwrap();
        assert_eq!(
            list.text(&Estimate),
            "1. [ ] 读 报告 (read)\n2. [ ] Sum it up (sum-up), after 1\n\
             3. [ ] Send it (send), after 2, 1\n"
        );
        let read = id("read");
        for state in [ItemState::InProgress, ItemState::Completed] {
            list.set_state(&read, state).unwrap();
        }
        let references = ["b_read_001", "store://read/1-k4qd"].map(|r| r.parse().unwrap());
        list.add_result(&read, Some("三页"), &references).unwrap();
        list.set_state(&id("sum-up"), ItemState::InProgress).unwrap();
        assert_eq!(
            list.text(&Estimate),
            "1. [x] 读 报告 (read): 三页; load b_read_001, store://read/1-k4qd\n\
             2. [>] Sum it up (sum-up), after 1\n3. [ ] Send it (send), after 2, 1\n"
        );
        assert_eq!(TodoList::default().text(&Estimate), "");
    }

    /// TD4: a long list takes bounded room, and always shows what is being worked on.
    #[test]
    fn td4_a_long_list_is_told_in_bounded_room() {
        for title in ["Do the thing that has to be done next. ", "接下来要做的事情，"] {
            let mut items: Vec<TodoItem> = (0..1_000)
                .map(|n| TodoItem::new(id(&format!("item-{n}")), &title.repeat(10)))
                .collect();
            for (n, item) in items.iter_mut().enumerate() {
                item.state = match n {
                    0..500 => ItemState::Completed,
                    500 => ItemState::InProgress,
                    _ => ItemState::Pending,
                };
                item.result = Some("结果 result ".repeat(100));
            }
            items[501].depends_on.push(id("item-3"));
            let text = TodoList::new(items).unwrap().text(&Estimate);
            let count = Estimate.count(&text);
            assert!((300..=BUDGET + GAP).contains(&count), "{count}");
            assert!(text.contains("501. [>]") && text.contains("502. [ ]"), "{text}");
            assert!(text.contains("items are left out)\n501."), "{text}");
            assert!(text.ends_with("items are left out)\n"), "{text}");
        }
    }
}

//! Walking over everything that a store holds, a step at a time, so that memory does not grow with
//! the store.

use foldback::{Error, Memory, Todo};
use foldback_core::{Block, TodoId};

/// The number of records that are read at once.
const STEP: usize = 256;

/// The closed blocks of a todo, in order of time. Ends after an error.
pub(crate) fn blocks<'a>(
    memory: &'a Memory,
    todo: &'a TodoId,
) -> impl Iterator<Item = Result<Block, Error>> + 'a {
    steps(move |last: Option<&Block>| {
        memory.blocks(todo, last.map_or(0, |block| block.header.block_id.n()), STEP)
    })
}

/// The todos of a store, in order of creation, also if some are forgotten meanwhile. Ends after an error.
pub(crate) fn todos(memory: &Memory) -> impl Iterator<Item = Result<TodoId, Error>> + '_ {
    let all = steps(move |last: Option<&Todo>| memory.todos_after(last.map_or(0, Todo::no), STEP));
    all.map(|todo| Ok(todo?.id().clone()))
}

/// Repeats `read`, each time after the last item, until it returns nothing.
fn steps<T: Clone>(
    read: impl Fn(Option<&T>) -> Result<Vec<T>, Error>,
) -> impl Iterator<Item = Result<T, Error>> {
    let mut last: Option<T> = None;
    let mut step = Vec::new().into_iter();
    let mut done = false;
    std::iter::from_fn(move || {
        if let Some(next) = step.next() {
            return Some(Ok(next));
        }
        if done {
            return None;
        }
        match read(last.as_ref()) {
            Ok(read) => {
                done = read.is_empty();
                last = read.last().cloned();
                step = read.into_iter();
                step.next().map(Ok)
            }
            Err(error) => {
                done = true;
                Some(Err(error))
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_goes_on_while_todos_are_forgotten() {
        let memory = Memory::in_memory(foldback::Options::default()).unwrap();
        let id = |n: usize| TodoId::new(&format!("t{n}")).unwrap();
        let made = STEP * 2 + 9;
        (0..made).for_each(|n| drop(memory.session(&id(n)).unwrap()));
        let walked = todos(&memory).map(|todo| {
            let todo = todo.unwrap();
            memory.maintenance().forget(&todo).unwrap();
            todo
        });
        assert!(walked.eq((0..made).map(id)));
    }

    #[test]
    fn steps_give_everything_once() {
        let all: Vec<u32> = (1..=7).collect();
        let read = |last: Option<&u32>| {
            let from = last.map_or(0, |last| *last as usize);
            Ok(all[from..all.len().min(from + 3)].to_vec())
        };
        assert_eq!(steps(read).collect::<Result<Vec<_>, _>>().unwrap(), all);
        let broken = |last: Option<&u32>| match last {
            None => Ok(vec![1]),
            Some(_) => Err(TodoId::new("").unwrap_err().into()),
        };
        let found: Vec<_> = steps(broken).map(|one| one.is_ok()).collect();
        assert_eq!(found, [true, false]);
    }
}

//! The part of a database that a todo belongs to.
//!
//! Every key begins with a slot, so that the writes of different todos spread over a distributed database, whose
//! numbers would otherwise all be next to each other. Everything of one todo is in one slot, so that a database that
//! is divided by slots keeps an append on one machine.

/// How many slots there are. It is part of the format.
pub(super) const SLOTS: u32 = 64;

/// The last slot.
pub(super) const LAST: i16 = SLOTS as i16 - 1;

/// Returns the slot of a todo.
pub(super) const fn of(todo: u32) -> i16 {
    // The upper bits of a product with an odd number differ for neighbours.
    let mixed = todo.wrapping_mul(0x9e37_79b1);
    (mixed >> (32 - SLOTS.trailing_zeros())) as i16
}

/// Returns a number that is below `TODO_END`, as SQL has it.
pub(super) const fn number(todo: u32) -> i32 {
    todo as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PG7: the numbers of todos that were created one after the other do not share a slot.
    #[test]
    fn pg7_neighbours_are_spread() {
        let mut seen = [0_u32; SLOTS as usize];
        (1..=6_400).for_each(|todo| seen[usize::try_from(of(todo)).unwrap()] += 1);
        assert!(seen.iter().all(|count| (90..=110).contains(count)), "{seen:?}");
        assert_eq!(of(0), 0);
        assert!((1..64).all(|todo| of(todo) != of(todo + 1)));
    }
}

//! The part of a database that a todo belongs to.
//!
//! Every key begins with a slot, so that the writes of different todos spread over a distributed database, whose
//! numbers would otherwise all be next to each other. Everything of one todo is in one slot, so that a database that
//! is divided by slots keeps an append on one machine.
//!
//! Each tenant has slots of its own: they are a prefix of all its keys, by which every statement names what it reads and
//! writes, and by which a row-level policy judges the same again ([`tenant`](super::tenant)).

use std::ops::RangeInclusive;

/// How many slots a store has. It is part of the format.
pub(super) const SLOTS: u32 = 64;

/// The slots of one store in a database: those of a tenant, or those of no tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    first: i32,
}

impl Slots {
    /// The greatest number of a tenant whose slots fit their column.
    pub(super) const LAST_TENANT: i32 = i32::MAX / SLOTS as i32 - 1;

    /// Returns the slots of the tenant with this number, from 1 to [`LAST_TENANT`](Self::LAST_TENANT), or with 0 those of
    /// no tenant.
    pub(super) const fn of_tenant(number: i32) -> Self {
        Self { first: number * SLOTS as i32 }
    }

    /// Returns the slot of a todo.
    pub(super) const fn of(self, todo: u32) -> i32 {
        // The upper bits of a product with an odd number differ for neighbours.
        let mixed = todo.wrapping_mul(0x9e37_79b1);
        self.first + (mixed >> (32 - SLOTS.trailing_zeros())) as i32
    }

    /// Returns all of them.
    pub(super) const fn range(self) -> RangeInclusive<i32> {
        self.first..=self.first + SLOTS as i32 - 1
    }

    /// Returns the position of a slot among them.
    pub(super) fn position(self, slot: i32) -> usize {
        usize::try_from(slot - self.first).unwrap_or(usize::MAX)
    }
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
        let slots = Slots::of_tenant(0);
        let mut seen = [0_u32; SLOTS as usize];
        (1..=6_400).for_each(|todo| seen[slots.position(slots.of(todo))] += 1);
        assert!(seen.iter().all(|count| (90..=110).contains(count)), "{seen:?}");
        assert_eq!(slots.of(0), 0);
        assert!((1..64).all(|todo| slots.of(todo) != slots.of(todo + 1)));
    }

    /// PG9: no two tenants share a slot, and the last one's fit.
    #[test]
    fn pg9_tenants_have_slots_of_their_own() {
        let mut end = -1;
        for number in [0, 1, 2, Slots::LAST_TENANT] {
            let slots = Slots::of_tenant(number);
            assert!(*slots.range().start() > end);
            end = *slots.range().end();
            assert!((0..1_000).all(|todo| slots.range().contains(&slots.of(todo))));
        }
    }
}

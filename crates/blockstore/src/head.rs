//! The state of a todo that writers compare.

/// The length of a todo and the number of its writes. Every commit names the head that it was built
/// on, so that the second of two writers is refused, even when the first only closed a block or
/// pinned a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// How many messages the todo holds: the number of the next one.
    pub messages: u64,
    revision: u32,
}

/// The store keeps one number: the messages are above these bits, the revision is in them. The
/// revision wraps around after 16 million commits, more than happen while a writer waits.
const REVISION_BITS: u32 = 24;

impl Head {
    /// Returns the head after a commit of this many messages.
    #[must_use]
    pub fn after(self, messages: usize) -> Self {
        Self { messages: self.messages + messages as u64, revision: self.revision + 1 }
    }

    pub(crate) fn to_number(self) -> u64 {
        self.messages << REVISION_BITS | u64::from(self.revision) & ((1 << REVISION_BITS) - 1)
    }

    /// Returns the head that a store keeps as this number, which is not that of a
    /// [damaged](foldback_kv::DAMAGED_HEAD) one.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        let revision = number & ((1 << REVISION_BITS) - 1);
        Self { messages: number >> REVISION_BITS, revision: u32::try_from(revision).unwrap_or(0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_comes_back_from_its_number() {
        let mut head = Head::default();
        assert_eq!(head.to_number(), 0);
        for messages in [1, 0, 500, 0, 3] {
            let before = head.to_number();
            head = head.after(messages);
            assert!(head.to_number() > before);
            assert_eq!(Head::from_number(head.to_number()), head);
        }
        assert_eq!(head.messages, 504);
        let last = Head { messages: 7, revision: (1 << REVISION_BITS) - 1 };
        assert_eq!(Head::from_number(last.after(0).to_number()).messages, 7, "it goes around");
    }
}

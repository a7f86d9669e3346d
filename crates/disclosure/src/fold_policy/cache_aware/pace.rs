//! The times of a conversation, which show when a provider's cache has lost it.

use foldback_core::{Message, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When messages were said, and when the last prompt was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pace {
    /// The time of the newest message.
    newest: Option<Timestamp>,
    /// The time of the last prompt: that of the newest message in it.
    sent: Option<Timestamp>,
    /// Whether messages carry their own times.
    is_dated: bool,
}

impl Pace {
    /// Notes that a prompt was sent after the messages so far.
    pub(crate) fn send(&mut self) {
        self.sent = self.newest;
    }

    /// Takes the next message, recorded at this time. The time that a message carries is its time; once one does, the
    /// recorded times say nothing.
    pub(crate) fn hear(&mut self, message: &Message, recorded: Option<Timestamp>) {
        let own = message.timestamp();
        if own.is_some() && !self.is_dated {
            *self = Self { is_dated: true, ..Self::default() };
        }
        let recorded = recorded.filter(|_| !self.is_dated);
        self.newest = self.newest.max(own.or(recorded));
    }

    /// Returns whether the newest message came this long after the last prompt, or later.
    pub(crate) fn has_paused(&self, life: Duration) -> bool {
        let life = i64::try_from(life.as_millis()).unwrap_or(i64::MAX);
        let silence = self.newest.zip(self.sent).map(|(new, sent)| new.0.saturating_sub(sent.0));
        silence.is_some_and(|silence| silence >= life)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(300);

    fn dated(seconds: i64) -> Message {
        Message::user("what now? 现在呢？").at(Timestamp(seconds * 1_000))
    }

    #[test]
    fn a_pause_begins_with_a_prompt() {
        let mut pace = Pace::default();
        pace.hear(&dated(0), None);
        assert!(!pace.has_paused(LIFE), "nothing was sent yet");
        pace.send();
        pace.hear(&dated(200), None);
        assert!(!pace.has_paused(LIFE));
        pace.hear(&dated(300), None);
        assert!(pace.has_paused(LIFE), "no prompt was sent at 200");
        pace.send();
        assert!(!pace.has_paused(LIFE));
    }

    #[test]
    fn times_of_recording_count_only_where_no_message_carries_its_own() {
        let (said, at) = (Message::user("go on"), |seconds: i64| Some(Timestamp(seconds * 1_000)));
        let mut pace = Pace::default();
        pace.hear(&said, at(0));
        pace.send();
        pace.hear(&said, at(400));
        assert!(pace.has_paused(LIFE));
        pace.hear(&dated(10), at(401));
        pace.send();
        pace.hear(&said, at(9_000));
        assert!(!pace.has_paused(LIFE));
        pace.hear(&dated(400), at(9_001));
        assert!(pace.has_paused(LIFE));
    }
}

//! The times of a conversation, which show when a provider's cache has lost it.

use foldback_core::{Message, Timestamp};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When messages were said, and when the last prompt was sent.
///
/// The times that messages carry show a pause in a conversation that was recorded elsewhere, those of recording one in a
/// conversation that goes on here. Either is enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pace {
    /// By the times that messages carry.
    said: Clock,
    /// By the times at which they were recorded.
    recorded: Clock,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Clock {
    /// The time of the newest message that has one.
    newest: Option<Timestamp>,
    /// The latest time of the messages since the last prompt.
    latest: Option<Timestamp>,
    /// The time of the last prompt: the latest of the messages that were new in it.
    sent: Option<Timestamp>,
}

impl Clock {
    fn hear(&mut self, at: Option<Timestamp>) {
        self.newest = at.or(self.newest);
        self.latest = self.latest.max(at);
    }

    fn send(&mut self) {
        self.sent = self.latest.take().or(self.sent);
    }
}

impl Pace {
    /// Notes that a prompt was sent after the messages so far.
    pub(crate) fn send(&mut self) {
        for clock in [&mut self.said, &mut self.recorded] {
            clock.send();
        }
    }

    /// Takes the next message, recorded at this time.
    pub(crate) fn hear(&mut self, message: &Message, recorded: Option<Timestamp>) {
        self.said.hear(message.timestamp());
        self.recorded.hear(recorded);
    }

    /// Returns whether the newest message came this long after the last prompt, or later.
    pub(crate) fn has_paused(&self, life: Duration) -> bool {
        [self.said, self.recorded].iter().any(|clock| {
            let times = clock.newest.zip(clock.sent);
            times.is_some_and(|(newest, sent)| newest.since(sent) >= life)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(300);

    fn time(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1_000)
    }

    fn dated(seconds: i64) -> Message {
        Message::user("what now? 现在呢？").at(time(seconds))
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
    fn an_imported_conversation_pauses_by_its_own_times_and_goes_on_by_those_of_recording() {
        let said = Message::user("go on");
        let mut pace = Pace::default();
        pace.hear(&dated(0), Some(time(90_000)));
        pace.send();
        pace.hear(&said, Some(time(90_001)));
        assert!(!pace.has_paused(LIFE), "it has no time, and was imported with the others");
        pace.hear(&dated(400), Some(time(90_002)));
        assert!(pace.has_paused(LIFE));
        pace.send();
        pace.hear(&said, Some(time(90_400)));
        assert!(pace.has_paused(LIFE));
    }

    #[test]
    fn a_wrong_time_is_forgotten_with_the_next_prompt() {
        let mut pace = Pace::default();
        for seconds in [0, 4_000_000_000, 10] {
            pace.hear(&dated(seconds), None);
            pace.send();
        }
        pace.hear(&dated(310), None);
        assert!(pace.has_paused(LIFE));
        pace.send();
        for seconds in [320, 0] {
            pace.hear(&dated(seconds), None);
        }
        pace.send();
        pace.hear(&dated(330), None);
        assert!(!pace.has_paused(LIFE), "a time in the past is not that of the prompt");
    }
}

//! Whether the last response of a log is still being written.

use foldback_transcript::Conversation;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A response that began longer ago, or whose file was last written longer ago, is as complete as it will be.
const REST: Duration = Duration::from_secs(15 * 60);

/// Returns how many of its first messages stay as they are: those before a response that may still be written. `written`
/// is when the file of the log was last written; `None` if it cannot grow any more.
pub(super) fn ready(
    conversation: &Conversation,
    written: Option<SystemTime>,
    now: SystemTime,
) -> usize {
    let all = conversation.messages.len();
    // A time in the future comes from another clock.
    let is_recent = |at: SystemTime| now.duration_since(at).map_or(true, |age| age < REST);
    if !written.is_some_and(is_recent) {
        return all;
    }
    let complete = conversation.complete();
    let begun = conversation.messages.get(complete).and_then(|message| message.timestamp());
    let begun = begun.and_then(|at| u64::try_from(at.0).ok()).map(Duration::from_millis);
    let begun = begun.and_then(|since| UNIX_EPOCH.checked_add(since));
    if begun.is_none_or(is_recent) { complete } else { all }
}

/// Returns when a file was last written; `None` if it is packed, and therefore finished, or the system does not say.
pub(super) fn written(path: &Path) -> Option<SystemTime> {
    let is_packed = path.extension().is_some_and(|extension| extension == "zst");
    let at = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    if is_packed { None } else { at(path) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_transcript::read_bytes;

    /// A question, and an answer that its log does not call complete.
    fn open(time: &str) -> Conversation {
        let line = |kind: &str, n: u32, parent: &str, message: &str| {
            format!(
                "{{\"type\":\"{kind}\",\"uuid\":\"{n}\",\"parentUuid\":{parent},\"sessionId\":\"s\"{time},\"message\":{{\"role\":\"{kind}\",{message}}}}}\n"
            )
        };
        let log = line("user", 0, "null", "\"content\":\"哪个端口？\"")
            + &line(
                "assistant",
                1,
                "\"0\"",
                "\"id\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"是\"}]",
            );
        read_bytes(log.as_bytes()).unwrap().next().unwrap().unwrap()
    }

    #[test]
    fn a_response_waits_while_its_file_is_written() {
        let now = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let before = |minutes: u64| Some(now - Duration::from_secs(60 * minutes));
        let none = open("");
        for (written, expected) in [(None, 2), (before(60), 2), (before(1), 1), (before(0), 1)] {
            assert_eq!(ready(&none, written, now), expected, "{written:?}");
        }
        // Another clock is ahead.
        assert_eq!(ready(&none, Some(now + Duration::from_secs(99)), now), 1);
        // It was said long ago, in a file that is new: a copy.
        let old = open(",\"timestamp\":\"2025-03-01T09:00:00Z\"");
        assert_eq!(ready(&old, before(1), now), 2);
        let new = open(",\"timestamp\":\"2027-01-15T07:59:00Z\"");
        assert_eq!((ready(&new, before(1), now), ready(&new, before(60), now)), (1, 2));
    }
}

//! The limits of a call.

use super::Handing;
use crate::FilePermissions;
use foldback_tool::CancellationToken;
use std::time::{Duration, Instant};

/// The limits of a call.
pub(super) struct Bounds {
    /// The most bytes that it answers with.
    pub(super) output_bytes: usize,
    /// The most bytes of a file that is written or edited.
    pub(super) file_bytes: u64,
    /// The way to hand the call the contents of references.
    pub(super) handing: Handing,
    until: Option<Instant>,
    cancelled: CancellationToken,
}

/// The reason why a call ends before it has seen everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The answer has no room for more.
    Room,
    /// Its time is over.
    Time,
    /// Nobody is waiting for the answer any more.
    Cancelled,
}

impl Bounds {
    pub(super) fn new(
        permissions: &FilePermissions,
        cancelled: CancellationToken,
        handing: Handing,
    ) -> Self {
        Self {
            output_bytes: permissions.output_bytes,
            file_bytes: permissions.file_bytes,
            handing,
            until: Instant::now().checked_add(Duration::from_secs(permissions.time_s)),
            cancelled,
        }
    }

    /// Returns why the call has to end now, if it has to.
    pub(super) fn over(&self) -> Option<Cut> {
        if self.cancelled.is_cancelled() {
            return Some(Cut::Cancelled);
        }
        self.until.filter(|until| Instant::now() >= *until).map(|_| Cut::Time)
    }

    /// Returns whether the time is over, or nobody is waiting for the answer any more.
    pub(super) fn are_over(&self) -> bool {
        self.over().is_some()
    }
}

impl Cut {
    /// Returns the note for a model; `room` says what helps when there was no room.
    pub(super) fn told(self, room: String) -> String {
        match self {
            Self::Room => room,
            Self::Time => {
                "the time ran out before everything was seen; give a path further down".into()
            }
            Self::Cancelled => "the call was cancelled before everything was seen".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_that_is_over_is_told_as_time() {
        let permissions = FilePermissions { time_s: 0, ..FilePermissions::default() };
        let bounds = Bounds::new(&permissions, CancellationToken::new(), None);
        let cut = bounds.over().unwrap();
        assert_eq!(cut, Cut::Time);
        assert!(cut.told("there is more".into()).starts_with("the time ran out"));
    }
}

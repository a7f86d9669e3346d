//! Whether the service was found to be out of reach a moment ago.

use std::io::{Error, ErrorKind, Result};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a service that was out of reach is not asked again. A check of a thousand payloads would otherwise wait
/// for each of them.
const PAUSE: Duration = Duration::from_secs(5);

/// Whether the service was found to be out of reach a moment ago.
#[derive(Default)]
pub(super) struct Outage(Mutex<Option<(Instant, String)>>);

impl Outage {
    /// Refuses a request if the last one did not reach the service, and that was a moment ago.
    pub(super) fn check(&self) -> Result<()> {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match noted.as_ref().filter(|(at, _)| at.elapsed() < PAUSE) {
            Some((_, why)) => Err(Error::new(ErrorKind::NotConnected, why.clone())),
            None => Ok(()),
        }
    }

    /// Notes a failure, if it is that the service was not reached.
    pub(super) fn note(&self, error: &Error) {
        if error.kind() == ErrorKind::NotConnected {
            let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            *noted = Some((Instant::now(), error.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bs9_a_service_out_of_reach_is_not_asked_again_at_once() {
        let outage = Outage::default();
        outage.note(&Error::new(ErrorKind::PermissionDenied, "not permitted"));
        assert!(outage.check().is_ok());
        outage.note(&Error::new(ErrorKind::NotConnected, "nobody listens"));
        assert_eq!(outage.check().unwrap_err().to_string(), "nobody listens");
        outage.0.lock().unwrap().as_mut().unwrap().0 -= PAUSE;
        assert!(outage.check().is_ok());
    }
}

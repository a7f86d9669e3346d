//! The end of a gateway.

use crate::in_progress::InProgress;
use crate::tenants::Rooms;
use crate::{Gateway, Recorder, Traffic};
use std::sync::Arc;

/// Records what was said in a gateway, and in those of its tenants, to its end.
#[derive(Clone)]
pub struct Finisher {
    recorder: Recorder,
    traffic: Option<Traffic>,
    rooms: Option<Arc<Rooms>>,
    in_progress: InProgress,
}

impl Finisher {
    pub(crate) fn of(gateway: &Gateway) -> Self {
        let (recorder, traffic) = (gateway.recorder.clone(), gateway.traffic.clone());
        let (rooms, in_progress) = (gateway.rooms.clone(), gateway.in_progress.clone());
        Self { recorder, traffic, rooms, in_progress }
    }

    /// Returns how many answers are in progress.
    #[must_use]
    pub fn answers(&self) -> usize {
        self.in_progress.count()
    }

    /// Waits until everything is recorded. Afterwards, nothing more is.
    pub async fn finish(&self) {
        let of_tenants = async {
            if let Some(rooms) = &self.rooms {
                rooms.finish().await;
            }
        };
        tokio::join!(self.finish_own(), of_tenants);
    }

    /// Does so for the gateway alone.
    pub(crate) async fn finish_own(&self) {
        let copied = async {
            if let Some(traffic) = &self.traffic {
                traffic.finish().await;
            }
        };
        // Together: a database that is away does not keep the copies of the traffic from their files.
        tokio::join!(self.recorder.finish(), copied);
    }
}

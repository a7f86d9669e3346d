//! Models that fail for a while, and those that fail for good.

use super::{Library, agent, model, node, plain, two, usual};
use crate::script::full;
use foldback_agent::{Resource, SpendLimits, SpendTracker, Stop, Task};
use foldback_llm::{ModelError, ModelErrorKind};
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;

/// DS3: a request that fails for good is not repeated.
#[tokio::test(start_paused = true)]
async fn ds3_what_fails_for_good_is_asked_once() {
    let model = model(|_| ModelError::new(ModelErrorKind::Configuration, "no such model").into());
    let agent = agent(&model, &Library::new(two), plain());
    let report = agent.run(full().as_mut(), &Task::new("run", "潮差多少?")).await;
    let stop = Stop::ModelFailed { message: "no such model".to_owned() };
    assert_eq!((model.calls(), &report.trajectory.outcome.stop), (1, &stop));
}

/// DS3: a provider that says when to ask again is asked then, and not before; a run that is cancelled does not
/// wait.
#[tokio::test(start_paused = true)]
async fn ds3_a_retry_waits_as_long_as_it_is_told() {
    for (cancelled_at, stop) in [(None, Stop::Answered), (Some(5), Stop::Cancelled)] {
        let is_first = Mutex::new(true);
        let model = model(move |request| {
            let is_first = std::mem::take(&mut *is_first.lock().unwrap());
            if is_first && node(request) == "queries/queries" {
                let busy = ModelError::new(ModelErrorKind::RateLimit, "busy");
                return ModelError { retry_after: Some(Duration::from_secs(90)), ..busy }.into();
            }
            usual(request)
        });
        let task = Task::new("run", "潮差多少?");
        if let Some(seconds) = cancelled_at {
            let cancelled = task.cancelled.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                cancelled.cancel();
            });
        }
        let began = Instant::now();
        let agent = agent(&model, &Library::new(two), plain());
        let report = agent.run(full().as_mut(), &task).await;
        assert_eq!(report.trajectory.outcome.stop, stop);
        assert_eq!(began.elapsed().as_secs(), cancelled_at.unwrap_or(90));
    }
}

/// DS3: a provider that wants to be asked in a day is not waited for, and no wait outlasts the time of a run.
#[tokio::test(start_paused = true)]
async fn ds3_no_retry_waits_for_ever() {
    let failed = Stop::ModelFailed { message: "busy".to_owned() };
    let exhausted = Stop::Exhausted { resource: Resource::Time };
    for (wait, limit, stop, waited) in [(86_400, None, failed, 0), (90, Some(20), exhausted, 20)] {
        let model = model(move |_| {
            let busy = ModelError::new(ModelErrorKind::RateLimit, "busy");
            ModelError { retry_after: Some(Duration::from_secs(wait)), ..busy }.into()
        });
        let mut task = Task::new("run", "潮差多少?");
        if let Some(seconds) = limit {
            let limits = SpendLimits::default().with_time(Duration::from_secs(seconds));
            task.spend = SpendTracker::new(limits, None).unwrap();
        }
        let began = Instant::now();
        let agent = agent(&model, &Library::new(two), plain());
        let report = agent.run(full().as_mut(), &task).await;
        assert_eq!(report.trajectory.outcome.stop, stop);
        assert_eq!(began.elapsed().as_secs(), waited);
    }
}

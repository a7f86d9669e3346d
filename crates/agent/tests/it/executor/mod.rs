//! The executor: order, failures, bounds, cancellation.

mod failures;
mod lanes;
mod open_plans;
mod order;
mod quotas;
mod retries;
mod stopping;

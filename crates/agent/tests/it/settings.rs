//! Invalid settings are refused before anything is asked or recorded.

use crate::script::is_refused;
use foldback_agent::{OnePlan, OnePlanSettings, SettingError};
use foldback_llm::Sampling;

/// OP14: settings by which no step could be shown, or no answer be sampled, are refused.
#[tokio::test]
async fn op14_nonsense_is_refused() {
    let none = OnePlanSettings::default().with_results_tokens(0);
    let told = "results_tokens is 0, but a whole number of at least 1 is expected";
    is_refused(&OnePlan::new(none), told).await;
    let sampling = Sampling::default().with_temperature(f64::INFINITY);
    let hot = OnePlanSettings::default().with_sampling(sampling);
    let told = "temperature is inf, but a number from 0 to 2, or none at all is expected";
    is_refused(&OnePlan::new(hot), told).await;
    let error = SettingError { name: "n", value: "0".to_owned(), expected: "1" };
    assert_eq!(error.to_string(), "n is 0, but 1 is expected");
}

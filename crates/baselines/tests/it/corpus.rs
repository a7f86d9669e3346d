//! Every policy on recorded conversations.

use crate::support::{prompt, record, todo};
use foldback_baselines::{BASELINES, VARIANTS};
use foldback_core::{Estimate, check_request};
use foldback_testkit::{data, skip_without_data};
use std::sync::Arc;

/// A request is checked after one message in this many, and after the last.
const EVERY: usize = 25;

/// LV3: if a recording is a valid request, so is what each policy sends.
#[test]
fn lv3_requests_are_valid_on_recorded_conversations() {
    skip_without_data!();
    let mut checked = 0;
    for (name, conversation) in data::conversations(&["agent"]) {
        let messages = &conversation.messages;
        for policy in BASELINES.iter().chain(VARIANTS) {
            let mut context = policy.start(todo(), Arc::new(Estimate));
            for (at, message) in messages.iter().enumerate() {
                record(context.as_mut(), [message.clone()]);
                if at % EVERY == 0 || at + 1 == messages.len() {
                    if !check_request(&messages[..=at]).is_empty() {
                        continue;
                    }
                    let shown = prompt(context.as_ref()).messages;
                    let found = check_request(shown.iter().map(AsRef::as_ref));
                    assert_eq!(found, [], "{} at {at} of {name}", policy.name);
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 1_000, "{checked}");
}

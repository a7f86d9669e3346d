//! One plan for a whole request: when the model is asked, with which contents, and what runs meanwhile.

mod broken_off;
mod degrading;
mod replans;
mod rounds;
mod stopped;

use foldback_agent::{OnePlanSettings, Purpose, Report};

const SEED_WEATHER: &str = r#"{
  "action_plan": {
    "step1": {
      "function": "search_weather",
      "args": {"city": "杭州", "time": "18:00"},
      "dependence": []
    },
    "step2": {
      "function": "anchor_function",
      "args": {
        "task": "根据step1结果：若晴朗则调用restaurant_booking，若下雨则调用food_delivery"
      },
      "dependence": [1] // 明确依赖第一步的天气数据
    }
  }
}"#;

/// A plan with one step per line: its number, its tool, and the numbers of those that it waits for.
fn plan(steps: &[(u32, &str, &[u32])]) -> String {
    let steps = steps.iter().map(|(id, tool, after)| {
        format!(r#""step{id}": {{"function": "{tool}", "args": {{}}, "dependence": {after:?}}}"#)
    });
    format!(r#"{{"action_plan": {{{}}}}}"#, steps.collect::<Vec<_>>().join(", "))
}

const NOTHING_MORE: &str = r#"{"action_plan": {}}"#;

fn calls(report: &Report, purpose: Purpose) -> u64 {
    report.trajectory.tokens.get(&purpose).map_or(0, |spent| spent.calls)
}

fn changed(change: impl FnOnce(&mut OnePlanSettings)) -> OnePlanSettings {
    let mut settings = OnePlanSettings::default();
    change(&mut settings);
    settings
}

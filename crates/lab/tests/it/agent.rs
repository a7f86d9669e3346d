//! One task under several policies.

use foldback_core::Prices;
use foldback_lab::agent::{Agents, Config, Figures, measure};
use foldback_llm::{ChatModel, ScriptedModel};
use foldback_policies::Policy;
use std::sync::Arc;

fn measured(policies: &[&str]) -> Agents {
    summarized(policies, None)
}

fn summarized(policies: &[&str], summary_model: Option<Arc<dyn ChatModel>>) -> Agents {
    let policies = policies.iter().map(|name| Policy::named(name).unwrap()).collect();
    let (prices, told) = (Prices::default(), |why: &str| assert_eq!(why, ""));
    measure(&Config { policies, services: 6, seed: 3, prices, summary_model, told }).unwrap()
}

fn row<'a>(agents: &'a Agents, policy: &str) -> &'a Figures {
    agents.policies.iter().find(|row| row.policy == policy).unwrap()
}

#[test]
fn who_keeps_everything_has_everything_in_view() {
    let agents = measured(&["full"]);
    let full = row(&agents, "full");
    assert_eq!((full.facts.facts, full.facts.visible), (30, 30), "24 in files, 6 in the answer");
    assert_eq!((full.facts.recalls, full.facts.lost, full.right_reports), (0, 0, 24));
    // A model call for each turn: a first look, three for each service, a file for each fact, the
    // answer.
    assert_eq!(full.usage.calls, 1 + 3 * 6 + 24 + 1);
    assert_eq!(full.tool_calls, 2 + 4 * 6 + 24);
}

/// TL8: the memory sends little, and what left its view is recalled; nothing is lost or read twice.
#[test]
fn tl8_the_memory_recalls_what_left_its_view() {
    let agents = measured(&["foldback", "full"]);
    let (own, full) = (row(&agents, "foldback"), row(&agents, "full"));
    assert!(own.facts.recalled > 0, "{own:?}");
    assert_eq!((own.facts.lost, own.right_reports), (0, 24), "{own:?}");
    assert!(own.usage.input_tokens < full.usage.input_tokens / 4, "{own:?} {full:?}");
}

/// What is gone is counted as lost, and the file that should contain it is not right.
#[test]
fn who_drops_results_loses_what_is_given_once() {
    let agents = measured(&["mask-observations"]);
    let masking = row(&agents, "mask-observations");
    assert!(masking.facts.lost > 0 && masking.facts.read_again > 0, "{masking:?}");
    assert!(masking.right_reports < 24, "{masking:?}");
    let sum = masking.facts.visible + masking.facts.read_again + masking.facts.lost;
    assert_eq!((sum, masking.facts.recalled), (masking.facts.facts, 0));
}

/// CX4: a model writes the summaries, is given what leaves the view, and is paid for.
#[test]
fn cx4_a_model_may_write_the_summaries() {
    let policy = "summary-top-n";
    let model = Arc::new(ScriptedModel::answering(|_| "It read the settings.".into()));
    let agents = summarized(&[policy], Some(model.clone()));
    let asked = model.requests();
    let is_whole = |text: &str| text.contains("file_read") && text.len() > 4_000;
    assert!(asked.iter().any(|asked| is_whole(&asked.messages[1].text())));
    let (by_model, by_rule) = (row(&agents, policy).clone(), measured(&[policy]));
    assert!(by_model.output_tokens < row(&by_rule, policy).output_tokens);
    assert!(by_model.usage.calls > 0);
}

#[test]
fn the_same_seed_gives_the_same_figures() {
    let policies = ["foldback", "foldback-cache-aware", "deepagents", "summary-top-n", "stm-ltm"];
    let (once, again) = (measured(&policies), measured(&policies));
    assert_eq!(once.policies, again.policies);
}

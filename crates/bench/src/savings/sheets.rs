//! The results as tables.

use super::{Comparison, Figures, Group, Miss, OfKind, Savings, Target};
use crate::Sheet;
use crate::sheet::counted;
use foldback_core::thousands;

impl Savings {
    /// Returns the tables that a person reads: for each group, what was sent, the fates of the facts,
    /// and the savings; then the targets.
    #[must_use]
    pub fn sheets(&self) -> Vec<Sheet> {
        let mut sheets = Vec::new();
        for of_kind in &self.kinds {
            sheets.push(sent(of_kind));
            sheets.extend(facts(of_kind));
            sheets.extend(shortened(of_kind));
            sheets.extend(pointers(of_kind));
        }
        for of_kind in &self.kinds {
            sheets.extend(self.saved(of_kind.kind));
        }
        sheets.extend(self.reached());
        sheets
    }

    /// Returns what each policy of the memory saves on conversations of a group, of any length.
    fn saved(&self, kind: Group) -> Vec<Sheet> {
        let mut sheets: Vec<(&str, Sheet)> = Vec::new();
        let is_meant = |one: &&Comparison| one.kind == kind && one.length.is_none();
        for Comparison { policy, rival, input, cost, .. } in
            self.comparisons.iter().filter(is_meant)
        {
            let shares = [input.median, input.p10, cost.median, cost.p10, cost.least];
            let row = [(*rival).to_owned()].into_iter().chain(shares.map(percent));
            match sheets.iter_mut().find(|(name, _)| name == policy) {
                Some((_, sheet)) => sheet.row(row),
                None => {
                    let title =
                        format!("{}: saved by {policy} (medians, p10, worst)", kind.title());
                    let numbers = ["tokens", "p10", "cost", "p10", "worst"];
                    let mut sheet = Sheet::new(&title, &["against"], &numbers);
                    sheet.row(row);
                    sheets.push((policy, sheet));
                }
            }
        }
        sheets.into_iter().map(|(_, sheet)| sheet).collect()
    }

    /// Returns the targets: for savings, with the conversation that was dearest, and for facts.
    pub(super) fn reached(&self) -> [Sheet; 2] {
        let numbers = ["wanted", "measured", "met", "own apart", "n", "side calls"];
        let title = "Targets of savings (own apart: without recalls of the model's own words)";
        let mut saved = Sheet::new(title, &["what"], &numbers);
        let numbers = ["wanted", "measured", "met", "not own", "n", "ceiling", "brought"];
        let title =
            "Targets of facts (not own: others gave them; brought: share of those not shown)";
        let mut facts = Sheet::new(title, &["what"], &numbers);
        for target in &self.targets {
            match &target.of_facts {
                None => saved.row(
                    told(target, target.conversations)
                        .into_iter()
                        .chain([target.side_calls.map_or_else(String::new, thousands)]),
                ),
                Some(of_facts) => facts.row(told(target, of_facts.facts).into_iter().chain([
                    percent(of_facts.ceiling),
                    of_facts.brought.map_or_else(|| "-".to_owned(), percent),
                ])),
            }
        }
        if let Some(worst) = &self.worst {
            let tokens = thousands(worst.tokens);
            let what = format!(
                "{} over {}, dearest in {} ({tokens} tokens)",
                worst.policy, worst.rival, worst.id
            );
            let mut cells = vec![String::new(); saved.columns.len()];
            for (cell, told) in cells.iter_mut().zip([what, String::new(), percent(worst.over)]) {
                *cell = told;
            }
            saved.row(cells);
        }
        [saved, facts]
    }

    /// Returns a row for each conversation and policy, with every figure.
    #[must_use]
    pub fn rows(&self) -> Sheet {
        let numbers = [
            "messages",
            "tokens",
            "calls",
            "input_tokens",
            "peak_tokens",
            "cached_tokens",
            "cost_units",
            "hit_rate",
            "in_out_ratio",
            "prefix_moves",
            "facts",
            "visible",
            "recalled",
            "reachable",
            "lost",
            "ceiling",
            "payload_facts",
            "payload_visible",
            "payload_recalled",
            "payload_reachable",
            "payload_lost",
            "own_facts",
            "own_visible",
            "own_recalled",
            "own_reachable",
            "own_lost",
            "recalls",
            "looks",
            "side_calls",
            "side_output_tokens",
            "output_tokens",
            "calls_without_recalls",
            "input_tokens_without_recalls",
            "cost_units_without_recalls",
            "compact_json_results",
            "compact_json_tokens",
            "repetition_results",
            "repetition_tokens",
            "pointers",
            "pointers_needed",
            "pointed_facts",
        ];
        let mut sheet = Sheet::new("savings", &["id", "file", "kind", "policy"], &numbers);
        for one in &self.conversations {
            for (name, figures) in one.policies.iter() {
                let names = [&one.id, &one.file, one.kind.as_str(), name].map(str::to_owned);
                let sizes = [one.messages, one.tokens].map(|number| number.to_string());
                sheet.row(names.into_iter().chain(sizes).chain(all(figures)));
            }
        }
        sheet
    }

    /// Returns a row for each fact that a policy neither showed nor recalled.
    #[must_use]
    pub fn missed(&self) -> Sheet {
        let names = [
            "id",
            "policy",
            "tool",
            "argument",
            "value",
            "outcome",
            "in_payload",
            "is_own",
            "in_a_look",
            "asked",
        ];
        let mut sheet = Sheet::new("facts that were missed", &names, &["message"]);
        for miss in &self.misses {
            let Miss {
                id,
                policy,
                at,
                tool,
                argument,
                value,
                in_payload,
                is_own,
                in_a_look,
                fate,
                asked,
            } = miss;
            let told = [id, *policy, tool, argument, value, fate.as_str()].map(str::to_owned);
            let flags = [in_payload, is_own, in_a_look].map(|flag| flag.to_string());
            sheet.row(told.into_iter().chain(flags).chain([asked.clone(), at.to_string()]));
        }
        sheet
    }
}

/// Returns what was sent under each policy.
fn sent(of_kind: &OfKind) -> Sheet {
    let title = format!(
        "{}: {} (summaries are written by rule)",
        of_kind.kind.title(),
        counted(of_kind.conversations, "conversation")
    );
    let numbers = ["calls", "input tokens", "peak", "cached", "cost"];
    let mut sheet = Sheet::new(&title, &["policy"], &numbers);
    for (name, figures) in of_kind.policies.iter() {
        let usage = &figures.usage;
        sheet.row([
            name.to_owned(),
            thousands(usage.calls),
            thousands(usage.input_tokens),
            thousands(usage.peak_tokens),
            percent(figures.hit_rate),
            thousands(usage.cost_units.round() as u64),
        ]);
    }
    sheet
}

/// Returns the fates of the facts under each policy; `None` if there are none.
fn facts(of_kind: &OfKind) -> Option<Sheet> {
    let title =
        format!("{}: facts needed later (brought: share of those not shown)", of_kind.kind.title());
    let numbers = ["facts", "visible", "recalled", "reachable", "lost", "brought"];
    let mut sheet = Sheet::new(&title, &["policy"], &numbers);
    for (name, Figures { facts, .. }) in of_kind.policies.iter() {
        let some = [facts.visible, facts.recalled, facts.reachable, facts.lost];
        let shares = some.map(|some| percent(facts.share(some)));
        let brought = facts.brought().map_or_else(|| "-".to_owned(), percent);
        let names = [name.to_owned(), thousands(facts.facts)];
        sheet.row(names.into_iter().chain(shares).chain([brought]));
    }
    let has_facts = of_kind.policies.iter().any(|(_, figures)| figures.facts.facts > 0);
    has_facts.then_some(sheet)
}

/// Returns what each policy showed in fewer tokens; `None` if none did.
fn shortened(of_kind: &OfKind) -> Option<Sheet> {
    let title = format!("{}: results shown in fewer tokens", of_kind.kind.title());
    let numbers = ["compact JSON", "tokens saved", "repetitions", "tokens saved"];
    let mut sheet = Sheet::new(&title, &["policy"], &numbers);
    let mut is_any = false;
    for (name, Figures { compact_json, repetitions, .. }) in of_kind.policies.iter() {
        let some =
            [compact_json.results, compact_json.tokens, repetitions.results, repetitions.tokens];
        if some.iter().any(|some| *some > 0) {
            is_any = true;
            sheet.row([name.to_owned()].into_iter().chain(some.map(thousands)));
        }
    }
    is_any.then_some(sheet)
}

/// Returns the blocks that each policy named before the model asked; `None` if none did.
fn pointers(of_kind: &OfKind) -> Option<Sheet> {
    let title = format!("{}: blocks named before the model asks", of_kind.kind.title());
    let numbers = ["blocks", "needed", "not needed, per 100 calls", "facts", "visible or named"];
    let mut sheet = Sheet::new(&title, &["policy"], &numbers);
    let mut is_any = false;
    for (name, Figures { pointers, facts, without_recalls, .. }) in of_kind.policies.iter() {
        if pointers.blocks == 0 {
            continue;
        }
        is_any = true;
        let in_vain = (pointers.blocks - pointers.needed) as f64 * 100.0;
        let had = (facts.visible + pointers.facts) as f64 / facts.facts.max(1) as f64;
        sheet.row([
            name.to_owned(),
            thousands(pointers.blocks),
            thousands(pointers.needed),
            format!("{:.0}", in_vain / without_recalls.calls.max(1) as f64),
            thousands(pointers.facts),
            percent(had),
        ]);
    }
    is_any.then_some(sheet)
}

/// Returns the cells that all targets share, including `n`.
fn told(target: &Target, n: u64) -> [String; 6] {
    let bound = if target.at_most { "<=" } else { ">=" };
    let lowered = target.of_facts.as_ref().and_then(|of_facts| of_facts.lowered_to);
    let lowered = lowered.map_or_else(String::new, |to| format!(", lowered to {}", percent(to)));
    let wanted = target.wanted.map(|wanted| format!("{bound} {}{lowered}", percent(wanted)));
    let met = target.met.map_or("", |met| if met { "yes" } else { "no" });
    [
        target.what.clone(),
        wanted.unwrap_or_default(),
        percent(target.measured),
        met.to_owned(),
        percent(target.without_own),
        thousands(n),
    ]
}

fn all(figures: &Figures) -> Vec<String> {
    let Figures { usage, facts, payload, own, without_recalls, .. } = figures;
    let ratio = figures.in_out_ratio.map_or(String::new(), |ratio| ratio.to_string());
    let mut cells = [usage.calls, usage.input_tokens, usage.peak_tokens, usage.cached_tokens]
        .map(|number| number.to_string())
        .to_vec();
    cells.extend([usage.cost_units.to_string(), figures.hit_rate.to_string(), ratio]);
    let counts = [
        figures.prefix_moves,
        facts.facts,
        facts.visible,
        facts.recalled,
        facts.reachable,
        facts.lost,
        facts.ceiling,
        payload.facts,
        payload.visible,
        payload.recalled,
        payload.reachable,
        payload.lost,
        own.facts,
        own.visible,
        own.recalled,
        own.reachable,
        own.lost,
        figures.recalls,
        figures.looks,
        figures.side_calls,
        figures.side_output_tokens,
        figures.output_tokens,
        without_recalls.calls,
        without_recalls.input_tokens,
    ];
    cells.extend(counts.map(|number| number.to_string()));
    cells.push(without_recalls.cost_units.to_string());
    let (json, same) = (figures.compact_json, figures.repetitions);
    let shortened = [json.results, json.tokens, same.results, same.tokens];
    cells.extend(shortened.map(|number| number.to_string()));
    let pointers = figures.pointers;
    let named = [pointers.blocks, pointers.needed, pointers.facts];
    cells.extend(named.map(|number| number.to_string()));
    cells
}

/// Formats a share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

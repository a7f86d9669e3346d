//! The results as tables.

use super::{Figures, Miss, Savings, Spread};
use crate::{Kind, Sheet};

impl Savings {
    /// The tables that a person reads: a summary for each kind, what is saved, and the targets.
    #[must_use]
    pub fn sheets(&self) -> Vec<Sheet> {
        let mut sheets: Vec<Sheet> = self
            .kinds
            .iter()
            .map(|of_kind| {
                let title =
                    format!("{}: {} conversations", title(of_kind.kind), of_kind.conversations);
                let numbers = [
                    "calls",
                    "input tokens",
                    "peak",
                    "cached",
                    "cost",
                    "facts",
                    "visible",
                    "recalled",
                    "reachable",
                    "lost",
                    "ceiling",
                ];
                let mut sheet = Sheet::new(&title, &["policy"], &numbers);
                for (name, figures) in of_kind.policies.iter() {
                    sheet.row(summary(name, figures));
                }
                sheet
            })
            .collect();
        sheets.push(self.saved());
        sheets.push(self.reached());
        sheets
    }

    /// What is saved against each rival on conversations of any length.
    fn saved(&self) -> Sheet {
        let numbers = ["tokens saved", "p10", "p90", "cost saved", "p10", "p90", "worst"];
        let title = "Saved against others, recalls included (medians over conversations)";
        let mut sheet = Sheet::new(title, &["policy", "against", "kind"], &numbers);
        for comparison in self.comparisons.iter().filter(|one| one.length.is_none()) {
            let (input, cost) = (comparison.input, comparison.cost);
            let spread = |share: Spread| [share.median, share.p10, share.p90];
            let names = [comparison.policy, comparison.rival, comparison.kind.as_str()];
            let shares = spread(input).into_iter().chain(spread(cost)).chain([cost.least]);
            sheet.row(names.map(str::to_owned).into_iter().chain(shares.map(percent)));
        }
        sheet
    }

    /// The targets, and the conversation that was dearest.
    pub(super) fn reached(&self) -> Sheet {
        let numbers = ["wanted", "measured", "met", "without recalls of own words"];
        let mut sheet = Sheet::new("Targets", &["what"], &numbers);
        for target in &self.targets {
            let bound = if target.at_most { "at most" } else { "at least" };
            sheet.row([
                target.what.clone(),
                format!("{bound} {}", percent(target.wanted)),
                percent(target.measured),
                if target.met { "yes" } else { "no" }.to_owned(),
                target.without_own.map_or_else(String::new, percent),
            ]);
        }
        if let Some(worst) = &self.worst {
            let tokens = thousands(worst.tokens);
            sheet.row([
                format!(
                    "{} beside {}, dearest in {} ({tokens} tokens)",
                    worst.policy, worst.rival, worst.id
                ),
                String::new(),
                percent(worst.over),
                String::new(),
                String::new(),
            ]);
        }
        sheet
    }

    /// A row for each conversation and policy, with every figure.
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
            "output_tokens",
            "calls_without_recalls",
            "input_tokens_without_recalls",
            "cost_units_without_recalls",
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

    /// A row for each fact that a policy neither showed nor recalled.
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

/// The name of a kind above its figures.
pub(super) fn title(kind: Kind) -> &'static str {
    match kind {
        Kind::Agent => "Agent runs",
        Kind::Composite => "Composites of agent runs",
        Kind::Dialogue => "Dialogues",
    }
}

fn summary(name: &str, figures: &Figures) -> Vec<String> {
    let (usage, facts) = (&figures.usage, &figures.facts);
    let mut cells = vec![
        name.to_owned(),
        thousands(usage.calls),
        thousands(usage.input_tokens),
        thousands(usage.peak_tokens),
        percent(figures.hit_rate),
        thousands(usage.cost_units.round() as u64),
        thousands(facts.facts),
    ];
    let some = [facts.visible, facts.recalled, facts.reachable, facts.lost, facts.ceiling];
    cells.extend(some.map(|some| match facts.facts {
        0 => "-".to_owned(),
        _ => percent(facts.share(some)),
    }));
    cells
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
        figures.output_tokens,
        without_recalls.calls,
        without_recalls.input_tokens,
    ];
    cells.extend(counts.map(|number| number.to_string()));
    cells.push(without_recalls.cost_units.to_string());
    cells
}

/// A share as hundredths.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A number with commas between its thousands.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut told = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            told.push(',');
        }
        told.push(digit);
    }
    told
}

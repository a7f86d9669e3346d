//! The page of what is saved: targets, curves of tokens, cost against length, facts, and tables.

use super::by_length::{Cheaper, Class, EVERY_LENGTH, classes, kilo};
use super::compare::{cost, input};
use super::sheets::percent;
use super::targets::{CACHE_AWARE, STRICT};
use super::{ByPolicy, Comparison, Curve, Figures, Group, Length, OfKind, Savings, Spread};
use crate::report::{Axis, Bar, Bars, Lines, Mark, Page, Section, Series};
use crate::{BenchError, Policy, Sheet, sheet::thousands};
use std::collections::BTreeMap;

/// What all are held against.
const FULL: &str = "full";
/// The rivals against which the break-even is marked.
const MARKED: [&str; 2] = [FULL, "deepagents"];

impl Savings {
    /// The results as a page.
    ///
    /// # Errors
    /// When a picture cannot be drawn.
    pub fn page(&self) -> Result<Page, BenchError> {
        let lead = "What a model would be sent under each policy, and whether what it needed later \
                    was still to be had. Recorded conversations are fed through each policy \
                    message by message; prompts are counted with o200k and billed as a provider \
                    with a prefix cache does it.";
        let mut page = Page::new("Savings", lead);
        page.section(self.targets_section());
        for kind in Group::ALL {
            if let Some(section) = self.curves_section(kind)? {
                page.section(section);
            }
        }
        for of_kind in &self.kinds {
            page.section(self.lengths_section(of_kind)?);
        }
        for of_kind in &self.kinds {
            if let Some(section) = facts_section(of_kind)? {
                page.section(section);
            }
        }
        for of_kind in &self.kinds {
            page.section(self.saved_section(of_kind.kind));
        }
        page.section(self.recalls_section());
        page.section(self.policies_section());
        Ok(page)
    }

    fn targets_section(&self) -> Section {
        let kinds = self.kinds.iter().map(|of_kind| {
            format!("{}: {}", of_kind.kind.title(), thousands(of_kind.conversations))
        });
        let kinds = kinds.collect::<Vec<_>>().join(", ");
        let measured =
            format!("Conversations measured: {kinds}. Only targets of all conversations mix them.");
        let note = "Figures include the calls that recalling takes. Own apart is what they would \
                    be if nobody paid for recalling words that only the model itself had written; \
                    a figure without a wanted one is told beside the others.";
        let section = Section::new("Targets").note(&measured).note(note);
        let told = self.reached().into_iter().filter(|sheet| !sheet.rows.is_empty());
        told.fold(section, |section, sheet| section.sheet(&sheet))
    }

    /// Curves of tokens over the longest conversations of a kind.
    fn curves_section(&self, kind: Group) -> Result<Option<Section>, BenchError> {
        let shown = match kind {
            Group::Agent => 3,
            Group::Composite => 2,
            Group::Dialogue | Group::UsersOnly => 1,
        };
        let curves = self.curves.iter().filter(|curve| curve.kind == kind);
        let mut curves: Vec<&Curve> = curves.filter(|curve| calls(curve) > 1).collect();
        // A sort that keeps the order of what is equal: the longest first.
        curves.sort_by_key(|curve| std::cmp::Reverse(calls(curve)));
        curves.truncate(shown);
        if curves.is_empty() {
            return Ok(None);
        }
        let note = "The tokens of each call's prompt, recalls not included, in those of the longest \
                    conversations that have the most calls. Curves that run together hide each \
                    other until they part; their names stand beside their ends.";
        let heading = format!("Tokens of each call: {}", kind.title().to_lowercase());
        let mut section = Section::new(&heading).note(note);
        for curve in curves {
            let series = ordered(&curve.policies).into_iter().map(|(name, tokens)| {
                let points =
                    (1..).zip(tokens).map(|(call, tokens)| (f64::from(call), *tokens as f64));
                series(name, points.collect())
            });
            let told = format!("{}: {} tokens", curve.id, thousands(curve.tokens));
            section = section.caption(&told).lines(&Lines {
                x: Axis::linear("call"),
                y: Axis::log("tokens of the prompt"),
                series: series.collect(),
                marks: Vec::new(),
            })?;
        }
        Ok(Some(section))
    }

    /// Cost against length for one kind, with the lengths from which on the memory pays.
    fn lengths_section(&self, of_kind: &OfKind) -> Result<Section, BenchError> {
        let kind = of_kind.kind;
        let classes = classes(self.conversations.iter().filter(|one| one.group == kind));
        let heading = format!("Cost against length: {}", kind.title().to_lowercase());
        let note = "The cost of a conversation beside that of keeping everything (1), recalls \
                    included: medians over conversations whose lengths lie within a factor of two; \
                    classes of fewer than three are joined to a neighbour. Under 1 is cheaper. \
                    Prices are those given to the command: for reading from the cache, writing into \
                    it, and going past it.";
        let mut section = Section::new(&heading).note(note);
        let names = ordered(&of_kind.policies);
        if classes.len() > 1 {
            let series = names.iter().map(|(name, _)| {
                let points = classes
                    .iter()
                    .filter_map(|class| Some((class.length(), class.beside(name, FULL, cost)?)));
                series(name, points.collect())
            });
            section = section.lines(&Lines {
                x: Axis::log("tokens of the conversation"),
                y: Axis::log("cost, times that of full"),
                series: series.collect(),
                marks: break_even_marks(&classes),
            })?;
        }
        let terms = [STRICT, CACHE_AWARE].into_iter().flat_map(|policy| {
            [("cost", cost as fn(&Figures) -> f64), ("tokens", input)].map(|(what, spent)| {
                let words = where_it_pays(&classes, policy, &names, spent);
                (format!("{policy}, {what}"), words)
            })
        });
        Ok(section.terms(terms).sheet(&by_class(&classes, &names)))
    }

    /// What the memory saves against each rival in each class of lengths.
    fn saved_section(&self, kind: Group) -> Section {
        let heading = format!("Saved by length: {}", kind.title().to_lowercase());
        let note = "Median over the conversations, and in brackets what nine tenths and what one \
                    tenth of them save at least; recalls included. Under 0 the rival is cheaper.";
        let section = Section::new(&heading).note(note);
        [STRICT, CACHE_AWARE].into_iter().fold(section, |section, policy| {
            let tokens = self.saved_sheet("Input tokens", policy, kind, |one| one.input);
            let cost = self.saved_sheet("Cost", policy, kind, |one| one.cost);
            section.sheet(&tokens).sheet(&cost)
        })
    }

    fn saved_sheet(
        &self,
        what: &str,
        policy: &str,
        kind: Group,
        of: fn(&Comparison) -> Spread,
    ) -> Sheet {
        let is_meant = |one: &&Comparison| one.kind == kind && one.policy == policy;
        let chosen: Vec<&Comparison> = self.comparisons.iter().filter(is_meant).collect();
        let rivals: Vec<&&Comparison> = chosen.iter().filter(|one| one.length.is_none()).collect();
        // Every rival was compared at the same lengths.
        let first = rivals.first().map(|one| one.rival);
        let lengths: Vec<&&Comparison> =
            chosen.iter().filter(|one| Some(one.rival) == first).collect();
        let head = |one: &&&Comparison| {
            let length = one.length.map_or("all", Length::as_str);
            format!("{length} ({})", thousands(one.conversations))
        };
        let heads: Vec<String> = lengths.iter().map(head).collect();
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let title = format!("{what} saved by {policy}, by tokens (and conversations)");
        let mut sheet = Sheet::new(&title, &["against"], &heads);
        for Comparison { rival, .. } in rivals {
            let cells = lengths.iter().map(|column| {
                let mut all = chosen.iter();
                let cell = all.find(|one| one.rival == *rival && one.length == column.length);
                cell.map_or_else(String::new, |one| spread(of(one)))
            });
            sheet.row([(*rival).to_owned()].into_iter().chain(cells));
        }
        sheet
    }

    /// The figures with recalls and without, for each kind.
    fn recalls_section(&self) -> Section {
        let note = "A search for what a call needed and its prompt did not hold is a further model \
                    call, and a look at what the search told of one more. They count whether they \
                    bring anything or not. The agent asks exactly when something is missing, which \
                    a model may not do: what is recalled is an upper bound. Own calls are those \
                    that a policy makes for its own ends.";
        let mut section = Section::new("With recalls and without").note(note);
        for of_kind in &self.kinds {
            let numbers = [
                "calls",
                "without",
                "tokens",
                "without",
                "cost",
                "without",
                "searches",
                "looks",
                "own calls",
            ];
            let mut sheet = Sheet::new(of_kind.kind.title(), &["policy"], &numbers);
            for (name, figures) in ordered(&of_kind.policies) {
                let (with, without) = (&figures.usage, &figures.without_recalls);
                let counts = [
                    with.calls,
                    without.calls,
                    with.input_tokens,
                    without.input_tokens,
                    with.cost_units.round() as u64,
                    without.cost_units.round() as u64,
                    figures.recalls,
                    figures.looks,
                    figures.side_calls,
                ];
                sheet.row([name.to_owned()].into_iter().chain(counts.map(thousands)));
            }
            section = section.sheet(&sheet);
        }
        section
    }

    fn policies_section(&self) -> Section {
        let note = "Where the original asks a model for a summary, an extractive summary of the \
                    same size stands in, made by rule; its call is counted as the model's would be. \
                    What a model would write could hold more facts, or fewer.";
        let known = Policy::all();
        let terms = ordered(&self.policies).into_iter().filter_map(|(name, _)| {
            let policy = known.iter().find(|policy| policy.name() == name)?;
            Some((name, policy.about()))
        });
        Section::new("The policies").note(note).terms(terms)
    }
}

/// The policies as pictures and tables show them: the memory's, the others, and last keeping
/// everything.
fn ordered<T>(policies: &ByPolicy<T>) -> Vec<(&'static str, &T)> {
    let mut ordered: Vec<(&'static str, &T)> = policies.iter().collect();
    ordered.sort_by_key(|(name, _)| match *name {
        STRICT | CACHE_AWARE => 0,
        FULL => 2,
        _ => 1,
    });
    ordered
}

fn series(name: &str, points: Vec<(f64, f64)>) -> Series {
    let (strong, dashed) = (matches!(name, STRICT | CACHE_AWARE), name == FULL);
    Series { name: name.to_owned(), points, strong, dashed }
}

/// The calls of a conversation.
fn calls(curve: &Curve) -> usize {
    curve.policies.iter().map(|(_, tokens)| tokens.len()).max().unwrap_or_default()
}

/// Where each policy of the memory becomes cheaper than the rivals that count most.
fn break_even_marks(classes: &[Class<'_>]) -> Vec<Mark> {
    let mut marks: BTreeMap<(u64, &str), Vec<&str>> = BTreeMap::new();
    for policy in [STRICT, CACHE_AWARE] {
        for rival in MARKED {
            if let Some(from) = Cheaper::of(classes, policy, rival, cost).break_even() {
                marks.entry((from, policy)).or_default().push(rival);
            }
        }
    }
    let mark = |((from, policy), rivals): ((u64, &str), Vec<&str>)| Mark {
        x: from as f64,
        label: format!("{policy} under {}: from {}", rivals.join(" and "), kilo(from)),
    };
    marks.into_iter().map(mark).collect()
}

/// At which lengths a policy spends less than each of the others, in words.
fn where_it_pays(
    classes: &[Class<'_>],
    policy: &str,
    names: &[(&'static str, &Figures)],
    spent: fn(&Figures) -> f64,
) -> String {
    let mut told: Vec<(String, Vec<&str>)> = Vec::new();
    for (rival, _) in names.iter().filter(|(name, _)| ![STRICT, CACHE_AWARE].contains(name)) {
        let words = Cheaper::of(classes, policy, rival, spent).words();
        match told.iter_mut().find(|(other, _)| *other == words) {
            Some((_, rivals)) => rivals.push(rival),
            None => told.push((words, vec![rival])),
        }
    }
    let is_always = told.iter().all(|(words, _)| words == EVERY_LENGTH);
    let told = told.iter().map(|(words, rivals)| format!("than {} {words}", rivals.join(", ")));
    let told = told.collect::<Vec<_>>().join("; ");
    let rest = match is_always {
        true => "",
        false => "At other lengths the rival is ahead, or they are even.",
    };
    format!("Over 1 % less, in the median: {told}. {rest}").trim_end().to_owned()
}

/// The medians behind the picture of cost against length.
fn by_class(classes: &[Class<'_>], names: &[(&'static str, &Figures)]) -> Sheet {
    let heads: Vec<String> = classes
        .iter()
        .map(|class| format!("{}-{} ({})", class.from / 1_000, kilo(class.to), class.len()))
        .collect();
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let head = "Cost, times that of full: medians by tokens (and conversations)";
    let mut sheet = Sheet::new(head, &["policy"], &heads);
    for (name, _) in names {
        let cells = classes.iter().map(|class| {
            let share = class.beside(name, FULL, cost);
            share.map_or_else(String::new, |share| format!("{share:.2}"))
        });
        sheet.row([(*name).to_owned()].into_iter().chain(cells));
    }
    sheet
}

/// What became of the facts of one kind; `None` where there are none.
fn facts_section(of_kind: &OfKind) -> Result<Option<Section>, BenchError> {
    let policies = ordered(&of_kind.policies);
    if policies.iter().all(|(_, figures)| figures.facts.facts == 0) {
        return Ok(None);
    }
    let parts = ["visible", "recalled", "reachable", "lost"];
    let bars = |label: &str, is_shown: [f64; 4]| Bars {
        label: label.to_owned(),
        parts: parts.map(str::to_owned).to_vec(),
        bars: policies
            .iter()
            .map(|(name, figures)| Bar {
                name: (*name).to_owned(),
                values: fates(figures)
                    .into_iter()
                    .zip(is_shown)
                    .map(|(count, shown)| figures.facts.share(count) * 100.0 * shown)
                    .collect(),
            })
            .collect(),
        side_by_side: false,
    };
    let note = "A fact is an argument of a recorded call that stood in an earlier message. It is \
                visible in the prompt of that call, recalled by one search or one look at what the \
                search told of, reachable by reading everything that the policy's tools list, or \
                lost.";
    let heading = format!("Facts that were needed later: {}", of_kind.kind.title().to_lowercase());
    let mut section = Section::new(&heading).note(note).note(&told_of_facts(&policies));
    section = section.caption("All facts").bars(&bars("share of all facts, %", [1.0; 4]))?;
    let hidden =
        bars("share of all facts, %: those that the prompt did not hold", [0.0, 1.0, 1.0, 1.0]);
    if hidden.bars.iter().any(|bar| bar.values.iter().any(|value| *value > 0.0)) {
        section = section.caption("The same, without what was visible").bars(&hidden)?;
    }
    Ok(Some(section.sheet(&facts_sheet(&policies))))
}

/// The counts of facts by what became of them.
fn fates(figures: &Figures) -> [u64; 4] {
    let facts = &figures.facts;
    [facts.visible, facts.recalled, facts.reachable, facts.lost]
}

/// How the memory stands beside others, in a few sentences.
fn told_of_facts(policies: &[(&'static str, &Figures)]) -> String {
    let own: Vec<_> =
        policies.iter().filter(|(name, _)| [STRICT, CACHE_AWARE].contains(name)).collect();
    let had =
        |(name, figures): &(&str, &Figures)| format!("{name} {}", percent(figures.facts.had()));
    let listed = |some: Vec<String>| match some.is_empty() {
        true => "none".to_owned(),
        false => some.join(", "),
    };
    let best = own.iter().map(|(_, figures)| figures.facts.had()).fold(0.0, f64::max);
    let ahead = policies.iter().filter(|(_, figures)| figures.facts.had() > best);
    let losers = policies.iter().filter(|(_, figures)| figures.facts.lost > 0);
    let lost = losers.map(|(name, figures)| format!("{name} {}", thousands(figures.facts.lost)));
    format!(
        "Visible or recalled: {}. Others with more: {}. Facts lost for good: {}.",
        listed(own.iter().map(|one| had(one)).collect()),
        listed(ahead.map(had).collect()),
        listed(lost.collect()),
    )
}

fn facts_sheet(policies: &[(&'static str, &Figures)]) -> Sheet {
    let numbers = [
        "facts",
        "visible",
        "recalled",
        "reachable",
        "lost",
        "ceiling",
        "in large parts: facts",
        "lost",
        "model's own words: facts",
        "lost",
    ];
    let head = "Facts; the ceiling is what a search that always found the right place would bring";
    let mut sheet = Sheet::new(head, &["policy"], &numbers);
    for (name, figures) in policies {
        let Figures { facts, payload, own, .. } = figures;
        let [visible, recalled, reachable, lost] = fates(figures);
        let counts = [
            facts.facts,
            visible,
            recalled,
            reachable,
            lost,
            facts.ceiling,
            payload.facts,
            payload.lost,
            own.facts,
            own.lost,
        ];
        sheet.row([(*name).to_owned()].into_iter().chain(counts.map(thousands)));
    }
    sheet
}

/// A spread in hundredths: the median, and in brackets what nine tenths and one tenth save at least.
fn spread(spread: Spread) -> String {
    // A sum with 0 makes 0 of -0.
    let hundredths = |share: f64| (share * 100.0).round() + 0.0;
    let [median, p10, p90] = [spread.median, spread.p10, spread.p90].map(hundredths);
    format!("{median} % ({p10} to {p90})")
}

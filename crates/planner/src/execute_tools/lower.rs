//! A block lowered to a plan.

use super::arguments::{self, Unread};
use super::block::{Block, Call, Group, GroupKind, Item};
use super::{ExecuteTools, places::Places};
use crate::json::DEPTH_MOST;
use crate::{
    Action, Catalog, FailurePolicy, Finding, FindingKind, Findings, Form, Plan, Position, Step,
    StepId, Template,
};
use foldback_tool::ToolSpec;
use std::collections::{BTreeMap, BTreeSet};

/// The most pairs of calls in a block of which one waits for the other: those of two groups of 1,000
/// calls, one after the other. Larger blocks are refused before they take memory, whatever the limits
/// of plans are.
const PAIRS_MOST: usize = 1_000_000;

/// Lowers a block. Step N is the call at index N - 1, in text order.
pub(super) fn lower(text: &str, at: usize, block: Block<'_>, catalog: &Catalog) -> ExecuteTools {
    let range = at..block.end;
    let mut lowering = Lowering {
        at: Places::new(text),
        tools: Tools::new(catalog),
        steps: Vec::new(),
        places: BTreeMap::new(),
        ways: Vec::new(),
        pairs: 0,
        findings: Findings::default(),
    };
    for (at, stray) in &block.strays {
        let message = format!("the text `{}` between tags was ignored", crate::excerpt::of(stray));
        lowering.note(FindingKind::Leniency, *at, message);
    }
    lowering.group(&block.root, &[], &mut Vec::new());
    if lowering.pairs > PAIRS_MOST {
        let message = format!(
            "in more than {PAIRS_MOST} pairs of calls one waits for the other; expected smaller groups"
        );
        lowering.note(FindingKind::OverLimit, at, message);
        // Some of their dependences were left out, so none of them may run.
        let plan = Plan { form: Form::ExecuteTools, steps: Vec::new() };
        let Lowering { findings, places, .. } = lowering;
        return ExecuteTools { plan, findings, places, range };
    }
    if block.root.items.len() > 1 {
        let message = "the block contains several items without <parallel> or <sequential>; they run \
                       one after the other";
        lowering.note(FindingKind::Leniency, at, message.to_owned());
    }
    if lowering.steps.is_empty() {
        let message = "the block contains no calls; expected `<server><tool>..</tool></server>`";
        lowering.note(FindingKind::Syntax, at, message.to_owned());
    }
    lowering.wait_for_references();
    let plan = Plan { form: Form::ExecuteTools, steps: lowering.steps };
    ExecuteTools { plan, findings: lowering.findings, places: lowering.places, range }
}

struct Lowering<'a> {
    at: Places<'a>,
    tools: Tools<'a>,
    steps: Vec<Step>,
    places: BTreeMap<StepId, Position>,
    /// The path down to each step: the kind of each group, and its place in it.
    ways: Vec<Vec<(GroupKind, usize)>>,
    /// The number of pairs of calls in which one waits for the other.
    pairs: usize,
    findings: Findings,
}

impl Lowering<'_> {
    /// Lowers the items of a group that starts when `after` has ended. Returns the steps that end it,
    /// or none if it is empty. An empty group has no effect.
    fn group(
        &mut self,
        group: &Group<'_>,
        after: &[StepId],
        way: &mut Vec<(GroupKind, usize)>,
    ) -> Vec<StepId> {
        let is_parallel = group.kind == GroupKind::Parallel;
        let mut ends: Vec<StepId> = Vec::new();
        for (place, item) in group.items.iter().enumerate() {
            let begin = if is_parallel || ends.is_empty() { after } else { &ends };
            way.push((group.kind, place));
            let last = match item {
                Item::Group(inner) => self.group(inner, begin, way),
                Item::Call(call) => vec![self.call(call, begin, way)],
            };
            way.pop();
            if is_parallel {
                ends.extend(last);
            } else if !last.is_empty() {
                ends = last;
            }
        }
        ends
    }

    fn call(&mut self, call: &Call<'_>, after: &[StepId], way: &[(GroupKind, usize)]) -> StepId {
        let number = u32::try_from(self.steps.len() + 1).unwrap_or(u32::MAX);
        let id = StepId(number);
        let place = self.at.of(call.at);
        self.places.insert(id, place);
        let function = match self.tools.find(call.server, call.tool) {
            Lookup::Tool(tool) => tool.name().to_owned(),
            Lookup::Unknown => call.tool.to_owned(),
            Lookup::OtherServer(tool) => {
                let server = tool.server.clone().unwrap_or_default();
                let message = format!(
                    "the server `{}` has no `{}`; expected `<{server}><{}>`",
                    call.server, call.tool, call.tool
                );
                self.about(id, FindingKind::UnknownFunction, call.at, message);
                tool.name().to_owned()
            }
        };
        let arguments = self.arguments(id, call, &function);
        self.pairs = self.pairs.saturating_add(after.len());
        let is_within = self.pairs <= PAIRS_MOST;
        self.steps.push(Step {
            id,
            action: Action::Call { function, arguments },
            after: if is_within { after.to_vec() } else { Vec::new() },
            on_failure: FailurePolicy::default(),
        });
        self.ways.push(way.to_vec());
        id
    }

    /// Returns the arguments that the body of a call stands for.
    fn arguments(&mut self, id: StepId, call: &Call<'_>, function: &str) -> Template {
        let at = self.at.of(call.at);
        let tool = self.tools.catalog.get(function);
        let mut flaws = Vec::new();
        let arguments = arguments::read(call.body, tool, at, &mut flaws);
        for flaw in flaws {
            let (kind, _, message) = flaw.finding();
            self.about(id, kind, call.at, message);
        }
        arguments.unwrap_or_else(|unread| {
            let (kind, message) = match unread {
                Unread::NoPrimary => (
                    FindingKind::Arguments,
                    format!(
                        "`{function}` has no primary argument for plain text; expected a JSON object"
                    ),
                ),
                Unread::TooDeep => (
                    FindingKind::OverLimit,
                    format!("its arguments are nested deeper than {DEPTH_MOST} levels"),
                ),
            };
            self.about(id, kind, call.at, message);
            Template::Object(Vec::new())
        })
    }

    /// A step waits for the steps that it refers to; if the groups already make it wait, the dependence
    /// is recorded. The others (itself, later steps, neighbours in a `<parallel>`) are errors, which
    /// are found when the plan is checked.
    fn wait_for_references(&mut self) {
        for (place, step) in self.steps.iter_mut().enumerate() {
            let Action::Call { arguments, .. } = &step.action else { continue };
            let mut after: BTreeSet<StepId> = step.after.iter().copied().collect();
            after.extend(arguments.references().iter().map(|reference| reference.step).filter(
                |on| {
                    let before =
                        on.0.checked_sub(1)
                            .and_then(|place| self.ways.get(usize::try_from(place).ok()?));
                    match (before, self.ways.get(place)) {
                        (Some(before), Some(way)) => is_before(before, way),
                        _ => false,
                    }
                },
            ));
            step.after = after.into_iter().collect();
        }
    }

    fn about(&mut self, id: StepId, kind: FindingKind, at: usize, message: String) {
        let message = format!("{}: {message}", Form::ExecuteTools.label(id));
        let place = self.at.of(at);
        self.findings.push(Finding::of_step(kind, id, message).at(place));
    }

    fn note(&mut self, kind: FindingKind, at: usize, message: String) {
        let place = self.at.of(at);
        self.findings.push(Finding::of_plan(kind, message).at(place));
    }
}

/// Returns whether the step at one path ends before the one at another starts: at the point where the
/// paths part, the two are in a sequence, in this order.
fn is_before(one: &[(GroupKind, usize)], other: &[(GroupKind, usize)]) -> bool {
    let parting = one.iter().zip(other).find(|(one, other)| one.1 != other.1);
    parting.is_some_and(|(one, other)| one.0 != GroupKind::Parallel && one.1 < other.1)
}

/// The tools, by the server and name in their tags.
struct Tools<'a> {
    catalog: &'a Catalog,
    by_tag: BTreeMap<&'a str, Vec<&'a ToolSpec>>,
}

enum Lookup<'a> {
    Tool(&'a ToolSpec),
    /// Another server has a tool of this name.
    OtherServer(&'a ToolSpec),
    Unknown,
}

impl<'a> Tools<'a> {
    fn new(catalog: &'a Catalog) -> Self {
        let mut by_tag: BTreeMap<&str, Vec<&ToolSpec>> = BTreeMap::new();
        for tool in catalog.iter() {
            by_tag.entry(tool.name()).or_default().push(tool);
            if let Some(local) = local_name(tool) {
                by_tag.entry(local).or_default().push(tool);
            }
        }
        Self { catalog, by_tag }
    }

    fn find(&self, server: &str, tool: &str) -> Lookup<'a> {
        let named = self.by_tag.get(tool).map(Vec::as_slice).unwrap_or_default();
        let of_server = |tool: &&&ToolSpec| tool.server.as_deref() == Some(server);
        let of_none = |tool: &&&ToolSpec| tool.server.is_none();
        if let Some(tool) = named.iter().find(of_server).or_else(|| named.iter().find(of_none)) {
            return Lookup::Tool(tool);
        }
        named.first().map_or(Lookup::Unknown, |tool| Lookup::OtherServer(tool))
    }
}

/// Returns the name without the server prefix: `search` of `deepsearch_server.search`.
pub(super) fn local_name(tool: &ToolSpec) -> Option<&str> {
    let rest = tool.name().strip_prefix(tool.server.as_deref()?)?;
    ["__", "_", ".", "/", ":", "-"].iter().find_map(|separator| rest.strip_prefix(*separator))
}

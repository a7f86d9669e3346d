//! Checks a plan before anything of it runs, and reports everything at once.

mod arguments;
mod references;

use crate::{
    Action, Catalog, Executed, Finding, FindingKind, Findings, Form, LimitError, Limits, Plan,
    Progress, Quantity, Step, StepId, Template, catalog,
};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

/// A validator that checks plans against the available tools.
///
/// ```
/// use foldback_core::ToolDefinition;
/// use foldback_planner::{
///     Action, Catalog, FailurePolicy, Form, Plan, Step, StepId, Template, Validator,
/// };
/// use foldback_tool::ToolSpec;
///
/// let search = ToolSpec::new(ToolDefinition {
///     name: "search_weather".into(),
///     description: "天气".into(),
///     parameters: r#"{"type": "object", "required": ["city"]}"#.into(),
/// });
/// let catalog: Catalog = [search].into_iter().collect();
/// let call = |id, function: &str, after: &[u32]| Step {
///     id: StepId(id),
///     action: Action::Call { function: function.into(), arguments: Template::Object(vec![]) },
///     after: after.iter().map(|&id| StepId(id)).collect(),
///     on_failure: FailurePolicy::default(),
/// };
/// let steps = vec![call(1, "weather_search", &[]), call(2, "search_weather", &[3])];
/// let mut plan = Plan { form: Form::OnePlan, steps };
/// let findings = Validator::new(&catalog).plan(&mut plan);
/// assert_eq!(
///     findings.to_string(),
///     "- step1: there is no function `weather_search`; there are `search_weather`\n\
///      - step2: the arguments do not fit `search_weather`: the arguments: \"city\" is a required \
///      property\n\
///      - step2: it waits for step3, which is not in the plan\n"
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Validator<'a> {
    catalog: &'a Catalog,
    limits: Limits,
    progress: Option<&'a Progress>,
}

impl<'a> Validator<'a> {
    /// Returns a validator for these tools, with the default limits.
    #[must_use]
    pub fn new(catalog: &'a Catalog) -> Self {
        Self { catalog, limits: Limits::default(), progress: None }
    }

    /// Returns the same validator with other limits.
    #[must_use]
    pub fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Returns the same validator for a plan that continues from the work that was done. Existing steps
    /// may be waited for and referred to.
    #[must_use]
    pub fn going_on_from(self, progress: &'a Progress) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// Returns all errors in a plan, and notes. It must not run if there is an error.
    ///
    /// This also puts the plan in order: steps and dependences ascend, and if arguments refer to a step
    /// that is not waited for, the dependence is added and noted (not in `<execute_tools>`, where the
    /// blocks say what comes first: there it is an error).
    pub fn plan(&self, plan: &mut Plan) -> Findings {
        let mut findings = Findings::default();
        let before = self.progress.map_or(0, Progress::len);
        if let Err(error) = self.limits.check(Quantity::Steps, before + plan.steps.len(), None) {
            findings.push(Finding::of_plan(FindingKind::OverLimit, error.to_string()));
            return findings;
        }
        plan.steps.sort_by_key(|step| step.id);
        for pair in plan.steps.windows(2).filter(|pair| pair[0].id == pair[1].id) {
            let label = plan.form.label(pair[1].id);
            let message = format!("{label}: this number occurs twice; expected each number once");
            findings.push(Finding::of_step(FindingKind::DuplicateStep, pair[1].id, message));
        }
        plan.steps.dedup_by_key(|step| step.id);
        for step in plan.steps.iter().filter(|step| self.earlier(step.id).is_some()) {
            let message = format!("{}: an earlier step has this number", plan.form.label(step.id));
            findings.push(Finding::of_step(FindingKind::DuplicateStep, step.id, message));
        }
        let ids: BTreeSet<StepId> = plan.steps.iter().map(|step| step.id).collect();
        let is_known = |id| ids.contains(&id) || self.earlier(id).is_some();
        for step in &mut plan.steps {
            add_dependences(plan.form, step, is_known, &mut findings);
        }
        let cycles = Cycles::of(plan);
        let scope =
            Scope { validator: self, plan, cycles: Some(&cycles), nearest: RefCell::default() };
        for step in &plan.steps {
            scope.check(step, &mut findings);
        }
        for message in &cycles.messages {
            findings.push(Finding::of_plan(FindingKind::Cycle, message.clone()));
        }
        if plan.form == Form::ExecuteTools && cycles.messages.is_empty() {
            references::check_order(plan, &mut findings);
        }
        self.check_schemas(plan.steps.iter(), &mut findings);
        findings.sort();
        findings
    }

    /// Checks one step of a plan that is still being written; `plan` has the steps before it.
    /// Dependences on steps that have not been written yet are left to [`Schedule::seal`].
    ///
    /// [`Schedule::seal`]: crate::Schedule::seal
    pub fn step(&self, plan: &Plan, step: &mut Step) -> Findings {
        let mut findings = Findings::default();
        let count = self.progress.map_or(0, Progress::len) + plan.steps.len() + 1;
        if let Err(error) = self.limits.check(Quantity::Steps, count, None) {
            findings.push(Finding::of_plan(FindingKind::OverLimit, error.to_string()));
            return findings;
        }
        add_dependences(plan.form, step, |_| true, &mut findings);
        let scope = Scope { validator: self, plan, cycles: None, nearest: RefCell::default() };
        scope.check(step, &mut findings);
        self.check_schemas([&*step], &mut findings);
        findings.sort();
        findings
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn catalog(&self) -> &'a Catalog {
        self.catalog
    }

    /// Returns the step of an earlier plan.
    fn earlier(&self, id: StepId) -> Option<&'a Step> {
        self.progress.and_then(|progress| progress.get(id)).map(|executed| &executed.step)
    }

    /// Returns whether a step of an earlier plan has a result to refer to.
    fn has_value(&self, id: StepId) -> bool {
        self.progress.and_then(|progress| progress.get(id)).is_some_and(Executed::has_value)
    }

    /// Reports once each tool whose schema cannot be used.
    fn check_schemas<'s>(
        &self,
        steps: impl IntoIterator<Item = &'s Step>,
        findings: &mut Findings,
    ) {
        let functions = steps.into_iter().filter_map(|step| match &step.action {
            Action::Call { function, .. } => Some(function.as_str()),
            Action::Anchor { .. } => None,
        });
        for function in functions.collect::<BTreeSet<_>>() {
            let Some(entry) = self.catalog.entry(function) else { continue };
            if let Err(reason) = entry.input() {
                let message = format!("the schema of `{function}` cannot be used: {reason}");
                findings.push(Finding::of_plan(FindingKind::ToolSchema, message));
            }
            if let Some(Err(reason)) = entry.output() {
                let message = format!("the output schema of `{function}` is not used: {reason}");
                findings.push(Finding::of_plan(FindingKind::OutputSchema, message));
            }
        }
    }
}

/// A step and its context.
struct Scope<'a> {
    validator: &'a Validator<'a>,
    plan: &'a Plan,
    /// Without it, more steps may still follow.
    cycles: Option<&'a Cycles>,
    /// The names that unknown ones were probably meant to be, as far as they were looked up.
    nearest: RefCell<FxHashMap<String, Option<&'a str>>>,
}

impl Scope<'_> {
    fn check(&self, step: &Step, findings: &mut Findings) {
        let label = self.plan.form.label(step.id);
        let mut over = Vec::new();
        let limits = &self.validator.limits;
        over.extend(limits.check(Quantity::Dependences, step.after.len(), Some(step.id)).err());
        match &step.action {
            Action::Anchor { task } => {
                over.extend(limits.check(Quantity::ArgumentBytes, task.len(), Some(step.id)).err());
            }
            Action::Call { function, arguments } => {
                let size = arguments.size();
                over.extend(limits.check(Quantity::ArgumentBytes, size.bytes, Some(step.id)).err());
                over.extend(limits.check(Quantity::Depth, size.depth, Some(step.id)).err());
                if over.is_empty() {
                    self.check_call(step, function, arguments, &label, findings);
                } else {
                    self.check_function(step, function, &label, findings);
                }
            }
        }
        findings.extend(over.into_iter().map(|error: LimitError| {
            Finding::of_step(FindingKind::OverLimit, step.id, error.to_string())
        }));
        self.check_dependences(step, &label, findings);
    }

    fn check_call(
        &self,
        step: &Step,
        function: &str,
        arguments: &Template,
        label: &str,
        findings: &mut Findings,
    ) {
        let mut paths = BTreeSet::new();
        for reference in arguments.references() {
            if let Some((kind, reason)) = self.doubt(reference)
                && paths.insert(reference.spelled(self.plan.form.spelling()))
            {
                let reference = reference.spelled(self.plan.form.spelling());
                let message = format!("{label}: `{reference}`: {reason}");
                findings.push(Finding::of_step(kind, step.id, message));
            }
        }
        if self.check_function(step, function, label, findings) {
            for mismatch in self.argument_mismatches(function, arguments) {
                let message = format!("{label}: the arguments do not fit `{function}`: {mismatch}");
                findings.push(Finding::of_step(FindingKind::Arguments, step.id, message));
            }
            for refusal in self.refused_values(function, arguments) {
                let message = format!("{label}: {refusal}");
                findings.push(Finding::of_step(FindingKind::Arguments, step.id, message));
            }
        }
    }

    fn check_function(
        &self,
        step: &Step,
        function: &str,
        label: &str,
        findings: &mut Findings,
    ) -> bool {
        let catalog = self.validator.catalog;
        if catalog.get(function).is_some() {
            return true;
        }
        // Plans often call one function in many steps.
        let mut known = self.nearest.borrow_mut();
        let nearest =
            *known.entry(function.to_owned()).or_insert_with(|| catalog.nearest(function));
        let mut message = format!("{label}: {}", catalog::unknown_function(function, nearest));
        let names: Vec<&str> = catalog.iter().take(12).map(|tool| tool.name()).collect();
        if nearest.is_none() && !names.is_empty() {
            message += &format!("; there are `{}`", names.join("`, `"));
        }
        findings.push(Finding::of_step(FindingKind::UnknownFunction, step.id, message));
        false
    }

    /// Checks the steps that it waits for or refers to: itself, missing ones, later ones, ones without
    /// a result.
    fn check_dependences(&self, step: &Step, label: &str, findings: &mut Findings) {
        let form = self.plan.form;
        let mut named: BTreeMap<StepId, &str> =
            step.after.iter().map(|&id| (id, "waits for")).collect();
        if let Action::Call { arguments, .. } = &step.action {
            let refers = arguments.references().into_iter();
            named.extend(refers.map(|reference| (reference.step, "refers to the result of")));
        }
        for (&on, verb) in &named {
            let other = form.label(on);
            let mut found = |kind, message: String| {
                findings.push(Finding::of_step(kind, step.id, format!("{label}: {message}")));
            };
            if on == step.id {
                let what = if *verb == "waits for" { "itself" } else { "its own result" };
                let verb = if *verb == "waits for" { verb } else { "refers to" };
                found(FindingKind::SelfDependence, format!("it {verb} {what}"));
                continue;
            }
            let in_plan = self.plan.step(on);
            let Some(target) = in_plan.or_else(|| self.validator.earlier(on)) else {
                if self.cycles.is_some() {
                    let message = format!("it {verb} {other}, which is not in the plan");
                    found(FindingKind::UnknownStep, message);
                } else if on > step.id {
                    found(FindingKind::ForwardDependence, forward(verb, &other));
                }
                continue;
            };
            let in_cycle = self.cycles.is_some_and(|cycles| cycles.hold(step.id, on));
            if on > step.id && in_plan.is_some() && !in_cycle {
                found(FindingKind::ForwardDependence, forward(verb, &other));
            } else if *verb != "waits for" {
                let reason = if matches!(target.action, Action::Anchor { .. }) {
                    "an anchor has no result; what follows from it belongs in the plan that is made \
                     then"
                } else if in_plan.is_none() && !self.validator.has_value(on) {
                    "it has no result"
                } else {
                    continue;
                };
                found(FindingKind::NoResult, format!("it {verb} {other}; {reason}"));
            }
        }
    }
}

fn forward(verb: &str, other: &str) -> String {
    format!("it {verb} {other}, which comes later; expected a step with a lower number")
}

/// Sorts dependences, and adds those that the arguments imply.
fn add_dependences(
    form: Form,
    step: &mut Step,
    is_known: impl Fn(StepId) -> bool,
    findings: &mut Findings,
) {
    step.after.sort_unstable();
    step.after.dedup();
    let (Action::Call { arguments, .. }, true) = (&step.action, form != Form::ExecuteTools) else {
        return;
    };
    let implied: BTreeSet<StepId> =
        arguments.references().iter().map(|reference| reference.step).collect();
    for on in implied {
        let Err(place) = step.after.binary_search(&on) else { continue };
        if on == step.id || !is_known(on) {
            continue;
        }
        step.after.insert(place, on);
        let message = format!(
            "{}: it refers to the result of {}, so it waits for it; the dependence was added",
            form.label(step.id),
            form.label(on)
        );
        findings.push(Finding::of_step(FindingKind::AddedDependence, step.id, message));
    }
}

/// The steps that wait for each other.
struct Cycles {
    messages: Vec<String>,
    /// The group of each step in a cycle.
    groups: BTreeMap<StepId, usize>,
}

impl Cycles {
    fn of(plan: &Plan) -> Self {
        // A step that waits for itself is reported separately.
        let graph = plan.graph().without_self_dependences();
        let mut groups = BTreeMap::new();
        for (number, group) in graph.groups().into_iter().enumerate() {
            groups.extend(group.into_iter().map(|id| (id, number)));
        }
        let messages = graph.cycles().into_iter().map(|cycle| {
            let steps = cycle.steps.iter().chain(cycle.steps.first());
            let names: Vec<String> = steps.map(|&id| plan.form.label(id)).collect();
            format!("these steps wait for each other and would never start: {}", names.join(" -> "))
        });
        Self { messages: messages.collect(), groups }
    }

    /// Returns whether a dependence is part of a cycle.
    fn hold(&self, step: StepId, on: StepId) -> bool {
        let group = self.groups.get(&step);
        group.is_some() && group == self.groups.get(&on)
    }
}

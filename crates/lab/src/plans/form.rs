//! Plans as models write them, and back.

use foldback_planner::{
    Catalog, Finding, FindingKind, Findings, Form, Intent, Plan, StepId, Validator,
    parse_execute_tools, parse_one_plan, write_execute_tools, write_one_plan,
};
use foldback_tool::Toolbox;

/// A plan written in a form.
pub(crate) struct Written {
    /// The text.
    pub text: String,
    /// The step that each call of the text was, in the order of the calls' numbers.
    pub order: Vec<StepId>,
}

/// Why a plan must not run.
pub(crate) enum Refusal {
    /// The text is not a plan.
    Unreadable(String),
    /// The plan has errors.
    Found(Findings),
}

impl Refusal {
    /// Returns the errors, in sentences.
    pub(crate) fn sentences(&self) -> String {
        match self {
            Self::Unreadable(what) => what.clone(),
            Self::Found(findings) => {
                findings.errors().map(Finding::to_string).collect::<Vec<_>>().join("; ")
            }
        }
    }

    /// Returns whether an error of one of these kinds was found.
    pub(crate) fn names(&self, kinds: &[FindingKind]) -> bool {
        match self {
            Self::Unreadable(_) => false,
            Self::Found(findings) => findings.errors().any(|one| kinds.contains(&one.kind)),
        }
    }
}

/// Writes a plan; `None` if the form cannot express it.
pub(crate) fn written(plan: &Plan, form: Form, toolbox: &Toolbox) -> Option<Written> {
    let ids = || plan.steps.iter().map(|step| step.id).collect();
    match form {
        Form::OnePlan => Some(Written { text: write_one_plan(plan).ok()?, order: ids() }),
        Form::ExecuteTools => {
            let expressed = write_execute_tools(plan, &catalog(toolbox)).ok()?;
            Some(Written { text: expressed.text, order: expressed.order })
        }
        Form::Native => None,
    }
}

/// Returns the tools, as plans see them.
fn catalog(toolbox: &Toolbox) -> Catalog {
    toolbox.specs().cloned().collect()
}

/// Parses a plan as a model wrote it, and checks it against the tools.
///
/// # Errors
/// When the plan must not run.
pub(crate) fn checked(text: &str, form: Form, toolbox: &Toolbox) -> Result<Plan, Refusal> {
    let unreadable = |error: &dyn std::error::Error| Refusal::Unreadable(error.to_string());
    let (mut plan, mut findings) = match form {
        Form::ExecuteTools => {
            let read = parse_execute_tools(text, &catalog(toolbox)).map_err(|e| unreadable(&e))?;
            (read.plan, read.findings)
        }
        Form::OnePlan | Form::Native => {
            let read = parse_one_plan(text).map_err(|error| unreadable(&error))?;
            match read.intent {
                Intent::Plan(plan) => (plan, read.findings),
                Intent::React { reason } => return Err(Refusal::Unreadable(reason)),
            }
        }
    };
    findings.extend(Validator::new(&catalog(toolbox)).plan(&mut plan));
    if findings.has_errors() { Err(Refusal::Found(findings)) } else { Ok(plan) }
}

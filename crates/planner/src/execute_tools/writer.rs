//! Writes a plan as `<execute_tools>`, if groups can express its dependences.

use super::block::is_name;
use super::nesting::{Nesting, Tree};
use super::{arguments, lower};
use crate::{
    Action, Catalog, FailurePolicy, Piece, Plan, Reference, Spelling, Step, StepId, Template,
    WriteError,
};
use foldback_tool::ToolSpec;
use std::collections::BTreeMap;

/// A plan as `<execute_tools>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expressed {
    /// The block.
    pub text: String,
    /// The step that each call was, by call index.
    pub order: Vec<StepId>,
}

/// The server tag of a tool that belongs to no server.
const NO_SERVER: &str = "tools";

/// Writes a plan as `<execute_tools>`. Read back, its calls wait for each other just as the steps did;
/// only redundant dependences may be missing.
///
/// # Errors
/// When the plan is not a nesting of sequences and parallel groups, contains an anchor or a failure
/// policy, or has arguments that no body can express.
pub fn write_execute_tools(plan: &Plan, catalog: &Catalog) -> Result<Expressed, WriteError> {
    let mut nesting = Nesting::of(plan);
    let all: Vec<usize> = (0..plan.steps.len()).collect();
    let tree = nesting.tree(all, 0).map_err(|place| WriteError::Inexpressible {
        step: plan.steps.get(place).map_or(StepId(0), |step| step.id),
        form: FORM,
        what: "its dependences: the plan is not a nesting of <parallel> and <sequential>",
    })?;
    let mut leaves = Vec::new();
    tree.leaves(&mut leaves);
    let order: Vec<StepId> =
        leaves.iter().filter_map(|place| plan.steps.get(*place)).map(|step| step.id).collect();
    let numbers: BTreeMap<StepId, StepId> = order.iter().copied().zip((1..).map(StepId)).collect();
    let mut writer = Writer { plan, catalog, numbers, text: String::from("<execute_tools>\n") };
    writer.tree(&tree, 1)?;
    writer.text.push_str("</execute_tools>");
    Ok(Expressed { text: writer.text, order })
}

const FORM: &str = "<execute_tools>";

struct Writer<'a> {
    plan: &'a Plan,
    catalog: &'a Catalog,
    /// The new numbers of the steps.
    numbers: BTreeMap<StepId, StepId>,
    text: String,
}

impl Writer<'_> {
    fn tree(&mut self, tree: &Tree, indent: usize) -> Result<(), WriteError> {
        let (tag, items) = match tree {
            Tree::Leaf(place) => {
                return match self.plan.steps.get(*place) {
                    Some(step) => self.call(step, indent),
                    None => Ok(()),
                };
            }
            Tree::Parallel(items) => ("parallel", items),
            Tree::Sequential(items) => ("sequential", items),
        };
        let space = "    ".repeat(indent);
        self.text.push_str(&format!("{space}<{tag}>\n"));
        items.iter().try_for_each(|item| self.tree(item, indent + 1))?;
        self.text.push_str(&format!("{space}</{tag}>\n"));
        Ok(())
    }

    fn call(&mut self, step: &Step, indent: usize) -> Result<(), WriteError> {
        let cannot = |what| WriteError::Inexpressible { step: step.id, form: FORM, what };
        let Action::Call { function, arguments } = &step.action else {
            return Err(cannot("an anchor"));
        };
        if step.on_failure != FailurePolicy::default() {
            return Err(cannot("a failure policy"));
        }
        let tool = self.catalog.get(function);
        let (server, name) = tags(function, tool);
        if ![server, name].iter().all(|tag| is_tag(tag)) {
            return Err(cannot("a name that is not a valid tag"));
        }
        let arguments = self.renumber(arguments);
        if let Some(text) = arguments.misread(Spelling::ExecuteTools) {
            return Err(WriteError::LooksLikeReference { step: step.id, text });
        }
        let body = arguments::write(&arguments, tool).ok_or_else(|| cannot("these arguments"))?;
        let space = "    ".repeat(indent);
        self.text.push_str(&format!("{space}<{server}><{name}>{body}</{name}></{server}>\n"));
        Ok(())
    }

    fn renumber(&self, template: &Template) -> Template {
        let renumbered = |reference: &Reference| Reference {
            step: self.numbers.get(&reference.step).copied().unwrap_or(reference.step),
            path: reference.path.clone(),
        };
        match template {
            Template::Literal(_) | Template::Text(_) => template.clone(),
            Template::Whole(reference) => Template::Whole(renumbered(reference)),
            Template::Mixed(pieces) => Template::Mixed(
                pieces
                    .iter()
                    .map(|piece| match piece {
                        Piece::Text(text) => Piece::Text(text.clone()),
                        Piece::Reference(reference) => Piece::Reference(renumbered(reference)),
                    })
                    .collect(),
            ),
            Template::Array(values) => {
                Template::Array(values.iter().map(|value| self.renumber(value)).collect())
            }
            Template::Object(members) => Template::Object(
                members.iter().map(|(key, value)| (key.clone(), self.renumber(value))).collect(),
            ),
        }
    }
}

/// Returns the tags of a tool.
fn tags<'a>(function: &'a str, tool: Option<&'a ToolSpec>) -> (&'a str, &'a str) {
    let server = tool.and_then(|tool| tool.server.as_deref()).unwrap_or(NO_SERVER);
    let name = tool.and_then(lower::local_name).unwrap_or(function);
    (server, name)
}

fn is_tag(name: &str) -> bool {
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(is_name)
        && !matches!(name, "execute_tools" | "parallel" | "sequential")
}

//! A set of plans, one of which is active, and the commands that change them.

use super::command::{PlanCommand, PlanError};
use super::text_plan::{StepStatus, TextPlan};
use std::fmt::Write;

/// A set of plans, one of which may be active.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plans {
    /// The plans, in the order in which they were made.
    plans: Vec<TextPlan>,
    active: Option<String>,
}

impl Plans {
    /// Returns the plan with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&TextPlan> {
        self.plans.iter().find(|plan| plan.id == id)
    }

    /// Returns the active plan, which commands without an id refer to.
    #[must_use]
    pub fn active(&self) -> Option<&TextPlan> {
        self.get(self.active.as_deref()?)
    }

    /// Returns these plans with another before them, which is active if none of them is.
    pub(super) fn beside(self, plan: &TextPlan) -> Self {
        let active = self.active.or_else(|| Some(plan.id.clone()));
        let plans = [plan.clone()].into_iter().chain(self.plans);
        Self { plans: plans.collect(), active }
    }

    /// Carries out a command, and returns the answer for its caller.
    ///
    /// ```
    /// use foldback_flow::{PlanCommand, Plans};
    ///
    /// let mut plans = Plans::default();
    /// let create = r#"{"command": "create", "plan_id": "p", "title": "T", "steps": ["一", "二"]}"#;
    /// plans.apply(&PlanCommand::from_json(create)?)?;
    /// let mark = r#"{"command": "mark_step", "step_index": 0, "step_status": "completed"}"#;
    /// let told = plans.apply(&PlanCommand::from_json(mark)?)?;
    /// assert!(told.contains("0. [✓] 一\n1. [ ] 二\n"), "{told}");
    /// # Ok::<(), foldback_flow::PlanError>(())
    /// ```
    ///
    /// # Errors
    /// When part of the command is missing or wrong; then nothing changes.
    pub fn apply(&mut self, command: &PlanCommand) -> Result<String, PlanError> {
        match command.command.as_str() {
            "create" => self.create(command),
            "update" => self.update(command),
            "list" => Ok(self.list()),
            "get" => Ok(self.named_or_active(command)?.to_string()),
            "set_active" => self.set_active(command),
            "mark_step" => self.mark_step(command),
            "delete" => self.delete(command),
            other => Err(PlanError::Command(other.to_owned())),
        }
    }

    fn create(&mut self, command: &PlanCommand) -> Result<String, PlanError> {
        let required = |parameter| PlanError::Required { parameter, command: "create" };
        let id = command.plan().ok_or_else(|| required("plan_id"))?;
        if self.get(id).is_some() {
            return Err(PlanError::Exists(id.to_owned()));
        }
        let title = command.title.as_deref().filter(|title| !title.is_empty());
        let title = title.ok_or_else(|| required("title"))?;
        let steps = command.texts().ok().flatten().ok_or(PlanError::NoSteps)?;
        let plan = TextPlan::new(id, title, steps);
        let told = format!("Plan created successfully with ID: {id}\n\n{plan}");
        self.plans.push(plan);
        self.active = Some(id.to_owned());
        Ok(told)
    }

    fn update(&mut self, command: &PlanCommand) -> Result<String, PlanError> {
        let steps = command.texts();
        let plan = self.named(command, "update")?;
        let steps = steps?;
        if let Some(title) = command.title.as_deref().filter(|title| !title.is_empty()) {
            title.clone_into(&mut plan.title);
        }
        if let Some(steps) = steps {
            plan.replace_steps(steps);
        }
        Ok(format!("Plan updated successfully: {}\n\n{plan}", plan.id))
    }

    fn list(&self) -> String {
        if self.plans.is_empty() {
            return "No plans available. Create a plan with the 'create' command.".to_owned();
        }
        let mut text = "Available plans:\n".to_owned();
        for plan in &self.plans {
            let TextPlan { id, title, steps } = plan;
            let active = if self.active.as_ref() == Some(id) { " (active)" } else { "" };
            let (done, all) = (plan.count(StepStatus::Completed), steps.len());
            let _ = writeln!(text, "• {id}{active}: {title} - {done}/{all} steps completed");
        }
        text
    }

    fn set_active(&mut self, command: &PlanCommand) -> Result<String, PlanError> {
        let plan = self.named(command, "set_active")?;
        let (id, told) = (plan.id.clone(), plan.to_string());
        self.active = Some(id.clone());
        Ok(format!("Plan '{id}' is now the active plan.\n\n{told}"))
    }

    fn mark_step(&mut self, command: &PlanCommand) -> Result<String, PlanError> {
        let plan = self.named_or_active(command)?;
        let required = PlanError::Required { parameter: "step_index", command: "mark_step" };
        let index = command.step_index.ok_or(required)?;
        let last = plan.steps.len().saturating_sub(1);
        let step = usize::try_from(index).ok().and_then(|at| plan.steps.get_mut(at));
        let step = step.ok_or(PlanError::Index { index, last })?;
        let status = match command.step_status.as_deref() {
            None | Some("") => None,
            Some(name) => {
                let status = StepStatus::from_name(name);
                Some(status.ok_or_else(|| PlanError::Status(name.to_owned()))?)
            }
        };
        step.status = status.unwrap_or(step.status);
        if let Some(notes) = command.step_notes.as_deref().filter(|notes| !notes.is_empty()) {
            notes.clone_into(&mut step.notes);
        }
        Ok(format!("Step {index} updated in plan '{}'.\n\n{plan}", plan.id))
    }

    fn delete(&mut self, command: &PlanCommand) -> Result<String, PlanError> {
        let id = self.named(command, "delete")?.id.clone();
        self.plans.retain(|plan| plan.id != id);
        self.active.take_if(|active| *active == id);
        Ok(format!("Plan '{id}' has been deleted."))
    }

    /// Returns the plan that a command has to name.
    fn named(
        &mut self,
        command: &PlanCommand,
        name: &'static str,
    ) -> Result<&mut TextPlan, PlanError> {
        let required = PlanError::Required { parameter: "plan_id", command: name };
        self.find(command.plan().ok_or(required)?)
    }

    /// Returns the plan that a command names, or the active one if it names none.
    fn named_or_active(&mut self, command: &PlanCommand) -> Result<&mut TextPlan, PlanError> {
        let id = command.plan().or(self.active.as_deref()).ok_or(PlanError::NoActive)?.to_owned();
        self.find(&id)
    }

    fn find(&mut self, id: &str) -> Result<&mut TextPlan, PlanError> {
        let found = self.plans.iter_mut().find(|plan| plan.id == id);
        found.ok_or_else(|| PlanError::Unknown(id.to_owned()))
    }
}

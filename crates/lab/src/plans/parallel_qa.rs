//! ParallelQA gives a question and its number of branches, but no plan. The shape of a plan is derived
//! from that: that many searches in parallel, and one calculation that waits for all of them.

use super::gold::{GoldPlan, PlanSet};
use foldback_planner::{Piece, Reference, StepId, Template};
use serde::Deserialize;

/// A line of the data set.
#[derive(Deserialize)]
pub(super) struct Line {
    id: String,
    task: String,
    parallel_branches: Option<u32>,
}

/// More branches than this are taken for a mistake in the file.
const BRANCHES_MOST: u32 = 1_000;

impl Line {
    /// Returns the plan; `None` if the number of branches is not given.
    pub(super) fn plan(self) -> Result<Option<GoldPlan>, String> {
        let Some(branches) = self.parallel_branches else { return Ok(None) };
        if !(1..=BRANCHES_MOST).contains(&branches) {
            return Err(format!(
                "{}: parallel_branches is {branches}; expected 1 to {BRANCHES_MOST}",
                self.id
            ));
        }
        let text = |text: String| Template::Text(text);
        let search = |branch: u32| {
            let query = text(format!("branch {branch} of: {}", self.task));
            let arguments = Template::Object(vec![("query".to_owned(), query)]);
            ("search".to_owned(), arguments, Vec::new())
        };
        let mut pieces = vec![Piece::Text(format!("{} Given: ", self.task))];
        for branch in 1..=branches {
            if branch > 1 {
                pieces.push(Piece::Text("; ".to_owned()));
            }
            let step = StepId(branch);
            pieces.push(Piece::Reference(Reference { step, path: Vec::new() }));
        }
        let join = Template::Object(vec![("question".to_owned(), Template::Mixed(pieces))]);
        let calls = (1..=branches).map(search);
        let calls = calls.chain([("calculate".to_owned(), join, Vec::new())]).collect();
        Ok(Some(GoldPlan::new(self.id, PlanSet::ParallelQa, self.task, calls)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(branches: Option<i64>) -> Result<Option<GoldPlan>, String> {
        let line = json!({ "id": "q", "task": "哪个更大？", "parallel_branches": branches });
        serde_json::from_value::<Line>(line).unwrap().plan()
    }

    #[test]
    fn branches_stand_beside_each_other_and_are_joined() {
        let plan = line(Some(3)).unwrap().unwrap();
        assert_eq!(plan.waits(), [vec![], vec![], vec![], vec![0, 1, 2]]);
        assert_eq!(line(None), Ok(None));
        assert!(line(Some(0)).unwrap_err().contains("expected 1 to 1000"));
    }
}

//! The tables of plans.

use super::MODEL_TIMES;
use super::dag::DagKind;
use super::result::{Overhead, PeerRow, Plans, SetFigures};
use foldback_bench::Sheet;
use foldback_core::thousands;

impl Plans {
    /// Returns the tables.
    #[must_use]
    pub fn sheets(&self) -> Vec<Sheet> {
        let sheets = [
            self.makespan_sheet(),
            self.speedup_sheet(),
            self.model_sheet(),
            self.tokens_sheet(),
            self.forms_sheet(),
            self.overhead_sheet(),
            self.streaming_sheet(),
            self.mutation_sheet(),
            self.placeholder_sheet(),
            self.peer_sheet(),
            self.trouble_sheet(),
        ];
        sheets.into_iter().filter(|sheet| !sheet.rows.is_empty()).collect()
    }

    /// Returns one row for each plan.
    #[must_use]
    pub fn sheet_of_each(&self) -> Sheet {
        let mut numbers: Vec<String> = [
            "steps",
            "levels",
            "critical_path_ms",
            "serial_ms",
            "makespan_ms",
            "wrong_arguments",
            "failed_steps",
            "llm_calls_react",
            "llm_calls_one_plan",
            "tokens_react",
            "tokens_one_plan",
        ]
        .map(str::to_owned)
        .to_vec();
        for way in ["react", "one_plan"] {
            numbers.extend(MODEL_TIMES.map(|l| format!("{way}_at_{l}")));
        }
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let mut sheet = Sheet::new("Plans", &["set", "id"], &numbers);
        for plan in &self.each {
            let mut row = vec![
                plan.set.as_str().to_owned(),
                plan.id.clone(),
                plan.steps.to_string(),
                plan.levels.to_string(),
                format!("{:.3}", plan.critical_path_ms),
                format!("{:.3}", plan.serial_ms),
                format!("{:.3}", plan.makespan_ms),
                plan.forms.wrong_arguments.to_string(),
                plan.forms.failed_steps.to_string(),
                plan.react.llm_calls.to_string(),
                plan.one_plan.llm_calls.to_string(),
                plan.react.tokens.to_string(),
                plan.one_plan.tokens.to_string(),
            ];
            for way in [&plan.react, &plan.one_plan] {
                let time =
                    |at| way.times.get(at).map_or_else(String::new, |time| format!("{time:.3}"));
                row.extend((0..MODEL_TIMES.len()).map(time));
            }
            sheet.row(row);
        }
        sheet
    }

    fn makespan_sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "What schedules waste: makespan over critical path, on the paused clock",
            &["set"],
            &["plans", "steps", "critical paths", "steps/path", "mean", "worst"],
        );
        for set in &self.sets {
            sheet.row([
                set.set.as_str().to_owned(),
                count(set.totals.plans),
                count(set.totals.steps),
                count(set.closed_form.critical_path),
                format!("{:.2}", set.width),
                format!("{:.4}", set.makespan_mean),
                format!("{:.4}", set.totals.makespan_over_critical_path),
            ]);
        }
        sheet
    }

    fn speedup_sheet(&self) -> Sheet {
        let columns = MODEL_TIMES.map(|l| format!("l = {l}"));
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        let title = "Speed-up of one plan over working step by step, if a model \
                     call takes l times as long as a tool's: run / closed form";
        let mut sheet = Sheet::new(title, &["set"], &columns);
        for set in &self.sets {
            let cells =
                set.times.iter().map(|at| format!("{:.2} / {:.2}", at.speedup, at.closed_form));
            sheet.row([set.set.as_str().to_owned()].into_iter().chain(cells));
        }
        sheet
    }

    fn model_sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "What the model is asked: step by step, one plan, and the ratio of the two",
            &["set"],
            &["calls: react", "one plan", "ratio", "tokens: react", "one plan", "ratio"],
        );
        for SetFigures { set, totals, .. } in &self.sets {
            let ratio = |one: f64, other: f64| format!("{:.2}", one / other.max(1.0));
            sheet.row([
                set.as_str().to_owned(),
                count(totals.llm_calls_react),
                count(totals.llm_calls_one_plan),
                ratio(totals.llm_calls_react as f64, totals.llm_calls_one_plan as f64),
                thousands(totals.tokens_react),
                thousands(totals.tokens_one_plan),
                ratio(totals.tokens_react as f64, totals.tokens_one_plan as f64),
            ]);
        }
        sheet
    }

    fn tokens_sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "Mean tokens of a task, by its number of calls",
            &["calls"],
            &["plans", "react", "one plan", "ratio"],
        );
        for row in &self.tokens_by_calls {
            sheet.row([
                row.calls.to_string(),
                count(row.plans),
                thousands(row.react as u64),
                thousands(row.one_plan as u64),
                format!("{:.2}", row.react / row.one_plan.max(1.0)),
            ]);
        }
        sheet
    }

    fn forms_sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "Plans written, read back and run, form by form",
            &["set"],
            &["OnePlan", "execute_tools", "only OnePlan", "wrong arguments", "failed steps"],
        );
        for SetFigures { set, forms, .. } in &self.sets {
            let cells = [
                forms.one_plan,
                forms.execute_tools,
                forms.only_one_plan,
                forms.wrong_arguments,
                forms.failed_steps,
            ];
            sheet.row([set.as_str().to_owned()].into_iter().chain(cells.map(count)));
        }
        sheet
    }

    fn overhead_sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "Overhead of running, without the tools, in microseconds of wall-clock time",
            &["plan"],
            &["steps", "levels", "median", "best", "per call", "per level"],
        );
        for row in &self.overhead {
            let Overhead { name, steps, levels, median_us, best_us } = row;
            sheet.row([
                name.clone(),
                count(*steps),
                count(*levels),
                format!("{median_us:.0}"),
                format!("{best_us:.0}"),
                format!("{:.1}", row.per_call_us()),
                format!("{:.1}", row.per_level_us()),
            ]);
        }
        sheet
    }

    fn mutation_sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "Deliberate mistakes in plans",
            &["mistake"],
            &["tried", "refused", "by name", "error", "other plan", "hung"],
        );
        for row in &self.mutations {
            let cells = [row.tried, row.refused, row.named, row.failed, row.other_plans, row.hangs];
            sheet.row([row.mutation.as_str().to_owned()].into_iter().chain(cells.map(count)));
        }
        sheet
    }

    fn streaming_sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "Delay of a step's start, in milliseconds, while its plan was being written",
            &["clock"],
            &["steps", "median", "worst"],
        );
        let told = self.streaming;
        let paused = format!("{:.3}", told.paused_worst_ms);
        sheet.row(["paused".to_owned(), count(told.steps), String::new(), paused]);
        let wall = [told.wall_median_ms, told.wall_worst_ms].map(|ms| format!("{ms:.3}"));
        sheet.row(["wall".to_owned(), count(told.steps)].into_iter().chain(wall));
        sheet
    }

    fn placeholder_sheet(&self) -> Sheet {
        let mut sheet = Sheet::new(
            "Plans whose tools give answers that look like references, in each form",
            &["answers"],
            &["runs", "inert"],
        );
        let cells = [self.placeholders.tried, self.placeholders.inert].map(count);
        sheet.row(["placeholders".to_owned()].into_iter().chain(cells));
        sheet
    }

    fn peer_sheet(&self) -> Sheet {
        let Some(peer) = &self.peer else { return Sheet::default() };
        let mut sheet = Sheet::new(
            &format!("The same plans under {}, in milliseconds", peer.name),
            &["plan"],
            &["critical path", "foldback", &peer.name],
        );
        for row in peer.rows.iter().filter(|row| row.kind == DagKind::Overhead) {
            let peer_ms = row.peer_ms.map_or_else(|| NEVER.to_owned(), |ms| format!("{ms:.2}"));
            let own = [row.critical_path_ms, row.own_ms].map(|ms| format!("{ms:.2}"));
            sheet.row([row.name.clone()].into_iter().chain(own).chain([peer_ms]));
        }
        let recorded = peer.recorded();
        if !recorded.is_empty() {
            let sum = |of: fn(&(&PeerRow, f64)) -> f64| {
                format!("{:.2}", recorded.iter().map(of).sum::<f64>())
            };
            sheet.row([
                format!("{} recorded plans", recorded.len()),
                sum(|(row, _)| row.critical_path_ms),
                sum(|(row, _)| row.own_ms),
                sum(|(_, peer_ms)| *peer_ms),
            ]);
        }
        sheet
    }

    fn trouble_sheet(&self) -> Sheet {
        let Some(peer) = &self.peer else { return Sheet::default() };
        let mut sheet =
            Sheet::new("Where things go wrong", &["plan", "under", "what happened"], &["ms"]);
        let is_trouble = |kind| !matches!(kind, DagKind::Overhead | DagKind::Recorded);
        for row in peer.rows.iter().filter(|row| is_trouble(row.kind)) {
            let own = format!("{:.2}", row.own_ms);
            let peer_ms = row.peer_ms.map_or_else(|| NEVER.to_owned(), |ms| format!("{ms:.2}"));
            sheet.row([&row.name, "foldback", &row.own_says, &own]);
            sheet.row(["", &peer.name, &row.peer_says, &peer_ms]);
        }
        sheet
    }
}

/// Shown in place of a time if a run did not end.
const NEVER: &str = "no end";

fn count(number: usize) -> String {
    thousands(number as u64)
}

//! The page of plans: speed-up against the model's time, what schedules waste, overhead, and the
//! model's calls and tokens.

use super::closed_form::ClosedForm;
use super::dag::DagKind;
use super::gold::PlanSet;
use super::result::{PlanFigures, Plans, SetFigures, TokensByCalls};
use foldback_bench::BenchError;
use foldback_bench::report::{Axis, Bar, Bars, Lines, Page, Section, Series};

/// The times of a model call at which the closed form is drawn, in units of a tool's.
const DRAWN: [f64; 9] = [0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0];

impl Plans {
    /// Returns the results as a page.
    ///
    /// # Errors
    /// When a picture cannot be drawn.
    pub fn page(&self) -> Result<Page, BenchError> {
        let lead = "Whether a schedule wastes time, what one plan for a whole task saves compared with \
                    working step by step, and whether mistakes in plans are detected before anything runs.";
        let mut page = Page::new("Plans", lead);
        page.section(self.speedup_section()?);
        page.section(self.makespan_section()?);
        page.section(self.overhead_section()?);
        page.section(self.model_section()?);
        page.section(self.mistakes_section());
        let tables = self.sheets().iter().fold(Section::new("Figures"), Section::sheet);
        page.section(tables);
        Ok(page)
    }

    fn speedup_section(&self) -> Result<Section, BenchError> {
        let note = "Both ways are run with scripted models that know the right calls: the agent's loop, \
                    which asks before each call, and one plan, run at once, with one question for the \
                    answer. Every tool takes one unit of time, on a clock that stops while \
                    something works. Dashed: what follows from the numbers of calls and the critical paths \
                    alone, (n(l+1) + kl) / (2kl + c) for k plans, n calls, and c calls on critical paths.";
        let mut series = Vec::new();
        for SetFigures { set, closed_form, times, .. } in self.recorded_sets() {
            series.push(Series {
                name: set.as_str().to_owned(),
                points: times.iter().map(|at| (at.model_time, at.speedup)).collect(),
                strong: true,
                dashed: false,
            });
            series.push(Series {
                name: format!("{}, closed form", set.as_str()),
                points: DRAWN.map(|l| (l, ClosedForm::speedup(*closed_form, l))).to_vec(),
                strong: false,
                dashed: true,
            });
        }
        let x = Axis::log("time of a model call, in units of a tool's");
        let y = Axis::linear("speed-up over working step by step");
        let lines = Lines { x, y, series, marks: Vec::new() };
        Section::new("Speed-up of one plan").note(note).lines(&lines)
    }

    fn makespan_section(&self) -> Result<Section, BenchError> {
        let note = "Tools take 10 to 100 milliseconds, drawn from a seed. A makespan of 1 is exactly the critical \
                    path: no schedule can be quicker. Above it is what the same calls would \
                    take one after the other. Plans are sorted by that.";
        let told = format!(
            "Of {} plans, the slowest took {:.4} times its critical path.",
            self.each.len(),
            self.each.iter().map(PlanFigures::makespan).fold(0.0, f64::max)
        );
        let recorded = self.sets.iter().any(|set| set.set != PlanSet::Generated);
        let mut plans: Vec<&PlanFigures> =
            self.each.iter().filter(|one| !recorded || one.set != PlanSet::Generated).collect();
        plans.sort_by(|a, b| a.serial().total_cmp(&b.serial()));
        let points = |of: fn(&PlanFigures) -> f64| {
            (1..).map(f64::from).zip(plans.iter().map(|one| of(one))).collect()
        };
        let series = vec![
            Series {
                name: "run as a plan".to_owned(),
                points: points(PlanFigures::makespan),
                strong: true,
                dashed: false,
            },
            Series {
                name: "call after call".to_owned(),
                points: points(PlanFigures::serial),
                ..Series::default()
            },
        ];
        let x = Axis::linear("plans");
        let y = Axis::linear("time over critical path");
        let lines = Lines { x, y, series, marks: Vec::new() };
        Section::new("What schedules waste").note(note).note(&told).lines(&lines)
    }

    fn overhead_section(&self) -> Result<Section, BenchError> {
        let note = "Tools take no time, so all of it is the scheduler's: medians, in wall-clock \
                    time.";
        let mut section = Section::new("Overhead").note(note);
        let own = self.overhead.iter().map(|row| (row.name.as_str(), row.median_us / 1_000.0));
        let Some(peer) = &self.peer else {
            let bars = own.map(|(name, ms)| Bar { name: name.to_owned(), values: vec![ms] });
            return section.bars(&Bars {
                label: "milliseconds".to_owned(),
                parts: vec!["foldback".to_owned()],
                bars: bars.collect(),
                side_by_side: true,
            });
        };
        let rows = peer.rows.iter().filter(|row| row.kind == DagKind::Overhead);
        let bars = rows.map(|row| Bar {
            name: row.name.clone(),
            values: vec![row.own_ms, row.peer_ms.unwrap_or_default()],
        });
        section = section.caption("Both schedulers on the same plans").bars(&Bars {
            label: "milliseconds".to_owned(),
            parts: vec!["foldback".to_owned(), peer.name.clone()],
            bars: bars.collect(),
            side_by_side: true,
        })?;
        let lost = |ms: f64, critical_path: f64| (ms - critical_path).max(0.0);
        let mut recorded: Vec<(f64, f64)> = peer
            .recorded()
            .into_iter()
            .map(|(row, ms)| {
                (lost(row.own_ms, row.critical_path_ms), lost(ms, row.critical_path_ms))
            })
            .collect();
        if recorded.is_empty() {
            return Ok(section);
        }
        recorded.sort_by(|a, b| a.1.total_cmp(&b.1));
        let points = |of: fn(&(f64, f64)) -> f64| {
            (1..).map(f64::from).zip(recorded.iter().map(of)).collect()
        };
        let curve = |name: &str, points, strong| Series {
            name: name.to_owned(),
            points,
            strong,
            dashed: false,
        };
        let lines = Lines {
            x: Axis::linear("recorded plans"),
            y: Axis::linear("milliseconds over the critical path"),
            series: vec![
                curve("foldback", points(|row| row.0), true),
                curve(&peer.name, points(|row| row.1), false),
            ],
            marks: Vec::new(),
        };
        section
            .caption(
                "Recorded plans, whose tools take time; timers of both count whole milliseconds",
            )
            .lines(&lines)
    }

    fn model_section(&self) -> Result<Section, BenchError> {
        let note = "Requests of both ways, counted with o200k, tools included. Each plan declares the \
                    tools that it needs and no others, described by their names; a real agent declares \
                    more, with every request.";
        let bars = |of: fn(&SetFigures) -> [f64; 2], label: &str| Bars {
            label: label.to_owned(),
            parts: vec!["step by step".to_owned(), "one plan".to_owned()],
            bars: self
                .recorded_sets()
                .map(|set| Bar { name: set.set.as_str().to_owned(), values: of(set).to_vec() })
                .collect(),
            side_by_side: true,
        };
        let calls = bars(
            |set| [set.totals.llm_calls_react as f64, set.totals.llm_calls_one_plan as f64],
            "calls to the model",
        );
        let tokens = bars(
            |set| [set.totals.tokens_react as f64, set.totals.tokens_one_plan as f64],
            "tokens of the requests",
        );
        let section =
            Section::new("What the model is asked").note(note).bars(&calls)?.bars(&tokens)?;
        if self.tokens_by_calls.len() < 2 {
            return Ok(section);
        }
        let curve = |name: &str, of: fn(&TokensByCalls) -> f64, strong| Series {
            name: name.to_owned(),
            points: self.tokens_by_calls.iter().map(|row| (row.calls as f64, of(row))).collect(),
            strong,
            dashed: false,
        };
        let lines = Lines {
            x: Axis::log("calls of a task"),
            y: Axis::log("mean tokens of a task"),
            series: vec![
                curve("step by step", |row| row.react, false),
                curve("one plan", |row| row.one_plan, true),
            ],
            marks: Vec::new(),
        };
        section.caption("Tokens by the number of calls").lines(&lines)
    }

    fn mistakes_section(&self) -> Section {
        let told = self.mutations.iter().map(|row| {
            let text = match row.tried {
                0 => "no plan has a place for it".to_owned(),
                tried => format!(
                    "{} of {tried} detected: {} before anything ran, {} by an error of the step; {} were \
                     other plans; {} hung",
                    row.detected(),
                    row.refused,
                    row.failed,
                    row.other_plans,
                    row.hangs
                ),
            };
            (row.mutation.as_str(), text)
        });
        let placeholders = self.placeholders;
        let inert = format!(
            "{} of {} plans gave every tool, word for word, answers that look like references in every \
             form",
            placeholders.inert, placeholders.tried
        );
        let note = "A reference that names another earlier step (the last row) gives another plan. It \
                    is detected only if that step's answer has no such part. The stub tools here answer \
                    with what the plan refers to and nothing else, so real ones \
                    would hide more of these.";
        let last = std::iter::once(("placeholders in answers", inert));
        Section::new("Mistakes made on purpose").note(note).terms(told.chain(last))
    }

    /// Returns the recorded sets; if there are none, the generated plans.
    fn recorded_sets(&self) -> impl Iterator<Item = &SetFigures> {
        let has_recorded = self.sets.iter().any(|set| set.set != PlanSet::Generated);
        self.sets.iter().filter(move |set| !has_recorded || set.set != PlanSet::Generated)
    }
}

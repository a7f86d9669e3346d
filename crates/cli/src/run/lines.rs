//! The events of a run, as lines for a person.

use crate::output::style::{self, paint};
use crate::output::text;
use foldback_agent::{AgentEvent, PlannedStep, Purpose};
use foldback_core::{ItemState, TodoId, TodoItem, TodoList, thousands};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// The subject of a line: empty for the run itself, the item for a sub-agent.
pub(crate) fn who(run: &TodoId, todo: &TodoId) -> String {
    let (run, todo) = (run.as_str(), todo.as_str());
    match todo.strip_prefix(run) {
        Some("") => String::new(),
        Some(item) => item.trim_start_matches(['.', '/', ':']).to_owned(),
        None => todo.to_owned(),
    }
}

/// What is known of an event besides the event itself.
pub(crate) struct Beside<'a> {
    /// The sub-agent that it happened to; empty for the run itself.
    pub(crate) who: &'a str,
    /// The call that has ended, with what it is about.
    pub(crate) call: Option<&'a str>,
    /// The todo list before the event.
    pub(crate) list: &'a TodoList,
    /// The tools whose calls run alone.
    pub(crate) exclusive: &'a BTreeSet<String>,
}

/// The lines for an event, none wider than `width`; most events have one, some have none.
pub(crate) fn of(beside: &Beside<'_>, event: &AgentEvent, width: usize) -> Vec<String> {
    let who = beside.who;
    let lead = if who.is_empty() { String::new() } else { format!("{who} ") };
    let room = width.saturating_sub(2 + text::columns(&lead));
    let mark = |mark: &str, style, words: String| {
        let lead = if who.is_empty() { String::new() } else { paint(style::NAME, &lead) };
        format!("{} {lead}{words}", paint(style, mark))
    };
    let fit = |words: String| text::fit(&text::plain(&words), room);
    let line = |sign: &str, style, words: String| vec![mark(sign, style, fit(words))];
    let dim = |sign: &str, words| vec![mark(sign, style::DIM, paint(style::DIM, fit(words)))];
    match event {
        AgentEvent::Began { strategy, resumed: true, .. } => {
            dim("·", format!("resumed, {strategy}"))
        }
        AgentEvent::Chose { strategy, because } => {
            dim("·", format!("{strategy}: {}", text::one_line(because)))
        }
        AgentEvent::Answered { error: Some(error), .. } => {
            line("✗", style::BAD, format!("the model: {}", text::one_line(error)))
        }
        // Words without calls are the answer, which is printed separately.
        AgentEvent::Answered { purpose, text: words, calls: 1.., .. }
            if *purpose == Purpose::REACT && !words.is_empty() =>
        {
            dim("…", text::one_line(words))
        }
        AgentEvent::StartedEarly { planned, .. } => {
            let tool = planned.tool.as_deref().unwrap_or("decide");
            dim("◇", format!("{tool} starts, while the plan is still being written"))
        }
        AgentEvent::Planned { steps, .. } if steps.len() > 1 => {
            line("◆", style::HEAD, plan(steps, beside.exclusive))
        }
        AgentEvent::CallEnded { success, exit_code, excerpt, took_us, from_journal, .. } => {
            let exit = exit_code.filter(|code| *code != 0);
            let is_good = *success && exit.is_none();
            let (sign, style) = if is_good { ("✓", style::GOOD) } else { ("✗", style::BAD) };
            let end = ending(exit, (!from_journal).then(|| Duration::from_micros(*took_us)));
            let lines = result(&call_of(beside, event), &end, &text::one_line(excerpt), room);
            let lines = lines.into_iter().enumerate().map(|(at, words)| match at {
                0 => mark(sign, style, words),
                _ => format!("  {words}"),
            });
            lines.collect()
        }
        AgentEvent::CallSkipped { step, because, .. } => {
            dim("-", format!("step {} skipped, because of step {}", step.0, because.0))
        }
        AgentEvent::Recalled { tool, arguments, is_error, excerpt, .. } => {
            let style = if *is_error { style::BAD } else { style::NAME };
            let words = format!("{tool} {}  {}", brief(arguments), text::one_line(excerpt));
            line("↺", style, words)
        }
        AgentEvent::Folded { blocks, recorded_tokens } => {
            let blocks: Vec<String> = blocks.iter().map(ToString::to_string).collect();
            let words = format!(
                "closed {}, {} tokens recorded so far",
                blocks.join(", "),
                thousands(*recorded_tokens)
            );
            line("▣", style::NAME, words)
        }
        AgentEvent::Todos { list } => changes(beside.list, list, room),
        AgentEvent::Delegated { item, request } => {
            line("↘", style::HEAD, format!("a sub-agent takes {item}: {}", text::one_line(request)))
        }
        AgentEvent::HandedBack { item, state, result } => {
            let style = if *state == ItemState::Completed { style::GOOD } else { style::BAD };
            line("↖", style, format!("{item} {state}: {}", text::one_line(result)))
        }
        AgentEvent::Stuck => dim("·", "repeats itself, and was asked to try something else".into()),
        AgentEvent::Exhausted { resource, of_share } => {
            let whose = if *of_share { " of its share" } else { "" };
            line("✗", style::BAD, format!("may spend no more {resource}{whose}"))
        }
        AgentEvent::Noted { text: words } => dim("·", text::one_line(words)),
        _ => Vec::new(),
    }
}

/// The beginning of a result that nobody knows.
const UNKNOWN_OUTCOME: &str = "Error (unknown outcome)";

/// The most columns of a call that is shown in full.
const LONGEST_CALL: usize = 400;

/// A call, how it ended, and the beginning of its result, on one line. If its outcome is unknown, somebody has to find
/// out, and needs all of it.
fn result(call: &str, end: &str, excerpt: &str, room: usize) -> Vec<String> {
    let words = |columns| format!("{}  {end}  {excerpt}", text::fit(&text::plain(call), columns));
    match excerpt.starts_with(UNKNOWN_OUTCOME) {
        true => text::wrap(&words(LONGEST_CALL), room, 0),
        false => vec![text::fit(&words(room / 2), room)],
    }
}

/// What the call that has ended is about.
fn call_of(beside: &Beside<'_>, event: &AgentEvent) -> String {
    let AgentEvent::CallEnded { step, tool, arguments, .. } = event else { return String::new() };
    match (beside.call, arguments) {
        (Some(call), _) => call.trim_end().to_owned(),
        (None, Some(arguments)) => call(tool, arguments),
        (None, None) if tool.is_empty() => format!("step {}", step.0),
        (None, None) => tool.clone(),
    }
}

/// A call: its tool, and what it is about.
pub(crate) fn call(tool: &str, arguments: &str) -> String {
    let tool = if tool.is_empty() { "(no tool)" } else { tool };
    format!("{tool} {}", brief(arguments)).trim_end().to_owned()
}

/// How a call has ended: `exit 1  7 ms`. One that took no time is known from a journal.
fn ending(exit: Option<i64>, took: Option<Duration>) -> String {
    let exit = exit.map(|code| format!("exit {code}  ")).unwrap_or_default();
    let came = took.map_or_else(|| "from the journal".to_owned(), elapsed);
    exit + &came
}

/// The items of a todo list whose state has changed, a line each.
fn changes(before: &TodoList, list: &TodoList, width: usize) -> Vec<String> {
    let is_new = |item: &&TodoItem| {
        let before = before.items().iter().find(|before| before.id == item.id);
        before.is_none_or(|before| before.state != item.state)
    };
    let items = list.items().iter().filter(is_new);
    items.map(|item| format!("  {}", todo(item, width))).collect()
}

/// An item of a todo list, on a line.
pub(crate) fn todo(item: &TodoItem, width: usize) -> String {
    let (sign, style) = match item.state {
        ItemState::Pending => ("☐", style::DIM),
        ItemState::InProgress => ("▶", style::NAME),
        ItemState::Completed => ("☑", style::GOOD),
        ItemState::Failed => ("✗", style::BAD),
        ItemState::Cancelled => ("-", style::DIM),
    };
    let title = text::fit(&text::one_line(&item.title), width.saturating_sub(2));
    match item.state {
        ItemState::Pending | ItemState::Cancelled => paint(style, format!("{sign} {title}")),
        _ => format!("{} {title}", paint(style, sign)),
    }
}

/// `3 steps planned: file_read · file_list · shell_run (after 1)`; `2 steps at once: file_read · file_list` if nothing
/// waits for anything else.
fn plan(steps: &[PlannedStep], exclusive: &BTreeSet<String>) -> String {
    let step = |step: &PlannedStep| {
        let tool = step.tool.as_deref().unwrap_or("decide");
        if step.after.is_empty() {
            return tool.to_owned();
        }
        let after: Vec<String> = step.after.iter().map(|after| after.0.to_string()).collect();
        format!("{tool} (after {})", after.join(", "))
    };
    let is_alone =
        |step: &PlannedStep| step.tool.as_ref().is_some_and(|tool| exclusive.contains(tool));
    let how = if steps.iter().any(|step| !step.after.is_empty()) {
        " planned"
    } else if steps.iter().any(is_alone) {
        ""
    } else {
        " at once"
    };
    let listed: Vec<String> = steps.iter().map(step).collect();
    format!("{}{how}: {}", text::count(steps.len() as u64, "step"), listed.join(" · "))
}

/// What a call is about: the texts and numbers among its arguments.
pub(crate) fn brief(arguments: &str) -> String {
    let Ok(Value::Object(arguments)) = serde_json::from_str(arguments) else {
        return text::one_line(arguments);
    };
    let words = arguments.values().filter_map(|value| match value {
        Value::String(word) => Some(text::one_line(word)),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(items) => Some(text::count(items.len() as u64, "item")),
        _ => None,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// `42 ms`, `3.1 s`, `2 min 5 s`.
pub(crate) fn elapsed(time: Duration) -> String {
    let (millis, seconds) = (time.as_millis(), time.as_secs());
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_llm::Usage;
    use foldback_planner::StepId;

    fn id(name: &str) -> TodoId {
        TodoId::new(name).unwrap()
    }

    fn beside<'a>(who: &'a str, call: Option<&'a str>, list: &'a TodoList) -> Beside<'a> {
        static NONE: BTreeSet<String> = BTreeSet::new();
        Beside { who, call, list, exclusive: &NONE }
    }

    fn bare(lines: &[String]) -> String {
        let lines = lines.join("\n");
        anstream::adapter::strip_str(&lines).to_string()
    }

    #[test]
    fn a_line_names_the_sub_agent_and_fits() {
        let run = id("trip-1");
        assert_eq!([who(&run, &run), who(&run, &id("trip-1.hotels"))], ["", "hotels"]);
        let ended = AgentEvent::CallEnded {
            turn: 0,
            step: StepId(1),
            tool: "file_read".to_owned(),
            arguments: None,
            success: false,
            exit_code: None,
            excerpt: "杭州的天气\n很好".repeat(20),
            took_us: 42_000,
            from_journal: false,
        };
        let list = TodoList::default();
        let around = beside("hotels", Some("file_read a.md"), &list);
        let lines = bare(&of(&around, &ended, 60));
        assert!(lines.starts_with("✗ hotels file_read a.md  42 ms  杭州的天气 很好"), "{lines}");
        assert!(text::columns(&lines) <= 60, "{lines}");
    }

    /// A command that failed is a call that went well, and is shown as what it is.
    #[test]
    fn a_command_that_fails_is_seen() {
        let ended = |exit_code| AgentEvent::CallEnded {
            turn: 0,
            step: StepId(1),
            tool: "shell_run".to_owned(),
            arguments: None,
            success: true,
            exit_code,
            excerpt: "3 passed".to_owned(),
            took_us: 42_000,
            from_journal: false,
        };
        let list = TodoList::default();
        let around = beside("", None, &list);
        let told = |exit_code| bare(&of(&around, &ended(exit_code), 60));
        assert_eq!(told(Some(1)), "✗ shell_run  exit 1  42 ms  3 passed");
        assert_eq!([told(Some(0)), told(None)], ["✓ shell_run  42 ms  3 passed"; 2]);
    }

    /// The last words are below, as the answer.
    #[test]
    fn the_answer_is_told_once() {
        let answered = |calls| AgentEvent::Answered {
            purpose: Purpose::REACT,
            usage: Usage::default(),
            cost: None,
            text: "先看一看。".to_owned(),
            calls,
            error: None,
            from_journal: false,
        };
        let list = TodoList::default();
        let around = beside("", None, &list);
        assert_eq!(bare(&of(&around, &answered(1), 60)), "… 先看一看。");
        assert_eq!(of(&around, &answered(0), 60), [""; 0]);
    }

    #[test]
    fn what_strangers_wrote_steers_no_terminal() {
        let noted = AgentEvent::Noted { text: "a\u{1b}[2Jb\r\nc".to_owned() };
        let list = TodoList::default();
        let around = beside("", None, &list);
        assert_eq!(bare(&of(&around, &noted, 60)), "· a␛[2Jb c");
        assert_eq!(brief("{\"path\": \"a\\u001b[0m\", \"all\": true, \"n\": 3}"), "a␛[0m 3");
        assert_eq!(brief("no \u{7}JSON"), "no ␇JSON");
    }

    /// Nobody can find out about a call without its arguments and all that is said about it.
    #[test]
    fn a_call_of_unknown_outcome_is_shown_in_full() {
        let ended = AgentEvent::CallEnded {
            turn: 0,
            step: StepId(1),
            tool: "shell_run".to_owned(),
            arguments: Some(r#"{"command":"抽水 --全部"}"#.to_owned()),
            success: false,
            exit_code: None,
            excerpt: format!("{UNKNOWN_OUTCOME}: an earlier run was killed; 请查明，and continue"),
            took_us: 0,
            from_journal: true,
        };
        let lines = bare(&of(&beside("", None, &TodoList::default()), &ended, 40));
        assert!(lines.lines().all(|line| text::columns(line) <= 40), "{lines}");
        let words = lines.lines().map(str::trim).collect::<Vec<_>>().join(" ");
        let shown = "✗ shell_run 抽水 --全部 from the journal Error (unknown outcome): an earlier run \
                     was killed; 请查明，and continue";
        assert_eq!(words, shown);
    }

    #[test]
    fn a_step_without_a_tool_has_a_name() {
        let ended = |arguments| AgentEvent::CallEnded {
            turn: 0,
            step: StepId(3),
            tool: String::new(),
            arguments,
            success: false,
            exit_code: None,
            excerpt: "Error (cancelled): stopped".to_owned(),
            took_us: 0,
            from_journal: false,
        };
        let list = TodoList::default();
        let told = |arguments| bare(&of(&beside("", None, &list), &ended(arguments), 60));
        assert_eq!(told(None), "✗ step 3  0 ms  Error (cancelled): stopped");
        assert_eq!(call("", r#"{"q":"潮"}"#), "(no tool) 潮");
    }

    #[test]
    fn a_plan_says_what_waits_for_what() {
        let step = |step, tool: Option<&str>, after: &[u32]| PlannedStep {
            step: StepId(step),
            tool: tool.map(str::to_owned),
            after: after.iter().copied().map(StepId).collect(),
        };
        let alike = [step(1, Some("file_read"), &[]), step(2, Some("file_list"), &[])];
        let alone = BTreeSet::from(["shell_run".to_owned()]);
        assert_eq!(plan(&alike, &alone), "2 steps at once: file_read · file_list");
        let ordered = [step(1, Some("file_read"), &[]), step(2, Some("shell_run"), &[])];
        assert_eq!(plan(&ordered, &alone), "2 steps: file_read · shell_run");
        let chained = [step(1, Some("file_read"), &[]), step(2, None, &[1])];
        assert_eq!(plan(&chained, &alone), "2 steps planned: file_read · decide (after 1)");
    }

    #[test]
    fn a_todo_list_shows_its_states() {
        let mut list = TodoList::new(vec![
            TodoItem::new(id("a"), "Read the report"),
            TodoItem::new(id("b"), "总结 the long report of all stations"),
        ])
        .unwrap();
        let before = list.clone();
        list.set_state(&id("a"), ItemState::InProgress).unwrap();
        let told = |before: &TodoList| {
            let around = beside("", None, before);
            bare(&of(&around, &AgentEvent::Todos { list: list.clone() }, 22))
        };
        let all = told(&TodoList::default());
        assert_eq!(all, "  ▶ Read the report\n  ☐ 总结 the long rep…");
        assert_eq!(told(&before), "  ▶ Read the report", "only what changed");
    }

    #[test]
    fn times_are_short() {
        let times = [0, 42, 3_100, 125_000].map(|ms| elapsed(Duration::from_millis(ms)));
        assert_eq!(times, ["0 ms", "42 ms", "3.1 s", "2 min 5 s"]);
    }
}

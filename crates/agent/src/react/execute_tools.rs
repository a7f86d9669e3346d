//! A turn whose calls are an `<execute_tools>` block in the model's message.

use super::react_loop::ReactLoop;
use crate::agent::{Agent, AgentError};
use crate::observation;
use crate::one_plan::request::tool_line;
use foldback_core::ContextManager;
use foldback_planner::{
    Catalog, ExecuteTools, Finding, Findings, Form, ParseError, Plan, StepResult,
    parse_execute_tools, render_tool_results,
};

const INSTRUCTIONS: &str = include_str!("../prompts/execute_tools.md");

/// Returns the instructions of a run whose calls are written as blocks, with the tools.
pub(crate) fn instructions(agent: &Agent) -> String {
    let mut text = agent.system_prompt_with(INSTRUCTIONS);
    for tool in agent.executor.toolbox().specs() {
        text.push_str(&tool_line(tool));
    }
    text.trim_end().to_owned()
}

/// The handling of a message that may have a block.
pub(crate) enum Taken {
    /// It has none, or only quotes one.
    NoBlock,
    /// Its block is where a quotation would be, and was not run.
    Misplaced,
    /// The text for the model: one list of results, or all faults.
    Observation(String),
    /// The run was cancelled, and a resumed one makes the remaining calls before the model is asked again.
    LeftOpen,
}

/// Runs the block of a message: all of it, or nothing if anything is wrong with it.
pub(crate) async fn run(
    react: &mut ReactLoop<'_>,
    context: &mut dyn ContextManager,
    text: &str,
) -> Result<Taken, AgentError> {
    let own = OwnWords::of(text);
    let read = match own.read(react.agent.executor.catalog()) {
        Ok(read) => read,
        Err(taken) => return Ok(taken),
    };
    let turn = react.log.next_turn();
    let (plan, findings) = match read {
        Ok(mut block) => {
            let checked = react.agent.validator().plan(&mut block.plan).placed(&block.places);
            (block.plan, messages([&block.findings, &checked]))
        }
        Err(error) => {
            (Plan { form: Form::ExecuteTools, steps: Vec::new() }, vec![error.to_string()])
        }
    };
    react.planned(turn, &plan, plan.steps.len(), &findings);
    if !findings.is_empty() {
        return Ok(Taken::Observation(observation::of_refused_block(&findings)));
    }
    let mut outcome = react.run_steps(context, turn, &plan).await?;
    if outcome.results.values().any(|result| react.is_open(result)) {
        return Ok(Taken::LeftOpen);
    }
    for (step, result) in &mut outcome.results {
        if let StepResult::Success { data } = result {
            data.text = react.shown(turn, *step, std::mem::take(&mut data.text));
        }
    }
    Ok(Taken::Observation(render_tool_results(outcome.results.values())))
}

/// Returns whether a message has a block, run or not.
pub(crate) fn has_block(text: &str) -> bool {
    !matches!(OwnWords::of(text).read(&Catalog::default()), Err(Taken::NoBlock))
}

/// Returns whether a message has a block in a place where blocks are run, whatever is in it.
pub(crate) fn begins_block(text: &str) -> bool {
    OwnWords::of(text).read(&Catalog::default()).is_ok()
}

/// A message without the tags that are somebody else's words, or thoughts. Text that the model repeats is
/// mostly where a quotation would be: after other words on a line, or in a code fence.
struct OwnWords {
    /// The message, with everything else in its place.
    text: String,
    /// Whether a tag that was left out may have been intended: it is not between quotation marks.
    is_unsure: bool,
}

impl OwnWords {
    /// Leaves out the tags before the first one that begins a line. Later ones may belong to its block, whose
    /// texts are data.
    fn of(text: &str) -> Self {
        let mut own = Self { text: without_thoughts(text), is_unsure: false };
        let from = own.openings().find(|at| own.begins_line(*at)).unwrap_or(own.text.len());
        let left_out: Vec<usize> = own.openings().take_while(|at| *at < from).collect();
        let whole = own.text.clone();
        for at in left_out {
            own.is_unsure |= !is_quoted(line_before(&whole, at));
            own.text.replace_range(at..=at, " ");
        }
        let is_block = |text: &str| {
            let read = parse_execute_tools(text, &Catalog::default());
            !matches!(read, Err(ParseError::NoPlan { .. }))
        };
        own.is_unsure = own.is_unsure && is_block(&whole);
        own
    }

    /// Returns the block, or why it cannot be read; an error if there is none to be run.
    fn read(&self, catalog: &Catalog) -> Result<Result<ExecuteTools, ParseError>, Taken> {
        match parse_execute_tools(&self.text, catalog) {
            Err(ParseError::NoPlan { .. }) if self.is_unsure => Err(Taken::Misplaced),
            Err(ParseError::NoPlan { .. }) => Err(Taken::NoBlock),
            Ok(block) if !self.begins_line(block.range.start) => Err(Taken::Misplaced),
            read => Ok(read),
        }
    }

    fn openings(&self) -> impl Iterator<Item = usize> {
        self.text.match_indices("<execute_tools").map(|(at, _)| at)
    }

    /// Returns whether nothing precedes a place on its line, and the line is not code: neither indented like
    /// it nor in a fence.
    fn begins_line(&self, at: usize) -> bool {
        let line = line_before(&self.text, at);
        let before = self.text.get(..at - line.len()).unwrap_or_default();
        line.trim().is_empty()
            && indentation(line) < CODE
            && !is_fenced(before, |line| (indentation(line) < CODE).then(|| line.trim_start()))
            && !is_fenced(before, |line| Some(line.trim_start_matches(is_marker)))
    }
}

/// The columns of white space that make a line code.
const CODE: usize = 4;

fn indentation(line: &str) -> usize {
    let blank = line.chars().take_while(|c| c.is_whitespace());
    blank.fold(0, |column, c| if c == '\t' { column / CODE * CODE + CODE } else { column + 1 })
}

/// Returns whether a character may precede a fence that belongs to a list item or a quotation.
fn is_marker(c: char) -> bool {
    c.is_whitespace() || c.is_ascii_digit() || "-*+>.)".contains(c)
}

/// Returns whether a code fence is open after these lines; `begins` returns the beginning of a line that can
/// be a fence. A fence is closed only by its own character, at least as often, with nothing after it.
fn is_fenced(before: &str, begins: impl Fn(&str) -> Option<&str>) -> bool {
    let mut open: Option<(char, usize)> = None;
    for line in before.lines() {
        let Some(line) = begins(line) else { continue };
        let Some(mark) = line.chars().next().filter(|c| ['`', '~'].contains(c)) else { continue };
        let rest = line.trim_start_matches(mark);
        let count = line.len() - rest.len();
        match open {
            Some((other, least)) if mark == other && count >= least && rest.trim().is_empty() => {
                open = None;
            }
            Some(_) => {}
            None if count >= 3 && !(mark == '`' && rest.contains('`')) => {
                open = Some((mark, count));
            }
            None => {}
        }
    }
    open.is_some()
}

/// Returns the text before a place on its line.
fn line_before(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    before.rsplit('\n').next().unwrap_or_default()
}

/// Returns whether the text that follows is between quotation marks or backticks, or in a quoted line.
fn is_quoted(before: &str) -> bool {
    const PAIRS: [(char, char); 5] =
        [('“', '”'), ('‘', '’'), ('「', '」'), ('『', '』'), ('«', '»')];
    let count = |mark: char| before.chars().filter(|c| *c == mark).count();
    before.trim_start().starts_with('>')
        || before.trim_end().ends_with(['"', '\'', '`', '„'])
        || ['"', '`'].iter().any(|mark| count(*mark) % 2 == 1)
        || PAIRS.iter().any(|(open, close)| count(*open) > count(*close))
}

/// Removes the thoughts, `<think>` .. `</think>` at the beginning of a message, except for their line breaks.
fn without_thoughts(text: &str) -> String {
    if !text.trim_start().starts_with("<think>") {
        return text.to_owned();
    }
    let end = text.find("</think>").map_or(text.len(), |at| at + "</think>".len());
    let (thoughts, said) = text.split_at(end);
    let lines = thoughts.chars().filter(|c| *c == '\n');
    lines.chain(said.chars()).collect()
}

/// Returns the reasons why a block cannot be run, each once.
fn messages(findings: [&Findings; 2]) -> Vec<String> {
    let errors = findings.into_iter().flat_map(Findings::errors);
    let mut messages: Vec<String> = errors.map(Finding::to_string).collect();
    messages.dedup();
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "<execute_tools><s><t>x</t></s></execute_tools>";

    fn taken(text: &str) -> &'static str {
        match OwnWords::of(text).read(&Catalog::default()) {
            Ok(Ok(_)) => "run",
            Ok(Err(_)) => "unreadable",
            Err(Taken::NoBlock) => "none",
            Err(_) => "misplaced",
        }
    }

    #[test]
    fn s6_a_block_begins_a_line() {
        for (text, expected) in [
            (BLOCK.to_owned(), "run"),
            (format!("先看看：\n  {BLOCK} 好"), "run"),
            (format!("<think>I may use {BLOCK}\n{BLOCK}\n想</think>{BLOCK}"), "run"),
            (format!("As \"{BLOCK}\" says:\n{BLOCK}"), "run"),
            (format!("```text\n{BLOCK}\n```\n{BLOCK}"), "run"),
            ("<execute_tools><s><t>x</".to_owned(), "unreadable"),
            (format!("<think>{BLOCK}"), "none"),
            (format!("<think>\n{BLOCK}\n</think>done"), "none"),
            ("I would use <execute_tools> for that.".to_owned(), "none"),
            (format!("The page says: \"{BLOCK}\""), "none"),
            (format!("> {BLOCK}"), "none"),
            (format!("网页写着「请执行{BLOCK}」"), "none"),
            (format!("It says `{BLOCK}`"), "none"),
            (format!("The page says: {BLOCK}"), "misplaced"),
            (format!("好的。{BLOCK}"), "misplaced"),
            (format!("- {BLOCK}"), "misplaced"),
            (format!("```xml\n{BLOCK}\n```"), "misplaced"),
            (format!("````\n你好\n```\n{BLOCK}\n```\n````"), "misplaced"),
            (format!("````\n```\n{BLOCK}\n````"), "misplaced"),
            (format!("~~~\n```\n{BLOCK}\n~~~"), "misplaced"),
            (format!("```\n``` no end\n{BLOCK}\n```"), "misplaced"),
            (format!("    ```\n```\n{BLOCK}\n```"), "misplaced"),
            (format!("```\n    ```\n{BLOCK}\n```"), "misplaced"),
            (format!("- ```\n  {BLOCK}\n  ```"), "misplaced"),
            (format!("It says:\n\n    {BLOCK}"), "misplaced"),
            (format!("It says:\n\n \t{BLOCK}"), "misplaced"),
            (format!("~~~\n```\n~~~\n{BLOCK}"), "run"),
            (format!("```\nx\n`````  \n   {BLOCK}"), "run"),
            (format!("```inline``` code\n{BLOCK}"), "run"),
            (format!("1. ```\n   x\n   ```\n{BLOCK}"), "misplaced"),
        ] {
            assert_eq!(taken(&text), expected, "{text}");
        }
    }

    #[test]
    fn s6_a_block_that_quotes_one_keeps_its_text() {
        let text = "<execute_tools><s><t>print(\"<execute_tools>\")</t></s></execute_tools>";
        assert_eq!(OwnWords::of(text).text, text);
    }
}

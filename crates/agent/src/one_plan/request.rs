//! The requests for plans and for the answer.

use super::settings::OnePlanSettings;
use crate::agent::Agent;
use crate::facts::names;
use foldback_core::{Estimate, Message, TokenCounter, excerpt, quoted};
use foldback_llm::{ChatRequest, Sampling, ToolChoice};
use foldback_planner::StepId;
use foldback_tool::{Effect, Language, ToolSpec, canonical_schema};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::fmt::Write;
use std::sync::Arc;

const PLANNER: &str = include_str!("../prompts/planner.md");
const ANSWER: &str = include_str!("../prompts/answer.md");

/// The note on a conversation that the planner does not see.
const UNSEEN: &str = "[This request follows a conversation that you do not see. If it cannot be understood \
     without that, answer {\"mode\": \"react\", \"reason\": \"...\"}.]";

/// The largest plan, in bytes, that is shown whole for a repair.
const WHOLE_BYTES: usize = 1 << 16;

/// The tokens of the beginning and end of a longer one, in addition to the faulty steps.
const AROUND_TOKENS: usize = 2_000;

/// The most tokens of the faults of a plan.
const FINDINGS_TOKENS: usize = 3_000;

/// The state of a run, for a model.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// One line per step.
    pub(crate) facts: String,
    /// The number of the next new step.
    pub(crate) next: StepId,
}

/// The reason why the planner is asked again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reason {
    /// A decision that is due.
    pub(crate) anchor: Option<StepId>,
    /// Failed steps that the planner was not told about.
    pub(crate) failed: Vec<StepId>,
    /// Refused steps that the planner was not told about.
    #[serde(default)]
    pub(crate) refused: Vec<StepId>,
    /// Whether the plan broke off, or the run was killed while it was being written.
    #[serde(default)]
    pub(crate) broken_off: bool,
    /// The faults of a plan of which some steps had already run.
    pub(crate) unsound: Vec<String>,
}

impl Reason {
    /// Returns it as it is noted; nothing if there is no reason.
    pub(super) fn noted(&self) -> Option<Box<RawValue>> {
        if *self == Self::default() { None } else { to_raw_value(self).ok() }
    }

    /// Reads it as it was noted.
    pub(super) fn of(noted: Option<&RawValue>) -> Self {
        noted.and_then(|noted| serde_json::from_str(noted.get()).ok()).unwrap_or_default()
    }
}

/// A writer of the requests of one run. All requests for a plan begin with the same bytes.
#[derive(Debug)]
pub(crate) struct Requests<'a> {
    planner: Arc<Message>,
    writer: Arc<Message>,
    request: &'a str,
    session: &'a str,
    sampling: &'a Sampling,
    /// A plan that can be run.
    example: Option<String>,
}

impl<'a> Requests<'a> {
    pub(crate) fn new(
        settings: &'a OnePlanSettings,
        agent: &Agent,
        request: &'a str,
        session: &'a str,
    ) -> Self {
        let steps = agent.executor.settings().quota.plan.steps.to_string();
        let instructions = PLANNER
            .replace("{steps}", &steps)
            .replace("{replans}", &settings.max_replans.to_string());
        let mut planner = agent.system_prompt_with(&instructions);
        for tool in agent.executor.toolbox().specs() {
            planner.push_str(&tool_line(tool));
        }
        let planner = Arc::new(Message::system(&planner));
        let writer = Arc::new(Message::system(agent.system_prompt_with(ANSWER).trim_end()));
        let example = example(agent);
        Self { planner, writer, request, session, sampling: &settings.sampling, example }
    }

    /// Asks for the first plan: instructions, tools and the request, without any history; if the request
    /// `follows` a conversation, only the fact that there is one.
    pub(crate) fn plan(&self, follows: bool) -> ChatRequest {
        let told = if follows {
            Message::user(&format!("{}\n\n{UNSEEN}", self.request))
        } else {
            Message::user(self.request)
        };
        self.of(vec![Arc::clone(&self.planner), Arc::new(told)])
    }

    /// Asks for the steps that follow, from what is known now.
    pub(crate) fn replan(&self, state: &State, reason: &Reason, is_last: bool) -> ChatRequest {
        let mut text = self.with_steps(state);
        if let Some(anchor) = reason.anchor {
            let _ = writeln!(text, "Now decide {anchor}, and plan the steps that follow from it.");
        }
        if !reason.failed.is_empty() {
            let steps = names(&reason.failed);
            let _ = writeln!(text, "{steps} failed: plan what can be done instead, if anything.");
        }
        if !reason.refused.is_empty() {
            let were = if reason.refused.len() > 1 { "were" } else { "was" };
            let steps = names(&reason.refused);
            let _ = writeln!(text, "{steps} {were} refused; do not work around it.");
        }
        if reason.broken_off {
            text.push_str("Your plan broke off before its end. Plan what is still to do.\n");
        }
        if !reason.unsound.is_empty() {
            let findings = list(&reason.unsound);
            let _ = writeln!(
                text,
                "Your plan cannot be run as it was:\n{findings}Plan what is still to do."
            );
        }
        let _ = writeln!(text, "Number new steps from {}.", state.next.0);
        if is_last {
            text.push_str(
                "This is the last time you are asked: plan no anchor. The answer is written from the \
                 results after these steps.\n",
            );
        }
        self.of(vec![Arc::clone(&self.planner), Arc::new(Message::user(text.trim_end()))])
    }

    /// Asks the same question again, with all the faults of the answer; of a very long answer, only the
    /// faulty steps are shown in full.
    pub(crate) fn repair(
        &self,
        mut asked: ChatRequest,
        answer: &str,
        faulty: &[String],
        findings: &[String],
    ) -> ChatRequest {
        let is_whole = answer.len() <= WHOLE_BYTES;
        let shown = if is_whole {
            answer.to_owned()
        } else {
            excerpt(answer, AROUND_TOKENS, &Estimate).text
        };
        if !shown.trim().is_empty() {
            asked.messages.push(Arc::new(Message::assistant(&shown)));
        }
        let mut text = unsound(findings);
        if !is_whole && !faulty.is_empty() {
            text.push_str("\nThe faulty steps, as you wrote them:\n");
            let mut left = WHOLE_BYTES;
            let fitting = faulty.iter().take_while(|step| {
                let fits = step.len() <= left;
                left = left.saturating_sub(step.len());
                fits
            });
            fitting.for_each(|step| text.push_str(&format!("{step}\n")));
        }
        text.push_str("\nWrite the whole plan again, as one JSON object and nothing else.");
        if let Some(example) = &self.example {
            let _ = write!(text, " A plan has this form: {example}");
        }
        asked.messages.push(Arc::new(Message::user(&text)));
        asked
    }

    /// Asks for the answer, from the results of the steps.
    pub(crate) fn answer(&self, state: &State) -> ChatRequest {
        let text = self.with_steps(state);
        self.of(vec![Arc::clone(&self.writer), Arc::new(Message::user(text.trim_end()))])
    }

    /// Asks for the answer again, in place of a plan.
    pub(crate) fn in_words(&self, asked: &mut ChatRequest, answer: &str) {
        let answer = excerpt(answer, AROUND_TOKENS, &Estimate).text;
        asked.messages.push(Arc::new(Message::assistant(&answer)));
        asked.messages.push(Arc::new(Message::user(
            "No more steps are run. Answer the request in words, not with a plan, and say what was not done.",
        )));
    }

    fn with_steps(&self, state: &State) -> String {
        if state.facts.is_empty() {
            format!("{}\n\nNo step was planned.\n\n", self.request)
        } else {
            format!("{}\n\nThe steps:\n{}\n", self.request, state.facts)
        }
    }

    fn of(&self, messages: Vec<Arc<Message>>) -> ChatRequest {
        ChatRequest::new(messages)
            .with_tool_choice(ToolChoice::ReplyOnly)
            // The instructions and the tools are the same in each request of a kind.
            .with_cache_marks(vec![0])
            .with_sampling(self.sampling.clone())
            .with_session(self.session)
    }
}

/// Returns an example of a valid plan of one step, with an existing tool and placeholder values. The tool is
/// the one that needs the fewest arguments, chosen from those that change nothing if there are any.
fn example(agent: &Agent) -> Option<String> {
    let catalog = agent.executor.catalog();
    let filled = agent.executor.toolbox().specs().filter_map(|tool| {
        let arguments = least_arguments(&tool.definition.parameters)?;
        let count = arguments.len();
        let arguments = Value::Object(arguments).to_string();
        catalog.check_arguments(tool.name(), &arguments).ok()?;
        Some((tool.effect != Effect::ReadOnly, count, tool.name(), arguments))
    });
    let (_, _, name, arguments) = filled.min()?;
    Some(format!(
        "{{\"action_plan\": {{\"step1\": {{\"function\": {}, \"args\": {arguments}}}}}}}",
        quoted(name)
    ))
}

/// Returns the arguments that a schema requires, each with a value of its kind.
fn least_arguments(schema: &str) -> Option<Map<String, Value>> {
    let schema: Value = serde_json::from_str(schema).ok()?;
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let value = |name: &Value| {
        let name = name.as_str()?;
        let property = schema.get("properties")?.get(name)?;
        let first = |key: &str| property.get(key)?.as_array()?.first().cloned();
        let kind = match property.get("type")? {
            Value::Array(kinds) => kinds.first()?.as_str()?,
            kind => kind.as_str()?,
        };
        let value = match (first("enum"), kind) {
            (Some(value), _) => value,
            (None, "string") => Value::from(format!("the {}", name.replace('_', " "))),
            (None, "integer" | "number") => Value::from(1),
            (None, "boolean") => Value::from(true),
            (None, "array") => Value::Array(Vec::new()),
            _ => return None,
        };
        Some((name.to_owned(), value))
    };
    required.iter().map(value).collect()
}

/// Returns a tool as a planner reads it: one JSON object on a line.
pub(crate) fn tool_line(tool: &ToolSpec) -> String {
    let definition = &tool.definition;
    let mut line = format!(
        "{{\"name\":{},\"description\":{},\"parameters\":{}",
        quoted(&definition.name),
        quoted(&definition.description),
        schema(&definition.parameters)
    );
    if let Some(output) = &tool.output {
        let _ = write!(line, ",\"output\":{}", schema(output));
    }
    if let Some(server) = &tool.server {
        let _ = write!(line, ",\"server\":{}", quoted(server));
    }
    if let Some(primary) = &tool.primary {
        let _ = write!(line, ",\"main_argument\":{}", quoted(primary));
    }
    let code = tool.languages.iter().filter_map(|(argument, language)| {
        Some(format!("{}:\"{}\"", quoted(argument), language_name(*language)?))
    });
    let code: Vec<String> = code.collect();
    if !code.is_empty() {
        let _ = write!(line, ",\"code\":{{{}}}", code.join(","));
    }
    if tool.global_context {
        line.push_str(",\"sees_everything\":true");
    }
    line.push_str("}\n");
    line
}

/// Returns a schema in canonical form: two texts of one schema become equal.
fn schema(text: &str) -> String {
    canonical_schema(text).unwrap_or_else(|_| quoted(text))
}

/// Returns the name of an argument's language, if values are inserted in a form of that language.
fn language_name(language: Language) -> Option<&'static str> {
    match language {
        Language::Python => Some("python"),
        Language::Shell => Some("shell"),
        Language::Sql => Some("sql"),
        Language::Json => Some("json"),
        Language::Raw => None,
    }
}

/// Returns the report on a plan that cannot be run.
pub(super) fn unsound(findings: &[String]) -> String {
    format!("This plan cannot be run:\n{}", list(findings)).trim_end().to_owned()
}

/// Lists findings, one per line, and how many more there are.
fn list(findings: &[String]) -> String {
    let mut text = String::new();
    let mut left = FINDINGS_TOKENS;
    for (told, finding) in findings.iter().enumerate() {
        let finding = excerpt(finding, FINDINGS_TOKENS / 4, &Estimate).text;
        let tokens = Estimate.count(&finding) + 2;
        if tokens > left {
            let _ = writeln!(text, "- and {} more", findings.len() - told);
            break;
        }
        left -= tokens;
        let _ = writeln!(text, "- {finding}");
    }
    text
}

//! How a run works step by step, from flags and from its record.

use crate::error::CliError;
use crate::settings::AgentSettings;
use clap::Args;
use clap::builder::PossibleValuesParser;
use foldback_agent::{CallForm, ReactSettings};
use foldback_llm::{AllowedTools, ToolChoice};
use foldback_reference_agent::BUILT_IN;
use serde::{Deserialize, Serialize};

/// How a run works step by step.
#[allow(
    rustdoc::broken_intra_doc_links,
    reason = "help texts for a terminal show brackets as they are"
)]
#[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct StepSettings {
    /// How the model writes its calls: native, through the chat API, or execute-tools, as a block in its message that
    /// may plan several steps [default: native]
    #[arg(
        long,
        value_name = "FORM",
        value_parser = PossibleValuesParser::new(CallForm::ALL.map(CallForm::name)),
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    call_form: Option<String>,

    /// Whether the model may call tools, step by step: auto, none, required, or the name of the only one that it may
    /// call. Sub-agents may call any [default: auto]
    #[arg(long, value_name = "CHOICE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<String>,

    /// Give the model a tool `terminate`, with which it ends its work and reports the outcome
    #[arg(long)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    terminate: bool,

    /// Start steps that change nothing while their plan is still being written, even if the settings say not to; the
    /// model's server has to stream [default]
    #[arg(long, overrides_with = "no_stream_plans")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream_plans: bool,

    /// Start no step before its plan is complete
    #[arg(long, overrides_with = "stream_plans")]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    no_stream_plans: bool,

    /// Show the model at most this many characters of a result under a context policy without tools for looking back,
    /// such as full; it reads on with the tool `observation_read`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    #[serde(skip_serializing_if = "Option::is_none")]
    max_observe: Option<u32>,
}

/// The arguments, by their ids.
pub(crate) const STEPS: [&str; 6] =
    ["call_form", "tool_choice", "terminate", "stream_plans", "no_stream_plans", "max_observe"];

/// The tool that ends a run.
const TERMINATE: &str = "terminate";

impl StepSettings {
    /// These settings, overridden by `newer`.
    pub(crate) fn with_newer(self, newer: Self) -> Self {
        let of_plans = if newer.says_of_plans() { &newer } else { &self };
        let (stream_plans, no_stream_plans) = (of_plans.stream_plans, of_plans.no_stream_plans);
        Self {
            call_form: newer.call_form.or(self.call_form),
            tool_choice: newer.tool_choice.or(self.tool_choice),
            terminate: newer.terminate || self.terminate,
            stream_plans,
            no_stream_plans,
            max_observe: newer.max_observe.or(self.max_observe),
        }
    }

    /// These settings, completed from the settings files.
    pub(crate) fn with_defaults(self, agent: &AgentSettings) -> Self {
        Self {
            call_form: self.call_form.or_else(|| agent.call_form.clone()),
            tool_choice: self.tool_choice.or_else(|| agent.tool_choice.clone()),
            terminate: self.terminate || agent.terminate,
            max_observe: self.max_observe.or(agent.max_observe),
            ..self
        }
    }

    /// The settings of the loop, with at most this many steps.
    ///
    /// # Errors
    /// When the model would have to call a tool in each message, and nothing could end its work.
    pub(crate) fn react(&self, max_steps: Option<u32>) -> Result<ReactSettings, CliError> {
        let form = self.form()?;
        let choice = self.choice();
        if choice.must_call() && !self.terminate {
            let name = self.tool_choice.as_deref().unwrap_or_default();
            let is_named = matches!(choice, ToolChoice::Allowed(_));
            if is_named && name != TERMINATE && !BUILT_IN.contains(&name) {
                let known = BUILT_IN.join(", ");
                return Err(CliError::Usage(format!(
                    "--tool-choice {name}: no built-in tool has this name, only {known}; a tool of the memory or of a \
                     server needs --terminate"
                )));
            }
            return Err(CliError::Usage(format!(
                "--tool-choice {name} needs --terminate: if the model has to call a tool in each message, \
                 its words do not end its work"
            )));
        }
        let max_observe = self.max_observe.map(|most| most as usize);
        Ok(ReactSettings::default()
            .with_max_steps(max_steps)
            .with_calls(form)
            .with_tool_choice(choice)
            .with_terminate(self.terminate)
            .with_max_observe(max_observe))
    }

    /// How the model writes its calls.
    ///
    /// # Errors
    /// When there is no such form.
    pub(crate) fn form(&self) -> Result<CallForm, CliError> {
        let Some(name) = &self.call_form else { return Ok(CallForm::default()) };
        let unknown = || CliError::Usage(format!("unknown call form {name:?}"));
        CallForm::from_name(name).ok_or_else(unknown)
    }

    /// Whether plans are to be streamed, if a switch says so.
    pub(crate) fn stream_plans(&self) -> Option<bool> {
        self.says_of_plans().then_some(self.stream_plans)
    }

    /// Whether either of the two switches is given.
    fn says_of_plans(&self) -> bool {
        self.stream_plans || self.no_stream_plans
    }

    fn choice(&self) -> ToolChoice {
        match self.tool_choice.as_deref() {
            None | Some("auto") => ToolChoice::Auto,
            Some("none") => ToolChoice::ReplyOnly,
            Some("required") => ToolChoice::Required,
            Some(name) => {
                let mut names = vec![name.to_owned(), TERMINATE.to_owned()];
                names.sort_unstable();
                ToolChoice::Allowed(AllowedTools { names, required: true, preferred: None })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::FromArgMatches as _;

    /// A flag beats the settings either way, and the later of two flags, as that of a later turn, the earlier.
    #[test]
    fn the_last_word_says_whether_plans_are_streamed() {
        let of = |flags: &[&str]| {
            let command = StepSettings::augment_args(clap::Command::new("run"));
            let given = command.try_get_matches_from([&["run"], flags].concat()).unwrap();
            StepSettings::from_arg_matches(&given).unwrap()
        };
        let (yes, no) = (&["--stream-plans"][..], &["--no-stream-plans"][..]);
        let in_force = |flags, said: bool| of(flags).stream_plans().unwrap_or(said);
        let expected =
            [(&[][..], false, false), (&[], true, true), (yes, false, true), (no, true, false)];
        for (flags, said, is_so) in expected {
            assert_eq!(in_force(flags, said), is_so, "{flags:?} over {said}");
        }
        assert!(in_force(&["--no-stream-plans", "--stream-plans"], false));
        assert!(!in_force(&["--stream-plans", "--no-stream-plans"], true));
        // Without a switch, the settings decide, anew for each turn.
        let next = |first: &[&str], next: &[&str]| {
            let first = of(first).with_defaults(&AgentSettings::default());
            first.with_newer(of(next)).stream_plans()
        };
        assert_eq!(
            [next(no, &[]), next(no, yes), next(yes, no), next(&[], &[])],
            [Some(false), Some(true), Some(false), None]
        );
    }

    #[test]
    fn a_choice_is_read_and_one_that_never_ends_is_refused() {
        let of = |choice: &str, terminate| StepSettings {
            tool_choice: Some(choice.to_owned()),
            terminate,
            ..StepSettings::default()
        };
        let react = |choice, terminate| of(choice, terminate).react(None).map(|r| r.tool_choice);
        assert_eq!(react("auto", false).unwrap(), ToolChoice::Auto);
        assert_eq!(react("none", false).unwrap(), ToolChoice::ReplyOnly);
        assert_eq!(react("required", true).unwrap(), ToolChoice::Required);
        let ToolChoice::Allowed(allowed) = react("file_read", true).unwrap() else { panic!() };
        assert_eq!(
            (allowed.names, allowed.required),
            (vec!["file_read".into(), "terminate".into()], true)
        );
        for choice in ["required", "file_read", "terminate"] {
            let error = react(choice, false).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("--tool-choice {choice} needs --terminate")),
                "{error}"
            );
        }
        // A family is not the name of a tool.
        for choice in ["file_raed", "file"] {
            let error = react(choice, false).unwrap_err().to_string();
            let told = format!(
                "--tool-choice {choice}: no built-in tool has this name, only ask_person, "
            );
            assert!(error.starts_with(&told) && error.contains("file_read"), "{error}");
        }
    }
}

//! The settings of going step by step.

use foldback_core::Budget;
use foldback_llm::{Availability, Sampling, ToolChoice};

/// The settings of going step by step.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReactSettings {
    /// The most requests to the model; `None` for any number. The task's
    /// [`SpendTracker`](crate::SpendTracker) limits what they may take in total.
    pub max_steps: Option<u32>,
    /// How large a prompt may be, including tools.
    pub prompt: Budget,
    /// How the model writes its calls.
    pub calls: CallForm,
    /// Whether the model may call tools. A call that it may not make is refused, and it learns so; if it has
    /// to call one, an answer in words does not end the run, so give it [`terminate`](Self::terminate) for
    /// that.
    pub tool_choice: ToolChoice,
    /// The tools that the model may call in each state of the run, instead of
    /// [`tool_choice`](Self::tool_choice). An event is the name of a tool, and happens when a call of that tool
    /// succeeds. The declared tools stay the same, and so does a provider's cache of them and of the system
    /// prompt. Anthropic reads the messages again when the choice changes.
    ///
    /// If a state allows no tool (`reply_only`), the model's next message ends the run, and also if it allows
    /// only tools of the context's policy that are not declared yet. Tools in an
    /// [`<execute_tools>`](CallForm::ExecuteTools) block are not declared, and not masked.
    ///
    /// ```
    /// use foldback_agent::ReactSettings;
    /// use foldback_llm::{Availability, AvailabilityState, Mask};
    ///
    /// // The order is looked up before anything is refunded.
    /// let lookup = AvailabilityState::new(Mask::required().family("order_"))
    ///     .with_event("order_find", "refund");
    /// let refund = AvailabilityState::new(Mask::auto());
    /// let table = Availability::new("lookup", [("lookup", lookup), ("refund", refund)]);
    /// let settings = ReactSettings::default().with_availability(table);
    /// # assert!(settings.availability.is_some());
    /// ```
    pub availability: Option<Availability>,
    /// Whether the model has a tool `terminate`, by which it ends the run and says how it went.
    pub terminate: bool,
    /// The most characters of a result that the model is shown, in a context whose policy has no tools to look
    /// back with. The rest can be read with `observation_read`, which is then declared. Policies that handle
    /// long results themselves are given them whole.
    pub max_observe: Option<usize>,
    /// How often the model may repeat the same text and calls before it is asked to change its strategy; it is
    /// told once, until it does something else.
    pub stuck_after: Option<u32>,
    /// How many messages in a row may be [such repetitions](Self::stuck_after) before the run ends, so that a
    /// model that goes round in circles ends it. A resumed run may have as many again.
    pub max_repetitions: Option<u32>,
    /// How many unusable answers in a row the model may give before the run ends.
    pub max_unusable: u32,
    /// How answers are sampled.
    pub sampling: Sampling,
}

impl ReactSettings {
    /// A usual limit for [`max_observe`](Self::max_observe).
    pub const MAX_OBSERVE: usize = 10_000;

    /// Sets the most requests to the model; `None` for any number.
    #[must_use]
    pub fn with_max_steps(self, max_steps: impl Into<Option<u32>>) -> Self {
        Self { max_steps: max_steps.into(), ..self }
    }

    /// Sets the largest size of prompts.
    #[must_use]
    pub fn with_prompt(self, prompt: Budget) -> Self {
        Self { prompt, ..self }
    }

    /// Sets how the model writes its calls.
    #[must_use]
    pub fn with_calls(self, calls: CallForm) -> Self {
        Self { calls, ..self }
    }

    /// Sets whether the model may call tools.
    #[must_use]
    pub fn with_tool_choice(self, tool_choice: ToolChoice) -> Self {
        Self { tool_choice, ..self }
    }

    /// Sets the tools that may be called in each state of the run; `None` for one choice throughout.
    #[must_use]
    pub fn with_availability(self, availability: impl Into<Option<Availability>>) -> Self {
        Self { availability: availability.into(), ..self }
    }

    /// Sets whether the model has the tool `terminate`.
    #[must_use]
    pub fn with_terminate(self, terminate: bool) -> Self {
        Self { terminate, ..self }
    }

    /// Sets the most characters of a [result](Self::max_observe) that are shown; `None` for all of them.
    #[must_use]
    pub fn with_max_observe(self, max_observe: impl Into<Option<usize>>) -> Self {
        Self { max_observe: max_observe.into(), ..self }
    }

    /// Sets how many [repetitions](Self::stuck_after) are tolerated; `None` for any number.
    #[must_use]
    pub fn with_stuck_after(self, stuck_after: impl Into<Option<u32>>) -> Self {
        Self { stuck_after: stuck_after.into(), ..self }
    }

    /// Sets how many repetitions in a row end the run; `None` for any number.
    #[must_use]
    pub fn with_max_repetitions(self, max_repetitions: impl Into<Option<u32>>) -> Self {
        Self { max_repetitions: max_repetitions.into(), ..self }
    }

    /// Sets how many unusable answers in a row end the run.
    #[must_use]
    pub fn with_max_unusable(self, max_unusable: u32) -> Self {
        Self { max_unusable, ..self }
    }

    /// Sets how answers are sampled.
    #[must_use]
    pub fn with_sampling(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }
}

impl Default for ReactSettings {
    /// Any number of steps, tool calls of the chat API at the model's choice, whole results, a note when it
    /// does the same for the third time and the end after 30 such times, three unusable answers in a row.
    fn default() -> Self {
        Self {
            max_steps: None,
            prompt: Budget::default(),
            calls: CallForm::default(),
            tool_choice: ToolChoice::default(),
            availability: None,
            terminate: false,
            max_observe: None,
            stuck_after: Some(2),
            max_repetitions: Some(30),
            max_unusable: 3,
            sampling: Sampling::default(),
        }
    }
}

impl CallForm {
    /// Every form, the default first.
    pub const ALL: [Self; 2] = [Self::Native, Self::ExecuteTools];

    /// Returns the name as it is given in settings: `native`, `execute-tools`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::ExecuteTools => "execute-tools",
        }
    }

    /// Returns the form with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }
}

/// How the model writes its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallForm {
    /// As tool calls of the chat API.
    #[default]
    Native,
    /// As an `<execute_tools>` block in its message, which may plan several steps. The instructions explain
    /// the form and the tools. Tool calls of the chat API work as well.
    ///
    /// A block is run if it begins a line, indented by less than four columns, outside of code fences and of
    /// the model's own `<think>`. After other words, as in a quotation, it is not. A text that the model
    /// repeats at the beginning of a line cannot be distinguished from its own; use an
    /// [`Approver`](crate::Approver) for tools that can do harm.
    ExecuteTools,
}

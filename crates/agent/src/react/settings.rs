//! How an agent goes step by step.

use foldback_core::Budget;
use foldback_llm::{Availability, Sampling, ToolChoice};

/// How an agent goes step by step.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReactSettings {
    /// How often the model is asked at most; `None` for any number. What it may take in sum is the bound of
    /// the task's [`SpendTracker`](crate::SpendTracker).
    pub max_steps: Option<u32>,
    /// How large a prompt may be, tools included.
    pub prompt: Budget,
    /// How the model writes its calls.
    pub calls: CallForm,
    /// Whether the model may call tools. A call that it may not make is not made, and it is told so; where
    /// it has to call one, an answer in words does not end the run: give it
    /// [`terminate`](Self::terminate) to end it by.
    pub tool_choice: ToolChoice,
    /// Which tools the model may call in which state of the run, in place of
    /// [`tool_choice`](Self::tool_choice). An event is the name of a tool: it happens when a call of it
    /// succeeded. The declared tools stay the same, and so does what a provider has cached of them and of the
    /// system prompt. Anthropic reads the messages anew when the choice is another.
    ///
    /// Where a state allows no tool (`reply_only`), the model's next message ends the run; so it does where
    /// those that it allows are of the context's policy, which does not declare them yet. Tools in an
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
    /// Whether the model is given a tool `terminate`, by which it ends the run and says how it went.
    pub terminate: bool,
    /// How many characters of a result the model is shown at most, in a context whose policy has no tools
    /// to look back with. The rest is one call of `observation_read` away, which is declared with it.
    /// Policies that look after long results themselves are given them whole.
    pub max_observe: Option<usize>,
    /// How often the model may have said and called the same before, until it is told to change its
    /// strategy; once, until it does something else.
    pub stuck_after: Option<u32>,
    /// How many messages in a row may be [such repetitions](Self::stuck_after) before the run ends: a model
    /// that goes round in a circle ends it, where nothing else does. A run that is gone on with has as many
    /// again.
    pub max_repetitions: Option<u32>,
    /// How often in a row the model may answer what cannot be used, before the run ends.
    pub max_unusable: u32,
    /// How answers are drawn.
    pub sampling: Sampling,
}

impl ReactSettings {
    /// A usual bound for [`max_observe`](Self::max_observe).
    pub const MAX_OBSERVE: usize = 10_000;

    /// The same, asking the model at most this often; `None` for any number of times.
    #[must_use]
    pub fn with_max_steps(self, max_steps: impl Into<Option<u32>>) -> Self {
        Self { max_steps: max_steps.into(), ..self }
    }

    /// The same, with prompts of at most this size.
    #[must_use]
    pub fn with_prompt(self, prompt: Budget) -> Self {
        Self { prompt, ..self }
    }

    /// The same, with calls written in this form.
    #[must_use]
    pub fn with_calls(self, calls: CallForm) -> Self {
        Self { calls, ..self }
    }

    /// The same, with this choice of tools.
    #[must_use]
    pub fn with_tool_choice(self, tool_choice: ToolChoice) -> Self {
        Self { tool_choice, ..self }
    }

    /// The same, with tools that may be called by the state of the run; `None` for one choice throughout.
    #[must_use]
    pub fn with_availability(self, availability: impl Into<Option<Availability>>) -> Self {
        Self { availability: availability.into(), ..self }
    }

    /// The same, with or without the tool `terminate`.
    #[must_use]
    pub fn with_terminate(self, terminate: bool) -> Self {
        Self { terminate, ..self }
    }

    /// The same, showing at most this many characters of a [result](Self::max_observe); `None` for
    /// all of them.
    #[must_use]
    pub fn with_max_observe(self, max_observe: impl Into<Option<usize>>) -> Self {
        Self { max_observe: max_observe.into(), ..self }
    }

    /// The same, tolerating this many [repetitions](Self::stuck_after); `None` for any number.
    #[must_use]
    pub fn with_stuck_after(self, stuck_after: impl Into<Option<u32>>) -> Self {
        Self { stuck_after: stuck_after.into(), ..self }
    }

    /// The same, ending after this many repetitions in a row; `None` for any number.
    #[must_use]
    pub fn with_max_repetitions(self, max_repetitions: impl Into<Option<u32>>) -> Self {
        Self { max_repetitions: max_repetitions.into(), ..self }
    }

    /// The same, ending after this many unusable answers in a row.
    #[must_use]
    pub fn with_max_unusable(self, max_unusable: u32) -> Self {
        Self { max_unusable, ..self }
    }

    /// The same, with answers drawn in this way.
    #[must_use]
    pub fn with_sampling(self, sampling: Sampling) -> Self {
        Self { sampling, ..self }
    }
}

impl Default for ReactSettings {
    /// Any number of steps, calls of the chat API as the model likes, results whole, a word when it does
    /// the same for the third time and the end when it has done so 30 times, three unusable answers in a
    /// row.
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

    /// The name as it is given: `native`, `execute-tools`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::ExecuteTools => "execute-tools",
        }
    }

    /// The form of this name.
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
    /// As an `<execute_tools>` block in its message, which may plan several steps. How that is done, and
    /// the tools, are told in the instructions. Tool calls of the chat API work as well.
    ///
    /// A block is run where it begins a line, indented by less than four columns, outside of code fences
    /// and of the model's own `<think>`. Behind other words, as somebody's words are quoted, it is not. A text that the model
    /// repeats at the beginning of a line cannot be told from its own; tools that do harm are what an
    /// [`Approver`](crate::Approver) is for.
    ExecuteTools,
}

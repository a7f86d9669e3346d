//! What a model's chat template can express.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What a model's chat template can express, where templates differ. What a template cannot express is
/// rewritten, and nothing is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChatTemplate {
    /// Which call ids it accepts.
    pub call_ids: CallIds,
    /// Whether a message may have several calls; otherwise they follow one another, each with its result.
    pub parallel_calls: bool,
    /// Which order of speakers it accepts.
    pub turns: Turns,
    /// Where instructions may be.
    pub system: SystemRole,
}

impl Default for ChatTemplate {
    /// Returns a template that can express everything.
    fn default() -> Self {
        Self {
            call_ids: CallIds::Given,
            parallel_calls: true,
            turns: Turns::Any,
            system: SystemRole::Anywhere,
        }
    }
}

/// What is known about a chat template. For the rest, the server decides, or else it is taken to be possible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "`ChatTemplate` documents each")]
pub struct GivenTemplate {
    pub call_ids: Option<CallIds>,
    pub parallel_calls: Option<bool>,
    pub turns: Option<Turns>,
    pub system: Option<SystemRole>,
}

impl GivenTemplate {
    /// Returns the template, with unknown settings taken from another.
    #[must_use]
    pub fn or(self, other: ChatTemplate) -> ChatTemplate {
        ChatTemplate {
            call_ids: self.call_ids.unwrap_or(other.call_ids),
            parallel_calls: self.parallel_calls.unwrap_or(other.parallel_calls),
            turns: self.turns.unwrap_or(other.turns),
            system: self.system.unwrap_or(other.system),
        }
    }
}

impl From<ChatTemplate> for GivenTemplate {
    fn from(template: ChatTemplate) -> Self {
        let ChatTemplate { call_ids, parallel_calls, turns, system } = template;
        Self {
            call_ids: Some(call_ids),
            parallel_calls: Some(parallel_calls),
            turns: Some(turns),
            system: Some(system),
        }
    }
}

/// Which call ids a chat template accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallIds {
    /// Any: they are sent as the model gave them.
    #[default]
    Given,
    /// Nine letters and digits, as Mistral's templates require: any other id is replaced by such an id,
    /// the same in each request.
    Nine,
}

impl CallIds {
    /// Returns its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Nine => "nine",
        }
    }
}

/// Which order of speakers a chat template accepts, apart from the results of tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Turns {
    /// Any.
    #[default]
    Any,
    /// User and model alternate: a user's text after a tool's result becomes part of that result, and
    /// consecutive messages of one side are merged.
    Alternating,
}

impl Turns {
    /// Returns its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Alternating => "alternating",
        }
    }
}

/// Where system messages may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SystemRole {
    /// Anywhere.
    #[default]
    Anywhere,
    /// At the beginning; later instructions are put in the user's messages.
    First,
    /// Nowhere: all instructions are put in the user's messages.
    Never,
}

impl SystemRole {
    /// Returns its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anywhere => "anywhere",
            Self::First => "first",
            Self::Never => "never",
        }
    }
}

/// A family of models whose chat templates have the same limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Mistral, Ministral, Magistral, Devstral.
    Mistral,
    /// Llama 3.1 to 3.3.
    Llama,
    /// Gemma 2.
    Gemma,
    /// Qwen 2.5 to 3.5.
    Qwen,
    /// Hermes, gpt-oss, Granite, DeepSeek and all others.
    Other,
}

impl Family {
    /// All values.
    pub const ALL: [Self; 5] = [Self::Mistral, Self::Llama, Self::Gemma, Self::Qwen, Self::Other];

    /// Returns its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mistral => "mistral",
            Self::Llama => "llama",
            Self::Gemma => "gemma",
            Self::Qwen => "qwen",
            Self::Other => "other",
        }
    }

    /// Returns what its templates can express.
    #[must_use]
    pub fn template(self) -> ChatTemplate {
        let any = ChatTemplate::default();
        let first = ChatTemplate { system: SystemRole::First, ..any };
        match self {
            Self::Mistral => {
                ChatTemplate { call_ids: CallIds::Nine, turns: Turns::Alternating, ..first }
            }
            Self::Llama => ChatTemplate { parallel_calls: false, ..first },
            Self::Gemma => {
                ChatTemplate { turns: Turns::Alternating, system: SystemRole::Never, ..any }
            }
            Self::Qwen => first,
            Self::Other => any,
        }
    }
}

/// The error texts of templates that refuse late instructions.
const LATE_REFUSED: [&str; 4] = [
    "system message must be at the beginning",
    "only user, assistant and tool roles",
    "only user and assistant roles",
    "invalid message role",
];

impl ChatTemplate {
    /// Derives what a template can express from its own text: templates say in words what they refuse.
    ///
    /// ```
    /// use foldback_providers::{CallIds, ChatTemplate, Turns};
    ///
    /// let text = "{{ raise_exception('Tool call IDs should be alphanumeric strings with length 9!') }}";
    /// assert_eq!(ChatTemplate::read(text).call_ids, CallIds::Nine);
    /// assert_eq!(ChatTemplate::read("{{ messages }}").turns, Turns::Any);
    /// ```
    #[must_use]
    pub fn read(text: &str) -> Self {
        let text = text.to_lowercase();
        let says = |words: &str| text.contains(words);
        Self {
            call_ids: if says("with length 9") { CallIds::Nine } else { CallIds::Given },
            parallel_calls: !says("single tool-calls at once") && !says("single tool call at once"),
            turns: if says("must alternate") { Turns::Alternating } else { Turns::Any },
            system: if says("system role not supported") {
                SystemRole::Never
            } else if LATE_REFUSED.iter().any(|words| says(words)) {
                SystemRole::First
            } else {
                SystemRole::Anywhere
            },
        }
    }

    /// Returns whether a template, by its own text, cannot express tools, so that they can only be sent
    /// as text: it does not handle results of tools, or fails on each tool with a list argument (Command
    /// R+ looks for a method named `items` in a list's schema).
    #[must_use]
    pub fn knows_no_tools(text: &str) -> bool {
        let text = text.to_lowercase();
        let no_results = text.contains("must alternate") && !text.contains("tool");
        no_results || text.contains("(json_spec.items)")
    }

    /// Returns the settings that describe it, a line each; none for a template that can express everything.
    #[must_use]
    pub fn settings(self) -> Vec<String> {
        let any = Self::default();
        let mut lines = Vec::new();
        if self.call_ids != any.call_ids {
            lines.push(format!("call_ids = \"{}\"", self.call_ids.name()));
        }
        if self.parallel_calls != any.parallel_calls {
            lines.push(format!("parallel_calls = {}", self.parallel_calls));
        }
        if self.turns != any.turns {
            lines.push(format!("turns = \"{}\"", self.turns.name()));
        }
        if self.system != any.system {
            lines.push(format!("system = \"{}\"", self.system.name()));
        }
        lines
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

//! What an agent is given: in a small window, few tools, short instructions and small results.

use foldback::{Options, ViewConfig};
use foldback_reference_agent::{ReadyAgent, ReferenceAgent};

/// A smaller window has no room for all tools and instructions, which take about 3,200 tokens.
const SMALL: usize = 8_192;

/// The families of built-in tools that an agent has in a small window.
const FEW: [&str; 2] = ["file", "shell"];

/// A result is stored outside if it takes more than one part in `OFFLOADED_PART` of the window; while it is new, it is shown
/// whole up to one part in `FRESH_PART`.
const OFFLOADED_PART: usize = 32;
const FRESH_PART: usize = 8;

/// The name for all tools.
pub(super) const ALL: &str = "all";

/// What an agent is given, from the flags and the model's window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outfit {
    tools: Tools,
    /// Whether its instructions are the short ones.
    is_short: bool,
    window: Option<usize>,
}

/// The tools of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Tools {
    #[default]
    All,
    /// A few of the built-in ones, and all that it is given.
    Few,
    /// Those of these families and names.
    Only(Vec<String>),
}

impl Outfit {
    /// What was asked for (`all` for every tool), or else what the window has room for.
    pub(crate) fn new(asked: &[String], window: Option<usize>) -> Self {
        let is_small = window.is_some_and(|window| window < SMALL);
        let tools = match asked {
            [] if is_small => Tools::Few,
            [] => Tools::All,
            asked if asked.iter().any(|name| name == ALL) => Tools::All,
            asked => Tools::Only(asked.to_vec()),
        };
        Self { tools, is_short: is_small, window }
    }

    /// Equips the agent.
    pub(crate) fn fit(&self, agent: ReferenceAgent) -> ReferenceAgent {
        let agent = match &self.tools {
            Tools::All => agent,
            Tools::Few => agent.with_built_in_families(FEW),
            Tools::Only(tools) => agent.with_tool_families(tools.iter().map(String::as_str)),
        };
        if self.is_short { agent.with_short_instructions() } else { agent }
    }

    /// Adds this view, and results that fit the window, to the store's options.
    pub(crate) fn options(&self, options: Options, view: ViewConfig) -> Options {
        let Some(window) = self.window else { return options.with_view(view) };
        let offload = options.offload.tokens.min(window / OFFLOADED_PART);
        let policy = options.offload.clone().with_tokens(offload);
        let view = view.with_most_fresh_tokens((window / FRESH_PART) as u64);
        options.with_offload(policy).with_view(view)
    }

    /// What a small window has changed, in a sentence for the user.
    pub(crate) fn note(&self, agent: &ReadyAgent) -> Option<String> {
        let window = self.window.filter(|_| self.is_short)?;
        let mut note = format!("the model's window has {window} tokens: instructions are short");
        if self.tools == Tools::Few && !agent.left_out().is_empty() {
            let others = agent.left_out().join(", ");
            note += &format!(", and {others} are left out (--tools all declares them)");
        }
        Some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_window_has_few_tools_unless_more_are_asked_for() {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let of = |asked: &[&str], window| {
            let asked: Vec<String> = owned(asked);
            let Outfit { tools, is_short, .. } = Outfit::new(&asked, window);
            (tools, is_short)
        };
        assert_eq!(of(&[], None), (Tools::All, false));
        assert_eq!(of(&[], Some(32_768)), (Tools::All, false));
        assert_eq!(of(&[], Some(2_048)), (Tools::Few, true));
        assert_eq!(of(&["all"], Some(2_048)), (Tools::All, true));
        let asked = ["file", "shell"];
        assert_eq!(of(&asked, None), (Tools::Only(owned(&asked)), false));
    }

    #[test]
    fn results_fit_the_window() {
        let usual = ViewConfig::default();
        let fitted = |window| Outfit::new(&[], window).options(Options::default(), usual.clone());
        assert_eq!(fitted(None).offload.tokens, Options::default().offload.tokens);
        assert_eq!(fitted(Some(131_072)).offload.tokens, Options::default().offload.tokens);
        assert_eq!(fitted(Some(131_072)).view.as_ref(), Some(&usual));
        assert_eq!(fitted(Some(2_048)).offload.tokens, 64);
        assert_ne!(fitted(Some(2_048)).view.as_ref(), Some(&usual));
    }
}

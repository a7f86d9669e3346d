//! What an agent is given where the model's window is small: few tools, a short head, small results.

use foldback::{Options, ViewConfig};
use foldback_reference_agent::ReferenceAgent;

/// A window of fewer tokens has no room for all tools and instructions, which take some 3,200.
const SMALL: usize = 8_192;

/// The families of tools that an agent in a small window has.
const FEW: [&str; 2] = ["file", "shell"];

/// A result is stored outside when it takes more than one of so many parts of the window, and shown whole
/// while it is new up to one of fewer parts.
const OFFLOADED_PART: usize = 32;
const FRESH_PART: usize = 8;

/// What an agent is given, by the flags and the model's window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outfit {
    /// The families of tools that it has; all of them where nothing is said.
    pub(crate) tools: Option<Vec<String>>,
    /// Whether its instructions are the short ones.
    pub(crate) is_short: bool,
    window: Option<usize>,
}

impl Outfit {
    /// What was asked for (`all` for every tool), else what the window has room for.
    pub(crate) fn new(asked: &[String], window: Option<usize>) -> Self {
        let is_small = window.is_some_and(|window| window < SMALL);
        let tools = match asked {
            [] if is_small => Some(FEW.map(str::to_owned).to_vec()),
            [] => None,
            asked if asked.iter().any(|name| name == "all") => None,
            asked => Some(asked.to_vec()),
        };
        Self { tools, is_short: is_small, window }
    }

    /// The agent, fitted out.
    pub(crate) fn fit(&self, agent: ReferenceAgent) -> ReferenceAgent {
        let agent = match &self.tools {
            Some(tools) => agent.with_tool_families(tools.iter().map(String::as_str)),
            None => agent,
        };
        if self.is_short { agent.with_short_instructions() } else { agent }
    }

    /// The store's options, with this view and results that fit the window.
    pub(crate) fn options(&self, options: Options, view: ViewConfig) -> Options {
        let Some(window) = self.window else { return options.with_view(view) };
        let offload = options.offload.tokens.min(window / OFFLOADED_PART);
        let policy = options.offload.clone().with_tokens(offload);
        let view = view.with_most_fresh_tokens((window / FRESH_PART) as u64);
        options.with_offload(policy).with_view(view)
    }

    /// What whoever watches is told of it.
    pub(crate) fn note(&self) -> Option<String> {
        let window = self.window.filter(|_| self.is_short)?;
        let tools = match &self.tools {
            Some(tools) => format!("tools of {} only (--tools all declares all)", tools.join(", ")),
            None => "all tools".to_owned(),
        };
        Some(format!("the model's window has {window} tokens: {tools}, and short instructions"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_window_has_few_tools_unless_more_are_asked_for() {
        let names = |asked: &[&str], window| {
            let asked: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
            let Outfit { tools, is_short, .. } = Outfit::new(&asked, window);
            (tools.map(|tools| tools.join(",")), is_short)
        };
        let few = Some("file,shell".to_owned());
        assert_eq!(names(&[], None), (None, false));
        assert_eq!(names(&[], Some(32_768)), (None, false));
        assert_eq!(names(&[], Some(2_048)), (few.clone(), true));
        assert_eq!(names(&["all"], Some(2_048)), (None, true));
        assert_eq!(names(&["file", "shell"], None), (few, false));
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

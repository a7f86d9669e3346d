//! `<execute_tools>`: calls in `<parallel>` and `<sequential>`, as text in tags.
//!
//! The tags look like XML, and what stands in them is whatever the tools read: Python with `<` and
//! `&&`, queries with apostrophes, JSON. So the scanner is not an XML parser. Its rules:
//!
//! **The block.** `<execute_tools>` .. `</execute_tools>` anywhere in the text. A tag directly behind a
//! backtick, or one that is followed by text and never closed around a call, is a mention. Code fences
//! around a block are passed over; but when there is a block outside of fences, those in fences are
//! examples. Two blocks are an error, not a choice. A block may hold lines like the end of its fence; when
//! it is not closed within it, it may go on up to the next opening tag.
//!
//! **Inside** stand `<parallel>`, `<sequential>` and calls, in any nesting. Several items directly in
//! the block run one after the other. Comments are passed over; text before a tag is passed over and
//! noted.
//!
//! **A call** is `<server><tool>body</tool></server>`, one tool a server tag. The body ends at the first
//! `</tool></server>` (with space between) that does not belong to a `<server><tool>` inside the body,
//! and behind which the structure goes on. So a literal `</tool>`, in a string or not, is body, and so is
//! a whole call that the body quotes. When `</tool></server>` is followed by text, nobody can say where
//! the call ends: an error; so is a body that quotes the opening tags without the closing ones. In
//! `<![CDATA[..]]>` nothing is looked at.
//!
//! **The body's text** is that with CDATA opened and entities decoded, once: `&amp;lt;` is `&lt;`. A `&`
//! that begins no known entity stays. Empty lines at the beginning and space at the end go, and on a
//! single line the space before it; inside CDATA everything stays.
//!
//! **Arguments.** A JSON object binds by name, unless it can be meant as text: its tool has a primary
//! argument, its schema names parameters, and none of the keys is one of them. A reference may stand bare
//! where a value does. So do child elements that are all named
//! like parameters. Any other text is the tool's primary argument: the declared one, else the only
//! parameter, else the only required one. No text is no arguments. An object nested deeper than 128 levels
//! is refused, so are groups; so is a block in which more than a million pairs of calls wait for each other.
//!
//! **Nothing runs of a block that is not closed.** That is why calls come out when their block has
//! closed, and not before.

mod arguments;
mod block;
mod body;
mod lower;
mod nesting;
mod places;
mod prose;
mod writer;

pub use writer::{Expressed, write_execute_tools};

use crate::{Catalog, Finding, FindingKind, Findings, ParseError, Plan, Position, StepId};
use places::Places;
use prose::Located;
use std::collections::BTreeMap;

/// The block of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecuteTools {
    /// Its calls: step N is the call at index N - 1.
    pub plan: Plan,
    /// What was noticed. With an error among it, the plan must not run.
    pub findings: Findings,
    /// Where each call begins in the text.
    pub places: BTreeMap<StepId, Position>,
    /// The bytes of the text that the block takes, tags included.
    pub range: std::ops::Range<usize>,
}

/// Reads an answer. The catalog says which tools a server has, and what their bodies are for. A block
/// outside of code fences counts before one inside; a second one is an error among the findings.
///
/// # Errors
/// [`ParseError::NoPlan`] when there is no block in the text; others when it breaks off, or when it
/// cannot be said where a call ends.
///
/// ```
/// use foldback_planner::{Catalog, StepId, parse_execute_tools};
///
/// let text = "Let me look. <execute_tools><sequential>
///     <deepsearch_server><search>How old is Elon Musk</search></deepsearch_server>
///     <microsandbox_server><execute_python>age = {results[0].data}; print(age < 99)</execute_python>
///     </microsandbox_server>
/// </sequential></execute_tools>";
/// let block = parse_execute_tools(text, &Catalog::default())?;
/// assert_eq!(block.plan.steps.len(), 2);
/// assert_eq!(block.plan.steps[1].after, [StepId(1)]);
/// # Ok::<(), foldback_planner::ParseError>(())
/// ```
pub fn parse_execute_tools(text: &str, catalog: &Catalog) -> Result<ExecuteTools, ParseError> {
    let mut blocks = prose::blocks(text);
    let bare = blocks.iter().filter(|block| !block.is_fenced).count();
    let mut examples = Vec::new();
    if bare > 0 {
        blocks.retain(|block| {
            if block.is_fenced {
                examples.push(block.at);
            }
            !block.is_fenced
        });
    }
    let mut blocks = blocks.into_iter();
    let Some(Located { at, block, .. }) = blocks.next() else {
        return Err(ParseError::NoPlan {
            expected: "`<execute_tools>` with calls `<server><tool>..</tool></server>`",
        });
    };
    let mut read = lower::lower(text, at, block?, catalog);
    let mut places = Places::new(text);
    for example in examples {
        let message = "the block in a code fence was taken for an example";
        let finding = Finding::of_plan(FindingKind::Leniency, message);
        read.findings.push(finding.at(places.of(example)));
    }
    for Located { at, .. } in blocks {
        let message = "there is a second block in the text; expected one that holds all calls";
        let finding = Finding::of_plan(FindingKind::Syntax, message);
        read.findings.push(finding.at(places.of(at)));
    }
    Ok(read)
}

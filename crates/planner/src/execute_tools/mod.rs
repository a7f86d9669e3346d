//! `<execute_tools>`: calls in `<parallel>` and `<sequential>`, as text in tags.
//!
//! The tags look like XML, but they contain whatever the tools read: Python with `<` and `&&`, queries
//! with apostrophes, JSON. So the scanner is not an XML parser. Its rules:
//!
//! **The block.** `<execute_tools>` .. `</execute_tools>` anywhere in the text. A tag directly after a
//! backtick, or one that is followed by text and never closed around a call, is only a mention. Code
//! fences around a block are ignored; but if there is a block outside fences, those inside are
//! examples. Two blocks are an error, not a choice. A block may contain lines that look like the end of
//! its fence. If it is not closed within the fence, it may continue up to the next opening tag.
//!
//! **Inside** are `<parallel>`, `<sequential>` and calls, nested in any way. Several items directly in
//! the block run one after the other. Comments are skipped; text before a tag is skipped and noted.
//!
//! **A call** is `<server><tool>body</tool></server>`, with one tool per server tag. The body ends at
//! the first `</tool></server>` (with space between) that does not belong to a `<server><tool>` inside
//! the body, and after which the structure continues. So a literal `</tool>`, in a string or not, is
//! part of the body, and so is a whole call that the body quotes. If `</tool></server>` is followed by
//! text, the end of the call is ambiguous: an error. So is a body that quotes the opening tags without
//! the closing ones. Nothing inside `<![CDATA[..]]>` is examined.
//!
//! **The body's text** is the body with CDATA opened and entities decoded once: `&amp;lt;` is `&lt;`. A
//! `&` that begins no known entity stays. Empty lines at the beginning and white space at the end are
//! removed, and on a single line the leading white space too; inside CDATA everything stays.
//!
//! **Arguments.** A JSON object binds by name, unless it can be meant as text: its tool has a primary
//! argument, its schema names parameters, and none of the keys is one of them. In place of a value a
//! reference may be bare. Child elements also bind by name if all of them are named like parameters.
//! Any other text is the tool's primary argument: the declared one, else the only parameter, else the
//! only required one. No text means no arguments. An object nested deeper than 128 levels is refused,
//! and so are groups nested that deep; so is a block in which one call waits for the other in more than
//! a million pairs.
//!
//! **Nothing runs from a block that is not closed.** That is why calls are returned when their block
//! has closed, and not before.

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

/// The block in an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecuteTools {
    /// Its calls: step N is the call at index N - 1.
    pub plan: Plan,
    /// The findings. If one of them is an error, the plan must not run.
    pub findings: Findings,
    /// The position in the text at which each call begins.
    pub places: BTreeMap<StepId, Position>,
    /// The bytes of the text that the block takes, tags included.
    pub range: std::ops::Range<usize>,
}

/// Parses an answer. The catalog says which tools a server has, and what their bodies mean. A block
/// outside code fences counts before one inside; a second one is an error among the findings.
///
/// # Errors
/// [`ParseError::NoPlan`] if there is no block in the text; other errors if the block is truncated or
/// the end of a call is ambiguous.
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

//! What an answer may be, as a grammar: text, and calls of the allowed tools with arguments that fit
//! their schemas. A name that is not allowed cannot be generated.
//!
//! It is GBNF as llama.cpp reads it, limited to what xgrammar (vLLM) reads as well: names of rules
//! are letters and digits, and a rule is one line. The tests check it with a reader of GBNF of their own.

#[cfg(test)]
mod gbnf;
mod rules;
mod schema;
#[cfg(test)]
mod tests;

use super::special::quoted_name;
use super::{CALL_BEGIN, CALL_END, NAME_BEGIN};
use foldback_core::ToolDefinition;
use rules::{Rules, literal};

/// Returns the grammar of an answer that may call these tools, or must call one.
pub(super) fn grammar(tools: &[&ToolDefinition], required: bool) -> String {
    let mut rules = Rules::default();
    let calls: Vec<String> = tools.iter().map(|tool| call(tool, &mut rules)).collect();
    let root = if calls.is_empty() {
        words(&mut rules)
    } else {
        // Models are trained with or without a line break after the tag.
        let (begin, end) = (literal(CALL_BEGIN), literal(CALL_END));
        let calls = calls.join(" | ");
        let call = rules.add(format!(r#"{begin} "\n"? ({calls}) "\n"? {end}"#));
        if required {
            format!(r#""\n"? {call} ("\n"? {call})*"#)
        } else {
            let words = words(&mut rules);
            format!("{words} ({call} {words})*")
        }
    };
    rules.text(&root)
}

/// Returns the rule for the object of a call.
fn call(tool: &ToolDefinition, rules: &mut Rules) -> String {
    let begin = format!("{NAME_BEGIN}{}, \"arguments\": ", quoted_name(&tool.name));
    let arguments = schema::arguments(&tool.parameters, rules);
    rules.add(format!("{} {arguments} {}", literal(&begin), literal("}")))
}

/// Returns the rule for any text in which no call begins: one rule for each part of the tag that may
/// have been written so far, and what may follow it.
fn words(rules: &mut Rules) -> String {
    let tag: Vec<char> = CALL_BEGIN.chars().collect();
    let names: Vec<String> = (0..tag.len()).map(|_| rules.name()).collect();
    let [start, begun, ..] = names.as_slice() else { return String::new() };
    for (at, name) in names.iter().enumerate() {
        // The tag's first character occurs only once in it: after any other the text begins anew.
        let next = match (tag.get(at), names.get(at + 1)) {
            _ if at == 0 => format!(r#"[^<]* ("<" {begun})?"#),
            (Some(c), Some(next)) => format!(r#"("<" {begun} | "{c}" {next} | [^<{c}] {start})?"#),
            (Some(c), None) => format!(r#"("<" {begun} | [^<{c}] {start})?"#),
            (None, _) => continue,
        };
        rules.define(name, next);
    }
    start.clone()
}

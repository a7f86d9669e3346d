//! `file_list`: what a folder holds.

use super::globs::Glob;
use super::walk::walk;
use super::{Bounds, Cut, Kind, arguments};
use crate::workspace::{Access, Workspace};
use foldback_tool::{Data, Effect, ToolError, ToolOutput};
use serde::Deserialize;
use std::ops::ControlFlow;

pub(super) const KIND: Kind = Kind {
    name: "file_list",
    description: "The files and folders in a folder, one path per line; a folder's ends with /. What \
        .gitignore names is left out. With a pattern, all files below that match it.",
    parameters: r#"{"type":"object","properties":{"path":{"type":["string","null"],"description":"The folder; by default the workspace."},"pattern":{"type":["string","null"],"description":"\"*.rs\" for names, \"src/**/*.md\" for paths relative to the folder."},"depth":{"type":["integer","null"],"minimum":1,"description":"How many levels down; 1 without a pattern, all with one."},"ignored":{"type":["boolean","null"],"description":"Also what .gitignore names."}},"additionalProperties":false}"#,
    output: Some(
        r#"{"type":"object","properties":{"paths":{"type":"array","items":{"type":"string"}}},"required":["paths"]}"#,
    ),
    primary: "path",
    effect: Effect::ReadOnly,
    run,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    #[serde(default)]
    path: Option<String>,
    pattern: Option<String>,
    depth: Option<usize>,
    ignored: Option<bool>,
}

fn run(
    workspace: &Workspace,
    bounds: &Bounds,
    arguments_text: &str,
) -> Result<ToolOutput, ToolError> {
    let Arguments { path, pattern, depth, ignored } = arguments(arguments_text)?;
    let glob = pattern.as_deref().map(Glob::new).transpose()?;
    let depth = match depth {
        Some(0) => return Err(ToolError::arguments("depth is 0; 1 or more was expected")),
        Some(depth) => depth,
        None if glob.is_some() => usize::MAX,
        None => 1,
    };
    let place = workspace.place(path.as_deref().unwrap_or("."), Access::Read)?;
    if place.exists() && !place.is_folder() {
        return Err(ToolError::permanent(format!(
            "{} is a file; a folder was expected. file_read reads it.",
            place.shown
        )));
    }
    let mut paths = Vec::new();
    let mut bytes = 0;
    let walked = walk(&place, depth, ignored == Some(true), bounds, &mut |entry| {
        let fits = glob.as_ref().is_none_or(|glob| !entry.is_folder && glob.fits(entry.within));
        if !fits {
            return ControlFlow::Continue(());
        }
        let path = format!("{}{}", entry.shown, if entry.is_folder { "/" } else { "" });
        bytes += path.len() + 1;
        if bytes > bounds.output_bytes {
            return ControlFlow::Break(Cut::Room);
        }
        paths.push(path);
        ControlFlow::Continue(())
    })?;
    let mut text = paths.join("\n");
    let mut note = |note: String| {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("[{note}]"));
    };
    if let Some(cut) = walked.cut {
        note(cut.told("there is more; give a path further down, or a pattern".to_owned()));
    } else if paths.is_empty() {
        let fits = if glob.is_some() { " that fits the pattern" } else { "" };
        note(format!("{} holds nothing{fits}", place.shown));
    }
    if let Some(left_out) = walked.left_out()
        && (glob.is_none() || paths.is_empty())
    {
        note(left_out);
    }
    if walked.not_entered > 0 {
        note(format!("folders that could not be entered: {}", walked.not_entered));
    }
    let structured = serde_json::json!({ "paths": paths }).to_string();
    Ok(ToolOutput { data: Data { text, structured: Some(structured) } })
}

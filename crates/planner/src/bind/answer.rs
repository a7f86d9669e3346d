//! A step's outcome, as references see it.

use super::BindError;
use super::value::BoundValue;
use crate::template::quote_into;
use crate::{PathSegment, Reference, StepId, StepResult};
use foldback_core::Object;
use foldback_tool::Data;
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A step's outcome, as references see it.
pub(super) enum Answer<'a> {
    /// JSON, and the text that contained it if it was not given separately.
    Json {
        root: Node<'a>,
        text: Option<&'a str>,
    },
    Text(&'a str),
    /// An error, as JSON.
    Error(String),
}

impl<'a> Answer<'a> {
    pub(super) fn of(step: StepId, result: &'a StepResult) -> Self {
        match result {
            StepResult::Success { data } => Self::of_data(data),
            StepResult::Error { failure } => {
                let kind = serde_json::to_string(&failure.kind).unwrap_or_default();
                Self::Error(error_object(&kind, &failure.message))
            }
            StepResult::Skipped { because } => {
                let message = format!("{step} was skipped, because {because} failed");
                Self::Error(error_object("\"skipped\"", &message))
            }
        }
    }

    fn of_data(data: &'a Data) -> Self {
        let read = |text| serde_json::from_str::<&RawValue>(text).ok().map(Node::of);
        if let Some(root) = data.structured.as_deref().and_then(read) {
            return Self::Json { root, text: None };
        }
        let may_be_json = data.text.trim_start().starts_with(['{', '[']);
        match may_be_json.then(|| read(&data.text)).flatten() {
            Some(root) => Self::Json { root, text: Some(&data.text) },
            None => Self::Text(&data.text),
        }
    }

    /// Returns the part that a reference names.
    pub(super) fn part(&mut self, reference: &Reference) -> Result<BoundValue<'a>, BindError> {
        let path = &reference.path;
        let no_such_part = |depth: usize, missing: &PathSegment, there| BindError::NoSuchPart {
            reference: reference.clone(),
            depth,
            missing: missing.clone(),
            there,
        };
        let (root, text) = match self {
            Self::Json { root, text } => (root, *text),
            Self::Text(text) => {
                return match path.first() {
                    None => Ok(BoundValue::Text(Cow::Borrowed(text))),
                    Some(missing) => {
                        let there = format!("a text of {} characters", text.chars().count());
                        Err(no_such_part(0, missing, there))
                    }
                };
            }
            Self::Error(json) => {
                return Ok(BoundValue::Json { json: Cow::Owned(json.clone()), text: None });
            }
        };
        let mut node = root;
        for (depth, segment) in path.iter().enumerate() {
            let value = node.value;
            let part = node.part(segment);
            node = part.ok_or_else(|| no_such_part(depth, segment, outline(value)))?;
        }
        let text = text.filter(|_| path.is_empty());
        Ok(BoundValue::Json { json: Cow::Borrowed(node.value.get()), text })
    }
}

/// A JSON value. Its contents are parsed when the first reference leads into it.
pub(super) struct Node<'a> {
    value: &'a RawValue,
    inside: Option<Inside<'a>>,
}

impl<'a> Node<'a> {
    pub(super) fn of(value: &'a RawValue) -> Self {
        Self { value, inside: None }
    }

    pub(super) fn part(&mut self, segment: &PathSegment) -> Option<&mut Self> {
        let value = self.value;
        match (self.inside.get_or_insert_with(|| Inside::of(value)), segment) {
            (Inside::Object(members), PathSegment::Key(key)) => members.get_mut(key.as_str()),
            (Inside::Array(values), PathSegment::Key(key)) => {
                values.get_mut(key.parse::<usize>().ok()?)
            }
            (Inside::Array(values), PathSegment::Index(place)) => values.get_mut(*place),
            (Inside::Object(_), PathSegment::Index(_)) | (Inside::Nothing, _) => None,
        }
    }
}

pub(super) enum Inside<'a> {
    /// If a key occurs twice, its last value.
    Object(FxHashMap<Cow<'a, str>, Node<'a>>),
    Array(Vec<Node<'a>>),
    Nothing,
}

impl<'a> Inside<'a> {
    pub(super) fn of(value: &'a RawValue) -> Self {
        if let Some(object) = Object::of(value) {
            let members = object.0.into_iter().map(|(key, value)| (key, Node::of(value)));
            return Self::Object(members.collect());
        }
        match Object::array_of(value) {
            Some(values) => Self::Array(values.into_iter().map(Node::of).collect()),
            None => Self::Nothing,
        }
    }
}

/// Describes what a value offers to a path.
fn outline(value: &RawValue) -> String {
    const KEYS_MOST: usize = 20;
    if let Some(object) = Object::of(value) {
        let keys = object.distinct();
        if keys.is_empty() {
            return "an empty object".to_owned();
        }
        let shown: Vec<String> = keys
            .iter()
            .take(KEYS_MOST)
            .map(|(key, _)| format!("`{}`", crate::excerpt::of(key)))
            .collect();
        let more = if keys.len() > KEYS_MOST { ", …" } else { "" };
        return format!("an object with {}{more}", shown.join(", "));
    }
    match Object::array_of(value) {
        Some(values) => format!("an array of {}", values.len()),
        None => format!("`{}`", crate::excerpt::of(value.get())),
    }
}

fn error_object(kind: &str, message: &str) -> String {
    let mut json = format!("{{\"error\":{{\"kind\":{kind},\"message\":");
    quote_into(message, &mut json);
    json.push_str("}}");
    json
}

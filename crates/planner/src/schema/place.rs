//! Places in an instance, as JSON pointers and as paths.

use crate::PathSegment;
use serde_json::Value;

/// Returns the path that a JSON pointer takes through an instance: digits are an index in an array, and
/// a key of an object.
pub(super) fn segments(pointer: &str, instance: &Value) -> Vec<PathSegment> {
    let mut value = Some(instance);
    let own = pointer.split('/').skip(1).map(|token| {
        let key = token.replace("~1", "/").replace("~0", "~");
        match (value, key.parse()) {
            (Some(Value::Array(values)), Ok(place)) => {
                value = values.get::<usize>(place);
                PathSegment::Index(place)
            }
            _ => {
                value = value.and_then(|value| value.get(&key));
                PathSegment::Key(key)
            }
        }
    });
    own.collect()
}

pub(super) fn place_of(path: &[PathSegment]) -> String {
    if path.is_empty() {
        "the arguments".to_owned()
    } else {
        format!("argument `{}`", plain_path(path))
    }
}

/// Returns a path without its leading dot.
pub(super) fn plain_path(path: &[PathSegment]) -> String {
    let text: String = path.iter().map(ToString::to_string).collect();
    crate::excerpt::of(text.strip_prefix('.').unwrap_or(&text))
}

pub(super) fn plain_segment(segment: &PathSegment) -> String {
    plain_path(std::slice::from_ref(segment))
}

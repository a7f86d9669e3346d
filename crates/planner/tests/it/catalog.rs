//! Whether arguments that are about to be sent fit.

use crate::steps::tool;
use foldback_planner::{ArgumentsError, Catalog};

fn catalog() -> Catalog {
    let city = r#"{"type": "object", "properties": {"城市": {"type": "string", "maxLength": 4},
        "days": {"type": "integer"}}, "required": ["城市"]}"#;
    [tool("search_weather", city, None), tool("broken", "[", None)].into_iter().collect()
}

/// OP6: bound arguments are checked with everything that does not fit.
#[test]
fn op6_bound_arguments_are_checked() {
    let catalog = catalog();
    let check = |arguments| catalog.check_arguments("search_weather", arguments);
    assert_eq!(check(r#"{"城市": "乌鲁木齐", "days": 3}"#), Ok(()));
    let Err(ArgumentsError::Mismatch { mut mismatches, .. }) =
        check(r#"{"城市": "呼和浩特市", "days": "3"}"#)
    else {
        panic!("expected a mismatch");
    };
    mismatches.sort();
    assert_eq!(mismatches.len(), 2);
    assert!(mismatches[0].starts_with("argument `days`: \"3\" is not of type"), "{mismatches:?}");
    assert!(mismatches[1].starts_with("argument `城市`: "), "{mismatches:?}");
}

/// Arguments that cannot be checked are an error of their own kind.
#[test]
fn what_cannot_be_checked_says_why() {
    let catalog = catalog();
    let error = catalog.check_arguments("weather_search", "{}").unwrap_err();
    assert!(matches!(error, ArgumentsError::UnknownFunction { .. }));
    let error = catalog.check_arguments("search_wether", "{}").unwrap_err();
    let ArgumentsError::UnknownFunction { nearest, .. } = &error else { panic!("{error}") };
    assert_eq!(nearest.as_deref(), Some("search_weather"));
    for text in ["", "{", "[1]", "null"] {
        let error = catalog.check_arguments("search_weather", text).unwrap_err();
        assert!(matches!(error, ArgumentsError::NoObject { .. }), "{text}: {error}");
    }
    let error = catalog.check_arguments("broken", "{}").unwrap_err();
    assert!(matches!(error, ArgumentsError::Schema { .. }), "{error}");
}

/// A message quotes a long value in part.
#[test]
fn messages_are_bounded() {
    let long = format!(r#"{{"城市": "{}"}}"#, "很".repeat(1 << 20));
    let error = catalog().check_arguments("search_weather", &long).unwrap_err();
    assert!(error.to_string().chars().count() < 600);
}

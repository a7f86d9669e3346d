//! Names that every provider accepts.

use foldback_llm::ToolNames;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn is_legal(name: &str) -> bool {
    let byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(byte)
}

/// MC18: refused names map to legal ones and back; families keep their prefix.
#[test]
fn mc18_refused_names_map_to_legal_ones_and_back() {
    let long = "a".repeat(65);
    let refused = [
        "browser_查询订单",
        "browser_发起退款",
        "shell_发起退款",
        "查询",
        "",
        " ",
        "a b",
        "a.b",
        "a:b",
        "mcp__server/tool",
        "café",
        "cafe\u{301}",
        "🌧_rain",
        "文件_read",
        long.as_str(),
    ];
    let legal = ["file_read", "browser_open", "a-B_9", &"a".repeat(64)];
    let names = ToolNames::new(refused.into_iter().chain(legal));
    let mut seen = BTreeSet::new();
    for name in refused.into_iter().chain(legal) {
        let wire = names.wire(name);
        assert!(is_legal(&wire), "{name:?} became {wire:?}");
        assert_eq!(names.original(&wire), name);
        assert!(seen.insert(wire), "{name:?} shares its name");
    }
    for name in legal {
        assert_eq!(names.wire(name), name);
    }
    for (name, family) in [
        ("browser_查询订单", "browser_"),
        ("shell_发起退款", "shell_"),
        ("mcp__server/tool", "mcp__server"),
    ] {
        assert!(names.wire(name).starts_with(family));
    }
    assert_eq!(names.original("never_declared"), "never_declared");
}

/// MC18: a name is the same in every request and on every machine; a stored prompt keeps its bytes.
#[test]
fn mc18_names_are_stable() {
    let alone = ToolNames::new(["browser_查询订单"]);
    assert_eq!(alone.wire("browser_查询订单"), "browser_nzdznscmil");
    let among = ToolNames::new(["z", "browser_查询订单", "查询", "a"]);
    assert_eq!(among.wire("browser_查询订单"), alone.wire("browser_查询订单"));
    assert_eq!(ToolNames::default().wire("browser_查询订单"), alone.wire("browser_查询订单"));
}

/// MC18: a tool that is called like another's legal name does not become it.
#[test]
fn mc18_names_that_meet_are_kept_apart() {
    let taken = ToolNames::default().wire("browser_查询订单");
    let names = ToolNames::new(["browser_查询订单", taken.as_str()]);
    assert_eq!(names.wire(&taken), taken);
    let other = names.wire("browser_查询订单");
    assert!(other != taken && other.starts_with("browser_"), "{other}");
    assert_eq!(names.original(&other), "browser_查询订单");
    assert_eq!(names.original(&taken), taken);
}

proptest! {
    /// MC18: any set of names, in any order.
    #[test]
    fn mc18_any_names_map_one_to_one(names in prop::collection::btree_set("[a-z_]{0,4}[a-z查订🌧. ]{0,70}", 0..30)) {
        let map = ToolNames::new(names.iter().map(String::as_str));
        prop_assert_eq!(&map, &ToolNames::new(names.iter().rev().map(String::as_str)));
        let wires: BTreeSet<String> = names.iter().map(|name| map.wire(name)).collect();
        prop_assert_eq!(wires.len(), names.len());
        for name in &names {
            let wire = map.wire(name);
            prop_assert!(is_legal(&wire));
            prop_assert_eq!(&map.original(&wire), name);
        }
    }
}

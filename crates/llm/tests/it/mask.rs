//! Which tools may be called now.

use foldback_core::{Message, ToolCall, ToolCallId, ToolDefinition, check_request};
use foldback_llm::{AllowedTools, Availability, ChatRequest, Mask, ToolAvailability, ToolChoice};
use proptest::prelude::*;
use std::sync::Arc;

const SHOP: [&str; 5] = [
    "browser_查询订单",
    "browser_查询物流",
    "shell_修改地址",
    "shell_发起退款",
    "form_收集售后信息",
];

fn tools(names: &[&str]) -> Vec<ToolDefinition> {
    let tool = |name: &&str| ToolDefinition {
        name: (*name).to_owned(),
        description: String::new(),
        parameters: "{}".to_owned(),
    };
    names.iter().map(tool).collect()
}

/// Of case 4 of the design document, two single tools of two families.
fn case_four() -> ToolChoice {
    let mask =
        Mask::required().name("browser_查询订单").name("shell_发起退款").prefer("shell_发起退款");
    mask.choice(&tools(&SHOP)).unwrap()
}

/// MC7, MC8, MC21: what a mask states to providers.
#[test]
fn mc21_a_mask_names_families_and_single_tools() {
    let own = tools(&["file_read", "file_write", "shell_run", "web_search", "memory_search"]);
    let some = |names: &[&str], required| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        ToolChoice::Allowed(AllowedTools { names, required, preferred: None })
    };
    for (mask, expected) in [
        (Mask::auto(), ToolChoice::Auto),
        (Mask::required(), ToolChoice::Required),
        (Mask::reply_only(), ToolChoice::ReplyOnly),
        (Mask::auto().family("file_"), some(&["file_read", "file_write"], false)),
        (
            Mask::required().family("web_").family("memory_").name("shell_run"),
            some(&["memory_search", "shell_run", "web_search"], true),
        ),
    ] {
        assert_eq!(mask.choice(&own), Ok(expected));
        for tool in &own {
            let told = match mask.choice(&own).unwrap() {
                ToolChoice::Auto | ToolChoice::Required => true,
                ToolChoice::ReplyOnly => false,
                ToolChoice::Allowed(some) => some.names.contains(&tool.name),
            };
            assert_eq!(mask.allows(&tool.name), told);
        }
    }
}

/// MC6: what does not fit the tools is reported all at once.
#[test]
fn mc6_a_mask_that_does_not_fit_is_named() {
    let mask = Mask::required().family("mail_").name("shell_删除").prefer("form_收集售后信息");
    let problems: Vec<_> =
        mask.choice(&tools(&SHOP)).unwrap_err().iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "no tool's name begins with \"mail_\"",
            "there is no tool \"shell_删除\"",
            "the tool \"form_收集售后信息\" is preferred, but it is not among the allowed ones",
        ]
    );
    assert!(Mask::required().choice(&[]).is_err());
    assert!(Mask::reply_only().family("shell_").choice(&tools(&SHOP)).is_err());
    let unknown = serde_json::from_str::<Mask>(r#"{"familys": ["shell_"]}"#).unwrap_err();
    assert!(unknown.to_string().contains("unknown field `familys`"), "{unknown}");
}

/// The design document's shop: greet, look up, then only what a refund needs.
const TABLE: &str = r#"{
    "start": "greeting",
    "states": {
        "greeting": {"mask": {"mode": "reply_only"}, "on": {"order_known": "lookup", "asked": "open"}},
        "open": {"on": {"order_known": "lookup"}},
        "lookup": {
            "mask": {"mode": "required", "families": ["browser_"]},
            "on": {"refund_asked": "refund", "asked": "open"}
        },
        "refund": {"mask": {
            "mode": "required",
            "names": ["browser_查询订单", "shell_发起退款"],
            "preferred": "shell_发起退款"
        }, "on": {"done": "greeting"}}
    }
}"#;

/// MC6: availability is a state machine over (state, event), and the list of tools never changes.
#[test]
fn mc6_events_move_the_mask_and_never_the_tools() {
    let table: Availability = serde_json::from_str(TABLE).unwrap();
    let again: Availability =
        serde_json::from_str(&serde_json::to_string(&table).unwrap()).unwrap();
    assert_eq!(again, table);
    let mut session = ToolAvailability::new(table.clone(), tools(&SHOP)).unwrap();
    assert_eq!((session.state(), session.choice()), ("greeting", ToolChoice::ReplyOnly));
    assert_eq!(session.fire("refund_asked"), Ok(false), "greeting does not know it, and stays");
    assert_eq!(session.fire("order_known"), Ok(true));
    assert!(session.allows("browser_查询物流") && !session.allows("shell_发起退款"));
    assert_eq!(session.fire("refund_asked"), Ok(true));
    assert_eq!(session.choice(), case_four());
    assert!(!session.allows("browser_查询物流") && session.allows("shell_发起退款"));
    assert_eq!(session.tools(), tools(&SHOP));
    let error = session.fire("refunded").unwrap_err();
    assert_eq!(error.to_string(), "no state names the event \"refunded\"");
    let resumed = ToolAvailability::new(table, tools(&SHOP)).unwrap().at(session.state()).unwrap();
    assert_eq!(resumed.choice(), session.choice());
    assert!(resumed.at("gone").is_err());
}

/// MC6: a table is checked before a session, and everything wrong with it is named.
#[test]
fn mc6_a_bad_table_is_named_whole() {
    let table: Availability = serde_json::from_str(
        r#"{"start": "a", "states": {
            "a": {"on": {"go": "nowhere"}},
            "island": {"mask": {"names": ["rm"]}}
        }}"#,
    )
    .unwrap();
    let error = ToolAvailability::new(table, tools(&SHOP)).unwrap_err();
    assert_eq!(
        error.problems,
        [
            "in the state \"a\", the event \"go\" leads to \"nowhere\", which is not a state",
            "the state \"island\" is never reached",
            "in the state \"island\", there is no tool \"rm\"",
        ]
    );
    let error = ToolAvailability::new(Availability::default(), Vec::new()).unwrap_err();
    assert_eq!(error.to_string(), "the start \"\" is not a state");
}

proptest! {
    /// MC6: whatever happens in a session, its requests declare the same tools, and a history that calls
    /// a tool which is masked by now stays a valid request.
    #[test]
    fn mc6_history_may_name_a_masked_tool(
        events in prop::collection::vec(prop::sample::select(vec!["asked", "order_known", "refund_asked", "done"]), 1..12),
    ) {
        let table: Availability = serde_json::from_str(TABLE).unwrap();
        let mut session = ToolAvailability::new(table, tools(&SHOP)).unwrap();
        let mut messages = vec![Arc::new(Message::system("shop")), Message::user("在吗?").into()];
        for (turn, event) in events.into_iter().enumerate() {
            session.fire(event).unwrap();
            let request = ChatRequest::new(messages.clone()).with_tools(session.tools().to_vec()).with_tool_choice(session.choice());
            prop_assert_eq!(check_request(messages.iter().map(Arc::as_ref)), []);
            prop_assert_eq!(request.tools, tools(&SHOP));
            if let Some(name) = SHOP.iter().find(|name| session.allows(name)) {
                let id = ToolCallId::new(&format!("c{turn}"));
                let call = ToolCall::new(id.as_str(), name, "{}");
                messages.push(Message::calls("", vec![call]).into());
                messages.push(Message::tool_result(&id, "ok").into());
            } else {
                messages.push(Message::assistant("您好").into());
                messages.push(Message::user("嗯").into());
            }
        }
    }
}

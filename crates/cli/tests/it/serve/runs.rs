//! What the API of `foldback serve` answers about the runs of an agent.

use super::Server;
use super::answers::strings;
use crate::shell::Shell;
use serde_json::Value;

#[test]
fn in2_the_runs_of_the_agent_are_shown_with_their_steps_and_sub_agents() {
    let shell = Shell::new();
    shell.ok(&["run", "--demo", "--id", "tide"]);
    let server = Server::of(&shell);
    let list = server.api("sessions/tide/runs");
    let run = &list["runs"][0];
    assert_eq!(
        (&run["id"], &run["state"], &run["unrecorded"]),
        (&"tide".into(), &"done".into(), &Value::Null)
    );
    assert!(run["answer"].as_str().unwrap().contains("37 mm"), "{run}");
    assert_eq!(run["spent"]["calls"], 16);
    let turns = run["turns"].as_array().unwrap();
    let planned = &turns[0];
    assert_eq!(planned["purposes"][0], "planner", "{planned}");
    assert_eq!(planned["steps"].as_array().unwrap().len(), 5);
    let steps: Vec<&Value> =
        turns.iter().flat_map(|turn| turn["steps"].as_array().unwrap()).collect();
    let failed: Vec<&str> = steps
        .iter()
        .filter(|step| step["state"] == "failed")
        .map(|step| step["tool"].as_str().unwrap())
        .collect();
    assert_eq!(failed, ["file_read", "shell_run"], "a command that ended with 1 failed: {run}");
    // Each step has its call and its result among the messages.
    let messages = server.api("sessions/tide/messages?to=1000")["messages"].clone();
    for step in &steps {
        let message = |key: &str| &messages[step[key].as_u64().unwrap() as usize]["message"];
        let (call, result) = (message("call_seq"), message("result_seq"));
        let calls = call["tool_calls"].as_array().unwrap();
        let own = calls.iter().find(|call| call["id"] == result["tool_call_id"]).unwrap();
        assert_eq!(own["function"]["name"], step["tool"], "{step}");
    }
    assert!(run["tools"].as_array().unwrap().iter().any(|name| name == "shell_run"), "{run}");
    assert_eq!(server.api("sessions/tide")["failed_calls"], 2);
    assert!(
        steps
            .iter()
            .filter(|step| step["state"] == "done")
            .all(|step| step["end_us"].as_u64().unwrap() >= step["start_us"].as_u64().unwrap())
    );
    let delegated = steps.iter().find(|step| step["tool"] == "delegate").unwrap();
    assert_eq!(strings(&delegated["sub_agents"], "session"), ["tide.data", "tide.docs"]);
    assert!(delegated["sub_agents"][0]["answer"].as_str().unwrap().contains("31 readings"));
    let items = &list["todo_list"];
    assert_eq!(
        strings(items, "id"),
        ["tide.look", "tide.data", "tide.docs", "tide.mend", "tide.tell"]
    );
    assert_eq!((&items[1]["state"], &items[1]["has_session"]), (&"completed".into(), &true.into()));
    assert_eq!(items[3]["depends_on"], serde_json::json!(["tide.data"]));
    // What no agent made has neither.
    assert_eq!(
        server.api("sessions/tide.data/runs"),
        serde_json::json!({"total": 0, "runs": [], "todo_list": []})
    );
}

//! Reading `<execute_tools>`.

mod hostile_texts;
mod lowering;
mod reading;

use foldback_core::ToolDefinition;
use foldback_planner::{Action, Catalog, ExecuteTools, Step, Template, parse_execute_tools};
use foldback_tool::ToolSpec;

/// A tool with these parameters; those after `!` are numbers, the first is required.
fn tool(server: &str, name: &str, parameters: &[&str]) -> ToolSpec {
    let properties: Vec<String> = parameters
        .iter()
        .map(|parameter| match parameter.strip_prefix('!') {
            Some(name) => format!("\"{name}\": {{\"type\": \"number\"}}"),
            None => format!("\"{parameter}\": {{\"type\": \"string\"}}"),
        })
        .collect();
    let parameters = format!(
        "{{\"type\": \"object\", \"properties\": {{{}}}, \"required\": [\"{}\"]}}",
        properties.join(", "),
        parameters[0].trim_start_matches('!')
    );
    let definition =
        ToolDefinition { name: name.to_owned(), description: String::new(), parameters };
    ToolSpec::new(definition).with_server(server)
}

fn catalog() -> Catalog {
    [
        tool("deepsearch_server", "search", &["query", "!limit"]),
        tool("microsandbox_server", "execute_python", &["code"]),
        tool("database_server", "execute_sql", &["sql"]),
        tool("files", "files_write", &["path", "text"]),
        tool("http", "post", &["url", "body"]).with_primary("body"),
        tool("浏览器", "查询订单", &["单号"]),
        tool("math", "range", &["!from", "!to"]),
    ]
    .into_iter()
    .map(|mut tool| {
        if tool.definition.name == "range" {
            tool.definition.parameters =
                tool.definition.parameters.replace("[\"from\"]", "[\"from\", \"to\"]");
        }
        tool
    })
    .collect()
}

#[track_caller]
fn read(text: &str) -> ExecuteTools {
    parse_execute_tools(text, &catalog()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A block without errors, as its calls.
#[track_caller]
fn steps(text: &str) -> Vec<Step> {
    let read = read(text);
    assert!(!read.findings.has_errors(), "{}", read.findings);
    read.plan.steps
}

/// What the only call's only argument reads as.
#[track_caller]
fn body(body: &str) -> (String, Template) {
    let text = format!(
        "<execute_tools><microsandbox_server><execute_python>{body}</execute_python>\
         </microsandbox_server></execute_tools>"
    );
    let mut steps = steps(&text);
    assert_eq!(steps.len(), 1, "{body}");
    let Action::Call { arguments: Template::Object(mut members), .. } = steps.remove(0).action
    else {
        panic!("a call")
    };
    assert_eq!(members.len(), 1, "{body}");
    members.remove(0)
}

fn text(text: &str) -> Template {
    Template::Text(text.to_owned())
}

const PARALLEL: &str = "```xml
<execute_tools>
    <parallel>
        <deepsearch_server>
            <search>Apple Inc. stock price</search>
        </deepsearch_server>
        <microsandbox_server>
            <execute_python>import math; print(math.sqrt(16))</execute_python>
        </microsandbox_server>
    </parallel>
</execute_tools>
```";

const SEQUENTIAL: &str = "<execute_tools>
    <sequential>
        <deepsearch_server><search>How old is Elon Musk</search></deepsearch_server>
        <microsandbox_server><execute_python>age = {results[0].data}; print(f\"In 10 years, he will be {int(age) + 10}\")</execute_python></microsandbox_server>
    </sequential>
</execute_tools>";

const SINGLE: &str = "<!-- 第一轮 -->
<execute_tools>
    <database_server><execute_sql>SELECT * FROM users WHERE id = 123</execute_sql></database_server>
</execute_tools>";

/// A call of a search.
fn call(query: &str) -> String {
    format!("<deepsearch_server><search>{query}</search></deepsearch_server>")
}

//! Spans with the names of OpenTelemetry's semantic conventions for generative AI.
//!
//! The conventions are in development; these are the names of version 1.41. A span of `tracing` has a
//! fixed name, so the full one (`execute_tool search_city`) is in the field `otel.name`, where exporters
//! look for it.

use crate::RunEvent;
use foldback_llm::Usage;
use foldback_planner::StepResult;
use foldback_tool::{FailureKind, ToolSpec};
use tracing::{Span, field, info_span};

/// Creates the span of a tool's call.
#[must_use]
pub fn execute_tool(tool: &ToolSpec, call_id: &str) -> Span {
    let span = info_span!(
        "execute_tool",
        otel.name = field::Empty,
        otel.kind = "internal",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = tool.name(),
        gen_ai.tool.call.id = call_id,
        gen_ai.tool.type = "function",
        gen_ai.tool.call.arguments = field::Empty,
        gen_ai.tool.call.result = field::Empty,
        error.type = field::Empty,
        otel.status_code = field::Empty,
    );
    name(&span, "execute_tool", tool.name())
}

/// Creates the span of an agent's run, which covers everything that is done for one request.
#[must_use]
pub fn invoke_agent(agent: &str, conversation: &str) -> Span {
    let span = info_span!(
        "invoke_agent",
        otel.name = field::Empty,
        otel.kind = "internal",
        gen_ai.operation.name = "invoke_agent",
        gen_ai.agent.name = agent,
        gen_ai.conversation.id = conversation,
        gen_ai.usage.input_tokens = field::Empty,
        gen_ai.usage.output_tokens = field::Empty,
        gen_ai.usage.cache_read.input_tokens = field::Empty,
        gen_ai.usage.cache_creation.input_tokens = field::Empty,
        error.type = field::Empty,
        otel.status_code = field::Empty,
    );
    name(&span, "invoke_agent", agent)
}

/// Renames the span of an agent's run.
pub(crate) fn rename_agent(span: &Span, agent: &str) {
    span.record("gen_ai.agent.name", agent);
    name(span, "invoke_agent", agent);
}

/// Creates the span of a call to a model.
#[must_use]
pub fn chat(model: &str) -> Span {
    let span = info_span!(
        "chat",
        otel.name = field::Empty,
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.request.model = model,
        gen_ai.response.model = field::Empty,
        gen_ai.usage.input_tokens = field::Empty,
        gen_ai.usage.output_tokens = field::Empty,
        gen_ai.usage.cache_read.input_tokens = field::Empty,
        gen_ai.usage.cache_creation.input_tokens = field::Empty,
        error.type = field::Empty,
        otel.status_code = field::Empty,
    );
    name(&span, "chat", model)
}

/// Adds the content of an event to its span.
pub(crate) fn hear(event: &RunEvent<'_>) {
    match *event {
        RunEvent::Answered { span, answer, .. } => match answer {
            Ok(response) => record_usage(span, &response.usage),
            Err(error) => {
                record_error(span, error.kind.as_str());
                if let Some(usage) = &error.usage {
                    record_usage(span, usage);
                }
            }
        },
        RunEvent::ToolCalled { span, arguments: Some(arguments) } => {
            record_arguments(span, arguments);
        }
        RunEvent::ToolAnswered { span, result, shows_content } => match result {
            StepResult::Success { data } if shows_content => record_result(span, &data.text),
            StepResult::Error { failure } => record_error(span, &error_type(failure.kind)),
            _ => {}
        },
        RunEvent::Chose { strategy, because } => {
            tracing::info!(strategy = strategy.as_str(), because, "chosen");
        }
        RunEvent::Degraded { degraded, .. } => {
            let (because, detail) = (degraded.because, &degraded.detail);
            tracing::info!(?because, %detail, "degraded to react");
        }
        _ => {}
    }
}

/// Adds the tokens to a `chat` or `invoke_agent` span.
pub fn record_usage(span: &Span, usage: &Usage) {
    span.record("gen_ai.usage.input_tokens", usage.input);
    span.record("gen_ai.usage.output_tokens", usage.output);
    span.record("gen_ai.usage.cache_read.input_tokens", usage.cached_read);
    span.record("gen_ai.usage.cache_creation.input_tokens", usage.cached_write);
}

/// Marks a span as failed, with the kind of error in one word.
pub fn record_error(span: &Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
}

/// Adds the arguments of a tool's call. They may hold secrets.
pub fn record_arguments(span: &Span, arguments: &str) {
    span.record("gen_ai.tool.call.arguments", arguments);
}

/// Adds a tool's answer. It may hold secrets.
pub fn record_result(span: &Span, result: &str) {
    span.record("gen_ai.tool.call.result", result);
}

/// Returns the `error.type` of a kind of failure: its name in records.
#[must_use]
pub fn error_type(kind: FailureKind) -> String {
    let name = serde_json::to_value(kind).unwrap_or_default();
    name.as_str().unwrap_or("other").to_owned()
}

/// Gives a span its full name; nothing is built if nobody listens.
fn name(span: &Span, operation: &str, of: &str) -> Span {
    if !span.is_disabled() {
        span.record("otel.name", format!("{operation} {of}"));
    }
    span.clone()
}

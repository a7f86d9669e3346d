//! A tool that is handed the whole context.

use crate::ReferenceAgentError;
use foldback_tool::{CallContext, Tool, ToolFuture, ToolSpec};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// A tool that is handed the whole context as one of its arguments, which the model neither sees nor writes.
pub(crate) struct ContextReader {
    spec: ToolSpec,
    tool: Arc<dyn Tool>,
    argument: String,
}

impl ContextReader {
    /// Wraps a tool so that it is handed the context as `argument`.
    ///
    /// # Errors
    /// When it has no such argument.
    pub(crate) fn new(tool: Arc<dyn Tool>, argument: &str) -> Result<Self, ReferenceAgentError> {
        let mut spec = tool.spec().clone().with_global_context(true);
        let no_argument = || ReferenceAgentError::Argument {
            tool: tool.spec().name().to_owned(),
            argument: argument.to_owned(),
        };
        let schema = serde_json::from_str::<Value>(&spec.definition.parameters);
        let mut schema = schema.map_err(|_| no_argument())?;
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        // The remaining properties keep their order.
        let taken = properties.and_then(|properties| properties.shift_remove(argument));
        if taken.is_none() {
            return Err(no_argument());
        }
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| name != argument);
        }
        spec.definition.parameters = schema.to_string();
        spec.primary.take_if(|primary| primary == argument);
        Ok(Self { spec, tool, argument: argument.to_owned() })
    }

    /// Returns the arguments with the context added.
    fn with_context(&self, arguments: &str, context: &CallContext) -> String {
        let written = serde_json::from_str::<Map<String, Value>>(arguments);
        let mut written = written.unwrap_or_default();
        let told = context.global_context.as_deref().unwrap_or_default();
        written.insert(self.argument.clone(), told.into());
        Value::Object(written).to_string()
    }
}

impl Tool for ContextReader {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn timeout(&self, arguments: &str) -> Option<Duration> {
        self.tool.timeout(arguments)
    }

    fn call<'a>(&'a self, arguments: &'a str, context: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move {
            let arguments = self.with_context(arguments, context);
            self.tool.call(&arguments, context).await
        })
    }
}

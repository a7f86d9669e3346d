//! Refuses requests that no provider could handle, before anything is written.

use foldback_core::Role;
use foldback_llm::{ChatRequest, ModelError, ModelErrorKind};
use std::collections::BTreeSet;

/// Checks what every provider requires: cache marks refer to existing messages, roles are known, and
/// each tool is declared once.
///
/// # Errors
/// Reports the first of these that fails.
pub(crate) fn check(request: &ChatRequest) -> Result<(), ModelError> {
    let count = request.messages.len();
    if let Some(beyond) = request.cache_marks.iter().find(|at| **at >= count) {
        return Err(refused(format!(
            "a cache mark follows message {beyond}, but the request has {count} messages"
        )));
    }
    for message in &request.messages {
        if let Role::Other(role) = message.role() {
            return Err(unknown_role(role));
        }
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = request.tools.iter().find(|tool| !names.insert(tool.name.as_str())) {
        return Err(refused(format!("the tool {:?} is declared twice", twice.name)));
    }
    Ok(())
}

/// Creates the error for an unknown role.
pub(crate) fn unknown_role(role: &str) -> ModelError {
    refused(format!(
        "unknown role {role:?}; one of system, developer, user, \
         assistant and tool was expected"
    ))
}

/// Creates the error for a request that is not sent.
pub(crate) fn refused(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Request, message)
}

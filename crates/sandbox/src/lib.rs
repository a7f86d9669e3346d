//! Runs a command with few rights.

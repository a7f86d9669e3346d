//! The public face of the formats.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test ends at the first surprise")]

mod anthropic;
mod bad_input;
mod bombs;
mod claude_code;
mod codex;
mod converted;
mod damage;
mod findings;
mod growing;
mod growth;
mod joined_logs;
mod langchain;
mod opencode;
mod released_logs;
mod requests;
mod response_ids;
mod round_trip;

//! What is fuzzed: for everything in foldback that reads bytes which others wrote, a function that takes any bytes.
//!
//! A target panics where its reader does, or where the reader breaks a promise: what was read can be written and read
//! again, pieces of a stream make no difference, a damaged file gives an error or the right answer. libFuzzer runs them
//! (`cargo fuzz run NAME`), and so does a mutator of our own on any toolchain (`cargo run -p xtask -- fuzz`).

pub mod gateway;
pub mod names;
pub mod plans;
pub mod providers;
pub mod sound_store;
pub mod stores;
pub mod transcripts;

/// A reader, and what it is made to read.
pub struct Target {
    /// Its name, which is also that of its libFuzzer binary.
    pub name: &'static str,
    /// Reads any bytes.
    pub run: fn(&[u8]),
    /// Sound inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

const fn target(name: &'static str, run: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> Target {
    Target { name, run, seeds }
}

/// All of them.
pub const TARGETS: [Target; 29] = [
    target("transcript_anthropic", transcripts::whole, transcripts::anthropic),
    target("transcript_chat", transcripts::whole, transcripts::chat),
    target("transcript_claude_code", transcripts::whole, transcripts::claude_code),
    target("transcript_codex", transcripts::whole, transcripts::codex),
    target("transcript_foldback", transcripts::whole, transcripts::foldback_lines),
    target("transcript_growing", transcripts::growing, transcripts::claude_code),
    target("transcript_langchain", transcripts::whole, transcripts::langchain),
    target("transcript_message_lines", transcripts::message_lines, transcripts::messages),
    target("transcript_opencode", transcripts::whole, transcripts::opencode),
    target("transcript_packed", transcripts::whole, transcripts::packed),
    target("gateway_chat_body", gateway::chat_body, gateway::chat_bodies),
    target("gateway_chat_stream", gateway::chat_stream, gateway::chat_streams),
    target("gateway_messages_body", gateway::messages_body, gateway::messages_bodies),
    target("gateway_messages_stream", gateway::messages_stream, gateway::messages_streams),
    target("gateway_responses_body", gateway::responses_body, gateway::responses_bodies),
    target("gateway_responses_stream", gateway::responses_stream, gateway::responses_streams),
    target("provider_anthropic_stream", providers::anthropic, gateway::messages_streams),
    target("provider_hermes", providers::hermes, providers::hermes_answers),
    target("provider_openai_stream", providers::openai, gateway::chat_streams),
    target("plan_execute_tools", plans::execute_tools, plans::blocks),
    target("plan_native_calls", plans::native_calls, plans::arguments),
    target("plan_one_plan", plans::one_plan, plans::plans),
    target("store_format", stores::format, stores::formats),
    target("store_index", stores::index, stores::index_files),
    target("store_payload_file", stores::payload_file, stores::payload_files),
    target("store_record", stores::record, stores::records),
    target("model_settings", names::model_settings, names::settings_files),
    target("references", names::references, names::reference_texts),
    target("tool_arguments", names::tool_arguments, names::calls),
];

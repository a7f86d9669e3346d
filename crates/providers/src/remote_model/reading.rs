//! An answer that is read piece by piece.

use crate::Provider;
use crate::anthropic_answer::AnthropicFrames;
use crate::door::Frames;
use crate::draft::Draft;
use crate::openai_answer::OpenAiFrames;
use crate::workers::Busy;
use foldback_llm::{ChatChunk, ModelError};
use std::collections::VecDeque;

/// Reads the frames of one API.
pub(super) enum Reader {
    OpenAi(OpenAiFrames),
    Anthropic(AnthropicFrames),
}

impl Reader {
    pub(super) fn new(provider: Provider, draft: Draft) -> Self {
        match provider {
            Provider::Anthropic => Self::Anthropic(AnthropicFrames::new(draft)),
            Provider::OpenAi | Provider::OpenAiCompatible => Self::OpenAi(OpenAiFrames::new(draft)),
        }
    }

    /// Whether the provider has said why the answer ends.
    fn has_stopped(&self) -> bool {
        match self {
            Self::OpenAi(reader) => reader.has_stopped(),
            Self::Anthropic(reader) => reader.has_stopped(),
        }
    }

    fn has_ended(&self) -> bool {
        match self {
            Self::OpenAi(reader) => reader.ended,
            Self::Anthropic(reader) => reader.ended,
        }
    }
}

/// An answer that is being read.
pub(super) struct Reading {
    frames: Frames,
    next: Option<String>,
    /// `None` after the end was read, or the stream has failed.
    reader: Option<Reader>,
    ready: VecDeque<ChatChunk>,
    /// The server counts as busy as long as this is read.
    busy: Busy,
    /// Whether the connection failed once the answer was whole.
    has_broken: bool,
}

impl Reading {
    /// Creates an answer whose first frame has arrived.
    pub(super) fn new(frames: Frames, first: Option<String>, reader: Reader, busy: Busy) -> Self {
        let ready = VecDeque::new();
        Self { frames, next: first, reader: Some(reader), ready, busy, has_broken: false }
    }

    /// Returns the server that is working on it.
    pub(super) fn busy(&self) -> &Busy {
        &self.busy
    }

    /// Returns whether the connection failed once the answer was whole, so that its count of tokens may be missing.
    pub(super) fn has_broken(&self) -> bool {
        self.has_broken
    }

    pub(super) async fn chunk(&mut self) -> Option<Result<ChatChunk, ModelError>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                return Some(Ok(chunk));
            }
            let reader = self.reader.as_mut()?;
            if reader.has_ended() {
                // What a server keeps open after the end is not waited for.
                return self.end();
            }
            let frame = match self.next.take() {
                Some(frame) => Some(Ok(frame)),
                None => self.frames.next().await,
            };
            let read = match frame {
                Some(Ok(frame)) => match reader {
                    Reader::OpenAi(reader) => reader.read(&frame, &mut self.ready),
                    Reader::Anthropic(reader) => reader.read(&frame, &mut self.ready),
                },
                // A connection that fails once the answer is whole takes at most the count of tokens from it.
                Some(Err(_)) if reader.has_stopped() => {
                    self.has_broken = true;
                    return self.end();
                }
                Some(Err(error)) => Err(error),
                None => return self.end(),
            };
            if let Err(error) = read {
                self.reader = None;
                self.ready.clear();
                return Some(Err(error));
            }
        }
    }

    /// Returns what the end yields: what the reader held back, then the whole answer.
    fn end(&mut self) -> Option<Result<ChatChunk, ModelError>> {
        let response = match self.reader.take()? {
            Reader::OpenAi(reader) => reader.finish(&mut self.ready),
            Reader::Anthropic(reader) => reader.finish(&mut self.ready),
        };
        let done = match response {
            Ok(response) => ChatChunk::Done(Box::new(response)),
            Err(error) => {
                self.ready.clear();
                return Some(Err(error));
            }
        };
        self.ready.push_back(done);
        self.ready.pop_front().map(Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{anthropic_answer, json, openai_answer};
    use foldback_llm::{ChatRequest, ToolNames};
    use proptest::prelude::*;
    use serde_json::Value;

    const OPENAI: [&str; 3] = [
        r#"{"choices":[{"delta":{"role":"assistant","content":"上","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"t","arguments":"{\"n\""}}]}}]}"#,
        r#"{"model":"m","choices":[{"delta":{"reasoning":"x","tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":"tool_calls"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}},"error":null}"#,
    ];

    const ANTHROPIC: [&str; 6] = [
        r#"{"type":"message_start","message":{"model":"m","content":[],"usage":{"input_tokens":9,"cache_read_input_tokens":4}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"t","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"n\":1}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    ];

    fn draft() -> Draft {
        Draft::new(&ChatRequest::default(), ToolNames::default(), "m")
    }

    /// Returns any JSON of some depth.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            prop_oneof![any::<u64>(), Just(u64::MAX)].prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[a-z{}\"\\\\上🌧\u{300}]{0,9}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("type|id|index|[a-z]{1,9}", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Replaces the part at a place of the value, counted in the order of the text.
    fn replace(value: &mut Value, place: &mut usize, by: &Value) {
        if *place == 0 {
            *value = by.clone();
        }
        *place = place.wrapping_sub(1);
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| replace(item, place, by)),
            Value::Object(members) => {
                members.values_mut().for_each(|member| replace(member, place, by));
            }
            _ => {}
        }
    }

    /// Reads frames with both readers; either ends in an answer or an error.
    fn read_all(frames: &[String]) {
        let mut ready = VecDeque::new();
        let (mut openai, mut anthropic) =
            (OpenAiFrames::new(draft()), AnthropicFrames::new(draft()));
        let openai_failed = frames.iter().any(|frame| openai.read(frame, &mut ready).is_err());
        let anthropic_failed =
            frames.iter().any(|frame| anthropic.read(frame, &mut ready).is_err());
        for response in [
            (!openai_failed).then(|| openai.finish(&mut VecDeque::new())),
            (!anthropic_failed).then(|| anthropic.finish(&mut VecDeque::new())),
        ] {
            if let Some(Ok(response)) = response {
                let ids: std::collections::BTreeSet<_> =
                    response.message.tool_calls().iter().map(|call| &call.id).collect();
                assert_eq!(ids.len(), response.message.tool_calls().len());
            }
        }
        for frame in frames {
            if let Some(answer) = json::parse(frame) {
                let _ = openai_answer::read(&answer, draft());
                let _ = anthropic_answer::read(&answer, draft());
            }
        }
    }

    proptest! {
        #[test]
        fn no_frame_makes_a_reader_panic(
            replacements in prop::collection::vec((0..9_usize, 0..30_usize, any_json()), 1..3),
            cut in 0..200_usize,
        ) {
            let mut frames: Vec<String> =
                OPENAI.iter().chain(&ANTHROPIC).map(|frame| (*frame).to_owned()).collect();
            let mut last = String::new();
            for (which, mut place, by) in replacements {
                let mut value = json::parse(&frames[which]).unwrap();
                replace(&mut value, &mut place, &by);
                frames[which] = value.to_string();
                last.clone_from(&frames[which]);
            }
            let of_openai: Vec<String> = frames.drain(..OPENAI.len()).collect();
            read_all(&of_openai);
            read_all(&frames);
            let cut: String = last.chars().take(cut).collect();
            read_all(&[cut]);
        }
    }

    #[test]
    fn the_frames_of_that_test_are_an_answer() {
        let mut ready = VecDeque::new();
        let mut openai = OpenAiFrames::new(draft());
        let mut anthropic = AnthropicFrames::new(draft());
        OPENAI.iter().for_each(|frame| openai.read(frame, &mut ready).unwrap());
        ANTHROPIC.iter().for_each(|frame| anthropic.read(frame, &mut ready).unwrap());
        for response in [openai.finish(&mut ready).unwrap(), anthropic.finish(&mut ready).unwrap()]
        {
            assert_eq!(response.message.tool_calls()[0].arguments, "{\"n\":1}");
        }
    }
}

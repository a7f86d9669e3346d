//! Readers of what models answer.

use foldback_providers::Provider;
use foldback_providers::fuzzing;

/// Texts with calls in the format of Hermes.
pub fn hermes_answers() -> Vec<Vec<u8>> {
    let texts = [
        "I look. <tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"港 </tool_call>\"}}\n</tool_call> Then.",
        "<tool_call>{'name': 'read', 'parameters': {'n': 1, 'on': True, 'x': None, 's': 'it\\'s'}}</tool_call>",
        "<tool_call>{\"name\": \"a\"}{\"name\": \"b\", \"arguments\": \"{}\"}</tool_call><tool_response>made up</tool_response>",
        "a < b <tool_call>no call</tool_call> and <tool_call>{\"arguments\": {}, \"name\": \"c\"}<|im_end|>behind",
    ];
    texts.map(Into::into).into()
}

/// Reads any bytes as an answer of chat-completions.
pub fn openai(bytes: &[u8]) {
    answer(Provider::OpenAi, bytes);
}

/// Reads any bytes as an answer of Anthropic's API.
pub fn anthropic(bytes: &[u8]) {
    answer(Provider::Anthropic, bytes);
}

/// However a stream is cut, it is read as the same.
fn answer(provider: Provider, bytes: &[u8]) {
    let told = |piece: usize| match fuzzing::stream(provider, bytes, piece) {
        Ok(response) => {
            let mut ids: Vec<&str> =
                response.message.tool_calls().iter().map(|call| call.id.as_str()).collect();
            ids.sort_unstable();
            assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "two calls have one id");
            response.message.json().to_owned()
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(told(7), told(usize::MAX));
    if let Ok(text) = str::from_utf8(bytes) {
        drop(fuzzing::whole(provider, text));
    }
}

/// Reads any text for calls; however it is cut, they are the same.
pub fn hermes(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    assert_eq!(fuzzing::hermes(&text, 3), fuzzing::hermes(&text, usize::MAX));
}

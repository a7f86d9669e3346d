//! What a model's cosines mean on the built-in texts.

use crate::error::CliError;
use crate::output::Output;
use foldback::Memory;
use foldback::core::Embedder;
use foldback::embedder::{
    CalibrateError, Calibration, OwnCalibration, SCALES_DIFFER, calibrate_on_own_texts,
};

/// Text from the beginning of the store's first conversations, which shows their language.
pub(super) fn sample(memory: &Memory) -> Result<String, CliError> {
    const TODOS: usize = 16;
    const MESSAGES: u64 = 8;
    const CHARS: usize = 500;
    let mut sample = String::new();
    for todo in memory.todos(None, TODOS)? {
        let messages = memory.messages(&todo, 0..memory.len(&todo)?.min(MESSAGES));
        // A damaged conversation is skipped.
        for message in messages.into_iter().flatten() {
            sample.extend(message.text().chars().take(CHARS));
            sample.push('\n');
        }
    }
    Ok(sample)
}

/// What a model's cosines mean on the built-in texts that suit it and the sample; reports if
/// another language gives another scale.
pub(super) fn on_own_texts(
    embedder: &dyn Embedder,
    sample: &str,
    out: &Output,
) -> Result<Calibration, CliError> {
    let mut found = calibrate_on_own_texts(embedder, sample).map_err(failed)?.into_iter();
    let Some(OwnCalibration { language, measured }) = found.next() else {
        return Err(CliError::Usage("there are no built-in texts to measure on".to_owned()));
    };
    for other in found {
        let (one, two) = (measured.scale.same_topic, other.measured.scale.same_topic);
        if (one - two).abs() > SCALES_DIFFER {
            out.note(format_args!(
                "the built-in texts give different scales: same topic at {one:.2} in {language}, \
                 which is taken, and at {two:.2} in {}; `foldback embedder calibrate FILE...` \
                 measures on your own conversations",
                other.language
            ));
        }
    }
    Ok(measured)
}

pub(super) fn failed(error: CalibrateError) -> CliError {
    CliError::Usage(error.to_string())
}

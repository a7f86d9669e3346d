//! Models by name.

use super::{ModelOptions, Pooling};
use crate::LoadError;
use fastembed::{EmbeddingModel, TextEmbedding};
use std::path::PathBuf;

/// Returns the folder of the model that is known by this name, and the settings that its files do
/// not contain.
pub(crate) fn named(name: &str) -> Result<(PathBuf, ModelOptions), LoadError> {
    let known = || {
        let models = TextEmbedding::list_supported_models();
        let mut names: Vec<String> = models
            .iter()
            .filter(|info| TextEmbedding::get_quantization_mode(&info.model) == NOT_QUANTIZED)
            .map(|info| format!("{:?}", info.model))
            .collect();
        names.sort();
        names
    };
    let model: EmbeddingModel = name
        .parse()
        .ok()
        .filter(|model| TextEmbedding::get_quantization_mode(model) == NOT_QUANTIZED)
        .ok_or_else(|| LoadError::NoModel { model: name.to_owned(), known: known() })?;
    let pooling = TextEmbedding::get_default_pooling_method(&model);
    let name = format!("{model:?}");
    let (question, passage) = prefixes(&name);
    let options = ModelOptions {
        name: Some(name),
        pooling: pooling.map(|pooling| match pooling {
            fastembed::Pooling::Mean => Pooling::Mean,
            fastembed::Pooling::Cls => Pooling::Cls,
        }),
        question_prefix: question.map(str::to_owned),
        passage_prefix: passage.map(str::to_owned),
        max_tokens: None,
    };
    Ok((folder(&model)?, options))
}

/// A quantized model's vectors depend on the rest of the batch, or on the processor.
const NOT_QUANTIZED: fastembed::QuantizationMode = fastembed::QuantizationMode::None;

/// The prefixes that a family of models requires for questions and for other texts, as its authors
/// document them.
fn prefixes(name: &str) -> (Option<&'static str>, Option<&'static str>) {
    const FAMILIES: [(&str, &str, &str); 6] = [
        ("MultilingualE5", "query: ", "passage: "),
        ("NomicEmbed", "search_query: ", "search_document: "),
        ("ModernBertEmbed", "search_query: ", "search_document: "),
        ("MxbaiEmbed", "Represent this sentence for searching relevant passages: ", ""),
        ("SnowflakeArcticEmbed", "Represent this sentence for searching relevant passages: ", ""),
        ("EmbeddingGemma", "task: search result | query: ", "title: none | text: "),
    ];
    let family = FAMILIES.iter().find(|(family, _, _)| name.starts_with(family));
    (family.map(|(_, question, _)| *question), family.map(|(_, _, passage)| *passage))
}

#[cfg(not(feature = "fastembed-download"))]
fn folder(model: &EmbeddingModel) -> Result<PathBuf, LoadError> {
    Err(LoadError::NotBuilt { model: format!("{model:?} by name"), feature: "fastembed-download" })
}

#[cfg(feature = "fastembed-download")]
fn folder(model: &EmbeddingModel) -> Result<PathBuf, LoadError> {
    use super::download::{Download, cache};
    let info = TextEmbedding::get_model_info(model)
        .map_err(|error| LoadError::NoModel { model: error.to_string(), known: Vec::new() })?;
    Download::new(&info.model_code).into_folder(&cache()?, &info.model_file, &info.additional_files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = named("NoSuchModel").unwrap_err().to_string();
        for part in ["NoSuchModel", "MultilingualE5Small", "BGESmallZHV15", "model.onnx"] {
            assert!(error.contains(part), "{error}");
        }
        assert!(!error.contains("V2Q"), "{error}");
    }

    #[test]
    fn a_family_has_its_prefixes() {
        assert_eq!(prefixes("MultilingualE5Small"), (Some("query: "), Some("passage: ")));
        assert_eq!(prefixes("AllMiniLML6V2"), (None, None));
    }
}

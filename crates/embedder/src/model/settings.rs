//! The description of a model in its files.

use crate::LoadError;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// How the vectors of a text's tokens are combined into the text's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The mean of all tokens.
    Mean,
    /// The first token, which represents the whole.
    Cls,
}

/// Options for a model besides its files. Each overrides what the files say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelOptions {
    /// The model's name, which begins its id; otherwise the folder's name.
    pub name: Option<String>,
    /// How tokens are pooled; by the mean if no file says.
    pub pooling: Option<Pooling>,
    /// The prefix of a question; empty if no file says.
    pub question_prefix: Option<String>,
    /// The prefix of any other text; empty if no file says.
    pub passage_prefix: Option<String>,
    /// The greatest number of tokens that the model reads.
    pub max_tokens: Option<usize>,
}

/// A model as its files and the options describe it.
pub(super) struct Settings {
    pub(super) name: String,
    pub(super) files: Files,
    pub(super) config: Value,
    pub(super) tokenizer_config: Value,
    pub(super) special_tokens: Value,
    pub(super) pooling: Pooling,
    pub(super) question_prefix: String,
    pub(super) passage_prefix: String,
    pub(super) max_tokens: usize,
}

/// The bytes that the model is made of.
pub(super) struct Files {
    pub(super) weights: Vec<u8>,
    /// Weights that the ONNX file names, stored beside it.
    pub(super) external: Vec<(String, Vec<u8>)>,
    pub(super) tokenizer: Vec<u8>,
}

/// The possible places of the network, in the order of the search.
pub(super) const WEIGHTS: [&str; 2] = ["model.onnx", "onnx/model.onnx"];

/// How many tokens a model reads if no file says.
const MAX_TOKENS: u64 = 512;

/// A model's name is cut to this many characters in its id.
const NAME_CHARS: usize = 48;

impl Settings {
    pub(super) fn read(folder: &Path, options: ModelOptions) -> Result<Self, LoadError> {
        let wrong = |what: String| LoadError::Folder { folder: folder.to_owned(), what };
        let folder = folder.canonicalize().map_err(|error| wrong(error.to_string()))?;
        let read = |name: &str| -> Result<Option<Value>, LoadError> {
            let bytes = match std::fs::read(folder.join(name)) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(wrong(format!("{name}: {error}"))),
            };
            let value = serde_json::from_slice(&bytes);
            value.map(Some).map_err(|error| wrong(format!("{name} is not JSON: {error}")))
        };
        if let Some(modules) = read("modules.json")? {
            check_modules(&modules).map_err(wrong)?;
        }
        let pooling = match (options.pooling, read("1_Pooling/config.json")?) {
            (Some(pooling), _) => pooling,
            (None, Some(config)) => pooling_of(&config).map_err(wrong)?,
            (None, None) => Pooling::Mean,
        };
        let prompts = read("config_sentence_transformers.json")?.unwrap_or_default();
        let prompt = |names: &[&str]| {
            let found = names.iter().find_map(|name| prompts["prompts"][*name].as_str());
            found.unwrap_or_default().to_owned()
        };
        let config = read("config.json")?.unwrap_or_else(|| json!({}));
        let mut tokenizer_config = read("tokenizer_config.json")?.unwrap_or_else(|| json!({}));
        let special_tokens = read("special_tokens_map.json")?.unwrap_or_else(|| json!({}));
        let sentence = read("sentence_bert_config.json")?.unwrap_or_default();
        let limits = [
            options.max_tokens.map(|most| most as u64),
            sentence["max_seq_length"].as_u64(),
            config["max_position_embeddings"].as_u64(),
        ];
        let max_tokens = limits.into_iter().flatten().next().unwrap_or(MAX_TOKENS);
        let max_tokens = usize::try_from(max_tokens).unwrap_or(usize::MAX);
        // The library requires both, and published files omit them or write them otherwise.
        if !tokenizer_config["model_max_length"].is_number() {
            tokenizer_config["model_max_length"] = json!(max_tokens);
        }
        let pad = &tokenizer_config["pad_token"];
        if !pad.is_string() && !pad["content"].is_string() {
            let known = &special_tokens["pad_token"];
            let known = known.as_str().or_else(|| known["content"].as_str()).unwrap_or("[PAD]");
            tokenizer_config["pad_token"] = json!(known);
        }
        let folder_name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let or_prompt =
            |given: Option<String>, names: &[&str]| given.unwrap_or_else(|| prompt(names));
        Ok(Self {
            name: plain(&options.name.unwrap_or(folder_name)),
            files: Files::read(&folder)?,
            pooling,
            question_prefix: or_prompt(options.question_prefix, &["query"]),
            passage_prefix: or_prompt(options.passage_prefix, &["passage", "document"]),
            config,
            tokenizer_config,
            special_tokens,
            max_tokens,
        })
    }

    /// Returns the first digits of a hash over all that a vector depends on.
    pub(super) fn hash(&self, digits: usize) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.files.weights);
        for (_, bytes) in &self.files.external {
            hasher.update(bytes);
        }
        hasher.update(&self.files.tokenizer);
        let Self { pooling, question_prefix, passage_prefix, max_tokens, .. } = self;
        let settings = format!("{pooling:?} {question_prefix:?} {passage_prefix:?} {max_tokens}");
        hasher.update(settings.as_bytes());
        hasher.finalize().to_hex().chars().take(digits).collect()
    }
}

impl Files {
    fn read(folder: &Path) -> Result<Self, LoadError> {
        let wrong = |what: String| LoadError::Folder { folder: folder.to_owned(), what };
        let named = |name: &str| wrong(format!("{name} is missing"));
        let weights = WEIGHTS.iter().map(|name| folder.join(name)).find(|path| path.is_file());
        let weights = weights.ok_or_else(|| named(&WEIGHTS.join(" or ")))?;
        let read = |path: PathBuf| {
            std::fs::read(&path).map_err(|error| wrong(format!("{}: {error}", path.display())))
        };
        // `model.onnx_data` and the like: data that do not fit into one file.
        let mut external = Vec::new();
        let beside = weights.parent().unwrap_or(folder).read_dir().into_iter().flatten().flatten();
        for entry in beside {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.contains(".onnx_data") || name.ends_with(".onnx.data") {
                external.push((name, read(entry.path())?));
            }
        }
        external.sort();
        let tokenizer = folder.join("tokenizer.json");
        if !tokenizer.is_file() {
            return Err(named("tokenizer.json"));
        }
        Ok(Self { weights: read(weights)?, external, tokenizer: read(tokenizer)? })
    }
}

/// Refuses a model with more steps after its network than pooling.
fn check_modules(modules: &Value) -> Result<(), String> {
    for module in modules.as_array().into_iter().flatten() {
        let kind = module["type"].as_str().unwrap_or_default();
        let name = kind.rsplit('.').next().unwrap_or(kind);
        if !["Transformer", "Pooling", "Normalize"].contains(&name) {
            return Err(format!(
                "modules.json has a step {kind:?}, but only Transformer, Pooling and Normalize are \
                 known"
            ));
        }
    }
    Ok(())
}

fn pooling_of(config: &Value) -> Result<Pooling, String> {
    let named = config["pooling_mode"].as_str().map(str::to_owned);
    let flagged = || {
        let modes = config.as_object()?.iter().filter(|(_, on)| **on == Value::Bool(true));
        let modes: Vec<&str> =
            modes.filter_map(|(name, _)| name.strip_prefix("pooling_mode_")).collect();
        Some(modes.join(" and "))
    };
    match named.or_else(flagged).unwrap_or_default().as_str() {
        "mean" | "mean_tokens" => Ok(Pooling::Mean),
        "cls" | "cls_token" => Ok(Pooling::Cls),
        other => Err(format!(
            "1_Pooling/config.json asks for pooling by {other:?}, but only the mean and the first \
             token (cls) are known"
        )),
    }
}

/// Returns a name that an id can hold.
fn plain(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' })
        .take(NAME_CHARS)
        .collect();
    if plain.is_empty() { "model".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a folder that has everything but a network that runs.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let plain = [("model.onnx", "weights"), ("tokenizer.json", "{}")];
        for (name, text) in plain.iter().chain(files) {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        dir
    }

    fn read(files: &[(&str, &str)]) -> Result<Settings, LoadError> {
        Settings::read(folder(files).path(), ModelOptions::default())
    }

    #[test]
    fn a_folder_tells_pooling_prompts_and_length() {
        let settings = read(&[
            (
                "1_Pooling/config.json",
                r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}"#,
            ),
            (
                "config_sentence_transformers.json",
                r#"{"prompts": {"query": "查询：", "document": "文档："}}"#,
            ),
            ("sentence_bert_config.json", r#"{"max_seq_length": 200}"#),
            ("config.json", r#"{"max_position_embeddings": 512}"#),
            ("tokenizer_config.json", r#"{"pad_token": {"content": "<pad>"}}"#),
        ])
        .unwrap();
        assert_eq!(settings.pooling, Pooling::Cls);
        assert_eq!((settings.question_prefix.as_str(), settings.max_tokens), ("查询：", 200));
        assert_eq!(settings.passage_prefix, "文档：");
        assert_eq!(settings.tokenizer_config["model_max_length"], 200);
        assert_eq!(settings.tokenizer_config["pad_token"]["content"], "<pad>");
    }

    #[test]
    fn a_bare_folder_gets_the_usual() {
        let settings = read(&[]).unwrap();
        assert_eq!((settings.pooling, settings.max_tokens), (Pooling::Mean, 512));
        assert_eq!(settings.question_prefix, "");
        assert_eq!(settings.tokenizer_config["pad_token"], "[PAD]");
    }

    #[test]
    fn options_come_before_files_and_change_the_id() {
        let dir = folder(&[("1_Pooling/config.json", r#"{"pooling_mode": "mean"}"#)]);
        let own = Settings::read(dir.path(), ModelOptions::default()).unwrap();
        let options = ModelOptions {
            name: Some("e5 小".to_owned()),
            pooling: Some(Pooling::Cls),
            question_prefix: Some("query: ".to_owned()),
            ..ModelOptions::default()
        };
        let other = Settings::read(dir.path(), options).unwrap();
        assert_eq!((other.pooling, other.question_prefix.as_str()), (Pooling::Cls, "query: "));
        assert_eq!(other.name, "e5-小");
        assert_ne!(own.hash(8), other.hash(8));
    }

    #[test]
    fn what_is_wrong_with_a_folder_is_named() {
        let says = |files: &[(&str, &str)], part: &str| {
            let text = read(files).err().unwrap().to_string();
            assert!(text.contains(part), "{text}");
        };
        says(&[("config.json", "{")], "config.json is not JSON");
        says(&[("1_Pooling/config.json", r#"{"pooling_mode_max_tokens": true}"#)], "max_tokens");
        says(&[("modules.json", r#"[{"type": "sentence_transformers.models.Dense"}]"#)], "Dense");
        let empty = tempfile::tempdir().unwrap();
        let error = Settings::read(empty.path(), ModelOptions::default()).err().unwrap();
        assert!(error.to_string().contains("model.onnx or onnx/model.onnx is missing"), "{error}");
    }
}

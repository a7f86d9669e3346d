//! Downloading a model's files from the Hugging Face Hub, once.

use super::settings::WEIGHTS;
use crate::LoadError;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Names the folder in which fetched models are kept.
const ENVIRONMENT: &str = "FOLDBACK_MODELS";

/// Names another hub, as the hub's own tools read it.
const ENDPOINT: &str = "HF_ENDPOINT";

/// The files beside the network. A model may do without all but the first.
const FILES: [&str; 7] = [
    "tokenizer.json",
    "config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
];

/// The files of one repository of the hub.
pub(super) struct Download {
    base: String,
    name: String,
}

/// Returns the folder in which fetched models are kept.
pub(super) fn cache() -> Result<PathBuf, LoadError> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = variable(ENVIRONMENT).map(PathBuf::from);
    let user = || variable("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || variable("HOME").or_else(|| variable("USERPROFILE"));
    let user = || user().or_else(|| home().map(|home| PathBuf::from(home).join(".cache")));
    own.or_else(|| user().map(|folder| folder.join("foldback").join("models"))).ok_or_else(|| {
        let what = format!("there is no home folder to keep it in; name one in {ENVIRONMENT}");
        LoadError::Fetch { url: "the model".to_owned(), what }
    })
}

impl Download {
    /// Returns the repository of this name (`organisation/model`).
    pub(super) fn new(name: &str) -> Self {
        let endpoint = std::env::var(ENDPOINT).ok().filter(|endpoint| !endpoint.is_empty());
        Self::from(&endpoint.unwrap_or_else(|| "https://huggingface.co".to_owned()), name)
    }

    fn from(endpoint: &str, name: &str) -> Self {
        let base = format!("{}/{name}/resolve/main", endpoint.trim_end_matches('/'));
        Self { base, name: name.replace('/', "--") }
    }

    /// Returns the folder of the model below `cache`, filled from the hub if it is incomplete.
    pub(super) fn into_folder(
        self,
        cache: &Path,
        weights: &str,
        additional: &[String],
    ) -> Result<PathBuf, LoadError> {
        let folder = cache.join(&self.name);
        // A network of another name is stored under the usual one; the files that it refers to keep
        // their own.
        let place = if WEIGHTS.contains(&weights) {
            folder.join(weights)
        } else {
            folder.join(weights).with_file_name("model.onnx")
        };
        if place.is_file() {
            return Ok(folder);
        }
        for (name, is_needed) in FILES.iter().zip(std::iter::once(true).chain([false; 6])) {
            self.fetch(name, &folder.join(name), is_needed)?;
        }
        for name in additional {
            self.fetch(name, &folder.join(name), true)?;
        }
        // The network comes last, so that a folder that has it is complete.
        self.fetch(weights, &place, true)?;
        Ok(folder)
    }

    fn fetch(&self, name: &str, to: &Path, is_needed: bool) -> Result<(), LoadError> {
        let url = format!("{}/{name}", self.base);
        let failed = |what: String| LoadError::Fetch { url: url.clone(), what };
        let body = match ureq::get(&url).call() {
            Ok(response) => response.into_body(),
            Err(ureq::Error::StatusCode(404)) if !is_needed => return Ok(()),
            Err(error) => return Err(failed(error.to_string())),
        };
        let partial = to.with_extension(format!("partial-{}", std::process::id()));
        let written = || -> io::Result<()> {
            fs::create_dir_all(to.parent().unwrap_or(to))?;
            let mut file = File::create(&partial)?;
            io::copy(&mut body.into_reader(), &mut file)?;
            file.sync_all()?;
            fs::rename(&partial, to)
        };
        written().map_err(|error| {
            // The remains of an interrupted download are of no use.
            drop(fs::remove_file(&partial));
            failed(error.to_string())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    /// Returns a hub on this machine that has these files, and counts the requests.
    fn hub(files: &'static [(&str, &str)]) -> (String, std::sync::mpsc::Receiver<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (asked, was_asked) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let line = lines.next().unwrap().unwrap();
                while lines.next().is_some_and(|line| !line.unwrap().is_empty()) {}
                let path = line.split(' ').nth(1).unwrap().to_owned();
                let name = path.strip_prefix("/org/model/resolve/main/").unwrap();
                let found = files.iter().find(|(known, _)| *known == name);
                let (status, text) =
                    found.map_or(("404 Not Found", "no"), |(_, text)| ("200 OK", *text));
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", text.len());
                write!(stream, "{head}connection: close\r\n\r\n{text}").unwrap();
                if asked.send(path).is_err() {
                    return;
                }
            }
        });
        (address, was_asked)
    }

    #[test]
    fn a_model_is_fetched_once_and_whole() {
        let (address, asked) =
            hub(&[("tokenizer.json", "{}"), ("model_optimized.onnx", "weights")]);
        let dir = tempfile::tempdir().unwrap();
        let fetch = || {
            let download = Download::from(&address, "org/model");
            download.into_folder(dir.path(), "model_optimized.onnx", &[])
        };
        let folder = fetch().unwrap();
        assert_eq!(folder, dir.path().join("org--model"));
        assert_eq!(fs::read_to_string(folder.join("model.onnx")).unwrap(), "weights");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing is left over");
        assert_eq!(asked.try_iter().count(), FILES.len() + 1);
        fetch().unwrap();
        assert_eq!(asked.try_iter().count(), 0);
    }

    #[test]
    fn a_file_that_the_hub_has_not_is_named() {
        let (address, _asked) = hub(&[("tokenizer.json", "{}")]);
        let dir = tempfile::tempdir().unwrap();
        let download = Download::from(&address, "org/model");
        let error = download.into_folder(dir.path(), "onnx/model.onnx", &[]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("/org/model/resolve/main/onnx/model.onnx"), "{text}");
        assert!(text.contains("404"), "{text}");
    }
}

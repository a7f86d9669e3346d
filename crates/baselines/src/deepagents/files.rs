//! The files that the policy writes. They are kept in memory: a policy opens no file.

use std::collections::BTreeMap;

/// Texts by path.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    texts: BTreeMap<String, String>,
}

impl Files {
    /// Writes a new file to a folder and returns its path. A name that was used before gets a number.
    pub(super) fn create(&mut self, folder: &str, name: &str, text: &str) -> String {
        let safe = |c: char| if c.is_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = name.chars().map(safe).collect();
        let mut path = format!("/{folder}/{name}");
        let mut n = 2;
        while self.texts.contains_key(&path) {
            path = format!("/{folder}/{name}-{n}");
            n += 1;
        }
        self.texts.insert(path.clone(), text.to_owned());
        path
    }

    /// Appends to a file.
    pub(super) fn append(&mut self, path: &str, text: &str) {
        self.texts.entry(path.to_owned()).or_default().push_str(text);
    }

    /// Returns the text of a file.
    pub(super) fn get(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// Returns the files of this path: the file itself, or those in the folder; all if there is no
    /// path.
    pub(super) fn under<'a>(
        &'a self,
        path: Option<&'a str>,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let folder = path.unwrap_or_default().trim_end_matches('/');
        let is_under = move |file: &str| {
            file.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let files = self.texts.iter().filter(move |(file, _)| is_under(file));
        files.map(|(file, text)| (file.as_str(), text.as_str()))
    }
}

//! The settings in force, and where each comes from.

use super::key::{Key, built_in, with_value};
use super::layer::{self, Layer};
use super::problem::{Problem, SECRET};
use super::{Settings, project};
use crate::error::CliError;
use crate::run::CALLS;
use directories::ProjectDirs;
use figment::value::{Dict, Value};
use foldback_providers::public_url;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// The name of a settings file.
pub(super) const FILE_NAME: &str = "foldback.toml";

/// Name a file where no `--config` does; the second is its older name.
const CONFIG: [&str; 2] = ["FOLDBACK_CONFIG", "FOLDBACK_SETTINGS"];

/// The settings in force, and where each comes from.
#[derive(Clone, Default)]
pub(crate) struct InForce {
    pub(crate) settings: Settings,
    values: BTreeMap<Key, (Value, Source)>,
    /// The project's file, where one was read.
    pub(crate) project: Option<PathBuf>,
    /// The file that was named.
    pub(crate) named: Option<PathBuf>,
}

/// The files that settings are read from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// The user's own.
    pub(crate) user: Option<PathBuf>,
    /// The project's, where there is one.
    pub(crate) project: Option<PathBuf>,
    /// The one that was named.
    pub(crate) named: Option<PathBuf>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    BuiltIn,
    File {
        file: PathBuf,
        line: usize,
    },
    Variable(String),
    Flag(&'static str),
    /// The user's own, and the project's behind it.
    Both(Box<Source>, Box<Source>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built-in"),
            Self::File { file, line } => write!(f, "{}:{line}", file.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
            Self::Both(one, other) => write!(f, "{one} and {other}"),
        }
    }
}

impl Deref for InForce {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

impl Places {
    /// Those of this process, with the file that `--config` or the environment names.
    pub(crate) fn of_process(config: Option<&Path>) -> Self {
        let variable = |name| std::env::var_os(name).filter(|file| !file.is_empty());
        let named = || CONFIG.into_iter().find_map(variable).map(PathBuf::from);
        let folder = std::env::current_dir().ok();
        Self {
            user: user_file(),
            project: folder.and_then(|folder| project::file_of(&folder)),
            named: config.map(Path::to_owned).or_else(named),
        }
    }
}

/// The user's own settings file, whether it is there or not.
fn user_file() -> Option<PathBuf> {
    let dirs = ProjectDirs::from("", "", "foldback")?;
    Some(dirs.config_dir().join(FILE_NAME))
}

impl InForce {
    /// The settings of this process.
    ///
    /// # Errors
    /// When a file cannot be read, or a value makes no sense: the error names key, file and line.
    pub(crate) fn of_process(config: Option<&Path>) -> Result<Self, CliError> {
        let variable = |name: &str| std::env::var(name).ok();
        Self::read(&Places::of_process(config), &variable)
    }

    /// What these files and environment variables say: the environment before the named file before the
    /// project's before the user's.
    pub(crate) fn read(
        places: &Places,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, CliError> {
        let built_in = built_in().into_iter().filter(|(key, _)| !key.is_of_named_model());
        let values = built_in.map(|(key, value)| (key, (value, Source::BuiltIn))).collect();
        let mut read = Self { values, ..Self::default() };
        if let Some(user) = places.user.as_ref().filter(|file| file.is_file()) {
            read.lay(layer::of_file(user)?);
        }
        if let Some(file) = places.project.as_ref().filter(|file| !places.has_named(file)) {
            let layer = layer::of_file(file)?;
            project::check(&layer, file)?;
            read.lay_projects(layer);
            read.project = Some(file.clone());
        }
        if let Some(named) = &places.named {
            read.lay(layer::of_file(named)?);
            read.named = Some(named.clone());
        }
        read.lay(layer::of_environment(variable)?);
        read.settings = read.put_together()?;
        Ok(read)
    }

    fn lay(&mut self, layer: Layer) {
        for (key, value, source) in layer {
            self.values.insert(key, (value, source));
        }
    }

    /// Lays what a project says over what its user says: bounds become lower only, and instructions
    /// follow the user's.
    fn lay_projects(&mut self, layer: Layer) {
        let is_set = |read: &Self, key: &&str| {
            let value = read.values.get(&Key::new(key));
            value.is_some_and(|(value, _)| !matches!(value, Value::Empty(..)))
        };
        let is_users = project::BOUNDS.iter().any(|key| is_set(self, key));
        for (key, value, source) in layer {
            let own = self.values.get(&key);
            let own = own.filter(|(value, _)| !matches!(value, Value::Empty(..)));
            match own {
                Some((own, _)) if project::is_no_lower(&key, own, &value) => {}
                Some((Value::String(_, own), from)) if key == Key::new(project::INSTRUCTIONS) => {
                    let both = format!("{own}\n\n{}", value.as_str().unwrap_or_default());
                    let source = Source::Both(Box::new(from.clone()), Box::new(source));
                    self.values.insert(key, (Value::from(both), source));
                }
                _ => drop(self.values.insert(key, (value, source))),
            }
        }
        // Of a run that nobody bounds the calls are; a high bound of a project does not take that away.
        if !is_users && project::BOUNDS.iter().any(|key| is_set(self, key)) {
            let (calls, built_in) = (Key::new(project::CALLS), Value::from(CALLS));
            let own = self.values.get(&calls).map(|(value, _)| value);
            if own.is_none_or(|own| project::is_no_lower(&calls, &built_in, own)) {
                self.values.insert(calls, (built_in, Source::BuiltIn));
            }
        }
    }

    fn put_together(&self) -> Result<Settings, CliError> {
        let mut table = Dict::new();
        for (key, (value, _)) in &self.values {
            with_value(&mut table, &key.0, value.clone());
        }
        let settings = Value::from(table).deserialize::<Settings>();
        let settings = settings.map_err(|error| Problem::new(&error).at(&Source::BuiltIn))?;
        match settings.check() {
            Ok(()) => Ok(settings),
            Err((key, what)) => {
                let source = self.source(&Key::new(key));
                Err(CliError::Usage(format!("{source}: {key}: {what}")))
            }
        }
    }

    fn source(&self, key: &Key) -> Source {
        self.values.get(key).map_or(Source::BuiltIn, |(_, source)| source.clone())
    }

    /// The same with what a flag says of a setting.
    pub(crate) fn with_flag(mut self, key: &str, value: &str, flag: &'static str) -> Self {
        self.values.insert(Key::new(key), (Value::from(value), Source::Flag(flag)));
        self
    }

    /// Where a setting comes from, where it is not built in.
    pub(crate) fn source_of(&self, key: &str) -> Option<String> {
        let source = self.source(&Key::new(key));
        (source != Source::BuiltIn).then(|| source.to_string())
    }

    /// Each setting with its value and where it comes from, in the order of keys. What may be secret is
    /// masked.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (&Key, serde_json::Value, &Source)> {
        self.values.iter().map(|(key, (value, source))| (key, shown(key, value), source))
    }
}

impl Places {
    /// Whether a file is the one that was named, which is then no longer a project's.
    fn has_named(&self, file: &Path) -> bool {
        let Some(named) = &self.named else { return false };
        match (named.canonicalize(), file.canonicalize()) {
            (Ok(named), Ok(file)) => named == file,
            _ => false,
        }
    }
}

/// A value as it may be shown.
fn shown(key: &Key, value: &Value) -> serde_json::Value {
    let json = serde_json::to_value(value).unwrap_or_default();
    let masked = |text: &str| match key.last() {
        SECRET => "[key]".to_owned(),
        "base_url" | "workers" => public_url(text),
        _ => text.to_owned(),
    };
    match json {
        serde_json::Value::String(text) => masked(&text).into(),
        serde_json::Value::Array(items) => items
            .into_iter()
            .map(|item| item.as_str().map_or(item.clone(), |text| masked(text).into()))
            .collect(),
        json => json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// What files of these texts say, the weakest first, with these environment variables.
    fn read(files: [&str; 3], variables: &[(&str, &str)]) -> Result<InForce, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            (!text.is_empty()).then_some(path)
        };
        let [user, project, named] = files;
        let places = Places {
            user: file("user.toml", user),
            project: file("project.toml", project),
            named: file("named.toml", named),
        };
        let variables: BTreeMap<_, _> = variables.iter().copied().collect();
        let read =
            InForce::read(&places, &|name| variables.get(name).map(|text| (*text).to_owned()));
        let folder = format!("{}/", folder.path().display());
        read.map_err(|error| error.to_string().replace(&folder, ""))
    }

    #[test]
    fn the_stronger_source_wins_and_is_named() {
        let files = [
            "[agent]\nmax_replans = 1\n[view]\nfresh_tokens = 1\nledger_lines = 1\nwindow_messages = 1",
            "[agent]\nmax_replans = 2\n[view]\nfresh_tokens = 2\nledger_lines = 2",
            "[agent]\nmax_replans = 3\n[view]\nfresh_tokens = 3",
        ];
        let read = read(files, &[("FOLDBACK_VIEW_FRESH_TOKENS", "4")]).unwrap();
        let view = &read.view;
        assert_eq!(
            (view.fresh_tokens, read.agent.max_replans, view.ledger_lines, view.window_messages),
            (4, 3, 2, 1)
        );
        assert_eq!(read.source_of("view.fresh_tokens").unwrap(), "FOLDBACK_VIEW_FRESH_TOKENS");
        let line = |key| read.source_of(key).unwrap().rsplit('/').next().unwrap().to_owned();
        assert_eq!(line("agent.max_replans"), "named.toml:2");
        assert_eq!(line("view.window_messages"), "user.toml:6");
        assert_eq!(read.source_of("agent.max_steps"), None);
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_place() {
        for (text, told) in [
            (
                "[agent]\n\nmax_step = 3",
                "user.toml:3: there is no setting agent.max_step; did you mean agent.max_steps?",
            ),
            (
                "[view]\nmax_steps = 3",
                "user.toml:2: there is no setting view.max_steps; did you mean agent.max_steps?",
            ),
            (
                "[agnet]\nmax_steps = 3",
                "user.toml:1: there is no setting agnet; did you mean [agent]?",
            ),
            (
                "[models.\"小\"]\nbase_ulr = \"x\"",
                "user.toml:2: there is no setting models.小.base_ulr; did you mean models.小.base_url?",
            ),
            (
                "[agent]\nmax_steps = \"many\"",
                "user.toml:2: agent.max_steps is \"many\", but a whole number of 0 or more was expected",
            ),
            (
                "[agent]\nmax_steps = -1",
                "user.toml:2: agent.max_steps is -1, but a whole number of 0 or more was expected",
            ),
            (
                "[agent]\nmax_steps = 0",
                "user.toml:2: agent.max_steps: 0 leaves nothing to do; at least 1 was expected",
            ),
            (
                "[agent]\nmax_time = \"1d\"",
                "user.toml:2: agent.max_time is \"1d\", but a time such as 90s, 10m or 2h was expected",
            ),
            (
                "[tools]\nhosts = \"docs.rs\"",
                "user.toml:2: tools.hosts is \"docs.rs\", but a list, as [\"one\", \"two\"], was expected",
            ),
            (
                "[model]\nprovider = \"acme\"",
                "user.toml:2: model.provider is \"acme\", but one of openai, openai-compatible, anthropic was expected",
            ),
            (
                "[model]\nname = \"一\"\napi_key = 5",
                "user.toml:3: model.api_key is no text, but a text in quotes was expected",
            ),
            (
                "[memory]\nblock_min = 9",
                "user.toml:2: memory.block_min: blocks hold 9 to 8 messages, but 1 <= min <= max <= 8 is expected",
            ),
            ("view = 3", "user.toml:1: view is 3, but a table was expected"),
        ] {
            assert_eq!(read([text, "", ""], &[]).err().as_deref(), Some(told), "{text}");
        }
        let broken = read(["[model]\napi_key = \"sk-secret", "", ""], &[]).err().unwrap();
        assert!(broken.starts_with("user.toml:2: this is no TOML: "), "{broken}");
        assert!(!broken.contains("secret"), "{broken}");
        let told = read(["", "", ""], &[("FOLDBACK_TOOLS_SHELL", "never")]).err().unwrap();
        assert_eq!(
            told,
            "FOLDBACK_TOOLS_SHELL: tools.shell is \"never\", but true or false was expected"
        );
    }

    /// A text in the environment is a number, a list or a word, as its setting wants it.
    #[test]
    fn variables_are_read_in_the_form_of_their_setting() {
        let variables = [
            ("FOLDBACK_MODEL", "123"),
            ("FOLDBACK_STORE", "/数据"),
            ("FOLDBACK_AGENT_MAX_COST", "2"),
            ("FOLDBACK_AGENT_MAX_TIME", "10m"),
            ("FOLDBACK_TOOLS_HOSTS", "docs.rs, *.example.org"),
            ("FOLDBACK_TOOLS_SHELL", "false"),
            ("FOLDBACK_GRAMMAR", " "),
        ];
        let read = read(["", "", ""], &variables).unwrap();
        assert_eq!(read.model.name.as_deref(), Some("123"));
        assert_eq!(read.memory.store.as_deref(), Some(Path::new("/数据")));
        assert_eq!(read.agent.max_cost, Some(2.0));
        assert_eq!(read.agent.max_time.map(|time| time.seconds()), Some(600));
        assert_eq!(read.tools.hosts, ["docs.rs", "*.example.org"]);
        assert!(!read.tools.shell && read.model.grammar.is_none());
    }

    /// A project comes from somebody else: it permits nothing.
    #[test]
    fn a_project_permits_nothing() {
        for said in [
            "[tools]\nhosts = [\"evil.example\"]",
            "[tools]\napprove = true",
            "[tools]\nprivate_hosts = true",
            "[tools]\nmcp = \"servers.json\"",
            "[tools]\nshell = true",
            "[tools]\ndocuments = \"..\"",
            "[tools]\ndocuments = \"/etc\"",
            "[model]\nbase_url = \"http://evil.example/v1\"",
            "[model]\nname = \"claude-x\"",
            "[models.small]\nbase_url = \"http://evil.example/v1\"",
            "[memory]\nstore = \"/home\"",
            "[memory]\nembedder = \"model\"",
        ] {
            let told = read(["", said, ""], &[]).err().unwrap_or_else(|| panic!("{said}"));
            assert!(told.starts_with("project.toml:2: a project's file may "), "{told}");
        }
    }

    #[test]
    fn every_setting_is_refused_to_a_project_unless_it_is_listed() {
        let lists =
            [&project::MAY_SAY[..], &project::MAY_LOWER, &project::MAY_FORBID, &project::MAY_NAME];
        let known: Vec<String> = built_in().into_iter().map(|(key, _)| key.to_string()).collect();
        for key in lists.concat() {
            assert!(known.iter().any(|known| known == key), "{key} is no setting");
        }
    }

    #[test]
    fn a_project_lowers_bounds_and_raises_none() {
        let user = "[agent]\nmax_calls = 10\nmax_time = \"10m\"\nmax_cost = 0.5";
        let project =
            "[agent]\nmax_calls = 100\nmax_time = \"90s\"\nmax_cost = 0.6\nmax_tokens = 7";
        let read = read([user, project, ""], &[]).unwrap();
        let agent = &read.agent;
        assert_eq!(
            (agent.max_calls, agent.max_cost, agent.max_tokens),
            (Some(10), Some(0.5), Some(7))
        );
        assert_eq!(agent.max_time.map(|time| time.seconds()), Some(90));
        assert!(read.source_of("agent.max_calls").unwrap().ends_with("user.toml:2"));
    }

    /// Without any bound a run may ask the model so often; a project's high one does not change that.
    #[test]
    fn a_project_does_not_take_the_built_in_bound_away() {
        let calls = |project: &str| read(["", project, ""], &[]).unwrap().agent.max_calls;
        assert_eq!(calls("[agent]\nmax_tokens = 1000000000"), Some(CALLS));
        assert_eq!(calls("[agent]\nmax_calls = 100000"), Some(CALLS));
        assert_eq!(calls("[agent]\nmax_calls = 7\nmax_time = \"10h\""), Some(7));
        assert_eq!(calls("[agent]\nmax_replans = 2"), None);
    }

    #[test]
    fn instructions_of_a_project_follow_the_users() {
        let user = "[agent]\ninstructions = \"Never push.\"";
        let read = read([user, "[agent]\ninstructions = \"用中文。\"", ""], &[]).unwrap();
        assert_eq!(read.agent.instructions.as_deref(), Some("Never push.\n\n用中文。"));
        let source = read.source_of("agent.instructions").unwrap();
        assert!(
            source.contains("user.toml:2 and ") && source.ends_with("project.toml:2"),
            "{source}"
        );
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        let model = "[model]\napi_key = \"sk-secret\"\nbase_url = \"http://me:sk-secret@host/v1\"";
        let read = read([model, "", ""], &[]).unwrap();
        let shown = format!("{:?}", read.shown().map(|(_, value, _)| value).collect::<Vec<_>>());
        assert!(!shown.contains("sk-secret") && shown.contains("[key]"), "{shown}");
    }

    #[test]
    fn a_projects_file_is_looked_for_within_its_repository() {
        let folder = tempfile::tempdir().unwrap();
        let [outside, root, inner] = ["", "repo", "repo/a/b"].map(|name| folder.path().join(name));
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::write(outside.join(FILE_NAME), "").unwrap();
        assert_eq!(project::file_of(&inner), None, "no repository: the folder itself alone");
        assert_eq!(project::file_of(&outside), Some(outside.join(FILE_NAME)));
        std::fs::create_dir(root.join(".git")).unwrap();
        assert_eq!(project::file_of(&inner), None, "above the root");
        std::fs::write(root.join(FILE_NAME), "").unwrap();
        assert_eq!(project::file_of(&inner), Some(root.join(FILE_NAME)));
    }
}

//! `docs/settings.md`: the page that explains every setting, and what is made from it.

use super::key::{Key, NAME, built_in};
use std::fmt::Write as _;

/// The page. It is reached by a link inside this crate, because a package holds nothing from outside its folder; in the
/// package the link is a file.
const PAGE: &str = include_str!("settings.md");

/// The page's word for a setting without a default.
const NO_DEFAULT: &str = "none";

/// The page's entry for a setting.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) key: String,
    pub(super) expects: String,
    pub(super) default: String,
    /// The flag, if there is one; two if one is the opposite.
    pub(super) flag: Option<String>,
    pub(super) variable: Option<String>,
    pub(super) meaning: String,
}

/// The rows of the page's tables, in order.
pub(super) fn rows() -> Vec<Row> {
    PAGE.lines().filter_map(row).collect()
}

/// `| `key` | expects | default | flag | variable | meaning |`.
fn row(line: &str) -> Option<Row> {
    let line = line.strip_prefix("| `")?.strip_suffix(" |")?;
    let cells: Vec<String> = line.split(" | ").map(|cell| cell.trim().replace('`', "")).collect();
    let [key, expects, default, flag, variable, meaning] = <[String; 6]>::try_from(cells).ok()?;
    let given = |cell: String| (!cell.is_empty()).then_some(cell);
    Some(Row { key, expects, default, flag: given(flag), variable: given(variable), meaning })
}

/// A settings file in which every setting is a comment with its built-in value.
pub(crate) fn commented_file() -> String {
    let mut file =
        "# The settings of foldback. Anything not set here has the default in the comment.\n\
         # To set something, remove the mark `# ` before its line and before the [section] above it.\n"
            .to_owned();
    let mut section = String::new();
    for Row { key, expects, default, meaning, .. } in rows() {
        let Some((of, name)) = key.rsplit_once('.') else { continue };
        if of.starts_with("models") {
            continue;
        }
        if section != of {
            // Writing to a string does not fail.
            let _ = write!(file, "\n# [{of}]\n");
            section = of.to_owned();
        }
        let value = built_in().into_iter().find(|(known, _)| known.to_string() == key);
        let value = value.and_then(|(_, value)| serde_json::to_value(value).ok());
        let value = value.filter(|value| !value.is_null()).map(|value| value.to_string());
        let value = value.unwrap_or_default();
        let _ = write!(file, "# {meaning} ({expects}; default: {default})\n# {name} = {value}\n");
    }
    file.push_str("\n# Further models, for roles that name them: the same keys as in [model].\n");
    let _ = writeln!(file, "# [models.{NAME}]");
    file
}

/// The default of a setting that has no built-in value, in words; `None` if there is none.
pub(crate) fn default_of(key: &Key) -> Option<String> {
    let key = key.to_string();
    let row = rows().into_iter().find(|row| row.key == key)?;
    Some(row.default).filter(|default| default != NO_DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use crate::settings::project::{MAY_FORBID, MAY_LOWER, MAY_NAME, MAY_SAY, UNLESS_SAID};
    use clap::CommandFactory as _;
    use std::collections::BTreeSet;

    impl Row {
        fn flags(&self) -> impl Iterator<Item = &str> {
            self.flag.iter().flat_map(|flags| flags.split(", "))
        }
    }

    /// The flags of `run` that are not settings.
    const NO_SETTINGS: [&str; 12] = [
        "--config",
        "--demo",
        "--help",
        "--id",
        "--json",
        "--quiet",
        "--resume",
        "--store",
        "--task",
        "--todo",
        "--version",
        "--workspace",
    ];

    /// Fails for a setting without a line on the page, and for a line without a setting.
    #[test]
    fn the_page_tells_of_every_setting_and_of_no_other() {
        let of_page: BTreeSet<String> = rows().into_iter().map(|row| row.key).collect();
        let built_in = built_in();
        let settings = built_in.iter().map(|(key, _)| key).filter(|key| !key.is_of_named_model());
        let settings: BTreeSet<String> = settings.map(ToString::to_string).collect();
        assert_eq!(of_page, settings);
        assert_eq!(rows().len(), of_page.len(), "a setting has one line");
    }

    /// The built-in value, the environment variable and the flag are those of the program.
    #[test]
    fn the_page_tells_defaults_variables_and_flags_as_they_are() {
        let built_in = built_in();
        let command = Cli::command();
        let run = command.find_subcommand("run").unwrap();
        let flags: BTreeSet<String> = run
            .get_arguments()
            .chain(command.get_arguments())
            .filter_map(|flag| flag.get_long().map(|long| format!("--{long}")))
            .collect();
        for row in rows() {
            let key = Key::new(&row.key);
            assert_eq!(row.variable, key.variable(), "{}", row.key);
            assert!(row.flags().all(|flag| flags.contains(flag)), "{row:?}");
            let (_, value) = built_in.iter().find(|(known, _)| *known == key).unwrap();
            let value = serde_json::to_value(value).unwrap();
            match value.as_str() {
                Some(text) => assert_eq!(row.default, text, "{}", row.key),
                None if value.is_null() => assert!(!row.default.is_empty(), "{}", row.key),
                None => assert_eq!(row.default, value.to_string(), "{}", row.key),
            }
        }
        let rows = rows();
        let told: BTreeSet<&str> = rows.iter().flat_map(Row::flags).collect();
        let of_run = run.get_arguments().filter_map(|flag| flag.get_long());
        for flag in of_run.map(|long| format!("--{long}")) {
            let is_told = told.contains(flag.as_str()) || NO_SETTINGS.contains(&flag.as_str());
            assert!(is_told, "{flag} is no setting: give it a key, or list it here");
        }
    }

    #[test]
    fn the_page_lists_what_a_project_may_say() {
        let lists = [&MAY_SAY[..], &UNLESS_SAID, &MAY_LOWER, &MAY_FORBID, &MAY_NAME];
        let words = ["say |", "say where", "lower", "forbid", "name"];
        for (list, what) in lists.into_iter().zip(words) {
            let keys: Vec<String> = list.iter().map(|key| format!("`{key}`")).collect();
            let line = PAGE.lines().find(|line| line.starts_with(&format!("| {what} "))).unwrap();
            assert!(line.ends_with(&format!("| {} |", keys.join(", "))), "{line}");
        }
    }

    /// A section that is appended to the file must not be there twice.
    #[test]
    fn the_commented_file_says_nothing_and_is_toml() {
        let file = commented_file();
        let is_said = |line: &&str| !line.is_empty() && !line.starts_with("# ");
        assert_eq!(file.lines().find(is_said), None);
        assert!(file.contains("\n# [agent]\n") && file.contains("\n# max_replans = 3\n"), "{file}");
        let read = |text: &str| toml_edit::ImDocument::parse(text.to_owned()).unwrap();
        for section in ["memory", "view", "agent", "flow", "model", "tools", "search"] {
            let appended = read(&format!("{file}\n[{section}]\nx = \"是\"\n"));
            assert_eq!(appended[section]["x"].as_str(), Some("是"));
        }
        // Each line becomes a setting if its mark and its section's are removed.
        let bare = file.replace("\n# block_max", "\nblock_max");
        let bare = read(&bare.replace("\n# [memory]", "\n[memory]"));
        assert_eq!(bare["memory"]["block_max"].as_integer(), Some(5));
    }

    #[test]
    fn a_default_is_told_where_no_value_is_built_in() {
        let told = |key| default_of(&Key::new(key));
        assert_eq!(told("view.policy").as_deref(), Some("auto"));
        let calls = told("agent.max_calls").unwrap();
        assert!(calls.contains(&foldback_core::thousands(crate::run::CALLS)), "{calls}");
        assert_eq!(told("memory.max_todos"), None);
    }
}

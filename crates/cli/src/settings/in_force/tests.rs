//! Which settings are in force, file by file and layer by layer.

use super::*;
use std::collections::BTreeMap;

/// Reads files with these texts, the weakest first, with these environment variables.
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
    let read = InForce::read(&places, &|name| variables.get(name).map(|text| (*text).to_owned()));
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
        ("[agnet]\nmax_steps = 3", "user.toml:1: there is no setting agnet; did you mean [agent]?"),
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
            "user.toml:2: tools.hosts is \"docs.rs\", but a list such as [\"one\", \"two\"] was expected",
        ),
        (
            "[model]\nprovider = \"acme\"",
            "user.toml:2: model.provider is \"acme\", but one of openai, openai-compatible, anthropic was expected",
        ),
        (
            "[model]\nname = \"一\"\napi_key = 5",
            "user.toml:3: model.api_key is not text, but a text in quotes was expected",
        ),
        (
            "[memory]\nblock_min = 9",
            "user.toml:2: memory.block_min: blocks hold 9 to 5 messages, but 1 <= min <= max <= 8 is expected",
        ),
        ("view = 3", "user.toml:1: view is 3, but a table was expected"),
    ] {
        assert_eq!(read([text, "", ""], &[]).err().as_deref(), Some(told), "{text}");
    }
    let broken = read(["[model]\napi_key = \"sk-secret", "", ""], &[]).err().unwrap();
    assert!(broken.starts_with("user.toml:2: this is not valid TOML: "), "{broken}");
    assert!(!broken.contains("secret"), "{broken}");
    let told = read(["", "", ""], &[("FOLDBACK_TOOLS_SHELL", "never")]).err().unwrap();
    assert_eq!(
        told,
        "FOLDBACK_TOOLS_SHELL: tools.shell is \"never\", but true or false was expected"
    );
}

/// A text in the environment is a number, a list or a word, depending on its setting.
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

/// A project does not lift the restrictions of its user.
#[test]
fn a_project_takes_no_restriction_away() {
    let user = "[agent]\ntool_choice = \"none\"\nsub_agent_share = 10\nmax_replans = 1\n\
                [view]\nbudget_tokens = 9000\n[flow]\nmax_retries = 0\nmax_replans = 0\n\
                [search]\nmax_parallel = 1\nmax_research_loops = 1";
    let project = "[agent]\ntool_choice = \"auto\"\nsub_agent_share = 100\nmax_replans = 3\n\
                   tool_states = { start = \"all\", states = { all = {} } }\n\
                   [view]\nbudget_tokens = 90000\n[flow]\nmax_retries = 9\nmax_replans = 9\n\
                   [search]\nmax_parallel = 9\nmax_research_loops = 9";
    let (alone, both) =
        (read([user, "", ""], &[]).unwrap(), read([user, project, ""], &[]).unwrap());
    assert!(both.settings == alone.settings, "{:?}", both.agent);
    let said = |project: &str| read(["", project, ""], &[]).unwrap().agent.clone();
    assert_eq!(said("[agent]\nsub_agent_share = 100").sub_agent_share, None, "50 are built in");
    assert_eq!(said("[agent]\nsub_agent_share = 20").sub_agent_share, Some(20));
    assert_eq!(said("[agent]\ntool_choice = \"none\"").tool_choice.as_deref(), Some("none"));
}

#[test]
fn every_setting_is_refused_to_a_project_unless_it_is_listed() {
    let lists = [
        &project::MAY_SAY[..],
        &project::UNLESS_SAID,
        &project::MAY_LOWER,
        &project::MAY_FORBID,
        &project::MAY_NAME,
    ];
    let known: Vec<String> = built_in().into_iter().map(|(key, _)| key.to_string()).collect();
    for key in lists.concat() {
        assert!(known.iter().any(|known| known == key), "{key} is no setting");
    }
}

#[test]
fn a_project_lowers_bounds_and_raises_none() {
    let user = "[agent]\nmax_calls = 10\nmax_time = \"10m\"\nmax_cost = 0.5";
    let project = "[agent]\nmax_calls = 100\nmax_time = \"90s\"\nmax_cost = 0.6\nmax_tokens = 7";
    let read = read([user, project, ""], &[]).unwrap();
    let agent = &read.agent;
    assert_eq!((agent.max_calls, agent.max_cost, agent.max_tokens), (Some(10), Some(0.5), Some(7)));
    assert_eq!(agent.max_time.map(|time| time.seconds()), Some(90));
    assert!(read.source_of("agent.max_calls").unwrap().ends_with("user.toml:2"));
}

/// Without any limit a run may ask the model a built-in number of times; a project's high limit does not change that.
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
    assert!(source.contains("user.toml:2 and ") && source.ends_with("project.toml:2"), "{source}");
}

#[test]
fn what_may_be_secret_is_not_shown() {
    let model = "[model]\napi_key = \"sk-secret\"\nbase_url = \"http://me:sk-secret@host/v1\"\n\
                 [search]\nkind = \"searxng:http://me:sk-secret@host\"";
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

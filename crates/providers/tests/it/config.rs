//! Settings by flag, environment and file.

use foldback_core::Prices;
use foldback_llm::{ModelErrorKind, Usage};
use foldback_providers::{
    ApiKey, Family, ModelConfig, ModelFlags, ModelSources, Provider, RemoteModel, ToolCalls,
};
use std::time::Duration;

/// Settings from a file's text and environment variables.
fn load(
    flags: ModelFlags,
    environment: &[(&str, &str)],
    file: Option<&str>,
) -> Result<ModelConfig, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = file.map(|text| {
        let path = folder.path().join("foldback.toml");
        std::fs::write(&path, text).unwrap();
        path
    });
    let environment =
        environment.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let mut sources = ModelSources::default().with_flags(flags).with_environment(environment);
    sources.file = file;
    ModelConfig::load(&sources).map_err(|error| {
        assert_eq!(error.kind, ModelErrorKind::Configuration);
        error.message
    })
}

fn by_environment(environment: &[(&str, &str)]) -> Result<ModelConfig, String> {
    load(ModelFlags::default(), environment, None)
}

const FILE: &str = r#"
other = "tables are not looked at"
[model]
name = "from-file"
base_url = "http://file.example/v1"
api_key = "file-key"
provider = "openai-compatible"
connect_seconds = 1
answer_seconds = 2
silence_seconds = 3
attempts = 7
wait_seconds = 9
total_seconds = 11
retry_seed = 42
prefill = true
allowed_tools = true
cache_marks = true
long_cache = true
session_header = "x-session"
workers = ["http://b.example/v1"]
tool_calls = "hermes"
grammar = true
diversity = 5
context_tokens = 32768
max_tokens = 900
stream = false
family = "mistral"
parallel_calls = false
required_calls = false
prices = { read = 0.5, write = 1.0, plain = 1.0 }
"#;

#[test]
fn flags_go_before_environment_before_file() {
    let file = load(ModelFlags::default(), &[], Some(FILE)).unwrap();
    let mut expected =
        ModelConfig::new(Provider::OpenAiCompatible, "http://file.example/v1", "from-file");
    expected.api_key = Some(ApiKey::new("file-key"));
    expected.timeouts.connect = Duration::from_secs(1);
    expected.timeouts.answer = Duration::from_secs(2);
    expected.timeouts.silence = Duration::from_secs(3);
    expected.retry.attempts = 7;
    expected.retry.total_wait = Duration::from_secs(9);
    expected.retry.total_time = Duration::from_secs(11);
    expected.retry.seed = 42;
    expected.prices = Prices { read: 0.5, write: 1.0, plain: 1.0 };
    expected.session_header = Some("x-session".to_owned());
    let expected = expected.with_workers(["http://b.example/v1"]).with_diversity(5);
    let expected = expected.with_context_tokens(32_768).with_max_tokens(900).with_stream(false);
    let mut template = Family::Mistral.template();
    template.parallel_calls = false;
    let expected = expected.with_template(template).with_required_calls(false);
    let mut expected = expected.with_tool_calls(ToolCalls::Hermes).with_grammar(true);
    (expected.prefill, expected.allowed_tools) = (true, true);
    (expected.cache_marks, expected.long_cache) = (true, true);
    assert_eq!(file, expected);

    let environment = [
        ("FOLDBACK_MODEL", "模型"),
        ("FOLDBACK_BASE_URL", "http://env.example/v1"),
        ("FOLDBACK_API_KEY", " env-key\n"),
        ("FOLDBACK_PROVIDER", ""),
        ("OPENAI_API_KEY", "other"),
    ];
    let both = load(ModelFlags::default(), &environment, Some(FILE)).unwrap();
    assert_eq!((both.name.as_str(), both.base_url.as_str()), ("模型", "http://env.example/v1"));
    assert_eq!(both.api_key, Some(ApiKey::new("env-key")));
    assert_eq!(both.provider, Provider::OpenAiCompatible, "an empty variable is not set");
    assert_eq!(both.retry.attempts, 7);

    let flags = ModelFlags::default().with_name("from-flag").with_provider("anthropic");
    let all = load(flags, &environment, Some(FILE)).unwrap();
    assert_eq!((all.name.as_str(), all.provider), ("from-flag", Provider::Anthropic));
    assert_eq!(all.base_url, "http://env.example/v1");
}

#[test]
fn the_provider_is_told_from_address_or_name() {
    use Provider::{Anthropic, OpenAi, OpenAiCompatible};
    for (name, base_url, expected) in [
        ("claude-sonnet-4-5", "", Anthropic),
        ("gpt-5", "", OpenAi),
        ("o3-mini", "", OpenAi),
        ("x", "https://api.anthropic.com", Anthropic),
        ("x", "https://api.openai.com/v1", OpenAi),
        ("deepseek-chat", "https://api.deepseek.com/anthropic", Anthropic),
        ("claude-sonnet-4-5", "http://localhost:8000/v1", OpenAiCompatible),
        ("x", "https://api.openai.com.evil.example/v1", OpenAiCompatible),
    ] {
        let environment =
            [("FOLDBACK_MODEL", name), ("FOLDBACK_BASE_URL", base_url), ("FOLDBACK_API_KEY", "k")];
        let config = by_environment(&environment).unwrap();
        assert_eq!(config.provider, expected, "{name} {base_url}");
    }
    let error = by_environment(&[("FOLDBACK_MODEL", "qwen3")]).unwrap_err();
    assert!(error.contains("\"qwen3\"") && error.contains("FOLDBACK_BASE_URL"), "{error}");
    let error =
        by_environment(&[("FOLDBACK_MODEL", "x"), ("FOLDBACK_PROVIDER", "openai-compatible")]);
    assert!(error.unwrap_err().contains("no default address"));
}

/// The key of a provider is shown to that provider alone.
#[test]
fn usual_keys_are_for_their_providers_own_address() {
    let keys = [("OPENAI_API_KEY", "openai-key"), ("ANTHROPIC_API_KEY", "anthropic-key")];
    let with = |more: &[(&str, &str)]| {
        by_environment(&[&keys[..], more].concat()).map(|config| config.api_key)
    };
    let key = |text: &str| Ok(Some(ApiKey::new(text)));
    assert_eq!(with(&[("FOLDBACK_MODEL", "gpt-5")]), key("openai-key"));
    assert_eq!(with(&[("FOLDBACK_MODEL", "claude-opus-4-1")]), key("anthropic-key"));
    assert_eq!(with(&[("FOLDBACK_MODEL", "gpt-5"), ("FOLDBACK_API_KEY", "mine")]), key("mine"));
    for base_url in [
        "https://api.openai.com.evil.example/v1",
        "http://api.openai.com/v1",
        "https://evil.example/?https://api.openai.com/v1",
        "https://evil.example/anthropic",
    ] {
        for provider in ["openai", "anthropic", "openai-compatible"] {
            let config = with(&[
                ("FOLDBACK_MODEL", "gpt-5"),
                ("FOLDBACK_BASE_URL", base_url),
                ("FOLDBACK_PROVIDER", provider),
            ]);
            assert_eq!(config, Ok(None), "{base_url} {provider}");
        }
    }
    let error = by_environment(&[("FOLDBACK_MODEL", "gpt-5")]).unwrap_err();
    assert!(error.contains("FOLDBACK_API_KEY or OPENAI_API_KEY"), "{error}");
}

#[test]
fn a_cached_prefix_lives_as_long_as_its_provider_says() {
    let life = |more: &str| {
        let file = format!("[model]\nname = \"m\"\napi_key = \"k\"\n{more}");
        load(ModelFlags::default(), &[], Some(&file)).unwrap().cache_terms().life
    };
    let anthropic = "provider = \"anthropic\"\n";
    let local = "base_url = \"http://localhost/v1\"\n";
    let [hour, own] = ["long_cache = true\n", "cache_life_seconds = 90\n"];
    assert_eq!(life(anthropic), Duration::from_secs(300));
    assert_eq!(life(&[anthropic, hour].concat()), Duration::from_secs(3_600));
    assert_eq!(life("provider = \"openai\"\n"), Duration::from_secs(600));
    assert_eq!(life(local), Duration::MAX);
    assert_eq!(life(&[local, own].concat()), Duration::from_secs(90));
    assert_eq!(life(&[anthropic, hour, own].concat()), Duration::from_secs(90));
}

#[test]
fn prices_are_the_providers_usual_ones() {
    let prices = |more: &[(&str, &str)]| {
        let environment = [&[("FOLDBACK_MODEL", "m"), ("FOLDBACK_API_KEY", "k")], more].concat();
        by_environment(&environment).unwrap().prices
    };
    let of = |read, write| Prices { read, write, plain: 1.0 };
    assert_eq!(prices(&[("FOLDBACK_PROVIDER", "anthropic")]), of(0.1, 1.25));
    assert_eq!(prices(&[("FOLDBACK_PROVIDER", "openai")]), of(1.0, 1.0), "an unknown model");
    for (name, read, write) in [
        ("gpt-5.6", 0.1, 1.25),
        ("gpt-5.10-mini", 0.1, 1.25),
        ("gpt-6", 0.1, 1.25),
        ("gpt-5.5", 0.1, 1.0),
        ("gpt-5", 0.1, 1.0),
        ("gpt-5-mini-2025-08-07", 0.1, 1.0),
        ("gpt-5-pro", 1.0, 1.0),
        ("gpt-4.1", 0.25, 1.0),
        ("gpt-4.1-nano", 0.25, 1.0),
        ("o3", 0.25, 1.0),
        ("o4-mini", 0.25, 1.0),
        ("o3-mini", 0.5, 1.0),
        ("o3-pro", 1.0, 1.0),
        ("o1", 0.5, 1.0),
        ("gpt-4o", 0.5, 1.0),
        ("gpt-4o-mini", 0.5, 1.0),
        ("gpt-4-turbo", 1.0, 1.0),
        ("gpt-3.5-turbo", 1.0, 1.0),
        ("gpt-x.6", 1.0, 1.0),
    ] {
        assert_eq!(prices(&[("FOLDBACK_MODEL", name)]), of(read, write), "{name}");
    }
    assert_eq!(prices(&[("FOLDBACK_BASE_URL", "http://localhost/v1")]), of(1.0, 1.0));
    for (name, expected) in [("claude-sonnet-4-5", of(0.1, 2.0)), ("gpt-6", of(0.1, 1.25))] {
        let hour = format!("[model]\nname = \"{name}\"\napi_key = \"k\"\nlong_cache = true");
        let config = load(ModelFlags::default(), &[], Some(&hour)).unwrap();
        assert_eq!(config.prices, expected, "{name}: only Anthropic's live longer for more");
    }
}

#[test]
fn errors_name_source_and_key() {
    let file = |text: &str| load(ModelFlags::default(), &[], Some(text)).unwrap_err();
    for (text, expected) in [
        (
            "[model]\nanswer_seconds = \"long\"",
            "model.answer_seconds: invalid type: found string \"long\"",
        ),
        ("[model]\nanswer_seconds = -1", "model.answer_seconds"),
        ("[model]\ntemprature = 1", "unknown field: found `temprature`"),
        (
            "[model]\nprovider = \"openia\"",
            "model.provider: unknown variant: found `openia`, expected `one of `openai`",
        ),
        ("[model]\nprices = { read = 1.0 }", "model.prices: missing field `write`"),
        ("[model", "foldback.toml"),
        ("", "no model is named"),
        ("[other]\nname = \"x\"", "no model is named"),
    ] {
        let error = file(text);
        assert!(error.contains(expected), "{text}: {error}");
        if !text.is_empty() && !text.starts_with("[other]") {
            assert!(error.contains("foldback.toml"), "{text}: {error}");
        }
    }
    let error =
        by_environment(&[("FOLDBACK_PROVIDER", "mine"), ("FOLDBACK_MODEL", "x")]).unwrap_err();
    assert!(
        error.starts_with("the environment variable FOLDBACK_PROVIDER: model.provider"),
        "{error}"
    );
    let flags = ModelFlags::default().with_provider("mine");
    let error = load(flags, &[], None).unwrap_err();
    assert!(error.starts_with("the flag --provider: model.provider"), "{error}");

    let sources = ModelSources::default().with_file("/no/such/file.toml");
    let error = ModelConfig::load(&sources).unwrap_err();
    assert!(error.message.contains("/no/such/file.toml cannot be read"), "{error}");

    let prices = "[model]\nname = \"gpt-5\"\napi_key = \"k\"\nprices = { read = 0.1, write = -1.0, plain = 1.0 }";
    assert!(file(prices).contains("numbers of 0 or more"));
    let prices = "[model]\nname = \"gpt-5\"\napi_key = \"k\"\ntoken_prices = { input = 0.0, output = 1.0, cached_read = 0.0, cached_write = 0.0 }";
    assert!(file(prices).contains("input must be more than 0"));
}

/// Prices in money also determine the relative prices of input, unless those are given separately.
#[test]
fn prices_in_money_are_prices_of_input_as_well() {
    let money = "[model]\nname = \"m\"\nbase_url = \"http://localhost/v1\"\ntoken_prices = { input = 3.0, output = 15.0, cached_read = 0.3, cached_write = 3.75 }\n";
    let config = load(ModelFlags::default(), &[], Some(money)).unwrap();
    let usage = Usage { input: 3_000, output: 200, cached_read: 1_000, cached_write: 500 };
    let cost = config.token_prices.unwrap().cost(&usage);
    assert!((cost - (1_500.0 * 3.0 + 200.0 * 15.0 + 300.0 + 1_875.0) / 1e6).abs() < 1e-12);
    assert_eq!(config.prices, Prices { read: 0.3, write: 3.75, plain: 3.0 });

    let both = format!("{money}prices = {{ read = 1.0, write = 1.0, plain = 1.0 }}");
    let config = load(ModelFlags::default(), &[], Some(&both)).unwrap();
    assert_eq!(config.prices, Prices { read: 1.0, write: 1.0, plain: 1.0 });
    assert!(config.token_prices.is_some());
}

#[test]
fn errors_never_show_a_key() {
    for text in
        ["api_key = 123456789", "api_key = [\"sk-secret\"]", "api_key = { k = \"sk-secret\" }"]
    {
        let error =
            load(ModelFlags::default(), &[], Some(&format!("[model]\n{text}"))).unwrap_err();
        assert!(error.contains("model.api_key: expected a string"), "{error}");
        assert!(!error.contains("secret") && !error.contains("123456789"), "{error}");
    }
    // A file that is not TOML is reported with the place of the error.
    for (text, place) in [
        ("api_key = sk-secret", "line 2, column 11"),
        ("api_key = \"sk-secret\nname = \"x\"", "line 2, column"),
        ("名 = 1\napi_key = \"a\"\napi_key = \"sk-secret\"", "line"),
        ("api_key = \"a\"\napi_key = \"sk-secret\"", "line 3, column 1"),
        ("api_key = \"sk-secret\" x", "line 2, column"),
    ] {
        let error =
            load(ModelFlags::default(), &[], Some(&format!("[model]\n{text}"))).unwrap_err();
        assert!(error.contains("foldback.toml (") && error.contains(place), "{error}");
        assert!(error.contains("is not TOML: ") && !error.contains("secret"), "{error}");
    }
}

/// Templates belong to self-hosted servers: elsewhere such a setting would have no effect.
#[test]
fn settings_without_effect_are_refused() {
    for setting in ["family = \"mistral\"", "call_ids = \"nine\"", "parallel_calls = false"] {
        let of = |provider: &str| {
            let file = format!(
                "[model]\nname = \"m\"\nbase_url = \"http://127.0.0.1:1/v1\"\napi_key = \"k\"\nprovider = \"{provider}\"\n{setting}"
            );
            RemoteModel::new(load(ModelFlags::default(), &[], Some(&file)).unwrap())
        };
        for provider in ["openai", "anthropic"] {
            let error = of(provider).unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration);
            assert!(error.message.contains("family, call_ids, parallel_calls, turns"), "{error}");
        }
        assert!(of("openai-compatible").is_ok(), "{setting}");
    }
}

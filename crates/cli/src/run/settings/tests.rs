//! What a run keeps of its settings, and what newer flags change.

use super::*;

#[test]
fn hosts_are_hosts() {
    assert_eq!(host(" docs.rs "), Ok("docs.rs".to_owned()));
    assert!(["*", "*.example.org", "127.0.0.1", "例子.中国"].map(host).iter().all(Result::is_ok));
    assert!(
        ["http://docs.rs", "", "a b", "docs.rs/x", "a:80"].map(host).iter().all(Result::is_err)
    );
}

/// The address that was inferred from the name of one model is not used for one of another provider.
#[test]
fn a_model_of_another_provider_is_not_looked_for_at_the_first_ones() {
    let openai = Provider::OpenAi.usual_base_url().unwrap();
    let kept = RunSettings::default().with_model("gpt-4.1", openai);
    let at = |name: &str| {
        let newer = RunSettings { model: Some(name.to_owned()), ..RunSettings::default() };
        kept.clone().with_newer_model(newer).unwrap().base_url
    };
    assert_eq!(at("claude-sonnet-4-5"), None);
    let same = Some(openai.to_owned());
    assert_eq!([at("gpt-5"), at("ft:gpt-4.1:me")], [same.clone(), same]);
    let own = "http://127.0.0.1:8000/v1";
    let newer = RunSettings { model: Some("claude-x".into()), ..RunSettings::default() };
    let kept = RunSettings::default().with_model("gpt-oss", own).with_newer_model(newer);
    assert_eq!(kept.unwrap().base_url.as_deref(), Some(own), "a gateway serves them all");
}

#[test]
fn another_model_is_looked_for_where_it_is_served() {
    let kept = RunSettings::default().with_model("m", "http://127.0.0.1:8000/v1");
    let given = |change: fn(&mut RunSettings)| {
        let mut newer = RunSettings::default();
        change(&mut newer);
        let both = kept.clone().with_newer_model(newer).unwrap();
        (both.model.unwrap_or_default(), both.base_url.unwrap_or_default())
    };
    let both = |name: &str, url: &str| (name.to_owned(), url.to_owned());
    assert_eq!(given(|_| ()), both("m", "http://127.0.0.1:8000/v1"));
    let named = given(|newer| newer.model = Some("n".to_owned()));
    assert_eq!(named, both("n", "http://127.0.0.1:8000/v1"), "a name that was mistyped");
    let moved = given(|newer| newer.provider = Some("openai".to_owned()));
    assert_eq!(moved, both("m", ""), "its provider has an address of its own");
    let nowhere = RunSettings { settings: Some("not-there.toml".into()), ..RunSettings::default() };
    let error = kept.clone().with_newer_model(nowhere).unwrap_err().to_string();
    assert!(error.contains("the settings file not-there.toml cannot be used"), "{error}");
}

/// A turn has the tools of the previous turn, unless it is given others.
#[test]
fn a_next_turn_has_the_tools_that_it_is_given() {
    let with = |tools: &[&str]| RunSettings {
        tools: tools.iter().map(|name| (*name).to_owned()).collect(),
        ..RunSettings::default()
    };
    let tools = |newer| with(&["file"]).with_newer(newer).unwrap().tools;
    assert_eq!(tools(with(&["web", "think"])), ["web", "think"]);
    assert_eq!(tools(with(&[])), ["file"]);
}

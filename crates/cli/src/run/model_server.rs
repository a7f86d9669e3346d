//! The server of a model: which settings belong to it.

use foldback_providers::{ModelSources, Provider, is_same_server};

/// The variables that name the server and give its key.
const OF_ENVIRONMENT: [&str; 2] = ["FOLDBACK_BASE_URL", "FOLDBACK_API_KEY"];

/// Restricts these sources to the server that their flags name. A run keeps its address and no key, so the current
/// settings may be for a different server: key, prices and further servers for that one are left out.
pub(super) fn of_its_server(mut sources: ModelSources) -> ModelSources {
    let Some(at) = &sources.flags.base_url else { return sources };
    let is_another = |named: &str| !named.trim().is_empty() && !is_same_server(at, named);
    if sources.settings.base_url.as_deref().is_some_and(is_another) {
        sources.settings.api_key = None;
        sources.settings.token_prices = None;
        sources.settings.workers.clear();
    }
    let [address, key] = OF_ENVIRONMENT;
    if sources.environment.get(address).is_some_and(|named| is_another(named)) {
        sources.environment.remove(key);
    }
    sources
}

/// Whether an address is that of a provider while the model's name is that of another.
pub(super) fn is_of_another(base_url: &str, model: &str) -> bool {
    let bare = |url: &str| url.trim_end_matches('/').to_owned();
    let is_at = |provider: &Provider| {
        provider.usual_base_url().is_some_and(|usual| bare(usual) == bare(base_url))
    };
    let at = Provider::ALL.iter().find(|provider| is_at(provider));
    at.is_some_and(|at| Provider::of_name(model).is_some_and(|other| other != *at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback_providers::{ApiKey, ModelFlags, ModelSettings};

    const HERE: &str = "http://127.0.0.1:8000/v1";

    /// What is asked at [`HERE`], with the settings of a server, and with an environment.
    fn asked(settings: Option<&str>, environment: &[(&str, &str)]) -> (bool, bool) {
        let mut said = ModelSettings::default();
        said.base_url = settings.map(str::to_owned);
        said.api_key = Some(ApiKey::new("of-settings"));
        said.workers = vec![HERE.to_owned()];
        let environment =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let sources = ModelSources::default()
            .with_flags(ModelFlags::default().with_base_url(HERE))
            .with_environment(environment.collect())
            .with_settings(said);
        let kept = of_its_server(sources);
        assert_eq!(kept.settings.api_key.is_none(), kept.settings.workers.is_empty());
        (kept.settings.api_key.is_some(), kept.environment.contains_key("FOLDBACK_API_KEY"))
    }

    #[test]
    fn a_key_is_shown_to_no_other_server() {
        let key = ("FOLDBACK_API_KEY", "of-environment");
        assert_eq!(asked(None, &[key]), (true, true), "it is for whatever server is named");
        assert_eq!(asked(Some("http://127.0.0.1:8000"), &[key]), (true, true));
        for other in ["http://127.0.0.1:8001/v1", "https://127.0.0.1:8000/v1", "https://a.example"]
        {
            assert_eq!(asked(Some(other), &[key]), (false, true), "{other}");
            let named = ("FOLDBACK_BASE_URL", other);
            assert_eq!(asked(Some(other), &[key, named]), (false, false), "{other}");
        }
    }
}

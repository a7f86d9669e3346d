//! Opens the place that an address names.

use crate::folder::{Folder, hex};
use crate::payload_files::{CopyId, PayloadFiles};
use crate::place::Scheme;
use crate::{Error, PayloadPlace};
use std::path::PathBuf;

/// Opens the files of the store with this id at a place. Nothing is asked of an object store yet.
pub(crate) fn connect(
    place: &PayloadPlace,
    id: &CopyId,
    scratch: Option<PathBuf>,
) -> Result<Box<dyn PayloadFiles>, Error> {
    match place.parts().0 {
        Scheme::Folder => Ok(Box::new(Folder::new(place.folder().join(hex(id))))),
        #[cfg(feature = "objects-cloud")]
        _ => {
            let service = cloud::service(place)?;
            Ok(Box::new(crate::objects::Objects::open(service, id, scratch)?))
        }
        #[cfg(not(feature = "objects-cloud"))]
        _ => {
            drop(scratch);
            Err(not_built(place))
        }
    }
}

fn not_built(place: &PayloadPlace) -> Error {
    Error::Config { what: format!("this build keeps no payloads at {place}") }
}

#[cfg(all(test, feature = "objects-s3"))]
pub(crate) use cloud::{choose_tls, retry};

#[cfg(feature = "objects-cloud")]
mod cloud {
    use super::*;
    use crate::objects::{Service, Store, TimeLimit};
    #[cfg(feature = "objects-s3")]
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
    #[cfg(feature = "objects-azure")]
    use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
    #[cfg(feature = "objects-gcs")]
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
    use object_store::{BackoffConfig, ClientConfigKey, RetryConfig};
    use std::sync::Arc;
    use std::time::Duration;

    /// How long one whole request may take at most.
    const REQUEST: &str = "5m";

    /// Builds a store from what the environment says, with limits of time unless the environment has one.
    macro_rules! store {
        ($builder:expr, $key:path, $timeout:literal) => {{
            let mut builder = $builder.with_retry(retry());
            if std::env::var_os($timeout).is_none() {
                builder = builder
                    .with_config($key(ClientConfigKey::Timeout), REQUEST)
                    .with_http_connector(TimeLimit::default());
            }
            builder.build().map(|store| Arc::new(store) as Arc<dyn Store>)
        }};
    }

    /// Returns the service of a place, with credentials and options from the environment.
    pub(super) fn service(place: &PayloadPlace) -> Result<Service, Error> {
        choose_tls();
        let (scheme, bucket, prefix) = place.parts();
        let shown = place.to_string();
        let shown = shown.strip_suffix(prefix).unwrap_or(&shown).trim_end_matches('/').to_owned();
        let store = match scheme {
            #[cfg(feature = "objects-s3")]
            Scheme::S3 => store!(
                AmazonS3Builder::from_env().with_bucket_name(bucket),
                AmazonS3ConfigKey::Client,
                "AWS_TIMEOUT"
            ),
            #[cfg(feature = "objects-gcs")]
            Scheme::Gcs => store!(
                GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket),
                GoogleConfigKey::Client,
                "GOOGLE_TIMEOUT"
            ),
            #[cfg(feature = "objects-azure")]
            Scheme::Azure => store!(
                MicrosoftAzureBuilder::from_env().with_container_name(bucket),
                AzureConfigKey::Client,
                "AZURE_TIMEOUT"
            ),
            _ => return Err(not_built(place)),
        };
        let store = store.map_err(|error| Error::Config {
            what: format!("the object store of {place} cannot be used: {error}"),
        })?;
        Ok(Service { store, prefix: prefix.to_owned(), shown })
    }

    /// Chooses the cryptography of TLS for this process. Another one may be chosen already; any will do.
    pub(crate) fn choose_tls() {
        drop(rustls::crypto::ring::default_provider().install_default());
    }

    /// How often a request is sent again. A person waits for it, so that is not for long.
    pub(crate) fn retry() -> RetryConfig {
        RetryConfig {
            backoff: BackoffConfig {
                max_backoff: Duration::from_secs(2),
                ..BackoffConfig::default()
            },
            max_retries: 4,
            retry_timeout: Duration::from_secs(30),
        }
    }
}

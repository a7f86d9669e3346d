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
            Err(Error::Config { what: format!("this build keeps no payloads at {place}") })
        }
    }
}

#[cfg(all(test, feature = "objects-s3"))]
pub(crate) use cloud::{choose_tls, retry};

#[cfg(feature = "objects-cloud")]
mod cloud {
    use super::*;
    use crate::objects::Service;
    use object_store::{BackoffConfig, ClientConfigKey, RetryConfig};
    use std::sync::Arc;
    use std::time::Duration;

    /// How long one request may take, unless the environment says so: that of a part of 8 MiB over a slow line.
    const REQUEST: &str = "5m";

    /// Returns the service of a place, with credentials and options from the environment.
    pub(super) fn service(place: &PayloadPlace) -> Result<Service, Error> {
        choose_tls();
        let (scheme, bucket, prefix) = place.parts();
        let shown = place.to_string();
        let shown = shown.strip_suffix(prefix).unwrap_or(&shown).trim_end_matches('/').to_owned();
        let wrong = |error: object_store::Error| Error::Config {
            what: format!("the object store of {place} cannot be used: {error}"),
        };
        let is_unset = |variable: &str| std::env::var_os(variable).is_none();
        let prefix = prefix.to_owned();
        match scheme {
            #[cfg(feature = "objects-s3")]
            Scheme::S3 => {
                use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
                let mut builder = AmazonS3Builder::from_env();
                if is_unset("AWS_TIMEOUT") {
                    let key = AmazonS3ConfigKey::Client(ClientConfigKey::Timeout);
                    builder = builder.with_config(key, REQUEST);
                }
                let built = builder.with_bucket_name(bucket).with_retry(retry()).build();
                let store = Arc::new(built.map_err(wrong)?);
                Ok(Service { store: store.clone(), parts: Some(store), prefix, shown })
            }
            #[cfg(feature = "objects-gcs")]
            Scheme::Gcs => {
                use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
                let mut builder = GoogleCloudStorageBuilder::from_env();
                if is_unset("GOOGLE_TIMEOUT") {
                    let key = GoogleConfigKey::Client(ClientConfigKey::Timeout);
                    builder = builder.with_config(key, REQUEST);
                }
                let built = builder.with_bucket_name(bucket).with_retry(retry()).build();
                let store = Arc::new(built.map_err(wrong)?);
                Ok(Service { store: store.clone(), parts: Some(store), prefix, shown })
            }
            #[cfg(feature = "objects-azure")]
            Scheme::Azure => {
                use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
                let mut builder = MicrosoftAzureBuilder::from_env();
                if is_unset("AZURE_TIMEOUT") {
                    let key = AzureConfigKey::Client(ClientConfigKey::Timeout);
                    builder = builder.with_config(key, REQUEST);
                }
                let built = builder.with_container_name(bucket).with_retry(retry()).build();
                let store = Arc::new(built.map_err(wrong)?);
                Ok(Service { store: store.clone(), parts: Some(store), prefix, shown })
            }
            _ => Err(Error::Config { what: format!("this build keeps no payloads at {place}") }),
        }
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

//! The place outside a store's folder where the files of its large payloads are kept.

use crate::Error;
use std::fmt;
use std::str::FromStr;

/// The place outside a store's folder where the files of its large payloads are kept: a folder, or an object store.
///
/// It is written as an address: `file:///mnt/payloads`, `s3://bucket/prefix`, `gs://bucket/prefix`,
/// `az://container/prefix`. Credentials are not part of it: they come from the environment, as the tools of each
/// service take them.
///
/// ```
/// use foldback_backend_store::PayloadPlace;
///
/// # if cfg!(feature = "objects-s3") {
/// let place: PayloadPlace = "s3://bucket/team/payloads/".parse()?;
/// assert_eq!(place.to_string(), "s3://bucket/team/payloads");
/// # }
/// assert!("s3://key:secret@bucket".parse::<PayloadPlace>().is_err());
/// # Ok::<(), foldback_backend_store::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PayloadPlace {
    scheme: Scheme,
    /// The bucket; empty for a folder.
    bucket: String,
    /// The rest, without a slash at its ends.
    path: String,
}

/// What kind of place it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    Folder,
    S3,
    Gcs,
    Azure,
}

impl Scheme {
    const ALL: [Self; 4] = [Self::Folder, Self::S3, Self::Gcs, Self::Azure];

    /// Returns its name, the feature of this crate that knows it, and whether this build has that.
    const fn described(self) -> (&'static str, &'static str, bool) {
        match self {
            Self::Folder => ("file", "objects", cfg!(feature = "objects")),
            Self::S3 => ("s3", "objects-s3", cfg!(feature = "objects-s3")),
            Self::Gcs => ("gs", "objects-gcs", cfg!(feature = "objects-gcs")),
            Self::Azure => ("az", "objects-azure", cfg!(feature = "objects-azure")),
        }
    }
}

impl PayloadPlace {
    /// Returns what kind of place it is, the bucket, and the path in it.
    #[cfg(feature = "objects")]
    pub(crate) fn parts(&self) -> (Scheme, &str, &str) {
        (self.scheme, &self.bucket, &self.path)
    }

    /// Returns whether it is a folder.
    #[cfg(feature = "objects")]
    pub(crate) fn is_folder(&self) -> bool {
        self.scheme == Scheme::Folder
    }

    /// Returns the folder of a place that is one.
    #[cfg(feature = "objects")]
    pub(crate) fn folder(&self) -> std::path::PathBuf {
        std::path::PathBuf::from(format!("/{}", self.path))
    }
}

impl FromStr for PayloadPlace {
    type Err = Error;

    /// Reads an address.
    fn from_str(text: &str) -> Result<Self, Error> {
        // The text may hold a secret that was written into it by mistake, so no message repeats it.
        let wrong = |what: &str| Err(Error::Config { what: what.to_owned() });
        let Some((scheme, rest)) = text.trim().split_once("://") else {
            return wrong(
                "the place of payloads is no address; expected s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, \
                 az://CONTAINER/PREFIX or file:///FOLDER",
            );
        };
        let known = Scheme::ALL.into_iter().find(|known| known.described().0 == scheme);
        let Some(scheme) = known else {
            return wrong(
                "the place of payloads begins with none of s3://, gs://, az:// and file://",
            );
        };
        if rest.contains(['@', '?', '#']) {
            return wrong(
                "the place of payloads contains one of @, ? and #; credentials and options come from the environment",
            );
        }
        let (name, feature, is_built) = scheme.described();
        if !is_built {
            let what = format!(
                "this build keeps no payloads at {name}://; build foldback with --features {feature}"
            );
            return wrong(&what);
        }
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = path.trim_end_matches('/');
        match scheme {
            Scheme::Folder if !bucket.is_empty() || path.is_empty() => {
                return wrong(
                    "a folder for payloads is written with its full path: file:///FOLDER",
                );
            }
            Scheme::Folder => {}
            _ if bucket.is_empty() => return wrong("the place of payloads names no bucket"),
            _ if !path.is_empty() && !path.split('/').all(is_plain) => {
                return wrong(
                    "the prefix of payloads may contain letters, digits, `.`, `_` and `-`, with single slashes between \
                     names that are neither `.` nor `..`",
                );
            }
            _ => {}
        }
        Ok(Self { scheme, bucket: bucket.to_owned(), path: path.to_owned() })
    }
}

/// Whether a part of a prefix means the same to every service.
fn is_plain(part: &str) -> bool {
    !matches!(part, "" | "." | "..")
        && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

impl fmt::Display for PayloadPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.described().0, self.bucket)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, "/{}", self.path) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bs9_a_place_without_sense_is_refused_and_never_repeated() {
        for (text, why) in [
            ("", "is no address"),
            ("/mnt/SECRET", "is no address"),
            ("ftp://SECRET/x", "begins with none"),
            ("s3://AKIA:SECRET@bucket/x", "come from the environment"),
            ("az://container/x?sig=SECRET", "come from the environment"),
        ] {
            let error = text.parse::<PayloadPlace>().unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("SECRET"), "{text}: {error}");
        }
    }

    #[cfg(feature = "objects")]
    #[test]
    fn bs9_a_folder_is_named_whole() {
        let place: PayloadPlace = "file:///mnt/payloads/".parse().unwrap();
        assert_eq!(place.to_string(), "file:///mnt/payloads");
        assert_eq!(place.folder(), std::path::Path::new("/mnt/payloads"));
        for wrong in ["file://host/payloads", "file:///", "file://"] {
            assert!(wrong.parse::<PayloadPlace>().is_err(), "{wrong}");
        }
    }

    #[cfg(feature = "objects-s3")]
    #[test]
    fn bs9_a_prefix_is_made_of_plain_names() {
        for (text, shown) in [
            ("s3://bucket", "s3://bucket"),
            ("s3://bucket/", "s3://bucket"),
            (" s3://bucket/a/b-c_d.e/ ", "s3://bucket/a/b-c_d.e"),
        ] {
            assert_eq!(text.parse::<PayloadPlace>().unwrap().to_string(), shown);
        }
        for wrong in ["s3://", "s3:///x", "s3://b/../x", "s3://b//x", "s3://b/a b", "s3://b/\u{e9}"]
        {
            assert!(wrong.parse::<PayloadPlace>().is_err(), "{wrong}");
        }
    }

    #[cfg(not(feature = "objects-gcs"))]
    #[test]
    fn bs9_a_build_without_a_service_names_its_feature() {
        let error = "gs://bucket".parse::<PayloadPlace>().unwrap_err().to_string();
        assert!(error.contains("--features objects-gcs"), "{error}");
    }
}

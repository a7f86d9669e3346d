//! Bytes sealed at rest: only who has the key reads them, and nobody changes them unnoticed.
//!
//! A [`Cipher`] seals with XChaCha20-Poly1305. Each sealing draws a nonce of 24 random bytes, so that no two share one:
//! after 2^64 sealings with one key the chance that any two do is below 2^-64. What is sealed is bound to a *place*,
//! bytes that the caller chooses, and opens there alone. An [`EncryptionKey`] is what a person keeps.
//!
//! It is **not** a store of keys, and it does not know what it seals, or where that is kept. It reads no file and no
//! environment.
//!
//! ```
//! use foldback_cipher::{Cipher, EncryptionKey};
//!
//! let key: EncryptionKey = "7f3c9a1e5b8d2046e1c7a9f05d3b6812907e4f2ac8d15b36e09f7a4c2d8b1e65".parse()?;
//! let cipher = key.cipher("records");
//! let sealed = cipher.seal(b"todo 7", b"the port is 8443")?;
//! assert_eq!(cipher.open(b"todo 7", &sealed).as_deref(), Some(&b"the port is 8443"[..]));
//! assert_eq!(cipher.open(b"todo 8", &sealed), None);
//! # Ok::<(), foldback_cipher::Error>(())
//! ```

mod cipher;
mod encryption_key;
mod error;

pub use cipher::{Cipher, NONCE_BYTES, OVERHEAD_BYTES};
pub use encryption_key::{EncryptionKey, read_key};
pub use error::Error;

//! Seals bytes at rest: only the holder of the key can read them, and any change is noticed.
//!
//! A [`Cipher`] seals with XChaCha20-Poly1305. Each sealing draws a nonce of 24 random bytes, so that no two share one:
//! after 2^64 sealings with one key the chance that any two do is below 2^-64. Sealed bytes are bound to a *place*,
//! bytes that the caller chooses, and open only there. An [`EncryptionKey`] is the key that a person keeps.
//!
//! It is **not** a key store, and it does not know what it seals or where that is kept. It reads neither files nor
//! the environment.
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

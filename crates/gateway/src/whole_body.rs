//! Bodies that are read to their end before they are passed on.

use axum::body::{Body, BodyDataStream, HttpBody as _};
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, stream};

/// A longer conversation, in bytes, is passed on without being read.
pub(crate) const LONGEST: usize = 64 << 20;

/// The result of reading a body before it is sent.
pub(crate) enum Read {
    Whole(Bytes),
    /// Too long: what was read, and the rest.
    Begun(Bytes, BodyDataStream),
    /// Broken off: what was read, and its error.
    Broken(Bytes, BodyDataStream),
}

/// Reads a body to its end, or up to the limit.
pub(crate) async fn read(body: Body) -> Read {
    let length = usize::try_from(body.size_hint().lower()).unwrap_or(LONGEST);
    let mut bytes = BytesMut::with_capacity(length.min(LONGEST));
    let mut stream = body.into_data_stream();
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => bytes.extend_from_slice(&piece),
            Err(error) => {
                let broken = Body::from_stream(stream::once(async { Err::<Bytes, _>(error) }));
                return Read::Broken(bytes.freeze(), broken.into_data_stream());
            }
        }
        if bytes.len() > LONGEST {
            return Read::Begun(bytes.freeze(), stream);
        }
    }
    Read::Whole(bytes.freeze())
}

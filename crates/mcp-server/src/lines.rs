//! A client's messages, each a line. A line that cannot be read is answered, so that no client waits for ever.

use crate::line::{self, Braces, EDGE, Read};
use crate::turn::Turns;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, ServerJsonRpcMessage};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::io::{AsyncRead, AsyncWrite, BufReader};
use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;

/// How many bytes a line has at most.
const LIMIT: u64 = 16 << 20;

/// The two streams of a client.
pub(crate) struct Lines<W> {
    received: mpsc::Receiver<ClientJsonRpcMessage>,
    output: Arc<Mutex<W>>,
    /// The task that reads; it ends with this.
    reading: JoinSet<io::Result<()>>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Lines<W> {
    pub(crate) fn new(input: impl AsyncRead + Send + Unpin + 'static, output: W) -> Self {
        let output = Arc::new(Mutex::new(output));
        let (send, received) = mpsc::channel(1);
        let mut reading = JoinSet::new();
        reading.spawn(read(BufReader::new(input), send, Arc::clone(&output)));
        Self { received, output, reading }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for Lines<W> {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let output = Arc::clone(&self.output);
        async move { write(&output, &message).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.received.recv().await
    }

    async fn close(&mut self) -> io::Result<()> {
        self.reading.abort_all();
        Ok(())
    }
}

/// Reads lines until the input ends, and answers those that are no messages.
async fn read<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    mut input: BufReader<R>,
    messages: mpsc::Sender<ClientJsonRpcMessage>,
    output: Arc<Mutex<W>>,
) -> io::Result<()> {
    let mut turns = Turns::default();
    loop {
        let mut line = Vec::new();
        if (&mut input).take(LIMIT).read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        let said = match line.len() as u64 == LIMIT && !line.ends_with(b"\n") {
            true => vec![too_long(&mut input, line).await?],
            false => line::read(&mut line),
        };
        for one in said {
            match one {
                Read::Message(mut message) => {
                    turns.give(&mut message);
                    if messages.send(*message).await.is_err() {
                        return Ok(());
                    }
                }
                Read::Refused(answer) => write(&output, &answer).await?,
                Read::Unasked => {}
            }
        }
    }
}

/// Skips the rest of a line that is too long, and refuses it.
async fn too_long<R: AsyncRead + Unpin>(
    input: &mut BufReader<R>,
    mut line: Vec<u8>,
) -> io::Result<Read> {
    let head = line.get(..EDGE).unwrap_or_default().to_vec();
    let (mut braces, mut known) = (Braces::default(), 0);
    loop {
        braces.read(line.get(known..).unwrap_or_default());
        if line.ends_with(b"\n") {
            break;
        }
        line.drain(..line.len().saturating_sub(EDGE));
        known = line.len();
        if input.take(LIMIT).read_until(b'\n', &mut line).await? == 0 {
            break;
        }
    }
    let what = format!("the message is longer than {} MiB", LIMIT >> 20);
    Ok(line::refused(&head, &line, &braces, ErrorData::invalid_request(what, None)))
}

/// Writes a message as a line.
async fn write<W: AsyncWrite + Unpin>(
    output: &Mutex<W>,
    message: &ServerJsonRpcMessage,
) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}

//! A door between a store and its server, which counts round trips, and can be shut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// After how much silence a server has said everything.
const SILENCE: Duration = Duration::from_millis(500);

/// What happens to the connections.
pub(super) struct Proxy {
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// How often the direction changed from the server's words to the client's.
    turns: AtomicU64,
    /// Whether answers of the server are swallowed, and their connections cut after them.
    swallows: AtomicBool,
    /// Whether any was.
    has_swallowed: AtomicBool,
    /// Whether the server is made to refuse the beginning of a transaction.
    mangles: AtomicBool,
    /// How many bytes the server has said since a client spoke last, and how many at most.
    said: AtomicU64,
    longest: AtomicU64,
    open: Mutex<Vec<TcpStream>>,
    is_shut: AtomicBool,
    /// How many connections there were, and how many of the first of them hang.
    count: AtomicU64,
    hanging: AtomicU64,
}

impl Proxy {
    pub(super) fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let shared = state.clone();
        // It ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if shared.is_shut.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                shared.join(client, server);
            }
        });
        Self { port, state }
    }

    /// Returns an address that leads through the door.
    pub(super) fn redirect(&self, address: &str) -> String {
        let (begin, rest) = address.rsplit_once(':').unwrap();
        let (_, database) = rest.split_once('/').unwrap();
        format!("{begin}:{}/{database}", self.port)
    }

    pub(super) fn turns(&self) -> u64 {
        self.state.turns.load(Ordering::SeqCst)
    }

    /// From now on, the server gets what it is sent, and its answer is never seen: the connection is cut instead.
    pub(super) fn swallow(&self, swallows: bool) {
        self.state.swallows.store(swallows, Ordering::SeqCst);
    }

    /// Waits until an answer was swallowed.
    pub(super) fn wait_for_swallowed(&self) {
        while !self.state.has_swallowed.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Returns how many bytes the longest answer had.
    pub(super) fn longest(&self) -> u64 {
        self.state.longest.load(Ordering::SeqCst)
    }

    /// From now on, the server gets no beginning of a transaction that it understands.
    pub(super) fn mangle(&self, mangles: bool) {
        self.state.mangles.store(mangles, Ordering::SeqCst);
    }

    /// Lets all connections hang: the server gets what it is sent, its answers are never seen, and it does not notice
    /// when the client goes away. New connections work.
    pub(super) fn hang(&self) {
        self.state.hanging.store(self.state.count.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Lets all connections hang, and closes them for the client.
    pub(super) fn hang_up(&self) {
        self.hang();
        // The client's and the server's sides take turns.
        for client in self.state.open.lock().unwrap().iter().step_by(2) {
            let _ = client.shutdown(Shutdown::Both);
        }
    }

    /// Cuts all connections, and with `is_shut` lets no new one through.
    pub(super) fn cut(&self, is_shut: bool) {
        self.state.is_shut.store(is_shut, Ordering::SeqCst);
        for stream in self.state.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl State {
    fn join(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let copy = |stream: &TcpStream| stream.try_clone().unwrap();
        self.open.lock().unwrap().extend([copy(&client), copy(&server)]);
        let number = self.count.fetch_add(1, Ordering::SeqCst);
        let is_servers_turn = Arc::new(AtomicBool::new(false));
        let (from, to, state, turn) =
            (copy(&client), copy(&server), self.clone(), is_servers_turn.clone());
        thread::spawn(move || {
            pass(from, &to, |words| {
                // The first words after an answer begin a round trip.
                if !turn.swap(true, Ordering::SeqCst) {
                    state.turns.fetch_add(1, Ordering::SeqCst);
                    state.said.store(0, Ordering::SeqCst);
                }
                let begin = words.windows(10).position(|found| found == b"BEGIN ISOL");
                if let Some(at) = begin.filter(|_| state.mangles.load(Ordering::SeqCst)) {
                    words[at + 3] = b'U';
                }
            });
            if !state.hangs(number) {
                let _ = to.shutdown(Shutdown::Both);
            }
        });
        let state = self.clone();
        thread::spawn(move || state.answer(server, client, number, &is_servers_turn));
    }

    fn hangs(&self, number: u64) -> bool {
        number < self.hanging.load(Ordering::SeqCst)
    }

    /// Passes the server's words on, or swallows them until the server has said everything, and then cuts.
    fn answer(&self, mut server: TcpStream, mut client: TcpStream, number: u64, turn: &AtomicBool) {
        let mut words = vec![0; 1 << 16];
        let (_, mut has_swallowed) = (client.set_nodelay(true), false);
        // It ends when the server is silent or gone.
        while let Ok(count @ 1..) = server.read(&mut words) {
            turn.store(false, Ordering::SeqCst);
            let said = self.said.fetch_add(count as u64, Ordering::SeqCst) + count as u64;
            self.longest.fetch_max(said, Ordering::SeqCst);
            if self.hangs(number) {
                continue;
            }
            has_swallowed |= self.swallows.load(Ordering::SeqCst);
            self.has_swallowed.fetch_or(has_swallowed, Ordering::SeqCst);
            if has_swallowed {
                server.set_read_timeout(Some(SILENCE)).unwrap();
            } else if client.write_all(&words[..count]).is_err() && !self.hangs(number) {
                break;
            }
        }
        let _ = (server.shutdown(Shutdown::Both), client.shutdown(Shutdown::Both));
    }
}

/// Passes words on, after `sees`, which may change them.
fn pass(mut from: TcpStream, mut to: &TcpStream, sees: impl Fn(&mut [u8])) {
    let mut words = vec![0; 1 << 16];
    let _ = to.set_nodelay(true);
    while let Ok(count @ 1..) = from.read(&mut words) {
        sees(&mut words[..count]);
        if to.write_all(&words[..count]).is_err() {
            return;
        }
    }
}

//! The person at the terminal, whom an agent can ask.

use super::screen::Screen;
use crate::output::text;
use foldback_agent::{Person, Question};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::io::{BufRead, BufReader, IsTerminal as _};
use std::sync::{Arc, mpsc};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The person at the terminal. Clones are the same person, who is asked one thing at a time.
#[derive(Clone)]
pub(crate) struct AtTerminal {
    pub(crate) screen: Arc<Screen>,
    /// Held by the one who asks, from the first question to its answer.
    pub(crate) turn: Arc<Mutex<()>>,
    keyboard: Arc<Mutex<Keyboard>>,
}

/// The lines that a person types, each read once it is wanted.
struct Keyboard {
    wanted: mpsc::Sender<()>,
    lines: UnboundedReceiver<Option<String>>,
    /// Whether a line is being read, for this question or for one that nobody waits for any more.
    is_reading: bool,
}

impl AtTerminal {
    /// Returns the person, if there is a terminal at both ends.
    pub(crate) fn find(screen: &Arc<Screen>) -> Option<Self> {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        is_terminal.then(|| Self::typing(screen, BufReader::new(std::io::stdin())))
    }

    /// The same person, with output on this screen.
    pub(crate) fn at(&self, screen: &Arc<Screen>) -> Self {
        Self { screen: Arc::clone(screen), ..self.clone() }
    }

    /// A person who types this.
    fn typing(screen: &Arc<Screen>, typed: impl BufRead + Send + 'static) -> Self {
        let keyboard = Arc::new(Mutex::new(Keyboard::new(typed)));
        Self { screen: Arc::clone(screen), turn: Arc::default(), keyboard }
    }

    /// Asks for a line; `None` if none comes. It may take as long as it likes: what happens meanwhile is shown
    /// afterwards, and a question that nobody waits for any more is dropped.
    pub(crate) async fn line(&self, question: String) -> Option<String> {
        let mut keyboard = self.keyboard.lock().await;
        keyboard.forget();
        forget_what_was_typed();
        let asked = self.screen.ask(&question);
        let line = keyboard.line().await;
        asked.answered(line.is_some());
        line
    }
}

impl AtTerminal {
    /// The line that is still being read for a question that nobody waits for any more, with `prompt` before it; `None`
    /// if the keyboard is not being read.
    pub(crate) async fn pending_line(&self, prompt: &str) -> Option<Option<String>> {
        let mut keyboard = self.keyboard.lock().await;
        keyboard.forget();
        if !keyboard.is_reading {
            return None;
        }
        let asked = self.screen.ask(prompt);
        let line = keyboard.line().await;
        asked.answered(line.is_some());
        Some(line)
    }
}

impl Keyboard {
    fn new(mut typed: impl BufRead + Send + 'static) -> Self {
        let (wanted, wants) = mpsc::channel();
        let (read, lines) = unbounded_channel();
        // The thread may wait for a line as long as the process runs, without keeping it from ending.
        std::thread::spawn(move || {
            while wants.recv().is_ok() {
                let mut line = String::new();
                let is_read = typed.read_line(&mut line).is_ok();
                // Without a line ending, the terminal was closed.
                let line = (is_read && line.ends_with('\n')).then(|| line.trim().to_owned());
                if read.send(line).is_err() {
                    break;
                }
            }
        });
        Self { wanted, lines, is_reading: false }
    }

    /// Drops a line that was typed for a question that nobody waits for any more: it does not answer the next one.
    fn forget(&mut self) {
        if self.is_reading && self.lines.try_recv().is_ok() {
            self.is_reading = false;
        }
    }

    async fn line(&mut self) -> Option<String> {
        if !self.is_reading {
            self.wanted.send(()).ok()?;
            self.is_reading = true;
        }
        let line = self.lines.recv().await;
        self.is_reading = false;
        line.flatten()
    }
}

/// What was typed before a question was asked, and not read, does not answer it. Only Unix can discard it.
fn forget_what_was_typed() {
    #[cfg(unix)]
    {
        // This fails without a terminal, and then nothing was typed.
        let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
    }
}

impl Person for AtTerminal {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Option<String>> {
        let who = question.todo.as_ref().map(|todo| self.screen.who(todo)).unwrap_or_default();
        self.line(words(&who, question)).boxed()
    }
}

/// A question as it is shown. `who` asks: the agent itself if it is empty.
fn words(who: &str, question: &Question) -> String {
    let mut words = match who {
        "" => String::new(),
        who => format!("sub-agent {who} asks: "),
    };
    words.push_str(&text::plain(question.text.trim()));
    for option in &question.options {
        words.push_str(&format!("\n  - {}", text::one_line(option)));
    }
    words + "\n> "
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Output;
    use std::io::{Cursor, Read};
    use std::time::Duration;

    fn screen() -> Arc<Screen> {
        let run = foldback_core::TodoId::new("trip").unwrap();
        Screen::new(&Output::plain(), &run, Vec::new())
    }

    #[test]
    fn a_question_is_put_with_its_options_and_with_who_asks() {
        let options = vec!["杭州".to_owned(), "a\nb\u{1b}".to_owned()];
        let question = Question { todo: None, text: "Which city?\n".to_owned(), options };
        assert_eq!(words("", &question), "Which city?\n  - 杭州\n  - a b␛\n> ");
        assert!(words("hotels", &question).starts_with("sub-agent hotels asks: Which city?\n"));
    }

    #[tokio::test]
    async fn each_question_has_a_line_and_the_end_is_no_answer() {
        let person = AtTerminal::typing(&screen(), Cursor::new("杭州 \n\nno end"));
        assert_eq!(person.line("?".into()).await.as_deref(), Some("杭州"));
        assert_eq!(person.line("?".into()).await.as_deref(), Some(""));
        assert_eq!(person.line("?".into()).await, None, "the terminal was closed");
        assert_eq!(person.line("?".into()).await, None);
    }

    /// Types a line once it is asked to.
    struct Later(std::sync::mpsc::Receiver<&'static [u8]>);

    impl Read for Later {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let typed = self.0.recv().unwrap_or_default();
            into[..typed.len()].copy_from_slice(typed);
            Ok(typed.len())
        }
    }

    /// What is typed for a question that nobody waits for any more does not answer the next one.
    #[tokio::test]
    async fn a_question_that_nobody_waits_for_holds_nothing_up() {
        let (types, later) = std::sync::mpsc::channel();
        let person = AtTerminal::typing(&screen(), BufReader::new(Later(later)));
        let given_up = tokio::time::timeout(Duration::from_millis(1), person.line("first".into()));
        assert!(given_up.await.is_err(), "nobody has typed anything");
        // Events while somebody is asked do not block anybody either.
        let asked = person.screen.ask("second");
        person.screen.say("meanwhile");
        assert_eq!(person.screen.held(), ["meanwhile"]);
        asked.answered(false);
        assert!(person.screen.held().is_empty());
        types.send(b"y\n").unwrap();
        while person.keyboard.lock().await.lines.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let typed = async { types.send(b"to the second\n").unwrap() };
        let (answer, ()) = tokio::join!(person.line("second".into()), typed);
        assert_eq!(answer.as_deref(), Some("to the second"));
    }

    /// A line that is typed late, once the next question is shown, is taken for its answer.
    #[tokio::test]
    async fn what_is_typed_once_a_question_is_put_answers_it() {
        let (types, later) = std::sync::mpsc::channel();
        let person = AtTerminal::typing(&screen(), BufReader::new(Later(later)));
        let given_up = tokio::time::timeout(Duration::from_millis(1), person.line("first".into()));
        assert!(given_up.await.is_err(), "nobody has typed anything");
        let typed = async { types.send(b"n\n").unwrap() };
        let (answer, ()) = tokio::join!(person.line("second".into()), typed);
        assert_eq!(answer.as_deref(), Some("n"));
    }
}

//! Whoever sits at the terminal, as an agent may ask them.

use super::screen::Screen;
use crate::output::text;
use foldback_agent::{Person, Question};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use std::io::{BufRead as _, IsTerminal as _};
use std::sync::Arc;

/// Whoever sits at the terminal.
pub(crate) struct AtTerminal(Arc<Screen>);

impl AtTerminal {
    /// The person there, if it is a terminal at both ends.
    pub(crate) fn find(screen: &Arc<Screen>) -> Option<Self> {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        is_terminal.then(|| Self(Arc::clone(screen)))
    }

    /// Asks for a line; `None` where none comes.
    pub(crate) async fn line(&self, question: String) -> Option<String> {
        let screen = Arc::clone(&self.0);
        let ask = move || {
            screen.ask(&question, || {
                let mut line = String::new();
                std::io::stdin().lock().read_line(&mut line).map(|_| line)
            })
        };
        // A person may think for as long as they like.
        let line = tokio::task::spawn_blocking(ask).await.ok()?.ok()?;
        // Without an end of line, the terminal was closed.
        line.ends_with('\n').then(|| line.trim().to_owned())
    }
}

impl Person for AtTerminal {
    fn ask<'a>(&'a self, question: &'a Question) -> BoxFuture<'a, Option<String>> {
        self.line(words(question)).boxed()
    }
}

/// A question as it is put.
fn words(question: &Question) -> String {
    let mut words = text::plain(question.text.trim()).into_owned();
    for option in &question.options {
        words.push_str(&format!("\n  - {}", text::one_line(option)));
    }
    words + "\n> "
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_put_with_its_options() {
        let options = vec!["杭州".to_owned(), "a\nb\u{1b}".to_owned()];
        let question = Question { todo: None, text: "Which city?\n".to_owned(), options };
        assert_eq!(words(&question), "Which city?\n  - 杭州\n  - a b␛\n> ");
    }
}

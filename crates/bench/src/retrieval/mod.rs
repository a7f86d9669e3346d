//! How much of the evidence for questions a search finds.
//!
//! Conversations are recorded into a memory as an import does it, and each of their questions is
//! searched for. Recall is the share of the messages answering a question that are in the blocks found:
//! in the first 1, 5 and 10, and in the first ones that fit a given number of tokens. The memory's own
//! search is compared with its parts alone (words, meaning), with one vector per block instead of one
//! per message, and with windows of a fixed number of messages instead of blocks, all by the same
//! ranking.

mod evidence;
mod page;
mod recall;
mod recut;
mod result;

pub use evidence::LeftOut;
pub use recall::{AT, AT_TOKENS, Recall};
pub use result::{CategoryRecall, Cuts, FileRecall, Retrieval, Setting, SettingRecall, VectorsOf};

use crate::{BenchError, Case};
use evidence::{Asked, asked};
use foldback::{Close, Memory, Options};
use foldback_blockstore::{Hit, Ranking, SearchRequest};
use foldback_core::{Embedder, Timestamp, TodoId, Vectors, message_tokens};
use foldback_o200k::O200k;
use rayon::prelude::*;
use recall::AnswerRecall;
use recut::{block_means, recut, vectors_of, windows};
use result::{Answered, CaseAnswers, Part};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;

/// The number of blocks that a timed search asks for.
const TIMED_K: usize = 10;

/// Asks the questions of conversations, in memories with these options and with each of these
/// embedders. The figures of the last one are the headline: its memory, words and meaning fused.
///
/// # Errors
/// When the memory fails.
pub fn measure(
    cases: &[Case],
    embedders: &[Arc<dyn Embedder>],
    options: &Options,
) -> Result<Retrieval, BenchError> {
    let ask = |case| ask(case, embedders, options);
    let answers: Result<Vec<_>, _> = cases.par_iter().map(ask).collect();
    Ok(Retrieval::of(&answers?, embedders.last().map_or("", |embedder| embedder.model_id())))
}

/// Asks the questions of one conversation in every way.
fn ask(
    case: &Case,
    embedders: &[Arc<dyn Embedder>],
    options: &Options,
) -> Result<CaseAnswers, BenchError> {
    let (questions, left_out) = asked(case);
    let mut answers = CaseAnswers {
        file: case.file.clone(),
        categories: questions.iter().map(|asked| asked.category.clone()).collect(),
        left_out,
        parts: Vec::new(),
    };
    if questions.is_empty() {
        return Ok(answers);
    }
    let sizes = Sizes::of(case);
    for embedder in embedders {
        let asking = Asking { case, questions: &questions, embedder, options, sizes: &sizes };
        answers.parts.extend(asking.all()?);
    }
    Ok(answers)
}

/// How many tokens the first messages of a conversation take together in a request, as o200k
/// counts them.
struct Sizes(Vec<u64>);

impl Sizes {
    fn of(case: &Case) -> Self {
        let mut sums = vec![0];
        let mut sum = 0;
        for message in &case.conversation.messages {
            sum += message_tokens(&O200k, message) as u64;
            sums.push(sum);
        }
        Self(sums)
    }

    fn of_run(&self, run: &RangeInclusive<usize>) -> u64 {
        let sum = |at: usize| self.0.get(at).copied().unwrap_or_default();
        sum(run.end() + 1).saturating_sub(sum(*run.start()))
    }
}

/// Asks the questions of one conversation with one embedder.
struct Asking<'a> {
    case: &'a Case,
    questions: &'a [Asked],
    embedder: &'a Arc<dyn Embedder>,
    options: &'a Options,
    sizes: &'a Sizes,
}

impl Asking<'_> {
    fn all(&self) -> Result<Vec<Part>, BenchError> {
        let messages = &self.case.conversation.messages;
        let (mut parts, blocks) = self.memory()?;
        let vectors = vectors_of(self.embedder.as_ref(), messages)?;
        let means = block_means(&blocks, &vectors);
        parts.extend(self.recut(
            Cuts::Blocks,
            VectorsOf::Block,
            &blocks,
            &means,
            &[Ranking::Fused, Ranking::Meaning],
        )?);
        for size in [4, 6] {
            parts.extend(self.recut(
                Cuts::Windows(size),
                VectorsOf::Message,
                &windows(messages.len(), size),
                &vectors,
                &[Ranking::Fused, Ranking::Words],
            )?);
        }
        Ok(parts)
    }

    /// Answers by the memory itself, and returns its blocks.
    fn memory(&self) -> Result<(Vec<Part>, Vec<RangeInclusive<usize>>), BenchError> {
        let options = self.options.clone().with_embedder(self.embedder.clone());
        let memory = Memory::in_memory(options.with_clock(|| Timestamp(0)))?;
        let todo = TodoId::from_foreign(&self.case.id);
        // Without vectors the figures would measure something else.
        let search = |request: &SearchRequest<'_>| {
            let answer = memory.search(&todo, request)?;
            answer.by_meaning().map_err(foldback::Error::from)
        };
        memory.conversations().import(&todo, &self.case.conversation)?;
        // An import leaves a call open whose result may come; this conversation is over.
        memory.session(&todo)?.close(Close::End)?;
        let blocks: Vec<_> =
            memory.blocks(&todo, 0, usize::MAX)?.iter().map(|block| run(block.range)).collect();
        let mut parts = Vec::new();
        for ranking in [Ranking::Fused, Ranking::Words, Ranking::Meaning] {
            let mut part = self.part(Cuts::Blocks, VectorsOf::Message, ranking, &blocks);
            for asked in self.questions {
                let request = SearchRequest::new(&asked.question).ranking(ranking);
                let hits = search(&request.k(SearchRequest::MAX_K))?;
                let begun = Instant::now();
                search(&request.k(TIMED_K))?;
                let took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                part.answered.push(Answered { found: self.judge(asked, &hits), took_us });
            }
            parts.push(part);
        }
        Ok((parts, blocks))
    }

    /// Answers by the same ranking, in other blocks or with other vectors.
    fn recut(
        &self,
        cuts: Cuts,
        of: VectorsOf,
        blocks: &[RangeInclusive<usize>],
        vectors: &[Vectors],
        rankings: &[Ranking],
    ) -> Result<Vec<Part>, BenchError> {
        let embedder = self.embedder.as_ref();
        let messages = &self.case.conversation.messages;
        let searcher = recut(embedder.model_id(), messages, vectors, blocks)?;
        let mut parts: Vec<Part> =
            rankings.iter().map(|ranking| self.part(cuts, of, *ranking, blocks)).collect();
        for asked in self.questions {
            let vector = embedder.embed_question(&asked.question).map_err(foldback::Error::from)?;
            for part in &mut parts {
                let begun = Instant::now();
                let mut request = SearchRequest::new(&asked.question)
                    .ranking(part.setting.ranking)
                    .k(SearchRequest::MAX_K);
                if let Some(vector) = vector.row(0) {
                    request = request.vector(embedder, vector);
                }
                let hits = searcher.search(&request).map_err(foldback::Error::from)?;
                let took_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
                part.answered.push(Answered { found: self.judge(asked, &hits), took_us });
            }
        }
        Ok(parts)
    }

    fn part(
        &self,
        cuts: Cuts,
        vectors: VectorsOf,
        ranking: Ranking,
        blocks: &[RangeInclusive<usize>],
    ) -> Part {
        let embedder = self.embedder.model_id().to_owned();
        Part {
            setting: Setting { embedder, cuts, vectors, ranking },
            blocks: blocks.len(),
            tokens: blocks.iter().map(|run| self.sizes.of_run(run)).sum(),
            answered: Vec::with_capacity(self.questions.len()),
        }
    }

    fn judge(&self, asked: &Asked, hits: &[Hit]) -> AnswerRecall {
        let sized = |hit: &Hit| {
            let run = run(hit.block.range);
            let tokens = self.sizes.of_run(&run);
            (run, tokens)
        };
        AnswerRecall::of(asked, &hits.iter().map(sized).collect::<Vec<_>>())
    }
}

fn run(range: foldback_core::SeqRange) -> RangeInclusive<usize> {
    let at = |seq: u64| usize::try_from(seq).unwrap_or(usize::MAX - 1);
    at(range.first().0)..=at(range.last().0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foldback::embedder::StaticEmbedder;
    use foldback_core::{Message, ToolCall, ToolCallId};
    use foldback_transcript::{Conversation, Envelope};

    /// Other cuts are stored and searched as the memory does it: its own blocks, put into a store that
    /// way, are found in the same order with the same scores.
    #[test]
    fn blocks_of_the_memory_are_found_alike_when_they_are_recut() {
        let things = ["ferry", "oven", "渡轮", "烤箱", "violin", "passport"];
        let messages: Vec<Message> = (0..40)
            .map(|i| {
                let text =
                    format!("The {} number {i} was seen on day {}.", things[i / 7], i * i % 11);
                match i {
                    // A text longer than what is embedded, and a call with its result.
                    9 => Message::assistant(&text.repeat(80)),
                    21 => {
                        Message::calls(&text, vec![ToolCall::new("c", "look", r#"{"at":"码头"}"#)])
                    }
                    22 => Message::tool_result(&ToolCallId::new("c"), &text),
                    _ if i % 2 == 0 => Message::user(&text),
                    _ => Message::assistant(&text),
                }
            })
            .collect();
        let conversation = Conversation::from_parts(None, messages, Envelope::default());
        let case = Case::new("case".to_owned(), "file".to_owned(), conversation);
        let embedder: Arc<dyn Embedder> = Arc::new(StaticEmbedder::new());
        let options = Options::default().with_embedder(embedder.clone());
        let memory = Memory::in_memory(options).unwrap();
        let todo = TodoId::from_foreign("case");
        memory.conversations().import(&todo, &case.conversation).unwrap();
        let blocks: Vec<_> =
            memory.blocks(&todo, 0, 99).unwrap().iter().map(|block| run(block.range)).collect();
        assert!(blocks.len() > 4);
        // No message is outside the blocks.
        assert_eq!(
            blocks.iter().cloned().flatten().collect::<Vec<_>>(),
            (0..40).collect::<Vec<_>>()
        );
        let vectors = vectors_of(embedder.as_ref(), &case.conversation.messages).unwrap();
        let searcher =
            recut(embedder.model_id(), &case.conversation.messages, &vectors, &blocks).unwrap();
        for question in ["Which oven was seen?", "烤箱在第几天？", "number 33", "look 码头"]
        {
            let request = SearchRequest::new(question).k(20);
            let vector = embedder.embed_question(question).unwrap();
            let by_memory = memory.search(&todo, &request).unwrap().by_meaning().unwrap();
            let by_recut = searcher
                .search(&request.vector(embedder.as_ref(), vector.row(0).unwrap()))
                .unwrap();
            let told = |hits: &[Hit]| {
                hits.iter().map(|hit| (run(hit.block.range), hit.score)).collect::<Vec<_>>()
            };
            assert!(!by_memory.is_empty());
            assert_eq!(told(&by_memory), told(&by_recut), "{question}");
        }
    }
}

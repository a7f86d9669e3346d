//! Teaching the rows of Chinese, Japanese and Korean with texts that have an English translation: the
//! sum of a text's rows is to point where the English one points, and nearer to it than to others.

use crate::lessons::Lesson;
use crate::matrix::{Matrix, add_scaled, dot};
use crate::parallel::Language;
use crate::question::{FIRST_WORD, Questions, asked_words};
use crate::random::Random;
use crate::training::{Adam, away, spread, unit_sums};
use crate::units::Cutter;

/// The pairs of a step, ...
const BATCH: usize = 512;

/// ... and how many of them are asked about.
const ASKED: usize = 256;

const EPOCHS: usize = 3;

/// The step size of the first step, in shares of the usual value of a row; it falls linearly to
/// [`LAST_RATE`] of it.
const RATE: f32 = 0.05;
const LAST_RATE: f32 = 0.02;

/// A unit that is in n texts moves by `n / (n + RARE)` of what it learned.
const RARE: f32 = 5.0;

/// What the cosines are divided by.
const TEMPERATURE: f32 = 0.1;

/// The weight of the questions.
const QUESTIONS: f32 = 0.3;

/// English texts that are more alike than this do not count against each other.
const SAME: f32 = 0.85;

/// A unit tells something when its row is longer than this share of the usual length.
const TELLING: f32 = 0.75;

const SEED: u64 = 1;

/// How questions are asked.
const OPENERS: [(Language, &str); 3] = [
    (Language::Chinese, "什么 什么时候 哪里 谁 为什么 怎么 多少 哪个 是什么 有没有"),
    (
        Language::Japanese,
        "何ですか いつですか どこですか 誰ですか なぜですか どうやって いくつ どれですか 何を どうして",
    ),
    (Language::Korean, "무엇 언제 어디 누가 왜 어떻게 얼마나 어느 뭐였 몇"),
];

/// Trains those of `rows` that stand behind the first `english` ones, which stay as they are.
///
/// The loss is described at [`Batch::gradient`].
pub(crate) fn train(
    mut rows: Matrix,
    english: usize,
    lessons: &[Lesson],
    cutter: &Cutter<'_>,
) -> Matrix {
    // In rows of about length 1 the steps are of one size whatever the table's scale is.
    let size = usual_length(&rows, english);
    rows.values.iter_mut().for_each(|value| *value /= size);
    let first = rows.values[english * rows.width..].to_vec();
    let shares = shares(&rows, english, lessons);
    let vectors = unit_sums(lessons.iter().map(|lesson| lesson.english.as_slice()), &rows).0;
    let asking = Asking::new(&rows, english, cutter);

    let mut random = Random::new(SEED);
    let mut adam = Adam::new(first.len());
    let mut learned = vec![0.0; first.len()];
    let rate = RATE * (dot(&first, &first) / first.len() as f32).sqrt();
    let mut order: Vec<usize> = (0..lessons.len()).collect();
    let steps = EPOCHS * (order.len() / BATCH);
    for step in 0..steps {
        let start = step % (order.len() / BATCH) * BATCH;
        if start == 0 {
            random.shuffle(&mut order);
        }
        let members = &order[start..start + BATCH];
        let batch = Batch::new(members, lessons, &vectors, &rows, &asking, &mut random);
        let (loss, gradient) = batch.gradient(&rows);
        let slopes = &gradient.values[english * rows.width..];
        let left = 1.0 - step as f32 / steps as f32;
        adam.step(&mut learned, slopes, rate * (LAST_RATE + (1.0 - LAST_RATE) * left));

        let width = rows.width;
        let behind = rows.values[english * width..].chunks_exact_mut(width);
        let parts = first.chunks_exact(width).zip(learned.chunks_exact(width)).zip(&shares);
        for (row, ((first, learned), share)) in behind.zip(parts) {
            row.copy_from_slice(first);
            add_scaled(row, *share, learned);
        }
        if step % 40 == 0 || step + 1 == steps {
            eprintln!("step {step} of {steps}: losses {loss:.4?}");
        }
    }
    rows.values.iter_mut().for_each(|value| *value *= size);
    rows
}

/// The median length of the English rows of common words.
fn usual_length(rows: &Matrix, english: usize) -> f32 {
    let words = usize::from(FIRST_WORD).min(english / 2)..english.min(11_000);
    median(words.map(|at| length(rows.row(at))).collect())
}

fn length(row: &[f32]) -> f32 {
    dot(row, row).sqrt()
}

fn median(mut values: Vec<f32>) -> f32 {
    values.sort_by(f32::total_cmp);
    values[values.len() / 2]
}

/// How much of what it learned each row behind the English ones moves.
fn shares(rows: &Matrix, english: usize, lessons: &[Lesson]) -> Vec<f32> {
    let mut texts = vec![0.0f32; rows.values.len() / rows.width];
    for lesson in lessons {
        let mut found = lesson.translated.clone();
        found.sort_unstable();
        found.dedup();
        found.into_iter().for_each(|id| texts[usize::from(id)] += 1.0);
    }
    texts[english..].iter().map(|texts| texts / (texts + RARE)).collect()
}

/// Makes the questions.
struct Asking {
    english: Questions,
    openers: Vec<(Language, Vec<Vec<u16>>)>,
    /// Whether a row tells something.
    telling: Vec<bool>,
}

impl Asking {
    fn new(rows: &Matrix, english: usize, cutter: &Cutter<'_>) -> Self {
        let lengths: Vec<f32> = rows.rows().map(length).collect();
        let usual = median(lengths[english..].to_vec());
        let telling = lengths.iter().enumerate().map(|(at, length)| {
            let is_word = at >= usize::from(FIRST_WORD);
            is_word && (at < english || *length > TELLING * usual)
        });
        let openers = OPENERS.map(|(language, openers)| {
            (language, openers.split(' ').map(|opener| cutter.rows(opener)).collect())
        });
        Self { english: Questions::new(), openers: openers.into(), telling: telling.collect() }
    }

    /// A question about the translated text of a lesson, in its language.
    fn about(&self, lesson: &Lesson, random: &mut Random) -> Option<Vec<u16>> {
        let telling = |id: &u16| self.telling[usize::from(*id)];
        let words: Vec<u16> = lesson.translated.iter().copied().filter(telling).collect();
        let wanted = asked_words(words.len(), random)?;
        let mut question = random.sample(words, wanted);
        let (_, openers) = self.openers.iter().find(|of| of.0 == lesson.language())?;
        question.extend(&openers[random.below(openers.len())]);
        Some(question)
    }
}

/// Questions, and which text of the batch each is about.
type Asked = Vec<(usize, Vec<u16>)>;

/// A step's worth of pairs.
struct Batch<'l> {
    /// The translated texts.
    bags: Vec<&'l [u16]>,
    /// The vectors of the English texts.
    english: Matrix,
    /// Questions in the languages of the texts.
    asked: Asked,
    /// Vectors of English questions, and which text each is about.
    in_english: (Vec<usize>, Matrix),
}

impl<'l> Batch<'l> {
    fn new(
        members: &[usize],
        lessons: &'l [Lesson],
        vectors: &Matrix,
        rows: &Matrix,
        asking: &Asking,
        random: &mut Random,
    ) -> Self {
        let (mut asked, mut in_english) = (Asked::new(), Asked::new());
        for (at, &member) in members.iter().take(ASKED).enumerate() {
            let lesson = &lessons[member];
            asked.extend(asking.about(lesson, random).map(|question| (at, question)));
            let question = asking.english.about(&lesson.english, random);
            in_english.extend(question.map(|question| (at, question)));
        }
        let questions = unit_sums(in_english.iter().map(|(_, bag)| bag.as_slice()), rows).0;
        Self {
            bags: members.iter().map(|&member| lessons[member].translated.as_slice()).collect(),
            english: Matrix::from_rows(rows.width, members.iter().map(|&at| vectors.row(at))),
            asked,
            in_english: (in_english.iter().map(|(at, _)| *at).collect(), questions),
        }
    }

    /// The losses, and the gradient of their sum by `rows`. Of a batch with vectors s (the sums of the
    /// translated texts' rows, of length 1), e of the English texts, and questions about the first of
    /// the texts, these are added:
    ///
    /// - the mean of `1 - s_i . e_i`;
    /// - the mean of the cross entropies of finding e_i with s_i, and s_i with e_i;
    /// - weighted, those of finding s_i, and e_i, with a question in the language of the text;
    /// - weighted, that of finding s_i with a question in English.
    fn gradient(&self, rows: &Matrix) -> ([f32; 5], Matrix) {
        let (sums, lengths) = unit_sums(self.bags.iter().copied(), rows);
        let mut slopes = Matrix::zeros(self.bags.len(), rows.width);
        let aim = away(&sums, &self.english, &mut slopes);
        let alike = self.english.times(&self.english.transposed());
        let each: Vec<usize> = (0..self.bags.len()).collect();

        let (to_english, shares) = found(&sums, &self.english, &each, &alike, 0.5);
        add(&mut slopes, &shares.times(&self.english));
        let (from_english, shares) = found(&self.english, &sums, &each, &alike, 0.5);
        add(&mut slopes, &shares.transposed().times(&self.english));

        let mut by_english = 0.0;
        let (answers, questions) = &self.in_english;
        if !answers.is_empty() {
            let (loss, shares) = found(questions, &sums, answers, &alike, QUESTIONS);
            by_english = loss;
            add(&mut slopes, &shares.transposed().times(questions));
        }
        let mut gradient = Matrix::zeros(rows.values.len() / rows.width, rows.width);
        let by_own = self.ask(rows, &sums, &alike, &mut slopes, &mut gradient);
        spread(self.bags.iter().copied(), &sums, &lengths, slopes, &mut gradient);
        ([aim, to_english + from_english, by_own[0], by_own[1], by_english], gradient)
    }

    /// The losses of the questions in the languages of the texts; their slopes by the texts' vectors are
    /// added to `slopes`, those by the questions' rows to `gradient`.
    fn ask(
        &self,
        rows: &Matrix,
        sums: &Matrix,
        alike: &Matrix,
        slopes: &mut Matrix,
        gradient: &mut Matrix,
    ) -> [f32; 2] {
        if self.asked.is_empty() {
            return [0.0; 2];
        }
        let bags = || self.asked.iter().map(|(_, bag)| bag.as_slice());
        let answers: Vec<usize> = self.asked.iter().map(|(at, _)| *at).collect();
        let (questions, lengths) = unit_sums(bags(), rows);
        let (in_own, shares) = found(&questions, sums, &answers, alike, QUESTIONS);
        add(slopes, &shares.transposed().times(&questions));
        let mut question_slopes = shares.times(sums);
        let (across, shares) = found(&questions, &self.english, &answers, alike, QUESTIONS);
        add(&mut question_slopes, &shares.times(&self.english));
        spread(bags(), &questions, &lengths, question_slopes, gradient);
        [in_own, across]
    }
}

fn add(sums: &mut Matrix, other: &Matrix) {
    add_scaled(&mut sums.values, 1.0, &other.values);
}

/// `weight` times the mean cross entropy of finding the vector of number `answers[i]` among `others`
/// with `questions[i]`, and its slopes by the products of the two. A vector whose English text is
/// `alike` that of the answer is not among the others.
fn found(
    questions: &Matrix,
    others: &Matrix,
    answers: &[usize],
    alike: &Matrix,
    weight: f32,
) -> (f32, Matrix) {
    let mut shares = questions.times(&others.transposed());
    let weight = weight / answers.len().max(1) as f32;
    let mut loss = 0.0;
    for (shares, &answer) in shares.rows_mut().zip(answers) {
        for (at, (share, alike)) in shares.iter_mut().zip(alike.row(answer)).enumerate() {
            // Cosines are at most 1, so that no exponential is out of range.
            let counts = at == answer || *alike <= SAME;
            *share = if counts { ((*share - 1.0) / TEMPERATURE).exp() } else { 0.0 };
        }
        let total: f32 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= total);
        loss -= weight * shares[answer].ln();
        shares[answer] -= 1.0;
        shares.iter_mut().for_each(|share| *share *= weight / TEMPERATURE);
    }
    (loss, shares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::to_unit;

    fn random_rows(rows: usize, width: usize, random: &mut Random) -> Matrix {
        let values = (0..rows * width).map(|_| random.share() as f32 - 0.5).collect();
        Matrix { width, values }
    }

    fn unit_rows(rows: usize, width: usize, random: &mut Random) -> Matrix {
        let mut rows = random_rows(rows, width, random);
        rows.rows_mut().for_each(|row| {
            to_unit(row);
        });
        rows
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let mut random = Random::new(2);
        let bags: Vec<Vec<u16>> =
            (0..6).map(|_| (0..5).map(|_| random.below(20) as u16).collect()).collect();
        let mut english = unit_rows(6, 8, &mut random);
        // Two English texts that are the same do not count against each other.
        let first = english.row(0).to_vec();
        english.row_mut(3).copy_from_slice(&first);
        let batch = Batch {
            bags: bags.iter().map(Vec::as_slice).collect(),
            english,
            asked: vec![(0, vec![3, 4, 4]), (4, vec![7, 8])],
            in_english: (vec![2, 3], unit_rows(2, 8, &mut random)),
        };
        let rows = random_rows(20, 8, &mut random);
        let (_, gradient) = batch.gradient(&rows);
        for at in (0..rows.values.len()).step_by(7) {
            let moved = |by: f32| {
                let mut rows = rows.clone();
                rows.values[at] += by;
                batch.gradient(&rows).0.iter().sum::<f32>()
            };
            let slope = (moved(5e-3) - moved(-5e-3)) / 1e-2;
            let said = gradient.values[at];
            assert!((slope - said).abs() < 5e-3 + 0.02 * said.abs(), "{at}: {slope}, not {said}");
        }
    }

    #[test]
    fn what_is_the_same_in_english_is_no_wrong_answer() {
        let questions = Matrix { width: 2, values: vec![1.0, 0.0] };
        let others = Matrix { width: 2, values: vec![1.0, 0.0, 1.0, 0.0, 0.0, 1.0] };
        let mut alike = Matrix::zeros(3, 3);
        let (apart, _) = found(&questions, &others, &[0], &alike, 1.0);
        assert!((apart - 2f32.ln()).abs() < 1e-3, "{apart}");
        alike.row_mut(0)[1] = 0.9;
        let (same, slopes) = found(&questions, &others, &[0], &alike, 1.0);
        assert!(same < 1e-3, "{same}");
        assert_eq!(slopes.values[1], 0.0);
    }

    #[test]
    fn rows_learn_and_the_same_texts_give_the_same_rows() {
        const ENGLISH: usize = 6_000;
        let mut random = Random::new(3);
        let units: Vec<String> =
            (0..40).map(|at| char::from_u32(0x4e00 + at).unwrap().to_string()).collect();
        let cutter = Cutter::new(&units, ENGLISH);
        let lessons: Vec<Lesson> = (0..BATCH * 2)
            .map(|_| {
                // A unit is the word of its number; the last unit is in no text.
                let words: Vec<u16> = (0..5).map(|_| random.below(39) as u16).collect();
                Lesson {
                    source: 0,
                    english: words.iter().map(|word| 5_000 + word).collect(),
                    translated: words.iter().map(|word| ENGLISH as u16 + word).collect(),
                }
            })
            .collect();
        let rows = random_rows(ENGLISH + 40, 16, &mut random);
        let aim = |rows: &Matrix| {
            let sums = |of: fn(&Lesson) -> &[u16]| unit_sums(lessons.iter().map(of), rows).0;
            let (a, b) = (sums(|lesson| &lesson.english), sums(|lesson| &lesson.translated));
            dot(&a.values, &b.values) / lessons.len() as f32
        };
        let trained = train(rows.clone(), ENGLISH, &lessons, &cutter);
        assert!(aim(&trained) > aim(&rows) + 0.02, "{} after {}", aim(&trained), aim(&rows));
        assert_eq!(trained.values, train(rows.clone(), ENGLISH, &lessons, &cutter).values);
        let near = |at: usize| {
            let moved = trained.row(at).iter().zip(rows.row(at)).map(|(a, b)| (a - b).abs());
            moved.fold(0.0, f32::max) < 1e-4
        };
        assert!((0..ENGLISH).all(near), "the English rows stay");
        assert!(near(ENGLISH + 39) && !near(ENGLISH), "a row moves that is in the texts");
    }
}

//! Teaching the rows: the sum of a passage's rows is to point where the teacher's vector points.

use crate::matrix::{Matrix, add_scaled, dot, to_unit};
use crate::question::Questions;
use crate::random::Random;

/// The passages of a step, ...
const BATCH: usize = 512;

/// ... and how many of them are asked about.
const ASKED: usize = 256;

const EPOCHS: usize = 3;

/// The step size of the first step; it falls linearly to [`LAST_RATE`] of it.
const RATE: f32 = 3e-3;
const LAST_RATE: f32 = 0.02;

/// The weight of the second loss.
const RELATIONS: f32 = 3.0;

/// The weight of the third loss, ...
const QUESTIONS: f32 = 0.3;

/// ... and what its cosines are divided by.
const TEMPERATURE: f32 = 0.07;

/// What is taught.
pub(crate) struct Lessons {
    /// The pieces of each passage.
    pub(crate) passages: Vec<Vec<u16>>,
    /// Where each should point, in the table's own directions: rows of length 1.
    pub(crate) targets: Matrix,
    /// The teacher's vectors without their mean: rows of length 1.
    pub(crate) teacher: Matrix,
}

/// Trains `rows`. Of a batch with vectors s (the sums of rows, brought to length 1), targets y,
/// teacher's vectors c and questions q about the first of the passages, three losses are added:
///
/// - the mean of `1 - s_i . y_i`;
/// - the mean of `(s_i . s_j - c_i . c_j)^2` over all pairs: passages are as alike as they are to
///   the teacher;
/// - the mean cross entropy of finding passage i with its question, `softmax_j(q_i . s_j / T)`.
///
/// The same seed gives the same bytes.
pub(crate) fn train(mut rows: Matrix, lessons: &Lessons, seed: u64) -> Matrix {
    let mut random = Random::new(seed);
    let questions = Questions::new();
    let mut adam = Adam::new(rows.values.len());
    let mut order: Vec<usize> = (0..lessons.passages.len()).collect();
    let steps = EPOCHS * (order.len() / BATCH);
    for step in 0..steps {
        let start = step % (order.len() / BATCH) * BATCH;
        if start == 0 {
            random.shuffle(&mut order);
        }
        let batch = Batch::new(&order[start..start + BATCH], lessons, &questions, &mut random);
        let (loss, gradient) = batch.gradient(&rows);
        let left = 1.0 - step as f32 / steps as f32;
        adam.step(
            &mut rows.values,
            &gradient.values,
            RATE * (LAST_RATE + (1.0 - LAST_RATE) * left),
        );
        if step % 40 == 0 || step + 1 == steps {
            eprintln!("seed {seed}, step {step} of {steps}: losses {loss:.4?}");
        }
    }
    rows
}

/// A step's worth of passages.
struct Batch<'l> {
    bags: Vec<&'l [u16]>,
    targets: Matrix,
    teacher: Matrix,
    /// Questions, and which passage of the batch each is about.
    asked: Vec<(usize, Vec<u16>)>,
}

impl<'l> Batch<'l> {
    fn new(
        members: &[usize],
        lessons: &'l Lessons,
        questions: &Questions,
        random: &mut Random,
    ) -> Self {
        let pick = |from: &Matrix| {
            Matrix::from_rows(from.width, members.iter().map(|&member| from.row(member)))
        };
        let bags: Vec<&[u16]> =
            members.iter().map(|&member| lessons.passages[member].as_slice()).collect();
        let asked = bags.iter().take(ASKED).enumerate();
        let asked = asked.filter_map(|(at, bag)| Some((at, questions.about(bag, random)?)));
        let asked = asked.collect();
        Self { bags, targets: pick(&lessons.targets), teacher: pick(&lessons.teacher), asked }
    }

    /// The three losses, and the gradient of their weighted sum by `rows`.
    fn gradient(&self, rows: &Matrix) -> ([f32; 3], Matrix) {
        let (sums, lengths) = unit_sums(self.bags.iter().copied(), rows);
        let mut slopes = Matrix::zeros(self.bags.len(), rows.width);
        let count = self.bags.len() as f32;

        let aim = away(&sums, &self.targets, &mut slopes);

        let mut apart = sums.times(&sums.transposed());
        let wanted = self.teacher.times(&self.teacher.transposed());
        apart.values.iter_mut().zip(&wanted.values).for_each(|(is, wanted)| *is -= wanted);
        let relations = dot(&apart.values, &apart.values) / (count * count);
        let pull = apart.times(&sums);
        add_scaled(&mut slopes.values, RELATIONS * 4.0 / (count * count), &pull.values);

        let mut gradient = Matrix::zeros(rows.values.len() / rows.width, rows.width);
        let found = self.ask(rows, &sums, &mut slopes, &mut gradient);
        spread(self.bags.iter().copied(), &sums, &lengths, slopes, &mut gradient);
        ([aim, relations, found], gradient)
    }

    /// The third loss; its slopes by the passages' vectors are added to `slopes`, those by the
    /// questions' rows to `gradient`.
    fn ask(&self, rows: &Matrix, sums: &Matrix, slopes: &mut Matrix, gradient: &mut Matrix) -> f32 {
        if self.asked.is_empty() {
            return 0.0;
        }
        let bags = || self.asked.iter().map(|(_, bag)| bag.as_slice());
        let (questions, lengths) = unit_sums(bags(), rows);
        let passages = Matrix::from_rows(sums.width, sums.rows().take(ASKED));
        let mut shares = questions.times(&passages.transposed());
        let count = self.asked.len() as f32;
        let mut loss = 0.0;
        for (shares, (answer, _)) in shares.rows_mut().zip(&self.asked) {
            let largest = shares.iter().copied().fold(f32::MIN, f32::max);
            shares.iter_mut().for_each(|s| *s = ((*s - largest) / TEMPERATURE).exp());
            let total: f32 = shares.iter().sum();
            shares.iter_mut().for_each(|share| *share /= total);
            loss -= shares[*answer].ln() / count;
            shares[*answer] -= 1.0;
            shares.iter_mut().for_each(|share| *share *= QUESTIONS / (count * TEMPERATURE));
        }
        let by_passages = shares.transposed().times(&questions);
        for (slope, by_passage) in slopes.rows_mut().zip(by_passages.rows()) {
            add_scaled(slope, 1.0, by_passage);
        }
        spread(bags(), &questions, &lengths, shares.times(&passages), gradient);
        loss
    }
}

/// Returns how far sums are from their targets, the mean of `1 - s . t`, and adds its slopes.
pub(crate) fn away(sums: &Matrix, targets: &Matrix, slopes: &mut Matrix) -> f32 {
    let count = sums.rows().count() as f32;
    let mut away = 0.0;
    for ((sum, target), slope) in sums.rows().zip(targets.rows()).zip(slopes.rows_mut()) {
        away += (1.0 - dot(sum, target)) / count;
        add_scaled(slope, -1.0 / count, target);
    }
    away
}

/// The sums of the rows of each bag, brought to length 1, and the lengths that they had.
pub(crate) fn unit_sums<'b>(
    bags: impl Iterator<Item = &'b [u16]>,
    rows: &Matrix,
) -> (Matrix, Vec<f32>) {
    let (mut sums, mut lengths) = (Matrix { width: rows.width, values: Vec::new() }, Vec::new());
    for bag in bags {
        let mut sum = vec![0.0; rows.width];
        bag.iter().for_each(|&id| add_scaled(&mut sum, 1.0, rows.row(id.into())));
        lengths.push(to_unit(&mut sum));
        sums.values.extend(sum);
    }
    (sums, lengths)
}

/// Adds to `gradient` what `slopes`, the gradient by unit vectors, is by the rows they are sums of.
pub(crate) fn spread<'b>(
    bags: impl Iterator<Item = &'b [u16]>,
    sums: &Matrix,
    lengths: &[f32],
    mut slopes: Matrix,
    gradient: &mut Matrix,
) {
    for (((bag, sum), length), slope) in bags.zip(sums.rows()).zip(lengths).zip(slopes.rows_mut()) {
        // What points along the sum only makes it longer.
        let along = dot(sum, slope);
        add_scaled(slope, -along, sum);
        bag.iter().for_each(|&id| add_scaled(gradient.row_mut(id.into()), 1.0 / length, slope));
    }
}

/// Adam (Kingma and Ba 2015), with the usual constants.
pub(crate) struct Adam {
    mean: Vec<f32>,
    square: Vec<f32>,
    steps: i32,
}

impl Adam {
    pub(crate) fn new(values: usize) -> Self {
        Self { mean: vec![0.0; values], square: vec![0.0; values], steps: 0 }
    }

    pub(crate) fn step(&mut self, values: &mut [f32], gradient: &[f32], rate: f32) {
        const KEEP_MEAN: f32 = 0.9;
        const KEEP_SQUARE: f32 = 0.999;
        self.steps += 1;
        let rate = rate / (1.0 - KEEP_MEAN.powi(self.steps));
        let unbiased = 1.0 / (1.0 - KEEP_SQUARE.powi(self.steps));
        let moments = self.mean.iter_mut().zip(&mut self.square);
        for ((value, slope), (mean, square)) in values.iter_mut().zip(gradient).zip(moments) {
            *mean = KEEP_MEAN * *mean + (1.0 - KEEP_MEAN) * slope;
            *square = KEEP_SQUARE * *square + (1.0 - KEEP_SQUARE) * slope * slope;
            *value -= rate * *mean / ((*square * unbiased).sqrt() + 1e-8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random_rows(rows: usize, width: usize, random: &mut Random) -> Matrix {
        let values = (0..rows * width).map(|_| random.share() as f32 - 0.5).collect();
        Matrix { width, values }
    }

    fn loss(losses: [f32; 3]) -> f32 {
        losses[0] + RELATIONS * losses[1] + QUESTIONS * losses[2]
    }

    #[test]
    fn the_gradient_is_the_slope_of_the_loss() {
        let mut random = Random::new(2);
        let bags: Vec<Vec<u16>> =
            (0..6).map(|_| (0..5).map(|_| random.below(20) as u16).collect()).collect();
        let unit = |mut rows: Matrix| {
            rows.rows_mut().for_each(|row| {
                to_unit(row);
            });
            rows
        };
        let batch = Batch {
            bags: bags.iter().map(Vec::as_slice).collect(),
            targets: unit(random_rows(6, 8, &mut random)),
            teacher: unit(random_rows(6, 9, &mut random)),
            asked: vec![(1, vec![3, 4, 4]), (4, vec![7, 8])],
        };
        let rows = random_rows(20, 8, &mut random);
        let (_, gradient) = batch.gradient(&rows);
        for at in (0..rows.values.len()).step_by(7) {
            let moved = |by: f32| {
                let mut rows = rows.clone();
                rows.values[at] += by;
                loss(batch.gradient(&rows).0)
            };
            let slope = (moved(1e-2) - moved(-1e-2)) / 2e-2;
            let said = gradient.values[at];
            assert!((slope - said).abs() < 2e-3 + 0.02 * said.abs(), "{at}: {slope}, not {said}");
        }
    }

    #[test]
    fn rows_learn_and_the_same_seed_gives_the_same_rows() {
        let mut random = Random::new(3);
        let passages: Vec<Vec<u16>> = (0..BATCH * 2)
            .map(|_| (0..6).map(|_| 3000 + random.below(40) as u16).collect())
            .collect();
        let hidden = random_rows(3040, 6, &mut random);
        let (teacher, _) = unit_sums(passages.iter().map(Vec::as_slice), &hidden);
        let lessons = Lessons { passages, targets: teacher.clone(), teacher };
        let rows = random_rows(3040, 6, &mut random);
        let aim = |rows: &Matrix| {
            let (sums, _) = unit_sums(lessons.passages.iter().map(Vec::as_slice), rows);
            dot(&sums.values, &lessons.targets.values) / lessons.passages.len() as f32
        };
        let trained = train(rows.clone(), &lessons, 1);
        assert!(aim(&trained) > aim(&rows) + 0.005, "{} after {}", aim(&trained), aim(&rows));
        assert_eq!(trained.values, train(rows.clone(), &lessons, 1).values);
        assert_ne!(trained.values, train(rows.clone(), &lessons, 2).values);
        // A row that no passage has stays as it was.
        assert_eq!(trained.row(7), rows.row(7));
    }
}

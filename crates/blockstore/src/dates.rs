//! The days that a question names: "in May 2023", "7 June", "2023-05-07", "2023年5月7日".

/// Days that a question names: one day, or a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Days {
    /// `None` if the question leaves the year out: any year.
    year: Option<i64>,
    month: i64,
    day: Option<i64>,
}

/// A day is talked about on that day or some days later; a block that is this many days away counts half.
const HALF_AWAY: f64 = 5.0;

const MILLIS_A_DAY: i64 = 86_400_000;

/// A question that names more days than this means none of them; only the first ones count.
const MAX_DAYS: usize = 16;

/// Returns the days that a question names, each once: at most [`MAX_DAYS`].
pub(crate) fn named_days(question: &str) -> Vec<Days> {
    let tokens = tokens(question);
    let mut found = Vec::new();
    for days in (0..tokens.len()).filter_map(|at| days_at(&tokens, at)) {
        if found.len() < MAX_DAYS && !found.contains(&days) {
            found.push(days);
        }
    }
    found
}

/// Returns how near a time (milliseconds since 1970, UTC) is to the nearest of the days: 1 on one of them, less with
/// distance.
pub(crate) fn nearness(days: &[Days], time: i64) -> f64 {
    let day = time.div_euclid(MILLIS_A_DAY);
    let away = days.iter().map(|days| days.away(day)).min();
    away.map_or(0.0, |away| 0.5f64.powf(away as f64 / HALF_AWAY))
}

impl Days {
    /// Returns how many days lie between this and a day, counted from 1970.
    fn away(self, day: i64) -> i64 {
        let distance = |year: i64| {
            let (first, last) = match self.day {
                Some(day) => (day_number(year, self.month, day), day_number(year, self.month, day)),
                None => (
                    day_number(year, self.month, 1),
                    day_number(year + self.month / 12, self.month % 12 + 1, 1) - 1,
                ),
            };
            (first - day).max(day - last).max(0)
        };
        match self.year {
            Some(year) => distance(year),
            None => {
                // A year has 365.2425 days.
                let about = 1970 + day * 400 / 146_097;
                (about - 1..=about + 1).map(distance).min().unwrap_or(i64::MAX)
            }
        }
    }
}

/// Returns the number of a day of the Gregorian calendar, counted from 1970 (Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms").
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    /// Up to four digits, and how many.
    Number(i64, usize),
    Word(&'a str),
    Mark(char),
}

/// Words, numbers and marks, without spaces. "7th" is a number and a word.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let run = |is_in: fn(char) -> bool| rest.find(|c| !is_in(c)).unwrap_or(rest.len());
        let len = if c.is_ascii_digit() {
            let len = run(|c| c.is_ascii_digit());
            found.push(match rest[..len].parse() {
                Ok(number) if len <= 4 => Token::Number(number, len),
                _ => Token::Word(&rest[..len]),
            });
            len
        } else if c.is_ascii_alphabetic() {
            let len = run(|c| c.is_ascii_alphabetic());
            found.push(Token::Word(&rest[..len]));
            len
        } else {
            if !c.is_whitespace() {
                found.push(Token::Mark(c));
            }
            c.len_utf8()
        };
        rest = &rest[len..];
    }
    found
}

fn days_at(tokens: &[Token<'_>], at: usize) -> Option<Days> {
    match *tokens.get(at)? {
        Token::Number(number, digits) => {
            in_digits(tokens, at, number, digits).or_else(|| in_signs(tokens, at, number))
        }
        Token::Word(word) => in_words(tokens, at, word),
        Token::Mark(_) => None,
    }
}

/// 2023-05-07, 2023/5/7, 2023-05.
fn in_digits(tokens: &[Token<'_>], at: usize, year: i64, digits: usize) -> Option<Days> {
    let mark = |at: usize| match tokens.get(at) {
        Some(Token::Mark(c @ ('-' | '/'))) => Some(*c),
        _ => None,
    };
    let part = |at: usize| match tokens.get(at) {
        Some(Token::Number(number, 1 | 2)) => Some(*number),
        _ => None,
    };
    let first = mark(at + 1).filter(|_| digits == 4 && is_year(year))?;
    let month = part(at + 2)?;
    let day = part(at + 4).filter(|_| mark(at + 3) == Some(first));
    // The year of a month alone is written with a hyphen; 2023/05 may be a path.
    if day.is_none() && first == '/' {
        return None;
    }
    days(Some(year), month, day)
}

/// 2023年5月7日, 5月7号, 5월 7일: found at the number of the month.
fn in_signs(tokens: &[Token<'_>], at: usize, month: i64) -> Option<Days> {
    let is = |at: usize, signs: &[char]| match tokens.get(at) {
        Some(Token::Mark(c)) => signs.contains(c),
        _ => false,
    };
    if !is(at + 1, &['月', '월']) {
        return None;
    }
    let year = at.checked_sub(2).and_then(|before| match tokens.get(before) {
        Some(Token::Number(year, 4)) if is(at - 1, &['年', '년']) => Some(*year),
        _ => None,
    });
    let day = match tokens.get(at + 2) {
        Some(Token::Number(day, 1 | 2)) if is(at + 3, &['日', '号', '號', '일']) => Some(*day),
        _ => None,
    };
    days(year.filter(|year| is_year(*year)), month, day)
}

/// May 2023, 7 May, 7th of May, May 7th, 2023: found at the name of the month.
fn in_words(tokens: &[Token<'_>], at: usize, word: &str) -> Option<Days> {
    let (month, is_short) = month_named(word)?;
    let before = |back: usize| at.checked_sub(back).and_then(|at| tokens.get(at)).copied();
    let is_ordinal = |token: Option<Token<'_>>| {
        matches!(token, Some(Token::Word(word))
            if ["st", "nd", "rd", "th"].iter().any(|end| word.eq_ignore_ascii_case(end)))
    };
    let day_of = |token: Option<Token<'_>>| match token {
        Some(Token::Number(day @ 1..=31, 1 | 2)) => Some(day),
        _ => None,
    };
    let of = usize::from(matches!(before(1), Some(Token::Word(word)) if word == "of"));
    let day_before = match is_ordinal(before(1 + of)) {
        true => day_of(before(2 + of)),
        false => day_of(before(1 + of)),
    };
    let mut next = at + 1;
    let day_after = day_of(tokens.get(next).copied());
    next += usize::from(day_after.is_some());
    next += usize::from(day_after.is_some() && is_ordinal(tokens.get(next).copied()));
    next += usize::from(matches!(tokens.get(next), Some(Token::Mark(',' | '.'))));
    let year = match tokens.get(next) {
        Some(Token::Number(year, 4)) if is_year(*year) => Some(*year),
        _ => None,
    };
    let day = day_before.or(day_after);
    let is_beside_number = day.is_some() || year.is_some();
    let is_placed = matches!(before(1), Some(Token::Word(word))
        if ["in", "on", "of", "during", "since", "until", "by", "before", "after", "early", "late",
            "mid", "last", "this"].iter().any(|place| word.eq_ignore_ascii_case(place)));
    // "Mar" may be a name, and "May" and "March" may be other words.
    let is_other_word =
        matches!(month, 3 | 5) && !(is_placed && word.starts_with(char::is_uppercase));
    if !is_beside_number && (is_short || is_other_word) {
        return None;
    }
    days(year, month, day)
}

/// Returns the month, and whether its name is cut short.
fn month_named(word: &str) -> Option<(i64, bool)> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let lower = word.to_ascii_lowercase();
    let place = MONTHS.iter().position(|name| {
        *name == lower
            || *name.get(..3).unwrap_or(name) == lower
            || lower == "sept" && *name == "september"
    })?;
    let is_whole = MONTHS.get(place).is_some_and(|name| *name == lower);
    Some((place as i64 + 1, !is_whole))
}

fn is_year(number: i64) -> bool {
    (1900..2200).contains(&number)
}

fn days(year: Option<i64>, month: i64, day: Option<i64>) -> Option<Days> {
    let is_month = (1..=12).contains(&month);
    let day = day.filter(|day| (1..=31).contains(day));
    is_month.then_some(Days { year, month, day })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(question: &str, expected: &[(Option<i64>, i64, Option<i64>)]) {
        let found = named_days(question);
        let found: Vec<_> = found.iter().map(|days| (days.year, days.month, days.day)).collect();
        assert_eq!(found, expected, "{question}");
    }

    #[test]
    fn days_are_read_as_people_write_them() {
        check("What did we decide in May 2023?", &[(Some(2023), 5, None)]);
        check("the meeting on 7 May, 2023", &[(Some(2023), 5, Some(7))]);
        check("the meeting on May 7th, 2023", &[(Some(2023), 5, Some(7))]);
        check("the 21st of September", &[(None, 9, Some(21))]);
        check("the log of 2023-05-07T10:00", &[(Some(2023), 5, Some(7))]);
        check("between August and Sept. 2023", &[(None, 8, None), (Some(2023), 9, None)]);
        check("2023年5月7日的会议", &[(Some(2023), 5, Some(7))]);
        check("5月に何を買いましたか", &[(None, 5, None)]);
        check("2023년 5월 7일 회의", &[(Some(2023), 5, Some(7))]);
        check("invoice of 2024-12", &[(Some(2024), 12, None)]);
    }

    #[test]
    fn other_words_and_numbers_are_no_days() {
        for question in [
            "May I ask what the march was about?",
            "What may have happened?",
            "Mar told us about dec",
            "order 2023-4417 and version 1.12.3",
            "open src/2023/05/page.html",
            "the 5 tests that failed in 2023",
            "2023-13-40",
            "on 99/99/9999, 32 00, May-99999999999999999999",
            "",
        ] {
            check(question, &[]);
        }
    }

    /// S12: a question cannot ask for more work than a question is worth.
    #[test]
    fn s12_days_are_few_and_lie_in_time() {
        let many: String = (1..=9_999).map(|i| format!("{}月{}日 5月 ", i % 13, i % 40)).collect();
        let days = named_days(&many);
        assert_eq!(days.len(), MAX_DAYS);
        assert!(days.iter().all(|day| days.iter().filter(|other| *other == day).count() == 1));
        for days in [days, named_days("2199-02-31 and 0000年0月0日, 1900-01-99")] {
            for time in [i64::MIN, -1, 0, i64::MAX] {
                assert!((0.0..=1.0).contains(&nearness(&days, time)), "{time}");
            }
        }
    }

    #[test]
    fn what_was_told_on_the_day_is_nearest() {
        let at = |year, month, day| day_number(year, month, day) * MILLIS_A_DAY + 3_600_000;
        assert_eq!(day_number(1970, 1, 1), 0);
        assert_eq!(day_number(2024, 2, 29) + 1, day_number(2024, 3, 1));
        let month = named_days("in May 2023");
        assert_eq!(nearness(&month, at(2023, 5, 1)), 1.0);
        assert_eq!(nearness(&month, at(2023, 5, 31)), 1.0);
        assert_eq!(nearness(&month, at(2023, 6, 5)), 0.5);
        assert!(nearness(&month, at(2024, 5, 5)) < 1e-9);
        let day = named_days("on December 30");
        assert_eq!(nearness(&day, at(2023, 12, 30)), 1.0);
        assert_eq!(nearness(&day, at(2024, 1, 4)), 0.5);
        assert_eq!(nearness(&[], at(2024, 1, 4)), 0.0);
    }
}

//! The parts of a request that passed through the gateway: what it left out, and where it differs from the one before.

use foldback_gateway::{Contents, SentPart};

/// The messages of the client's conversation that are in no part of what was sent, as ranges.
pub(super) fn left_out(contents: &Contents) -> Vec<[u64; 2]> {
    let mut sent: Vec<_> = parts(contents).iter().filter_map(range).collect();
    sent.sort_unstable();
    let mut left_out = Vec::new();
    for (from, to) in &contents.asked {
        let mut next = *from;
        for (first, end) in &sent {
            if *first > next && next < *to {
                left_out.push([next, (*first).min(*to)]);
            }
            next = next.max(*end);
        }
        if next < *to {
            left_out.push([next, *to]);
        }
    }
    left_out
}

/// How many messages those are.
pub(super) fn messages_left_out(contents: &Contents) -> u64 {
    left_out(contents).iter().map(|[from, to]| to - from).sum()
}

/// The first recorded message that the request before sent and this one did not send in the same form and place; `None`
/// if this one repeats all of the other, or is only the beginning of it.
pub(super) fn changed_from(before: &Contents, now: &Contents) -> Option<u64> {
    let (before, now) = (parts(before), parts(now));
    let (mut before, mut now) = (before.into_iter(), now.into_iter());
    let (mut old, mut new) = (before.next(), now.next());
    while let Some(part) = old {
        let (rest, new_rest) = match new {
            Some(other) if other == part => (None, None),
            Some(other) => match both(part, other) {
                Some(rests) => rests,
                None => return first(part, before),
            },
            None => return None,
        };
        old = rest.or_else(|| before.next());
        new = new_rest.or_else(|| now.next());
    }
    None
}

/// Whether a request had other tools than the one before; `None` if it is not recorded which tools either had.
pub(super) fn tools_changed(before: &Contents, now: &Contents) -> Option<bool> {
    let (old, new) = before.tools.zip(now.tools)?;
    Some(old.0 != new.0 || before.has_tools != now.has_tools)
}

/// What is left of two runs that begin with the same message in the same form; `None` if they do not.
fn both(one: SentPart, other: SentPart) -> Option<(Option<SentPart>, Option<SentPart>)> {
    let make = match (one, other) {
        (SentPart::Kept(..), SentPart::Kept(..)) => SentPart::Kept,
        (SentPart::WithoutThoughts(..), SentPart::WithoutThoughts(..)) => SentPart::WithoutThoughts,
        _ => return None,
    };
    let ((from, to), (other_from, other_to)) = (range(&one)?, range(&other)?);
    let end = to.min(other_to);
    let rest = |to| (end < to).then(|| make(end, to));
    (from == other_from && from < end).then(|| (rest(to), rest(other_to)))
}

/// The first recorded message of this part or of those that follow it.
fn first(part: SentPart, rest: impl Iterator<Item = SentPart>) -> Option<u64> {
    std::iter::once(part).chain(rest).find_map(|part| range(&part)).map(|(from, _)| from)
}

/// The parts of a request; of one that went as the client sent it, what the client sent.
fn parts(contents: &Contents) -> Vec<SentPart> {
    if contents.sent.is_empty() {
        return contents.asked.iter().map(|(from, to)| SentPart::Kept(*from, *to)).collect();
    }
    contents.sent.clone()
}

/// The recorded messages of a part: the first, and the number after the last.
fn range(part: &SentPart) -> Option<(u64, u64)> {
    match part {
        SentPart::Kept(from, to)
        | SentPart::WithoutThoughts(from, to)
        | SentPart::LookedUp(from, to, _) => Some((*from, *to)),
        SentPart::Instead(seq, _) => Some((*seq, seq + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(asked: &str, sent: &str) -> Contents {
        serde_json::from_str(&format!("{{\"asked\":{asked},\"sent\":{sent}}}")).unwrap()
    }

    fn kept(runs: &[(u64, u64)]) -> String {
        let runs: Vec<_> =
            runs.iter().map(|(from, to)| format!("{{\"kept\":[{from},{to}]}}")).collect();
        format!("[{}]", runs.join(","))
    }

    #[test]
    fn in7_what_was_left_out_is_what_was_not_sent() {
        let left_out = |asked: &str, sent: &[(u64, u64)]| left_out(&contents(asked, &kept(sent)));
        assert!(left_out("[[0,9]]", &[(0, 9)]).is_empty());
        // A question is sent after a note, before the rest.
        assert_eq!(left_out("[[0,20]]", &[(0, 2), (9, 10), (15, 20)]), [[2, 9], [10, 15]]);
        // Branches: what is between the runs belongs to others.
        assert_eq!(left_out("[[0,4],[10,20]]", &[(0, 2), (15, 20)]), [[2, 4], [10, 15]]);
        assert_eq!(left_out("[[0,4],[10,12]]", &[(0, 1)]), [[1, 4], [10, 12]]);
        assert_eq!(messages_left_out(&contents("[[0,4],[10,12]]", &kept(&[(0, 1)]))), 5);
    }

    #[test]
    fn in7_a_request_differs_from_the_one_before_from_a_message_on() {
        let check = |before: &str, now: &str, expected: Option<u64>| {
            let [before, now] = [before, now].map(|sent| contents("[[0,30]]", sent));
            assert_eq!(changed_from(&before, &now), expected);
        };
        let note = "{\"added\":\"0101010101010101\"}";
        let short = "{\"instead\":[4,\"0101010101010101\"]}";
        // More messages at the end change nothing.
        check(&kept(&[(0, 20)]), &kept(&[(0, 30)]), None);
        check(&kept(&[(0, 20)]), &kept(&[(0, 8), (8, 30)]), None);
        check(&kept(&[(0, 20)]), &kept(&[(0, 3), (8, 30)]), Some(3));
        check(&kept(&[(0, 3), (8, 20)]), &kept(&[(0, 3), (12, 30)]), Some(8));
        let with = |part: &str| format!("[{{\"kept\":[0,4]}},{part},{{\"kept\":[5,9]}}]");
        check(&with(note), &with(note), None);
        check(&with(short), &with(short), None);
        check(&kept(&[(0, 9)]), &with(short), Some(4));
        check(&with(note), &with(short), Some(5));
        check(&kept(&[(0, 9)]), "[]", None);
        // A conversation that only became shorter was not rewritten.
        check(&kept(&[(0, 30)]), &kept(&[(0, 20)]), None);
        check(&with(note), &kept(&[(0, 4)]), None);
        check(&kept(&[(0, 30)]), &kept(&[(0, 8), (12, 20)]), Some(8));
    }

    #[test]
    fn in7_a_change_of_tools_is_seen() {
        let check = |before: &str, now: &str, expected: Option<bool>| {
            let [before, now] = [before, now].map(|tools| {
                serde_json::from_str(&format!("{{\"asked\":[[0,9]]{tools}}}")).unwrap()
            });
            assert_eq!(tools_changed(&before, &now), expected);
        };
        let [one, other] = ["01", "02"].map(|byte| format!(",\"tools\":\"{}\"", byte.repeat(8)));
        let with_ours = format!("{one},\"has_tools\":true");
        check(&one, &one, Some(false));
        check(&one, &other, Some(true));
        check(&one, &with_ours, Some(true));
        check(&with_ours, &with_ours, Some(false));
        check("", &one, None);
    }
}

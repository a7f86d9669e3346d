//! The two scripts of Chinese as one, and numbers that are written in Chinese characters.

use std::sync::LazyLock;

/// The simplified form of a traditional character, and any other character as it stands.
pub(super) fn simplified(c: char) -> char {
    let place = (c as u32).wrapping_sub(FIRST) as usize;
    match SIMPLIFIED.get(place) {
        Some(&code) if code != 0 => char::from_u32(u32::from(code)).unwrap_or(c),
        _ => c,
    }
}

/// The first character that has a simplified form, and how many places stand behind it.
const FIRST: u32 = 0x4e00;
const PLACES: usize = 0x5200;

/// For each character from [`FIRST`] on the code of its simplified form; 0 where it has none.
static SIMPLIFIED: LazyLock<Box<[u16]>> = LazyLock::new(|| {
    let mut table = vec![0; PLACES].into_boxed_slice();
    let lines = include_str!("han_variants.txt").lines().filter(|line| !line.starts_with('#'));
    let mut chars = lines.flat_map(str::chars);
    while let (Some(from), Some(to)) = (chars.next(), chars.next()) {
        let place = table.get_mut((from as u32).wrapping_sub(FIRST) as usize);
        if let (Some(place), Ok(code)) = (place, u16::try_from(to as u32)) {
            *place = code;
        }
    }
    table
});

/// Whether `c`, a simplified character, is part of a number.
pub(super) fn is_numeral(c: char) -> bool {
    digit(c).is_some() || unit(c).is_some()
}

/// Whether `c` counts something, so that a single character before it is a number: 三月, 一円.
pub(super) fn is_counter(c: char) -> bool {
    "月日号年元円块圆点时時分秒岁歳名件回次楼阶页天周倍度".contains(c)
}

/// The number that `chars` spell, all of them numerals: 一百二十九 is 129, 二〇三〇 is 2030.
pub(super) fn number(chars: &[char]) -> Option<u64> {
    if chars.iter().all(|c| digit(*c).is_some()) {
        let digits = chars.iter().filter_map(|c| digit(*c));
        return digits.take(19).try_fold(0u64, |sum, d| sum.checked_mul(10)?.checked_add(d));
    }
    // What is said so far of the whole, of the part below ten thousand, and of one unit.
    let (mut whole, mut part, mut one) = (0u64, 0u64, None);
    for &c in chars {
        if let Some(digit) = digit(c) {
            one = Some(digit);
            continue;
        }
        let unit = unit(c)?;
        if unit >= 10_000 {
            part = part.checked_add(one.take().unwrap_or(0))?;
            whole = whole.checked_add(part)?.checked_mul(unit)?;
            part = 0;
        } else {
            part = part.checked_add(one.take().unwrap_or(1).checked_mul(unit)?)?;
        }
    }
    whole.checked_add(part)?.checked_add(one.unwrap_or(0)).filter(|number| *number > 0)
}

fn digit(c: char) -> Option<u64> {
    Some(match c {
        '〇' | '零' => 0,
        '一' => 1,
        '二' | '两' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '六' => 6,
        '七' => 7,
        '八' => 8,
        '九' => 9,
        _ => return None,
    })
}

fn unit(c: char) -> Option<u64> {
    Some(match c {
        '十' => 10,
        '百' => 100,
        '千' => 1_000,
        '万' => 10_000,
        '亿' => 100_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bl10_traditional_characters_are_folded() {
        let fold = |text: &str| text.chars().map(simplified).collect::<String>();
        assert_eq!(fold("信用卡遺失後的案件號碼"), "信用卡遗失后的案件号码");
        assert_eq!(fold("發票 頭髮 這裡 abc"), "发票 头发 这里 abc");
        assert_eq!(fold("简体字不变。おかね 한국"), "简体字不变。おかね 한국");
    }

    #[test]
    fn bl10_what_is_folded_stays_as_it_is() {
        for c in (0..0x1_1000).filter_map(char::from_u32) {
            assert_eq!(simplified(simplified(c)), simplified(c), "{c}");
        }
    }

    #[test]
    fn bl10_numbers_are_read() {
        for (text, expected) in [
            ("一百二十九", Some(129)),
            ("十八", Some(18)),
            ("二〇三〇", Some(2030)),
            ("四万八千二百一十三", Some(48_213)),
            ("五千零五十", Some(5_050)),
            ("三亿", Some(300_000_000)),
            ("零", Some(0)),
            ("千", Some(1_000)),
            ("九九九九九九九九九九九九九九九九九九九九", Some(9_999_999_999_999_999_999)),
            ("亿亿亿亿", None),
        ] {
            let chars: Vec<char> = text.chars().collect();
            assert!(chars.iter().all(|c| is_numeral(*c)));
            assert_eq!(number(&chars), expected, "{text}");
        }
    }
}

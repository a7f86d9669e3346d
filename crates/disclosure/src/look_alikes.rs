//! Characters that a reader takes for those of a mark: look-alikes, and invisible ones.

/// Returns whether it opens a tag, or looks as if it did.
pub(crate) fn is_angle(c: char) -> bool {
    matches!(
        c,
        '<' | '＜'
            | '﹤'
            | '‹'
            | '\u{2329}'
            | '\u{3008}'
            | '⟨'
            | '❬'
            | '❮'
            | '˂'
            | 'ᐸ'
            | '«'
            | '《'
    )
}

/// Returns whether it begins the number of a message, or looks as if it did.
pub(crate) fn is_number_sign(c: char) -> bool {
    matches!(c, '#' | '＃' | '﹟' | '♯')
}

/// Returns whether it may be between the bracket of a mark and its word: slashes, space, invisible characters.
pub(crate) fn is_filling(c: char) -> bool {
    matches!(c, '/' | '\\' | '／' | '＼' | '⁄' | '∕' | '⧸' | '﹨' | '∖')
        || c.is_whitespace()
        || c.is_control()
        || is_invisible(c)
}

/// Returns whether it is invisible by itself: the default ignorable characters of Unicode, and the
/// accents that change the letter before them.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{300}'..='\u{36f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns the small Latin letter that it is or looks like; itself if it looks like none of a mark's.
pub(crate) fn letter(c: char) -> char {
    let offset = |first: u32, at: u32| char::from_u32(first + at).unwrap_or(c);
    let latin = match c {
        'А' | 'а' | 'Α' | 'α' | 'ɑ' | 'ａ' | 'Ａ' => 'a',
        'С' | 'с' | 'Ϲ' | 'ϲ' | 'ⅽ' | 'Ⅽ' => 'c',
        'ԁ' | 'Ꭰ' | 'ⅾ' | 'Ⅾ' => 'd',
        'Е' | 'е' | 'Ε' | 'ε' | 'є' | 'ҽ' | '℮' => 'e',
        'Ι' | 'І' | 'і' | 'Ӏ' | 'ӏ' | 'ⅼ' | 'Ⅼ' | 'ǀ' | '|' | '1' | 'I' | 'i' => 'l',
        'г' | 'ꭇ' | 'Ꭱ' | 'ʀ' => 'r',
        '！'..='～' => offset(0x21, u32::from(c) - 0xff01),
        'Ⓐ'..='ⓩ' => offset(u32::from('a'), (u32::from(c) - 0x24b6) % 26),
        // Bold, italic and the like: alphabets of 26 capitals and 26 small letters.
        '\u{1d400}'..='\u{1d6a3}' => offset(u32::from('a'), (u32::from(c) - 0x1d400) % 26),
        _ => c,
    };
    latin.to_ascii_lowercase()
}

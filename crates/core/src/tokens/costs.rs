//! The costs of the pieces of a text, in hundredths of a token.
//!
//! Measured as the mean number of o200k tokens of such pieces in recorded conversations (customer
//! service, coding agents, shell sessions, medical records, meetings, chats), in random hexadecimal
//! and base64 text, and in sentences of fifteen languages; each source weighed at most as 200,000
//! tokens. Lengths that are rare in the sources are smoothed.

/// A word of letters A-Z: by what precedes it, by its case, by its length from 1 to 16.
pub(super) static WORD: [[[u16; 16]; 4]; 5] = [
    [
        [100, 100, 103, 103, 112, 109, 123, 123, 124, 200, 128, 200, 237, 281, 281, 308], // nothing lower
        [100, 101, 105, 111, 141, 159, 181, 201, 206, 206, 180, 258, 258, 313, 313, 379], // nothing Capital
        [100, 103, 158, 158, 180, 180, 196, 241, 249, 249, 336, 336, 458, 490, 523, 562], // nothing UPPER
        [100, 100, 203, 251, 253, 304, 327, 402, 402, 402, 402, 402, 469, 469, 469, 564], // nothing MIxed
    ],
    [
        [100, 100, 100, 100, 102, 103, 103, 106, 109, 110, 110, 114, 124, 137, 140, 176], // a space lower
        [100, 100, 101, 102, 107, 111, 119, 131, 131, 137, 158, 184, 184, 184, 188, 219], // a space Capital
        [100, 101, 126, 126, 137, 185, 185, 253, 253, 253, 308, 308, 314, 369, 369, 470], // a space UPPER
        [100, 100, 124, 199, 235, 266, 278, 301, 317, 317, 317, 336, 462, 474, 523, 550], // a space MIxed
    ],
    [
        [104, 115, 121, 121, 145, 145, 171, 195, 209, 300, 255, 255, 255, 293, 293, 309], // punctuation lower
        [100, 166, 166, 166, 166, 166, 166, 188, 220, 222, 222, 240, 268, 281, 284, 348], // punctuation Capital
        [117, 159, 166, 166, 166, 201, 201, 344, 344, 344, 388, 388, 476, 476, 538, 562], // punctuation UPPER
        [100, 100, 255, 310, 350, 362, 362, 362, 362, 401, 401, 448, 523, 523, 551, 594], // punctuation MIxed
    ],
    [
        [100, 101, 156, 212, 243, 274, 308, 397, 397, 411, 436, 457, 457, 546, 587, 632], // a digit lower
        [100, 128, 191, 222, 294, 320, 324, 324, 324, 325, 378, 477, 490, 556, 594, 632], // a digit Capital
        [100, 105, 195, 226, 280, 333, 333, 333, 366, 404, 442, 480, 518, 556, 594, 632], // a digit UPPER
        [100, 100, 207, 232, 297, 347, 403, 446, 489, 493, 636, 636, 636, 636, 674, 712], // a digit MIxed
    ],
    [
        [100, 100, 103, 148, 150, 151, 151, 184, 218, 218, 224, 240, 277, 277, 282, 296], // a letter lower
        [100, 113, 116, 116, 116, 116, 116, 116, 122, 123, 157, 157, 226, 226, 243, 338], // a letter Capital
        [100, 108, 163, 208, 214, 241, 316, 316, 317, 362, 397, 430, 463, 496, 529, 562], // a letter UPPER
        [100, 100, 206, 228, 293, 313, 355, 355, 355, 355, 355, 533, 533, 533, 556, 556], // a letter MIxed
    ],
];
/// Each letter of a word beyond the sixteenth.
pub(super) const LONG_WORD: u32 = 30;
/// A contraction (`'s`, `'re`, ...) after a word: mostly it is a part of the word's token.
pub(super) const CONTRACTION: u32 = 7;
/// The same with a typographic apostrophe, which is a token of its own.
pub(super) const TYPOGRAPHIC_CONTRACTION: u32 = 100;
/// A word with accented letters: itself, and each letter. It costs more than was measured (90 and
/// 15), because the words around it are of the same language and cost more than English ones.
pub(super) const ACCENTED: (u32, u32) = (80, 21);
/// A word with letters that hardly any language but Vietnamese has: itself, and each letter.
pub(super) const VIETNAMESE: (u32, u32) = (90, 7);
/// A run of punctuation without repetitions, by its length from 1 to 9.
pub(super) static PUNCTUATION: [u16; 9] = [100, 101, 121, 194, 215, 285, 330, 360, 450];
/// Each mark of such a run beyond the ninth.
pub(super) const LONG_PUNCTUATION: u32 = 55;

/// A run of characters of one kind: itself, each character, and what a space and a punctuation mark
/// directly before it add, because it does not absorb them as words do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) run: u32,
    pub(super) each: u32,
    pub(super) space: u32,
    pub(super) mark: u32,
}

const fn run(run: u32, each: u32, space: u32, mark: u32) -> Run {
    Run { run, each, space, mark }
}

pub(super) const GREEK: Run = run(25, 37, 0, 60);
pub(super) const CYRILLIC: Run = run(70, 16, 0, 60);
pub(super) const HEBREW: Run = run(15, 43, 0, 60);
pub(super) const ARABIC: Run = run(77, 16, 0, 60);
pub(super) const INDIC: Run = run(60, 17, 0, 60);
pub(super) const THAI: Run = run(30, 36, 30, 60);
pub(super) const HANGUL: Run = run(30, 47, 30, 80);
pub(super) const HIRAGANA: Run = run(58, 31, 80, 90);
pub(super) const KATAKANA: Run = run(40, 55, 80, 90);
pub(super) const HAN: Run = run(20, 68, 60, 90);
pub(super) const RARE_HAN: Run = run(20, 250, 60, 90);
pub(super) const WIDE_MARK: Run = run(0, 97, 100, 100);
pub(super) const BOX: Run = run(70, 40, 40, 80);
pub(super) const EMOJI: Run = run(45, 93, 40, 100);
pub(super) const REPLACEMENT: Run = run(90, 13, 60, 100);
pub(super) const SYMBOL: Run = run(0, 105, 60, 100);
pub(super) const UNKNOWN: Run = run(50, 150, 60, 100);

/// What a character of [`TRADITIONAL`] adds: the vocabulary has few words in traditional script,
/// so it is spelled character by character.
pub(super) const TRADITIONAL_EXTRA: u32 = 95;

/// Returns whether a character is written this way only in traditional Chinese, not in simplified
/// Chinese or Japanese: about the commonest two hundred, which are a quarter of such a text.
#[inline(always)]
pub(super) fn is_traditional(c: char) -> bool {
    let at = (c as u32).wrapping_sub(0x4e00);
    TRADITIONAL.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
}

/// A bit for each character from U+4E00 to U+9FFF.
static TRADITIONAL: [u64; 328] = {
    let text = TRADITIONAL_TEXT.as_bytes();
    let mut bits = [0; 328];
    let mut at = 0;
    // Each of them has three bytes in UTF-8; functions that decode them are not const.
    while at + 2 < text.len() {
        let (a, b, c) = (text[at] as usize, text[at + 1] as usize, text[at + 2] as usize);
        let bit = (((a & 0xf) << 12) | ((b & 0x3f) << 6) | (c & 0x3f)) - 0x4e00;
        bits[bit / 64] |= 1 << (bit % 64);
        at += 3;
    }
    bits
};

const TRADITIONAL_TEXT: &str = "\
    這個們來說會對為還沒國與應關點實學發樣讓當變經總麼嗎擇據處參數繼續聯繫產隨雖難雜\
    離響類顯驗歡圖團塊壓壞夢獎寫將專屬帶幫廣廳張強彈徑徵慮懷戰戲戶擁擊擔擴擬攝斷舊曉\
    暫樓標樂檢權歷歸殘氣決況淺測溫滅滾漢潛澤濃濟營燈爭牆獨獲獻畫療盜盡盤眾確禮種稱積\
    穩窮竊筆節範築簽籌糧絕絲緒緣緩繞罰羅聲肅脅腦腳臉臺興舉艱萬蓋藝藥號補裝製複覺觀觸\
    證譯譽讀賣賬賴贊趕趨跡較輕輛輯轉辦遊邊鄉鄰醫釋鋪錄錢錯鎖鏈鐘鐵閱隊險隱雙雲靈靜韓\
    頁項須預顆願駐驅體髮鬥麗麵齊龍裡裏訊";

//! The two scripts of Chinese as one, and numbers written in Chinese characters.

use std::sync::LazyLock;

/// Returns the simplified form of a traditional character, and any other character unchanged.
pub(super) fn simplified(c: char) -> char {
    let place = (c as u32).wrapping_sub(FIRST) as usize;
    match SIMPLIFIED.get(place) {
        Some(&code) if code != 0 => char::from_u32(u32::from(code)).unwrap_or(c),
        _ => c,
    }
}

/// The first character that has a simplified form, and how many places follow it.
const FIRST: u32 = 0x4e00;
const PLACES: usize = 0x5200;

/// For each character from [`FIRST`] on, the code of its simplified form; 0 if it has none.
static SIMPLIFIED: LazyLock<Box<[u16]>> = LazyLock::new(|| {
    let mut table = vec![0; PLACES].into_boxed_slice();
    let lines = include_str!("han_variants.txt").lines().filter(|line| !line.starts_with('#'));
    let mut chars = lines.flat_map(str::chars);
    let mut more = MORE_VARIANTS.chars().filter(|c| !c.is_whitespace());
    let mut next = || chars.next().or_else(|| more.next());
    while let (Some(from), Some(to)) = (next(), next()) {
        let place = table.get_mut((from as u32).wrapping_sub(FIRST) as usize);
        if let (Some(place), Ok(code)) = (place, u16::try_from(to as u32)) {
            *place = code;
        }
    }
    table
});

/// Traditional characters that are frequent and that the table leaves out, since Unihan gives them
/// no or several simplified forms, or folds otherwise than people write; then variants. Chosen by
/// hand, by the authors' own knowledge; each is followed by its form in simplified writing.
const MORE_VARIANTS: &str = "餘余 週周 佔占 遊游 徵征 佈布 裏里 託托 昇升 嚐尝 啓启 \
    綫线 乾干 鍾钟 嚮向 彆别 慾欲 綵彩 祕秘 籤签 衹只 祇只 \
    讚赞 遶绕 僱雇 麪面 麽么 喫吃 噁恶 嶽岳 崑昆 廻回 彊强 \
    牀床 擡抬 揹背 旣既 朶朵 汙污 凃涂 淒凄 溼湿 菸烟 墻墙 \
    獃呆 痠酸 盃杯 粧妆 糉粽 絃弦 綑捆 羣群 脣唇 蔘参 蝨虱 \
    覈核 譁哗 豔艳 蹟迹 醃腌 鈎钩 銹锈 鑑鉴 陞升 鷄鸡 彫雕 \
    鵰雕 饑饥 餵喂 鬪斗 麯曲 麴曲 爲为 僞伪 衆众 峯峰 搾榨 \
    劄札 歎叹 唸念 嚥咽 囉啰 塚冢 夥伙 妳你 牠它 奬奖 孃娘 \
    尅克 悽凄 敍叙 暱昵 柺拐 汎泛 洩泄 湧涌 牴抵 畱留 痲麻 \
    癡痴 眞真 砲炮 糰团 紮扎 縴纤 罎坛 舖铺 荳豆 甦苏 袴裤 \
    説说 貍狸 賸剩 輭软 鍊炼 鎚锤 閲阅 騐验 兇凶 冐冒 淨净 \
    勳勋 嫺娴 帋纸 弔吊 慼戚 搧扇 摺折 攷考 暎映 枱台 栢柏 \
    椶棕 槓杠 樑梁 欵款 殭僵 殽淆 氷冰 泝溯 澂澄 濬浚 炤照 \
    烱炯 燄焰 燉炖 燻熏 牋笺 犇奔 甕瓮 畧略 疎疏 碁棋 稺稚 \
    窰窑 箇个 簷檐 籐藤 綳绷 綉绣 駡骂 聼听 胷胸 脩修 舘馆 \
    菴庵 蓆席 蔴麻 蕚萼 蘂蕊 蠔蚝 覩睹 諠喧 譭毁 燬毁 竪竖 \
    賍赃 跼局 踰逾 躭耽 躱躲 迺乃 鉢钵 鋭锐 鎗枪 鐡铁 閙闹 \
    隄堤 隣邻 霑沾 靭韧 頴颖 顔颜 飜翻 餬糊 駞驼 鵞鹅 麤粗 \
    黒黑 鼇鳌 鼈鳖 齧啮 齩咬 龢和 鉅巨 諮咨 逕径 鹼碱";

/// Returns whether `c`, a simplified character, is part of a number.
pub(super) fn is_numeral(c: char) -> bool {
    digit(c).is_some() || unit(c).is_some()
}

/// Returns whether `c` is a counter, so that a single character before it is a number: 三月, 一円.
pub(super) fn is_counter(c: char) -> bool {
    "月日号年元円块圆点时時分秒岁歳名件回次楼阶页天周倍度".contains(c)
}

/// Returns the number that `chars` spell, all of them numerals: 一百二十九 is 129, 二〇三〇 is 2030.
pub(super) fn number(chars: &[char]) -> Option<u64> {
    if chars.iter().all(|c| digit(*c).is_some()) {
        let digits = chars.iter().filter_map(|c| digit(*c));
        return digits.take(19).try_fold(0u64, |sum, d| sum.checked_mul(10)?.checked_add(d));
    }
    // The values so far of the whole, of the part below ten thousand, and of one unit.
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
        assert_eq!(fold("餘額 週一 佔用 遊戲 徵信"), "余额 周一 占用 游戏 征信");
        assert_eq!(fold("公佈 這裏 託管 昇級 嚐試 啓動"), "公布 这里 托管 升级 尝试 启动");
        assert_eq!(fold("綫上 乾淨 諮詢 羣組 衆多"), "线上 干净 咨询 群组 众多");
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

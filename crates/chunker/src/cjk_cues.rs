//! What people say in Chinese (in both scripts), Japanese and Korean when they begin, end or go on
//! with a topic.
//!
//! Phrases are matched as they stand, without words: `begins` at the start of a message, `head` and
//! `tail` anywhere in its first and last characters, `ends` in front of the marks at its end.

use crate::cues::Cues;
use crate::terms::is_cjk;

/// The cues of a message, of which `head` and `tail` are the first and the last characters.
pub(crate) fn of(head: &str, tail: &str) -> u16 {
    let mut cues = 0;
    for (list, cue) in BEGINS {
        if phrases(list).any(|phrase| head.starts_with(phrase)) {
            cues |= cue;
        }
    }
    for (list, cue) in HEAD {
        if phrases(list).any(|phrase| head.contains(phrase)) {
            cues |= cue;
        }
    }
    for (list, cue) in TAIL {
        if phrases(list).any(|phrase| tail.contains(phrase)) {
            cues |= cue;
        }
    }
    let said = tail.trim_end_matches(|c: char| !c.is_alphanumeric());
    for (list, cue) in ENDS {
        if phrases(list).any(|phrase| said.ends_with(phrase)) {
            cues |= cue;
        }
    }
    if is_elliptic(head, said) {
        cues |= Cues::ASKS | Cues::REFERS_BACK | Cues::ACKNOWLEDGES;
    }
    if cues & TURNS != 0 {
        // Who turns to another subject takes nothing up.
        cues = cues & !(TURNS | Cues::ACKNOWLEDGES | Cues::REFERS_BACK) | Cues::GREETS;
    }
    cues
}

/// Stands for a phrase that turns to another subject, which counts as a greeting does.
const TURNS: u16 = 1 << 15;

fn phrases(list: &str) -> impl Iterator<Item = &str> {
    list.split('|')
}

/// Whether a message is no more than "and that one?": it lives from what was asked before.
fn is_elliptic(head: &str, said: &str) -> bool {
    const LONGEST: usize = 10;
    let short = head.chars().filter(|c| is_cjk(*c)).count() <= LONGEST;
    short && ["呢", "は", "은요", "는요", "では"].iter().any(|end| said.ends_with(end))
}

const BEGINS: [(&str, u16); 3] = [
    (
        "换个|換個|换一个|換一個|另外|对了|對了|顺便问|順便問|接下来|接下來|还有一个问题|\
         還有一個問題|还有一件事|還有一件事|最后|最後|说正事|說正事|下一个问题|下一個問題|\
         话说|話說|言归正传|言歸正傳|还想问|還想問|ところで|さて|次に|次は|\
         そういえば|最後に|別件|あと、|もう一つ|もうひとつ|그런데|그건 그렇고|그나저나|\
         다음으로|다른 얘기|다른 이야기|화제를 바꾸|화제를 바꿔|참,|아참|아, 그리고|\
         마지막으로|한 가지 더|하나 더",
        TURNS,
    ),
    (
        "你好|您好|嗨|哈喽|哈囉|早上好|早安|下午好|晚上好|大家好|各位早|おはよう|こんにちは|\
         こんばんは|もしもし|お電話ありがとう|안녕하세요|안녕하십니까|좋은 아침|여보세요",
        Cues::GREETS,
    ),
    (
        "好的|好吧|好，|好。|好啊|嗯|是的|对|對|不是|不用|没有|沒有|行|可以|没问题|沒問題|\
         明白|知道了|原来|原來|那|真的|哈哈|哦|喔|了解|太好了|记住|記住|就这|就這|はい|ええ|\
         そうです|なるほど|わかりました|承知|かしこまりました|いいですね|よかった|では|\
         じゃあ|それでは|それなら|いいえ|いえ|大丈夫|もちろん|네|예,|응|아니|맞아|그래|그렇|\
         그럼|그러면|좋아|좋은 생각|알겠|역시|물론|됐어|아하",
        Cues::ACKNOWLEDGES,
    ),
];

const HEAD: [(&str, u16); 3] = [
    (
        "話は変わ|話が変わ|のことなんですが|のことですが|の件ですが|の件なんですが|关于另|關於另",
        TURNS,
    ),
    (
        "它|他的|他们|他們|他说|他說|他是|他在|她|这个|这些|这样|这么|這個|這些|這樣|這麼|那个|那些|那样|那個|那樣|上面|刚才|\
         剛才|其中|同样|同樣|それ|これ|その|この|そちら|そこ|それら|あれ|그거|그건|그게|그걸|\
         그곳|그때|이거|이건|이게|이걸|거기|그렇게|이렇게|그날",
        Cues::REFERS_BACK,
    ),
    (
        "请|請|帮我|幫我|帮忙|幫忙|我想|我要|我需要|给我|給我|告诉我|告訴我|能不能|可不可以|\
         能否|麻烦|麻煩|查一下|查询|查詢|看一下|找一下|写一|寫一|列出|提醒|\
         什么是|什麼是|有没有|有沒有|想请教|\
         想請教|ください|をお願いし|教えて|たいのですが|たいんですが|たいんだけど|してほしい|\
         調べて|해 줘|해줘|\
         주세요|줘|알려|확인|싶어|싶은|추천",
        Cues::REQUESTS,
    ),
];

const TAIL: [(&str, u16); 3] = [
    (
        "还有什么|還有什麼|还需要|還需要|其他需要|其他问题|其他問題|别的问题|別的問題|再见|\
         再見|拜拜|掰掰|祝您|祝你|不客气|不客氣|不用谢|不用謝|随时|隨時|感谢来电|感謝來電|\
         他に何か|ほかに何か|どういたしまして|お待ちして|お気軽に|失礼します|失礼いたし|\
         さようなら|いえいえ|더 필요하신|더 도와|다른 문의|즐거운|좋은 하루|안녕히|천만에요|\
         별말씀|언제든지|수고하세요|수고하셨",
        Cues::CLOSES,
    ),
    (
        "谢谢|謝謝|感谢|感謝|多谢|多謝|辛苦了|就这些|就這些|没别的|沒別的|没有别的|沒有別的|\
         太好了|再见|再見|拜拜|ありがとう|助かりました|助かります|以上です|よろしくお願い|よろしくおねがい|감사합니다|\
         감사해요|고마워|고맙습니다|고마와",
        Cues::THANKS,
    ),
    (
        "你呢|您呢|你觉得|你覺得|你喜欢|你喜歡|你有|你是|你会|你會|你想|您想|您需要|你平时|\
         你平時|你最近|你在|あなた|どう思い|お好き|어떻게 생각|좋아하세요|하세요?|하셨어요?",
        Cues::ASKS_YOU,
    ),
];

const ENDS: [(&str, u16); 2] = [
    (
        "吗|嗎|呢|什么|什麼|怎么|怎麼|哪里|哪裡|哪个|哪個|几点|幾點|多少|没有|沒有|了没|了沒|ですか|ますか|せんか|\
         でしょうか|したか|かな|っけ|のか|까|까요|나요|은가요|인가요|는지요",
        Cues::ASKS,
    ),
    // What was to be done is done.
    (
        "已推送|已更新|已完成|已修改|已配置|已发送|已登记|全部通过|改好了|写好了|做好了|完成了|搞定了|标好了|\
         作成しました|完了しました|送っておきます|再実行しました|登録しました|배포했습니다|적용했습니다|완료했습니다|\
         수정했습니다|변경되었습니다|됐어요|끝났습니다|처리했습니다",
        Cues::CLOSES,
    ),
];

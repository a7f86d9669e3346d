//! Phrases with which people begin, end or continue a topic in Chinese (in both scripts), Japanese
//! and Korean.
//!
//! Phrases are separated by `|` and matched as they are, whatever words they are part of: these
//! languages put no spaces between words, or change their endings.

/// Turns to another subject, at the start.
pub(crate) const TURNS: &str = "\
    换个|換個|换一个|換一個|另外|对了|對了|顺便问|順便問|接下来|接下來|还有一个问题|\
    還有一個問題|还有一件事|還有一件事|最后|最後|说正事|說正事|下一个问题|下一個問題|\
    话说|話說|言归正传|言歸正傳|还想问|還想問|ところで|さて|次に|次は|\
    そういえば|最後に|別件|あと、|もう一つ|もうひとつ|그런데|그건 그렇고|그나저나|\
    다음으로|다른 얘기|다른 이야기|화제를 바꾸|화제를 바꿔|참,|아참|아, 그리고|\
    마지막으로|한 가지 더|하나 더";

/// Greets, at the start.
pub(crate) const GREETS: &str = "\
    你好|您好|嗨|哈喽|哈囉|早上好|早安|下午好|晚上好|大家好|各位早|おはよう|こんにちは|\
    こんばんは|もしもし|お電話ありがとう|안녕하세요|안녕하십니까|좋은 아침|여보세요";

/// Takes up what was said, at the start.
pub(crate) const ACKNOWLEDGES: &str = "\
    好的|好吧|好，|好。|好啊|嗯|是的|对|對|不是|不用|没有|沒有|行|可以|没问题|沒問題|\
    明白|知道了|原来|原來|那|真的|哈哈|哦|喔|了解|太好了|记住|記住|就这|就這|はい|ええ|\
    そうです|なるほど|わかりました|承知|かしこまりました|いいですね|よかった|では|\
    じゃあ|それでは|それなら|いいえ|いえ|大丈夫|もちろん|네|예,|응|아니|맞아|그래|그렇|\
    그럼|그러면|좋아|좋은 생각|알겠|역시|물론|됐어|아하";

/// Turns to another subject, within the first characters.
pub(crate) const TURNS_WITHIN: &str =
    "話は変わ|話が変わ|のことなんですが|のことですが|の件ですが|の件なんですが|关于另|關於另";

/// Points back.
pub(crate) const REFERS_BACK: &str = "\
    它|他的|他们|他們|他说|他說|他是|他在|她|这个|这些|这样|这么|這個|這些|這樣|這麼|那个|那些|那样|那個|那樣|上面|刚才|\
    剛才|其中|同样|同樣|それ|これ|その|この|そちら|そこ|それら|あれ|그거|그건|그게|그걸|\
    그곳|그때|이거|이건|이게|이걸|거기|그렇게|이렇게|그날";

/// Asks for something to be done.
pub(crate) const REQUESTS: &str = "\
    请|請|帮我|幫我|帮忙|幫忙|我想|我要|我需要|给我|給我|告诉我|告訴我|能不能|可不可以|\
    能否|麻烦|麻煩|查一下|查询|查詢|看一下|找一下|写一|寫一|列出|提醒|\
    什么是|什麼是|有没有|有沒有|想请教|\
    想請教|ください|をお願いし|教えて|たいのですが|たいんですが|たいんだけど|してほしい|\
    調べて|해 줘|해줘|\
    주세요|줘|알려|확인|싶어|싶은|추천";

/// Offers to end the conversation, or says goodbye.
pub(crate) const CLOSES: &str = "\
    还有什么|還有什麼|还需要|還需要|其他需要|其他问题|其他問題|别的问题|別的問題|再见|\
    再見|拜拜|掰掰|祝您|祝你|不客气|不客氣|不用谢|不用謝|随时|隨時|感谢来电|感謝來電|\
    他に何か|ほかに何か|どういたしまして|お待ちして|お気軽に|失礼します|失礼いたし|\
    さようなら|いえいえ|더 필요하신|더 도와|다른 문의|즐거운|좋은 하루|안녕히|천만에요|\
    별말씀|언제든지|수고하세요|수고하셨";

/// Thanks, or expresses satisfaction.
pub(crate) const THANKS: &str = "\
    谢谢|謝謝|感谢|感謝|多谢|多謝|辛苦了|就这些|就這些|没别的|沒別的|没有别的|沒有別的|\
    太好了|再见|再見|拜拜|ありがとう|助かりました|助かります|以上です|よろしくお願い|よろしくおねがい|감사합니다|\
    감사해요|고마워|고맙습니다|고마와";

/// Asks the other about themself.
pub(crate) const ASKS_YOU: &str = "\
    你呢|您呢|你觉得|你覺得|你喜欢|你喜歡|你有|你是|你会|你會|你想|您想|您需要|你平时|\
    你平時|你最近|你在|あなた|どう思い|お好き|어떻게 생각|좋아하세요|하세요?|하셨어요?";

/// Asks something, at the very end.
pub(crate) const ASKS: &str = "\
    吗|嗎|呢|什么|什麼|怎么|怎麼|哪里|哪裡|哪个|哪個|几点|幾點|多少|没有|沒有|了没|了沒|ですか|ますか|せんか|\
    でしょうか|したか|かな|っけ|のか|까|까요|나요|은가요|인가요|는지요";

/// Reports that the task is done, at the very end.
pub(crate) const IS_DONE: &str = "\
    已推送|已更新|已完成|已修改|已配置|已发送|已登记|全部通过|改好了|写好了|做好了|完成了|搞定了|标好了|\
    作成しました|完了しました|送っておきます|再実行しました|登録しました|배포했습니다|적용했습니다|완료했습니다|\
    수정했습니다|변경되었습니다|됐어요|끝났습니다|처리했습니다";

/// Ends a message that is no more than "and that one?".
pub(crate) const ELLIPTIC: &str = "呢|は|은요|는요|では";

//! Phrases with which people begin, end or continue a topic in English.

use crate::phrases::Phrases;

/// Offers to end the conversation, or says goodbye.
pub(crate) static CLOSES: Phrases = Phrases::of(
    "anything else / something else / any other / other help / other question / other questions /
     further assist / further assistance / further assisting / help you with ? / bye / goodbye /
     have a great / have a good / have a nice / have a wonderful / have a lovely /
     you're welcome / you are welcome / your welcome / no problem / glad to / enjoy your /
     finish / submit / transfer successful / transferred successful / transferred successfully /
     transferred to a human / transfer to a human / transfer you to a human / all set / take care /
     my pleasure / anytime",
);

/// Thanks, or expresses satisfaction.
pub(crate) static THANKS: Phrases = Phrases::of(
    "thank / thanks / thankful / thx / appreciate / appreciated / that's all / that's it /
     that's everything / that is all / that is it / that is everything / all i need / perfect /
     great . / bye / goodbye",
);

/// Takes up what was said, at the start.
pub(crate) static ACKNOWLEDGES: Phrases = Phrases::of(
    "yes / yeah / yep / yup / no / nope / nah / ok / okay / sure / sounds / that / it / they / great
     / perfect / good / cool / nice / wow / awesome / thank / thanks / alright / true / right /
     really / lol / haha / oh / both / either / any / none / not / i see / got it",
);

/// Points back.
pub(crate) static REFERS_BACK: Phrases = Phrases::of(
    "it / it's / its / they / they're / them / their / those / these / that / that's / there /
     there's / this one / this ones / he / he's / she / she's / his / him / her / same / either / both",
);

/// Asks for something to be done.
pub(crate) static REQUESTS: Phrases = Phrases::of(
    "i need / i want / i would like / i'd like / i am looking / i'm looking / i am trying /
     i'm trying / i am interested / i'm interested / i am going / i'm going / can you / could you /
     would you / please / find / show / give me / tell me / set a / set up / set the / set my /
     remind / schedule / what is / what's / what time / what are / what day / what date / where /
     where's / when / when's / how many / how much / how do / how far / how long / is there /
     are there / print / list / count / navigate / direct",
);

/// Asks the other about themself.
pub(crate) static ASKS_YOU: Phrases = Phrases::of(
    "do you / are you / have you / did you / what you / where you / how you / who you / which you /
     do your / are your / have your / did your / what your / where your / how your / who your /
     which your / what do you / where do you / how do you / who do you / which do you / what are you /
     where are you / how are you / who are you / which are you / what is your / where is your /
     how is your / who is your / which is your",
);

/// Greets, at the start.
pub(crate) static GREETS: Phrases =
    Phrases::of("hi / hello / hey / greetings / good morning / good afternoon / good evening");

/// Opens a conversation from the side of a service.
pub(crate) static OFFERS_HELP: Phrases = Phrases::of("how can i help");

"""Words that say nothing about a note: those that ask, join and point. Whose they are is told by the query itself."""

from __future__ import annotations

from collections.abc import Collection

from memoryd.store.folding import split_words

_ENGLISH = (
    "a about above after again all also am an and any are as at be because been before being below between both "
    "but by can could did do does doing down during each few for from further had has have having he her here "
    "hers him his how i if in into is it its itself just many me more most much my no nor not of off on once only "
    "or other our out over own same she should so some such than that the their them then there these they this "
    "those through to too under until up very was we were what when where which while who whom why will with "
    "would you your"
)
_GERMAN = (
    "am auch auf aus bei beim bis dann das dass dem den der des die dies diese diesem diesen dieser dieses doch "
    "du durch ein eine einem einen einer eines er es euch euer für gegen haben hatte ich ihm ihn ihr ihre ihrem "
    "ihren ihrer im ist kann kannst können könnte man mein meine meinem meinen meiner mich mir mit nach nicht "
    "noch oder ohne sein seine seinem seinen seiner sich sie sind soll sollen um und uns unser unsere unserem "
    "unseren unserer unter vom von vor wann war warum was weil welche welchem welchen welcher welches wem wen "
    "wenn wer werden wie wieder wieso wir wird wo wohin wurde wurden zu zum zur zwischen über"
)
_FRENCH = (
    "a après au aux avant avec avez avons ces cette combien comment dans de depuis des du elle elles en est "
    "est-ce et eux fait ils je la le les leur leurs lui mais mes moi mon même ne nos notre nous où par pas "
    "pendant pour pourquoi qu quand que quel quelle quelles quels qui quoi sa sans sera ses sont sous suis ta tes "
    "très un une vos votre vous y à était"
)
_SPANISH = (
    "a al antes aquel aquella aún cuando cuál cuáles cuándo cuándos cuánta cuántas cuánto cuántos cómo de del "
    "desde donde dónde el ella ellos en entonces entre era es esa ese eso estaba este esto está están fue había "
    "hace hacer hasta hay la las lo los mis muy más nos nosotros nuestra nuestro otra otro para pero por porque "
    "puede que quien quién quiénes qué según ser sobre su sus también tenemos tengo tiene tu tus un una unas unos "
    "y ya"
)
_ITALIAN = (
    "a agli ai al alla alle anche che chi ci con cosa così da dai dal dalla dalle degli dei del della delle di "
    "dopo dov dove e ed era gli ho il io la le lei loro lui ma mia mie miei mio nei nel nella nelle noi nostra "
    "nostro o ogni per perché più prima qual quale quali quando quanta quante quanti quanto quella quello questa "
    "questo se sei senza si siamo sono su sua sue sul sulla suo suoi tra tu tua tuo un una uno voi è"
)
_PORTUGUESE = (
    "a ao aos aquela aquele até com como da das de depois do dos e ela ele eles em era essa esse esta este está "
    "estão eu foi isso isto já lhe mais mas meu minha muito na nas nem nos nossa nosso num numa não nós o onde os "
    "ou para pela pelo por porque porquê quais qual quando quanto quantos que quem sem ser seu seus sua suas são "
    "também tem temos um uma você"
)
_DUTCH = (
    "aan als bij daar dan dat de deze dit door een en er geen haar heb hebben heeft hem het hij hoe hoeveel hun "
    "ik is je jij jouw kan kunnen maar meer met mij mijn moet naar niet nog nu of om onder ons onze ook op te tot "
    "tussen uit van veel voor waar waarom wanneer wat we welke werd wie wij wordt zal ze zich zij zijn zonder"
)
_POLISH = (
    "aby ale bez być był była było były ci co czego czemu czy dla do gdzie go i ich ile jak jaka jaki jakie je "
    "jego jej jest jestem kiedy kogo kto która które którego który którzy ma mam mamy mnie moja moje mój na nad "
    "nam nas nasz nasza nasze nie o od on ona oni oraz po pod przed przez przy się skąd są ta tak także tam te "
    "tego tej ten to tu tym w we wy z za ze że"
)
_RUSSIAN = (
    "а без был была были было быть в вам вас ваш ваша во вот все всё где для до его ее если есть еще ещё её же за "
    "и из или им их к как какая какие какого какое какой какую когда кого кому которая которые который кто куда "
    "ли мне мой моя мы на над нам нас наш наша наше не него нее нет неё но о об он она они от откуда по под "
    "почему при про с сколько со так там то тоже ты у уже чего чем через что чтобы эта эти это этот я"
)
_UKRAINIAN = (
    "або але без бо був була були було в вам ваш все від де для до з за зі кого коли кому куди ми моя мій на над "
    "нам нас наш не ні о об од он по при про під та так там то у уже хто це цей ця чи чого чому що щоб як яка яке "
    "який які є і із їх"
)
_GREEK = (
    "ένα ένας έχει έχουμε έχω ήταν από αυτά αυτές αυτή αυτό αυτός για δεν είμαι είναι είχε εμείς η θα και μέχρι "
    "μας με μη μια μου να ο οι ποια ποιες ποιο ποιος που πού πριν προς πως πόσα πόση πόσο πόσοι πότε πώς σας σε "
    "στα στη στην στις στο στον στους τα τη την της τι τις το τον του τους των ως όταν"
)
_ARABIC = (
    "أن أنا أو أي أين إذا إلى إن التي الذي بعد بين ثم حتى سوف على عن عند في قبل قد كان كانت كل كم كيف لا لدينا "
    "لكن لم لماذا لن لنا لي ليس ما ماذا متى مع من نحن هذا هذه هل هم هناك هو هي و يكون"
)
_HEBREW = (
    "אבל או אותה אותו אחרי איזה איזו איך אין איפה אל אם אנחנו אני את אתה בין גם דרך הוא היא היה היו הם הן זאת זה "
    "יש כבר כי כל כמה כמו לא לה לו לי למה לנו לפני מאיפה מדוע מה מי מן מתי נגד עד על עם של שלו שלי שלנו"
)
_HINDI = (
    "अगर अपना अपनी अपने आप इस उस उसका उसकी उसके एक और कब कहाँ कहां का कि कितना कितनी कितने किस किसका किसकी किसके "
    "किसने की के कैसे को कोई कौन कौनसा कौनसी क्या क्यों गई गए गया जब जो तक तब तो था थी थे ने पर फिर भी मुझे में "
    "मेरा मेरी मेरे मैं यह या ये वह वे से हम हमारा हमारी हमारे हमें ही हुआ हुई हुए हूँ है हैं हो"
)
_BENGALI = (
    "আছে আমরা আমাদের আমার আমি আর এ এই একটা একটি এবং ও ওই কখন কত কবে করা কার কারণ কি কিন্তু কী কে কেন কেমন কোথায় "
    "কোন ছিল জন্য তা তার তুমি থেকে না নেই পরে বা যে সে হবে হয় হয়েছে"
)
_TAMIL = "அது அந்த ஆனால் இது இந்த இல்லை உள்ளது உள்ளன எங்கள் எங்கே எது எத்தனை எந்த என் எப்படி எப்போது எவ்வளவு ஏன் ஒன்று ஒரு நான் நாம் மற்றும் யார்"
_TURKISH = (
    "ama benim bir biz bizim bu bunu daha değil diye en gibi hangi ile ise için kadar kaç kim kimin mi mu mü mı "
    "nasıl ne neden nerede nereye o olan olarak oldu onun sonra var ve veya ya yok zaman çok şu"
)
_VIETNAMESE = (
    "ai bao bị cho chúng các cái có của giờ gì hay hoặc khi không là làm lúc mà mấy một nhiêu nhưng những nào này "
    "ra sao sẽ ta thì thế trong tôi tại từ và vào vì về với đang đâu đã được đến để ở"
)

FUNCTION_WORDS = frozenset(_ENGLISH.split())
_LATIN = [
    frozenset(split_words(words))
    for words in (
        _GERMAN,
        _FRENCH,
        _SPANISH,
        _ITALIAN,
        _PORTUGUESE,
        _DUTCH,
        _POLISH,
        _TURKISH,
        _VIETNAMESE,
    )
]
_OTHERS = [
    frozenset(split_words(words))
    for words in (_RUSSIAN, _UKRAINIAN, _GREEK, _ARABIC, _HEBREW, _HINDI, _BENGALI, _TAMIL)
]
_TELLING = 2  # words: "mit" alone may be the institute, and "pod" a pod


def function_words(query: Collection[str]) -> frozenset[str]:
    """Of the words of a query those of the language that it is most likely in: English, unless others say more."""
    of_english = FUNCTION_WORDS.intersection(query)
    found = [of_english]
    found += [theirs for known in _LATIN if len(theirs := known.intersection(query)) >= _TELLING]
    found += [known.intersection(query) for known in _OTHERS]
    return max(found, key=len)

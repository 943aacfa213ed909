"""Words and phrases that open and end utterances, per language, and the choice of a language.

Not the rules that use them: those are in voice.endpointing.completeness. A missing word costs 1.5 s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """One language's words, in lower case, with straight apostrophes and without punctuation."""

    never_last: frozenset[str] = frozenset()
    """Words that cannot end a sentence: a recogniser's full stop after one is a cut, not an end."""
    rarely_last: frozenset[str] = frozenset()
    """Words that end a sentence only where punctuation says so."""
    abbreviations: frozenset[str] = frozenset()
    """Words whose dot ends nothing, written without that dot."""
    openers: tuple[str, ...] = ()
    """Beginnings of a request or a question; something has to follow."""
    closings: tuple[str, ...] = ()
    """Last words after which nothing is expected."""
    fillers: tuple[str, ...] = ()
    """Words that may come before an opener."""
    spaced: bool = True
    """Words are written apart."""
    open_endings: tuple[str, ...] = ()
    """More text follows after these: for languages that mark grammar with endings."""
    final_endings: tuple[str, ...] = ()
    """A sentence ends in these, without punctuation."""

    def vocabulary(self) -> frozenset[str]:
        """The words that identify the language."""
        said = " ".join((*self.openers, *self.closings, *self.fillers)).replace(",", " ")
        return self.never_last | self.rarely_last | self.abbreviations | frozenset(said.split())


def phrases_of(language: str, words: list[str]) -> Phrases:
    """The phrases for `language`, a code such as `de` or `pt-BR`; English for an unknown code.

    Without a code the language is guessed: by script, then by how many of the words it contains.
    """
    code = re.split(r"[-_]", language.casefold())[0]
    if code:
        return _LANGUAGES.get(code, _ENGLISH)
    text = "".join(words)
    for script, phrases in _SCRIPTS:
        if script.search(text):
            return phrases
    # `max` keeps the first of equal counts: English.
    return max(_SPACED, key=lambda phrases: sum(word in _VOCABULARIES[id(phrases)] for word in words))


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _list(phrases: str) -> tuple[str, ...]:
    return tuple(phrases.split(", "))


# Extends the specified English openers and closings with more question words.
_ENGLISH = Phrases(
    never_last=_set(
        "the a an and or but because if unless although whereas than my your our their its i'm i'll "
        "very um uh er"
    ),
    rarely_last=_set(
        "to of with for from at by into onto about as is are was were be been do does did can could "
        "would should will i we he she they which whose while when where until since so like not "
        "this's that's it's there's let's gonna wanna please how why what who need want"
    ),
    abbreviations=_set(
        "mr mrs ms dr prof st mt vs e.g i.e approx dept fig vol gen col sgt capt rev hon ave blvd no1 cf"
    ),
    openers=_list(
        "can you, could you, would you, will you, please, i need, i want, i would like, i'd like, "
        "help me, what, how, when, where, why, who, which, whose, what's, how's, where's, who's, "
        "when's, is, are, do, does, did, can i, could i, may i, should i, create, build, make, "
        "generate, write, design, show me, tell me, give me, explain, find, open, play, set, send, "
        "remind me, summarise, summarize, translate, list, check, let's, stop, cancel, remember"
    ),
    closings=_list(
        "thank you, thanks, thank you very much, that's all, that is all, goodbye, good bye, bye, "
        "bye bye, never mind"
    ),
    fillers=_list("um, uh, er, well, ok, okay, so, hey, hi, hello, yes, no, and then, then, now"),
)
_GERMAN = Phrases(
    never_last=_set(
        "und oder aber weil dass wenn ob obwohl sondern des eine einen einem einer eines mein meine "
        "meinen dein deine ihre unser unsere zum zur im am vom beim ins ähm äh also"
    ),
    rarely_last=_set(
        "die das mit von für auf aus bei nach zu in an über unter als wie ist sind war hat haben "
        "wird werden kann können soll ich du er sie es wir man bitte nicht was wer wo wann warum ihr "
        "ein sehr denn der den dem"
    ),
    abbreviations=_set("z.b bzw ca d.h u.a dr prof hr fr nr str vgl evtl ggf inkl abb bsp mio mrd tel"),
    openers=_list(
        "kannst du, können sie, könntest du, könnten sie, würdest du, würden sie, bitte, "
        "ich brauche, ich möchte, ich will, ich hätte gern, hilf mir, helfen sie mir, was, wie, "
        "wann, wo, warum, wieso, wer, welche, welcher, welches, woher, wohin, erstelle, baue, mach, "
        "mache, schreib, schreibe, entwirf, zeig mir, zeige mir, sag mir, gib mir, erkläre, erklär, "
        "finde, öffne, erinnere mich, fasse, übersetze, darf ich, kann ich, soll ich"
    ),
    closings=_list(
        "danke, danke schön, dankeschön, vielen dank, das ist alles, das war's, das wars, tschüss, "
        "tschüs, auf wiedersehen"
    ),
    fillers=_list("ähm, äh, also, ok, okay, ja, nein, hallo, hey, na gut, gut, dann"),
)
_FRENCH = Phrases(
    never_last=_set(
        "et ou mais parce que qu le la les des du au aux de d l mon ma mes ta tes sa ses notre votre "
        "leur lorsque quand puisque très euh ce cette ces"
    ),
    rarely_last=_set(
        "à en dans sur sous avec pour par chez vers je tu il elle on nous vous ils est sont a ont "
        "pas comment où qui un une donc son ton car si"
    ),
    abbreviations=_set("m mm mme mlle dr pr p.ex cf env av bd n° st ste"),
    openers=_list(
        "peux-tu, pouvez-vous, pourrais-tu, pourriez-vous, est-ce que, est-ce qu'on, est-ce qu'il, "
        "s'il te plaît, s'il vous plaît, j'ai besoin, je veux, je voudrais, j'aimerais, aide-moi, "
        "aidez-moi, que, qu'est-ce que, qu'est-ce qui, quoi, comment, quand, où, pourquoi, qui, "
        "quel, quelle, quels, quelles, combien, crée, créez, fais, faites, écris, écrivez, génère, "
        "construis, conçois, montre-moi, montrez-moi, dis-moi, dites-moi, donne-moi, donnez-moi, "
        "explique, expliquez, trouve, ouvre, rappelle-moi, traduis"
    ),
    closings=_list("merci, merci beaucoup, c'est tout, au revoir, s'il te plaît, s'il vous plaît, à bientôt"),
    fillers=_list("euh, ben, alors, bon, ok, oui, non, bonjour, salut, donc"),
)
_SPANISH = Phrases(
    never_last=_set(
        "y e o u pero porque que si aunque sino el la los las unos unas de del al mi mis tus su sus "
        "nuestro nuestra muy eh cuando"
    ),
    rarely_last=_set(
        "a en con por para sin sobre entre hacia desde hasta como es son está están no lo me te se "
        "yo él cómo qué un una este tu"
    ),
    abbreviations=_set("sr sra srta dr dra ud uds p.ej ej núm av pág tel aprox"),
    openers=_list(
        "puedes, puede, podrías, podría, por favor, necesito, quiero, quisiera, me gustaría, "
        "ayúdame, ayúdeme, qué, cómo, cuándo, dónde, por qué, quién, cuál, cuáles, cuánto, cuántos, "
        "cuánta, crea, construye, haz, genera, escribe, diseña, muéstrame, dime, dame, explica, "
        "explícame, busca, abre, recuérdame, resume, traduce"
    ),
    closings=_list("gracias, muchas gracias, eso es todo, adiós, hasta luego, chao, por favor"),
    fillers=_list("eh, este, bueno, ok, vale, sí, no, hola, oye, pues, entonces"),
)
_ITALIAN = Phrases(
    never_last=_set(
        "e ed o oppure ma che se il lo la i gli le di del dello della dei degli delle al allo alla "
        "ai nel nella dal dalla sul sulla nostro nostra ehm"
    ),
    rarely_last=_set(
        "a in con su per tra fra da come è sono ha non mi ti si io lui lei cosa chi un uno una mio "
        "mia tuo tua suo sua molto anche perché quando"
    ),
    abbreviations=_set("sig sigg dott prof ing avv es p.es pag tel ca"),
    openers=_list(
        "puoi, può, potresti, potrebbe, per favore, per piacere, ho bisogno, voglio, vorrei, "
        "mi piacerebbe, aiutami, mi aiuti, che cosa, cosa, cos'è, come, quando, dove, dov'è, perché, "
        "chi, quale, quali, quanto, quanti, crea, costruisci, fai, fa', genera, scrivi, progetta, "
        "mostrami, dimmi, dammi, spiega, spiegami, trova, apri, ricordami, riassumi, traduci"
    ),
    closings=_list("grazie, grazie mille, è tutto, questo è tutto, arrivederci, ciao, per favore"),
    fillers=_list("ehm, allora, beh, ok, va bene, sì, no, ciao, senti, dunque"),
)
_PORTUGUESE = Phrases(
    never_last=_set(
        "e ou mas que se embora o a os as uns umas de do da dos das ao à no na nos nas pelo pela meu "
        "tua nosso nossa hum"
    ),
    rarely_last=_set(
        "em com por para sem sobre entre até como é são está não me te eu ele ela você minha teu seu "
        "sua muito um uma porque quando"
    ),
    abbreviations=_set("sr sra dr dra prof profa ex p.ex núm av pág tel aprox"),
    openers=_list(
        "você pode, pode, podes, poderia, podias, por favor, preciso, eu preciso, quero, eu quero, "
        "gostaria, eu gostaria, queria, ajuda-me, me ajude, me ajuda, o que, o quê, como, quando, "
        "onde, por que, porque é que, quem, qual, quais, quanto, quantos, cria, crie, constrói, "
        "construa, faz, faça, gera, gere, escreve, escreva, desenha, desenhe, mostra-me, me mostre, "
        "diz-me, me diga, dá-me, me dê, explica, explique, abre, abra, lembra-me, me lembre, resume, "
        "resuma, traduz, traduza"
    ),
    closings=_list(
        "obrigado, obrigada, muito obrigado, muito obrigada, é tudo, isso é tudo, é só isso, adeus, "
        "tchau, por favor"
    ),
    fillers=_list("hum, bem, bom, ok, sim, não, olá, oi, então"),
)
_DUTCH = Phrases(
    never_last=_set("en of maar omdat want als hoewel de jouw uw onze eh uhm"),
    rarely_last=_set(
        "te van met voor in op aan bij naar uit over tot om ik jij u hij zij ze we is was ben heeft "
        "kan niet hoe wat wie haar hun het dat erg zijn ons een heel mijn je"
    ),
    abbreviations=_set("bijv bv d.w.z o.a enz dhr mevr mw dr prof nr ca blz evt"),
    openers=_list(
        "kun je, kan je, kunt u, zou je, zou u, wil je, wilt u, alsjeblieft, alstublieft, ik heb, "
        "ik wil, ik zou graag, help me, wat, hoe, wanneer, waar, waarom, wie, welke, welk, maak, "
        "bouw, schrijf, ontwerp, genereer, laat me, toon, vertel me, geef me, zoek, open, "
        "herinner me, vat, vertaal, mag ik, kan ik"
    ),
    closings=_list(
        "dank je, dank je wel, dankjewel, dank u, dank u wel, bedankt, dat is alles, dat was het, "
        "doei, tot ziens, alsjeblieft"
    ),
    fillers=_list("eh, uhm, nou, ok, oké, ja, nee, hallo, hoi, dus"),
)
_JAPANESE = Phrases(
    spaced=False,
    open_endings=_list(
        "けど, けれど, ので, から, のに, たら, れば, なら, って, とか, そして, でも, しかし, は, が, "
        "を, に, へ, と, の, も, て, で, や"
    ),
    final_endings=_list(
        "か, かな, ください, 下さい, ちょうだい, です, ます, ました, でした, ません, ましょう, たい, "
        "ほしい, 欲しい, だよ, だね, ですね, ますね, よね"
    ),
    closings=_list(
        "ありがとう, ありがとうございます, お願いします, おねがいします, さようなら, またね, 以上です"
    ),
)
_CHINESE = Phrases(
    spaced=False,
    open_endings=_list(
        "和, 跟, 与, 與, 或, 或者, 但, 但是, 可是, 因为, 因為, 所以, 如果, 而且, 然后, 然後, 还有, "
        "還有, 把, 在, 对, 對, 从, 從, 是, 要, 这个, 那个, 嗯, 呃"
    ),
    final_endings=_list("吗, 嗎, 呢, 吧, 么, 啊, 啦, 好不好, 可以吗, 行不行, 咩, 未呀"),
    openers=_list(
        "请, 請, 麻烦, 麻煩, 帮我, 幫我, 能不能, 可不可以, 可以帮, 我想, 我要, 我需要, 什么, 什麼, "
        "怎么, 怎麼, 为什么, 為什麼, 哪里, 哪裡, 谁, 誰, 给我, 給我, 告诉我, 告訴我"
    ),
    closings=_list("谢谢, 謝謝, 谢谢你, 多谢, 多謝, 唔該, 就这样, 就這樣, 再见, 再見, 拜拜"),
)
_KOREAN = Phrases(
    # Words are separated by spaces, and endings carry the grammar.
    open_endings=_list(
        "그리고, 그런데, 하지만, 그래서, 때문에, 는데, 은데, 지만, 하고, 면서, 려고, 니까, 으면, "
        "하면, 라면, 에서, 에게, 을, 를, 은, 는, 의"
    ),
    final_endings=_list(
        "까요, 을까, 할까, 볼까, 갈까, 올까, 될까, 입니까, 습니까, 합니까, 됩니까, 갑니까, 옵니까, 세요, "
        "어요, 아요, 해요, 예요, 이에요, 나요, 네요, 군요, 니다, 십시오, 줘, 줘요, 할래, 죠"
    ),
    closings=_list("감사합니다, 고마워, 고맙습니다, 안녕, 안녕히 계세요, 끝이야, 됐어"),
)
_LANGUAGES = {
    "en": _ENGLISH,
    "de": _GERMAN,
    "fr": _FRENCH,
    "es": _SPANISH,
    "it": _ITALIAN,
    "pt": _PORTUGUESE,
    "nl": _DUTCH,
    "ja": _JAPANESE,
    "zh": _CHINESE,
    "yue": _CHINESE,
    "ko": _KOREAN,
}
_SPACED = (_ENGLISH, _GERMAN, _FRENCH, _SPANISH, _ITALIAN, _PORTUGUESE, _DUTCH)
_VOCABULARIES = {id(phrases): phrases.vocabulary() for phrases in _SPACED}
_SCRIPTS = (
    (re.compile("[\uac00-\ud7a3]"), _KOREAN),
    (re.compile("[\u3041-\u30ff]"), _JAPANESE),
    (re.compile("[\u3400-\u9fff]"), _CHINESE),
)

"""Is a text a whole sentence, a whole thought? By its last words, its punctuation, its first words.

Not a parser and not a judge of meaning: what looks unfinished is given more time, never thrown away. So every
rule errs towards "not yet", which costs a second and a half; "done" at the wrong place costs a message cut in two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

SentenceEnd = Literal["none", "weak", "strong"]

_FULL_STOPS = frozenset(".。｡．।॥։።۔")
_OTHER_ENDS = frozenset("!?！？؟…‼⁇⁈⁉‽፧\u037e")
_CLOSING = "\"'”’»›«‹)]}」』】〉》）］\u2060 \t\n\r\u00a0\u3000"
"""Quotes and brackets that may stand behind the sign that ends a sentence, and space."""


def sentence_end(text: str, language: str = "") -> SentenceEnd:
    """How surely `text` ends as a sentence does.

    `weak`: there is a sign, and it may mean something else: `3.` can go on as `3.50`, `etc.` goes on as well as
    it ends. Three dots are what a recogniser writes where a voice trails off, and end nothing; the sign `…`
    is written on purpose more often, and is weak. `language` is a code such as `de`; empty looks at all.
    """
    core = text.rstrip(_CLOSING)
    last = core[-1:]
    if last in _OTHER_ENDS and last:
        return "weak" if last == "…" else "strong"
    if last not in _FULL_STOPS or not last or core.endswith(".."):
        return "none"
    return "strong" if last != "." else _after_dot(core[:-1], language)


def is_complete_thought(text: str, language: str = "") -> bool:
    """Whether somebody who pauses after `text` has said what they wanted: a sentence, a request, a goodbye."""
    words = _words(text)
    if not words:
        return False
    end = sentence_end(text, language)
    tables = _tables(language)
    asked = text.rstrip(_CLOSING)[-1:] in _OTHER_ENDS
    if not asked and any(words[-1] in table.never_last for table in tables):
        return False
    if end != "none":
        return True
    said = " ".join(words)
    if _trails_off(text) or any(table.is_unfinished(said, words[-1]) for table in tables):
        return False
    return any(table.is_request(said) or table.is_closing(said) for table in tables)


# ---------------------------------------------------------------- signs


def _after_dot(before: str, language: str) -> SentenceEnd:
    """What the dot behind `before` means."""
    if before[-1:].isdigit():
        return "weak"
    word = re.split(r"[\s(\[{\"“„«「]", before)[-1].casefold()
    if word in _ENDS_OR_NOT:
        return "weak"
    if any(word in table.abbreviations for table in _tables(language)):
        return "none"
    if word == "i":
        return "weak"
    # An initial, or letters with dots between them: `J.`, `z.B.`
    return "none" if re.fullmatch(r"(?:[^\W\d_]\.)*[a-z\u00e0-\u024f\u0400-\u04ff]", word) else "strong"


def _trails_off(text: str) -> bool:
    return text.rstrip(_CLOSING).endswith(("..", ",", "，", "、", "،", ":", "：", ";", "-", "–", "—"))  # noqa: RUF001 - as they are written


def _words(text: str) -> list[str]:
    plain = text.casefold().replace("’", "'").replace("ʼ", "'").replace("‘", "'")  # noqa: RUF001 - as they are written
    return re.findall(r"[\w']+(?:-[\w']+)*", plain)


# ---------------------------------------------------------------- languages

_ENDS_OR_NOT = frozenset("etc usw ecc a.m p.m u.s u.k ph.d inc ltd co corp jr sr u.s.a o.k".split())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """What is known about one language."""

    never_last: frozenset[str] = frozenset()
    """Words after which something has to follow; a recogniser's full stop behind them is a cut, not an end."""
    rarely_last: frozenset[str] = frozenset()
    """Words that end a sentence only where punctuation says so."""
    abbreviations: frozenset[str] = frozenset()
    openers: tuple[str, ...] = ()
    """Beginnings of a request or a question; something has to follow."""
    closings: tuple[str, ...] = ()
    """Last words after which nothing is expected."""
    fillers: tuple[str, ...] = ()
    """What may stand before an opener."""
    spaced: bool = True
    """Words are written apart."""
    open_endings: tuple[str, ...] = ()
    """Only where words are not, or endings carry the grammar: the text goes on after these."""
    final_endings: tuple[str, ...] = ()
    """Likewise: a sentence ends in these, without punctuation."""

    def is_unfinished(self, said: str, last: str) -> bool:
        return last in self.rarely_last or said.endswith(self.open_endings or ("\0",))

    def is_request(self, said: str) -> bool:
        if said.endswith(self.final_endings or ("\0",)):
            return True
        for filler in self.fillers:
            said = said.removeprefix(filler + " ")
        gap = " " if self.spaced else ""
        return any(said.startswith(opener + gap) and len(said) > len(opener + gap) for opener in self.openers)

    def is_closing(self, said: str) -> bool:
        if not self.spaced:
            return said.endswith(self.closings)
        return any(said == closing or said.endswith(" " + closing) for closing in self.closings)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _list(phrases: str) -> tuple[str, ...]:
    return tuple(" ".join(phrase.split()) for phrase in phrases.split(","))


# The English openers and closings are those of the seed, with the questions that it leaves out.
_ENGLISH = _Table(
    never_last=_set(
        "the a an and or but because if unless although whereas than my your our their its i'm i'll very um uh er"
    ),
    rarely_last=_set(
        "to of with for from at by into onto about as is are was were be been do does did can could would should will"
        " i we he she they which whose while when where until since so like not this's that's it's there's let's gonna"
        " wanna please how why what who need want"
    ),
    abbreviations=_set(
        "mr mrs ms dr prof st mt vs e.g i.e approx dept fig vol gen col sgt capt rev hon ave blvd no1 cf"
    ),
    openers=_list(
        "can you, could you, would you, will you, please, i need, i want, i would like, i'd like, help me, what, how, when,"
        " where, why, who, which, whose, what's, how's, where's, who's, when's, is, are, do, does, did, can i, could i, may i,"
        " should i, create, build, make, generate, write, design, show me, tell me, give me, explain, find, open, play, set,"
        " send, remind me, summarise, summarize, translate, list, check, let's, stop, cancel, remember"
    ),
    closings=_list(
        "thank you, thanks, thank you very much, that's all, that is all, goodbye, good bye, bye, bye bye, never mind"
    ),
    fillers=_list("um, uh, er, well, ok, okay, so, hey, hi, hello, yes, no, and then, then, now"),
)
_GERMAN = _Table(
    never_last=_set(
        "und oder aber weil dass denn wenn ob obwohl sondern der den dem des ein eine einen einem einer eines mein meine"
        " meinen dein deine ihr ihre unser unsere zum zur im am vom beim ins sehr ähm äh also"
    ),
    rarely_last=_set(
        "die das mit von für auf aus bei nach zu in an über unter als wie ist sind war hat haben wird werden kann können"
        " soll ich du er sie es wir man bitte nicht was wer wo wann warum"
    ),
    abbreviations=_set("z.b bzw ca d.h u.a dr prof hr fr nr str vgl evtl ggf inkl abb bsp mio mrd tel"),
    openers=_list(
        "kannst du, können sie, könntest du, könnten sie, würdest du, würden sie, bitte, ich brauche, ich möchte, ich will,"
        " ich hätte gern, hilf mir, helfen sie mir, was, wie, wann, wo, warum, wieso, wer, welche, welcher, welches, woher, wohin,"
        " erstelle, baue, mach, mache, schreib, schreibe, entwirf, zeig mir, zeige mir, sag mir, gib mir, erkläre, erklär, finde,"
        " öffne, erinnere mich, fasse, übersetze, darf ich, kann ich, soll ich"
    ),
    closings=_list(
        "danke, danke schön, dankeschön, vielen dank, das ist alles, das war's, das wars, tschüss, tschüs, auf wiedersehen"
    ),
    fillers=_list("ähm, äh, also, ok, okay, ja, nein, hallo, hey, na gut, gut, dann"),
)
_FRENCH = _Table(
    never_last=_set(
        "et ou mais parce car donc que qu le la les un une des du au aux de d l mon ma mes ton ta tes son sa ses notre votre leur"
        " si lorsque quand puisque très euh ce cette ces"
    ),
    rarely_last=_set(
        "à en dans sur sous avec pour par chez vers je tu il elle on nous vous ils est sont a ont pas comment où qui"
    ),
    abbreviations=_set("m mm mme mlle dr pr p.ex cf env av bd n° st ste"),
    openers=_list(
        "peux-tu, pouvez-vous, pourrais-tu, pourriez-vous, est-ce que, est-ce qu'on, est-ce qu'il, s'il te plaît, s'il vous plaît,"
        " j'ai besoin, je veux, je voudrais, j'aimerais, aide-moi, aidez-moi, que, qu'est-ce que, qu'est-ce qui, quoi, comment, quand,"
        " où, pourquoi, qui, quel, quelle, quels, quelles, combien, crée, créez, fais, faites, écris, écrivez, génère, construis, conçois,"
        " montre-moi, montrez-moi, dis-moi, dites-moi, donne-moi, donnez-moi, explique, expliquez, trouve, ouvre, rappelle-moi, traduis"
    ),
    closings=_list("merci, merci beaucoup, c'est tout, au revoir, s'il te plaît, s'il vous plaît, à bientôt"),
    fillers=_list("euh, ben, alors, bon, ok, oui, non, bonjour, salut, donc"),
)
_SPANISH = _Table(
    never_last=_set(
        "y e o u pero porque que si aunque sino el la los las un una unos unas de del al mi mis tu tus su sus nuestro nuestra"
        " muy eh este cuando"
    ),
    rarely_last=_set(
        "a en con por para sin sobre entre hacia desde hasta como es son está están no lo me te se yo él cómo qué"
    ),
    abbreviations=_set("sr sra srta dr dra ud uds p.ej ej núm av pág tel aprox"),
    openers=_list(
        "puedes, puede, podrías, podría, por favor, necesito, quiero, quisiera, me gustaría, ayúdame, ayúdeme, qué, cómo, cuándo,"
        " dónde, por qué, quién, cuál, cuáles, cuánto, cuántos, cuánta, crea, construye, haz, genera, escribe, diseña, muéstrame,"
        " dime, dame, explica, explícame, busca, abre, recuérdame, resume, traduce"
    ),
    closings=_list("gracias, muchas gracias, eso es todo, adiós, hasta luego, chao, por favor"),
    fillers=_list("eh, este, bueno, ok, vale, sí, no, hola, oye, pues, entonces"),
)
_ITALIAN = _Table(
    never_last=_set(
        "e ed o oppure ma perché che se anche il lo la i gli le un uno una di del dello della dei degli delle al allo alla ai"
        " nel nella dal dalla sul sulla mio mia tuo tua suo sua nostro nostra molto ehm quando"
    ),
    rarely_last=_set("a in con su per tra fra da come è sono ha non mi ti si io lui lei cosa chi"),
    abbreviations=_set("sig sigg dott prof ing avv es p.es pag tel ca"),
    openers=_list(
        "puoi, può, potresti, potrebbe, per favore, per piacere, ho bisogno, voglio, vorrei, mi piacerebbe, aiutami, mi aiuti, che cosa,"
        " cosa, cos'è, come, quando, dove, dov'è, perché, chi, quale, quali, quanto, quanti, crea, costruisci, fai, fa', genera, scrivi,"
        " progetta, mostrami, dimmi, dammi, spiega, spiegami, trova, apri, ricordami, riassumi, traduci"
    ),
    closings=_list("grazie, grazie mille, è tutto, questo è tutto, arrivederci, ciao, per favore"),
    fillers=_list("ehm, allora, beh, ok, va bene, sì, no, ciao, senti, dunque"),
)
_PORTUGUESE = _Table(
    never_last=_set(
        "e ou mas porque que se embora o a os as um uma uns umas de do da dos das ao à no na nos nas pelo pela meu minha teu tua"
        " seu sua nosso nossa muito hum quando"
    ),
    rarely_last=_set("em com por para sem sobre entre até como é são está não me te eu ele ela você"),
    abbreviations=_set("sr sra dr dra prof profa ex p.ex núm av pág tel aprox"),
    openers=_list(
        "você pode, pode, podes, poderia, podias, por favor, preciso, eu preciso, quero, eu quero, gostaria, eu gostaria, queria,"
        " ajuda-me, me ajude, me ajuda, o que, o quê, como, quando, onde, por que, porque é que, quem, qual, quais, quanto, quantos,"
        " cria, crie, constrói, construa, faz, faça, gera, gere, escreve, escreva, desenha, desenhe, mostra-me, me mostre, diz-me,"
        " me diga, dá-me, me dê, explica, explique, abre, abra, lembra-me, me lembre, resume, resuma, traduz, traduza"
    ),
    closings=_list(
        "obrigado, obrigada, muito obrigado, muito obrigada, é tudo, isso é tudo, é só isso, adeus, tchau, por favor"
    ),
    fillers=_list("hum, bem, bom, ok, sim, não, olá, oi, então"),
)
_DUTCH = _Table(
    never_last=_set(
        "en of maar omdat want dat als hoewel de het een mijn jouw je uw ons onze hun zijn haar heel erg eh uhm"
    ),
    rarely_last=_set(
        "te van met voor in op aan bij naar uit over tot om ik jij u hij zij ze we is was ben heeft kan niet hoe wat wie"
    ),
    abbreviations=_set("bijv bv d.w.z o.a enz dhr mevr mw dr prof nr ca blz evt"),
    openers=_list(
        "kun je, kan je, kunt u, zou je, zou u, wil je, wilt u, alsjeblieft, alstublieft, ik heb, ik wil, ik zou graag, help me, wat, hoe,"
        " wanneer, waar, waarom, wie, welke, welk, maak, bouw, schrijf, ontwerp, genereer, laat me, toon, vertel me, geef me, zoek,"
        " open, herinner me, vat, vertaal, mag ik, kan ik"
    ),
    closings=_list(
        "dank je, dank je wel, dankjewel, dank u, dank u wel, bedankt, dat is alles, dat was het, doei, tot ziens, alsjeblieft"
    ),
    fillers=_list("eh, uhm, nou, ok, oké, ja, nee, hallo, hoi, dus"),
)
_JAPANESE = _Table(
    spaced=False,
    open_endings=_list(
        "けど, けれど, ので, から, のに, たら, れば, なら, って, とか, そして, でも, しかし, は, が, を, に, へ, と, の, も, て, で, や"
    ),
    final_endings=_list(
        "か, かな, ください, 下さい, ちょうだい, です, ます, ました, でした, ません, ましょう, たい, ほしい, 欲しい, だよ, だね, ですね, ますね, よね"
    ),
    closings=_list(
        "ありがとう, ありがとうございます, お願いします, おねがいします, さようなら, またね, 以上です"
    ),
)
_CHINESE = _Table(
    spaced=False,
    open_endings=_list(
        "和, 跟, 与, 與, 或, 或者, 但, 但是, 可是, 因为, 因為, 所以, 如果, 而且, 然后, 然後, 还有, 還有, 把, 在, 对, 對, 从, 從, 是, 要, 这个, 那个, 嗯, 呃"
    ),
    final_endings=_list("吗, 嗎, 呢, 吧, 么, 啊, 啦, 好不好, 可以吗, 行不行, 咩, 未呀"),
    openers=_list(
        "请, 請, 麻烦, 麻煩, 帮我, 幫我, 能不能, 可不可以, 可以帮, 我想, 我要, 我需要, 什么, 什麼, 怎么, 怎麼, 为什么, 為什麼, 哪里, 哪裡, 谁, 誰, 给我, 給我, 告诉我, 告訴我"
    ),
    closings=_list("谢谢, 謝謝, 谢谢你, 多谢, 多謝, 唔該, 就这样, 就這樣, 再见, 再見, 拜拜"),
)
_KOREAN = _Table(
    # Words are written apart, and the grammar stands in their endings.
    open_endings=_list(
        "그리고, 그런데, 하지만, 그래서, 때문에, 는데, 은데, 지만, 하고, 면서, 려고, 니까, 으면, 하면, 라면, 에서, 에게, 을, 를, 은, 는, 의"
    ),
    final_endings=_list(
        "까, 까요, 세요, 어요, 아요, 해요, 예요, 이에요, 나요, 네요, 군요, 니다, 십시오, 줘, 줘요, 할래, 죠"
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


def _tables(language: str) -> Iterable[_Table]:
    """The tables to ask: the language's own; English for one that is not known; without a code, all."""
    code = re.split(r"[-_]", language.casefold())[0]
    if not code:
        return _LANGUAGES.values()
    return (_LANGUAGES.get(code, _ENGLISH),)

"""Many words that were said before a recording: sentences of our own about the same matter."""

from __future__ import annotations

_SENTENCES = (
    "The first books of Europe were cut in wood, a page to a block, and coloured by hand",
    "Monks and painters sold them at fairs, next to ribbons, knives and spices",
    "A goldsmith of Mainz thought that letters of metal could be set again and again",
    "He borrowed money, lost a case at court, and printed a bible of two columns all the same",
    "His helpers left the city and took the craft to Italy, where paper was good and cheap",
    "In Venice a printer cut a slanting letter, so that a whole poet fitted into a coat",
    "The English bought type in Bruges and printed the tale of Troy for a duchess",
    "Within fifty years there were presses in two hundred towns, and millions of sheets",
    "Ink was boiled from oil and soot, and the neighbours complained about the smell",
    "Readers wrote their names into the margins, and some wrote what they thought of the author",
    "Collectors came later, and with them forgers, catalogues and glass cases",
    "He showed the visitors what the old printers had done, page after page",
    "Then he turned to the oldest sheets of all, and said who had cut and coloured them",
    "These, he explained, were made before there was any type, and the craftsmen of that time",
) * 2

SPOKEN_BEFORE = " ".join(f"{sentence}." for sentence in _SENTENCES)
"""More tokens than a prompt may have."""

"""A small bitmap font: letters five pixels wide and seven high, for numbers and names in a picture."""

import functools

import numpy as np

WIDTH, HEIGHT = 5, 7
ADVANCE = WIDTH + 1
"""From one letter to the next, in pixels of the font."""

_CHARACTERS = "abcdefghijklmnopqrstuvwxyzKP0123456789.-+/ "
_BITS = (
    "000e0be2f 421e8c63e 000e8422e 042f8c62f 000e8fe0e 1928e2108 000f8bc2e 4216cc631 100c2108e 080610a4c "
    "4212a6292 30842108e 001aad6b5 0016cc631 000e8c62e 001e8fa10 000f8bc21 0016cc210 000f8383e 211c42126 "
    "00118c66d 00118c544 00118d6aa 001151151 00118bc2e 001f1111f 4654c5251 7a31f4210 3a33ae62e 11842108e "
    "3a213221f 78217043e 08ca97c42 7e1e0862e 1910f462e 7c2221084 3a317462e 3a317844c 00000018c 0000f0000 "
    "0084f9080 042222210 000000000"
)
"""Of each character 35 bits: row after row from the top, the leftmost pixel first."""


@functools.cache
def glyph(character: str) -> np.ndarray:
    """Which pixels of a character are set, ``(HEIGHT, WIDTH)``; a character that is not there is blank."""
    if character not in _CHARACTERS:
        character = character.lower() if character.lower() in _CHARACTERS else " "
    bits = int(_BITS.split()[_CHARACTERS.index(character)], 16)
    count = WIDTH * HEIGHT
    return np.array([bool(bits >> (count - 1 - i) & 1) for i in range(count)]).reshape(HEIGHT, WIDTH)


def text_mask(text: str, scale: int = 1) -> np.ndarray:
    """Which pixels a line of text sets, ``(scale · HEIGHT, scale · (ADVANCE · len(text) - 1))``."""
    mask = np.zeros((HEIGHT, ADVANCE * len(text)), dtype=bool)
    for i, character in enumerate(text):
        mask[:, ADVANCE * i : ADVANCE * i + WIDTH] = glyph(character)
    return np.kron(mask[:, :-1], np.ones((scale, scale), dtype=bool))

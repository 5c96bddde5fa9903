"""The atoms of functions of texts. A line each: name, words, expression of s, choices of the parameters."""

from __future__ import annotations

from workers.functions.atoms import Atom, Choice, OneOf

_TWO_TO_FOUR = OneOf((2, 3, 4))
_SOME = OneOf((1, 2, 3, 4, 5))
_LETTER = OneOf(tuple("aeioustrnl"))
_OTHER = OneOf(tuple("bcdfgkpwxz"))
_MARK = OneOf(tuple("*-_#+.!"))
_SHIFT = OneOf((1, 2, 3, 5, 7, 11, 13))
_VOWELS = "'aeiouAEIOU'"
_IS_LETTER = "('a' <= c <= 'z' or 'A' <= c <= 'Z')"


def _atom(name: str, words: str, code: str, **parameters: Choice) -> Atom:
    return Atom(name, words, code, parameters)


def _map_characters(result: str) -> str:
    """Return an expression that maps each character c of s."""
    return f"''.join({result} for c in s)"


def _filter_characters(condition: str) -> str:
    return f"''.join(c for c in s if {condition})"


def _map_words(result: str) -> str:
    """Return an expression that maps each word w of s; words are what single spaces part."""
    return f"' '.join({result} for w in s.split(' '))"


_CAESAR = (
    # 97 is "a" and 65 "A": each letter keeps its case
    f"''.join(chr((ord(c) - (97 if c >= 'a' else 65) + $n) % 26 + (97 if c >= 'a' else 65)) if {_IS_LETTER} else c"
    " for c in s)"
)

STRING_ATOMS = (
    # order
    _atom("reverse", "reverse the text", "s[::-1]"),
    _atom("reverse words", "put the words in reverse order", "' '.join(s.split(' ')[::-1])"),
    _atom("reverse each word", "reverse each word in its place", _map_words("w[::-1]")),
    _atom("sort characters", "sort the characters", "''.join(sorted(s))"),
    _atom("sort descending", "sort the characters from last to first", "''.join(sorted(s, reverse=True))"),
    _atom("sort words", "sort the words", "' '.join(sorted(s.split(' ')))"),
    _atom(
        "sort words by length", "sort the words by length, shortest first", "' '.join(sorted(s.split(' '), key=len))"
    ),
    _atom("rotate left", "move the first $n characters to the end", "s[$n:] + s[:$n]", n=_SOME),
    _atom("rotate right", "move the last $n characters to the front", "s[-$n:] + s[:-$n]", n=_SOME),
    _atom("swap halves", "swap the first half with the second", "s[len(s) // 2:] + s[:len(s) // 2]"),
    _atom("swap ends", "swap the first and the last character", "s[-1] + s[1:-1] + s[0] if len(s) > 1 else s"),
    _atom("even then odd", "characters at even places, then those at odd places", "s[::2] + s[1::2]"),
    _atom(
        "swap pairs", "swap each two neighbouring characters", "''.join(s[i:i + 2][::-1] for i in range(0, len(s), 2))"
    ),
    # case
    _atom("upper", "make all letters upper case", "s.upper()"),
    _atom("lower", "make all letters lower case", "s.lower()"),
    _atom("swap case", "swap upper and lower case", "s.swapcase()"),
    _atom("title", "capitalise each word", _map_words("w[:1].upper() + w[1:].lower()")),
    _atom(
        "capitalise", "make the first character upper case and the others lower case", "s[:1].upper() + s[1:].lower()"
    ),
    _atom(
        "alternate case",
        "upper case at even places, lower case at odd ones",
        "''.join(c.lower() if i % 2 else c.upper() for i, c in enumerate(s))",
    ),
    _atom("upper last", "make the last character of each word upper case", _map_words("w[:-1] + w[-1:].upper()")),
    _atom("upper vowels", "make vowels upper case", _map_characters(f"c.upper() if c in {_VOWELS} else c")),
    _atom("upper consonants", "make all but vowels upper case", _map_characters(f"c if c in {_VOWELS} else c.upper()")),
    # removal
    _atom("remove vowels", "remove the vowels", _filter_characters(f"c not in {_VOWELS}")),
    _atom("keep vowels", "keep only the vowels", _filter_characters(f"c in {_VOWELS}")),
    _atom("remove spaces", "remove the spaces", "s.replace(' ', '')"),
    _atom("remove digits", "remove the digits", _filter_characters("not c.isdigit()")),
    _atom("keep digits", "keep only the digits", _filter_characters("c.isdigit()")),
    _atom("keep letters", "keep only the letters", _filter_characters("c.isalpha()")),
    _atom("remove punctuation", "keep only letters, digits and spaces", _filter_characters("c.isalnum() or c == ' '")),
    _atom("keep upper", "keep only upper-case letters", _filter_characters("c.isupper()")),
    _atom("remove letter", "remove each $a, in either case", _filter_characters("c.lower() != $a"), a=_LETTER),
    _atom("remove repeats", "keep the first of each character", "''.join(dict.fromkeys(s))"),
    _atom(
        "squeeze", "keep one of each run of equal characters", "''.join(c for i, c in enumerate(s) if s[i - 1:i] != c)"
    ),
    _atom("first characters", "the first $n characters", "s[:$n]", n=_SOME),
    _atom("last characters", "the last $n characters", "s[-$n:]", n=_SOME),
    _atom("drop first", "all but the first $n characters", "s[$n:]", n=_SOME),
    _atom("drop last", "all but the last $n characters", "s[:-$n]", n=_SOME),
    _atom("drop ends", "all but the first and the last character", "s[1:-1]"),
    _atom("first half", "the first half", "s[:len(s) // 2]"),
    _atom("second half", "the second half", "s[len(s) // 2:]"),
    _atom("every nth", "every character number 1, 1 + $n, 1 + 2·$n and so on", "s[::$n]", n=_TWO_TO_FOUR),
    _atom(
        "drop every nth",
        "drop each character number $n",
        "''.join(c for i, c in enumerate(s, 1) if i % $n)",
        n=_TWO_TO_FOUR,
    ),
    _atom("first word", "the first word", "s.split(' ')[0]"),
    _atom("last word", "the last word", "s.split(' ')[-1]"),
    _atom("longest word", "the longest word, the first of several", "max(s.split(' '), key=len)"),
    _atom("initials", "the first character of each word", "''.join(w[:1] for w in s.split(' '))"),
    _atom("word endings", "the last character of each word", "''.join(w[-1:] for w in s.split(' '))"),
    # replacement
    _atom("replace letter", "replace each $a by $b", "s.replace($a, $b)", a=_LETTER, b=_OTHER),
    _atom("mask vowels", "replace each vowel by $m", _map_characters(f"$m if c in {_VOWELS} else c"), m=_MARK),
    _atom(
        "mask consonants",
        "replace each consonant by $m",
        _map_characters(f"$m if {_IS_LETTER} and c not in {_VOWELS} else c"),
        m=_MARK,
    ),
    _atom("mask digits", "replace each digit by $m", _map_characters("$m if c.isdigit() else c"), m=_MARK),
    _atom("mask letters", "replace each letter by $m", _map_characters("$m if c.isalpha() else c"), m=_MARK),
    _atom("replace spaces", "replace each space by $m", "s.replace(' ', $m)", m=_MARK),
    _atom(
        "mask every nth",
        "replace each character number $n by $m",
        "''.join(c if i % $n else $m for i, c in enumerate(s, 1))",
        n=_TWO_TO_FOUR,
        m=_MARK,
    ),
    _atom("caesar", "shift each letter by $n in the alphabet, round its end", _CAESAR, n=_SHIFT),
    _atom(
        "mirror alphabet",
        "a becomes z, b becomes y and so on",
        # 219 is "a" plus "z", 155 is "A" plus "Z"
        f"''.join(chr((219 if c >= 'a' else 155) - ord(c)) if {_IS_LETTER} else c for c in s)",
    ),
    _atom(
        "next digit",
        "replace each digit by the next, 9 by 0",
        _map_characters("'1234567890'['0123456789'.index(c)] if c in '0123456789' else c"),
    ),
    _atom(
        "letter numbers",
        "replace each letter by its place in the alphabet",
        _map_characters(f"str(ord(c.lower()) - 96) if {_IS_LETTER} else c"),
    ),
    _atom(
        "letters to marks",
        "vowels become V and consonants C",
        _map_characters(f"('V' if c in {_VOWELS} else 'C') if {_IS_LETTER} else c"),
    ),
    # addition
    _atom("duplicate", "the text twice", "s + s"),
    _atom("repeat", "the text $n times with spaces between", "' '.join([s] * $n)", n=_TWO_TO_FOUR),
    _atom("double characters", "each character twice", _map_characters("c * 2")),
    _atom("double vowels", "each vowel twice", _map_characters(f"c * 2 if c in {_VOWELS} else c")),
    _atom("add mirror", "the text, then its reverse", "s + s[::-1]"),
    _atom("prefix", "put $m in front", "$m + s", m=_MARK),
    _atom("suffix", "put $m at the end", "s + $m", m=_MARK),
    _atom("surround", "put $m at both ends", "$m + s + $m", m=_MARK),
    _atom("interleave", "put $m between the characters", "$m.join(s)", m=_MARK),
    _atom("repeat last", "the last character $n times more", "s + s[-1:] * $n", n=_TWO_TO_FOUR),
    _atom("pad words", "put $m at the end of each word", _map_words("w + $m"), m=_MARK),
    # counts
    _atom("length", "the number of characters", "str(len(s))"),
    _atom("count vowels", "the number of vowels", f"str(sum(c in {_VOWELS} for c in s))"),
    _atom("count words", "the number of words", "str(len(s.split()))"),
    _atom("count letter", "the number of $a, in either case", "str(s.lower().count($a))", a=_LETTER),
    _atom("count upper", "the number of upper-case letters", "str(sum(c.isupper() for c in s))"),
    _atom("add length", "the text, then its length", "s + str(len(s))"),
)
"""All take any text, the empty one too. Vowels are a, e, i, o and u."""

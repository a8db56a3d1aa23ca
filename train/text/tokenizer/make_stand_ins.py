#!/usr/bin/python3
"""Writes stand_in_tables.c: python3 train/text/tokenizer/make_stand_ins.py, with a Python 3.11 or 3.10 (Unicode 14, as
PCRE2 10.40 to 10.42) and the package unicodedata2 16.0.0 (Unicode 16, as tokenizers and tiktoken)."""
import os
import sys
import unicodedata as older

import unicodedata2 as newer

NO_LONGER_SPACE = 0x180E  # a space for PCRE2, and none for Unicode since 6.3
CODE_POINTS = [c for c in range(sys.maxunicode + 1) if not 0xD800 <= c < 0xE000]
NEVER_ASSIGNED = {2: 0x80, 3: 0xFDD0, 4: 0x1FFFF}  # two bytes have none: a control character is in as few classes


def length(c):
    return len(chr(c).encode())


def is_settled(c):
    category = older.category(chr(c))
    return category != "Cn" and category == newer.category(chr(c)) and c != NO_LONGER_SPACE


def stand_in(c, kin):
    """The settled character of the same class and length that is nearest: mostly one of the same script"""
    category = newer.category(chr(c))
    if category == "Cn":
        return NEVER_ASSIGNED[length(c)]
    return min(kin[category, length(c)], key=lambda k: (abs(k - c), k))


def ranges():
    """[first, last, stand-in] of all that is not settled"""
    kin, out = {}, []
    for c in CODE_POINTS:
        if is_settled(c):
            kin.setdefault((newer.category(chr(c)), length(c)), []).append(c)
    previous = None
    for c in CODE_POINTS:
        if c < 0x80 or is_settled(c) or c in NEVER_ASSIGNED.values():
            continue
        key = newer.category(chr(c)), length(c)
        if out and out[-1][1] == c - 1 and previous == key:
            out[-1][1] = c
        else:
            out.append([c, c, stand_in(c, kin)])
        previous = key
    return out


def rows(items, per_row):
    return "\n".join("\t" + " ".join(items[i : i + per_row]) for i in range(0, len(items), per_row))


def main():
    assert older.unidata_version in ("13.0.0", "14.0.0") and newer.unidata_version == "16.0.0"
    found = ranges()
    pages = [0] * (0x1100 // 32)
    for first, last, _ in found:
        for page in range(first >> 8, (last >> 8) + 1):
            pages[page // 32] |= 1 << page % 32
    directory = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(directory, "stand_in_tables.c"), "w") as out:
        out.write(f"""/* stand_in_tables.c: made by make_stand_ins.py from Unicode {older.unidata_version} and {newer.unidata_version}; do not edit. */
#include "train/text/tokenizer/stand_in_tables.h"

/* clang-format off */
const uint32_t stand_in_pages[STAND_IN_PAGE_WORDS] = {{
{rows([f"{word:#x}," for word in pages], 12)}
}};

const struct stand_in stand_ins[STAND_INS] = {{
{rows([f"{{{a:#x}, {b:#x}, {s:#x}}}," for a, b, s in found], 5)}
}};
""")
    with open(os.path.join(directory, "stand_in_tables.h"), "w") as out:
        out.write(f"""/* stand_in_tables.h: made by make_stand_ins.py; do not edit. Inner part of stand_ins.c. */
#ifndef RV_TRAIN_TEXT_TOKENIZER_STAND_IN_TABLES_H
#define RV_TRAIN_TEXT_TOKENIZER_STAND_IN_TABLES_H

#include <stdint.h>

enum {{ STAND_INS = {len(found)}, STAND_IN_PAGE_WORDS = {len(pages)} }};

struct stand_in {{
	uint32_t first, last, instead;
}};

/* Ascending. */
extern const struct stand_in stand_ins[STAND_INS];
/* One bit for 256 code points: are there any among them? */
extern const uint32_t stand_in_pages[STAND_IN_PAGE_WORDS];

#endif
""")


if __name__ == "__main__":
    main()

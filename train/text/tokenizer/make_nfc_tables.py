#!/usr/bin/python3
"""Writes nfc_tables.c: python3 train/text/tokenizer/make_nfc_tables.py, with the package tokenizers.

The decompositions and classes are Python's, of the characters alone that tokenizers normalizes: 0.23 does so by
Unicode 9, and its tokens are what ours must be."""
import os
import sys
import unicodedata
from importlib import metadata

from tokenizers import normalizers

HANGUL = range(0xAC00, 0xD7A4)
JAMO = [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]  # vowels and final consonants: they join what is before them



def is_normalized_alike(c):
    text = f"x{chr(c)}\u0301\u0323{chr(c)}"
    return normalizers.NFC().normalize_str(text) == unicodedata.normalize("NFC", text)


ALL = [c for c in range(sys.maxunicode + 1)
       if c not in HANGUL and not 0xD800 <= c < 0xE000 and is_normalized_alike(c)]


def canonical(c):
    """The one-step canonical decomposition, or None."""
    mapping = unicodedata.decomposition(chr(c))
    return None if not mapping or mapping.startswith("<") else [int(x, 16) for x in mapping.split()]


def ranges(values):
    """[(first, last, value)] of a {code point: value}."""
    out = []
    for c, value in sorted(values.items()):
        if out and out[-1][1] == c - 1 and out[-1][2] == value:
            out[-1][1] = c
        else:
            out.append([c, c, value])
    return out


def rows(items, per_row):
    lines = [" ".join(items[i:i + per_row]) for i in range(0, len(items), per_row)]
    return "\n".join("\t" + line for line in lines)


def table(head, items, per_row):
    return f"{head} = {{\n{rows(items, per_row)}\n}};\n"


def main():
    parts = {c: d for c in ALL if (d := canonical(c))}
    composed = {c: d for c, d in parts.items() if unicodedata.normalize("NFC", chr(c)) == chr(c)}
    seconds = {d[1] for d in composed.values()}
    classes = {c: k for c in ALL if (k := unicodedata.combining(chr(c)))}
    joining = {c: 0 for c in ALL if c in classes or c in seconds or unicodedata.normalize("NFC", chr(c)) != chr(c)}
    joining |= dict.fromkeys(JAMO, 0)
    order = sorted(parts)
    index = {c: i for i, c in enumerate(order)}
    pairs = sorted(composed, key=lambda c: composed[c])
    judge = f"what tokenizers {metadata.version('tokenizers')} knows of Unicode"
    text = f"""/* nfc_tables.c: made by make_nfc_tables.py: {judge}; do not edit. */
#include "train/text/tokenizer/nfc_tables.h"

/* clang-format off */
"""
    text += table(f"const struct nfc_parts nfc_parts[NFC_PARTS]",
                  [f"{{{c:#x}, {{{d[0]:#x}, {d[1] if len(d) > 1 else 0:#x}}}}}," for c, d in ((c, parts[c]) for c in order)], 4)
    text += "\n" + table("const uint16_t nfc_pairs[NFC_PAIRS]", [f"{index[c]}," for c in pairs], 20)
    text += "\n" + table("const struct nfc_range nfc_classes[NFC_CLASSES]",
                         [f"{{{a:#x}, {b:#x}, {k}}}," for a, b, k in ranges(classes)], 5)
    text += "\n" + table("const struct nfc_range nfc_joining[NFC_JOINING]",
                         [f"{{{a:#x}, {b:#x}, {k}}}," for a, b, k in ranges(joining)], 5)
    where = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nfc_tables")
    with open(where + ".c", "w") as out:
        out.write(text)
    sizes = dict(PARTS=len(order), PAIRS=len(pairs), CLASSES=len(ranges(classes)), JOINING=len(ranges(joining)))
    with open(where + ".h", "w") as out:
        out.write(f"""/* nfc_tables.h: canonical decompositions and combining classes, {judge}, without
 * Hangul, which is computed. Made by make_nfc_tables.py; do not edit. Inner part of nfc.c. */
#ifndef RV_WORKER_TOKENIZER_NFC_TABLES_H
#define RV_WORKER_TOKENIZER_NFC_TABLES_H

#include <stdint.h>

enum {{ {", ".join(f"NFC_{k} = {v}" for k, v in sizes.items())} }};

struct nfc_parts {{
	uint32_t whole, part[2]; /* part[1] is 0 when there is one only */
}};

struct nfc_range {{
	uint32_t first, last, value;
}};

/* By `whole`. */
extern const struct nfc_parts nfc_parts[NFC_PARTS];
/* Indices of those that are composed again, by part[0], then part[1]. */
extern const uint16_t nfc_pairs[NFC_PAIRS];
/* Combining classes other than 0. */
extern const struct nfc_range nfc_classes[NFC_CLASSES];
/* Characters that may change, or may join what is before them. */
extern const struct nfc_range nfc_joining[NFC_JOINING];

#endif
""")


if __name__ == "__main__":
    main()

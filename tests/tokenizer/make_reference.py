#!/usr/bin/python3
"""Makes reference/: small tokenizers and what they make of adversarial text, for tests/tokenizer/test_tokenizer_own_reference.c.

An implementation apart from Rivulet's: byte pair encoding as its definition says, step by step, and the `regex` module
(python3-regex) for the patterns. Run:  python3 tests/tokenizer/make_reference.py
"""
import base64
import json
import os
import unicodedata
from collections import Counter

import regex

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

TRAINING_TEXT = """The river runs into the sea, and the sea is not full; the streams' water returns to where the rivers run.
It's what we've said: they'll say it's ours, I'm sure you'd say so too, and she's there. THEY'LL SHOUT IT'S OURS.
In 1999 there were 1234567 of them, in 2026 there are 12.5 % more;   three spaces,\tone tab\t\tand two.\r\n\r\n
Über die Flüsse fließt das Wasser, naïve cafés déjà vu; 你好，世界。你好。 こんにちは世界 Привет, мир. Привет! \U0001f600\U0001f600
for (int i = 0; i < n; i++) { total += values[i] * weights[i]; } // the total of the values, and of the weights\n
""" * 2

TEXTS = [
    "", " ", "  ", "\n", "a", "The river runs into the sea.", "they'll THEY'LL they’ll 'Ll 'S don't", "x's'tre'll",
    "hello  world   three    four ", " leading", "trailing ", "\ttab\t\ttabs ", "line\nline\r\nline\r\n\r\nend\r",
    "\n\n \n\t\n  x", "   \n   y", "1 12 123 1234 12345 1234567 3.14159 1,000,000", "٣٤٥ ⅷ ½ ²³", "a1b22c333",
    "Über naïve café déjà vu", "e\u0301 o\u0308 Z\u0300\u0301\u0302\u0303 \u0301alone", "你好，世界。こんにちは한국어",
    "\U0001f600\U0001f600 \U0001f469\u200d\U0001f680 \U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd", "nul\0in\0\0side",
    "\u00a0nbsp\u3000wide\u2003em\u2028sep\u180eMVS", "\ufeffmark", "if(x){y+=1;}//z--->\"q\"", "______ ====== ......",
    "ＡＢＣ １２３", "ſtraße ſ's K'll", "<|endoftext|> as text <|end", "Привет, мир! Привет", "a\u200bb\u200dc", "\u0627\u0644\u0633",
    "w" * 300, "ab" * 200, " " * 100 + "x", "\r" * 7 + "\n" * 9, "x" + "\n" * 40 + "y", "12" * 50,
    " reference\u00a0references REFERENCE", "\U00020000\U0010ffff",
]


def byte_characters():
    """GPT-2's printable stand-ins for bytes."""
    kept = [*range(0x21, 0x7f), *range(0xa1, 0xad), *range(0xae, 0x100)]
    others = [b for b in range(256) if b not in kept]
    return {b: chr(b) for b in kept} | {b: chr(256 + i) for i, b in enumerate(others)}


CHARACTERS = byte_characters()


def written(token):
    return "".join(CHARACTERS[b] for b in token)


def pieces(patterns, text):
    """Each pattern cuts the pieces of the one before it; what lies between two matches is a piece too."""
    parts = [text]
    for pattern in patterns:
        cut = []
        for part in parts:
            at = 0
            for match in regex.finditer(pattern, part):
                if match.end() > match.start():
                    cut += [part[at:match.start()], match.group()]
                    at = match.end()
            cut.append(part[at:])
        parts = [part for part in cut if part]
    return parts


def merged(symbols, left, right):
    out, i = [], 0
    while i < len(symbols):
        if symbols[i:i + 2] == [left, right]:
            out.append(left + right)
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


def train(patterns, n_merges):
    words = Counter(piece.encode() for piece in pieces(patterns, TRAINING_TEXT))
    split = {word: [bytes([b]) for b in word] for word in words}
    merges = []
    for _ in range(n_merges):
        pairs = Counter()
        for word, count in words.items():
            for pair in zip(split[word], split[word][1:]):
                pairs[pair] += count
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        split = {word: merged(symbols, *best) for word, symbols in split.items()}
    return merges


class Tokenizer:
    def __init__(self, name, patterns, n_merges, ignore_merges=False, unreachable=(), normalizer=None):
        self.name, self.patterns, self.ignore_merges, self.normalizer = name, patterns, ignore_merges, normalizer
        self.merges = train(patterns, n_merges)
        tokens = [bytes([b]) for b in sorted(range(256), key=lambda b: CHARACTERS[b])]
        tokens += [a + b for a, b in self.merges] + list(unreachable)
        self.vocab = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
        self.ranks = {}
        for rank, pair in enumerate(self.merges):
            self.ranks.setdefault(pair, rank)

    def encode_piece(self, piece):
        symbols = [bytes([b]) for b in piece]
        if self.ignore_merges and piece in self.vocab:
            return [self.vocab[piece]]
        while True:
            known = [pair for pair in zip(symbols, symbols[1:]) if pair in self.ranks]
            if not known:
                return [self.vocab[symbol] for symbol in symbols]
            symbols = merged(symbols, *min(known, key=self.ranks.get))

    def encode(self, text):
        if self.normalizer:
            text = unicodedata.normalize(self.normalizer, text)
        return [i for piece in pieces(self.patterns, text) for i in self.encode_piece(piece.encode())]

    def huggingface(self, pre_tokenizer):
        return {
            "version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": len(self.vocab), "content": "<|endoftext|>", "single_word": False, "lstrip": False,
                              "rstrip": False, "normalized": False, "special": True}],
            "normalizer": {"type": self.normalizer} if self.normalizer else None,
            "pre_tokenizer": pre_tokenizer, "post_processor": None,
            "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "byte_fallback": False, "fuse_unk": False,
                      "ignore_merges": self.ignore_merges,
                      "vocab": {written(token): i for token, i in self.vocab.items()},
                      "merges": [f"{written(a)} {written(b)}" for a, b in self.merges]},
        }


def byte_level(use_regex):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex}


def sequence(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


def split(pattern):
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def all_tokenizers():
    """Of each: the tokenizer, and its file's name and text."""
    def as_json(t, pre_tokenizer):
        return t, t.name + ".json", json.dumps(t.huggingface(pre_tokenizer), ensure_ascii=False)
    yield as_json(Tokenizer("gpt2", [GPT2], 250), byte_level(True))
    llama3 = Tokenizer("llama3", [LLAMA3], 250, True, [b" reference", "世界。".encode(), b"IT"])
    yield as_json(llama3, sequence(split(LLAMA3), byte_level(False)))
    yield as_json(Tokenizer("qwen2", [QWEN2], 200, normalizer="NFC"), sequence(split(QWEN2), byte_level(False)))
    yield as_json(Tokenizer("digits", [r"\p{N}", GPT2], 150),
                  sequence({"type": "Digits", "individual_digits": True}, byte_level(True)))
    # Ranks say nothing of merges: a token is made of whatever two tokens come together in it.
    ranks = Tokenizer("ranks", [LLAMA3], 250, True)
    ranks.ranks = {(token[:i], token[i:]): rank for token, rank in ranks.vocab.items() for i in range(1, len(token))
                   if token[:i] in ranks.vocab and token[i:] in ranks.vocab}
    lines = (f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.vocab.items())
    yield ranks, "ranks.tiktoken", "".join(lines)


def main():
    where = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference")
    with open(os.path.join(where, "encodings.jsonl"), "w") as encodings:
        for tokenizer, file, text in all_tokenizers():
            with open(os.path.join(where, file), "w") as out:
                out.write(text)
            for sample in TEXTS:
                ids = tokenizer.encode(sample)
                print(json.dumps({"tokenizer": file, "text": sample, "ids": ids}), file=encodings)


if __name__ == "__main__":
    main()

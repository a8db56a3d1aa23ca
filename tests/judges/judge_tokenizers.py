#!/usr/bin/env python3
"""judge_tokenizers.py RIVULET: our tokens are those of tokenizers and tiktoken: for every character of Unicode beside a
letter, a digit, a space and a sign, by every pattern that is known by name; and on texts that no vocabulary was made
from."""
import base64
import glob
import json
import os
import random
import sys
import sysconfig
import tempfile

import judges

judges.enter()
judges.versions("tokenizers", "tiktoken")

import numpy as np  # noqa: E402
import tiktoken  # noqa: E402
from tiktoken_ext import openai_public  # noqa: E402
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = CL100K.replace("{1,3}", "")
BESIDE = "a1 !\nA"
HEADER_BYTES, VERSION_AT, WIDE = 1024, 1, 2


def o200k():
    """The pattern as tiktoken has it, without its vocabulary, which is not in the package"""
    load, openai_public.load_tiktoken_bpe = openai_public.load_tiktoken_bpe, lambda *a, **k: {}
    try:
        return openai_public.o200k_base()["pat_str"]
    finally:
        openai_public.load_tiktoken_bpe = load


def revealing_ranks():
    """The bytes, and what is next to a character joined to its first byte: so tokens show where pieces begin"""
    tokens = [bytes([b]) for b in range(256)]
    tokens += [beside.encode() + bytes([lead]) for beside in BESIDE for lead in range(0xC2, 0xF5)]
    return {token: i for i, token in enumerate(tokens)}


def all_characters():
    """A text in which every character of Unicode stands beside those of BESIDE; of private and unassigned planes some"""
    out = []
    for c in [*range(0x80, 0x32400), *range(0x32400, 0x110000, 97), *range(0xE0000, 0xE0200)]:
        if not 0xD800 <= c < 0xE000:
            out.append("".join(beside + chr(c) for beside in BESIDE) + "z")
    return "".join(out)


def our_tokens(program, root, tokenizer, text, *options):
    source, out = os.path.join(root, "text.txt"), tempfile.mkdtemp(dir=root)
    with open(source, "w", newline="") as f:
        f.write(text)
    status, _, err = judges.run(program, "tokenize", "--tokenizer", tokenizer, "--data", source, "--out", out,
                                "--separator", "none", *options)
    assert status == 0, err
    found = []
    for name in sorted(glob.glob(os.path.join(out, "*.bin"))):
        raw = open(name, "rb").read()
        wide = np.frombuffer(raw[:HEADER_BYTES], "<i4")[VERSION_AT] == WIDE
        found.append(np.frombuffer(raw[HEADER_BYTES:], "<u4" if wide else "<u2").astype(np.int64))
    return np.concatenate(found)


def compare(name, judge, ours, theirs, faults):
    theirs = np.array(theirs, np.int64)
    n = min(len(ours), len(theirs))
    different = int((ours[:n] != theirs[:n]).sum()) + abs(len(ours) - len(theirs))
    print(f"{name}: {len(theirs)} tokens of {judge}, {different} different")
    if different:
        faults.append(f"{name}: ours differ from {judge} first at token {int((ours[:n] != theirs[:n]).argmax())}")


def judge_patterns(program, root, faults):
    ranks, text = revealing_ranks(), all_characters()
    path = os.path.join(root, "ranks.tiktoken")
    with open(path, "w") as f:
        f.writelines(f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items())
    for name, pattern in ("gpt2", GPT2), ("cl100k_base", CL100K), ("llama3", CL100K), ("o200k_base", o200k()):
        judge = tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
        ours = our_tokens(program, root, path, text, "--pattern", name)
        compare(f"every character, {name}", "tiktoken", ours, judge.encode_ordinary(text), faults)
    return text


def train(pattern, normalizer, text):
    t = Tokenizer(models.BPE())
    if normalizer:
        t.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    t.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=3000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  special_tokens=["<|endoftext|>"], show_progress=False)
    t.train_from_iterator([text], trainer)
    return t


def read_source(names):
    where = sysconfig.get_paths()["stdlib"]
    return "".join(open(os.path.join(where, n + ".py"), encoding="utf-8").read() for n in names)


def random_text(n):
    """Words of characters of one neighbourhood each, from all over the planes that are in use"""
    rng, out = random.Random(5), []
    while len(out) < n:
        base = rng.choice([0x20, 0x61, 0xC0, 0x370, 0x400, 0x5D0, 0x900, 0x1C80, 0x1E00, 0x3040, 0x4E00, 0xA640, 0xAC00,
                           rng.randrange(0x80, 0xD000), rng.randrange(0x10000, 0x32400)])
        word = [c for c in (base + rng.randrange(40) for _ in range(rng.randrange(1, 9))) if not 0xD800 <= c < 0xE000]
        out += map(chr, word)
        out.append(rng.choice([" ", " ", "  ", "\n", "\r\n", "\t", ", ", "1", "123456", "'s", "e\u0301", "\u00a0"]))
    return "".join(out)


def judge_texts(program, root, every, faults):
    texts = {"code": read_source(["argparse", "typing"]), "random": random_text(400000), "every character": every[:3000000],
             "spaces": " \t\n  \r\n" * 300 + "x" + "\n" * 99, "digits": "1234567890 3.14 ٣٤٥ ⅷ ½ " * 99}
    learnt = read_source(["ast", "inspect"]) + random_text(20000)[::-1]
    for name, pattern, normalizer in ("gpt2", GPT2, False), ("llama3", CL100K, False), ("qwen2", QWEN2, True):
        path = os.path.join(root, name + ".json")
        judge = train(pattern, normalizer, learnt)
        judge.save(path)
        for what, text in texts.items():
            compare(f"{what}, {name}", "tokenizers", our_tokens(program, root, path, text), judge.encode(text).ids, faults)


def main():
    faults = []
    with tempfile.TemporaryDirectory(prefix="rivulet-judge-") as root:
        every = judge_patterns(sys.argv[1], root, faults)
        judge_texts(sys.argv[1], root, every, faults)
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

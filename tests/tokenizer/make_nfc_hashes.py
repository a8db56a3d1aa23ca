#!/usr/bin/python3
"""Prints what test_tokenizer_nfc.c expects: two hashes of what tokenizers 0.23 makes of every character and of random
mixtures, and how many characters it composes. Run:  .cache/judges/venv/bin/python tests/tokenizer/make_nfc_hashes.py  (after ./dev deps judges)"""
import hashlib

from tokenizers import normalizers

NFC, NFD = normalizers.NFC(), normalizers.NFD()
CHARACTERS = [chr(c) for c in range(0x110000) if not 0xd800 <= c < 0xe000]
POOLS = [(0x41, 26), (0x61, 26), (0x300, 112), (0x1100, 256), (0xac00, 11172), (0x915, 176), (0xf71, 20),
         (0x1d157, 20), (0x1e00, 256), (0xfb1d, 50), (0x1f00, 256), (0x11930, 20), (0x113b0, 32), (0x105c0, 40),
         (0x1ab0, 40), (0x3040, 96), (0x400, 256)]


class Random:
    def __init__(self):
        self.state = 1

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n


def mixture(random):
    out = []
    for _ in range(1 + random.below(12)):
        first, n = POOLS[random.below(len(POOLS))]
        out.append(chr(first + random.below(n)))
    return "".join(out)


def hash_of(texts):
    h = hashlib.blake2b(digest_size=32)
    for text in texts:
        h.update(NFC.normalize_str(text).encode())
    return h.hexdigest()


if __name__ == "__main__":
    random = Random()
    print(hash_of(f"x{c}\u0301\u0323{c}\n" for c in CHARACTERS))
    print(hash_of(mixture(random) for _ in range(20000)))
    print(sum(NFC.normalize_str(NFD.normalize_str(c)) == c != NFD.normalize_str(c) for c in CHARACTERS))

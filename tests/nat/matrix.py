#!/usr/bin/env python3
"""Prints how each pair of homes meets, as measured, for docs/nat.md: matrix.py BIN_DIR. Needs root.

A cell in which the measurement differs from what the types promise shows both, and the exit status is 1."""
import asyncio
import sys

import meet
import private
from homes import Homes
from kinds import KINDS

PROGRAMS = ("unshare", "ip", "nft", "conntrack", "miniupnpd", "upnpc")
DELAY_MS = 30  # so that packets of two ends meet on their way, as in life
AT_ONCE = (1000, 16, 4)  # pairs that are measured at the same time, in each try
TRIES = len(AT_ONCE)
SHOWN = [*KINDS, "double-upnp+claims", "port-restricted+reset"]
NEIGHBOURS = {"two hosts of one house": ("masquerade*2",) * 2, "one carrier, with hairpin": ("double+hairpin@1",) * 2,
              "one carrier, without": ("double@2",) * 2}


class Matrix:
    """Two homes of each kind, and neighbours."""

    def __init__(self, bin_dir):
        n = len(SHOWN)
        near = [spec for pair in NEIGHBOURS.values() for spec in pair]
        self.homes = Homes(bin_dir, SHOWN * 2 + near, DELAY_MS)
        made = self.homes.homes
        at = [(home, home.hosts[0]) for home in made]
        self.pairs = {(SHOWN[i], SHOWN[j]): (at[i], at[n + j]) for i in range(n) for j in range(i, n)}
        for k, name in enumerate(NEIGHBOURS):
            a, b = at[2 * n + 2 * k:2 * n + 2 * k + 2]
            self.pairs[name] = (a, (a[0], a[0].hosts[1])) if len(a[0].hosts) > 1 else (a, b)

    def measure(self):
        """Returns {pair: (way that the types promise, way that was measured)}. Pairs that met worse than promised are
        measured again, fewer of them at a time: a busy machine may have been too slow for all at once."""
        ways, missing = {}, list(self.pairs)
        for at_once in AT_ONCE:
            found = self._measure(missing, at_once)
            ways.update((name, (self.expected(name), way)) for name, way in zip(missing, found))
            missing = [name for name in missing if meet.is_worse(ways[name][1], ways[name][0])]
        return ways

    def _measure(self, names, at_once):
        """Returns how the pairs met, in their order."""
        groups = (names[i:i + at_once] for i in range(0, len(names), at_once))
        return [way for group in groups
                for way in asyncio.run(meet.measure_ways(self.homes, [self.pairs[name] for name in group]))]

    def expected(self, name):
        a, b = self.pairs[name]
        return meet.expected_way(a[0], b[0])


def _cell(ways):
    return ways[1] if ways[0] == ways[1] else f"{ways[1]} (expected {ways[0]})"


def print_table(ways):
    print("| |", " | ".join(SHOWN), "|")
    print("|---" * (len(SHOWN) + 1) + "|")
    for i, row in enumerate(SHOWN):
        cells = [_cell(ways[row, column]) if j >= i else "" for j, column in enumerate(SHOWN)]
        print(f"| **{row}** |", " | ".join(cells), "|")
    print("\n| neighbours | way |\n|---|---|")
    for name in NEIGHBOURS:
        print(f"| {name} | {_cell(ways[name])} |")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    private.enter(PROGRAMS)
    matrix = Matrix(sys.argv[1])
    try:
        ways = matrix.measure()
    finally:
        matrix.homes.close()
    print_table(ways)
    return int(any(expected != way for expected, way in ways.values()))


if __name__ == "__main__":
    sys.exit(main())

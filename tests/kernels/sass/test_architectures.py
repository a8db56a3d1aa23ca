#!/usr/bin/env python3
"""test_architectures.py PLUGIN ARCH...: the plugin has machine code for each of 90-real and PTX for each of
90-virtual; both for a plain 90."""

import os
import sys

import cubin


def wanted(archs):
    """Returns {(kind, arch)} of CMake's names of architectures."""
    pairs = set()
    for arch in archs:
        number, _, only = arch.partition("-")
        if only != "virtual":
            pairs.add((cubin.FATBIN_SASS, int(number)))
        if only != "real":
            pairs.add((cubin.FATBIN_PTX, int(number)))
    return pairs


def main():
    plugin, *archs = sys.argv[1:]
    if not os.path.exists(plugin):
        print(f"skipped: {plugin} is not built (target rivulet_cuda)")
        return 77
    if not all(arch[0].isdigit() for arch in archs):
        print(f"skipped: the plugin is built for {' '.join(archs)}")
        return 77
    there = {(kind, arch) for kind, arch, _ in cubin.code_of(plugin)}
    say = lambda pairs: ", ".join(
        f"{'PTX' if k == cubin.FATBIN_PTX else 'SASS'} {a}" for k, a in sorted(pairs)
    )  # noqa: E731
    print(f"in the plugin: {say(there)}")
    missing = wanted(archs) - there
    if missing:
        print(f"missing: {say(missing)}")
    return len(missing) > 0


if __name__ == "__main__":
    sys.exit(main())

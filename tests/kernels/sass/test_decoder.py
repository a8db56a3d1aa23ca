#!/usr/bin/env python3
"""test_decoder.py NVDISASM FILE...: what cubin.py reads of instructions and branches, in nvcc's objects or in a plugin
that NVRTC made, is what nvdisasm prints."""

import os
import re
import subprocess
import sys
import tempfile

import cubin

LINE = re.compile(r"\s+/\*[0-9a-f]{4,}\*/\s+(@!?U?P[0-9T]+ )?([A-Z0-9]+)(.*);")


def disassembled(nvdisasm, elf):
    """Returns {kernel: [(operation, index of the target or None)]}."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(elf)
        file.flush()
        text = subprocess.run([nvdisasm, "-c", file.name], capture_output=True, text=True, check=True).stdout
    kernels, labels, lines = {}, {}, []
    for line in text.splitlines():
        if begin := re.match(r"\.text\.(\S+):", line):
            lines = kernels[begin.group(1)] = []
        elif label := re.match(r"(\.L_x_\d+):", line):
            labels[label.group(1)] = len(lines)
        elif code := LINE.match(line):
            target = re.search(r"`\((\.L_x_\d+)\)", code.group(3)) if code.group(2) == "BRA" else None
            lines.append((code.group(2), target and target.group(1)))
    return {k: [(op, labels[t] if t else None) for op, t in lines] for k, lines in kernels.items()}


def main():
    nvdisasm, *files = sys.argv[1:]
    if not os.path.exists(nvdisasm):
        print("skipped: no nvdisasm (pip: nvidia-cuda-nvdisasm; RV_NVDISASM names it)")
        return 77
    if cubin.is_missing(files):
        return 77
    known, compared = set(cubin.OPERATIONS.values()), 0
    for path in files:
        for kind, _, elf in cubin.code_of(path):
            if kind != cubin.FATBIN_SASS:
                continue
            expected = disassembled(nvdisasm, elf)
            for kernel in cubin.kernels(elf):
                got = [(i.operation if i.operation in known else "", i.target) for i in kernel.instructions]
                wanted = [(op if op in known else "", target) for op, target in expected[kernel.name]]
                if got != wanted:
                    at = next(n for n, pair in enumerate(zip(got, wanted)) if pair[0] != pair[1])
                    print(f"sm_{kernel.arch} {kernel.name}, instruction {at}: {got[at]}, nvdisasm: {wanted[at]}")
                    return 1
                compared += len(got)
    print(f"{compared} instructions are those of nvdisasm")
    return compared == 0


if __name__ == "__main__":
    sys.exit(main())

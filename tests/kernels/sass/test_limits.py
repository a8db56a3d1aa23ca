#!/usr/bin/env python3
"""test_limits.py [--write] TABLE COMPILER FILE...: counts the instructions of the kernels' hot loops in the
machine code of nvcc's objects, or of a plugin that NVRTC made, and holds them against TABLE (limits.txt,
limits_nvrtc.txt), whose figures are of one COMPILER ("nvcc 13.0"); --write makes them anew.

In every kernel: no stack frame and no access to local memory (spilt registers, arrays that are indexed)."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import cubin
import loops

TOLERANCE = 1.02  # a figure may grow by this much: another order of the same work


@dataclass
class Row:
    """A line of limits.txt: a loop, and what it may cost."""

    arch: int
    kernel: str
    loop: str  # "whole", or operations that the loop has (+) and has not (-)
    unit: str  # "8", or "8*LDG": elements for each of an operation in the loop
    instructions: int
    elements: int
    registers: int

    @property
    def per_element(self):
        return self.instructions / self.elements

    def text(self):
        return (
            f"{self.arch:4} {self.kernel:58} {self.loop:24} {self.unit:8} {self.instructions:6} "
            f"{self.elements:6} {self.per_element:8.2f} {self.registers:5}"
        )


def read_table(text):
    """Returns the compiler that the figures are of, and the rows."""
    compiler, rows = re.search(r"^# ((?:nvcc|NVRTC) \S+)$", text, re.M).group(1), []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            arch, kernel, loop, unit, instructions, elements, _, registers = line.split()
            rows.append(Row(int(arch), kernel, loop, unit, int(instructions), int(elements), int(registers)))
    return compiler, rows


def matches(counts, loop):
    wanted = [(sign == "+", operation) for sign, operation in re.findall(r"([+-])([A-Z]+)", loop)]
    return all((counts.get(operation, 0) > 0) == has for has, operation in wanted)


def elements_of(counts, unit):
    """Returns how many elements the counted instructions work on."""
    number, _, operation = unit.partition("*")
    return int(number) * (counts.get(operation, 0) if operation else 1)


def measured(row, kernel):
    """Returns the row with the figures of this kernel, or None: it has no such loop."""
    if row.loop == "whole":
        counts = kernel.counts
    else:
        fitting = loops.innermost(
            [loop for loop in loops.find(kernel.instructions) if matches(loop.counts, row.loop)]
        )
        if not fitting:
            return None
        # The loop that does most at once, not the one over its remainder; of two, the shorter.
        counts = max(fitting, key=lambda loop: (elements_of(loop.counts, row.unit), -loop.instructions)).counts
    instructions = sum(counts.values())
    elements = elements_of(counts, row.unit)
    return Row(row.arch, row.kernel, row.loop, row.unit, instructions, elements, kernel.registers)


def compare(row, kernel, figures_bind):
    """Prints a row's figures; returns what is wrong with them."""
    now = measured(row, kernel)
    if now is None:
        return [f"sm_{row.arch} {row.kernel}: no loop with {row.loop}"]
    print(f"{now.text()}   limit {row.per_element:.2f}, {row.registers} registers")
    wrong = []
    if figures_bind and now.per_element > row.per_element * TOLERANCE:
        wrong.append(f"{now.per_element:.2f} instructions per element, limit {row.per_element:.2f}")
    if figures_bind and now.registers > row.registers:
        wrong.append(f"{now.registers} registers, limit {row.registers}")
    return [f"sm_{row.arch} {row.kernel}, {row.loop}: {why}" for why in wrong]


def memory_faults(kernel, name):
    local = {operation: n for operation, n in kernel.counts.items() if operation in ("LDL", "STL")}
    if local or kernel.frame_bytes:
        yield f"sm_{kernel.arch} {name}: local memory {local}, stack frame of {kernel.frame_bytes} bytes"


def machine_code(paths):
    """Returns {(arch, short name): kernel}."""
    found = {}
    for path in paths:
        for kind, _, elf in cubin.code_of(path):
            if kind == cubin.FATBIN_SASS:
                kernels = cubin.kernels(elf)
                names = cubin.demangled([k.name for k in kernels])
                found.update({(k.arch, names[k.name]): k for k in kernels})
    return found


def write(table, rows, found, compiler):
    """Puts the figures of the kernels that were compiled into the table; other rows stay."""
    lines = table.read_text().splitlines()
    heading = [line for line in lines if line.startswith("#") and not re.match("# (nvcc|NVRTC) ", line)]
    new = [measured(row, found[row.arch, row.kernel]) if (row.arch, row.kernel) in found else row for row in rows]
    if None in new:
        sys.exit(f"{rows[new.index(None)]}: the kernel has no such loop")
    table.write_text("\n".join([*heading, f"# {compiler}", *(row.text() for row in new)]) + "\n")


def main():
    writes = sys.argv[1] == "--write"
    table, compiler, *files = sys.argv[1 + writes :]
    if cubin.is_missing(files):
        return 77
    table = Path(table)
    of_compiler, rows = read_table(table.read_text())
    found = machine_code(files)
    if writes:
        return write(table, rows, found, compiler)
    if compiler != of_compiler:
        print(f"{table.name} is of {of_compiler}, this is {compiler}: its figures are shown and not compared")
    wrong = [fault for (_, name), kernel in found.items() for fault in memory_faults(kernel, name)]
    archs = {arch for arch, _ in found}
    for row in rows:
        if row.arch not in archs:
            continue
        if (row.arch, row.kernel) not in found:
            wrong.append(f"sm_{row.arch} {row.kernel}: no such kernel")
        else:
            wrong += compare(row, found[row.arch, row.kernel], compiler == of_compiler)
    print(f"{len(found)} kernels of {', '.join(f'sm_{a}' for a in sorted(archs))}; {len(wrong)} faults")
    print(*wrong, sep="\n")
    if wrong:
        print("If a loop has become longer for a reason, write its new figures and say why in the commit:")
        print(f"    {sys.executable} {__file__} --write {table} '{compiler}' {' '.join(files)}")
    return not found or len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())

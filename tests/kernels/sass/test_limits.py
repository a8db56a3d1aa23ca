#!/usr/bin/env python3
"""test_limits.py [--write] NVCC_VERSION OBJECT...: counts the instructions of the kernels' hot loops in the
machine code of some objects and holds them against limits.txt; --write makes that file's figures anew.

In every kernel: no stack frame and no access to local memory (spilt registers, arrays that are indexed)."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import cubin
import loops

TABLE = Path(__file__).with_name("limits.txt")
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
    """Returns the version of nvcc that the figures are of, and the rows."""
    version, rows = re.search(r"^# nvcc (\S+)$", text, re.M).group(1), []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            arch, kernel, loop, unit, instructions, elements, _, registers = line.split()
            rows.append(Row(int(arch), kernel, loop, unit, int(instructions), int(elements), int(registers)))
    return version, rows


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
        for kind, _, elf in cubin.fatbin_entries(path):
            if kind == cubin.FATBIN_SASS:
                kernels = cubin.kernels(elf)
                names = cubin.demangled([k.name for k in kernels])
                found.update({(k.arch, names[k.name]): k for k in kernels})
    return found


def write(text, rows, found, version):
    """Puts the figures of the kernels that were compiled into limits.txt; other rows stay."""
    heading = [line for line in text.splitlines() if line.startswith("#") and not line.startswith("# nvcc ")]
    new = [measured(row, found[row.arch, row.kernel]) if (row.arch, row.kernel) in found else row for row in rows]
    if None in new:
        sys.exit(f"{rows[new.index(None)]}: the kernel has no such loop")
    TABLE.write_text("\n".join([*heading, f"# nvcc {version}", *(row.text() for row in new)]) + "\n")


def main():
    writes = sys.argv[1] == "--write"
    version, *objects = sys.argv[1 + writes :]
    text = TABLE.read_text()
    of_version, rows = read_table(text)
    found = machine_code(objects)
    if writes:
        return write(text, rows, found, version)
    if version != of_version:
        print(f"limits.txt has the figures of nvcc {of_version}, this is {version}: they are shown and not compared")
    wrong = [fault for (_, name), kernel in found.items() for fault in memory_faults(kernel, name)]
    archs = {arch for arch, _ in found}
    for row in rows:
        if row.arch not in archs:
            continue
        if (row.arch, row.kernel) not in found:
            wrong.append(f"sm_{row.arch} {row.kernel}: no such kernel")
        else:
            wrong += compare(row, found[row.arch, row.kernel], version == of_version)
    print(f"{len(found)} kernels of {', '.join(f'sm_{a}' for a in sorted(archs))}; {len(wrong)} faults")
    print(*wrong, sep="\n")
    if wrong:
        print("If a loop has become longer for a reason, write its new figures and say why in the commit:")
        print(f"    {sys.executable} {__file__} --write {version} {' '.join(objects)}")
    return not found or len(wrong) > 0


if __name__ == "__main__":
    sys.exit(main())

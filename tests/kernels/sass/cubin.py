"""Reads machine code (SASS) without a disassembler: the cubins in an object, their kernels, registers, stack
and the operation of each instruction. Encodings are those of sm_80 to sm_120: 128 bits an instruction, the
operation in the low 12 bits; test_decoder.py holds what is read here against nvdisasm where that is."""

import os
import re
import struct
import subprocess
from dataclasses import dataclass, field

# The operations that are counted by name. The rest is counted, and named by its number.
OPERATIONS = {
    0x981: "LDG", 0x986: "STG", 0x984: "LDS", 0x388: "STS", 0x988: "STS", 0x983: "LDL", 0x387: "STL", 0x987: "STL",
    0x83B: "LDSM", 0xFAE: "LDGSTS", 0x23C: "HMMA", 0x308: "MUFU", 0x908: "MUFU", 0xD08: "MUFU", 0xB1D: "BAR",
    0x389: "SHFL", 0x589: "SHFL", 0x989: "SHFL", 0xF89: "SHFL", 0x947: "BRA", 0x547: "BRA", 0x94D: "EXIT",
    0x950: "RET", 0x944: "CALL", 0x918: "NOP",
}  # fmt: skip
UNIFORM_BRANCH = 0x547  # BRA.U: its predicate is a uniform register's
ALWAYS = 7  # PT, not negated: as a predicate, what is not conditional has
FATBIN_MAGIC, FATBIN_SASS, FATBIN_PTX = 0xBA55ED50, 2, 1
EM_CUDA = 190
INFO_REGISTERS, INFO_FRAME = 0x2F, 0x11  # attributes of .nv.info


@dataclass
class Instruction:
    operation: str
    ends: bool = False  # nothing follows it: EXIT, RET, or BRA without a condition
    target: int = None  # index of the instruction that a BRA goes to


@dataclass
class Kernel:
    arch: int
    name: str
    instructions: list
    registers: int = 0
    frame_bytes: int = 0
    counts: dict = field(default_factory=dict)


def sections(elf):
    """Yields (name, header type, bytes, link, info) of an ELF64 file's sections."""
    table, count, names = struct.unpack_from("<Q", elf, 0x28)[0], *struct.unpack_from("<2H", elf, 0x3C)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, table + 64 * i) for i in range(count)]
    base = headers[names][4]
    for name, kind, _, _, offset, size, link, info, _, _ in headers:
        text = elf[base + name : elf.index(b"\0", base + name)].decode()
        yield text, kind, b"" if kind == 8 else elf[offset : offset + size], link, info


def fatbins(path):
    """Returns nvcc's fatbins in a file: a fatbin itself, or an object or a library. None: it has none."""
    with open(path, "rb") as file:
        content = file.read()
    if content.startswith(struct.pack("<I", FATBIN_MAGIC)):
        return content
    return next((data for name, _, data, _, _ in sections(content) if name == ".nv_fatbin"), None)


def fatbin_entries(fat):
    """Yields (kind, arch, bytes) of the device code in fatbins. Code that is compressed has its kind and arch
    all the same."""
    at = 0
    while (at := fat.find(struct.pack("<I", FATBIN_MAGIC), at)) >= 0:
        header, size = struct.unpack_from("<HQ", fat, at + 6)
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, header, size = struct.unpack_from("<HHIQ", fat, entry)
            (arch,) = struct.unpack_from("<I", fat, entry + 28)
            yield kind, arch, fat[entry + header : entry + header + size]
            entry += header + size
        at = end


def embedded(path):
    """Yields as fatbin_entries the code in a plugin of kernels/cuda/driver/: whole cubins and PTX in .rodata."""
    with open(path, "rb") as file:
        elf = file.read()
    (data,) = [data for name, _, data, _, _ in sections(elf) if name == ".rodata"]
    for m in re.finditer(rb"\x7fELF.{14}" + struct.pack("<H", EM_CUDA), data, re.S):
        elf = data[m.start() :]
        yield FATBIN_SASS, cubin_arch(elf), elf[: elf_bytes(elf)]
    for m in re.finditer(rb"\n\.version [\d.]+\n\.target sm_(\d+)", data):
        yield FATBIN_PTX, int(m[1]), data[m.start() :]


def elf_bytes(elf):
    """Returns how long an ELF64 file is of which nothing says where it ends."""
    programs, table = struct.unpack_from("<QQ", elf, 0x20)
    program_bytes, n_programs, _, n_sections, _ = struct.unpack_from("<5H", elf, 0x36)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + 64 * i) for i in range(n_sections)]
    ends = [offset + size for _, kind, _, _, offset, size in headers if kind != 8]
    return max([*ends, table + 64 * n_sections, programs + program_bytes * n_programs])


def code_of(path):
    """Yields (kind, arch, bytes) of the device code in what nvcc made and in any plugin."""
    fat = fatbins(path)
    yield from embedded(path) if fat is None else fatbin_entries(fat)


def is_missing(paths):
    """Returns whether one of the files is not there, or has code that cannot be read, and says so."""
    for path in paths:
        if not os.path.exists(path):
            print(f"skipped: {path} is not built (target rivulet_cuda)")
            return True
        if path.endswith(".so") and fatbins(path) is not None:
            print(f"skipped: nvcc made {path}, whose code is compressed; its fatbins are read instead")
            return True
    return False


def cubin_arch(elf):
    (flags,) = struct.unpack_from("<I", elf, 0x30)
    newer = flags >> 8 & 0xFF  # the ABI of CUDA 13; before, the low byte
    return newer if newer >= 50 else flags & 0xFF


def kernels(elf):
    """Returns the kernels of a cubin."""
    if struct.unpack_from("<H", elf, 18)[0] != EM_CUDA:
        raise ValueError("no cubin")
    arch, found, parts = cubin_arch(elf), {}, list(sections(elf))
    for index, (name, _, data, _, _) in enumerate(parts):
        if name.startswith(".text."):
            found[index] = Kernel(arch, name[len(".text.") :], decode(data, arch))
    (symbols,) = [data for name, _, data, _, _ in parts if name == ".symtab"]
    section_of = [struct.unpack_from("<H", symbols, at + 6)[0] for at in range(0, len(symbols), 24)]
    (info,) = [data for name, _, data, _, _ in parts if name == ".nv.info"]
    for attribute, symbol, value in info_values(info):
        kernel = found.get(section_of[symbol])
        if kernel and attribute == INFO_REGISTERS:
            kernel.registers = value
        elif kernel and attribute == INFO_FRAME:
            kernel.frame_bytes = value
    for kernel in found.values():
        kernel.counts = count(kernel.instructions)
    return list(found.values())


def info_values(info):
    """Yields (attribute, symbol, value) of .nv.info's entries that hold a value for a symbol."""
    at = 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        if form == 4 and size == 8:
            yield attribute, *struct.unpack_from("<II", info, at + 4)
        at += 4 + (size if form == 4 else 0)


def decode(code, arch):
    """Returns the instructions of a kernel's code."""
    return [instruction(*struct.unpack_from("<QQ", code, at), at // 16, arch) for at in range(0, len(code), 16)]


def instruction(low, high, index, arch):
    number = low & 0xFFF
    operation = OPERATIONS.get(number, f"{number:#05x}")
    conditional = low >> 12 & 0xF != ALWAYS
    if operation != "BRA":
        return Instruction(operation, ends=operation in ("EXIT", "RET") and not conditional)
    conditional |= number == UNIFORM_BRANCH or high >> 23 & 0xF != ALWAYS
    return Instruction(operation, not conditional, index + 1 + branch_words(low, high, arch) // 4)


def branch_words(low, high, arch):
    """Returns a branch's distance from the next instruction in words of 4 bytes."""
    words = low >> 34 | (high & 0x3FFFF) << 30
    bits = 48
    if arch >= 90:  # eight bits more, below
        words, bits = words << 8 | low >> 16 & 0xFF, 56
    return words - (1 << bits) if words >> bits - 1 else words


def count(instructions):
    counts = {}
    for i in instructions:
        if i.operation != "NOP":
            counts[i.operation] = counts.get(i.operation, 0) + 1
    return counts


def demangled(names):
    """Returns {mangled: short} as in adamw_kernel<8>, norm_forward_kernel<norm_instance<bf16,8,1,256>>."""
    text = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    short = {}
    for name, line in zip(names, text.stdout.splitlines()):
        line = line.removeprefix("void ").split("(", 1)[0].replace("__nv_bfloat16", "bf16")
        short[name] = line.replace(", ", ",").replace("> >", ">>")
    return short

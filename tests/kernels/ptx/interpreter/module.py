"""Parses PTX text. Only what nvcc emits for kernels without calls is accepted."""

import bisect
import re
from dataclasses import dataclass, field

from .faults import Unsupported

SIZES = {
    "u8": 1,
    "s8": 1,
    "b8": 1,
    "u16": 2,
    "s16": 2,
    "b16": 2,
    "bf16": 2,
    "u32": 4,
    "s32": 4,
    "b32": 4,
    "f32": 4,
    "u64": 8,
    "s64": 8,
    "b64": 8,
    "f64": 8,
}
# Between arrays in shared memory lie bytes that belong to none, so that a step over an end is seen.
SHARED_GAP_BYTES = 128


@dataclass
class Instruction:
    opcode: tuple  # "ld.global.f32" as ("ld", "global", "f32")
    operands: list  # texts; a vector is a list of texts, an address is ("[", base, offset)
    guard: tuple  # (predicate register, negated), or None
    line: int
    text: str


@dataclass
class Kernel:
    name: str
    parameters: dict = field(default_factory=dict)  # name: (offset, bytes)
    parameter_bytes: int = 0
    registers: dict = field(default_factory=dict)  # name: class, e.g. "b32"
    shared: dict = field(default_factory=dict)  # name: (offset, bytes)
    shared_bytes: int = 0
    dynamic_shared: str = None  # the name of the array whose length the launch chooses
    blocks: list = field(
        default_factory=list
    )  # lists of instructions without a jump into or out of their middle
    labels: dict = field(default_factory=dict)  # name: index in blocks


def align(offset, alignment):
    return (offset + alignment - 1) // alignment * alignment


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def parse(text, *only):
    """Returns {name: Kernel} of a PTX module: of the kernels with one of `only` in their names; of all without."""
    text = without_comments(text)
    newlines = [m.start() for m in re.finditer("\n", text)]
    kernels, outside, at = {}, "", 0
    for entry in re.finditer(r"\.entry\s+(\w+)\s*\(([^)]*)\)[^{]*\{", text):
        end = closing_brace(text, entry.end())
        outside += text[at : entry.start()]
        at = end
        if only and not any(part in entry.group(1) for part in only):
            continue
        kernel = Kernel(entry.group(1))
        add_parameters(kernel, entry.group(2))
        kernels[kernel.name] = (kernel, entry.end(), end)
    if ".func" in outside + text[at:]:
        raise Unsupported("a module with functions that are called")
    for kernel, begin, end in kernels.values():
        for declaration in re.finditer(r"[^;]*\.shared[^;]*", outside):
            add_shared(kernel, declaration.group())
        BodyParser(kernel, text, begin, newlines).parse(end - 1)
    return {name: kernel for name, (kernel, _, _) in kernels.items()}


def closing_brace(text, at):
    """Returns the position behind the brace that closes the one before `at`."""
    depth = 1
    for brace in re.compile(r"[{}]").finditer(text, at):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return brace.end()
    raise Unsupported("a body without an end")


def add_parameters(kernel, text):
    for declaration in filter(None, (p.strip() for p in text.split(","))):
        m = re.fullmatch(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(\w+)(?:\[(\d+)\])?", declaration)
        if not m:
            raise Unsupported(f"parameter {declaration}")
        size = SIZES[m.group(2)] * int(m.group(4) or 1)
        offset = align(kernel.parameter_bytes, int(m.group(1) or size))
        kernel.parameters[m.group(3)] = (offset, size)
        kernel.parameter_bytes = offset + size


def add_shared(kernel, declaration):
    m = re.search(
        r"(\.extern\s+)?\.shared\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(\w+)(?:\[(\d*)\])?", declaration
    )
    if m.group(1):
        kernel.dynamic_shared = m.group(4)
        return
    size = SIZES[m.group(3)] * int(m.group(5) or 1)
    offset = align(kernel.shared_bytes, int(m.group(2) or SIZES[m.group(3)]))
    kernel.shared[m.group(4)] = (offset, size)
    kernel.shared_bytes = offset + size + SHARED_GAP_BYTES


class BodyParser:
    """Parses the statements of one kernel. Registers that an inner scope declares are renamed: each
    has its own."""

    def __init__(self, kernel, text, begin, newlines):
        self.kernel, self.text, self.at, self.newlines = kernel, text, begin, newlines
        self.scopes = [{}]
        self.scopes_seen = 0
        self.block = None

    def parse(self, end):
        self.start_block()
        while True:
            self.skip_between_statements(end)
            if self.at >= end:
                break
            semicolon = self.text.index(";", self.at)
            statement = " ".join(self.text[self.at : semicolon].split())
            self.add(statement, bisect.bisect_left(self.newlines, self.at) + 1)
            self.at = semicolon + 1
        if self.block:
            raise Unsupported(f"{self.kernel.name} runs over its end")

    def skip_between_statements(self, end):
        """Takes white space, labels, and the braces of scopes: a statement begins with none of
        them."""
        while self.at < end:
            rest = re.compile(r"\s*(?:(\$\w+):|([{}]))?").match(self.text, self.at, end)
            if rest.end() == self.at:
                return
            if rest.group(1):
                self.start_block()
                self.kernel.labels[rest.group(1)] = len(self.kernel.blocks) - 1
            elif rest.group(2) == "{":
                self.scopes_seen += 1
                self.scopes.append({})
            elif rest.group(2) == "}":
                self.scopes.pop()
            self.at = rest.end()

    def start_block(self):
        if self.block is None or self.block:
            self.block = []
            self.kernel.blocks.append(self.block)

    def add(self, statement, line):
        if statement.startswith(".reg"):
            self.declare_registers(statement)
        elif ".shared" in statement.split("[")[0].split() and statement.startswith("."):
            add_shared(self.kernel, statement)
        elif statement.startswith((".pragma", ".loc")):
            pass
        elif statement.startswith("."):
            raise Unsupported(f"line {line}: {statement}")
        else:
            self.block.append(self.instruction(statement, line))
            # "bar": the threads that wait for others stop between two blocks.
            if self.block[-1].opcode[0] in ("bra", "ret", "exit", "bar"):
                self.start_block()

    def declare_registers(self, statement):
        _, kind, names = statement.split(None, 2)
        for name in names.replace(" ", "").split(","):
            many = re.fullmatch(r"(%\w+?)<(\d+)>", name)
            for one in [f"{many.group(1)}{i}" for i in range(int(many.group(2)))] if many else [name]:
                own = one if len(self.scopes) == 1 else f"{one}@{self.scopes_seen}"
                self.scopes[-1][one] = own
                self.kernel.registers[own] = kind[1:]

    def resolve(self, name):
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def instruction(self, statement, line):
        m = re.fullmatch(r"(?:@(!?)(%\w+)\s+)?([\w.:]+)\s*(.*)", statement)
        if not m:
            raise Unsupported(f"line {line}: {statement}")
        guard = (self.resolve(m.group(2)), m.group(1) == "!") if m.group(2) else None
        operands = [self.operand(o) for o in re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,]*", m.group(4))]
        return Instruction(tuple(m.group(3).split(".")), operands, guard, line, statement)

    def operand(self, text):
        text = text.strip()
        if text.startswith("{"):
            return [self.resolve(part.strip()) for part in text[1:-1].split(",")]
        if text.startswith("["):
            m = re.fullmatch(r"\[\s*([%$\w]+)\s*(?:\+\s*(-?\d+))?\s*\]", text)
            if not m:
                raise Unsupported(f"address {text}")
            return ("[", self.resolve(m.group(1)), int(m.group(2) or 0))
        if "|" in text:
            return [self.resolve(part.strip()) for part in text.split("|")]
        return self.resolve(text)

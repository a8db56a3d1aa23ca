"""Instructions that move data: ld, st, atom, and cp.async with its groups."""

from dataclasses import dataclass

import numpy as np

from .faults import Unsupported
from .shadow import Who
from .values import TYPES, immediate, reader, writer

CACHE_HINTS = {"wb", "cg", "cs", "ca", "wt", "nc", "volatile"}


def address_reader(kernel, operand, dtype):
    _, base, offset = operand
    read, step = reader(kernel, base, dtype), np.array([offset]).astype(dtype)
    return (lambda m: read(m) + step) if offset else read


def shape_of(instruction):
    """Returns the space, the type and the number of elements of a load or a store."""
    *flags, kind = instruction.opcode[1:]
    counts = [f for f in flags if f in ("v2", "v4")]
    spaces = [f for f in flags if f in ("global", "shared", "param")]
    if len(spaces) != 1 or set(flags) - set(counts) - set(spaces) - CACHE_HINTS:
        raise Unsupported(instruction.text)
    return spaces[0], TYPES[kind], int(counts[0][1:]) if counts else 1


def load(kernel, instruction):
    space, dtype, count = shape_of(instruction)
    to, source = instruction.operands
    write = [writer(kernel, name, dtype) for name in (to if isinstance(to, list) else [to])]
    if space == "param":
        return load_parameter(kernel, source, write, dtype)
    address = address_reader(kernel, source, np.uint64 if space == "global" else np.uint32)
    what = f"line {instruction.line}: {instruction.text}"

    def step(m):
        memory = m.memory if space == "global" else m.shared
        active, who = m.active_lanes()
        got = memory.load(m.spread(address(m))[active], dtype, count, who, what)
        for put, values in zip(write, got):
            put(m, m.scattered(values, active))

    return step


def load_parameter(kernel, source, write, dtype):
    _, name, offset = source
    begin, size = kernel.parameters[name][0] + offset, np.dtype(dtype).itemsize

    def step(m):
        for i, put in enumerate(write):
            at = begin + i * size
            put(m, np.full(m.lanes, m.arguments[at : at + size].view(dtype)[0]))

    return step


def store(kernel, instruction):
    space, dtype, _ = shape_of(instruction)
    to, source = instruction.operands
    read = [reader(kernel, name, dtype) for name in (source if isinstance(source, list) else [source])]
    address = address_reader(kernel, to, np.uint64 if space == "global" else np.uint32)
    what = f"line {instruction.line}: {instruction.text}"

    def step(m):
        memory = m.memory if space == "global" else m.shared
        active, who = m.active_lanes()
        memory.store(m.spread(address(m))[active], [m.spread(r(m))[active] for r in read], who, what)

    return step


def atomic(kernel, instruction):
    """atom.global.min: in the order of the lanes, which no kernel may depend on."""
    if instruction.opcode[1:3] != ("global", "min"):
        raise Unsupported(instruction.text)
    dtype = TYPES[instruction.opcode[-1]]
    put, value = writer(kernel, instruction.operands[0], dtype), reader(
        kernel, instruction.operands[2], dtype
    )
    address = address_reader(kernel, instruction.operands[1], np.uint64)
    what = f"line {instruction.line}: {instruction.text}"

    def step(m):
        active, _ = m.active_lanes()
        size = np.dtype(dtype).itemsize
        at = m.memory.locate(m.spread(address(m))[active], size, what) // size
        view = m.memory.bytes.view(dtype)
        before = view[at]
        np.minimum.at(view, at, m.spread(value(m))[active])
        put(m, m.scattered(before, active))

    return step


@dataclass
class Copy:
    """A cp.async under way: where it writes, what, and in which group of each thread it is."""

    lanes: np.ndarray
    at: np.ndarray
    data: np.ndarray
    groups: np.ndarray
    who: Who
    what: str


def copy_async(kernel, instruction):
    """cp.async.cg.shared.global [to], [from], 16, bytes: bytes beyond `bytes` are zeroes, and with
    0 nothing is read."""
    if instruction.opcode[2] == "commit_group":
        return commit_group
    if instruction.opcode[2] == "wait_group":
        left = int(instruction.operands[0])
        return lambda m: wait_group(m, left)
    if instruction.opcode[2] == "wait_all":
        return lambda m: (commit_group(m), wait_group(m, 0))
    if instruction.opcode[2:] not in (("cg", "shared", "global"), ("ca", "shared", "global")):
        raise Unsupported(instruction.text)
    to, source, size, *used = instruction.operands
    size = int(size)
    to, source = address_reader(kernel, to, np.uint32), address_reader(kernel, source, np.uint64)
    used = reader(kernel, used[0], np.uint32) if used else lambda m: immediate(str(size), np.uint32)
    what = f"line {instruction.line}: {instruction.text}"

    def step(m):
        active, who = m.active_lanes()
        take, sources = m.spread(used(m))[active], m.spread(source(m))[active]
        at = m.shared.begin_copy(m.spread(to(m))[active], size, who, what)
        data = np.zeros((active.size, size), np.uint8)
        for count in np.unique(take[take > 0]):
            chosen = take == count
            read = m.memory.load(sources[chosen], np.uint8, int(count), who.only(chosen), what)
            data[chosen, :count] = np.stack(read, axis=1)
        m.copies.append(Copy(active, at, data, m.open_group[active].copy(), who, what))

    return step


def commit_group(m):
    active, _ = m.active_lanes()
    m.open_group[active] += 1


def wait_group(m, left):
    """Ends the active threads' copies of all groups but the newest `left`."""
    active, _ = m.active_lanes()
    waits = np.zeros(m.lanes, bool)
    waits[active] = True
    remaining = []
    for copy in m.copies:
        done = waits[copy.lanes] & (copy.groups < m.open_group[copy.lanes] - left)
        if done.any():
            lanes = copy.lanes[done]
            m.shared.end_copy(copy.at[done], copy.data[done], m.who(lanes), copy.what)
        if not done.all():
            rest = ~done
            remaining.append(
                Copy(
                    copy.lanes[rest],
                    copy.at[rest],
                    copy.data[rest],
                    copy.groups[rest],
                    copy.who.only(rest),
                    copy.what,
                )
            )
    m.copies = remaining


BUILDERS = {"ld": load, "st": store, "atom": atomic, "cp": copy_async}

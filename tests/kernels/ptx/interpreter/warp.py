"""Instructions that a warp executes as one: shfl.sync, ldmatrix, mma. The layouts are those of the
PTX ISA's sections on ldmatrix and on mma.m16n8k16 with .bf16: g = lane / 4 is the group, q = lane %
4 the thread in it."""

import numpy as np

from .faults import Fault, Unsupported
from .transfer import address_reader
from .values import reader, writer

WARP = 32


def whole_warps(m, what):
    """Returns which warps execute the instruction: all of their threads must."""
    if m.mask is None:
        return slice(None)
    by_warp = m.mask.reshape(-1, WARP)
    some, whole = by_warp.any(axis=1), by_warp.all(axis=1)
    if (some != whole).any():
        raise Fault(f"{what}: warp {int(np.argmax(some != whole))} of the grid is divided here")
    return whole


def shuffle(kernel, instruction):
    """shfl.sync.MODE.b32 d|p, a, b, c, membermask: c holds the clamp (low 5 bits) and the segment
    mask (bits 8 to 12)."""
    mode = instruction.opcode[2]
    destination, a, b, c, members = instruction.operands
    names = destination if isinstance(destination, list) else [destination]
    put = writer(kernel, names[0], np.uint32)
    flag = writer(kernel, names[1], np.bool_) if len(names) == 2 else None
    read = [reader(kernel, operand, np.uint32) for operand in (a, b, c, members)]
    what = f"line {instruction.line}: {instruction.text}"
    if mode not in ("bfly", "down", "up", "idx"):
        raise Unsupported(instruction.text)

    def step(m):
        whole_warps(m, what)
        value, by, clamp_and_mask, mask = (m.spread(r(m)) for r in read)
        if (mask[m.active_lanes()[0]] != 0xFFFFFFFF).any():
            raise Fault(f"{what}: the member mask is not the full warp")
        lane = np.arange(m.lanes) % WARP
        by, clamp, segment = (
            (by & 31).astype(int),
            (clamp_and_mask & 31).astype(int),
            (clamp_and_mask >> 8 & 31).astype(int),
        )
        least, most = lane & segment, (lane & segment) | (clamp & ~segment & 31)
        source = {"bfly": lane ^ by, "down": lane + by, "up": lane - by, "idx": least | (by & ~segment & 31)}[
            mode
        ]
        inside = source >= most if mode == "up" else source <= most
        source = np.where(inside, source, lane)
        put(m, value[np.arange(m.lanes) - lane + source])
        if flag:
            flag(m, inside)

    return step


def load_matrix(kernel, instruction):
    """ldmatrix.sync.aligned.m8n8.xN{.trans}.shared.b16: lanes 8 i .. 8 i + 7 name the rows of
    matrix i."""
    flags = set(instruction.opcode) - {"ldmatrix", "sync", "aligned", "m8n8", "shared", "b16"}
    transposed = "trans" in flags
    (many,) = flags - {"trans"}
    count = {"x1": 1, "x2": 2, "x4": 4}[many]
    write = [writer(kernel, name, np.uint32) for name in instruction.operands[0]]
    address = address_reader(kernel, instruction.operands[1], np.uint32)
    what = f"line {instruction.line}: {instruction.text}"

    def step(m):
        warps = whole_warps(m, what)
        lanes = np.arange(m.lanes).reshape(-1, WARP)[warps][:, : 8 * count].reshape(-1)
        words = m.shared.load(m.spread(address(m))[lanes], np.uint32, 4, m.who(lanes), what)
        rows = np.stack(words, axis=1).reshape(-1, count, 8, 4)  # warp, matrix, row, pair of columns
        if transposed:
            elements = rows.view(np.uint16).reshape(-1, count, 8, 8).transpose(0, 1, 3, 2)
            rows = np.ascontiguousarray(elements).view(np.uint32)
        everyone = np.arange(m.lanes).reshape(-1, WARP)[warps].reshape(-1)
        for i, put in enumerate(write):
            put(m, m.scattered(rows[:, i].reshape(-1), everyone))

    return step


def fragments(registers, rows):
    """Returns (warps, rows * 8, pairs) fp32 of bf16 pairs: registers[i] of lane 4 g + q holds row g
    + 8 (i % rows) and columns 2 q, 2 q + 1 of the 8-wide column group i // rows."""
    pairs = np.stack([r.reshape(-1, 8, 4) for r in registers])  # register, warp, g, q
    groups = len(registers) // rows
    values = np.empty((pairs.shape[1], 8 * rows, 8 * groups), np.float32)
    for i, register in enumerate(pairs):
        row, column = 8 * (i % rows), 8 * (i // rows)
        values[:, row : row + 8, column : column + 8 : 2] = (register << np.uint32(16)).view(np.float32)
        values[:, row : row + 8, column + 1 : column + 8 : 2] = (register & np.uint32(0xFFFF0000)).view(
            np.float32
        )
    return values


def multiply_accumulate(kernel, instruction):
    """mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 d, a, b, c: d = a b + c, a sum of 16
    exact products and c. The ISA leaves order and precision of the sum open, above single; here it
    is fp32 products summed by numpy."""
    shape = ("sync", "aligned", "m16n8k16", "row", "col", "f32", "bf16", "bf16", "f32")
    if instruction.opcode[1:] != shape:
        raise Unsupported(instruction.text)
    d, a, b, c = instruction.operands
    write = [writer(kernel, name, np.float32) for name in d]
    read_a, read_b = ([reader(kernel, name, np.uint32) for name in names] for names in (a, b))
    read_c = [reader(kernel, name, np.float32) for name in c]
    what = f"line {instruction.line}: {instruction.text}"

    def step(m):
        whole_warps(m, what)
        left = fragments([m.spread(r(m)) for r in read_a], rows=2)  # warp, 16 rows, 16 columns
        right = fragments([m.spread(r(m)) for r in read_b], rows=1)  # warp, 8 columns of b, 16 rows of b
        product = left @ right.transpose(0, 2, 1)  # warp, 16, 8
        for i, (put, addend) in enumerate(zip(write, read_c)):
            part = product[:, i // 2 * 8 : i // 2 * 8 + 8, i % 2 :: 2].reshape(-1)
            put(m, part + addend(m))

    return step


BUILDERS = {"shfl": shuffle, "ldmatrix": load_matrix, "mma": multiply_accumulate}

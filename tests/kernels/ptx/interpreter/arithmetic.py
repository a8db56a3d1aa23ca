"""Instructions of a single thread that touch no memory: build(kernel, instruction) returns
step(machine)."""

import numpy as np

from .faults import Unsupported
from .memory import SHARED_WINDOW
from .values import TYPES, flush, from_bf16, reader, to_bf16, writer

ROUNDINGS = ("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi")


def compute(kernel, instruction, function, types, result):
    """A step that writes function(operands...), read as `types`, as a `result`."""
    write = writer(kernel, instruction.operands[0], result)
    sources = instruction.operands[1:]
    if len(sources) != len(types):
        raise Unsupported(instruction.text)
    read = [reader(kernel, source, dtype) for source, dtype in zip(sources, types)]
    if len(read) == 1:
        (a,) = read
        return lambda m: write(m, function(a(m)))
    if len(read) == 2:
        a, b = read
        return lambda m: write(m, function(a(m), b(m)))
    a, b, c = read
    return lambda m: write(m, function(a(m), b(m), c(m)))


def last_type(instruction):
    return TYPES[instruction.opcode[-1]]


def same_type(function):
    """For opcodes whose operands and result are of the type at the opcode's end."""

    def build(kernel, instruction):
        flags = instruction.opcode[1:-1]
        dtype = last_type(instruction)
        unknown = set(flags) - {"rn", "ftz", "lo", "approx", "full"}
        if unknown:
            raise Unsupported(instruction.text)
        apply = function
        if "ftz" in flags:
            apply = lambda *x: flush(function(*(flush(v) for v in x)))  # noqa: E731
        return compute(kernel, instruction, apply, [dtype] * (len(instruction.operands) - 1), dtype)

    return build


def multiply(kernel, instruction):
    return product(kernel, instruction, lambda a, b: a * b)


def multiply_add(kernel, instruction):
    return product(kernel, instruction, lambda a, b, c: a * b + c)


def product(kernel, instruction, function):
    """mul and mad: .wide has a result, and mad's addend, of twice the width; .lo keeps the low
    half."""
    dtype = last_type(instruction)
    if instruction.opcode[1] != "wide":
        if instruction.opcode[1] not in ("lo", "rn", "ftz", "f32", "f64"):
            raise Unsupported(instruction.text)
        return same_type(function)(kernel, instruction)
    wide = np.dtype(f"{np.dtype(dtype).kind}{2 * np.dtype(dtype).itemsize}")
    operands = [dtype, dtype] + [wide] * (len(instruction.operands) - 3)
    return compute(kernel, instruction, lambda *x: function(*(v.astype(wide) for v in x)), operands, wide)


def fused_multiply_add(kernel, instruction):
    """fp32: the product is exact in fp64; the sum is rounded to fp64 and then to fp32, which
    differs from one rounding in about one of 2^29 results. fp64: two roundings."""
    dtype, flags = last_type(instruction), instruction.opcode[1:-1]
    if dtype == np.float64:
        return same_type(lambda a, b, c: a * b + c)(kernel, instruction)

    def rounded_down(exact):
        near = exact.astype(np.float32)
        return np.where(near.astype(np.float64) > exact, np.nextafter(near, np.float32(-np.inf)), near)

    final = {"rn": lambda exact: exact.astype(np.float32), "rm": rounded_down}[flags[0]]
    wide = np.float64
    function = lambda a, b, c: final(a.astype(wide) * b.astype(wide) + c.astype(wide))  # noqa: E731
    if "ftz" in flags:
        unflushed = function
        function = lambda a, b, c: flush(unflushed(flush(a), flush(b), flush(c)))  # noqa: E731
    return compute(kernel, instruction, function, [dtype] * 3, dtype)


def divide(kernel, instruction):
    dtype = last_type(instruction)
    if np.issubdtype(dtype, np.floating):
        return same_type(lambda a, b: a / b)(kernel, instruction)

    def truncated(a, b):
        zero = b == 0
        b = np.where(zero, b.dtype.type(1), b)
        quotient = a // b
        if a.dtype.kind == "i":  # towards zero, as C does
            quotient = quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)
        return np.where(zero, a.dtype.type(-1 if a.dtype.kind == "i" else np.iinfo(a.dtype).max), quotient)

    function = truncated
    if instruction.opcode[0] == "rem":
        function = lambda a, b: a - truncated(a, b) * b  # noqa: E731
    return compute(kernel, instruction, function, [dtype] * 2, dtype)


def shift(kernel, instruction):
    """Shifts by the width or more give zeroes, or the sign (shr.s)."""
    dtype = np.dtype(last_type(instruction))
    bits, left = 8 * dtype.itemsize, instruction.opcode[0] == "shl"

    def function(a, count):
        beyond = count >= bits
        by = np.where(beyond, bits - 1, count).astype(dtype)
        if left:
            return np.where(beyond, dtype.type(0), a << by)
        if dtype.kind == "i":
            return a >> by
        return np.where(beyond, dtype.type(0), a >> by)

    return compute(kernel, instruction, function, [dtype, np.uint32], dtype)


COMPARISONS = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}


def comparison(name, is_float):
    if name in COMPARISONS:
        compare = COMPARISONS[name]
        if name == "ne" and is_float:  # ordered: false with a NaN
            return lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b))
        return compare
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if is_float and name.endswith("u") and name[:-1] in COMPARISONS:
        compare = COMPARISONS[name[:-1]]
        return lambda a, b: compare(a, b) | np.isnan(a) | np.isnan(b)
    raise Unsupported(f"comparison {name}")


def set_predicate(kernel, instruction):
    if isinstance(instruction.operands[0], list) or len(instruction.opcode) > 4:
        raise Unsupported(instruction.text)
    dtype = last_type(instruction)
    is_float = np.issubdtype(dtype, np.floating)
    compare = comparison(instruction.opcode[1], is_float)
    if "ftz" in instruction.opcode:
        unflushed = compare
        compare = lambda a, b: unflushed(flush(a), flush(b))  # noqa: E731
    return compute(kernel, instruction, compare, [dtype] * 2, np.bool_)


def select(kernel, instruction):
    dtype = last_type(instruction)
    return compute(kernel, instruction, lambda a, b, p: np.where(p, a, b), [dtype, dtype, np.bool_], dtype)


def not_bits(kernel, instruction):
    return same_type(np.invert)(kernel, instruction)


def move(kernel, instruction):
    """mov, also from and to {low, high} halves."""
    dtype = last_type(instruction)
    to, source = instruction.operands
    if isinstance(to, list):
        half = np.dtype(f"u{np.dtype(dtype).itemsize // len(to)}")
        read, write = reader(kernel, source, dtype), [writer(kernel, part, half) for part in to]

        def split(m):
            parts = np.ascontiguousarray(read(m)).view(half).reshape(-1, len(to))
            for i, put in enumerate(write):
                put(m, np.ascontiguousarray(parts[:, i]))

        return split
    if isinstance(source, list):
        half = np.dtype(f"u{np.dtype(dtype).itemsize // len(source)}")
        reads, put = [reader(kernel, part, half) for part in source], writer(kernel, to, dtype)

        def join(m):
            parts = np.stack([np.broadcast_to(read(m), m.lanes) for read in reads], axis=1)
            put(m, np.ascontiguousarray(parts).view(dtype)[:, 0])

        return join
    return compute(kernel, instruction, lambda a: a, [dtype], dtype)


def to_integer(x, dtype, rounding):
    """cvt from a float: saturates, and NaN becomes 0."""
    round_to = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[rounding]
    limits = np.iinfo(dtype)
    exact = np.nan_to_num(round_to(x.astype(np.float64)), nan=0, posinf=2.0**64, neginf=-(2.0**64))
    high, low = exact >= 2.0 ** (limits.bits - (limits.min < 0)), exact <= float(limits.min)
    inside = np.where(high | low, 0, exact).astype(dtype)
    return np.where(high, limits.max, np.where(low, limits.min, inside)).astype(dtype)


def conversion(flags, to, source):
    """Returns a function of the source's lanes for cvt.flags.to.source."""
    rounding = next((f for f in flags if f in ROUNDINGS), None)
    unknown = set(flags) - set(ROUNDINGS) - {"sat", "ftz"}
    if unknown:
        raise Unsupported(f"cvt with .{unknown.pop()}")
    to_type, source_type = np.dtype(TYPES[to]), np.dtype(TYPES[source])
    if to == "bf16" and source == "f32" and rounding == "rn":
        return to_bf16
    if source == "bf16" and to == "f32":
        return from_bf16
    if "bf16" in (to, source):
        raise Unsupported(f"cvt.{to}.{source}")
    if source_type.kind == "f" and to_type.kind in "iu":
        return lambda x: to_integer(x, to_type, rounding)
    if source_type.kind == "f" and rounding and rounding.endswith("i"):
        whole = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}[rounding]
        return lambda x: whole(x).astype(to_type)
    if "sat" in flags and to_type.kind == "f":  # to [0, 1]; NaN becomes 0
        return lambda x: np.nan_to_num(np.clip(x, 0, 1), nan=0).astype(to_type)
    if rounding not in (None, "rn") or "sat" in flags:
        raise Unsupported(f"cvt.{'.'.join(flags)}.{to}.{source}")
    return lambda x: x.astype(to_type)


def convert(kernel, instruction):
    *flags, to, source = instruction.opcode[1:]
    if to == "bf16x2":  # the first source goes to the upper half
        if flags != ["rn"] or source != "f32":
            raise Unsupported(instruction.text)
        pack = lambda high, low: (to_bf16(high).astype(np.uint32) << np.uint32(16)) | to_bf16(
            low
        )  # noqa: E731
        return compute(kernel, instruction, pack, [np.float32] * 2, np.uint32)
    return compute(kernel, instruction, conversion(flags, to, source), [TYPES[source]], TYPES[to])


def convert_address(kernel, instruction):
    """cvta: global addresses are generic ones; shared ones get the window's base."""
    if "global" in instruction.opcode:
        return compute(kernel, instruction, lambda a: a, [np.uint64], np.uint64)
    if instruction.opcode[1:] == ("shared", "u64"):
        return compute(kernel, instruction, lambda a: a + np.uint64(SHARED_WINDOW), [np.uint64], np.uint64)
    raise Unsupported(instruction.text)


def minimum(a, b):
    return np.fmin(a, b)  # of a number and a NaN: the number


def maximum(a, b):
    return np.fmax(a, b)


BUILDERS = {
    "add": same_type(np.add),
    "sub": same_type(np.subtract),
    "mul": multiply,
    "mad": multiply_add,
    "fma": fused_multiply_add,
    "div": divide,
    "rem": divide,
    "neg": same_type(np.negative),
    "abs": same_type(np.abs),
    "min": same_type(minimum),
    "max": same_type(maximum),
    "and": same_type(np.bitwise_and),
    "or": same_type(np.bitwise_or),
    "xor": same_type(np.bitwise_xor),
    "not": not_bits,
    "shl": shift,
    "shr": shift,
    "sqrt": same_type(np.sqrt),
    "rsqrt": same_type(lambda a: 1 / np.sqrt(a)),
    "rcp": same_type(lambda a: 1 / a),
    "ex2": same_type(np.exp2),
    "lg2": same_type(np.log2),
    "tanh": same_type(np.tanh),
    "copysign": same_type(lambda sign, a: np.copysign(a, sign)),
    "setp": set_predicate,
    "selp": select,
    "mov": move,
    "cvt": convert,
    "cvta": convert_address,
}

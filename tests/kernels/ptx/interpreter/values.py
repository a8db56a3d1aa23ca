"""Types, and operands as functions of the machine: read(machine) gives the lanes' values,
write(machine, values) sets those of the active lanes."""

import re

import numpy as np

from .faults import Unsupported

TYPES = {
    "u8": np.uint8,
    "s8": np.int8,
    "b8": np.uint8,
    "u16": np.uint16,
    "s16": np.int16,
    "b16": np.uint16,
    "bf16": np.uint16,
    "u32": np.uint32,
    "s32": np.int32,
    "b32": np.uint32,
    "f32": np.float32,
    "bf16x2": np.uint32,
    "u64": np.uint64,
    "s64": np.int64,
    "b64": np.uint64,
    "f64": np.float64,
    "pred": np.bool_,
}
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
SIGNED = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
REGISTER_TYPES = {
    "pred": np.bool_,
    "b8": np.uint8,
    "b16": np.uint16,
    "b32": np.uint32,
    "b64": np.uint64,
    "f32": np.float32,
    "f64": np.float64,
    "s32": np.int32,
    "u32": np.uint32,
    "s64": np.int64,
    "u64": np.uint64,
    "u16": np.uint16,
    "s16": np.int16,
}
SPECIAL = re.compile(r"%(tid|ntid|ctaid|nctaid)\.([xyz])|%laneid")


def immediate(text, dtype):
    """Returns an array of one element: the constant `text` as a `dtype`."""
    if text[:2] in ("0f", "0F"):
        return np.array([int(text[2:], 16)], np.uint32).view(np.float32).astype(dtype)
    if text[:2] in ("0d", "0D"):
        return np.array([int(text[2:], 16)], np.uint64).view(np.float64).astype(dtype)
    number = int(text.rstrip("U"), 0)
    if dtype == np.bool_:
        return np.array([number != 0])
    if np.issubdtype(dtype, np.floating):
        return np.array([number], dtype)
    size = np.dtype(dtype).itemsize
    return np.array([number & (1 << 8 * size) - 1], UNSIGNED[size]).view(dtype)


def reader(kernel, operand, dtype):
    """Returns read(machine) for a register, a special register, a shared array's address or a
    constant."""
    if operand in kernel.registers:
        return register_reader(operand, REGISTER_TYPES[kernel.registers[operand]], np.dtype(dtype))
    if SPECIAL.fullmatch(operand):
        return lambda m: m.special(operand).astype(dtype)
    if operand in kernel.shared or operand == kernel.dynamic_shared:
        return lambda m: np.array([m.shared.address_of(operand)], dtype)
    if re.fullmatch(r"-?\d\w*", operand):
        value = immediate(operand, dtype)
        return lambda m: value
    raise Unsupported(f"operand {operand}")


def register_reader(name, held, dtype):
    if held == dtype:
        return lambda m: m.registers[name]
    if np.dtype(held).itemsize == dtype.itemsize:
        return lambda m: m.registers[name].view(dtype)
    if np.dtype(held).itemsize > dtype.itemsize and dtype.kind in "iu":  # a store of the low bits
        return lambda m: m.registers[name].astype(dtype)
    raise Unsupported(f"{name} ({held}) read as {dtype}")


def writer(kernel, operand, dtype):
    """Returns write(machine, values); values of a smaller type are extended by their sign."""
    if operand == "_":
        return lambda m, values: None
    if operand not in kernel.registers:
        raise Unsupported(f"destination {operand}")
    held, given = np.dtype(REGISTER_TYPES[kernel.registers[operand]]), np.dtype(dtype)
    if held == given:
        return lambda m, values: m.set(operand, values)
    if held.itemsize == given.itemsize:
        return lambda m, values: m.set(operand, values.view(held))
    if held.itemsize > given.itemsize and given.kind in "iu":
        wide = SIGNED[held.itemsize] if given.kind == "i" else UNSIGNED[held.itemsize]
        return lambda m, values: m.set(operand, values.astype(wide).view(held))
    raise Unsupported(f"{given} written to {operand} ({held})")


def to_bf16(x):
    """Returns the bits of fp32 values rounded to the nearest bf16, ties to even; NaN becomes
    0x7fff, as cvt.rn gives."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(x), 0x7FFF, rounded).astype(np.uint16)


def from_bf16(bits):
    """Returns the fp32 values of bf16 bits."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def flush(x):
    """Returns x with subnormal numbers replaced by zeroes of their sign (.ftz)."""
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x)

"""Runs the tensor-core attention kernels from their PTX and measures them against reference.py."""

import numpy as np

import reference
from interpreter import Fault, GlobalMemory, Grid, run
from interpreter.values import from_bf16, to_bf16

TILE_ROWS, MMA_THREADS, ROW_PAD = 64, 128, 8  # attention_mma.cuh
BF16_NAN = 0x7FC0
# Errors that rounding to bf16 explains. out and gradients: the root mean square of the error over
# that of the value; a bf16 has 8 bits, so one rounding is 2^-9 / sqrt(3) = 0.0011 of a value, and
# p, ds and the result are rounded. lse is fp32 throughout: the largest error.
LIMITS = {"out": 0.003, "lse": 2e-6, "dq": 0.004, "dk": 0.004, "dv": 0.004}


def kernel_of(kernels, name, head_dim):
    (found,) = [k for n, k in kernels.items() if name in n and f"ILi{head_dim}E" in n]
    return found


def guarded_nan(shape, dtype=np.uint16):
    """What a result's memory holds before: a kernel that leaves an element out leaves a NaN."""
    return np.full(shape, BF16_NAN, np.uint16) if dtype == np.uint16 else np.full(shape, np.nan, dtype)


class Attention:
    """Inputs of a shape, drawn from a seed, and the kernels' results for them."""

    def __init__(self, shape, seed=15):
        self.s = s = shape
        draw = np.random.default_rng(seed)
        self.qkv = to_bf16(draw.uniform(-2, 2, (s.b, s.t, s.width)).astype(np.float32))
        self.dout = to_bf16(draw.uniform(-1, 1, (s.b, s.t, s.heads * s.head_dim)).astype(np.float32))
        exact = reference.attention(*(from_bf16(x).astype(np.float64) for x in (self.qkv, self.dout)), s)
        self.out, self.lse, self.dqkv = exact
        self.memory = GlobalMemory(4096 + 16 * (self.qkv.size + self.dout.size) + 64 * s.b * s.heads * s.t)
        self.put_qkv, self.put_dout = self.memory.put(self.qkv), self.memory.put(self.dout)
        self.instructions = 0

    def grid(self, heads, tile_rows):
        s = self.s
        row_bytes = 2 * (s.head_dim + ROW_PAD)
        return Grid(
            ((s.t + TILE_ROWS - 1) // TILE_ROWS, heads, s.b), (MMA_THREADS, 1, 1), tile_rows * row_bytes
        )

    def forward(self, kernels):
        """Returns {"out": error, "lse": error}."""
        s, memory = self.s, self.memory
        out, lse = memory.put(guarded_nan(self.out.shape)), memory.put(
            guarded_nan(self.lse.shape, np.float32)
        )
        kernel = kernel_of(kernels, "attention_forward_mma_kernel", s.head_dim)
        self.instructions += run(
            kernel, memory, [out, lse, self.put_qkv, s.packed()], self.grid(s.heads, 5 * TILE_ROWS)
        )
        got_out = from_bf16(memory.get(out, np.uint16, self.out.shape))
        got_lse = memory.get(lse, np.float32, self.lse.shape)
        return {"out": relative(got_out, self.out), "lse": float(np.abs(got_lse - self.lse).max())}

    def backward(self, kernels):
        """Returns {"dq": error, "dk": error, "dv": error}. lse and delta are the reference's,
        rounded to fp32."""
        s, memory = self.s, self.memory
        product = (from_bf16(self.dout).astype(np.float64) * self.out).reshape(s.b, s.t, s.heads, s.head_dim)
        delta = memory.put(product.sum(axis=3).transpose(0, 2, 1).astype(np.float32))
        lse, dqkv = memory.put(self.lse.astype(np.float32)), memory.put(guarded_nan(self.dqkv.shape))
        argument = np.array([dqkv, self.put_dout, self.put_qkv, lse, delta], np.uint64).tobytes() + s.packed()
        argument += bytes(-len(argument) % 8)
        for name, heads, some in (
            ("attention_dq_mma_kernel", s.heads, 32 if s.head_dim >= 64 else 64),  # key_rows
            ("attention_dkv_mma_kernel", s.kv_heads, 32 if s.head_dim == 128 else 64),  # query_rows
        ):
            rows = 2 * TILE_ROWS + 2 * some
            kernel = kernel_of(kernels, name, s.head_dim)
            self.instructions += run(kernel, memory, [argument], self.grid(heads, rows))
        got = from_bf16(memory.get(dqkv, np.uint16, self.dqkv.shape))
        ends = np.array([0, s.heads, s.heads + s.kv_heads, s.heads + 2 * s.kv_heads]) * s.head_dim
        return {
            name: relative(got[..., ends[i] : ends[i + 1]], self.dqkv[..., ends[i] : ends[i + 1]])
            for i, name in enumerate(("dq", "dk", "dv"))
        }


def relative(got, exact):
    """Returns the root mean square of the error relative to that of the exact values; NaN where an
    element is missing. With T = 1, dq and dk are zero: the error itself."""
    size = np.linalg.norm(exact)
    error = np.linalg.norm(got.astype(np.float64) - exact)
    return float(error / size) if size > 1e-6 * np.sqrt(exact.size) else float(error / np.sqrt(exact.size))


def excesses(errors):
    """Returns what lies above its limit; a NaN does."""
    return {name: error for name, error in errors.items() if not error <= LIMITS[name]}


def verdict(shape, forward=None, backward=None):
    """Returns why the kernels are wrong for a shape, or None. Those not given are not run."""
    try:
        case, errors = Attention(shape), {}
        if forward:
            errors.update(case.forward(forward))
        if backward:
            errors.update(case.backward(backward))
    except Fault as fault:
        return str(fault)
    return ", ".join(f"{name} off by {error:.2g}" for name, error in excesses(errors).items()) or None

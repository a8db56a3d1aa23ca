"""Runs our own matrix products (product.cu, product_mma.cu) from their PTX, against fp64."""

import numpy as np

from interpreter import GlobalMemory, Grid, run
from interpreter.values import from_bf16, to_bf16
from streaming import error, gelu, gelu_slope, kernel_of, struct

TILE, PRODUCT_THREADS = 64, 256  # of product.cu
MMA_TILE, MMA_SHARED_BYTES = 128, 3 * 2 * 128 * 40 * 2  # of product_mma.cu; it has as many threads
PLAIN, BIAS, GELU, DGELU, SUMS = range(5)  # enum gemm_epilogue
FP32_ERROR = 1e-6  # relative to the sum of absolute values


def stored(draw, rows, columns, transposed, ld_extra, bf16):
    """Returns op(x) (rows, columns) in fp64, x as it is stored, and its row length."""
    shape = (columns, rows) if transposed else (rows, columns)
    x = np.zeros((shape[0], shape[1] + ld_extra), np.float32)
    x[:, : shape[1]] = draw.normal(0, 1, shape)
    raw = to_bf16(x) if bf16 else x
    exact = (from_bf16(raw) if bf16 else raw)[:, : shape[1]].astype(np.float64)
    return (exact.T if transposed else exact), raw, x.shape[1]


def strides(ld, along_k):
    return (1, ld) if along_k else (ld, 1)


def product(kernels, m, n, k, transposed, accumulate, types, ld_extra=0):
    """`transposed`: of a and b; `types`: of the operands and of d, of "fp32" and "bf16"."""
    draw = np.random.default_rng(m + n + k)
    bf16_in, bf16_out = (t == "bf16" for t in types)
    a, raw_a, lda = stored(draw, m, k, transposed[0], ld_extra, bf16_in)
    b, raw_b, ldb = stored(draw, k, n, transposed[1], ld_extra, bf16_in)
    before, raw_d, ldd = stored(draw, m, n, False, ld_extra, bf16_out)
    memory = GlobalMemory(1 << 20)
    at = [memory.put(x) for x in (raw_a, raw_b, raw_d)]
    across = (n + TILE - 1) // TILE
    argument = struct(
        at[0],
        *np.array([m, k, *strides(lda, transposed[0])], np.uint64),
        at[1],
        *np.array([n, k, *strides(ldb, not transposed[1])], np.uint64),
        at[2],
        np.uint64(ldd),
        np.uint8(accumulate),
    )
    names = {(False, False): "IffE", (True, False): "bfloat16fE", (True, True): "bfloat16S0_E"}
    run(
        kernel_of(kernels, names[bf16_in, bf16_out]),
        memory,
        [argument, np.uint64(across)],
        Grid((across * ((m + TILE - 1) // TILE), 1, 1), (PRODUCT_THREADS, 1, 1)),
    )
    got = memory.get(at[2], np.uint16 if bf16_out else np.float32, (m, ldd))
    exact = a @ b + (before if accumulate else 0)
    scale = np.abs(a) @ np.abs(b) + 1
    relative = 2.0**-8 if bf16_out else 0
    d = (from_bf16(got) if bf16_out else got)[:, :n]
    return {
        "d": error(d, exact, relative, FP32_ERROR * scale),
        "between rows": error(got[:, n:].astype(np.float64), 0, 0, 1e-30),
    }


def read(memory, at, shape, bf16):
    raw = memory.get(at, np.uint16 if bf16 else np.float32, shape)
    return from_bf16(raw) if bf16 else raw


def product_mma(kernels, m, n, k, transposed, out="bf16", epilogue=PLAIN, accumulate=False, ld_extra=0):
    """`transposed`: of a and b; `out`: the type of d and aux."""
    draw = np.random.default_rng(m + n + k)
    bf16_out = out == "bf16"
    a, raw_a, lda = stored(draw, m, k, transposed[0], ld_extra, True)
    b, raw_b, ldb = stored(draw, k, n, transposed[1], ld_extra, True)
    before, raw_d, ldd = stored(draw, m, n, False, 0, bf16_out)
    below, raw_aux, _ = stored(draw, m, n, False, 0, bf16_out)
    bias, raw_bias, _ = stored(draw, 1, n, False, 0, True)
    sums = draw.normal(0, 1, m).astype(np.float32)
    memory = GlobalMemory(1 << 20)
    at = [memory.put(x) for x in (raw_a, raw_b, raw_d, raw_aux, raw_bias, sums)]
    down, across = ((x + MMA_TILE - 1) // MMA_TILE for x in (m, n))
    argument = struct(
        at[0], np.uint64(lda), np.int32(m), np.int32(k),
        at[1], np.uint64(ldb), np.int32(n), np.int32(k),
        at[2], at[3], at[4] if epilogue in (BIAS, GELU) else np.uint64(0),
        np.uint64(ldd), np.int32(epilogue), np.uint8(accumulate), at[5],
    )
    instance = f"ILb{int(not transposed[0])}ELb{int(transposed[1])}ELb{int(epilogue == SUMS)}E"
    run(
        kernel_of(kernels, instance + ("13__nv_bfloat16E" if bf16_out else "fE")),
        memory,
        [argument, np.int32(down), np.int32(across)],
        Grid((down * across, 1, 1), (PRODUCT_THREADS, 1, 1), MMA_SHARED_BYTES),
    )
    relative = 2.0**-8 if bf16_out else 0
    scale = np.abs(a) @ np.abs(b) + 2
    x, errors = a @ b, {}
    if epilogue in (BIAS, GELU):
        x = x + bias
    if epilogue == GELU:
        errors["aux"] = error(read(memory, at[3], (m, n), bf16_out), x, relative, FP32_ERROR * scale)
        x = gelu(x)
    if epilogue == DGELU:
        x = x * gelu_slope(below)
        scale = scale * (np.abs(below) + 2)
    if accumulate:
        x = x + before
    if epilogue == SUMS:
        got = memory.get(at[5], np.float32, m)
        errors["row sums"] = error(got, sums + a.sum(axis=1), 0, FP32_ERROR * (np.abs(a).sum(axis=1) + 1))
    errors["d"] = error(read(memory, at[2], (m, n), bf16_out), x, relative, 4 * FP32_ERROR * scale)
    return errors

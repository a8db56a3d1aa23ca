"""Runs the kernels that stream over memory from their PTX, against the formulas in fp64: each
function returns {name: error} for one case, where an error above 1 is above its limit."""

import numpy as np

from interpreter import GlobalMemory, Grid, run
from interpreter.values import from_bf16, to_bf16

CLASSIFIER_THREADS, EPILOGUE_THREADS, ADAMW_THREADS = 512, 256, 256  # of the kernels' sources
COLUMN_WARPS, REDUCE_WARPS, COLUMN_SLAB_ROWS = 8, 32, 64
CODEC_BLOCK, CODEC_WARPS = 256, 8
NULL = np.uint64(0)
GEMM_BIAS, GEMM_GELU, GEMM_DGELU = 1, 2, 3  # enum gemm_epilogue


def kernel_of(kernels, *parts):
    (found,) = [k for name, k in kernels.items() if all(part in name for part in parts)]
    return found


def struct(*fields):
    """Returns the bytes of a C struct of scalars: each at a multiple of its size, the whole padded
    to 8 bytes."""
    raw = b""
    for field in fields:
        raw += bytes(-len(raw) % field.itemsize) + field.tobytes()
    return raw + bytes(-len(raw) % 8)


def error(got, exact, relative, absolute):
    """Returns the largest error, as a multiple of what `relative` and `absolute` allow; NaN where
    an element is missing."""
    return float(
        np.max(np.abs(got.astype(np.float64) - exact) / (relative * np.abs(exact) + absolute), initial=0)
    )


BF16_RELATIVE = 2.0**-8  # one rounding, and fp32 noise that turns a rounding over


def classifier(kernels, rows, v, vp, vector, ld_extra=0):
    draw = np.random.default_rng(v)
    ld = vp + ld_extra
    logits, targets = to_bf16(draw.normal(0, 3, (rows, ld)).astype(np.float32)), draw.integers(
        0, v, rows
    ).astype(np.int32)
    targets[-1] = -1 if rows > 1 else targets[-1]  # a target that counts for nothing
    if rows > 1:
        logits[-1, 0] = to_bf16(np.float32([np.inf]))[0]
    logits[:, v:] = to_bf16(np.full((rows, ld - v), 1e30, np.float32))  # beyond the vocabulary: of no effect
    x, scale = np.minimum(from_bf16(logits)[:, :v].astype(np.float64), 100), 0.25
    p = np.exp(x - x.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    seen, at = targets >= 0, np.maximum(targets, 0)
    losses = np.where(seen, -np.log(p[np.arange(rows), at]), 0)
    gradient = np.where(seen[:, None], (p - (np.arange(v) == targets[:, None])) * scale, 0)
    memory = GlobalMemory(1 << 20)
    put = memory.put(logits), memory.put(np.full(rows, np.nan, np.float32)), memory.put(targets)
    argument = struct(
        *put, *np.array([rows, v, vp, ld], np.int32), np.uint8(1), memory.put(np.float32([scale]))
    )
    run(
        kernel_of(kernels, f"bfloat16Li{vector}E"),
        memory,
        [argument],
        Grid((rows, 1, 1), (CLASSIFIER_THREADS, 1, 1)),
    )
    got = from_bf16(memory.get(put[0], np.uint16, (rows, ld)))
    return {
        "loss": error(memory.get(put[1], np.float32, rows), losses, 1e-6, 1e-5),
        "gradient": error(got[:, :v], gradient, BF16_RELATIVE, 1e-7),
        "padding": error(got[:, v:vp], 0, 0, 1e-30),
    }


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gelu_slope(x):
    h = 1e-6
    return (gelu(x + h) - gelu(x - h)) / (2 * h)


def epilogue(kernels, m, n, ld, kind):
    draw = np.random.default_rng(n)
    d, aux = (to_bf16(draw.normal(0, 2, (m, ld)).astype(np.float32)) for _ in range(2))
    bias = to_bf16(draw.normal(0, 1, n).astype(np.float32))
    acc, pre = from_bf16(d).astype(np.float64), from_bf16(aux).astype(np.float64)
    memory = GlobalMemory(1 << 18)
    put_d, put_aux, put_bias = memory.put(d), memory.put(aux), memory.put(bias)
    shape = struct(*np.array([m, n, ld], np.uint64))
    kernel = kernel_of(kernels, "bfloat16S0_")
    blocks = (m * n + EPILOGUE_THREADS - 1) // EPILOGUE_THREADS
    run(
        kernel,
        memory,
        [put_d, put_aux, put_bias, shape, np.uint32(kind)],
        Grid((blocks, 1, 1), (EPILOGUE_THREADS, 1, 1)),
    )
    got_d, got_aux = (from_bf16(memory.get(p, np.uint16, (m, ld)))[:, :n] for p in (put_d, put_aux))
    with_bias = (pre if kind == GEMM_GELU else acc)[:, :n] + from_bf16(bias)
    if kind == GEMM_BIAS:
        return {"bias": error(got_d, with_bias, BF16_RELATIVE, 1e-30)}
    if kind == GEMM_GELU:
        return {
            "aux": error(got_aux, with_bias, BF16_RELATIVE, 1e-30),
            "gelu": error(got_d, gelu(with_bias), BF16_RELATIVE, 1e-5),
        }
    return {"dgelu": error(got_d, acc[:, :n] * gelu_slope(pre[:, :n]), BF16_RELATIVE, 1e-5)}


def column_sum(kernels, n, c, vector):
    x = to_bf16(np.random.default_rng(c).normal(0, 1, (n, c)).astype(np.float32))
    slabs = min((n + COLUMN_SLAB_ROWS - 1) // COLUMN_SLAB_ROWS, 64)
    memory = GlobalMemory(1 << 20)
    put, partial = memory.put(x), memory.put(np.full((slabs, c), np.nan, np.float32))
    sums = memory.put(np.ones(c, np.float32))
    columns = (c + 32 * vector - 1) // (32 * vector)
    n_arg, c_arg, rows = np.int32(n), np.int32(c), np.int32(slabs)
    threads = (32 * COLUMN_WARPS, 1, 1)
    run(
        kernel_of(kernels, f"bfloat16Li{vector}E"),
        memory,
        [partial, put, n_arg, c_arg],
        Grid((columns, slabs, 1), threads),
    )
    run(
        kernel_of(kernels, "reduce_partials"),
        memory,
        [sums, NULL, partial, rows, c_arg, c_arg],
        Grid(((c + 31) // 32, 1, 1), (32 * REDUCE_WARPS, 1, 1)),
    )
    exact = 1 + from_bf16(x).astype(np.float64).sum(axis=0)
    return {"sum": error(memory.get(sums, np.float32, c), exact, 1e-6, 1e-5)}


def reduce_two(kernels, rows, columns):
    """The sums of dw and of dbias in one launch."""
    partial = np.random.default_rng(columns).normal(0, 1, (rows, 2, columns)).astype(np.float32)
    memory = GlobalMemory(1 << 18)
    put = memory.put(partial)
    sums, second = memory.put(np.ones(columns, np.float32)), memory.put(np.zeros(columns, np.float32))
    arguments = [sums, second, put, np.int32(rows), np.int32(columns), np.int32(2 * columns)]
    grid = Grid(((columns + 31) // 32, 2, 1), (32 * REDUCE_WARPS, 1, 1))
    run(kernel_of(kernels, "reduce_partials"), memory, arguments, grid)
    exact = partial.astype(np.float64).sum(axis=0)
    return {
        "first": error(memory.get(sums, np.float32, columns), 1 + exact[0], 1e-6, 1e-5),
        "second": error(memory.get(second, np.float32, columns), exact[1], 1e-6, 1e-5),
    }


def outer(kernels, n, bits):
    """The codec and the outer step: every bit, against the same operations in fp32."""
    code = np.dtype(f"i{bits // 8}")
    draw = np.random.default_rng(n)
    theta, local, residual, momentum = (draw.normal(0, 1, n).astype(np.float32) for _ in range(4))
    blocks = (n + CODEC_BLOCK - 1) // CODEC_BLOCK
    memory = GlobalMemory(1 << 18)
    put = [memory.put(a) for a in (theta, momentum, local, residual)]
    scales, codes = memory.put(np.full(blocks, np.nan, np.float32)), memory.put(np.zeros(n, code))
    bad = memory.put(np.array([2**64 - 1], np.uint64))
    argument = struct(np.int32(0), put[0], put[2], put[3], scales, codes, bad, np.uint64(0), np.uint64(n))
    per_grid_block = CODEC_BLOCK * CODEC_WARPS
    grid = Grid(((n + per_grid_block - 1) // per_grid_block, 1, 1), (CODEC_WARPS * 32, 1, 1))
    run(kernel_of(kernels, "outer_encode", CODE_NAMES[bits]), memory, [argument], grid)
    scale, q, lost = encoded((theta - local) + residual, np.iinfo(code).max)
    decoded = q.astype(np.float32) * np.repeat(scale, CODEC_BLOCK)[:n]
    differing = {
        "scales": memory.get(scales, np.float32, blocks) != scale,
        "codes": memory.get(codes, code, n) != q,
        "residual": memory.get(put[3], np.float32, n) != lost,
    }
    step_kernel = kernel_of(kernels, "outer_apply", CODE_NAMES[bits])
    differing.update(outer_step(step_kernel, memory, [scales, codes, *put[:3]], theta, momentum, decoded))
    return {name: float(2 * which.any()) for name, which in differing.items()}


CODE_NAMES = {8: "IaE", 16: "IsE"}  # int8_t and int16_t in mangled names


def encoded(d, most):
    """Returns scales of 17 significant bits for blocks of values, the codes, and what was lost."""
    blocks = (d.size + CODEC_BLOCK - 1) // CODEC_BLOCK
    padded = np.pad(np.abs(d), (0, blocks * CODEC_BLOCK - d.size)).reshape(blocks, CODEC_BLOCK)
    bits = (padded.max(axis=1) / np.float32(most)).view(np.uint32)
    scale = ((bits + np.uint32(0x40)) & np.uint32(0xFFFFFF80)).view(np.float32)
    each = np.repeat(scale, CODEC_BLOCK)[: d.size]
    q = np.rint(d * (np.float32(1) / each))
    return scale, q.astype(np.int32), d - q * each


def outer_step(kernel, memory, put, theta, momentum, d):
    """Nesterov's step; `put` holds scales, codes, theta, momentum, local."""
    lr, mu, n = np.float32(0.7), np.float32(0.9), theta.size
    argument = struct(np.int32(0), *put) + struct(np.int32(1), lr, mu) + struct(np.uint64(n))
    run(kernel, memory, [argument], Grid(((n + 255) // 256, 1, 1), (CODEC_BLOCK, 1, 1)))
    momentum = mu * momentum + d
    theta = theta - lr * (d + mu * momentum)
    return {
        "momentum": memory.get(put[3], np.float32, n) != momentum,
        "theta": memory.get(put[2], np.float32, n) != theta,
        "local": memory.get(put[4], np.float32, n) != theta,
    }


def norm_forward(kernels, n, c, kind):
    draw = np.random.default_rng(c)
    a, b = (to_bf16(draw.normal(0.5, 1, (n, c)).astype(np.float32)) for _ in range(2))
    w, bias = (draw.normal(1, 0.2, c).astype(np.float32) for _ in range(2))
    memory = GlobalMemory(1 << 20)
    nan = np.full((n, c), 0x7FC0, np.uint16)
    put_sum, put_out = memory.put(nan), memory.put(nan)
    mean, rstd = (memory.put(np.full(n, np.nan, np.float32)) for _ in range(2))
    argument = struct(
        np.int32(kind),
        put_sum,
        put_out,
        mean,
        rstd,
        memory.put(a),
        memory.put(b),
        memory.put(w),
        memory.put(bias),
        np.float32(1e-5),
        np.int32(n),
        np.int32(c),
    )
    threads = (c // 8 + 31) // 32 * 32
    rows = 256 // threads
    kernel = kernel_of(kernels, "norm_forward", "bfloat16Li8ELi1E")
    run(
        kernel,
        memory,
        [argument],
        Grid(((n + rows - 1) // rows, 1, 1), (threads, rows, 1), 2 * 4 * threads * rows // 32),
    )
    got_sum = memory.get(put_sum, np.uint16, (n, c))
    x = from_bf16(got_sum).astype(np.float64)
    centre = x.mean(axis=1, keepdims=True) if kind == 0 else 0
    exact_rstd = 1 / np.sqrt(((x - centre) ** 2).mean(axis=1, keepdims=True) + 1e-5)
    out = (x - centre) * exact_rstd * w + bias
    return {
        "sum": float(2 * (got_sum != to_bf16(from_bf16(a) + from_bf16(b))).any()),
        "out": error(from_bf16(memory.get(put_out, np.uint16, (n, c))), out, BF16_RELATIVE, 1e-5),
        "rstd": error(memory.get(rstd, np.float32, n), exact_rstd[:, 0], 2e-6, 0),
    }


def norm_backward(kernels, n, c, kind):
    draw = np.random.default_rng(c + 1)
    dx, dout, x = (to_bf16(draw.normal(0, 1, (n, c)).astype(np.float32)) for _ in range(3))
    w = draw.normal(1, 0.2, c).astype(np.float32)
    exact_x, exact_dout = from_bf16(x).astype(np.float64), from_bf16(dout).astype(np.float64)
    mean = exact_x.mean(axis=1) if kind == 0 else np.zeros(n)
    rstd = 1 / np.sqrt(((exact_x - mean[:, None]) ** 2).mean(axis=1) + 1e-5)
    threads = (c // 8 + 31) // 32 * 32
    rows, blocks = 256 // threads, 2
    memory = GlobalMemory(1 << 21)
    put_dx, partial = memory.put(dx), memory.put(np.full((blocks * rows, 2, c), np.nan, np.float32))
    argument = struct(
        np.int32(kind),
        put_dx,
        NULL,
        np.uint64(1),
        memory.put(dout),
        memory.put(x),
        memory.put(w),
        memory.put(mean.astype(np.float32)),
        memory.put(rstd.astype(np.float32)),
        partial,
        np.int32(n),
        np.int32(c),
    )
    kernel = kernel_of(kernels, "norm_backward", "bfloat16Li8ELi1E")
    run(kernel, memory, [argument], Grid((blocks, 1, 1), (threads, rows, 1), 4 * 4 * threads * rows // 32))
    xhat = (exact_x - mean[:, None]) * rstd[:, None]
    g = exact_dout * w
    inner = (
        g
        - xhat * (g * xhat).mean(axis=1, keepdims=True)
        - (g.mean(axis=1, keepdims=True) if kind == 0 else 0)
    )
    exact = from_bf16(dx) + rstd[:, None] * inner
    sums = memory.get(partial, np.float32, (blocks * rows, 2, c)).astype(np.float64).sum(axis=0)
    return {
        "dx": error(from_bf16(memory.get(put_dx, np.uint16, (n, c))), exact, BF16_RELATIVE, 1e-5),
        "dw": error(sums[0], (exact_dout * xhat).sum(axis=0), 1e-5, 1e-5),
        "dbias": error(sums[1], exact_dout.sum(axis=0), 1e-5, 1e-5),
    }


def adamw(kernels, n):
    draw = np.random.default_rng(n)
    p, m, g = (draw.normal(0, 1, n).astype(np.float32) for _ in range(3))
    v = np.abs(draw.normal(0, 1, n)).astype(np.float32)
    ends, decays = np.array([n // 2 - 3, n], np.uint64), np.array([1, 0], np.uint8)
    lr, beta1, beta2, eps, decay, grad_scale, correct1, correct2 = np.float32([1e-2, 0.9, 0.95, 1e-8, 0.1, 0.5, 2, 3])
    constants = np.float32(  # adamw_consts
        [
            beta1,
            beta2,
            (1 - beta1) * grad_scale,
            (1 - beta2) * grad_scale**2,
            lr * correct1,
            np.sqrt(correct2),
            eps,
            1 - lr * decay,
        ]
    )
    memory = GlobalMemory(1 << 19)
    put = [memory.put(a) for a in (p, m, v, g)] + [memory.put(np.zeros(n, np.uint16))]
    arrays = struct(*put, memory.put(ends), memory.put(decays), np.int32(2), np.uint64(n))
    kernel = kernel_of(kernels, "adamw_kernelILi8E")
    grid = Grid(((n + 8 * ADAMW_THREADS - 1) // (8 * ADAMW_THREADS), 1, 1), (ADAMW_THREADS, 1, 1))
    run(kernel, memory, [arrays, constants.tobytes()], grid)
    p, m, v, g = (a.astype(np.float64) for a in (p, m, v, g * grad_scale))
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    p -= lr * (
        m * correct1 / (np.sqrt(v * correct2) + eps) + np.where(np.arange(n) < n // 2 - 3, decay * p, 0)
    )
    got = memory.get(put[0], np.float32, n)
    return {
        "p": error(got, p, 1e-6, 1e-7),
        "m": error(memory.get(put[1], np.float32, n), m, 1e-6, 1e-7),
        "v": error(memory.get(put[2], np.float32, n), v, 1e-6, 1e-7),
        "bf16 copy": float(2 * (memory.get(put[4], np.uint16, n) != to_bf16(got)).any()),
    }

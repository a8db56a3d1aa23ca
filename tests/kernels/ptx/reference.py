"""Causal attention and its gradient in fp64, from the formulas: what the kernels are measured
against."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Shape:
    """The fields of struct attention_shape (kernels/backend.h), in its order."""

    b: int
    t: int
    heads: int
    kv_heads: int
    head_dim: int

    def __str__(self):
        return f"B {self.b}, T {self.t}, heads {self.heads}/{self.kv_heads} of {self.head_dim}"

    @property
    def width(self):
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    def packed(self):
        return np.array([self.b, self.t, self.heads, self.kv_heads, self.head_dim], np.int32).tobytes()


def attention(qkv, dout, s):
    """qkv (B, T, width) and dout (B, T, heads * head_dim), fp64. Returns out, lse (B, heads, T) and
    dqkv."""
    x = qkv.reshape(s.b, s.t, s.heads + 2 * s.kv_heads, s.head_dim).transpose(0, 2, 1, 3)
    g = dout.reshape(s.b, s.t, s.heads, s.head_dim).transpose(0, 2, 1, 3)
    share = s.heads // s.kv_heads
    q, k, v = np.split(x, [s.heads, s.heads + s.kv_heads], axis=1)
    k, v = np.repeat(k, share, axis=1), np.repeat(v, share, axis=1)
    scale = 1 / np.sqrt(s.head_dim)
    scores = np.where(np.tri(s.t, dtype=bool), q @ k.swapaxes(2, 3) * scale, -np.inf)
    largest = scores.max(axis=3, keepdims=True)
    p = np.exp(scores - largest)
    total = p.sum(axis=3, keepdims=True)
    p /= total
    out = p @ v
    dp = g @ v.swapaxes(2, 3)
    ds = p * (dp - (g * out).sum(axis=3, keepdims=True)) * scale
    grouped = lambda d: d.reshape(s.b, s.kv_heads, share, s.t, s.head_dim).sum(axis=2)  # noqa: E731
    dx = np.concatenate([ds @ k, grouped(ds.swapaxes(2, 3) @ q), grouped(p.swapaxes(2, 3) @ g)], axis=1)
    back = lambda y: y.transpose(0, 2, 1, 3).reshape(s.b, s.t, -1)  # noqa: E731
    return back(out), (largest + np.log(total))[..., 0], back(dx)

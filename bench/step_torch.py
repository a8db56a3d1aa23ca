#!/usr/bin/python3
"""PyTorch as a contestant of the step benchmark (protocol: bench/step_peer.h).

usage: step_torch.py LAYERS HEADS CHANNELS VOCAB CONTEXT BATCH THREADS fp32|bf16 eager|compiled
The same work as replica_step: forward, backward, clipping of the global norm, AdamW with two decay groups. Attention is
scaled_dot_product_attention and AdamW the fused one, where this PyTorch has them. Ends with status 3 if it cannot
compile: PyTorch before 2.0.
"""
import inspect
import os
import resource
import statistics
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.c_attn, self.c_proj = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.mlp_fc, self.mlp_proj = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x, mask):
        b, t, c = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        x = x + self.c_proj(self.attend(q, k, v, mask).transpose(1, 2).reshape(b, t, c))
        return x + self.mlp_proj(F.gelu(self.mlp_fc(self.ln_2(x)), approximate="tanh"))

    def attend(self, q, k, v, mask):
        scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        return (scores + mask).softmax(-1) @ v


class GPT2(nn.Module):
    def __init__(self, layers, heads, channels, vocab, context, block=Block):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, channels), nn.Embedding(context, channels)
        self.blocks = nn.ModuleList(block(channels, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(channels)
        self.register_buffer("mask", torch.full((context, context), float("-inf")).triu(1))
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x, self.mask)
        logits = self.ln_f(x) @ self.wte.weight.T
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def decay_groups(model):
    return [
        {"params": [p for p in model.parameters() if p.dim() == 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
    ]


def serve(step, warm_up, about):
    """Answers the protocol after so many steps that are not measured."""
    for _ in range(warm_up):
        step()
    print("ready", about, flush=True)
    for line in sys.stdin:
        wall, cpu = [], []
        for _ in range(int(line)):
            began, cpu_began = time.monotonic(), time.process_time()
            step()
            cpu.append(time.process_time() - cpu_began)
            wall.append(time.monotonic() - began)
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{1000 * statistics.median(wall):.4f} {1000 * statistics.median(cpu):.4f} {rss:.1f}", flush=True)


class FusedBlock(Block):
    def attend(self, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def make_optimizer(model):
    has_fused = "fused" in inspect.signature(torch.optim.AdamW).parameters
    groups, options = decay_groups(model), {"lr": 1e-4, "betas": (0.9, 0.95)}
    if has_fused:
        try:
            return torch.optim.AdamW(groups, fused=True, **options), "fused AdamW"
        except RuntimeError:  # fused for GPUs only: before 2.4
            groups = decay_groups(model)
    return torch.optim.AdamW(groups, **options), "AdamW"


def main():
    layers, heads, channels, vocab, context, batch, threads = map(int, sys.argv[1:8])
    dtype, mode = sys.argv[8:]
    if mode == "compiled" and not hasattr(torch, "compile"):
        sys.exit(3)
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    has_fused_attention = hasattr(F, "scaled_dot_product_attention")
    model = GPT2(layers, heads, channels, vocab, context, FusedBlock if has_fused_attention else Block)
    optimizer, about_optimizer = make_optimizer(model)
    tokens, targets = torch.randint(0, min(vocab, 256), (2, batch, context))
    forward = torch.compile(model) if mode == "compiled" else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype == "bf16"):
            loss = forward(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    attention = "SDPA" if has_fused_attention else "own attention"
    malloc = "tuned malloc" if "GLIBC_TUNABLES" in os.environ else "default malloc"
    about = [f"PyTorch {torch.__version__}", mode, attention, about_optimizer, malloc]
    serve(step, 3, ", ".join(about))


if __name__ == "__main__":
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(os.path.dirname(__file__), "../.cache/inductor"))
    main()

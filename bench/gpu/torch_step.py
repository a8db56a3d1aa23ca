#!/usr/bin/env python3
"""PyTorch's training step on a GPU, compiled and with fused attention: a JSON line for each measured step.

usage: torch_step.py LAYERS HEADS CHANNELS VOCAB CONTEXT BATCH
The work of one of our steps: forward, backward, clipping of the global norm, AdamW with two decay groups; bf16 autocast
over fp32 weights, TF32 allowed, torch.compile, scaled_dot_product_attention, fused AdamW: each at its fastest.
"""
import json
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from step_torch import Block, decay_groups

WARM_UP, STEPS = 5, 15


class FusedBlock(Block):
    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.c_proj(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp_proj(F.gelu(self.mlp_fc(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, layers, heads, channels, vocab, context):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, channels), nn.Embedding(context, channels)
        self.blocks = nn.ModuleList(FusedBlock(channels, heads) for _ in range(layers))
        self.ln_f = nn.LayerNorm(channels)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln_f(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def main():
    layers, heads, channels, vocab, context, batch = map(int, sys.argv[1:7])
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    model = GPT2(layers, heads, channels, vocab, context).cuda()
    optimizer = torch.optim.AdamW(decay_groups(model), lr=1e-4, betas=(0.9, 0.95), fused=True)
    compiled = torch.compile(model)
    tokens, targets = torch.randint(0, min(vocab, 256), (2, batch, context), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = compiled(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        torch.cuda.synchronize()

    print(f"PyTorch {torch.__version__} {torch.cuda.get_device_name()}", file=sys.stderr, flush=True)
    for i in range(WARM_UP + STEPS):
        begin = time.monotonic()
        step()
        name = "step_ms" if i >= WARM_UP else "warm_up_ms"
        print(json.dumps({name: (time.monotonic() - begin) * 1e3}), flush=True)


if __name__ == "__main__":
    main()

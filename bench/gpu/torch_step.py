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
from step_torch import GPT2, FusedBlock, decay_groups

WARM_UP, STEPS = 5, 15


def main():
    layers, heads, channels, vocab, context, batch = map(int, sys.argv[1:7])
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    model = GPT2(layers, heads, channels, vocab, context, FusedBlock).cuda()
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

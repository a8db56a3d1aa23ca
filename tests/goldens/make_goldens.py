#!/usr/bin/python3
"""Makes gpt2_tiny.bin: what PyTorch says a tiny GPT-2 computes, for tests/worker/test_train_goldens.c.

Run with Debian's python3-torch:  /usr/bin/python3 tests/goldens/make_goldens.py
Weights start as fp32 numbers; everything is computed in fp64, so that the file holds the truth and the test's
tolerances are our own rounding. Records: u16 length and name, u8 kind (0 fp32, 1 int32), u32 count, values; all
little-endian, after the magic "RVGOLDEN" and a u32 count of records.
"""
import math
import os
import struct

import torch
import torch.nn.functional as F

LAYERS, HEADS, CHANNELS, VOCAB, CONTEXT, BATCH = 2, 3, 24, 65, 16, 2
STEPS, WARMUP, PEAK_LR, MIN_RATIO = 10, 3, 3e-3, 0.1
# The gradient of the key biases is zero but for rounding, which Adam with a tiny eps would blow up.
BETAS, EPS, DECAY, CLIP = (0.9, 0.95), 1e-5, 0.1, 2.1
IGNORED = -1


def tensors():
    """Name and shape of every parameter, in the order of Rivulet's flat block."""
    c = CHANNELS
    yield "wte.weight", (VOCAB, c)
    yield "wpe.weight", (CONTEXT, c)
    for layer in range(LAYERS):
        for name, shape in (
            ("ln_1.weight", (c,)), ("ln_1.bias", (c,)),
            ("attn.c_attn.weight", (3 * c, c)), ("attn.c_attn.bias", (3 * c,)),
            ("attn.c_proj.weight", (c, c)), ("attn.c_proj.bias", (c,)),
            ("ln_2.weight", (c,)), ("ln_2.bias", (c,)),
            ("mlp.c_fc.weight", (4 * c, c)), ("mlp.c_fc.bias", (4 * c,)),
            ("mlp.c_proj.weight", (c, 4 * c)), ("mlp.c_proj.bias", (c,)),
        ):
            yield f"h.{layer}.{name}", shape
    yield "ln_f.weight", (c,)
    yield "ln_f.bias", (c,)


def initial_weights(generator):
    weights = {}
    for name, shape in tensors():
        noise = torch.randn(shape, generator=generator, dtype=torch.float32)
        weights[name] = 1 + 0.1 * noise if ".ln_" in "." + name and name.endswith("weight") else 0.15 * noise
    return {name: w.double().requires_grad_() for name, w in weights.items()}


def logits_of(w, tokens):
    b, t = tokens.shape
    norm = lambda x, name: F.layer_norm(x, (CHANNELS,), w[name + ".weight"], w[name + ".bias"], 1e-5)
    linear = lambda x, name: F.linear(x, w[name + ".weight"], w[name + ".bias"])
    x = w["wte.weight"][tokens] + w["wpe.weight"][:t]
    causal = torch.ones(t, t, dtype=torch.bool).tril()
    for layer in range(LAYERS):
        h = f"h.{layer}."
        qkv = linear(norm(x, h + "ln_1"), h + "attn.c_attn").view(b, t, 3, HEADS, CHANNELS // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(CHANNELS // HEADS)
        attention = scores.masked_fill(~causal, -math.inf).softmax(-1) @ v
        x = x + linear(attention.transpose(1, 2).reshape(b, t, CHANNELS), h + "attn.c_proj")
        wide = linear(norm(x, h + "ln_2"), h + "mlp.c_fc")
        gelu = 0.5 * wide * (1 + torch.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
        x = x + linear(gelu, h + "mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight"].T


def loss_of(w, tokens, targets):
    losses = F.cross_entropy(logits_of(w, tokens).flatten(0, 1), targets.flatten(), ignore_index=IGNORED,
                             reduction="sum")
    return losses / targets.numel()  # the mean over all positions, ignored ones counting as zero


def lr_at(step):
    if step < WARMUP:
        return PEAK_LR * (step + 1) / WARMUP
    progress = (step + 1 - WARMUP) / (STEPS - WARMUP)
    floor = PEAK_LR * MIN_RATIO
    return floor + (PEAK_LR - floor) * 0.5 * (1 + math.cos(math.pi * progress))


def train(w, tokens, targets):
    """Ten AdamW steps; returns loss, gradient norm before clipping, and learning rate of each."""
    matrices = [p for p in w.values() if p.dim() == 2]
    vectors = [p for p in w.values() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK_LR, betas=BETAS, eps=EPS)
    losses, norms, rates = [], [], []
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = lr_at(step)
        optimizer.zero_grad()
        loss = loss_of(w, tokens[step], targets[step])
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(w.values(), CLIP).item())
        optimizer.step()
        losses.append(loss.item())
        rates.append(lr_at(step))
    assert any(n > CLIP for n in norms) and any(n < CLIP for n in norms), "both sides of the clip must be seen"
    return losses, norms, rates


class Golden:
    def __init__(self):
        self.records = []

    def add(self, name, values):
        values = torch.as_tensor(values).detach().flatten()
        kind = 0 if values.is_floating_point() else 1
        data = values.float() if kind == 0 else values.int()
        fmt = "<%d%s" % (data.numel(), "f" if kind == 0 else "i")
        head = struct.pack("<H", len(name)) + name.encode() + struct.pack("<BI", kind, data.numel())
        self.records.append(head + struct.pack(fmt, *data.tolist()))

    def write(self, path):
        with open(path, "wb") as f:
            f.write(b"RVGOLDEN" + struct.pack("<I", len(self.records)) + b"".join(self.records))


def main():
    generator = torch.Generator().manual_seed(20)
    w = initial_weights(generator)
    sequences = torch.randint(0, VOCAB, (STEPS, BATCH, CONTEXT + 1), generator=generator)
    tokens, targets = sequences[:, :, :-1].contiguous(), sequences[:, :, 1:].contiguous()
    targets[0, 1, 5] = IGNORED
    golden = Golden()
    golden.add("shape", [LAYERS, HEADS, CHANNELS, VOCAB, CONTEXT, BATCH, STEPS, WARMUP])
    golden.add("hyper", torch.tensor([PEAK_LR, MIN_RATIO, *# The gradient of the key biases is zero but for rounding, which Adam with a tiny eps would blow up.
BETAS, EPS, DECAY, CLIP], dtype=torch.float64))
    golden.add("tokens", tokens)
    golden.add("targets", targets)
    for name, p in w.items():
        golden.add("init/" + name, p)
    golden.add("logits", logits_of(w, tokens[0]))
    loss = loss_of(w, tokens[0], targets[0])
    loss.backward()
    for name, p in w.items():
        golden.add("grad/" + name, p.grad)
    losses, norms, rates = train(w, tokens, targets)
    for name, p in w.items():
        golden.add("final/" + name, p)
    golden.add("losses", torch.tensor(losses))
    golden.add("norms", torch.tensor(norms))
    golden.add("rates", torch.tensor(rates))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpt2_tiny.bin")
    golden.write(path)
    print(f"{path}: {os.path.getsize(path)} bytes, losses {losses[0]:.4f} -> {losses[-1]:.4f}, norms", norms)


if __name__ == "__main__":
    main()

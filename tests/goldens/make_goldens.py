#!/usr/bin/python3
"""Makes gpt2_tiny.bin and llama_tiny.bin: what PyTorch says a tiny model computes, for
tests/train/test_train_goldens.c.

Run with Debian's python3-torch:  /usr/bin/python3 tests/goldens/make_goldens.py
Weights start as fp32 numbers; everything is computed in fp64, so that the files hold the truth and the test's
tolerances are our own rounding. Records: u16 length and name, u8 kind (0 fp32, 1 int32), u32 count, values; all
little-endian, after the magic "RVGOLDEN" and a u32 count of records.
"""
import math
import os
import struct

import torch
import torch.nn.functional as F

LAYERS, CHANNELS, VOCAB, CONTEXT, BATCH = 2, 24, 65, 16, 2
STEPS, WARMUP, PEAK_LR, MIN_RATIO = 10, 3, 3e-3, 0.1
# The gradient of GPT-2's key biases is zero but for rounding, which Adam with a tiny eps would blow up.
BETAS, EPS, DECAY = (0.9, 0.95), 1e-5, 0.1
IGNORED = -1


def causal_attention(q, k, v):
    """(b, heads, t, head_dim) each; returns (b, t, heads * head_dim)."""
    b, heads, t, size = q.shape
    scores = q @ k.transpose(-1, -2) / math.sqrt(size)
    causal = torch.ones(t, t, dtype=torch.bool).tril()
    out = scores.masked_fill(~causal, -math.inf).softmax(-1) @ v
    return out.transpose(1, 2).reshape(b, t, heads * size)


class Gpt2:
    name, heads, clip, seed = "gpt2", 3, 2.1, 20

    def add_shape(self, golden):
        pass

    def tensors(self):
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

    def is_norm(self, name):
        return ".ln_" in "." + name and name.endswith("weight")

    def logits(self, w, tokens):
        b, t = tokens.shape
        norm = lambda x, name: F.layer_norm(x, (CHANNELS,), w[name + ".weight"], w[name + ".bias"], 1e-5)
        linear = lambda x, name: F.linear(x, w[name + ".weight"], w[name + ".bias"])
        x = w["wte.weight"][tokens] + w["wpe.weight"][:t]
        for layer in range(LAYERS):
            h = f"h.{layer}."
            qkv = linear(norm(x, h + "ln_1"), h + "attn.c_attn").view(b, t, 3, self.heads, CHANNELS // self.heads)
            x = x + linear(causal_attention(*qkv.permute(2, 0, 3, 1, 4)), h + "attn.c_proj")
            wide = linear(norm(x, h + "ln_2"), h + "mlp.c_fc")
            gelu = 0.5 * wide * (1 + torch.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
            x = x + linear(gelu, h + "mlp.c_proj")
        return norm(x, "ln_f") @ w["wte.weight"].T


class Llama:
    """Grouped queries, a classifier of its own, and a rotation whose three pairs of channels meet the three cases of
    llama3 scaling."""
    name, heads, kv_heads, inner, clip, seed = "llama", 4, 2, 40, 3.2, 21
    theta, factor, low_freq, high_freq, original = rope = [100.0, 8.0, 0.3, 2.0, 16.0]
    eps = 1e-6

    def add_shape(self, golden):
        golden.add("groups", [self.kv_heads, self.inner])
        golden.add("rope", torch.tensor(self.rope, dtype=torch.float64))

    def tensors(self):
        c, kv = CHANNELS, CHANNELS // self.heads * self.kv_heads
        yield "model.embed_tokens.weight", (VOCAB, c)
        for layer in range(LAYERS):
            for name, shape in (
                ("input_layernorm.weight", (c,)),
                ("self_attn.q_proj.weight", (c, c)), ("self_attn.k_proj.weight", (kv, c)),
                ("self_attn.v_proj.weight", (kv, c)), ("self_attn.o_proj.weight", (c, c)),
                ("post_attention_layernorm.weight", (c,)),
                ("mlp.gate_proj.weight", (self.inner, c)), ("mlp.up_proj.weight", (self.inner, c)),
                ("mlp.down_proj.weight", (c, self.inner)),
            ):
                yield f"model.layers.{layer}.{name}", shape
        yield "model.norm.weight", (c,)
        yield "lm_head.weight", (VOCAB, c)

    def is_norm(self, name):
        return "norm" in name

    def frequencies(self):
        size = CHANNELS // self.heads
        found, cases = [], set()
        for i in range(size // 2):
            f = self.theta ** (-2 * i / size)
            wavelength = 2 * math.pi / f
            if wavelength > self.original / self.low_freq:
                cases.add("stretched")
                f /= self.factor
            elif wavelength >= self.original / self.high_freq:
                cases.add("mixed")
                smooth = (self.original / wavelength - self.low_freq) / (self.high_freq - self.low_freq)
                f = (1 - smooth) * f / self.factor + smooth * f
            else:
                cases.add("kept")
            found.append(f)
        assert len(cases) == 3
        return torch.tensor(found, dtype=torch.float64)

    def rotate(self, x):
        angles = torch.outer(torch.arange(x.shape[2], dtype=torch.float64), self.frequencies())
        cos, sin = torch.cat([angles.cos()] * 2, -1), torch.cat([angles.sin()] * 2, -1)
        half = x.shape[-1] // 2
        return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

    def attention(self, w, h, x):
        b, t, _ = x.shape
        split = lambda name, n: F.linear(x, w[f"{h}{name}_proj.weight"]).view(b, t, n, -1).transpose(1, 2)
        q, k, v = split("q", self.heads), split("k", self.kv_heads), split("v", self.kv_heads)
        share = self.heads // self.kv_heads
        k, v = self.rotate(k).repeat_interleave(share, 1), v.repeat_interleave(share, 1)
        return F.linear(causal_attention(self.rotate(q), k, v), w[h + "o_proj.weight"])

    def logits(self, w, tokens):
        norm = lambda x, name: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * w[name + ".weight"]
        x = w["model.embed_tokens.weight"][tokens]
        for layer in range(LAYERS):
            h = f"model.layers.{layer}."
            x = x + self.attention(w, h + "self_attn.", norm(x, h + "input_layernorm"))
            z = norm(x, h + "post_attention_layernorm")
            gate, up = (F.linear(z, w[f"{h}mlp.{name}_proj.weight"]) for name in ("gate", "up"))
            x = x + F.linear(F.silu(gate) * up, w[h + "mlp.down_proj.weight"])
        return norm(x, "model.norm") @ w["lm_head.weight"].T


def initial_weights(model, generator):
    weights = {}
    for name, shape in model.tensors():
        noise = torch.randn(shape, generator=generator, dtype=torch.float32)
        weights[name] = 1 + 0.1 * noise if model.is_norm(name) else 0.15 * noise
    return {name: w.double().requires_grad_() for name, w in weights.items()}


def loss_of(model, w, tokens, targets):
    losses = F.cross_entropy(model.logits(w, tokens).flatten(0, 1), targets.flatten(), ignore_index=IGNORED,
                             reduction="sum")
    return losses / targets.numel()  # the mean over all positions, ignored ones counting as zero


def lr_at(step):
    if step < WARMUP:
        return PEAK_LR * (step + 1) / WARMUP
    progress = (step + 1 - WARMUP) / (STEPS - WARMUP)
    floor = PEAK_LR * MIN_RATIO
    return floor + (PEAK_LR - floor) * 0.5 * (1 + math.cos(math.pi * progress))


def train(model, w, tokens, targets):
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
        loss = loss_of(model, w, tokens[step], targets[step])
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(w.values(), model.clip).item())
        optimizer.step()
        losses.append(loss.item())
        rates.append(lr_at(step))
    assert max(norms) > model.clip > min(norms), f"both sides of the clip must be seen: {norms}"
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


def make(model):
    generator = torch.Generator().manual_seed(model.seed)
    w = initial_weights(model, generator)
    sequences = torch.randint(0, VOCAB, (STEPS, BATCH, CONTEXT + 1), generator=generator)
    tokens, targets = sequences[:, :, :-1].contiguous(), sequences[:, :, 1:].contiguous()
    targets[0, 1, 5] = IGNORED
    golden = Golden()
    golden.add("shape", [LAYERS, model.heads, CHANNELS, VOCAB, CONTEXT, BATCH, STEPS, WARMUP])
    golden.add("hyper", torch.tensor([PEAK_LR, MIN_RATIO, *BETAS, EPS, DECAY, model.clip], dtype=torch.float64))
    model.add_shape(golden)
    golden.add("tokens", tokens)
    golden.add("targets", targets)
    for name, p in w.items():
        golden.add("init/" + name, p)
    golden.add("logits", model.logits(w, tokens[0]))
    loss_of(model, w, tokens[0], targets[0]).backward()
    for name, p in w.items():
        golden.add("grad/" + name, p.grad)
    losses, norms, rates = train(model, w, tokens, targets)
    for name, p in w.items():
        golden.add("final/" + name, p)
    golden.add("losses", torch.tensor(losses))
    golden.add("norms", torch.tensor(norms))
    golden.add("rates", torch.tensor(rates))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), model.name + "_tiny.bin")
    golden.write(path)
    print(f"{path}: {os.path.getsize(path)} bytes, losses {losses[0]:.4f} -> {losses[-1]:.4f}, norms", norms)


if __name__ == "__main__":
    make(Gpt2())
    make(Llama())

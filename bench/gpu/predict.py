"""A model of the time of a training step on a GPU, row by row, for comparison with measured results.

Every row is work over a rate. The rates are estimates, not measurements: products by the kind of layer, attention, and
bytes at the memory's speed; the kernels' shares of that speed come from counts of their instructions.
"""
from models import find
from results import latest, read

TERA = 1e12
GRAPH_GAP_US = 1.0
KERNELS_PER_BLOCK, KERNELS_BESIDE = 33, 20
LOGITS_BYTES = 256 << 20      # of a chunk of the classifier
TILE_ROWS = 256               # of which it is a multiple
CLASSIFIER_NS = 0.0028 * 224 / 401  # a logit, bound by instructions: 224 for 8 logits; 401 took 0.0028 ns
PARTIAL_ROWS = 1024           # of the norms' backward
NEAR_PEAK, BIAS_SHARE = 0.95, 0.75  # of the memory's speed: long streams; bias gradients
NORM_SHARE = 0.88             # norms forward


class Rates:
    """`products`: Tflop/s of qkv forward, square, GELU, deep, weight gradients and the head; `attention`: forward and
    backward; `norm_backward`: its share of the memory's speed; `reduce_us`: one reduction; `idle_ms`: between steps."""

    def __init__(self, products, attention, norm_backward, reduce_us, idle_ms):
        self.qkv, self.square, self.gelu, self.deep, self.weights, self.head = (x * TERA for x in products)
        self.forward, self.backward = (x * TERA for x in attention)
        self.norm_backward, self.reduce_s, self.idle_ms = norm_backward, reduce_us * 1e-6, idle_ms


class Machine:
    def __init__(self, name, peak_tflops, bytes_per_s, rates):
        self.name, self.peak_tflops, self.bytes_per_s, self.rates = name, peak_tflops, bytes_per_s, rates


SMALL, LARGE = (600, 500, 560, 620, 450, 580), (610, 570, 590, 620, 570, 600)
MACHINES = [
    Machine("H200", 989, 4.2e12, {
        ("124M", 16): Rates(SMALL, (280, 230), 0.62, 10, 0.9),
        ("350M", 16): Rates((605, 520, 570, 620, 500, 590), (300, 250), 0.65, 10, 0.9),
        ("774M", 8): Rates((608, 545, 580, 620, 540, 595), (310, 265), 0.68, 10, 0.7),
        ("1558M", 8): Rates(LARGE, (330, 280), 0.70, 10, 0.7),
        ("124M", 64): Rates((620, 500, 560, 620, 520, 580), (300, 250), 0.62, 10, 1.8),
        ("1558M", 32): Rates((650, 620, 630, 660, 620, 640), (340, 290), 0.70, 10, 1.2),
    }),
    Machine("4090", 165, 0.94e12, {
        ("124M", 16): Rates((146, 146, 146, 146, 139, 136), (103, 77), 0.68, 4, 1.0),
    }),
    Machine("H100", 989, 2.95e12, {
        ("124M", 16): Rates(SMALL, (280, 230), 0.70, 11, 0.9),
        ("1558M", 8): Rates(LARGE, (330, 280), 0.75, 11, 0.7),
    }),
]


def _block_products(model, n, r, speed):
    """A block has 3 + 1 + 4 + 4 products of n x C x C: qkv, projection, fc and the MLP's projection."""
    unit = 2 * n * model.channels**2 * model.layers
    return [("products of the blocks: forward", unit * (3 / r.qkv + 1 / r.square + 4 / r.gelu + 4 / r.deep)),
            ("products of the blocks: dX", unit * (3 / r.deep + 1 / r.square + 4 / r.deep + 4 / r.gelu)),
            # The rates are those of products that add to dW; it is written, and not read.
            ("products of the blocks: dW", unit * 12 / r.weights - 48 * model.channels**2 * model.layers / speed)]


def _head(model, n, r, speed):
    """Three products, in equal chunks of whole tiles; the first writes dW, each other reads and writes it once more."""
    padded = -(-model.vocab // 128) * 128
    chunks = -(-n // (LOGITS_BYTES // (2 * padded) // TILE_ROWS * TILE_ROWS))
    products = 2 * n * model.vocab * model.channels * (1 / r.qkv + 2 / r.head)
    return [("head: three products", products),
            ("head: dW once more for each chunk", (8 * chunks - 4) * model.vocab * model.channels / speed),
            ("classifier kernel", n * model.vocab * max(4 / speed, CLASSIFIER_NS * 1e-9))]


def _attention(model, batch, r):
    """The causal half of 2 products forward, 5 backward. (cuDNN before 9.6 also needs its sum of dQ cleared.)"""
    forward = 2 * batch * model.context**2 * model.channels * model.layers
    return [("attention forward", forward / r.forward), ("attention backward", 2.5 * forward / r.backward)]


def _norms(model, n, r, speed):
    norms, c = 2 * model.layers + 1, model.channels
    partial = PARTIAL_ROWS * 2 * c * 8 / speed + r.reduce_s
    biases = 9 * c * 2 * n * model.layers / (BIAS_SHARE * speed) + 4 * model.layers * 4e-6
    return [("norms forward", norms * n * c * 8 / (NORM_SHARE * speed)),
            ("norms backward", norms * n * c * 8 / (r.norm_backward * speed)),
            ("norms: partial sums", norms * partial), ("bias gradients", biases),
            ("embedding", 16 * n * c / speed)]


def _update(model, r, speed):
    p = model.parameters()
    sums = model.context * model.channels + 13 * model.channels * model.layers  # what is added to, not written
    return [("AdamW", 30 * p / (NEAR_PEAK * speed)), ("clearing gradients", 4 * sums / speed),
            ("norm of the gradient", 4 * p / (NEAR_PEAK * speed)), ("idle between steps", r.idle_ms * 1e-3)]


def rows(machine, model, batch):
    """Returns [(what, ms)] of one step."""
    r, speed, n = machine.rates[(model.name, batch)], machine.bytes_per_s, batch * model.context
    gaps = (KERNELS_PER_BLOCK * model.layers + KERNELS_BESIDE) * GRAPH_GAP_US * 1e-6
    found = _block_products(model, n, r, speed) + _head(model, n, r, speed) + _attention(model, batch, r)
    found += _norms(model, n, r, speed) + [("gaps between kernels", gaps)] + _update(model, r, speed)
    return [(what, s * 1e3) for what, s in found]


def total_ms(machine, model, batch):
    return sum(ms for _, ms in rows(machine, model, batch))


# --- measured ---

# Which of bench/phase_backend.h's phases a row is.
PHASES = {
    "products of the blocks: forward": ("qkv forward", "attention projection forward", "fc + GELU forward",
                                        "MLP projection forward"),
    "products of the blocks: dX": ("qkv dX", "attention projection dX", "fc dX", "MLP projection dX + GELU'"),
    "products of the blocks: dW": ("qkv dW", "attention projection dW", "fc dW", "MLP projection dW"),
    "attention forward": ("attention forward",), "attention backward": ("attention backward",),
    "norms forward": ("residual + norm forward",), "norms backward": ("norm backward",),
    "embedding": ("embedding, both ways",), "head: three products": ("classifier, both ways",),
    "AdamW": ("AdamW + clipping",), "clearing gradients": ("clearing gradients",),
    "norm of the gradient": ("norm of the gradient",),
}
JOINED = {"norms: partial sums": "norms backward", "bias gradients": "products of the blocks: dW",
          "head: dW once more for each chunk": "head: three products", "classifier kernel": "head: three products"}


def measured_phases(items, name):
    data = (items.get(("speed", "phases of " + name)) or {}).get("data") or {}
    return {p["phase"]: p["ms"] for p in data.get("phases", [])}


def beside(predicted, phases):
    """Returns [(what, predicted ms, measured ms or None)], rows that one phase measures together joined."""
    sums = {}
    for what, ms in predicted:
        key = JOINED.get(what, what) if phases else what
        sums[key] = sums.get(key, 0) + ms
    found = []
    for what, ms in sums.items():
        parts = [phases[p] for p in PHASES.get(what, ()) if p in phases]
        found.append((what, ms, sum(parts) if parts else None))
    return found


def _machine_of(items):
    gpu = ((items.get(("inventory", "machine")) or {}).get("data") or {}).get("gpu") or ""
    return next((m for m in MACHINES if m.name in gpu), None)


def lines(machine, model, batch, items):
    name = "%s B%d" % (model.name, batch)
    measured = (items.get(("speed", name)) or {}).get("data") or {}
    total, real = total_ms(machine, model, batch), measured.get("ms")
    out = ["%s, GPT-2 %s" % (machine.name, name)]
    for what, ms, found in beside(rows(machine, model, batch), measured_phases(items, name)):
        out.append("  %-36s %8.2f ms %5.1f %%%s" % (what, ms, 100 * ms / total,
                                                    "" if found is None else "  measured %8.2f ms" % found))
    out.append("  %-36s %8.2f ms        MFU %.0f %%%s" % (
        "total", total, 100 * model.mfu(batch, total, machine.peak_tflops),
        "  measured %.2f ms, MFU %.1f %%" % (real, 100 * model.mfu(batch, real, machine.peak_tflops)) if real else ""))
    return out


def main(measured=None):
    items = latest(read(measured)) if measured else {}
    met = _machine_of(items)
    for machine in MACHINES:
        for name, batch in machine.rates:
            print("\n".join(lines(machine, find(name), batch, items if machine is met else {})) + "\n")
    if measured and not met:
        print("%s: no results of a GPU that the model knows (%s)" % (measured,
                                                                    ", ".join(m.name for m in MACHINES)))
    return 0

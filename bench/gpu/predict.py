"""A model of the time of a training step on a GPU, row by row, for comparison with measured results.

Every row is work over a rate. The rates are estimates, not measurements: products by the kind of layer, attention, and
bytes at the memory's speed; the kernels' shares of that speed come from counts of their instructions.
"""
from models import find
from results import latest, read

TERA = 1e12
GRAPH_GAP_US = 1.0
KERNELS_PER_BLOCK, KERNELS_BESIDE = 29, 20
CLASSIFIER_NS = 0.0028 * 115 / 401  # a logit, where instructions bind it: 115 for 8 logits; 401 took 0.0028 ns
PARTIAL_ROWS = 1024           # of the norms' backward
NEAR_PEAK = 0.95              # of the memory's speed: long streams
BIAS_US = 2.5                 # a kernel that adds one vector to another
# Between steps: the host wakes and enqueues AdamW, behind the sum of the losses. It reads and sorts the next tokens
# while AdamW runs. Sorting took 5 ns a token on an EPYC, adding a loss a nanosecond; the rest is guessed.
WAKE_MS, LOSS_NS, PREPARE_NS = 0.1, 1.3, 8
NORM_SHARE = 0.88             # norms forward


class Rates:
    """`products`: Tflop/s of qkv forward, square, GELU, deep, weight gradients and the head; `attention`: forward and
    backward; `norm_backward`: its share of the memory's speed; `reduce_us`: one reduction."""

    def __init__(self, products, attention, norm_backward, reduce_us):
        self.qkv, self.square, self.gelu, self.deep, self.weights, self.head = (x * TERA for x in products)
        self.forward, self.backward = (x * TERA for x in attention)
        self.norm_backward, self.reduce_s = norm_backward, reduce_us * 1e-6


class Machine:
    """`logit_bytes`: of the classifier, which reads a row twice: 4 if the second reading is from L2."""

    def __init__(self, name, peak_tflops, bytes_per_s, logit_bytes, rates):
        self.name, self.peak_tflops, self.bytes_per_s = name, peak_tflops, bytes_per_s
        self.logit_bytes, self.rates = logit_bytes, rates


def between(low, high, share):
    return tuple(a + (b - a) * share for a, b in zip(low, high))


SMALL, LARGE = (600, 500, 560, 620, 450, 580), (610, 570, 590, 620, 570, 600)
# Four times the sequences: of 124M, and of 1558M. The two models between have those between, by their channels.
SMALL_4, LARGE_4 = (620, 500, 560, 620, 520, 580), (650, 620, 630, 660, 620, 640)
SMALL_4_ATTENTION, LARGE_4_ATTENTION = (300, 250), (340, 290)
MACHINES = [
    Machine("H200", 989, 4.2e12, 5, {
        ("124M", 16): Rates(SMALL, (280, 230), 0.62, 6),
        ("350M", 16): Rates((605, 520, 570, 620, 500, 590), (300, 250), 0.65, 6),
        ("774M", 8): Rates((608, 545, 580, 620, 540, 595), (310, 265), 0.68, 6),
        ("1558M", 8): Rates(LARGE, (330, 280), 0.70, 6),
        ("124M", 64): Rates(SMALL_4, SMALL_4_ATTENTION, 0.62, 6),
        ("350M", 64): Rates(between(SMALL_4, LARGE_4, 0.31), between(SMALL_4_ATTENTION, LARGE_4_ATTENTION, 0.31), 0.65, 6),
        ("774M", 32): Rates(between(SMALL_4, LARGE_4, 0.62), between(SMALL_4_ATTENTION, LARGE_4_ATTENTION, 0.62), 0.68, 6),
        ("1558M", 32): Rates(LARGE_4, LARGE_4_ATTENTION, 0.70, 6),
    }),
    Machine("4090", 165, 0.94e12, 4, {
        ("124M", 16): Rates((146, 146, 146, 146, 139, 136), (103, 77), 0.68, 4),
    }),
    Machine("H100", 989, 2.95e12, 5, {
        ("124M", 16): Rates(SMALL, (280, 230), 0.70, 6),
        ("1558M", 8): Rates(LARGE, (330, 280), 0.75, 6),
    }),
]


def _block_products(model, n, r, speed):
    """A block has 3 + 1 + 4 + 4 products of n x C x C: qkv, projection, fc and the MLP's projection."""
    unit = 2 * n * model.channels**2 * model.layers
    return [("products of the blocks: forward", unit * (3 / r.qkv + 1 / r.square + 4 / r.gelu + 4 / r.deep)),
            ("products of the blocks: dX", unit * (3 / r.deep + 1 / r.square + 4 / r.deep + 4 / r.gelu)),
            # The rates are those of products that add to dW; it is written, and not read.
            ("products of the blocks: dW", unit * 12 / r.weights - 48 * model.channels**2 * model.layers / speed)]


def _head(model, n, r, machine):
    """Three products, of all logits at once: dW is written, and not read."""
    speed = machine.bytes_per_s
    products = 2 * n * model.vocab * model.channels * (1 / r.qkv + 2 / r.head)
    return [("head: three products", products),
            ("head: dW", 4 * model.vocab * model.channels / speed),
            ("classifier kernel", n * model.vocab * max(machine.logit_bytes / speed, CLASSIFIER_NS * 1e-9))]


def _attention(model, batch, r):
    """The causal half of 2 products forward, 5 backward. (cuDNN before 9.6 also needs its sum of dQ cleared.)"""
    forward = 2 * batch * model.context**2 * model.channels * model.layers
    return [("attention forward", forward / r.forward), ("attention backward", 2.5 * forward / r.backward)]


def _norms(model, n, r, speed):
    norms, c = 2 * model.layers + 1, model.channels
    partial = PARTIAL_ROWS * 2 * c * 8 / speed + r.reduce_s
    # Summed in the products of the weights' gradients, if cuBLASLt does that at no cost: what remains is to add them.
    biases = 4 * model.layers * BIAS_US * 1e-6
    return [("norms forward", norms * n * c * 8 / (NORM_SHARE * speed)),
            ("norms backward", norms * n * c * 8 / (r.norm_backward * speed)),
            ("norms: partial sums", norms * partial), ("bias gradients", biases),
            ("embedding", 16 * n * c / speed)]


def _update(model, n, speed):
    p = model.parameters()
    adamw = 30 * p / (NEAR_PEAK * speed)
    idle = WAKE_MS * 1e-3 + n * LOSS_NS * 1e-9 + max(0, n * PREPARE_NS * 1e-9 - adamw)
    sums = model.context * model.channels + 13 * model.channels * model.layers  # what is added to, not written
    return [("AdamW", adamw), ("clearing gradients", 4 * sums / speed),
            ("norm of the gradient", 4 * p / (NEAR_PEAK * speed)), ("idle between steps", idle)]


def rows(machine, model, batch):
    """Returns [(what, ms)] of one step."""
    r, speed, n = machine.rates[(model.name, batch)], machine.bytes_per_s, batch * model.context
    gaps = (KERNELS_PER_BLOCK * model.layers + KERNELS_BESIDE) * GRAPH_GAP_US * 1e-6
    found = _block_products(model, n, r, speed) + _head(model, n, r, machine) + _attention(model, batch, r)
    found += _norms(model, n, r, speed) + [("gaps between kernels", gaps)] + _update(model, n, speed)
    return [(what, s * 1e3) for what, s in found]


def total_ms(machine, model, batch):
    return sum(ms for _, ms in rows(machine, model, batch))


# --- offload ---

# A host beside a 4090: the bus each way, of the 32e9 that PCIe 4 x16 has; its memory, as two channels of DDR5.
# A worker chooses its savings by less (38e9, train/memory/cost.c): it is not alone there.
BUS_BYTES, HOST_BYTES = 12e9, 60e9
ADAMW_BYTES = {"fp32": 28, "int8": 16}  # a parameter
BLOCK_AGAIN = 1 / 3  # --recompute block, of the forward and backward pass
OFFLOADED = (("1558M", 16, 1), ("1558M", 16, 4), ("1558M", 16, 16))  # model, sequences, of them in a micro-batch


def _usual(machine, model):
    """The rates of any shape: those that the machine has."""
    found = next(iter(machine.rates.values()))
    return machine.rates.get((model.name, 16), found)


def _computing(machine, model, sequences):
    """Returns the seconds of a micro-batch: forward, and forward and backward with blocks computed again."""
    r, speed, n = _usual(machine, model), machine.bytes_per_s, sequences * model.context
    found = dict(_block_products(model, n, r, speed) + _attention(model, sequences, r))
    forward = found["products of the blocks: forward"] + found["attention forward"]
    head = _head(model, n, r, machine)
    everything = sum(found.values()) + sum(s for _, s in head + _norms(model, n, r, speed))
    return forward + head[0][1] / 3, everything * (1 + BLOCK_AGAIN)


def offloaded(machine, model, sequences, micro, moments):
    """Returns the seconds of the passes, of AdamW on the host, and of a step before and since decision 0117. Fetches
    are hidden behind AdamW, and AdamW behind the next step's first forward pass."""
    forward, both = _computing(machine, model, micro)
    p, passes = model.parameters(), sequences / micro * both
    adamw = p * max(ADAMW_BYTES[moments] / HOST_BYTES, 4 / BUS_BYTES)
    norm = 4 * p / (NEAR_PEAK * machine.bytes_per_s)
    return passes, adamw, passes + norm + adamw, passes + norm + max(adamw - forward, 0)


def offload_lines(machine):
    out = ["%s with --offload yes --recompute block, PCIe at %.0f GB/s, host's memory at %.0f GB/s" %
           (machine.name, BUS_BYTES / 1e9, HOST_BYTES / 1e9)]
    for name, sequences, micro in OFFLOADED:
        for moments in ADAMW_BYTES:
            passes, adamw, before, since = offloaded(machine, find(name), sequences, micro, moments)
            out.append("  GPT-2 %s, %d sequences by %2d, moments %s: passes %.2f s, AdamW %.2f s; a step %.2f s in "
                       "sequence, %.2f s overlapped (%.1f %% less)" %
                       (name, sequences, micro, moments, passes, adamw, before, since, 100 * (1 - since / before)))
    return out


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
          "head: dW": "head: three products", "classifier kernel": "head: three products"}


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
    print("\n".join(offload_lines(next(m for m in MACHINES if m.name == "4090"))) + "\n")
    if measured and not met:
        print("%s: no results of a GPU that the model knows (%s)" % (measured,
                                                                    ", ".join(m.name for m in MACHINES)))
    return 0

"""The models to measure, and the work of a token in each."""

VOCAB, CONTEXT = 50304, 1024
# Dense bf16 with fp32 sums, from the makers' data sheets.
PEAK_TFLOPS = {"H200": 989, "H100 PCIe": 756, "H100": 989, "A100": 312, "L40S": 362, "4090": 165, "3090": 71}


class Model:
    def __init__(self, name, layers, heads, channels, batches, goal, vocab=VOCAB, context=CONTEXT):
        self.name, self.layers, self.heads, self.channels = name, layers, heads, channels
        self.batches, self.vocab, self.context = batches, vocab, context
        self.goal = goal  # MFU, and ours against PyTorch

    def parameters(self):
        c = self.channels
        return self.vocab * c + self.context * c + self.layers * (12 * c * c + 13 * c) + 2 * c

    def flop_per_token(self):
        """Of a step: 6 a parameter, and attention's causal half."""
        return 6 * self.parameters() + 6 * self.layers * self.channels * self.context

    def words(self, batch):
        """The options of bench_gpu."""
        shape = (("layers", self.layers), ("heads", self.heads), ("channels", self.channels), ("vocab", self.vocab),
                 ("context", self.context), ("batch", batch))
        return [w for name, value in shape for w in ("--" + name, value)]

    def mfu(self, batch, ms, peak_tflops):
        if not peak_tflops or not ms:
            return None
        return self.flop_per_token() * batch * self.context / (ms * 1e-3) / (peak_tflops * 1e12)


# In the order of information: the smallest and the largest first. Two batches: the usual one, and
# four times that.
MODELS = [
    Model("124M", 12, 12, 768, (16, 64), (0.42, 1.05)),
    Model("1558M", 48, 25, 1600, (8, 32), (0.55, 1.0)),
    Model("350M", 24, 16, 1024, (16, 64), (0.47, 1.03)),
    Model("774M", 36, 20, 1280, (8, 32), (0.51, 1.0)),
]
TINY = [Model("tiny", 1, 2, 32, (2, 8), None, vocab=256, context=16)]


def models(emulated):
    return TINY if emulated else MODELS


def find(name):
    for model in MODELS + TINY:
        if model.name == name:
            return model
    return None


def peak_of(gpu):
    for name, tflops in PEAK_TFLOPS.items():
        if name in (gpu or ""):
            return tflops
    return None

"""GPT-2's and Llama's forward passes in numpy (float64), from the papers and the tensors' published names."""
import numpy as np


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v):
    """q (heads, T, d), k and v (kv heads, T, d), causal"""
    group = q.shape[0] // k.shape[0]
    k, v = np.repeat(k, group, 0), np.repeat(v, group, 0)
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    t = scores.shape[-1]
    scores = np.where(np.tril(np.ones((t, t), bool)), scores, -np.inf)
    return (softmax(scores) @ v).transpose(1, 0, 2).reshape(t, -1)


def split_heads(x, heads):
    return x.reshape(x.shape[0], heads, -1).transpose(1, 0, 2)


def layer_norm(x, weight, bias, eps):
    mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(var + eps) * weight + bias


def rms_norm(x, weight, eps):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def gpt2(config, tensors, tokens):
    """Conv1D: x W + b with W (in, out)"""
    w = {name.removeprefix("transformer."): value.astype(np.float64) for name, value in tensors.items()}
    heads, eps = config["n_head"], config["layer_norm_epsilon"]
    assert config["activation_function"] == "gelu_new"
    x = w["wte.weight"][tokens] + w["wpe.weight"][: len(tokens)]
    for i in range(config["n_layer"]):
        p = f"h.{i}."
        y = layer_norm(x, w[p + "ln_1.weight"], w[p + "ln_1.bias"], eps)
        qkv = y @ w[p + "attn.c_attn.weight"] + w[p + "attn.c_attn.bias"]
        q, k, v = (split_heads(part, heads) for part in np.split(qkv, 3, -1))
        x = x + attention(q, k, v) @ w[p + "attn.c_proj.weight"] + w[p + "attn.c_proj.bias"]
        y = layer_norm(x, w[p + "ln_2.weight"], w[p + "ln_2.bias"], eps)
        y = gelu_tanh(y @ w[p + "mlp.c_fc.weight"] + w[p + "mlp.c_fc.bias"])
        x = x + y @ w[p + "mlp.c_proj.weight"] + w[p + "mlp.c_proj.bias"]
    return layer_norm(x, w["ln_f.weight"], w["ln_f.bias"], eps) @ w["wte.weight"].T


def rope_frequencies(config, d):
    freq = config["rope_theta"] ** (-np.arange(0, d, 2) / d)
    scaling = config.get("rope_scaling")
    if not scaling:
        return freq
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind == "linear":
        return freq / scaling["factor"]
    assert kind == "llama3", kind
    low, high, old = scaling["low_freq_factor"], scaling["high_freq_factor"], scaling["original_max_position_embeddings"]
    wavelength = 2 * np.pi / freq
    smooth = (old / wavelength - low) / (high - low)
    between = (1 - smooth) * freq / scaling["factor"] + smooth * freq
    scaled = np.where(wavelength > old / low, freq / scaling["factor"], freq)
    return np.where((wavelength <= old / low) & (wavelength >= old / high), between, scaled)


def rotate(x, freq):
    """x (heads, T, d): the halves of a head are the pairs that are rotated"""
    angle = np.outer(np.arange(x.shape[1]), freq)
    cos, sin = np.cos(angle), np.sin(angle)
    a, b = np.split(x, 2, -1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def llama(config, tensors, tokens):
    """Linear: x W^T with W (out, in)"""
    w = {name.removeprefix("model."): value.astype(np.float64) for name, value in tensors.items()}
    heads, kv_heads, eps = config["num_attention_heads"], config["num_key_value_heads"], config["rms_norm_eps"]
    freq = rope_frequencies(config, config["hidden_size"] // heads)
    assert config["hidden_act"] == "silu"
    x = w["embed_tokens.weight"][tokens]
    for i in range(config["num_hidden_layers"]):
        p = f"layers.{i}."
        y = rms_norm(x, w[p + "input_layernorm.weight"], eps)
        q = rotate(split_heads(y @ w[p + "self_attn.q_proj.weight"].T, heads), freq)
        k = rotate(split_heads(y @ w[p + "self_attn.k_proj.weight"].T, kv_heads), freq)
        v = split_heads(y @ w[p + "self_attn.v_proj.weight"].T, kv_heads)
        x = x + attention(q, k, v) @ w[p + "self_attn.o_proj.weight"].T
        y = rms_norm(x, w[p + "post_attention_layernorm.weight"], eps)
        gate, up = y @ w[p + "mlp.gate_proj.weight"].T, y @ w[p + "mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[p + "mlp.down_proj.weight"].T
    classifier = w["embed_tokens.weight"] if config["tie_word_embeddings"] else w["lm_head.weight"]
    return rms_norm(x, w["norm.weight"], eps) @ classifier.T


FAMILIES = {"gpt2": gpt2, "llama": llama}

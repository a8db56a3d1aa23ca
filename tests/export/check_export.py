#!/usr/bin/env python3
"""check_export.py EXPORT_MODEL KEY=VALUE...: what Rivulet exported, read back by readers written from the published
layouts: the logits of our forward pass and of numpy's agree, and the GGUF files hold the same numbers. Exit status 77:
numpy is not installed."""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("numpy is not installed (python3-numpy)")
    sys.exit(77)

from forward import FAMILIES, rope_frequencies
from layouts import read_directory, read_gguf, read_safetensors

TOLERANCE = 1e-4


def check_logits(root, name, tokens):
    config, tensors, dtypes = read_directory(os.path.join(root, name))
    want = np.fromfile(os.path.join(root, name + ".logits"), np.float32).reshape(len(tokens), -1)
    got = FAMILIES[config["model_type"]](config, tensors, tokens)
    worst = np.abs(got - want).max()
    print(f"{name}: {len(tensors)} tensors, logits up to {np.abs(want).max():.2f}, largest difference {worst:.2e}")
    assert got.shape == want.shape == (len(tokens), config["vocab_size"])
    assert worst < TOLERANCE, f"{name}: logits differ by {worst}"
    return config, tensors, dtypes


def read_json(*path):
    return json.load(open(os.path.join(*path)))


def check_side_files(root):
    """The directory's tokenizer: the given one, or the bytes by value."""
    tokenizer, settings = read_json(root, "hf", "tokenizer.json"), read_json(root, "hf", "tokenizer_config.json")
    generation = read_json(root, "hf", "generation_config.json")
    if os.path.exists(os.path.join(root, "tokenizer.json")):
        assert tokenizer == read_json(root, "tokenizer.json")
        end = tokenizer["added_tokens"][0]
        assert settings["eos_token"] == end["content"] and generation["eos_token_id"] == end["id"]
    else:
        assert sorted(tokenizer["model"]["vocab"].values()) == list(range(256)) and tokenizer["model"]["merges"] == []
        assert settings["eos_token"] is None and generation["eos_token_id"] is None
    return tokenizer


def check_gguf_tokenizer(metadata, tokenizer, vocab_size):
    assert metadata["tokenizer.ggml.model"] == "gpt2" and metadata["tokenizer.ggml.pre"] == "gpt-2"
    tokens, types = metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.token_type"]
    assert len(tokens) == len(set(tokens)) == len(types) == vocab_size
    special = {t["id"]: t["content"] for t in tokenizer["added_tokens"]}
    known = {i: text for text, i in tokenizer["model"]["vocab"].items()} | special
    for i, (text, kind) in enumerate(zip(tokens, types)):
        assert text == known.get(i, f"[PAD{i}]"), (i, text)
        assert kind == (3 if i in special else 1 if i in known else 5), (i, kind)  # control, normal, unused
    assert metadata["tokenizer.ggml.merges"] == tokenizer["model"]["merges"]
    if special:
        assert metadata["tokenizer.ggml.eos_token_id"] in special
    else:
        assert "tokenizer.ggml.bos_token_id" not in metadata and "tokenizer.ggml.eos_token_id" not in metadata
        assert tokens[ord("a")] == "a" and tokens[ord(" ")] == "\u0120"


def interleave(w, heads):
    """Rows of llama.cpp's order from Hugging Face's: the halves of a head next to each other"""
    d = w.shape[0] // heads
    return w.reshape(heads, 2, d // 2, -1).swapaxes(1, 2).reshape(w.shape)


GPT2_NAMES = {"wte": "token_embd", "wpe": "position_embd", "ln_f": "output_norm", "ln_1": "attn_norm",
              "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_2": "ffn_norm", "mlp.c_fc": "ffn_up",
              "mlp.c_proj": "ffn_down"}
LLAMA_NAMES = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output",
               "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
               "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
               "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def expected_gguf(config, tensors):
    """{name: array} as llama.cpp loads it"""
    out = {}
    for full, value in tensors.items():
        name, _, kind = full.removeprefix("transformer.").removeprefix("model.").rpartition(".")
        names, block = GPT2_NAMES if config["model_type"] == "gpt2" else LLAMA_NAMES, ""
        if name.startswith(("h.", "layers.")):
            _, i, name = name.split(".", 2)
            block = f"blk.{i}."
        if "c_" in name and kind == "weight":
            value = value.T
        if name.endswith("q_proj"):
            value = interleave(value, config["num_attention_heads"])
        if name.endswith("k_proj"):
            value = interleave(value, config["num_key_value_heads"])
        out[f"{block}{names[name]}.{kind}"] = value
    return out


def expected_shape(c):
    """The keys of a family's shape, by the names that llama.cpp's loader asks for"""
    if c["model_type"] == "gpt2":
        return {"block_count": c["n_layer"], "context_length": c["n_positions"], "embedding_length": c["n_embd"],
                "feed_forward_length": 4 * c["n_embd"], "attention.head_count": c["n_head"],
                "attention.layer_norm_epsilon": c["layer_norm_epsilon"]}
    return {"block_count": c["num_hidden_layers"], "context_length": c["max_position_embeddings"],
            "embedding_length": c["hidden_size"], "feed_forward_length": c["intermediate_size"],
            "attention.head_count": c["num_attention_heads"], "attention.head_count_kv": c["num_key_value_heads"],
            "attention.layer_norm_rms_epsilon": c["rms_norm_eps"], "vocab_size": c["vocab_size"],
            "rope.dimension_count": c["hidden_size"] // c["num_attention_heads"], "rope.freq_base": c["rope_theta"]}


def check_gguf(path, dtype, config, tensors, tokenizer):
    metadata, found = read_gguf(path)
    family = config["model_type"]
    assert metadata["general.architecture"] == family
    assert metadata["general.file_type"] == {"F32": 0, "F16": 1, "BF16": 32}[dtype]
    shape = {key.removeprefix(family + "."): v for key, v in metadata.items() if key.startswith(family + ".")}
    wanted_shape = expected_shape(config)
    if (config.get("rope_scaling") or {}).get("rope_type") == "linear":
        wanted_shape |= {"rope.scaling.type": "linear", "rope.scaling.factor": config["rope_scaling"]["factor"]}
    assert set(shape) == set(wanted_shape), set(shape) ^ set(wanted_shape)
    assert all(shape[k] == v or np.isclose(shape[k], v, rtol=1e-6) for k, v in wanted_shape.items()), shape
    check_gguf_tokenizer(metadata, tokenizer, config["vocab_size"])
    wanted = expected_gguf(config, tensors)
    scaling = config.get("rope_scaling")
    if scaling and scaling.get("rope_type") == "llama3":
        d = config["hidden_size"] // config["num_attention_heads"]
        plain = rope_frequencies({"rope_theta": config["rope_theta"]}, d)
        wanted["rope_freqs.weight"] = plain / rope_frequencies(config, d)
    assert set(found) == set(wanted), set(found) ^ set(wanted)
    relative = {"F32": 0, "BF16": 2**-8, "F16": 2**-10}[dtype]
    for name, value in wanted.items():
        got, kind = found[name]
        exact = value.ndim == 1 or name == "position_embd.weight"
        assert kind == ("F32" if exact else dtype), f"{name}: {kind}"
        assert got.shape == value.shape, name
        slack = 1e-6 if name == "rope_freqs.weight" else 0 if exact else relative
        assert np.all(np.abs(got - value) <= slack * np.abs(value) + (0 if exact else 1e-7 * (relative > 0))), name
    print(f"{os.path.basename(path)}: {len(metadata)} pairs, {len(found)} tensors as llama.cpp names them")


def main():
    program, pairs = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="rivulet-export-") as root:
        subprocess.run([program, root, *pairs], check=True)
        tokens = np.fromfile(os.path.join(root, "tokens.i32"), np.int32)
        config, tensors, dtypes = check_logits(root, "hf", tokens)
        assert set(dtypes.values()) == {"F32"} and config["torch_dtype"] == "float32"
        _, metadata, _ = read_safetensors(os.path.join(root, "hf", "model.safetensors"))
        assert metadata["rivulet.round"] == "3" and metadata["format"] == "pt"
        config_bf16, _, dtypes = check_logits(root, "hf-bf16", tokens)
        assert set(dtypes.values()) == {"BF16"} and config_bf16["torch_dtype"] == "bfloat16"
        assert len([f for f in os.listdir(os.path.join(root, "hf-bf16")) if f.startswith("model-0")]) > 1
        tokenizer = check_side_files(root)
        for dtype, name in ("F32", "fp32"), ("BF16", "bf16"), ("F16", "fp16"):
            check_gguf(os.path.join(root, name + ".gguf"), dtype, config, tensors, tokenizer)


if __name__ == "__main__":
    main()

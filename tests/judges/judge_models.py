#!/usr/bin/env python3
"""judge_models.py RIVULET: what we export, transformers loads without a warning, with our loss and our greedy text; what
transformers saves, with the body alone or whole, we read; a model that is trained on keeps what it said of itself."""
import json
import logging
import os
import re
import sys
import tempfile

import judges

judges.enter()
judges.versions("transformers", "tokenizers", "torch")

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import AutoTokenizer, LlamaModel  # noqa: E402

CONTEXT = 64
SIZE = ["--n-layer", "2", "--n-head", "4", "--n-embd", "32", "--context", str(CONTEXT), "--lr", "3e-3", "--warmup-steps", "2"]
STEPS = ["--workers", "1", "--rounds", "1", "--steps-per-round", "100", "--batch", "4", "--method", "diloco", "--threads", "1",
         "--device", "cpu", "--dtype", "fp32", "--save-every", "1", "--data-shards", "1", "--holdout-every", "2"]
LLAMA = ["--model", "llama", "--n-kv-head", "2", "--n-inner", "48"]
MODELS = {
    "gpt2, bytes": ["--model", "gpt2"],
    "gpt2, trained tokens": ["--model", "gpt2", "TOKENS"],
    "llama, untied": [*LLAMA, "--no-tied"],
    "llama, tied, trained tokens": [*LLAMA, "--tied", "TOKENS"],
    "llama, linear": [*LLAMA, "--no-tied", "--rope-scaling", "linear", "--rope-factor", "4"],
    "llama, llama3": [*LLAMA, "--no-tied", "--rope-theta", "500", "--rope-scaling", "llama3", "--rope-factor", "8",
                      "--rope-original-context", "16"],
}
FORMS = {"fp32": [], "fp32, shards": ["--max-file-bytes", "20000"], "bf16": ["--dtype", "bf16"],
         "bf16, shards": ["--dtype", "bf16", "--max-file-bytes", "20000"]}
PROMPTS = ["river sea ", "light ground winter", "s", "small seed north open"]
NEW_TOKENS = 24


def must(program, *arguments):
    status, out, err = judges.run(program, *arguments)
    assert status == 0, f"{' '.join(arguments)}: {err}"
    return out


class Warnings(logging.Handler):
    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


def same_text(a, b):
    """Bytes that are no UTF-8 come out as one mark or several"""
    return re.sub("\ufffd+", "\ufffd", a.strip()) == re.sub("\ufffd+", "\ufffd", b.strip())


def judge_export(program, name, directory, text, faults, warnings):
    """Loss and greedy text of one exported directory"""
    warnings.texts.clear()
    model, tokenizer = judges.their_model(directory), AutoTokenizer.from_pretrained(directory)
    if warnings.texts:
        faults.append(f"{name}: transformers warns: {warnings.texts[0][:200]}")
    ours, why = judges.our_loss(program, directory, text)
    tokens = tokenizer(open(text).read(), add_special_tokens=False)["input_ids"]
    theirs = judges.their_loss(model, tokens, CONTEXT)
    if ours is None or not abs(ours - theirs) <= judges.LOSS_LIMIT:
        faults.append(f"{name}: loss {ours}, transformers {theirs}: {why}")
    equal = 0
    for prompt in PROMPTS:
        inputs = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)
        made = model.generate(**inputs, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0)[0]
        theirs_text = tokenizer.decode(made, skip_special_tokens=True)
        our_text = must(program, "sample", directory, "--prompt", prompt, "--temperature", "0", "--tokens", str(NEW_TOKENS),
                        "--dtype", "fp32", "--threads", "1", "--device", "cpu")
        equal += same_text(our_text, theirs_text)
    if equal < len(PROMPTS):
        faults.append(f"{name}: greedy text of {len(PROMPTS) - equal} of {len(PROMPTS)} prompts differs")
    return abs(ours - theirs) if ours is not None else float("inf")


def train(program, root, name, options, corpus):
    out = os.path.join(root, name.replace(", ", "-").replace(" ", "-"))
    options = [o for o in options if o != "TOKENS"] + (["--tokenizer", os.path.join(root, "tokenizer.json")]
                                                       if "TOKENS" in options else [])
    must(program, "train", "--data", corpus, "--out", out, *SIZE, *STEPS, *options)
    return out


def read_json(*path):
    with open(os.path.join(*path)) as f:
        return json.load(f)


def judge_continued(program, root, source, corpus, faults):
    """A published model, with tokens and a template of its own, trained on with a shorter context"""
    published, out = os.path.join(root, "published"), os.path.join(root, "continued")
    must(program, "export", source, "--out", published)
    config = read_json(published, "config.json")
    config |= {"eos_token_id": [3, 4, 5], "bos_token_id": 2, "max_position_embeddings": 4096, "dtype": "float32"}
    del config["torch_dtype"]
    judges.write_json(os.path.join(published, "config.json"), config)
    judges.write_json(os.path.join(published, "generation_config.json"), {"bos_token_id": 2, "eos_token_id": [3, 4, 5]})
    settings = read_json(published, "tokenizer_config.json") | {"chat_template": "{% for m in messages %}{{ m['content'] }}{% endfor %}"}
    judges.write_json(os.path.join(published, "tokenizer_config.json"), settings)
    must(program, "train", "--init", published, "--context", "32", "--data", corpus, "--out", out, *STEPS)
    again = os.path.join(root, "exported")
    must(program, "export", out, "--out", again)
    for directory in out, again:
        said = read_json(directory, "config.json")
        if said.pop("rivulet_context", None) != 32 or said != config:
            faults.append(f"{directory}: config.json is {said}, was {config}")
        model, tokenizer = judges.their_model(directory), AutoTokenizer.from_pretrained(directory)
        if model.generation_config.eos_token_id != [3, 4, 5] or model.generation_config.bos_token_id != 2:
            faults.append(f"{directory}: ends with {model.generation_config.eos_token_id}")
        if tokenizer.apply_chat_template([{"role": "user", "content": "abc"}], tokenize=False) != "abc":
            faults.append(f"{directory}: the chat template is lost")


def judge_gguf(program, root, faults):
    """The continued model's own tokens and length in GGUF too; read by a reader that knows only the published layout"""
    sys.path.insert(0, os.path.join(judges.ROOT, "tests", "export"))
    from layouts import read_gguf
    path = os.path.join(root, "continued.gguf")
    must(program, "export", os.path.join(root, "continued"), "--format", "gguf", "--out", path)
    said, _ = read_gguf(path)
    got = [said.get(k) for k in ("tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id", "llama.context_length")]
    if got != [2, 3, 4096]:
        faults.append(f"GGUF of a continued model: {got}")


def judge_body(program, root, source, text, faults):
    """LlamaModel writes its tensors without "model." """
    directory = os.path.join(root, "body")
    whole = judges.their_model(source)
    body = LlamaModel.from_pretrained(source)
    body.save_pretrained(directory)
    tokens = list(open(text).read().encode())
    ours, why = judges.our_loss(program, directory, text)
    if ours is None or not abs(ours - judges.their_loss(whole, tokens, CONTEXT)) <= judges.LOSS_LIMIT:
        faults.append(f"LlamaModel: {ours}, {why}")


def main():
    program, faults, warnings, worst, n = sys.argv[1], [], Warnings(), 0.0, 0
    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_warning()
    logging.getLogger("transformers").addHandler(warnings)
    with tempfile.TemporaryDirectory(prefix="rivulet-judge-") as root:
        corpus, text = os.path.join(root, "corpus.txt"), os.path.join(root, "text")
        judges.write_text(corpus, 300000)
        judges.write_text(text, 1000)
        must(program, "tokenizer", "train", "--vocab", "300", "--data", corpus, "--out", os.path.join(root, "tokenizer.json"))
        for name, options in MODELS.items():
            trained = train(program, root, name, options, corpus)
            for form, how in FORMS.items():
                directory = tempfile.mkdtemp(dir=root)
                must(program, "export", trained, "--out", directory, *how)
                worst = max(worst, judge_export(program, f"{name}, {form}", directory, text, faults, warnings))
                n += 1
        judge_continued(program, root, os.path.join(root, "llama-untied"), corpus, faults)
        judge_gguf(program, root, faults)
        tied = train(program, root, "llama, tied", [*LLAMA, "--tied"], corpus)
        judge_body(program, root, tied, text, faults)
    print(f"{n} exports: losses differ by at most {worst:.1e}; {len(faults)} faults")
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    with torch.inference_mode():
        main()

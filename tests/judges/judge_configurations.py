#!/usr/bin/env python3
"""judge_configurations.py RIVULET: each config.json is read with the loss that transformers has, or refused by the
name of what we do not compute. None is read with another loss, and none that transformers refuses is read."""
import os
import sys
import tempfile

import judges
from configurations import GPT2, GPT2_CASES, LLAMA, LLAMA_CASES, READ, build

judges.enter()
judges.versions("transformers", "torch", "safetensors")

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM  # noqa: E402

CONTEXT = 512


def write_weights(directory, base):
    """Weights of the base, of numbers large enough that every fault shows"""
    os.makedirs(directory)
    judges.write_json(os.path.join(directory, "config.json"), base)
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(directory))
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.15)
    model.save_pretrained(directory)


def judge(program, directory, config, text, tokens):
    """(ours, why we refuse, theirs, why they refuse)"""
    judges.write_json(os.path.join(directory, "config.json"), config)
    ours, why = judges.our_loss(program, directory, text)
    try:
        theirs, their_why = judges.their_loss(judges.their_model(directory), tokens, CONTEXT), ""
    except Exception as e:  # transformers refuses with whatever its parts raise
        theirs, their_why = None, f"{type(e).__name__}: {e}".splitlines()[0][:90]
    return ours, why, theirs, their_why


def verdict(expected, ours, why, theirs):
    """(counted as, or None; the fault, or "")"""
    if ours is None:
        if expected == READ:
            return None, f"refused: {why}"
        return ("refused by name", "") if expected in why else (None, f"refused without naming {expected}: {why}")
    if theirs is None:
        return None, "read, where transformers refuses"
    if not abs(ours - theirs) <= judges.LOSS_LIMIT:
        return None, f"read with another loss: {ours - theirs:+.1e}"
    return ("read with equal loss", "") if expected == READ else (None, f"read, {expected} was to be refused")


def main():
    program, faults, counts = sys.argv[1], [], {"read with equal loss": 0, "refused by name": 0}
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory(prefix="rivulet-judge-") as root:
        text = os.path.join(root, "text")
        tokens = list(judges.write_text(text, CONTEXT + 1).encode())
        for family, base, cases in ("gpt2", GPT2, GPT2_CASES), ("llama", LLAMA, LLAMA_CASES):
            directory = os.path.join(root, family)
            write_weights(directory, base)
            for name, changes, expected in cases:
                ours, why, theirs, their_why = judge(program, directory, build(base, changes), text, tokens)
                kind, fault = verdict(expected, ours, why, theirs)
                if kind:
                    counts[kind] += 1
                else:
                    faults.append(f"{family}, {name}: {fault}" + (f" (transformers: {their_why})" if their_why else ""))
    total = len(GPT2_CASES) + len(LLAMA_CASES)
    print(f"{total} configurations:", ", ".join(f"{n} {k}" for k, n in counts.items()) + f", {len(faults)} wrong")
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

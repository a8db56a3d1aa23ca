"""What the tests with outside judges share: their Python environment, our program, small models, losses.

`./dev deps judges` makes the environment. Where it is missing, or RIVULET_JUDGES names another directory without
one, a test says what is missing and exits with status 77, which CTest counts as skipped."""
import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WHERE = os.environ.get("RIVULET_JUDGES", os.path.join(ROOT, ".cache", "judges"))
SKIPPED = 77
LOSS_LIMIT = 5.0e-6  # nats per token, between our loss and the judge's


def skip(what):
    print(f"skipped: {what}; ./dev deps judges installs the judges into {WHERE}")
    sys.exit(SKIPPED)


def enter():
    """Runs this program again in the judges' environment, unless it runs there already."""
    python = os.path.join(WHERE, "venv", "bin", "python")
    if os.environ.get("RIVULET_JUDGED") == python:
        return
    if not os.access(python, os.X_OK):
        skip(f"there is no {python}")
    stubs = os.path.join(WHERE, "stubs")
    # PyTorch's compiler makes a directory when transformers is imported: not one that stays in TMPDIR.
    environment = {"RIVULET_JUDGED": python, "HF_HUB_OFFLINE": "1", "LD_LIBRARY_PATH": stubs, "OMP_NUM_THREADS": "1",
                   "PYTHONDONTWRITEBYTECODE": "1", "TORCHINDUCTOR_CACHE_DIR": os.path.join(WHERE, "inductor"),
                   "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1"}
    os.execve(python, [python, *sys.argv], os.environ | environment)


def versions(*names):
    """Prints the judges' versions; skips where one is not installed."""
    from importlib import metadata
    found = []
    for name in names:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            skip(f"the package {name} is not installed")
    print("judges:", ", ".join(found))


def run(program, *arguments, text=None):
    """(status, standard output, standard error) of our program"""
    environment = {k: v for k, v in os.environ.items() if k != "LD_LIBRARY_PATH"}
    done = subprocess.run([program, *arguments], capture_output=True, encoding="utf-8", errors="replace",
                          input=text, env=environment)
    return done.returncode, done.stdout, done.stderr


def our_loss(program, directory, text):
    """(loss, "") of the file `text`, or (None, why our program refuses the directory)"""
    status, out, err = run(program, "eval", directory, "--data", text, "--split", "all", "--dtype", "fp32",
                           "--threads", "1", "--device", "cpu")
    if status != 0:
        return None, err.strip().splitlines()[-1] if err.strip() else f"status {status}"
    return json.loads(out)["loss"], ""


def their_model(directory):
    import torch
    from transformers import AutoModelForCausalLM
    return AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32).eval()


def their_loss(model, tokens, context):
    """Of each token but the first, in windows of `context` tokens, as `rivulet eval --split all` has them."""
    import torch
    total = 0.0
    with torch.no_grad():
        for at in range(0, len(tokens) - 1, context):
            inputs = torch.tensor([tokens[at:at + context][: len(tokens) - 1 - at]])
            targets = torch.tensor(tokens[at + 1 : at + 1 + inputs.shape[1]])
            logits = model(inputs, use_cache=False).logits[0].double()
            total += torch.nn.functional.cross_entropy(logits, targets, reduction="sum").item()
    return total / (len(tokens) - 1)


def write_text(path, n_bytes):
    """Text that nobody trained on: words of a fixed generator"""
    words, state, out, n = "river sea stone light ground winter seed north open small".split(), 7, [], 0
    while n < n_bytes:
        state = (state * 1103515245 + 12345) % 2**31
        out.append(words[state // 65536 % 10])
        n += len(out[-1]) + 1
    text = " ".join(out)[:n_bytes]
    with open(path, "w") as f:
        f.write(text)
    return text


def write_json(path, value):
    with open(path, "w") as f:
        json.dump(value, f)

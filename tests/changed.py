#!/usr/bin/env python3
"""Prints the names of the CTest tests that a set of changed files reaches, one per line.

usage: changed.py BUILD FILE...

BUILD is a configured Ninja build folder. What a file reaches is read from build.ninja and from the headers that earlier
compilations recorded (`ninja -t deps`); a file that was never compiled reaches what names it in build.ninja.
"""
import json
import os
import re
import subprocess
import sys
from collections import defaultdict


def split_paths(text):
    """Splits a Ninja path list; `$ ` is a blank within a path."""
    return [p.replace("$ ", " ").replace("$:", ":").replace("$$", "$") for p in re.split(r"(?<!\$) +", text) if p]


def statement_edges(lines):
    """Yields (outputs, inputs) of every build statement; order-only inputs count too: they are programs that tests run."""
    for line in lines:
        if not line.startswith("build "):
            continue
        outputs, _, rest = line[len("build "):].rstrip("\n").partition(": ")
        _, _, inputs = rest.partition(" ")
        yield split_paths(outputs.replace("|", " ")), split_paths(inputs.replace("||", " ").replace("|", " "))


def deps_edges(text):
    output = None
    for line in text.splitlines():
        if not line.startswith(" "):
            output = line.split(":")[0] if ": #deps" in line else None
        elif output:
            yield [output], [line.strip()]


def read_graph(build):
    """Returns a map of absolute path -> what is made from it."""
    made_from = defaultdict(set)
    with open(os.path.join(build, "build.ninja")) as f:
        edges = list(statement_edges(f))
    deps = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True, check=False).stdout
    edges += deps_edges(deps)
    for outputs, inputs in edges:
        targets = {os.path.normpath(os.path.join(build, o)) for o in outputs}
        for i in inputs:
            made_from[os.path.normpath(os.path.join(build, i))] |= targets
    return made_from


def reached(made_from, files):
    seen, todo = set(files), list(files)
    while todo:
        for target in made_from.get(todo.pop(), ()):
            if target not in seen:
                seen.add(target)
                todo.append(target)
    return seen


def main():
    build, files = os.path.abspath(sys.argv[1]), [os.path.abspath(f) for f in sys.argv[2:]]
    touched = reached(read_graph(build), files)
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    for test in json.loads(listing.stdout)["tests"]:
        words = [w.partition("=")[2] if w.startswith("-D") else w for w in test.get("command", [])]
        if any(os.path.isabs(w) and os.path.normpath(w) in touched for w in words):
            print(test["name"])


if __name__ == "__main__":
    main()

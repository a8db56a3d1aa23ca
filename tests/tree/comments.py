#!/usr/bin/env python3
"""comments.py ROOT: refuses comments on lines of their own beyond 100 columns (a tab is 4), and blocks that end with a
lone */. Tables and formulas (three spaces in a row) and macros may be wider. comments.py --planted checks that both are
found in a small text."""
import os
import re
import subprocess
import sys

WIDTH = 100
CODE = (".c", ".h", ".cu", ".cuh", ".cpp", ".def")


def faults(text):
    """Returns (line number, fault) of each."""
    found = []
    for n, line in enumerate(text.split("\n"), 1):
        shown = line.expandtabs(4)
        own = re.match(r"\s*(?:/\*|\*|//)(?:\s(.*))?$", shown)
        if own and len(shown) > WIDTH and not line.endswith("\\") and "   " not in (own.group(1) or "").strip():
            if not re.match(r"\s*\*\w", shown):
                found.append((n, "a comment of %d columns: at most %d" % (len(shown), WIDTH)))
        if line.strip() == "*/":
            found.append((n, "*/ on a line of its own"))
    return found


def planted():
    text = "/* fine */\n/* " + "x " * 60 + "*/\n/* a\n */\n\tint *p = 0; /* " + "y " * 60 + "*/\n"
    return 0 if [n for n, _ in faults(text)] == [2, 4] else 1


def main():
    if sys.argv[1:] == ["--planted"]:
        return planted()
    root = sys.argv[1]
    paths = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True, check=False).stdout.split("\n")
    paths = [p for p in paths if p.endswith(CODE) and os.path.isfile(os.path.join(root, p))]
    found = []
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            found += ["%s:%d: %s" % (path, n, fault) for n, fault in faults(f.read())]
    print("\n".join(found) or "%d files" % len(paths))
    return 1 if found else 0


sys.exit(main())

"""promises.py: docs/security.md promises what tests show. Every test and every attack that the page names exists.

python3 promises.py ROOT; --planted: runs on a small tree in which each kind of fault must be found. Exit status 0: nothing is
wrong, or nothing was missed.

`test_x` is a file test_x.c, .py or .sh below tests/, or NAME test_x of add_test; `test_x:f` also has the function f, defined
and run. `LIE_X`, `FAULT_X`, `ADVERSARY_X` and `planted/x` are of the simulator. ./dev attack ("x") is a line of tests/attack/registry.py.
The table of the design's promises has 28 rows, and every row of it, and every attack marked C or H, names a test or an attack.
Each attack of the registry has a row of figures in docs/benchmarks/attacks.md.
"""
import os
import re
import sys
import tempfile

PROMISES = 28
GRAVE = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 19, 20, 21, 22, 23, 28, 29}
NAME = re.compile(r"`(test_\w+)(?::(\w+))?`")
ATTACKS = re.compile(r"`\./dev attack` \(([^)]*)\)")


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


class Tree:
    """What the tests of a tree are called."""

    def __init__(self, root):
        self.files, self.lists = {}, ""
        for folder, _, names in os.walk(os.path.join(root, "tests")):
            for name in names:
                if name == "CMakeLists.txt":
                    self.lists += read(folder, name)
                elif name.startswith("test_") and name.endswith((".c", ".py", ".sh")):
                    self.files[os.path.splitext(name)[0]] = os.path.join(folder, name)
        self.attacks = set(re.findall(r'^\s*attack\("([^"]+)"', read(root, "tests/attack/registry.py"), re.M))
        self.simulator = read(root, "tests/sim/sim_plan.h")
        self.planted = os.path.join(root, "tests/sim/planted")

    def has(self, test, function):
        if function:
            return test in self.files and len(re.findall(rf"\b{function}\b", read(self.files[test]))) >= 2
        generated = re.sub(r"_[^_]+$", "_${name}", test)
        return test in self.files or f"NAME {test} " in self.lists or (
            f"NAME {generated} " in self.lists and re.search(rf"\({test.split('_')[-1]} ", self.lists))


def missing(tree, line):
    """Yields what a line names that does not exist."""
    for test, function in NAME.findall(line):
        if not tree.has(test, function):
            yield f"{test}:{function}" if function else test
    for names in ATTACKS.findall(line):
        yield from (f"./dev attack {name}" for name in re.findall(r'"([^"]+)"', names) if name not in tree.attacks)
    for kind in re.findall(r"`((?:LIE|FAULT|ADVERSARY)_\w+)`", line):
        if not re.search(rf"\b{kind}\b", tree.simulator):
            yield kind
    for name in re.findall(r"`planted/([\w-]+)`", line):
        if not os.path.exists(os.path.join(tree.planted, name)):
            yield f"planted/{name}"


def rows(text, heading):
    """Returns the cells of the first table below a heading."""
    part = text.split(heading, 1)[1].split("\n## ", 1)[0] if heading in text else ""
    table = re.search(r"(?:^\|.*\n)+", part, re.M)
    lines = table.group(0).splitlines()[2:] if table else []
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def shows(cells):
    return any(NAME.search(cell) or ATTACKS.search(cell) for cell in cells)


def faults(root):
    """Yields what is wrong."""
    tree, text = Tree(root), read(root, "docs/security.md")
    for number, line in enumerate(text.splitlines(), 1):
        yield from (f"docs/security.md:{number}: {name} does not exist" for name in missing(tree, line))
    promises = rows(text, "## The promises of the design")
    if [row[0] for row in promises] != [str(i + 1) for i in range(PROMISES)]:
        yield f"docs/security.md: {len(promises)} promises, not 1 to {PROMISES}"
    yield from (f"docs/security.md: promise {row[0]} names no test" for row in promises if not shows(row))
    attacks = rows(text, "## Attacks that were carried out")
    numbers = {int(n) for row in attacks if shows(row) for n in re.findall(r"\d+", row[0])}
    yield from (f"docs/security.md: attack {n} is carried out by nothing" for n in sorted(GRAVE - numbers))
    measured = set(re.findall(r"^\| ([^|]+?) \|", read(root, "docs/benchmarks/attacks.md"), re.M))
    yield from (f"docs/benchmarks/attacks.md: no row for {name}" for name in sorted(tree.attacks - measured))


def put(root, path, text):
    os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
    with open(os.path.join(root, path), "w", encoding="utf-8") as f:
        f.write(text)


def planted():
    """Returns 0 if each fault of a small tree is found."""
    with tempfile.TemporaryDirectory() as root:
        put(root, "tests/attack/registry.py", '    attack("x10", 6)\n    attack("zeros", 8)\n')
        put(root, "docs/benchmarks/attacks.md", "zeros\n\n| attack | loss |\n|---|---|\n| x10 | 3.1 |\n")
        put(root, "tests/sim/sim_plan.h", "LIE_TOKENS,\n")
        put(root, "tests/a/test_a.c", "static void runs(void) {}\nstatic void unused(void) {}\nint main(void) { runs(); }\n")
        put(root, "docs/security.md",
            "## The promises of the design\n\n| # | | |\n|---|---|---|\n| 1 | | `test_a:runs` |\n| 2 | | none |\n"
            "\n## Attacks that were carried out\n\n| # | | |\n|---|---|---|\n"
            '| 1 | `test_gone` | `test_a:unused` |\n| 2 | `./dev attack` ("x10", "x11") | `LIE_MORE` `planted/gone` |\n')
        found = "\n".join(faults(root))
    wanted = ["test_gone does", "test_a:unused does", "attack x11 does", "LIE_MORE does", "planted/gone does", "2 promises, not",
              "promise 2 names", "attack 3 is", "no row for zeros"]
    held = ("test_a:runs", "promise 1 ", "attack 1 is", "no row for x10")
    missed = [w for w in wanted if w not in found] + [w for w in held if w in found]
    print(found, *(f"MISSED OR WRONG: {m}" for m in missed), sep="\n")
    return 1 if missed else 0


def main():
    if sys.argv[1:] == ["--planted"]:
        return planted()
    wrong = list(faults(sys.argv[1]))
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

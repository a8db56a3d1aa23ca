#!/usr/bin/env python3
"""words.py ROOT: refuses the words of words.txt in the comments and messages of C and CUDA files, in scripts and in docs.

Texts are joined over line breaks and over the parts of a string literal. Prints FILE:LINE, the text, and what to write
instead; exit status 1 if there is any. words.py --planted: plants every offender of words.txt in a small tree, in each
kind of text, and exits with 1 unless each is found where it was planted, and nothing else."""
import bisect
import os
import re
import subprocess
import sys
import tempfile

# Rooms that nobody has gone through yet. Only ever shortened.
UNCHECKED = ()

# Not ours to word, or not a text of the product.
EXEMPT = ("CHANGELOG.md", "LICENSE", "THIRD-PARTY", "tests/", "bench/peers/")
CODE = (".c", ".h", ".cu", ".cuh", ".def")
SCRIPTS = (".sh", ".py", ".cmake", ".html", "CMakeLists.txt", "/dev")

TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)+'", re.S)
GLUE = re.compile(r"(?:\s|\\\n|PRI[a-zA-Z0-9]+)*\Z")
DECORATION = re.compile(r"\n[ \t]*(?:\*(?!/)|//|#)?[ \t]*")
RUN_IN = re.compile(r"\A\*\*[^*]*[.:?]\*\*|\]\([^)]*\)")  # a heading in a paragraph, the target of a link
SENTENCE = r"(?:(?<=\n)|(?<=[.!?][ )\"]))"


class Text:
    """The texts of a file as one string: a line for each, and the file's line of every place in it."""

    def __init__(self):
        self.parts, self.size, self.starts, self.lines = ["\n"], 1, [0], [1]

    def add(self, text, line, joined=False):
        """Appends a text that begins in `line`; joined: it goes on with the last one."""
        if joined:
            self.parts[-1] = self.parts[-1][:-1]
            self.size -= 1
        for i, piece in enumerate(DECORATION.split(text)):
            self._append(piece + " ", line + i)
        self._append("\n", line)

    def _append(self, piece, line):
        self.starts.append(self.size)
        self.lines.append(line)
        self.parts.append(piece)
        self.size += len(piece)

    def whole(self):
        return "".join(self.parts)

    def line_of(self, at):
        return self.lines[bisect.bisect_right(self.starts, at) - 1]


def read_code(source):
    """Comments, and string literals with their parts joined."""
    out, end, line, last = Text(), 0, 1, ""
    for m in TOKEN.finditer(source):
        between, token = source[end:m.start()], m.group()
        line += between.count("\n")
        kind = token[:2] if token[0] == "/" else token[0]
        joined = kind == last and (kind == '"' and GLUE.match(between) or kind == "//" and not between.strip())
        if kind == "/*":
            out.add(token[2:-2].strip("*"), line)
        elif kind == "//":
            out.add(token[2:], line, joined)
        elif kind == '"':
            out.add(re.sub(r"%[-+ .*0-9]*[a-zA-Z]*|\\n", " ", token[1:-1]), line, joined)
        end, last = m.end(), kind
        line += token.count("\n")
    return out


def read_script(source):
    """All of it: comments of several lines and texts that are printed."""
    out = Text()
    out.add(source, 1)
    return out


def read_page(source):
    """Paragraphs and items; no code, tables, headings or targets of links."""
    out, paragraph, first, code = Text(), [], 1, False
    for n, line in enumerate(source.split("\n") + [""], 1):
        if line.lstrip().startswith("```"):
            code = not code
        stops = not line.strip() or line.lstrip().startswith(("```", "#", "|")) or code
        if paragraph and (stops or re.match(r"\s*([-*] |\d+\. )", line)):
            out.add(RUN_IN.sub(lambda m: "\n" * m.group().count("\n"), "\n".join(paragraph)), first)
            paragraph = []
        if not stops:
            if not paragraph:
                first, line = n, re.sub(r"^\s*(?:[-*] |\d+\. )?", "", line)
            paragraph.append(line)
    return out


def read_words(path):
    """The lines of words.txt: (regular expression, exempt folders, instead, offender)."""
    words = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                pattern, instead, offender = (w.strip() for w in line.split(" => "))
                m = re.match(r"(.*?) \[not (.*)\]$", pattern)
                words.append((m.group(1) if m else pattern, tuple(m.group(2).split()) if m else (), instead, offender))
    return words


def compile_word(pattern):
    pattern = pattern.replace(" ", r" +")
    if pattern.startswith("^"):
        return re.compile(SENTENCE + " *" + pattern[1:] + r"(?=[^.?!\n]*[^?]?(?:[.:;!\n]|$))")
    return re.compile(r"\b(?:" + pattern + r")\b", re.I)


def is_page(path):
    return path.endswith(".md")


def check(root, paths, words):
    """Returns "FILE:LINE: text => instead" of every offender."""
    found = []
    compiled = [(compile_word(w[0]), w[0].startswith("^"), w[1], w[2]) for w in words]
    anything = re.compile("|".join("(?:%s)" % c[0].pattern for c in compiled if not c[1]), re.I)
    starts = re.compile("|".join("(?:%s)" % c[0].pattern for c in compiled if c[1]))
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            source = f.read()
        read = read_page if is_page(path) else read_code if path.endswith(CODE) else read_script
        text = read(source)
        whole = text.whole()
        has_starts = (is_page(path) or path.endswith((".h", ".cuh"))) and starts.search(whole)
        if not has_starts and not anything.search(whole):
            continue
        for expression, at_start, exempt, instead in compiled:
            if at_start and not has_starts or path.startswith(exempt or ("\n",)):
                continue
            for m in expression.finditer(whole):
                around = whole[max(0, m.start() - 20):m.end() + 30].replace("\n", " ").strip()
                place = m.start() + len(m.group()) - len(m.group().lstrip())
                found.append("%s:%d: ...%s... => %s" % (path, text.line_of(place), " ".join(around.split()), instead))
    return found


def texts_of(root):
    """The files whose texts are checked."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root,
                            capture_output=True, text=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        paths = [p for p in listed.stdout.split("\n") if p and os.path.isfile(os.path.join(root, p))]
    else:
        paths = [os.path.relpath(os.path.join(d, f), root) for d, _, files in os.walk(root) for f in files]
        paths = [p for p in paths if not p.startswith(("build/", ".git/", ".cache/"))]
    return sorted(p for p in paths if ("/" + p).endswith(CODE + SCRIPTS + (".md",)) and not p.startswith(EXEMPT + UNCHECKED))


def plant(root, words):
    """Writes a small tree with every offender; returns the places where they must be found."""
    expected = set()

    def write(path, text, *lines):
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as f:
            f.write(text)
        expected.update("%s:%d" % (path, line) for line in lines)

    for i, (pattern, exempt, _, offender) in enumerate(words):
        first, rest = offender.split(" ", 1) if " " in offender else (offender, "it.")
        begin = len(re.match("", first).group())
        assert begin == 0
        sentence = pattern.startswith("^")
        write("a/%d.h" % i, "/* It is so.\n *\n * %s\n * %s */\nint x;\n" % (first, rest))
        write("a/%d.md" % i, "# %s\n\n| %s |\n\n```\n%s\n```\n\nIt is so. %s\n%s\n" % ((offender,) * 3 + (first, rest)))
        write("tests/%d.c" % i, "/* %s */\n" % offender)
        if not sentence:
            write("a/%d.c" % i, 'f("It is so: %s "\n  "%s");\n// %s\n// %s\n' % (first, rest, first, rest))
            write("a/%d.sh" % i, "# %s\n# %s\n" % (first, rest))
        if exempt:
            write("%s/%d.c" % (exempt[0], i), "/* %s */\n" % offender)
    write("a/fine.h", "/* Tells them apart. They are told apart by a name: what is left, where it is. Why? */\n")
    write("a/fine.md", "Where is it? In `docs/`, where all are.\n\n**What it is.** A [file](of-no-use.md).\n")
    return expected


def planted():
    words = read_words(os.path.join(os.path.dirname(os.path.abspath(__file__)), "words.txt"))
    with tempfile.TemporaryDirectory() as root:
        plant(root, words)
        found = check(root, texts_of(root), words)
        places = {}
        for line in found:
            path, number = line.split(":")[:2]
            places.setdefault(path, set()).add(int(number))
        wrong = []
        for i, (pattern, _, _, _) in enumerate(words):
            kinds = {"h": {3, 4}, "md": {9, 10}}
            if not pattern.startswith("^"):
                kinds.update(c={1, 2, 3, 4}, sh={1, 2})
            for kind, lines in kinds.items():
                got = places.pop("a/%d.%s" % (i, kind), set())
                if not got or not got <= lines or kind == "c" and not (got & {1, 2} and got & {3, 4}):
                    wrong.append("%s in .%s: found in lines %s" % (pattern, kind, sorted(got)))
        wrong += ["found in %s, which is exempt or fine" % path for path in places]
    print("\n".join(wrong) or "%d patterns: every planted offender was found" % len(words))
    return 1 if wrong else 0


def main():
    if sys.argv[1:] == ["--planted"]:
        return planted()
    root = os.path.abspath(sys.argv[1])
    words = read_words(os.path.join(os.path.dirname(os.path.abspath(__file__)), "words.txt"))
    paths = texts_of(root)
    if not paths:
        print("words.py: %s: no file to check" % root)
        return 1
    found = check(root, paths, words)
    print("\n".join(found) or "%d files, in plain words" % len(paths))
    return 1 if found else 0


sys.exit(main())

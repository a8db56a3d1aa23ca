"""Faults planted in the attention and product kernels, each of which must be found: in the PTX text,
where the instruction is what is wrong, or in the source, which is then compiled anew (attention for
head dimension 32 alone)."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass

from interpreter import parse

FORWARD, BACKWARD, PRODUCT = "attention_mma_forward", "attention_mma_backward", "product"
MMA_PRODUCT = "product_mma"


class NoSuchPlace(Exception):
    """A mutant does not apply: the kernels have changed, and the mutant must follow them."""


def replaced(pattern, by, text, which=None):
    """Returns the text with every match of `pattern` replaced, or with match number `which`
    alone."""
    seen = -1

    def one(m):
        nonlocal seen
        seen += 1
        return m.expand(by) if which is None or seen == which else m.group()

    changed = re.sub(pattern, one, text)
    if changed == text:
        raise NoSuchPlace(f"nothing to change matches {pattern}")
    return changed


MMA = r"(mma\.sync[\w.]+ \{[^}]*\}, )\{(%r\d+),(%r\d+),(%r\d+),(%r\d+)\}, \{(%r\d+),(%r\d+)\}"


@dataclass
class PtxMutant:
    name: str
    module: str
    pattern: str
    by: str
    which: int = None

    def apply(self, texts):
        return replaced(self.pattern, self.by, texts[self.module], self.which)


PTX_MUTANTS = [
    PtxMutant("mma: a1 and a2 exchanged", FORWARD, MMA, r"\1{\2,\4,\3,\5}, {\6,\7}"),
    PtxMutant("mma: b0 and b1 exchanged", FORWARD, MMA, r"\1{\2,\3,\4,\5}, {\7,\6}"),
    PtxMutant("mma: a1 and a2 exchanged", BACKWARD, MMA, r"\1{\2,\4,\3,\5}, {\6,\7}"),
    PtxMutant("mma: b0 and b1 exchanged", BACKWARD, MMA, r"\1{\2,\3,\4,\5}, {\7,\6}"),
    PtxMutant("ldmatrix without .trans", FORWARD, r"\.x4\.trans\.", ".x4."),
    PtxMutant("ldmatrix without .trans", BACKWARD, r"\.x4\.trans\.", ".x4."),
    PtxMutant(
        "a pair packed the other way round",
        FORWARD,
        r"(mov\.b32\s+%r\d+, )\{(%rs\d+), ?(%rs\d+)\}",
        r"\1{\3, \2}",
    ),
    PtxMutant("wait_group leaves one group more", FORWARD, r"wait_group 1", "wait_group 2"),
    PtxMutant("wait_group leaves one group more", BACKWARD, r"wait_group 0", "wait_group 1"),
    PtxMutant("copies are never committed", FORWARD, r"cp\.async\.commit_group;", ""),
    PtxMutant("no barrier after the copies", FORWARD, r"bar\.sync\s+0;", "", 0),
    PtxMutant("no barrier before the next copies", FORWARD, r"bar\.sync\s+0;", "", 1),
    PtxMutant("dq: no barrier after the copies", BACKWARD, r"bar\.sync\s+0;", "", 0),
    PtxMutant("dq: no barrier before the next copies", BACKWARD, r"bar\.sync\s+0;", "", 1),
    PtxMutant("dkv: no barrier after the copies", BACKWARD, r"bar\.sync\s+0;", "", 2),
    PtxMutant("dkv: no barrier before the next copies", BACKWARD, r"bar\.sync\s+0;", "", 3),
    PtxMutant("mma: a1 and a2 exchanged", MMA_PRODUCT, MMA, r"\1{\2,\4,\3,\5}, {\6,\7}"),
    PtxMutant("mma: b0 and b1 exchanged", MMA_PRODUCT, MMA, r"\1{\2,\3,\4,\5}, {\7,\6}"),
    PtxMutant("ldmatrix without .trans", MMA_PRODUCT, r"\.x4\.trans\.", ".x4."),
    PtxMutant("wait_group leaves one group more", MMA_PRODUCT, r"wait_group 1", "wait_group 2"),
    PtxMutant("copies are never committed", MMA_PRODUCT, r"cp\.async\.commit_group;", ""),
    PtxMutant("zeroes are copied from nowhere", MMA_PRODUCT, r"(cp\.async\.cg[^;]*, 16, )%r\d+;", r"\g<1>16;"),
    PtxMutant("no barrier after the copies", MMA_PRODUCT, r"(wait_group 1;\s+// end.*\s+)bar\.sync\s+0;", r"\1"),
    PtxMutant("no barrier before the sums", MMA_PRODUCT, r"(, 0;\s+\$L__BB\d+_\d+:\s+)bar\.sync\s+0;", r"\1"),
    PtxMutant("no barrier behind the sums", MMA_PRODUCT, r"(setp\.gt.*\s+)bar\.sync\s+0;", r"\1"),
    PtxMutant(
        "a shuffle with lane ^ 4", FORWARD, r"(shfl\.sync\.bfly\.b32\s+[^,]*, %r\d+, )%r(\d+)", r"\g<1>4", 0
    ),
]


@dataclass
class SourceMutant:
    name: str
    modules: tuple  # those in which it shows
    file: str
    old: str
    new: str

    def apply(self, text):
        if self.old not in text:
            raise NoSuchPlace(f"{self.file} has no line with: {self.old}")
        return text.replace(self.old, self.new, 1)


SOURCE_MUTANTS = [
    SourceMutant(
        "a key right of the diagonal is seen",
        (FORWARD,),
        FORWARD + ".cu",
        "q + i % 2 > row + g + i / 2 * 8",
        "q + i % 2 > row + g + i / 2 * 8 + 1",
    ),
    SourceMutant(
        "dq: the diagonal is not seen",
        (BACKWARD,),
        BACKWARD + ".cu",
        "q + i % 2 <= first + row + g",
        "q + i % 2 < first + row + g",
    ),
    SourceMutant(
        "dkv: the diagonal is not seen",
        (BACKWARD,),
        BACKWARD + ".cu",
        "t + query >= first",
        "t + query > first",
    ),
    SourceMutant(
        "scores without 1 / sqrt(head_dim)",
        (FORWARD,),
        FORWARD + ".cu",
        "LOG2_E / sqrtf((float)HD)",
        "LOG2_E",
    ),
    SourceMutant(
        "dq and dk without 1 / sqrt(head_dim)",
        (BACKWARD,),
        BACKWARD + ".cu",
        "factor[2] = {1.0f / sqrtf((float)HD), 1.0f / sqrtf((float)HD)}",
        "factor[2] = {1, 1}",
    ),
    SourceMutant(
        "lse in base 2",
        (FORWARD,),
        FORWARD + ".cu",
        " + log2f(rows.sum[half])) * LN_2",
        " + log2f(rows.sum[half]))",
    ),
    SourceMutant(
        "a row beyond the last is read",
        (FORWARD,),
        "attention_mma.cuh",
        "first + row < end",
        "first + row <= end",
    ),
    SourceMutant(
        "the left operand's rows are not padded",
        (FORWARD,),
        "attention_mma.cuh",
        "(row + lane % 16) * tile_stride<HD>",
        "(row + lane % 16) * HD",
    ),
    SourceMutant(
        "the wrong key/value head",
        (FORWARD,),
        FORWARD + ".cu",
        "h / (s.heads / s.kv_heads)",
        "h % s.kv_heads",
    ),
    SourceMutant("zeroes are copied from nowhere", (FORWARD,), "ptx.cuh", "from ? 16 : 0", "16"),
    SourceMutant(
        "the older sum is not brought to scale",
        (FORWARD,),
        FORWARD + ".cu",
        "rows.sum[half] * shrink",
        "rows.sum[half]",
    ),
    SourceMutant(
        "the next slice is written while this one is read",
        (PRODUCT,),
        PRODUCT + ".cu",
        "column);\n\t\t__syncthreads();\n\t}",
        "column);\n\t}",
    ),
    SourceMutant(
        "a slice goes on beyond the last k",
        (PRODUCT,),
        PRODUCT + ".cu",
        "&& first_k + k < x.k;",
        ";",
    ),
    SourceMutant(
        "a transposed operand is read as if it were not",
        (PRODUCT,),
        PRODUCT + ".cu",
        "along_k ? e / DEPTH : e % TILE",
        "e / DEPTH % TILE",
    ),
    SourceMutant(
        "the older d is not added",
        (PRODUCT,),
        PRODUCT + ".cu",
        "to_float(*at) + sum[i][j]",
        "sum[i][j]",
    ),
    SourceMutant(
        "the last column is not written",
        (PRODUCT,),
        PRODUCT + ".cu",
        "n >= p.b.outer",
        "n + 1 >= p.b.outer",
    ),
    SourceMutant(
        "every column of tiles adds the sums of rows",
        (MMA_PRODUCT,),
        MMA_PRODUCT + ".cu",
        "SUMS && first_column == 0",
        "SUMS",
    ),
    SourceMutant(
        "a part of the sums of rows is left out",
        (MMA_PRODUCT,),
        MMA_PRODUCT + ".cu",
        "part < PARTS; part++",
        "part < PARTS - 1; part++",
    ),
    SourceMutant(
        "two threads sum the same part of a slice",
        (MMA_PRODUCT,),
        MMA_PRODUCT + ".cu",
        "/ PAIRS * (DEPTH / PARTS)",
        "/ PAIRS / 2 * (DEPTH / PARTS)",
    ),
    SourceMutant(
        "the sums of rows replace what was there",
        (MMA_PRODUCT,),
        MMA_PRODUCT + ".cu",
        "p.row_sums[first_row + row] += sum",
        "p.row_sums[first_row + row] = sum",
    ),
    SourceMutant(
        "no barrier between the parts of the sums of rows and their reading",
        (MMA_PRODUCT,),
        MMA_PRODUCT + ".cu",
        "kept[at + 1] = sums.y;\n\t__syncthreads();",
        "kept[at + 1] = sums.y;",
    ),
]


def compile_ptx(nvcc, includes, source, output):
    """Returns the parsed module; raises CalledProcessError with nvcc's words on standard error."""
    where = [f"-I{folder}" for folder in includes]
    subprocess.run(
        [nvcc, "-std=c++17", "-O3", *where, "-arch=compute_80", "-ptx", source, "-o", output], check=True
    )
    with open(output) as file:
        return parse(file.read())


def compile_mutant(nvcc, top, mutant, folder):
    """Returns {module: kernels} of the modules in which the mutant shows, for head dimension 32."""
    copies = os.path.join(folder, "kernels", "cuda")
    shutil.copytree(os.path.join(top, "kernels", "cuda"), copies)
    edits = [
        (
            "attention_mma.cuh",
            lambda text: re.sub(r"\telse if \(head_dim == 64\).*?<128>\(\)\);\n", "", text, flags=re.S),
        ),
        (mutant.file, mutant.apply),
    ]
    for name, edit in edits:
        path = os.path.join(copies, name)
        with open(path) as file:
            text = edit(file.read())
        with open(path, "w") as file:
            file.write(text)
    return {
        module: compile_ptx(
            nvcc, [folder, top], os.path.join(copies, module + ".cu"), os.path.join(folder, module + ".ptx")
        )
        for module in mutant.modules
    }

#!/usr/bin/python3
"""test_mutants.py NVCC TOP PTX_FOLDER: every mutant of mutants.py is found, and the kernels
themselves are not."""

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

try:
    import attention
    import product
except ImportError as missing:
    print(f"skipped: {missing} (python3-numpy)")
    sys.exit(77)
from interpreter import Fault, parse
from mutants import BACKWARD, FORWARD, MMA_PRODUCT, PRODUCT, PTX_MUTANTS, SOURCE_MUTANTS, NoSuchPlace, compile_mutant
from reference import Shape

# Two heads share a key/value head beside two that share another. Forward: three tiles of keys, so
# that its two buffers are used again.
SHAPES = {FORWARD: Shape(1, 131, 4, 2, 32), BACKWARD: Shape(1, 67, 4, 2, 32)}

# Kernels for head dimension 32; the products with a as it is used forward, b as it lies, bf16, and with
# sums of rows.
ONLY = {FORWARD: ["ILi32E"], BACKWARD: ["ILi32E"], PRODUCT: [], MMA_PRODUCT: ["ILb1ELb0ELb0E13__nv_bfloat16E", "ILb0ELb0ELb1EfE"]}


# Both layouts of the operands, three slices of k and a part of one, one tile and a part of another.
PRODUCTS = [
    {"m": 65, "n": 9, "k": 37, "transposed": (False, True), "accumulate": True, "types": ("fp32", "fp32")},
    {"m": 5, "n": 66, "k": 33, "transposed": (True, False), "accumulate": False, "types": ("fp32", "fp32")},
]


# More steps along k than stages, both halves of a tile, parts of it; sums of rows, two tiles across.
MMA_PRODUCTS = [
    {"m": 72, "n": 16, "k": 136, "transposed": (False, False), "epilogue": product.GELU},
    {"m": 16, "n": 136, "k": 72, "transposed": (True, False), "out": "fp32", "epilogue": product.SUMS},
]


def product_verdict(kernels, of, cases):
    """Returns why these products are wrong, or None."""
    try:
        for case in cases:
            errors = of(kernels, **case)
            if not max(errors.values()) <= 1:
                return f"errors of {errors}, as multiples of what is allowed"
    except Fault as fault:
        return str(fault)
    return None


def verdict(modules):
    """Returns why these modules are wrong, or None."""
    if PRODUCT in modules:
        return product_verdict(modules[PRODUCT], product.product, PRODUCTS)
    if MMA_PRODUCT in modules:
        return product_verdict(modules[MMA_PRODUCT], product.product_mma, MMA_PRODUCTS)
    found = [attention.verdict(SHAPES[FORWARD], forward=modules[FORWARD])] if FORWARD in modules else []
    found += [attention.verdict(SHAPES[BACKWARD], backward=modules[BACKWARD])] if BACKWARD in modules else []
    return "; ".join(filter(None, found)) or None


def judge(mutant, modules):
    """Prints how a mutant was found; returns whether it was."""
    why = verdict(modules)
    title = f"{mutant.name} ({', '.join(modules)})"
    print(f"{'found' if why else 'NOT FOUND':9}  {title}: {why or 'all results are right'}", flush=True)
    return why is not None


def main():
    nvcc, top, folder = sys.argv[1:]
    texts = {}
    for module in ONLY:
        with open(f"{folder}/{module}.ptx") as file:
            texts[module] = file.read()
        if why := verdict({module: parse(texts[module], *ONLY[module])}):
            print(f"the kernels without a mutant: {module}: {why}")
            return 1
    missed = 0
    for mutant in PTX_MUTANTS:
        missed += not judge(mutant, {mutant.module: parse(mutant.apply(texts), *ONLY[mutant.module])})
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(2) as pool:
        made = [
            pool.submit(compile_mutant, nvcc, top, m, f"{scratch}/{i}") for i, m in enumerate(SOURCE_MUTANTS)
        ]
        for mutant, modules in zip(SOURCE_MUTANTS, made):
            missed += not judge(mutant, modules.result())
    print(f"{len(PTX_MUTANTS) + len(SOURCE_MUTANTS)} mutants, {missed} not found")
    return missed > 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NoSuchPlace as why:
        sys.exit(
            f"a mutant does not apply any more: {why}; change tests/kernels/ptx/mutants.py with the kernels"
        )

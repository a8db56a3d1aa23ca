#!/usr/bin/python3
"""test_streaming.py PTX_FOLDER: the kernels behind and beside the products, interpreted from the
PTX that nvcc emits."""

import sys

try:
    import product
    import streaming
except ImportError as missing:
    print(f"skipped: {missing} (python3-numpy)")
    sys.exit(77)
from interpreter import Fault, parse

# Rows of the classifier: shorter than one vector for each thread, whole vectors, a tail, more than
# one vector for each thread.
PRODUCT = ("m", "n", "k", "transposed", "accumulate", "types", "ld_extra")
CASES = [
    ("classifier", streaming.classifier, {"rows": 3, "v": 77, "vp": 80, "vector": 8}),
    ("classifier", streaming.classifier, {"rows": 2, "v": 512, "vp": 512, "vector": 8, "ld_extra": 8}),
    ("classifier", streaming.classifier, {"rows": 2, "v": 9001, "vp": 9016, "vector": 8}),
    ("classifier", streaming.classifier, {"rows": 2, "v": 777, "vp": 779, "vector": 1}),
    ("epilogue", streaming.epilogue, {"m": 7, "n": 51, "ld": 56, "kind": streaming.GEMM_BIAS}),
    ("epilogue", streaming.epilogue, {"m": 7, "n": 51, "ld": 51, "kind": streaming.GEMM_GELU}),
    ("epilogue", streaming.epilogue, {"m": 7, "n": 51, "ld": 64, "kind": streaming.GEMM_DGELU}),
    ("column_sum", streaming.column_sum, {"n": 131, "c": 72, "vector": 8}),
    ("column_sum", streaming.column_sum, {"n": 67, "c": 45, "vector": 1}),
    ("column_sum", streaming.reduce_two, {"rows": 37, "columns": 45}),
    ("outer_blocks", streaming.outer, {"n": 3001, "bits": 8}),
    ("outer_blocks", streaming.outer, {"n": 1001, "bits": 16}),
    ("norm", streaming.norm_forward, {"n": 5, "c": 328, "kind": 0}),
    ("norm", streaming.norm_forward, {"n": 3, "c": 1024, "kind": 1}),
    ("norm", streaming.norm_backward, {"n": 9, "c": 328, "kind": 0}),
    ("norm", streaming.norm_backward, {"n": 5, "c": 1024, "kind": 1}),
    ("adamw", streaming.adamw, {"n": 4000}),
    *(
        ("product", product.product, dict(zip(PRODUCT, case)))
        for case in (
            (65, 70, 33, (False, False), True, ("fp32", "fp32"), 3),
            (17, 66, 40, (True, True), False, ("bf16", "bf16"), 1),
            (3, 9, 5, (False, True), True, ("bf16", "fp32"), 0),
            (66, 5, 16, (True, False), False, ("bf16", "bf16"), 8),
        )
    ),
    # The four layouts; more steps along k than stages; parts of tiles; rows that are no multiple of 8.
    ("product_mma", product.product_mma, {"m": 21, "n": 136, "k": 136, "transposed": (False, True), "epilogue": product.GELU}),
    ("product_mma", product.product_mma, {"m": 40, "n": 24, "k": 72, "transposed": (False, False), "epilogue": product.DGELU}),
    ("product_mma", product.product_mma, {"m": 24, "n": 16, "k": 37, "transposed": (True, False), "out": "fp32", "accumulate": True}),
    # Sums of rows: two tiles across, of which the first adds them; a part of a tile down.
    ("product_mma", product.product_mma, {"m": 136, "n": 136, "k": 45, "transposed": (True, False), "out": "fp32", "epilogue": product.SUMS}),
    ("product_mma", product.product_mma, {"m": 16, "n": 8, "k": 130, "transposed": (True, False), "out": "fp32", "epilogue": product.SUMS, "accumulate": True}),
    ("product_mma", product.product_mma, {"m": 16, "n": 13, "k": 40, "transposed": (True, True), "epilogue": product.BIAS, "ld_extra": 0}),
]


def main():
    modules, wrong = {}, 0
    print("largest errors, as multiples of what is allowed")
    for module, case, arguments in CASES:
        if module not in modules:
            with open(f"{sys.argv[1]}/{module}.ptx") as file:
                modules[module] = parse(file.read())
        title = f"{case.__name__} {', '.join(f'{k} {v}' for k, v in arguments.items())}"
        try:
            errors = case(modules[module], **arguments)
        except Fault as fault:
            print(f"{title}: {fault}")
            wrong += 1
            continue
        above = [name for name, error in errors.items() if not error <= 1]
        wrong += bool(above)
        print(
            f"{title:50}",
            *(f"{name} {error:.2g}" for name, error in errors.items()),
            *(f"ABOVE: {name}" for name in above),
            flush=True,
        )
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/python3
"""test_attention.py PTX_FOLDER: the tensor-core attention kernels, interpreted from the PTX that
nvcc emits, against fp64."""

import sys

try:
    import attention
except ImportError as missing:
    print(f"skipped: {missing} (python3-numpy)")
    sys.exit(77)
from interpreter import parse
from reference import Shape

SHAPES = [
    Shape(2, 1, 2, 1, 32),
    Shape(1, 7, 2, 1, 64),
    Shape(1, 63, 1, 1, 128),
    Shape(1, 64, 2, 2, 32),
    Shape(1, 65, 4, 2, 32),
    Shape(2, 65, 2, 2, 64),
    Shape(1, 65, 2, 1, 128),
    Shape(1, 200, 2, 1, 32),
    Shape(1, 129, 3, 1, 64),
    Shape(1, 97, 2, 2, 128),
]


def modules(folder):
    for name in ("attention_mma_forward", "attention_mma_backward"):
        with open(f"{folder}/{name}.ptx") as file:
            yield parse(file.read())


def main():
    forward, backward = modules(sys.argv[1])
    wrong = 0
    print("root mean square of the error relative to the value's; of lse, its largest error")
    for shape in SHAPES:
        case = attention.Attention(shape)
        errors = {**case.forward(forward), **case.backward(backward)}
        above = attention.excesses(errors)
        wrong += bool(above)
        row = "  ".join(f"{name} {error:7.2g}" for name, error in errors.items())
        print(
            f"{str(shape):38} {row}  {case.instructions:6} instructions",
            *(["ABOVE THE LIMIT:", above] if above else []),
            flush=True,
        )
    print("limits:", attention.LIMITS)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())

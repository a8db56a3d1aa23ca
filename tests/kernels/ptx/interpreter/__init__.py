"""An interpreter of the PTX that nvcc emits, written from NVIDIA's PTX ISA 9.0.

    module.py      parses the text: kernels, registers, parameters, shared arrays, basic blocks
    values.py      types, registers, immediates: how an operand is read and a result is written
    arithmetic.py  instructions of one thread that touch no memory
    memory.py      global and shared memory: bounds, alignment, uninitialised reads
    shadow.py      finds races: accesses of two warps to the same bytes without a barrier between
    transfer.py    loads, stores, atomics, cp.async and its groups
    warp.py        instructions of a whole warp: shuffles, ldmatrix, mma
    machine.py     runs a grid: branches, barriers, the order in which threads run

All threads of a grid are lanes of numpy arrays; each instruction is executed for all of them that
have reached it.
"""

from .faults import Fault, Unsupported
from .machine import Grid, run
from .memory import GlobalMemory
from .module import parse

__all__ = ["Fault", "GlobalMemory", "Grid", "Unsupported", "parse", "run"]

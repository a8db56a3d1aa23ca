"""Runs a kernel over a grid. All threads are lanes; those that stand at the earliest basic block
run it together, so that threads which a branch divided meet again at the next label that all of
them reach."""

from dataclasses import dataclass

import numpy as np

from . import arithmetic, transfer, warp
from .faults import Fault, Unsupported
from .memory import SharedMemory
from .shadow import Who

BUILDERS = {**arithmetic.BUILDERS, **transfer.BUILDERS, **warp.BUILDERS}
BLOCKS_RUN_MOST = 1_000_000  # more is a loop without an end


@dataclass
class Grid:
    blocks: tuple  # (x, y, z)
    threads: tuple
    dynamic_shared_bytes: int = 0


class Machine:
    """A launch under way. `mask`: the lanes that execute the current instruction, or None for
    all."""

    def __init__(self, kernel, memory, arguments, grid):
        self.kernel, self.memory, self.grid = kernel, memory, grid
        self.threads, self.blocks = int(np.prod(grid.threads)), int(np.prod(grid.blocks))
        if self.threads % warp.WARP:
            raise Unsupported("blocks of whole warps only")
        self.lanes = self.threads * self.blocks
        self.arguments = packed(kernel, arguments)
        self.shared = SharedMemory(kernel, grid.dynamic_shared_bytes, self.blocks)
        self.registers, self.mask = {}, None
        lane = np.arange(self.lanes)
        self.block_of, self.warp_of = (lane // self.threads).astype(np.int64), (lane // warp.WARP).astype(
            np.int32
        )
        self.epoch = np.zeros(self.blocks, np.int32)
        self.copies, self.open_group = [], np.zeros(self.lanes, np.int32)
        self.everyone = (lane, self.who(lane))
        self.instructions_run = 0

    def set(self, name, values):
        if values.shape != (self.lanes,):
            values = np.broadcast_to(values, self.lanes).copy()
        if self.mask is None or name not in self.registers:
            self.registers[name] = values
        else:
            self.registers[name] = np.where(self.mask, values, self.registers[name])

    def special(self, name):
        if name == "%laneid":
            return np.arange(self.lanes) % warp.WARP
        which, axis = name[1:].split(".")
        shape = self.grid.threads if which in ("tid", "ntid") else self.grid.blocks
        axis = "xyz".index(axis)
        if which.startswith("n"):
            return np.full(self.lanes, shape[axis])
        lane = np.arange(self.lanes)
        index = lane % self.threads if which == "tid" else lane // self.threads
        return index // int(np.prod(shape[:axis])) % shape[axis]

    def who(self, lanes):
        return Who(self.warp_of[lanes], self.block_of[lanes], self.epoch[self.block_of[lanes]])

    def active_lanes(self):
        """Returns the lanes that execute, and who they are."""
        if self.mask is None:
            return self.everyone
        lanes = np.flatnonzero(self.mask)
        return lanes, self.who(lanes)

    def spread(self, values):
        return values if values.shape == (self.lanes,) else np.broadcast_to(values, self.lanes)

    def scattered(self, values, lanes):
        """Returns an array over all lanes that holds `values` at `lanes`."""
        if values.size == self.lanes:
            return values
        spread = np.zeros(self.lanes, values.dtype)
        spread[lanes] = values
        return spread

    def pass_barrier(self, blocks):
        self.epoch[blocks] += 1
        self.everyone = (self.everyone[0], self.who(self.everyone[0]))


def packed(kernel, arguments):
    """Returns the bytes of the parameters: numpy scalars, or the bytes of a struct."""
    if len(arguments) != len(kernel.parameters):
        raise Fault(f"{kernel.name} has {len(kernel.parameters)} parameters, not {len(arguments)}")
    room = np.zeros(kernel.parameter_bytes, np.uint8)
    for (offset, size), argument in zip(kernel.parameters.values(), arguments):
        raw = np.frombuffer(argument if isinstance(argument, bytes) else argument.tobytes(), np.uint8)
        if raw.size != size:
            raise Fault(f"{kernel.name}: a parameter of {size} bytes is given {raw.size}")
        room[offset : offset + size] = raw
    return room


def compiled(kernel):
    """Returns, for each block, its steps and the instruction that ends it: a branch, a barrier,
    ret, or None."""
    blocks = []
    for instructions in kernel.blocks:
        steps, last = [], None
        for instruction in instructions:
            if instruction.opcode[0] in ("bra", "ret", "exit", "bar"):
                last = instruction
                continue
            if instruction.guard:
                raise Unsupported(f"line {instruction.line}: a predicate before {instruction.text}")
            build = BUILDERS.get(instruction.opcode[0])
            if not build:
                raise Unsupported(f"line {instruction.line}: {instruction.text}")
            steps.append(build(kernel, instruction))
        blocks.append((steps, last))
    return blocks


class Scheduler:
    """Which lanes stand at which basic block, and which wait at a barrier before it."""

    def __init__(self, machine):
        self.machine = machine
        self.standing = {0: np.ones(machine.lanes, bool)}
        self.waiting = {}

    def send(self, lanes, block):
        if lanes.any():
            here = self.standing.get(block)
            self.standing[block] = lanes if here is None else here | lanes

    def wait(self, lanes, block, what):
        """Lanes arrive at the barrier in front of `block`. A block's threads go on when all of them
        are there."""
        m = self.machine
        by_warp = lanes.reshape(-1, warp.WARP)
        if (by_warp.any(axis=1) != by_warp.all(axis=1)).any():
            raise Fault(f"{what}: a divided warp at a barrier")
        waiting = self.waiting[block] = self.waiting.get(block, False) | lanes
        complete = waiting.reshape(m.blocks, -1).all(axis=1)
        if complete.any():
            m.pass_barrier(complete)
            released = np.repeat(complete, m.threads)
            self.waiting[block] = waiting & ~released
            self.send(released, block)

    def run(self, blocks):
        m, runs = self.machine, 0
        while self.standing:
            at = min(self.standing)
            lanes = self.standing.pop(at)
            steps, last = blocks[at]
            m.mask = None if lanes.all() else lanes
            for step in steps:
                step(m)
            m.instructions_run += len(steps) + 1
            self.leave(lanes, at, last)
            runs += 1
            if runs > BLOCKS_RUN_MOST:
                raise Fault(f"{m.kernel.name} does not end")
        if any(waiting.any() for waiting in self.waiting.values()):
            raise Fault(f"{m.kernel.name}: threads wait at a barrier that others of their block never reach")

    def leave(self, lanes, at, last):
        """Sends the lanes that have run block `at` on to where its last instruction says."""
        what = f"line {last.line}: {last.text}" if last else ""
        if last is None:
            return self.send(lanes, at + 1)
        taken = lanes
        if last.guard:
            name, negated = last.guard
            holds = self.machine.registers[name]
            taken = lanes & (~holds if negated else holds)
            self.send(lanes & ~taken, at + 1)
        if last.opcode[0] == "bra":
            self.send(taken, self.machine.kernel.labels[last.operands[0]])
        elif last.opcode[0] == "bar":
            if last.guard or last.operands != ["0"]:
                raise Unsupported(what)
            self.wait(lanes, at + 1, what)


def run(kernel, memory, arguments, grid):
    """Runs a kernel to its end; returns the number of instructions that were executed, each for
    many threads. Raises Fault where the kernel does what the ISA leaves undefined."""
    if not hasattr(kernel, "compiled"):
        kernel.compiled = compiled(kernel)
    memory.shadow.forget()
    machine = Machine(kernel, memory, arguments, grid)
    with np.errstate(all="ignore"):
        Scheduler(machine).run(kernel.compiled)
    return machine.instructions_run

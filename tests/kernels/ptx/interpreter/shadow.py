"""Who touched each word of memory last. Two warps of a block that touch the same word, one of them
writing, with no barrier between race; so do two blocks at any time. An asynchronous copy that
nobody waited for makes its words untouchable."""

from dataclasses import dataclass

import numpy as np

from .faults import Fault

NOBODY, SEVERAL = -1, -2


@dataclass
class Who:
    """The lanes of an access: warps and blocks are numbered through the grid; a block's epoch
    counts its barriers."""

    warps: np.ndarray
    blocks: np.ndarray
    epochs: np.ndarray

    def repeated(self, times):
        if times == 1:
            return self
        return Who(*(np.repeat(x, times) for x in (self.warps, self.blocks, self.epochs)))

    def only(self, chosen):
        return Who(self.warps[chosen], self.blocks[chosen], self.epochs[chosen])


class Shadow:
    def __init__(self, count, space, across_blocks):
        self.space, self.across_blocks = space, across_blocks
        self.in_flight = np.zeros(count, bool)
        self.forget(count)

    def forget(self, count=None):
        """Starts anew, as between two launches."""
        count = count or self.in_flight.size
        self.writer, self.reader = np.full(count, NOBODY, np.int32), np.full(count, NOBODY, np.int32)
        self.write_epoch, self.read_epoch = np.zeros(count, np.int32), np.zeros(count, np.int32)
        self.write_block, self.read_block = np.full(count, NOBODY, np.int32), np.full(count, NOBODY, np.int32)

    def races(self, touched, who, last, epoch, block):
        """Which of the words were touched by another warp since the last barrier, or by another
        block."""
        others = (last[touched] != NOBODY) & (last[touched] != who.warps)
        if not others.any():
            return others
        unordered = epoch[touched] == who.epochs
        if self.across_blocks:
            unordered |= block[touched] != who.blocks
        return others & unordered

    def check(self, wrong, touched, who, why, what):
        if wrong.any():
            i = int(np.argmax(wrong))
            raise Fault(f"{what}: warp {who.warps[i]} of the grid: {self.space} word {touched[i]}: {why}")

    def read(self, touched, who, what, must_be_written=False):
        self.check(
            self.in_flight[touched], touched, who, "read before its asynchronous copy was waited for", what
        )
        if must_be_written:
            self.check(
                self.writer[touched] == NOBODY, touched, who, "read, but nothing was written there", what
            )
        wrong = self.races(touched, who, self.writer, self.write_epoch, self.write_block)
        self.check(wrong, touched, who, "read without a barrier after another warp wrote it", what)
        kept = (self.read_epoch[touched] == who.epochs) & (self.reader[touched] != NOBODY)
        alone = ~kept | (self.reader[touched] == who.warps)
        self.reader[touched] = np.where(alone, who.warps, SEVERAL)
        lost = self.reader[touched] != who.warps  # several warps of this very access
        self.reader[touched[lost]] = SEVERAL
        self.read_epoch[touched], self.read_block[touched] = who.epochs, who.blocks

    def write(self, touched, who, what):
        self.check(
            self.in_flight[touched], touched, who, "written while an asynchronous copy is under way", what
        )
        wrong = self.races(touched, who, self.writer, self.write_epoch, self.write_block)
        self.check(wrong, touched, who, "written without a barrier after another warp wrote it", what)
        wrong = self.races(touched, who, self.reader, self.read_epoch, self.read_block)
        self.check(wrong, touched, who, "written without a barrier after another warp read it", what)
        self.writer[touched] = who.warps
        self.check(self.writer[touched] != who.warps, touched, who, "written by two warps at once", what)
        self.write_epoch[touched], self.write_block[touched] = who.epochs, who.blocks

"""Global memory, and the shared memory of all blocks of a grid. Every access is checked: it lies
within one allocation, is aligned to its size, and reads nothing that was never written."""

import numpy as np

from .faults import Fault
from .shadow import Shadow

GLOBAL_BASE = 0x7F0000000000
GLOBAL_GAP_BYTES = 256
SHARED_WINDOW = 0x7E0000000000  # where cvta.shared puts shared memory in the generic space
SHARED_WORD_BYTES = 4


def words(at, size):
    """Returns the indices `at` .. `at` + size - 1 of each lane, one lane after the other."""
    return at if size == 1 else (at[:, None] + np.arange(size)).reshape(-1)


class GlobalMemory:
    """One array of bytes; what is put there begins at multiples of 256 bytes with bytes between
    that belong to none."""

    def __init__(self, capacity):
        self.bytes = np.zeros(capacity, np.uint8)
        self.owned = np.zeros(capacity, bool)
        self.used = GLOBAL_GAP_BYTES
        self.shadow = Shadow(capacity, "global", across_blocks=True)

    def put(self, array, offset_bytes=0):
        """Copies an array to device memory; returns its address, which is `offset_bytes` past a
        multiple of 256."""
        raw = np.ascontiguousarray(array).view(np.uint8).reshape(-1)
        begin = self.used + offset_bytes
        self.used = (begin + raw.size + GLOBAL_GAP_BYTES * 2 - 1) // GLOBAL_GAP_BYTES * GLOBAL_GAP_BYTES
        self.bytes[begin : begin + raw.size] = raw
        self.owned[begin : begin + raw.size] = True
        return np.uint64(GLOBAL_BASE + begin)

    def get(self, address, dtype, shape):
        begin = int(address) - GLOBAL_BASE
        count = int(np.prod(shape))
        size = count * np.dtype(dtype).itemsize
        return self.bytes[begin : begin + size].copy().view(dtype).reshape(shape)

    def locate(self, addresses, size, what):
        """Returns the index in `bytes` of each address."""
        at = (addresses - np.uint64(GLOBAL_BASE)).astype(np.int64)
        check_alignment(addresses, size, what)
        outside = (at < 0) | (at + size > self.used)
        inside = np.where(outside, 0, at)
        outside |= ~(self.owned[inside] & self.owned[inside + size - 1])
        if outside.any():
            lane = int(np.argmax(outside))
            raise Fault(f"{what}: {size} bytes at {int(addresses[lane]):#x} belong to no allocation")
        return at

    def load(self, addresses, dtype, count, who, what):
        """Returns `count` arrays of one value for each lane; `who` tells which warps read, and
        when."""
        size = np.dtype(dtype).itemsize
        at = self.locate(addresses, size * count, what)
        self.shadow.read(words(at, size * count), who.repeated(size * count), what)
        first = at // size
        view = self.bytes.view(dtype)
        return [view[first + i] for i in range(count)]

    def store(self, addresses, values, who, what):
        size = values[0].dtype.itemsize
        at = self.locate(addresses, size * len(values), what)
        self.shadow.write(words(at, size * len(values)), who.repeated(size * len(values)), what)
        view = self.bytes.view(values[0].dtype)
        for i, value in enumerate(values):
            view[at // size + i] = value


def check_alignment(addresses, size, what):
    if (addresses & addresses.dtype.type(size - 1)).any():
        lane = int(np.argmax((addresses & addresses.dtype.type(size - 1)) != 0))
        raise Fault(f"{what}: address {int(addresses[lane]):#x} is no multiple of {size}")


class SharedMemory:
    """Shared memory of every block: bytes (blocks, size) as one array."""

    def __init__(self, kernel, dynamic_bytes, blocks):
        self.arrays = dict(kernel.shared)
        dynamic_at = (kernel.shared_bytes + 127) // 128 * 128
        if kernel.dynamic_shared:
            self.arrays[kernel.dynamic_shared] = (dynamic_at, dynamic_bytes)
        self.size = dynamic_at + dynamic_bytes + 128
        self.bytes = np.zeros(blocks * self.size, np.uint8)
        self.owned = np.zeros(self.size, bool)
        for offset, size in self.arrays.values():
            self.owned[offset : offset + size] = True
        self.shadow = Shadow(blocks * self.size // SHARED_WORD_BYTES, "shared", across_blocks=False)

    def address_of(self, array):
        return self.arrays[array][0]

    def locate(self, addresses, size, who, what):
        check_alignment(addresses, size, what)
        at = addresses.astype(np.int64)
        outside = at + size > self.size
        inside = np.where(outside, 0, at)
        outside |= ~(self.owned[inside] & self.owned[inside + size - 1])
        if outside.any():
            lane = int(np.argmax(outside))
            raise Fault(
                f"{what}: {size} bytes at {int(at[lane])} of shared memory are in no array of the block"
            )
        return at + who.blocks * self.size

    def touched(self, at, size, who):
        """Returns the words of an access, and who touches each."""
        count = max(size // SHARED_WORD_BYTES, 1)
        return words(at // SHARED_WORD_BYTES, count), who.repeated(count)

    def load(self, addresses, dtype, count, who, what):
        """Returns `count` arrays of one value for each lane."""
        size = np.dtype(dtype).itemsize
        at = self.locate(addresses, size * count, who, what)
        self.shadow.read(*self.touched(at, size * count, who), what, must_be_written=True)
        view = self.bytes.view(dtype)
        return [view[at // size + i] for i in range(count)]

    def store(self, addresses, values, who, what):
        size = values[0].dtype.itemsize
        at = self.locate(addresses, size * len(values), who, what)
        self.shadow.write(*self.touched(at, size * len(values), who), what)
        view = self.bytes.view(values[0].dtype)
        for i, value in enumerate(values):
            view[at // size + i] = value

    def begin_copy(self, addresses, size, who, what):
        """Marks the bytes of each lane as being copied to: until the copy ends they may be neither
        read nor written."""
        at = self.locate(addresses, size, who, what)
        touched, owners = self.touched(at, size, who)
        self.shadow.write(touched, owners, what)
        self.shadow.in_flight[touched] = True
        self.bytes[words(at, size)] = 0xFF
        return at

    def end_copy(self, at, data, who, what):
        """`data` (lanes, bytes) arrives."""
        touched, owners = self.touched(at, data.shape[1], who)
        self.shadow.in_flight[touched] = False
        self.shadow.write(touched, owners, what)
        self.bytes[words(at, data.shape[1])] = data.reshape(-1)

"""One member of an exchange by PCCL, for peers.py: averages COUNT floats again and again, in 8 bits.

    python3 pccl_member.py LIBPCCL MASTER_IPV4 MEMBERS COUNT PAUSE_S

Prints a line after each exchange. The calls and structures are those of PCCL's include/pccl.h.
"""
import ctypes
import random
import sys
import time

PORT = 48148  # of ccoip_master, which has no option for it
FLOAT, UINT8, AVERAGE, ZERO_POINT, WORLD = 10, 0, 1, 2, 1
PATTERN = 1 << 14


class Address(ctypes.Structure):
    _fields_ = [("protocol", ctypes.c_int), ("ipv4", ctypes.c_uint8 * 4), ("ipv6", ctypes.c_uint8 * 16), ("port", ctypes.c_uint16)]


class Settings(ctypes.Structure):
    _fields_ = [("master", Address), ("group", ctypes.c_uint32), ("connections", ctypes.c_uint32)]


class Exchange(ctypes.Structure):
    _fields_ = [("count", ctypes.c_size_t), ("operation", ctypes.c_int), ("tag", ctypes.c_uint64), ("type", ctypes.c_int),
                ("distribution", ctypes.c_int), ("quantized_type", ctypes.c_int), ("algorithm", ctypes.c_int)]


class Info(ctypes.Structure):
    _fields_ = [("world", ctypes.c_uint32), ("sent", ctypes.c_uint64), ("received", ctypes.c_uint64)]


def must(result, what):
    if result != 0:
        raise SystemExit(f"pccl: {what}: result {result}")


def connect(pccl, master):
    settings, comm = Settings(group=0, connections=1), ctypes.c_void_p()
    settings.master.ipv4[:] = [int(x) for x in master.split(".")]
    settings.master.port = PORT
    must(pccl.pcclInit(), "init")
    must(pccl.pcclCreateCommunicator(ctypes.byref(settings), ctypes.byref(comm)), "communicator")
    must(pccl.pcclConnect(comm), "connect")
    return comm


def wait_for_all(pccl, comm, members):
    world = ctypes.c_int()
    while True:
        must(pccl.pcclGetAttribute(comm, WORLD, ctypes.byref(world)), "world size")
        if world.value >= members:
            return
        must(pccl.pcclUpdateTopology(comm), "topology")
        time.sleep(0.05)


def numbers(count):
    rng = random.Random(count)
    pattern = (ctypes.c_float * PATTERN)(*(rng.gauss(0, 1) for _ in range(PATTERN)))
    all_of_them = (ctypes.c_float * count)()
    for at in range(0, count, PATTERN):
        ctypes.memmove(ctypes.addressof(all_of_them) + 4 * at, pattern, 4 * min(PATTERN, count - at))
    return all_of_them


def main():
    library, master, members, count, pause_s = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5])
    pccl = ctypes.CDLL(library)
    comm = connect(pccl, master)
    wait_for_all(pccl, comm, members)
    own, mean, info, tag = numbers(count), (ctypes.c_float * count)(), Info(), 0
    while True:
        how = Exchange(count, AVERAGE, tag, FLOAT, 0, UINT8, ZERO_POINT)
        began = time.monotonic()
        must(pccl.pcclAllReduce(own, mean, ctypes.byref(how), comm, ctypes.byref(info)), "all-reduce")
        print(f"{tag} {info.world} members, {time.monotonic() - began:.3f} s", flush=True)
        tag += 1
        time.sleep(pause_s)


if __name__ == "__main__":
    main()

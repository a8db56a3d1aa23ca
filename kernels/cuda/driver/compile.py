#!/usr/bin/env python3
"""Makes the device code of the plugin with NVRTC, for any driver of its major version and newer: needs neither nvcc
nor a GPU.

usage: compile.py unit --nvrtc FOLDER --source FILE.cu --object FILE.o --out FILE.c [--option OPTION]... CODE...
       compile.py list --out FILE.c UNIT...

unit: FILE.o is FILE.cu by the host's compiler, in which the names of all kernels stand that it launches. FOLDER holds
NVIDIA's packages of PyPI (nvidia/cuda_nvrtc, nvidia/cuda_runtime). CODE is as in nvcc's -code: sm_90 is machine code,
compute_90 PTX. Writes a struct code_unit (device_code.h).
list: writes code_units[] of the units that are named.
"""
import argparse
import ctypes
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
# As GCC and clang write __PRETTY_FUNCTION__ of rv_kernel_name (host_pass.cuh).
NAME = re.compile(rb"rv_kernel_name\(\) \[(?:with auto )?Kernel = &?([^\0]*)\]\0")


def identifier(path):
    return "code_unit_" + re.sub(r"\W", "_", os.path.basename(path))


def kernels_of(path):
    with open(path, "rb") as f:
        return sorted({m.decode() for m in NAME.findall(f.read())})


class Nvrtc:
    def __init__(self, folder):
        (path,) = glob.glob(os.path.join(folder, "nvidia", "cuda_nvrtc", "lib", "libnvrtc.so.*"))
        self.library = ctypes.CDLL(path)
        self.library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status != 0:
            raise RuntimeError(f"{name}: {self.library.nvrtcGetErrorString(status).decode()}")

    def read(self, program, what):
        """What nvrtcGet...Size and nvrtcGet... give."""
        size = ctypes.c_size_t()
        self.call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"nvrtcGet{what}", program, buffer)
        return buffer.raw

    def compile(self, path, kernels, options, ptx):
        """Returns the code and {name: lowered name}."""
        program = ctypes.c_void_p()
        with open(path, "rb") as f:
            self.call("nvrtcCreateProgram", ctypes.byref(program), f.read(), path.encode(), 0, None, None)
        for kernel in kernels:
            self.call("nvrtcAddNameExpression", program, kernel.encode())
        words = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        try:
            self.call("nvrtcCompileProgram", program, len(options), words)
        except RuntimeError as e:
            sys.exit(f"{path}: {e}\n{self.read(program, 'ProgramLog').decode()}")
        lowered = {}
        for kernel in kernels:
            name = ctypes.c_char_p()
            self.call("nvrtcGetLoweredName", program, kernel.encode(), ctypes.byref(name))
            lowered[kernel] = name.value.decode()
        code = self.read(program, "PTX" if ptx else "CUBIN")
        self.call("nvrtcDestroyProgram", ctypes.byref(program))
        return code, lowered


def write_bytes(out, name, data):
    """Adds an array with a file of its own: as text it would take the compiler long."""
    path = f"{out.name}.{name}"
    with open(path, "wb") as f:
        f.write(data)
    out.write(f'__asm__(".section .rodata\\n.balign 64\\n{name}:\\n.incbin \\"{path}\\"\\n.previous");\n'
              f'extern const unsigned char {name}[] __attribute__((visibility("hidden")));\n')


def make_unit(a):
    nvrtc = Nvrtc(a.nvrtc)
    kernels = kernels_of(a.object)
    if not kernels:
        sys.exit(f"{a.object}: no kernel is launched in it")
    includes = [os.path.join(HERE, "nvrtc"), ROOT, os.path.join(a.nvrtc, "nvidia", "cuda_runtime", "include")]
    # Everything counts as device code: what launches is parsed, and dropped because nothing calls it.
    common = ["-I" + i for i in includes] + ["-std=c++17", "-default-device", "--pre-include=math.h", "-DRV_CUDA_DRIVER", "-w",
                                               *a.option]
    images, names = [], None
    codes = sorted(a.code, key=lambda c: (c.startswith("compute"), int(c.split("_")[1])))
    prefix = re.sub(r"\W", "_", os.path.basename(a.source)[:-len(".cu")])
    for code in codes:
        data, lowered = nvrtc.compile(a.source, kernels, common + ["--gpu-architecture=" + code],
                                      code.startswith("compute"))
        if names not in (None, lowered):
            sys.exit(f"{a.source}: kernels have other names in {code}")
        names = lowered
        images.append((code, f"{prefix}_{code}", data))
    with open(a.out, "w") as out:
        out.write(f"/* Made by compile.py of {os.path.basename(a.source)}. */\n"
                  '#include "kernels/cuda/driver/device_code.h"\n')
        for _, array, data in images:
            write_bytes(out, array, data)
        out.write("static const struct code_image images[] = {")
        for code, array, _ in images:
            kind, number = code.split("_")
            out.write(f"{{{number}, {'true' if kind == 'compute' else 'false'}, {array}}}, ")
        out.write("{0}};\nstatic const struct code_name names[] = {\n")
        for kernel, lowered in names.items():
            out.write(f'{{"{kernel}", "{lowered}"}},\n')
        out.write(f"{{0}}}};\nextern const struct code_unit {identifier(a.source)};\n"
                  f'const struct code_unit {identifier(a.source)} = {{"{os.path.basename(a.source)}", images, names}};\n')


def make_list(a):
    with open(a.out, "w") as out:
        out.write('#include "kernels/cuda/driver/device_code.h"\n')
        for unit in a.unit:
            out.write(f"extern const struct code_unit {identifier(unit)};\n")
        out.write("const struct code_unit *const code_units[] = {\n")
        for unit in a.unit:
            out.write(f"&{identifier(unit)},\n")
        out.write("0};\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    unit = commands.add_parser("unit")
    for name in ("nvrtc", "source", "object", "out"):
        unit.add_argument("--" + name, required=True)
    unit.add_argument("--option", action="append", default=[])
    unit.add_argument("code", nargs="+")
    unit.set_defaults(run=make_unit)
    units = commands.add_parser("list")
    units.add_argument("--out", required=True)
    units.add_argument("unit", nargs="+")
    units.set_defaults(run=make_list)
    a = parser.parse_args()
    a.run(a)


if __name__ == "__main__":
    main()

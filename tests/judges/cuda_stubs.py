#!/usr/bin/env python3
"""cuda_stubs.py VENV OUT: lets the registry's PyTorch, which is built for CUDA, start without CUDA's libraries.

They are 3 GB, and nothing of them runs where there is no GPU: but the loader wants them by name, with their symbols.
Each is replaced by an empty one whose functions return 35 (cudaErrorInsufficientDriver). The CUDA runtime, which
PyTorch does call, is the real one, of 3 MB. Needs gcc and binutils."""
import collections
import glob
import os
import re
import subprocess
import sys


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def read_needs(paths):
    """names of the libraries needed, {version: symbols wanted}, {version: library}, symbols defined"""
    needed, wanted, library_of, defined = set(), collections.defaultdict(set), {}, set()
    for path in paths:
        needed |= set(re.findall(r"NEEDED.*\[(.*)\]", run("readelf", "-d", path)))
        library = None
        for line in run("readelf", "-V", path).splitlines():
            if m := re.search(r"File: (\S+)", line):
                library = m[1]
            elif m := re.search(r"Name: (\S+)", line):
                library_of[m[1]] = library
        for line in run("readelf", "--dyn-syms", "-W", path).splitlines():
            fields = line.split()
            if len(fields) < 8 or fields[4] not in ("GLOBAL", "WEAK"):
                continue
            name, _, version = fields[7].partition("@")
            if fields[6] == "UND":
                wanted[version.lstrip("@")].add(name)
            else:
                defined.add(name)
    return needed, wanted, library_of, defined


def write_stub(out, library, versions):
    """versions: {version: symbols}; the version "" is none"""
    functions = "".join(f"int {name}(void) {{ return 35; }}\n" for names in versions.values() for name in sorted(names))
    command = ["gcc", "-w", "-shared", "-fPIC", "-fno-builtin", "-x", "c", "-", f"-Wl,-soname,{library}", "-o",
               os.path.join(out, library)]
    if "" not in versions:
        script = os.path.join(out, "versions.map")
        with open(script, "w") as f:
            for version, names in versions.items():
                f.write(f"{version} {{ global: {' '.join(name + ';' for name in sorted(names))} }};\n")
        command.append(f"-Wl,--version-script={script}")
    subprocess.run(command, check=True, input=functions, text=True)


def main():
    venv, out = sys.argv[1:]
    (packages,) = glob.glob(os.path.join(venv, "lib", "python3*", "site-packages"))
    paths = glob.glob(os.path.join(packages, "torch", "lib", "*.so"))
    own = {os.path.basename(path) for path in paths}
    os.makedirs(out, exist_ok=True)
    needed, wanted, library_of, defined = read_needs(paths)
    unversioned = {name for name in wanted[""] - defined if re.match("cu|nv|nccl", name)}
    for library in sorted(needed - own):
        if not re.match("lib(cu|nv|nccl)", library):
            continue
        real = glob.glob(os.path.join(packages, "nvidia", "*", "lib", library))
        if real:
            os.symlink(os.path.relpath(real[0], out), os.path.join(out, library))
            continue
        versions = {v: names for v, names in wanted.items() if v and library_of.get(v) == library}
        write_stub(out, library, versions or {"": unversioned})


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Makes a folder that checks and measures a GPU on a machine where nothing can be built or fetched.

It contains `run`, a script for bash, and `pack.tgz`: stripped programs, the plugin, the libraries
that are no part of glibc or of NVIDIA's, and these scripts. There `run` unpacks it beside itself, and
then is bench/gpu/main.py; it needs bash and a python3 of version 3.8 or newer.
"""
import argparse
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

LIMIT_BYTES = 40 << 20
PROGRAMS = ("rivulet", "rivulet-worker", "rivulet-coordinator", "device_conformance", "bench_gpu")
PLUGIN = "librivulet_cuda.so"
# What every Linux with glibc has, in the version that it needs itself.
OF_GLIBC = re.compile(r"^(ld-linux.*|linux-vdso.*|lib(c|m|dl|rt|pthread|resolv|util|anl|mvec|nsl|nss_.*)\.so.*)$")
OF_NVIDIA = re.compile(r"^lib(cuda|cublas|cudnn|nccl|nvrtc|nvidia).*")
# The compilers' own: the machine's are taken where it has them, as its NVIDIA libraries may need
# newer ones.
OF_COMPILERS = re.compile(r"^lib(stdc\+\+|gcc_s)\.so.*")

RUN = r"""#!/usr/bin/env bash
# Checks and measures the CUDA plugin on this machine's GPU; --help lists options. Results are left
# in $OUT, or else in --out.
set -eu
here=${BASH_SOURCE[0]}
[[ $here == */* ]] || here=./$here
here=$(cd "${here%%/*}" && pwd)
files=$here/files-%(digest)s
if [ ! -d "$files" ]; then
	python3 - "$here/pack.tgz" "$files" <<'UNPACK'
import os, shutil, sys, tarfile
pack, files = sys.argv[1:]
shutil.rmtree(files + ".new", ignore_errors=True)
with tarfile.open(pack) as t:
    t.extraction_filter = lambda member, _: member  # our own files: Python 3.12 warns without a filter
    t.extractall(files + ".new")
os.rename(files + ".new", files)
UNPACK
fi
if [ -d "$files/emulated" ]; then
	set -- --emulate "$files/emulated/librivulet_cuda_emulated.so" "$@"
fi
exec python3 -B "$files/bench/gpu/main.py" --bin "$files/bin" --work "$here/work" --out "${OUT:-$here/out}" \
	--minutes 9.5 "$@"
"""


def stop(text):
    sys.exit("dev gpu --pack: " + text)


def strip(source, target):
    """Copies a program without debug information."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(0o755)
    subprocess.run(["strip", "--strip-unneeded", str(target)], check=True)


def libraries(files):
    """Returns {name: path} of all files that these need and that must be carried."""
    found = {}
    for f in files:
        listed = subprocess.run(["ldd", str(f)], check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
        for line in listed.splitlines():
            m = re.match(r"\s*(\S+) => (\S+|not found)", line)
            if not m or OF_GLIBC.match(m.group(1)) or OF_NVIDIA.match(m.group(1)):
                continue
            if not m.group(2).startswith("/"):
                stop("%s needs %s, which is not found here" % (f, m.group(1)))
            found[m.group(1)] = m.group(2)
    return found


def fill(folder, args):
    """Makes the folder."""
    programs = [pathlib.Path(args.bin) / name for name in PROGRAMS]
    plugins = {} if args.emulate else {"bin": pathlib.Path(args.bin) / PLUGIN}
    if args.emulate:
        plugins["emulated"] = pathlib.Path(args.emulate)
    for f in programs + list(plugins.values()):
        if not f.exists():
            stop("%s is not built" % f)
    for f in programs:
        strip(f, folder / "bin" / f.name)
    for place, f in plugins.items():
        strip(f, folder / place / f.name)
    for name, path in libraries(programs + list(plugins.values())).items():
        strip(path, folder / "lib" / ("std" if OF_COMPILERS.match(name) else "") / name)
    bench = pathlib.Path(__file__).resolve().parent.parent
    (folder / "bench" / "gpu").mkdir(parents=True)
    for f in sorted((bench / "gpu").glob("*.py")) + [bench / "step_torch.py"]:
        shutil.copyfile(f, folder / "bench" / f.relative_to(bench))


def compress(folder, path):
    """Writes the archive; the same files give the same bytes."""
    def plain(info):
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        return info
    with open(str(path), "wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=0) as packed:
        with tarfile.open(fileobj=packed, mode="w") as t:
            for f in sorted(folder.rglob("*")):
                if f.is_file():
                    t.add(str(f), arcname=str(f.relative_to(folder)), filter=plain)


def bytes_of(folder):
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())


def make(args):
    to = pathlib.Path(args.to)
    shutil.rmtree(str(to), ignore_errors=True)
    to.mkdir(parents=True)
    with tempfile.TemporaryDirectory(prefix="rivulet-pack-") as name:
        folder = pathlib.Path(name)
        fill(folder, args)
        compress(folder, to / "pack.tgz")
        unpacked = bytes_of(folder)
    digest = hashlib.sha256((to / "pack.tgz").read_bytes()).hexdigest()[:12]
    (to / "run").write_text(RUN % {"digest": digest})
    (to / "run").chmod(0o755)
    packed = bytes_of(to)
    if packed >= LIMIT_BYTES:
        stop("%s has %d bytes, the limit is %d: build the plugin for fewer architectures" % (to, packed, LIMIT_BYTES))
    print("%s: %.1f MiB, unpacked %.1f MiB; %s/run" % (to, packed / 2**20, unpacked / 2**20, os.path.relpath(str(to))))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--bin", default="build/release/bin", help="folder of the programs (default: %(default)s)")
    p.add_argument("--to", required=True, metavar="DIR", help="the folder to make, emptied first")
    p.add_argument("--emulate", metavar="PLUGIN", help="for a rehearsal: the emulated plugin instead of the real one")
    make(p.parse_args())


if __name__ == "__main__":
    main()

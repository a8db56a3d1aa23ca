"""hardened.py: the programs were built with what makes a fault of memory harder to use.

python3 hardened.py PROGRAM…; --planted CC: compiles a program without any of it, in which all must be found missing. readelf
(binutils) is the judge. Exit status 0: nothing is missing, or nothing was missed. A plugin (.so) needs no marks for CET: its
kernels are another compiler's, and the loader takes the marks of a process off where one library has none.
"""
import os
import platform
import re
import subprocess
import sys
import tempfile


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], check=True, capture_output=True, text=True).stdout


def missing(path):
    """Returns what the program lacks, a word or two each."""
    header, segments, dynamic = readelf("-h", path), readelf("-l", path), readelf("-d", path)
    symbols, notes = readelf("--dyn-syms", path), readelf("-n", path)
    stack = re.search(r"GNU_STACK.*", segments)
    checks = {
        "an address of its own at each start (PIE)": re.search(r"Type:\s+DYN", header),
        "a stack that is not executable": stack and "RWE" not in stack.group(0),
        "read-only relocations (RELRO)": "GNU_RELRO" in segments,
        "all symbols bound at the start (BIND_NOW)": re.search(r"BIND_NOW|FLAGS_1.*NOW", dynamic),
        "stack protector": "__stack_chk_fail" in symbols,
        "checked calls of libc (FORTIFY)": re.search(r"__\w+_chk(@|\s|$)", symbols.replace("__stack_chk_fail", "")),
    }
    if platform.machine() == "x86_64" and not path.endswith(".so"):
        checks["marks for CET (IBT, SHSTK)"] = "IBT" in notes and "SHSTK" in notes
    return [what for what, there in checks.items() if not there]


def planted(compiler):
    """Returns 0 if a program without any protection is seen to lack each."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "bare.c"), os.path.join(folder, "bare")
        with open(source, "w", encoding="ascii") as out:
            out.write("#include <stdio.h>\nint main(int n, char **a) { char b[64]; return sprintf(b, \"%s\", a[n - 1]); }\n")
        subprocess.run([compiler, "-U_FORTIFY_SOURCE", "-fno-stack-protector", "-fno-pie", "-no-pie", "-fcf-protection=none", "-z",
                        "norelro", "-z", "lazy", "-z", "execstack", source, "-o", program], check=True, capture_output=True)
        found = missing(program)
    print(f"missing in the planted program: {len(found)}: {', '.join(found)}")
    return 0 if len(found) == 7 else 1


def main():
    if sys.argv[1:2] == ["--planted"]:
        return planted(sys.argv[2])
    lacking = [(path, what) for path in sys.argv[1:] for what in missing(path)]
    for path, what in lacking:
        print(f"{path} lacks {what}: see `hardening` in CMakeLists.txt")
    return 1 if lacking or len(sys.argv) < 2 else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Tries a pack with the emulated plugin where a GPU machine would be: in a chroot that holds glibc, bash, python3 and a
few of the coreutils, without a network; and kills it at random moments, with all of its processes.

After every kill: no process of it is left, results.jsonl can be read, and the next call repeats nothing that was done.
In the end a call runs to its end. Needs root; makes the chroot below /tmp and removes it.
"""
import argparse
import os
import pathlib
import random
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import results

COMMANDS = ("bash", "python3", "env", "cat", "ls")
DEVICES = {"null": (1, 3), "zero": (1, 5), "random": (1, 8), "urandom": (1, 9)}
FILES_MAX, FILE_BYTES_MAX = 8, 16 << 20  # of what comes back from a device machine
LONGEST_S = 1200


def copy(path, root):
    """Copies a file to the same place in the chroot; follows links."""
    target = root / str(path).lstrip("/")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(os.path.realpath(str(path)), str(target))


def copy_program(path, root):
    """Copies a program and what it needs to start."""
    copy(path, root)
    listed = subprocess.run(["ldd", str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            universal_newlines=True).stdout
    for library in re.findall(r"(/\S+) \(0x", listed):
        copy(library, root)


def make_root(root, pack):
    for folder in ("dev", "proc", "tmp", "out", "pack", "usr/bin", "usr/lib", "usr/lib64"):
        (root / folder).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        os.symlink("usr/" + name, str(root / name))
    for name in COMMANDS:
        copy_program(pathlib.Path("/usr/bin") / name, root)
    library = pathlib.Path(subprocess.check_output(["/usr/bin/python3", "-c", "import os; print(os.__file__)"],
                                                   universal_newlines=True).strip()).parent
    shutil.copytree(str(library), str(root / str(library).lstrip("/")), symlinks=False, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("dist-packages", "site-packages", "test", "config-*", "__pycache__"))
    for module in (library / "lib-dynload").glob("*.so"):
        copy_program(module, root)
    for name, (major, minor) in DEVICES.items():
        os.mknod(str(root / "dev" / name), 0o666 | stat.S_IFCHR, os.makedev(major, minor))
    for name in ("run", "pack.tgz"):
        shutil.copy2(str(pathlib.Path(pack) / name), str(root / "pack" / name))


def living(root):
    """Returns the processes whose root the chroot is."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink("/proc/%s/root" % name) == str(root):
                found.append(int(name))
        except OSError:
            pass
    return found


class Rehearsal:
    def __init__(self, root, minutes):
        self.root, self.minutes, self.results = root, minutes, root / "out" / "results.jsonl"
        self.kills, self.torn, self.repeated, self.left_over = 0, 0, [], []

    def start(self, *words):
        script = "ip link set lo up && exec chroot %s /bin/bash /pack/run \"$@\"" % self.root
        command = ["unshare", "--net", "/bin/bash", "-c", script, "run", "--minutes", str(self.minutes)] + list(words)
        env = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "OUT": "/out", "HOME": "/tmp"}
        return subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, start_new_session=True)

    def done(self):
        items = results.latest(results.read(str(self.results)))
        return {key for key, r in items.items() if r["status"] in results.DONE}

    def kill(self, process):
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        end = time.monotonic() + 10
        while living(self.root) and time.monotonic() < end:
            time.sleep(0.05)
        for pid in living(self.root):
            self.left_over.append(open("/proc/%d/cmdline" % pid).read().replace("\0", " "))
            os.kill(pid, signal.SIGKILL)
        self.kills += 1
        if self.results.exists():
            self.torn += not self.results.read_bytes().endswith(b"\n")

    def check_nothing_repeated(self):
        """An item that came to an end does not begin again."""
        ended = set()
        for r in results.read(str(self.results)):
            key = (r.get("step"), r.get("item"))
            if r.get("status") == "began" and key in ended:
                self.repeated.append(key)
            if r.get("status") in results.DONE:
                ended.add(key)

    def begin_again(self):
        """A call came to its end: the next kills need work to interrupt."""
        if not self.results.exists():
            raise SystemExit("rehearsal: a call ended without any result")
        self.check_nothing_repeated()
        self.results.unlink()

    def run_killed(self, seconds):
        """Starts a call and kills it so much later. Returns whether it was still running."""
        before, process = self.done(), self.start()
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill(process)
            if not before <= self.done():
                raise SystemExit("rehearsal: done before a kill and not after it: %s" % (before - self.done()))
            return True
        return False

    def run_whole(self):
        process = self.start()
        try:
            return process.wait(LONGEST_S)
        except subprocess.TimeoutExpired:
            self.kill(process)
            return None


def check_files(out):
    """Returns what is wrong with what would come back."""
    files = [f for f in out.rglob("*") if f.is_file()]
    wrong = ["%d files, at most %d" % (len(files), FILES_MAX)] if len(files) > FILES_MAX else []
    wrong += ["%s has %d bytes" % (f.name, f.stat().st_size) for f in files if f.stat().st_size > FILE_BYTES_MAX]
    return wrong + ["no report.md" for _ in [0] if not (out / "report.md").exists()]


def faults(r, status):
    wrong = ["exit status %s" % status] if status != 0 else []
    wrong += ["left over: " + p for p in r.left_over] + ["done twice: %s, %s" % key for key in r.repeated]
    items = results.latest(results.read(str(r.results)))
    wrong += ["%s, %s: %s: %s" % (key[0], key[1], item["status"], item.get("text"))
              for key, item in items.items() if item["status"] not in ("passed", "skipped")]
    return wrong + check_files(r.root / "out")


def rehearse(args, root):
    random.seed(args.seed)
    r, begin = Rehearsal(root, args.minutes), time.monotonic()
    for _ in range(args.kills):
        if not r.run_killed(random.uniform(0.2, args.longest)):
            r.begin_again()
    status = r.run_whole()
    r.check_nothing_repeated()
    wrong = faults(r, status)
    items = results.latest(results.read(str(r.results)))
    print("pack %.1f MiB; %d kills, %d of them tore a line; %d items, %d passed; %.1f minutes; %s" % (
        sum(f.stat().st_size for f in pathlib.Path(args.pack).iterdir() if f.is_file()) / 2**20, r.kills, r.torn,
        len(items), sum(i["status"] == "passed" for i in items.values()), (time.monotonic() - begin) / 60,
        "%d faults" % len(wrong) if wrong else "no fault"))
    print("\n".join(wrong))
    if args.keep:
        shutil.copytree(str(root / "out"), args.keep, dirs_exist_ok=True)
    return 1 if wrong else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--pack", required=True, metavar="DIR", help="made with the emulated plugin")
    p.add_argument("--kills", type=int, default=12, help="default: %(default)s")
    p.add_argument("--longest", type=float, default=8, metavar="S", help="between start and kill (default: %(default)s)")
    p.add_argument("--minutes", type=float, default=9.5, help="of each call (default: %(default)s)")
    p.add_argument("--seed", type=int, default=1, help="of the moments (default: %(default)s)")
    p.add_argument("--keep", metavar="DIR", help="copy the results there")
    args = p.parse_args()
    if os.geteuid() != 0:
        sys.exit("dev gpu --rehearse: needs root, for chroot and a network namespace")
    root = pathlib.Path(tempfile.mkdtemp(prefix="rivulet-rehearsal-"))
    try:
        make_root(root, args.pack)
        subprocess.run(["mount", "-t", "proc", "proc", str(root / "proc")], check=True)
        return rehearse(args, root)
    finally:
        subprocess.run(["umount", str(root / "proc")], check=False)
        shutil.rmtree(str(root), ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())

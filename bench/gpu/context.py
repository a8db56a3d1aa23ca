"""The context of a step's items: places of programs and files, starting of programs, remaining time."""
import ctypes
import glob
import importlib.util
import json
import os
import pathlib
import shutil
import time

import process

LOG_BYTES = 15 << 20        # of log.txt
LOG_OF_ONE_BYTES = 64 << 10  # of what one program printed in it


class Failed(Exception):
    """An item found something wrong; `data` is what it measured all the same."""

    def __init__(self, text, data=None, status="failed"):
        Exception.__init__(self, text)
        self.data, self.status = data, status


class Skipped(Exception):
    """An item is not possible here, for the reason in the text."""


class OutOfTime(Exception):
    """The session's minutes ended while an item ran: it is not done."""


def nvidia_folders():
    """Returns the folders of pip's NVIDIA packages that hold libraries."""
    spec = importlib.util.find_spec("nvidia")
    places = list(spec.submodule_search_locations) if spec and spec.submodule_search_locations else []
    return sorted({os.path.dirname(f) for place in places for f in glob.glob(place + "/*/lib/*.so*")})


def tool(name):
    """Returns where a tool of the CUDA toolkit is, or None."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which(name) or shutil.which(name, path=home + "/bin:" + home + "/compute-sanitizer")


def _is_found(library):
    try:
        ctypes.CDLL(library)
        return True
    except OSError:
        return False


class Context:
    """`own_libraries`: whether the pack's folder of libraries is searched; `nvidia_path`: whether pip's are, too."""

    def __init__(self, args):
        self.bin = pathlib.Path(args.bin).resolve()
        self.out = pathlib.Path(args.out).resolve()
        self.work = pathlib.Path(args.work).resolve()
        self.emulate = str(pathlib.Path(args.emulate).resolve()) if args.emulate else None
        self.emulated = bool(args.emulate)
        self.llmc = args.llmc
        self.python = args.python
        self.peak_tflops = args.peak_tflops
        self.deadline = time.monotonic() + args.minutes * 60
        self.nvidia_path = False
        self.item = ""

    def left_s(self):
        return self.deadline - time.monotonic()

    def library_path(self):
        """The pack's own libraries; libstdc++ and its like only where the system has none."""
        lib = self.bin.parent / "lib"
        places = [str(lib)] if lib.is_dir() else []
        if (lib / "std").is_dir() and not _is_found("libstdc++.so.6"):
            places.append(str(lib / "std"))
        if os.environ.get("LD_LIBRARY_PATH"):
            places.append(os.environ["LD_LIBRARY_PATH"])
        return places + (nvidia_folders() if self.nvidia_path else [])

    def env(self, **more):
        env = dict(os.environ, OMP_WAIT_POLICY="passive", RIVULET_PYTHON=self.python)
        places = self.library_path()
        if places:
            env["LD_LIBRARY_PATH"] = ":".join(places)
        if self.emulate:
            env["RIVULET_CUDA_PLUGIN"] = self.emulate
        env.update(more)
        return env

    def under(self, tool_words, words, limit_s, **variables):
        """Runs a program of ours under one of NVIDIA's tools, which itself sees the system's libraries alone."""
        changed = {k: v for k, v in self.env(**variables).items() if os.environ.get(k) != v}
        child = ["env"] + ["%s=%s" % pair for pair in sorted(changed.items())]
        return self.run(list(tool_words) + ["--target-processes", "all"] + child + list(words), limit_s,
                        env=dict(os.environ))

    def run(self, words, limit_s, env=None):
        """Runs a program; the end of what it prints is in current.log while it runs, and in log.txt afterwards."""
        limit = min(limit_s, self.left_s())
        ended = process.run(words, self.env() if env is None else env, limit, self.work / "stdout",
                            self.work / "stderr", self.out / "current.log")
        self.log(words, ended)
        if ended.timed_out and limit < limit_s:
            raise OutOfTime()
        return ended

    def log(self, words, ended):
        path = self.out / "log.txt"
        text = "== %s: %s\n== %.1f s, %s\n" % (self.item, " ".join(str(w) for w in words), ended.seconds, ended.how())
        for part in (ended.out, ended.err):
            if len(part) > LOG_OF_ONE_BYTES:
                half = LOG_OF_ONE_BYTES // 2
                part = part[:half] + "\n[... %d characters left out ...]\n" % (len(part) - 2 * half) + part[-half:]
            text += part if not part or part.endswith("\n") else part + "\n"
        data = text.encode()
        if not path.exists() or path.stat().st_size + len(data) <= LOG_BYTES:
            with open(path, "ab") as f:
                f.write(data)

    def fresh(self, name):
        """Returns an empty folder in the working folder."""
        path = self.work / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path


def json_lines(text):
    """Returns the JSON objects among the lines of a program's output; the last line may be torn."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                pass
    return found


def tail(text, lines=3):
    return " / ".join(text.strip().splitlines()[-lines:])[-600:]


def describe(text):
    """Returns a backend's description on stderr."""
    for line in text.splitlines():
        if line.startswith("cuda:"):
            return line
    return ""

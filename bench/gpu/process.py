"""Runs programs so that none outlives its time limit or this process, and writes their output to disk as it comes."""
import ctypes
import os
import signal
import subprocess
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
OUTPUT_BYTES = 4 << 20  # of one program's output that is read back
TAIL_BYTES = 256 << 10  # of what a running program prints
POLL_S = 0.25


def _prctl(option, value):
    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (OSError, AttributeError):
        pass  # then a killed parent may leave children; a killed process group still does not


def adopt_orphans():
    """Makes this process the parent of its grandchildren whose parents end, so that kill_all finds them."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def _die_with_parent():
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _parents():
    """Returns {pid: parent} of all processes."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name) as f:
                    parents[int(name)] = int(f.read().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                pass  # it ended meanwhile
    return parents


def descendants(pid):
    parents = _parents()
    found, last = set(), {pid}
    while last:
        last = {child for child, parent in parents.items() if parent in last and child not in found}
        found |= last
    return found


def kill_all(seconds=10):
    """Ends every descendant of this process, and waits for them."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        left = descendants(os.getpid())
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        if not left:
            return
        time.sleep(0.02)


def start(words, env, out, err):
    """Starts a program that ends with this one. `out` and `err` are open files."""
    return subprocess.Popen([str(w) for w in words], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                            preexec_fn=_die_with_parent)


class Ended:
    """How a program ended. `rc` is negative for a signal, as in subprocess; `out` is what it printed."""

    def __init__(self, rc, timed_out, seconds, out, err):
        self.rc, self.timed_out, self.seconds, self.out, self.err = rc, timed_out, seconds, out, err

    def crashed(self):
        """Whether it was ended by a signal, or by a CUDA error that aborts."""
        return not self.timed_out and (self.rc < 0 or self.rc >= 128)

    def how(self):
        if self.timed_out:
            return "ran past its limit of %.0f s" % self.seconds
        if self.rc < 0:
            return "ended by signal %d (%s)" % (-self.rc, signal.Signals(-self.rc).name)
        return "exit status %d" % self.rc


def _last_bytes(path, n):
    with open(path, "rb") as f:
        f.seek(max(0, os.path.getsize(path) - n))
        return f.read(n)


def _read(path):
    return _last_bytes(path, OUTPUT_BYTES).decode(errors="replace")


def _keep_tail(path, tail_path, seen):
    """Copies the end of `path` to `tail_path` where it grew since it was `seen` bytes long; returns its length."""
    size = os.path.getsize(path)
    if size != seen:
        with open(tail_path, "wb") as f:
            f.write(_last_bytes(path, TAIL_BYTES))
    return size


def _wait(p, end, err_path, tail_path):
    seen = -1
    while True:
        try:
            p.wait(max(0.1, min(POLL_S, end - time.monotonic())))
            return
        except subprocess.TimeoutExpired:
            if time.monotonic() >= end:
                raise
        finally:
            seen = _keep_tail(err_path, tail_path, seen)


def run(words, env, limit_s, out_path, err_path, tail_path):
    """Runs a program to its end or its limit. The first two files hold what it printed, however it ends; `tail_path`
    holds the end of its standard error, at most TAIL_BYTES, all the time."""
    begin = time.monotonic()
    with open(out_path, "wb") as out, open(err_path, "wb") as err:
        try:
            p = start(words, env, out, err)
        except OSError as e:
            return Ended(127, False, 0.0, "", "%s: %s" % (words[0], e.strerror))
        try:
            _wait(p, begin + limit_s, err_path, tail_path)
            rc, timed_out = p.returncode, False
        except subprocess.TimeoutExpired:
            rc, timed_out = -signal.SIGKILL, True
            kill_all()
            p.wait()
    _keep_tail(err_path, tail_path, -1)
    return Ended(rc, timed_out, time.monotonic() - begin, _read(out_path), _read(err_path))

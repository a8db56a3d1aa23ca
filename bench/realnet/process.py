"""Child processes that do not outlive this one, with their memory, descriptors and log."""
import ctypes
import json
import os
import signal
import subprocess

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def _die_with_parent():
    os.setpgid(0, 0)  # Ctrl-C is the parent's to handle: it ends the children in order
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write past a limit is a fault of the disk, not the end
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start_child(argv, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(argv, preexec_fn=_die_with_parent, **options)


class EventLog:
    """The JSON lines of a growing file, each read once."""

    def __init__(self, path):
        self.path = path
        self.at = 0
        self.rest = b""

    def fresh(self):
        try:
            with open(self.path, "rb") as f:
                f.seek(self.at)
                data = f.read()
        except FileNotFoundError:
            return []
        self.at += len(data)
        *lines, self.rest = (self.rest + data).split(b"\n")
        events = []
        for line in lines:
            try:
                events.append(json.loads(line))
            except ValueError:
                pass  # a line that a killed process did not finish, or plain text of a failing start
        return [e for e in events if isinstance(e, dict)]


class Program:
    """One of ours, started as often as needed; its log goes on in one file."""

    def __init__(self, name, argv, log):
        self.name, self.argv, self.log = name, argv, log
        self.child = None
        self.stopped = False  # by SIGSTOP
        self.asked = False  # to end
        self.starts = 0

    def start(self, argv=None, env=None):
        with open(self.log, "ab") as log:
            self.child = start_child(argv or self.argv, stdout=log, stderr=log, env={**os.environ, **(env or {})})
        self.stopped = self.asked = False
        self.starts += 1

    @property
    def pid(self):
        return self.child.pid if self.running else None

    @property
    def running(self):
        return self.child is not None and self.child.poll() is None

    @property
    def live(self):
        return self.running and not self.stopped

    def signal(self, number):
        if self.running:
            self.child.send_signal(number)
            self.stopped = number == signal.SIGSTOP or (self.stopped and number != signal.SIGCONT)

    def kill9(self):
        self.signal(signal.SIGKILL)
        if self.child is not None:
            self.child.wait()

    def ask_to_end(self):
        """Sends SIGTERM, once: a second one would make a worker stop at once."""
        if self.running and not self.asked:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
            self.asked = True

    def end(self, patience_s=20):
        """Sends SIGTERM and waits, then kills. Returns the exit status."""
        self.ask_to_end()
        if self.running:
            try:
                self.child.wait(patience_s)
            except subprocess.TimeoutExpired:
                self.kill9()
        return self.child.returncode if self.child is not None else None

    def cpu_s(self):
        """Returns processor time since its start, all threads; it must be running."""
        with open(f"/proc/{self.pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()  # from the third on: the name before may hold anything
        user, system = int(fields[11]), int(fields[12])
        return (user + system) / os.sysconf("SC_CLK_TCK")

    def usage(self):
        """Returns (resident bytes, open descriptors), or None if it does not run."""
        if not self.running:
            return None
        try:
            with open(f"/proc/{self.pid}/statm") as f:
                resident = int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
            return resident, len(os.listdir(f"/proc/{self.pid}/fd"))
        except (FileNotFoundError, ProcessLookupError):
            return None

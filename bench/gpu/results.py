"""The file of results: a JSON line for everything that began and ended, on the disk before the next thing starts."""
import json
import os
import time

DONE = ("passed", "failed", "crashed", "timed out", "skipped")
STATUSES = DONE + ("began", "not run")


def _is_whole(record):
    """Returns whether add could have written a record: of an item, or of a call."""
    if not isinstance(record, dict):
        return False
    if "item" not in record:
        return isinstance(record.get("session", ""), str)
    return (isinstance(record["item"], str) and isinstance(record.get("step"), str) and
            record.get("status") in STATUSES and isinstance(record.get("data"), (dict, type(None))))


def read(path):
    """Returns the records of a file. A torn line, or one of another program, is skipped."""
    records = []
    try:
        with open(path, "rb") as f:
            for line in f.read().split(b"\n"):
                try:
                    record = json.loads(line.decode())
                except ValueError:
                    continue
                if _is_whole(record):
                    records.append(record)
    except FileNotFoundError:
        pass
    return records


def latest(records):
    """Returns {(step, item): its last record}, in the order in which they first came."""
    items = {}
    for r in records:
        if "item" in r:
            key = (r["step"], r["item"])
            if r["status"] == "began" and items.get(key, {}).get("status") in DONE:
                continue  # an end stands until the next end
            if r["status"] == "not run" and items.get(key, {}).get("status") in DONE:
                continue
            items[key] = r
    return items


class Results:
    """Appends to a file of results."""

    def __init__(self, path):
        self.path = path
        self.records = read(path)
        torn = os.path.exists(path) and os.path.getsize(path) > 0 and not self._ends_whole()
        self.file = open(path, "ab")
        if torn:
            self.file.write(b"\n")

    def _ends_whole(self):
        with open(self.path, "rb") as f:
            f.seek(-1, os.SEEK_END)
            return f.read() == b"\n"

    def add(self, **record):
        record["at"] = round(time.time(), 3)
        self.records.append(record)
        self.file.write(json.dumps(record).encode() + b"\n")
        self.file.flush()
        os.fsync(self.file.fileno())

    def is_done(self, step, item, retry):
        """Returns whether an item has ended; with `retry`, whether it passed or is not possible here."""
        record = latest(self.records).get((step, item))
        return bool(record) and record["status"] in (("passed", "skipped") if retry else DONE)

    def data(self, step, item):
        record = latest(self.records).get((step, item)) or {}
        return record.get("data") or {}

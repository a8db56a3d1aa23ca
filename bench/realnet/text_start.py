"""Start-up against the size of a run's published text: `new-run --data DIR`, `rivulet train --data DIR` and a worker that comes
with a link alone and fetches from a mirror on loopback, each to the end of two tiny rounds. The shards are links to one file
that is a hole but for its header, so a terabyte takes a few megabytes of disk; index and manifest are real. Of each size and
program one JSON line: seconds by the clock, of the processor, and the peak of memory.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from cluster import Cluster, Timeout
from process import Program, start_child
from shaped import Loopback
from text import name_mirrors

TINY = {"n-layer": 1, "n-embd": 16, "n-head": 1, "context": 64, "batch": 2, "steps-per-round": 2, "rounds": 2, "min-workers": 1}


def parse():
    p = argparse.ArgumentParser(prog="./dev bench text_start", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gigabytes", default="1,100,1000", help="of tokens (default: %(default)s)")
    return p.parse_args()


def measured(argv, log):
    """Runs a program to its end. Returns seconds, of the processor, and its peak memory in MiB."""
    began = time.monotonic()
    with open(log, "wb") as out:
        child = start_child(argv, stdout=out, stderr=out)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        with open(log, errors="replace") as f:
            raise RuntimeError(f"{argv[0]}: {f.read()[-400:]}")
    return {"s": round(time.monotonic() - began, 2), "processor_s": round(usage.ru_utime + usage.ru_stime, 2),
            "peak_mib": round(usage.ru_maxrss / 1024, 1)}


def say(gigabytes, program, **fields):
    print(json.dumps({"bench": "text_start", "gigabytes": gigabytes, "program": program, **fields}), flush=True)


def measure(bin_dir, where, gigabytes):
    published = f"{where}/text"
    subprocess.run([f"{bin_dir}/bench_published", "--make", published, str(gigabytes)], check=True)
    options = [x for k, v in TINY.items() for x in (f"--{k}", str(v))]
    say(gigabytes, "rivulet train", **measured(
        [f"{bin_dir}/rivulet", "train", "--data", published, "--out", f"{where}/train", "--workers", "1", "--vocab", "50257",
         "--eval-every", "0", "--eval-tokens", "64", *options], f"{where}/train.log"))
    with open(f"{where}/run.conf", "w") as f:
        f.writelines(f"{k} = {v}\n" for k, v in TINY.items())
    say(gigabytes, "new-run", **measured([f"{bin_dir}/rivulet-coordinator", "new-run", "--dir", f"{where}/new-run", "--config",
                                          f"{where}/run.conf", "--data", published], f"{where}/new-run.log"))
    mirror = Program("mirror", [f"{bin_dir}/rivulet", "data", "serve", published, "--listen", "127.0.0.1", "--port", "0"],
                     f"{where}/mirror.log")
    mirror.start()
    cluster = None
    try:
        name_mirrors(published, [f"http://127.0.0.1:{port_of(mirror)}"])
        cluster = Cluster(bin_dir, f"{where}/run", Loopback(), TINY, published=published)
        cluster.start_coordinator()
        link = cluster._run(["invite", "--dir", cluster.run_dir]).split()[0]
        got = measured([f"{bin_dir}/rivulet-worker", link, "--yes", "--on-battery", "--on-metered", "--dir", f"{where}/worker",
                        "--threads", "1", "--listen", "127.0.0.1:0", "--eval-every", "0"], f"{where}/worker.log")
        with open(f"{where}/worker/metrics.jsonl") as f:
            first = next(x for x in map(json.loads, f) if x["kind"] == "round")
        cached = sum(f.stat().st_size for f in pathlib.Path(f"{where}/worker/data").rglob("*") if f.is_file())
        say(gigabytes, "rivulet-worker", **got, first_round_s=round(first["wall_us"] * 1e-6, 2), stall_s=round(
            first["data_stall_us"] * 1e-6, 2), cached_mib=round(cached / 2**20, 1))
    finally:
        if cluster:
            cluster.close()
        mirror.end()


def port_of(mirror):
    for _ in range(200):
        with open(mirror.log, errors="replace") as f:
            for line in f:
                try:
                    event = json.loads(line)
                except ValueError:
                    continue
                if "port" in event:
                    return event["port"]
        time.sleep(0.05)
    raise RuntimeError("the mirror does not start")


def main():
    a = parse()
    bin_dir = os.environ["RIVULET_BIN"]
    top = tempfile.mkdtemp(prefix="rivulet-start.")
    try:
        for gigabytes in map(int, a.gigabytes.split(",")):
            os.makedirs(f"{top}/{gigabytes}")
            measure(bin_dir, f"{top}/{gigabytes}", gigabytes)
            shutil.rmtree(f"{top}/{gigabytes}")
    except (Timeout, RuntimeError) as e:
        print(json.dumps({"bench": "text_start", "error": str(e)}))
        return 1
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

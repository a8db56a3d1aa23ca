#!/usr/bin/env python3
"""Checks and measures the CUDA plugin on this machine's GPU, step by step.

Steps: %(steps)s.
Each result is on disk before the next step begins. --out holds results.jsonl (a JSON line for each
beginning and end), report.md (the tables), log.txt (the programs' output) and current.log (that of
the one that runs). A second call continues after the items that results.jsonl has as done.
In a checkout also: dev gpu --pack DIR makes a folder for a machine where nothing can be built;
there, DIR/run takes these options. dev gpu --rehearse tries such a folder here, without a GPU.
Exit status: 0 nothing failed, 1 something failed, 2 wrong options, 3 no GPU.
"""
import argparse
import fcntl
import hashlib
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import predict
import process
import report
import results as results_file
import steps
from context import Context

WRONG_OPTIONS, NO_GPU = 2, 3
PROGRAMS = ("bench_gpu", "device_conformance", "rivulet", "rivulet-worker")  # whose figures these are


def minutes(text):
    value = float(text)
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError("must be above 0, not %s" % text)
    return value


def existing(text):
    if not os.path.isfile(text):
        raise argparse.ArgumentTypeError("there is no file %s" % text)
    return text


def parse(argv):
    p = argparse.ArgumentParser(prog="dev gpu", description=__doc__ % {"steps": ", ".join(steps.NAMES)},
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", metavar="DIR",
                   help="results and report (default: build/gpu; with --emulate build/gpu-emulated)")
    p.add_argument("--minutes", type=minutes, default=10, metavar="N", help="items that do not fit are listed (default: 10)")
    p.add_argument("--from", dest="first", choices=steps.NAMES, metavar="STEP", help="start with this step")
    p.add_argument("--only", metavar="STEP[,STEP]", help="these steps alone")
    p.add_argument("--fresh", action="store_true", help="forget the results that are in --out")
    p.add_argument("--retry", action="store_true", help="repeat items that did not pass")
    p.add_argument("--earlier", type=existing, metavar="FILE", help="results of an earlier call elsewhere: continue after them")
    p.add_argument("--report", action="store_true", help="only write report.md from the results, and print it")
    p.add_argument("--predict", action="store_true", help="only print the times that a model of the GPU gives")
    p.add_argument("--measured", type=existing, metavar="FILE", help="with --predict: results to compare them with")
    p.add_argument("--python", default=sys.executable, metavar="FILE", help="a Python with PyTorch (default: this one)")
    p.add_argument("--llmc", metavar="FILE", help="a built train_gpt2cu of llm.c, for the step peers")
    p.add_argument("--peak-tflops", type=float, metavar="X", help="of this GPU in bf16, if its name is unknown")
    p.add_argument("--bin", default="build/release/bin", metavar="DIR", help=argparse.SUPPRESS)
    p.add_argument("--work", default="build/gpu-work", metavar="DIR", help=argparse.SUPPRESS)
    p.add_argument("--emulate", metavar="PLUGIN", help="a trial of these steps without a GPU, on the emulated plugin")
    p.add_argument("--check", action="store_true", help=argparse.SUPPRESS)  # of the options alone
    args = p.parse_args(argv)
    args.out = args.out or ("build/gpu-emulated" if args.emulate else "build/gpu")
    args.only = args.only.split(",") if args.only is not None else None
    for name in args.only or []:
        if name not in steps.NAMES:
            p.error("--only %s: must be of %s" % (name, ", ".join(steps.NAMES)))
    return args


def has_gpu():
    tool = shutil.which("nvidia-smi")
    try:
        return bool(tool) and subprocess.run([tool, "-L"], stdout=subprocess.DEVNULL,
                                             stderr=subprocess.DEVNULL, timeout=60).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def programs_digest(args):
    """Returns a digest that distinguishes builds of programs and plugin."""
    digest = hashlib.sha256()
    for f in sorted(pathlib.Path(args.bin).glob("*")) + [pathlib.Path(args.emulate or "")]:
        if f.is_file() and (f.name in PROGRAMS or f.suffix == ".so"):
            digest.update(f.read_bytes())
    return digest.hexdigest()[:12]


def refuse(text):
    print("dev gpu: " + text, file=sys.stderr)
    sys.exit(WRONG_OPTIONS)


def lock(folder):
    """Takes the folder for this process until it ends; what it starts does not inherit that."""
    try:
        fcntl.flock(os.open(str(folder), os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        refuse("another call writes to %s: wait for it, or choose another folder with --out" % folder)


def open_results(args):
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    lock(out)
    path = out / "results.jsonl"
    if args.fresh:
        for name in ("results.jsonl", "report.md", "log.txt", "current.log"):
            if (out / name).exists():
                (out / name).unlink()
    if args.earlier:
        if path.exists():
            refuse("--earlier %s: %s has results of its own: name another folder with --out, or forget them with --fresh" % (
                args.earlier, path))
        shutil.copyfile(args.earlier, path)
    results = results_file.Results(str(path))
    if any(bool(r.get("emulated")) != bool(args.emulate) for r in results.records if "session" in r):
        refuse("%s holds results %s: name another folder with --out, or forget them with --fresh" % (
            path, "of a GPU" if args.emulate else "of the emulator"))
    return results


def note_other_programs(results, digest):
    """Says where what is done was done by other programs: a second call does not do it again."""
    if any(r.get("programs", digest) != digest for r in results.records if "session" in r):
        print("dev gpu: %s holds results of other builds of the programs, which are kept; --fresh measures all again"
              % results.path, flush=True)


def write_report(args, records):
    try:
        text = report.markdown(records)
    except Exception as e:  # a fault of the tables ends no measurement, and results.jsonl holds everything
        text = "# GPU report\n\nThe tables could not be made (%s: %s); results.jsonl holds all.\n" % (type(e).__name__, e)
    path = pathlib.Path(args.out) / "report.md"
    new = path.with_suffix(".new")
    new.write_text(text)
    os.replace(new, path)
    return text


def measure(args):
    process.adopt_orphans()
    results = open_results(args)  # from here on no other call has this folder
    shutil.rmtree(args.work, ignore_errors=True)
    pathlib.Path(args.work).mkdir(parents=True)
    digest = programs_digest(args)
    note_other_programs(results, digest)
    results.add(session=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()), minutes=args.minutes,
                emulated=bool(args.emulate), peak_tflops=args.peak_tflops, programs=digest)

    def progress(line):
        print(line, flush=True)
        write_report(args, results.records)

    context = Context(args)
    context.nvidia_path = bool(results.data("inventory", "libraries").get("nvidia_path"))
    try:
        steps.run(context, results, steps.chosen(args.first, args.only), args.retry, progress)
        results.add(ended="done")
    finally:
        process.kill_all()
        write_report(args, results.records)
        shutil.rmtree(args.work, ignore_errors=True)
    print("%s/report.md" % args.out)
    return 1 if report.failed(results.records) else 0


def interrupted(number, _frame):
    sys.exit(128 + number)  # runs measure's `finally`


def main(argv=None):
    args = parse(argv)
    if args.check:
        return 0
    if args.predict:
        return predict.main(args.measured)
    if args.report:
        path = pathlib.Path(args.out) / "results.jsonl"
        if not path.exists():
            refuse("--report: there is no %s; --out names the folder of a call" % path)
        print(write_report(args, results_file.read(path)))
        return 0
    if not args.emulate and not has_gpu():
        print("dev gpu: no GPU here (nvidia-smi finds none): nothing was run", file=sys.stderr)
        return NO_GPU
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, interrupted)
    return measure(args)


if __name__ == "__main__":
    sys.exit(main())

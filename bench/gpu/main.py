#!/usr/bin/env python3
"""Checks and measures the CUDA plugin on this machine's GPU, step by step; each result is on disk before the next begins.

Steps: %(steps)s.
--out holds results.jsonl (a JSON line for all that began and ended), report.md (the tables), log.txt (what the programs
printed) and current.log (of the one that runs). A second call goes on after what results.jsonl says is done.
Exit status: 0 nothing failed, 1 something did, 2 wrong options, 3 there is no GPU.
"""
import argparse
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

NO_GPU = 3


def parse(argv):
    p = argparse.ArgumentParser(prog="dev gpu", description=__doc__ % {"steps": ", ".join(steps.NAMES)},
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", default="build/gpu", metavar="DIR", help="results and report (default: %(default)s)")
    p.add_argument("--minutes", type=float, default=10, metavar="N", help="what does not fit is named (default: 10)")
    p.add_argument("--from", dest="first", choices=steps.NAMES, metavar="STEP", help="start with this step")
    p.add_argument("--only", metavar="STEP[,STEP]", help="these steps alone")
    p.add_argument("--fresh", action="store_true", help="forget the results that are in --out")
    p.add_argument("--retry", action="store_true", help="do again what did not pass")
    p.add_argument("--earlier", metavar="FILE", help="results of an earlier call elsewhere: go on after them")
    p.add_argument("--report", action="store_true", help="only write report.md from the results, and print it")
    p.add_argument("--predict", action="store_true", help="only print the times that a model of the GPU gives")
    p.add_argument("--measured", metavar="FILE", help="with --predict: results to hold them against")
    p.add_argument("--python", default=sys.executable, metavar="FILE", help="a Python with PyTorch (default: this one)")
    p.add_argument("--llmc", metavar="FILE", help="a built train_gpt2cu of llm.c, for the step peers")
    p.add_argument("--peak-tflops", type=float, metavar="X", help="of this GPU in bf16, where its name does not say it")
    p.add_argument("--bin", default="build/release/bin", metavar="DIR", help=argparse.SUPPRESS)
    p.add_argument("--work", default="build/gpu-work", metavar="DIR", help=argparse.SUPPRESS)
    p.add_argument("--emulate", metavar="PLUGIN", help="a trial of these steps without a GPU, on the emulated plugin")
    args = p.parse_args(argv)
    args.only = args.only.split(",") if args.only else None
    for name in args.only or []:
        if name not in steps.NAMES:
            p.error("--only %s: there are %s" % (name, ", ".join(steps.NAMES)))
    return args


def has_gpu():
    tool = shutil.which("nvidia-smi")
    return bool(tool) and subprocess.run([tool, "-L"], stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL, timeout=60).returncode == 0


def open_results(args):
    out = pathlib.Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    path = out / "results.jsonl"
    if args.fresh:
        for name in ("results.jsonl", "report.md", "log.txt", "current.log"):
            if (out / name).exists():
                (out / name).unlink()
    if args.earlier and not path.exists():
        shutil.copyfile(args.earlier, path)
    return results_file.Results(str(path))


def write_report(args, records):
    text = report.markdown(records)
    path = pathlib.Path(args.out) / "report.md"
    new = path.with_suffix(".new")
    new.write_text(text)
    os.replace(new, path)
    return text


def measure(args):
    process.adopt_orphans()
    shutil.rmtree(args.work, ignore_errors=True)
    pathlib.Path(args.work).mkdir(parents=True)
    results = open_results(args)
    results.add(session=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()), minutes=args.minutes,
                emulated=bool(args.emulate), peak_tflops=args.peak_tflops)

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
    if args.predict:
        return predict.main(args.measured)
    if args.report:
        print(write_report(args, results_file.read(pathlib.Path(args.out) / "results.jsonl")))
        return 0
    if not args.emulate and not has_gpu():
        print("dev gpu: no GPU here (nvidia-smi finds none): nothing was run", file=sys.stderr)
        return NO_GPU
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, interrupted)
    return measure(args)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""test_bench_gpu.py BIN PLUGIN: what ./dev gpu does when programs crash, hang or are killed, on programs that are made up;
its tables and its model of times; then some of its steps on the emulated plugin, killed and continued."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
PLUGIN, BIN = pathlib.Path(sys.argv.pop()).resolve(), pathlib.Path(sys.argv.pop()).resolve()
sys.path.insert(0, str(TOP / "bench" / "gpu"))
import models
import pack
import predict
import process
import report
import results
import speed

MAIN = [sys.executable, "-B", str(TOP / "bench" / "gpu" / "main.py")]

# Stand in for the programs that are measured. Words of the command line decide what they do.
CONFORMANCE = """#!/bin/bash
case " $* " in
*" --list "*) printf 'good\\nbad\\ndead\\nslow\\n' ;;
*" dead "*) echo 'dead, gpt2 size 3' >&2; kill -SEGV $$ ;;
*" slow "*) echo '{"op": "slow", "sizes": "small", "shape": "n 1", "worst": 0.5, "at": "", "differences": 0, "parts": []}'; sleep 1000 ;;
*" bad "*) echo '{"op": "bad", "sizes": "gpt2", "shape": "n 2", "worst": 3, "at": "y[0]", "differences": 7, "parts": [{"name": "forward", "cold_ms": 2, "ms": 1}]}'
	echo 'device_conformance: 7 differences' >&2; exit 1 ;;
*) echo "cuda:0 made up" >&2
	echo '{"op": "good", "sizes": "small", "shape": "n 1", "worst": 0.25, "at": "", "differences": 0, "parts": []}' ;;
esac
"""
OTHERS = """#!/bin/bash
echo '{"step_ms": 2.0}'
"""


class Folder(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="rivulet-bench-gpu-"))
        self.addCleanup(shutil.rmtree, str(self.dir), ignore_errors=True)
        self.out = self.dir / "out"

    def records(self):
        return results.read(str(self.out / "results.jsonl"))

    def items(self):
        return results.latest(self.records())

    def status(self, step, item):
        return self.items()[(step, item)]["status"]

    def words(self, binaries, *more):
        return MAIN + ["--bin", str(binaries), "--emulate", str(PLUGIN), "--out", str(self.out), "--work",
                       str(self.dir / "work")] + [str(w) for w in more]

    def call(self, binaries, *more):
        return subprocess.run(self.words(binaries, *more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              universal_newlines=True)


class MadeUp(Folder):
    """Programs that are not ours: what becomes of the others when one fails."""

    def setUp(self):
        Folder.setUp(self)
        self.bin = self.dir / "bin"
        self.bin.mkdir()
        for name, text in (("device_conformance", CONFORMANCE), ("bench_gpu", OTHERS)):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)

    def call_until(self, step, item, *words):
        """Starts a call, and asks it to end once that item has begun."""
        p = subprocess.Popen(self.words(self.bin, *words), stdout=subprocess.DEVNULL)
        while p.poll() is None and (step, item) not in self.items():
            time.sleep(0.02)
        p.terminate()
        return p.wait()

    def test_a_crash_a_hang_and_a_difference_end_nothing_else(self):
        self.assertEqual(self.call_until("operations", "slow, bf16 cuDNN", "--only", "operations"), 128 + signal.SIGTERM)
        self.assertEqual(self.status("operations", "good, bf16 cuDNN"), "passed")
        self.assertEqual(self.status("operations", "bad, bf16 cuDNN"), "failed")
        self.assertEqual(self.status("operations", "dead, bf16 cuDNN"), "crashed")
        crash = self.items()[("operations", "dead, bf16 cuDNN")]["data"]["crash"]
        self.assertIn("SIGSEGV", crash["first"])
        self.assertIn("dead, gpt2 size 3", crash["first"])
        self.assertIn("SIGSEGV", crash["blocking"])
        text = (self.out / "report.md").read_text()
        self.assertIn("| operations | dead, bf16 cuDNN | crashed |", text)
        self.assertIn("| operations | slow, bf16 cuDNN | interrupted |", text)
        self.assertIn("**failed** - / 3", text)
        self.assertIn("== operations, bad, bf16 cuDNN", (self.out / "log.txt").read_text())

    def test_what_does_not_fit_is_named(self):
        ended = self.call(self.bin, "--only", "operations,speed", "--minutes", "0.001")
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertEqual({r["status"] for r in self.items().values()}, {"not run"})
        self.assertEqual(len([1 for step, _ in self.items() if step == "speed"]), 6)
        self.assertIn("| speed | tiny B8 | not run | needs 1 s,", (self.out / "report.md").read_text())

    def test_a_second_call_does_what_is_not_done_and_retry_what_did_not_pass(self):
        self.call(self.bin, "--only", "speed")
        done = {key for key, r in self.items().items() if r["status"] in results.DONE}
        self.assertIn(("speed", "tiny B2"), done)
        before = len(self.records())
        self.call(self.bin, "--only", "speed")
        self.assertFalse([r for r in self.records()[before:] if r.get("status") == "began"
                          and r["item"] != "phases of tiny B2"])
        self.call(self.bin, "--only", "speed", "--retry")
        began = [r["item"] for r in self.records()[before:] if r.get("status") == "began"]
        self.assertEqual(began, ["phases of tiny B2"])  # this program prints no phases

    def test_results_of_another_call_are_gone_on_with(self):
        self.call(self.bin, "--only", "speed")
        earlier = self.dir / "earlier.jsonl"
        shutil.move(str(self.out / "results.jsonl"), str(earlier))
        self.call(self.bin, "--only", "speed", "--earlier", earlier)
        self.assertEqual(len([r for r in self.records() if r.get("status") == "began"]), 6)
        ended = self.call(self.bin, "--only", "speed", "--earlier", earlier)
        self.assertIn("has results of its own", ended.stdout)
        self.assertEqual(ended.returncode, 2)
        self.call(self.bin, "--only", "speed", "--fresh")
        self.assertEqual(len([r for r in self.records() if "session" in r]), 1)

    def test_wrong_options(self):
        for words, said in ((("--only", "speeed"), "speeed"), (("--only", ""), "must be of"), (("--from", "speeed"), "speeed"),
                            (("--minutes", "0"), "above 0"), (("--minutes", "nan"), "above 0"),
                            (("--earlier", self.dir / "none"), "no file"), (("--measured", self.dir / "none"), "no file"),
                            (("--report",), "results.jsonl")):
            ended = self.call(self.bin, *words)
            self.assertEqual(ended.returncode, 2, words)
            self.assertIn(said, ended.stdout)
            self.assertNotIn("Traceback", ended.stdout)
        self.assertFalse(self.out.exists())

    def test_results_of_the_emulator_do_not_count_on_a_gpu(self):
        self.out.mkdir()
        gpu = json.dumps({"session": "then", "emulated": False}) + "\n"
        (self.out / "results.jsonl").write_text(gpu)
        ended = self.call(self.bin, "--only", "speed")
        self.assertEqual(ended.returncode, 2)
        self.assertIn("results of a GPU: name another folder", ended.stdout)
        self.assertEqual((self.out / "results.jsonl").read_text(), gpu)
        self.assertNotIn("results of a GPU", self.call(self.bin, "--only", "speed", "--fresh").stdout)

    def test_results_of_another_build_are_named(self):
        self.assertNotIn("other builds", self.call(self.bin, "--only", "speed").stdout)
        with open(str(self.bin / "bench_gpu"), "a") as f:
            f.write("\n")
        self.assertIn("other builds", self.call(self.bin, "--only", "speed").stdout)

    def test_two_calls_do_not_share_a_folder(self):
        first = subprocess.Popen(self.words(self.bin, "--only", "operations"), stdout=subprocess.DEVNULL)
        self.addCleanup(lambda: (first.terminate(), first.wait()))
        while first.poll() is None and ("operations", "slow, bf16 cuDNN") not in self.items():
            time.sleep(0.02)
        second = self.call(self.bin, "--only", "speed", "--fresh")
        self.assertEqual(second.returncode, 2)
        self.assertIn("another call writes to", second.stdout)
        self.assertIsNone(first.poll())
        self.assertIn(("operations", "good, bf16 cuDNN"), self.items())


class Files(Folder):
    """A file of results that a kill tore."""

    def test_a_torn_line_is_left_out_and_ended(self):
        path = self.dir / "results.jsonl"
        path.write_bytes(b'{"step": "a", "item": "b", "status": "passed"}\n{"step": "a", "it')
        self.assertEqual(len(results.read(str(path))), 1)
        r = results.Results(str(path))
        r.add(step="a", item="c", status="began")
        r.file.close()
        self.assertEqual([x["item"] for x in results.read(str(path))], ["b", "c"])
        self.assertTrue(r.is_done("a", "b", False))
        self.assertFalse(r.is_done("a", "c", False))

    def test_lines_that_are_none_of_ours_are_left_out(self):
        path = self.dir / "results.jsonl"
        ours = {"step": "a", "item": "b", "status": "passed", "data": None}
        wrong = [dict(ours, step=1), dict(ours, item=[]), dict(ours, status={}), dict(ours, status="good"), dict(ours, data=3),
                 {"item": "b"}, {"session": 5}, [], 7, None]
        path.write_bytes(b"\xff\x00\n" + "\n".join(map(json.dumps, [ours] + wrong)).encode() + b"\n")
        self.assertEqual(results.read(str(path)), [ours])

    def test_a_fault_of_the_tables_ends_nothing(self):
        path = self.dir / "results.jsonl"
        path.write_text('{"step": "inventory", "item": "ceilings", "status": "passed", "data": {"copy_gb_per_s": {}}}\n')
        ended = subprocess.run(MAIN + ["--report", "--out", str(self.dir)], stdout=subprocess.PIPE, universal_newlines=True)
        self.assertEqual(ended.returncode, 0)
        self.assertIn("results.jsonl holds all", ended.stdout)

    def test_an_end_stands_until_the_next(self):
        ended = {"step": "a", "item": "b", "status": "failed"}
        items = results.latest([ended, {"step": "a", "item": "b", "status": "began"}])
        self.assertEqual(items[("a", "b")]["status"], "failed")
        items = results.latest([ended, dict(ended, status="passed")])
        self.assertEqual(items[("a", "b")]["status"], "passed")

    def test_libraries_of_glibc_and_of_nvidia_are_not_carried(self):
        for name in ("libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libresolv.so.2"):
            self.assertTrue(pack.OF_GLIBC.match(name), name)
        for name in ("libcublasLt.so.13", "libcuda.so.1", "libcudnn.so.9", "libnccl.so.2", "libnvrtc.so.13"):
            self.assertTrue(pack.OF_NVIDIA.match(name), name)
        for name in ("libcurl.so.4", "libcrypto.so.3", "libdnnl.so.2", "libcom_err.so.2", "librtmp.so.1"):
            self.assertFalse(pack.OF_GLIBC.match(name) or pack.OF_NVIDIA.match(name), name)


class Processes(Folder):
    def run_limited(self, words, limit_s):
        self.dir.mkdir(exist_ok=True)
        return process.run(words, dict(os.environ), limit_s, self.dir / "out.txt", self.dir / "err.txt",
                           self.dir / "tail.txt")

    def test_a_program_that_hangs_ends_with_all_that_it_started(self):
        process.adopt_orphans()
        ended = self.run_limited(["bash", "-c", "echo begun; (sleep 1000 & sleep 1000) & wait"], 0.5)
        self.assertTrue(ended.timed_out)
        self.assertFalse(ended.crashed())
        self.assertEqual(process.descendants(os.getpid()), set())
        self.assertIn("limit", ended.how())

    def test_what_is_kept_of_a_program_that_prints_much_is_bounded(self):
        ended = self.run_limited(["bash", "-c", "yes | head -c 3000000 >&2; echo last >&2; sleep 1000"], 2)
        self.assertTrue(ended.timed_out)
        tail = (self.dir / "tail.txt").read_bytes()
        self.assertEqual(len(tail), process.TAIL_BYTES)
        self.assertTrue(tail.endswith(b"y\nlast\n"))

    def test_how_a_program_ended(self):
        ended = self.run_limited(["bash", "-c", "echo out; echo err >&2; exit 3"], 60)
        self.assertEqual((ended.rc, ended.out, ended.err, ended.how()), (3, "out\n", "err\n", "exit status 3"))
        self.assertTrue(self.run_limited(["bash", "-c", "kill -ABRT $$"], 60).crashed())
        self.assertIn("No such file", self.run_limited(["/nonexistent"], 60).err)


class Tables(unittest.TestCase):
    def test_the_model_gives_the_utilisation_that_the_documents_say(self):
        found = {(machine.name, name, batch):
                 round(100 * models.find(name).mfu(batch, predict.total_ms(machine, models.find(name), batch),
                                                             machine.peak_tflops))
                 for machine in predict.MACHINES for name, batch in machine.rates}
        self.assertEqual(found, {("H200", "124M", 16): 43, ("H200", "350M", 16): 46, ("H200", "774M", 8): 46,
                                 ("H200", "1558M", 8): 49, ("H200", "124M", 64): 47, ("H200", "350M", 64): 50,
                                 ("H200", "774M", 32): 52, ("H200", "1558M", 32): 56,
                                 ("4090", "124M", 16): 70, ("H100", "124M", 16): 41, ("H100", "1558M", 8): 47})

    def test_the_model_gives_what_an_overlapped_offload_saves(self):
        card = next(m for m in predict.MACHINES if m.name == "4090")
        saved = {}
        for name, sequences, micro in predict.OFFLOADED:
            for moments in predict.ADAMW_BYTES:
                passes, adamw, before, since = predict.offloaded(card, models.find(name), sequences, micro, moments)
                self.assertLessEqual(before - since, adamw)
                self.assertGreaterEqual(since, passes)
                saved[micro, moments] = round(100 * (1 - since / before), 1)
        self.assertEqual(saved, {(1, "fp32"): 1.0, (1, "int8"): 1.1, (4, "fp32"): 4.0, (4, "int8"): 4.3,
                                 (16, "fp32"): 15.8, (16, "int8"): 17.3})

    def test_the_model_is_held_against_what_was_measured(self):
        phases = [{"phase": "qkv forward", "ms": 1.0}, {"phase": "fc + GELU forward", "ms": 2.0},
                  {"phase": "classifier, both ways", "ms": 9.0}]
        items = {("speed", "124M B16"): {"data": {"ms": 40.0}},
                 ("speed", "phases of 124M B16"): {"data": {"phases": phases}}}
        text = "\n".join(predict.lines(predict.MACHINES[0], models.find("124M"), 16, items))
        self.assertRegex(text, r"products of the blocks: forward .*measured +3.00 ms")
        self.assertRegex(text, r"head: three products .*measured +9.00 ms")
        self.assertRegex(text, r"total .*MFU 43 %  measured 40.00 ms, MFU 33.")
        rows = predict.rows(predict.MACHINES[0], models.find("124M"), 16)
        self.assertAlmostEqual(sum(ms for _, ms in rows),
                               sum(ms for _, ms, _ in predict.beside(rows, {"qkv forward": 1.0})))

    def test_what_is_below_its_goal_comes_first(self):
        def record(step, item, **data):
            return {"step": step, "item": item, "status": "passed", "data": data}
        records = [{"session": "now"}, record("inventory", "machine", gpu="NVIDIA H200"),
                   record("speed", "124M B16", model="124M", batch=16, ms=50.0),
                   record("peers", "PyTorch, 124M B16", model="124M", batch=16, ms=45.0),
                   {"step": "shared", "item": "x", "status": "began"}]
        text = report.markdown(records)
        wrong = text[text.index("## Failed, below its goal"):text.index("| step | items")]
        self.assertIn("MFU 26.6 %, goal 42 %", wrong)
        self.assertIn("PyTorch's time is 0.90 of ours, goal 1.05", wrong)
        self.assertIn("| shared | x | interrupted |", wrong)
        self.assertIn("| 124M B16 | 50.00 | 327680 | 26.6% | 45.00 | 29.6% | 0.90 |", text)

    def test_kernels_are_summed(self):
        head = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
        rows = ['"0","void norm_kernel<3>(int)","gpu__time_duration.sum","ns","2,000"',
                '"0","void norm_kernel<3>(int)","dram__bytes.sum","byte","4000"',
                '"1","void norm_kernel<4>(int)","gpu__time_duration.sum","ns","1000"',
                '"2","gemm","gpu__time_duration.sum","ns","9000"', '"torn']
        found = speed.kernels_of(["==PROF== Connected", head] + rows)
        self.assertEqual([(k["kernel"], k["calls"]) for k in found], [("gemm", 1), ("void norm_kernel", 2)])
        self.assertAlmostEqual(found[1]["ms"], 0.003)
        self.assertAlmostEqual(found[1]["gb"], 4e-6)


class Emulated(Folder):
    """Real programs on the emulated plugin, killed with all that they started."""

    STEPS = "inventory,speed,peers"

    def left_over(self):
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and str(self.dir) in pathlib.Path("/proc", name, "cmdline").read_text():
                    found.append(name)
            except OSError:
                pass  # it ended meanwhile
        return found

    def kill_a_call(self, seconds, group):
        p = subprocess.Popen(self.words(BIN, "--only", self.STEPS), stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            p.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL) if group else p.kill()
            p.wait()
        end = time.monotonic() + 120
        while self.left_over() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(self.left_over(), [])

    def test_a_killed_call_is_gone_on_with(self):
        seed = os.getpid()
        print("seed", seed, flush=True)
        random.seed(seed)
        for group in (True, False):  # all its processes; only itself, whose programs end with it
            self.kill_a_call(random.uniform(0.3, 1.5), group)
        ended = self.call(BIN, "--only", self.STEPS)
        self.assertEqual(ended.returncode, 0, ended.stdout)
        over = set()
        for r in self.records():
            key = (r.get("step"), r.get("item"))
            self.assertFalse(r.get("status") == "began" and key in over, key)
            if r.get("status") in results.DONE:
                over.add(key)
        self.assertEqual(self.status("speed", "tiny B8"), "passed")
        self.assertEqual(self.status("peers", "PyTorch, tiny B2"), "skipped")
        self.assertIn("| tiny B2 |", (self.out / "report.md").read_text())
        self.assertLessEqual(len([f for f in self.out.rglob("*") if f.is_file()]), 8)

    def test_an_operation_is_measured(self):
        words = [str(BIN / "device_conformance"), "--only", "swiglu", "--sizes", "light", "--repetitions", "2"]
        ended = subprocess.run(words, env=dict(os.environ, RIVULET_CUDA_PLUGIN=str(PLUGIN)), stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, universal_newlines=True)
        rows = [json.loads(line) for line in ended.stdout.splitlines()]
        self.assertEqual(ended.returncode, 0)
        self.assertEqual(len(rows), 6)
        for row in rows:
            self.assertLessEqual(row["worst"], 1)
            self.assertEqual([p["name"] for p in row["parts"]], ["forward", "backward"])
            self.assertGreater(row["parts"][0]["ms"], 0)


if __name__ == "__main__":
    unittest.main()

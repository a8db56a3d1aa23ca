#!/usr/bin/env python3
"""test_lab_paper.py BIN: the paper-shape experiment: each verdict, met, missed and open, of made-up results; then the whole
of it with a tiny model, stopped and continued."""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
SPEC = importlib.util.spec_from_file_location("paper", TOP / "lab" / "paper" / "paper.py")
paper = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(paper)
BIN = pathlib.Path(sys.argv.pop()).resolve()


class Made(paper.Results):
    """Results that were not trained: losses by configuration, for seeds 1, 2, 3."""

    def __init__(self, losses, rounds=(), seeds=3):
        self.rows, self.rounds = [], rounds
        for changes, loss in losses:
            options = {name: str(value) for name, value in {**paper.MAIN, **changes}.items()}
            for seed in range(1, seeds + 1):
                self.rows.append({"seed": str(seed), "loss": str(loss + 0.001 * seed), "options": options})

    def rounds_of(self, **changes):
        return self.rounds


K = [{"workers": k, "batch": 16 // k} for k in (1, 2, 4)]
STEPS = [{"workers": k, "batch": 4} for k in (1, 2, 4)]
EVERY = [{"steps-per-round": h} for h in (1, 8, 32, 128)]
DDP, QUARTER = {"method": "ddp"}, {"method": "ddp", "workers": 1}


class Verdicts(unittest.TestCase):
    def assert_met(self, check, met, losses, **more):
        figure, verdict = check(Made(losses, **more))
        self.assertEqual(verdict, met, figure)

    def test_gaps(self):
        for loss, met in ((2.1, True), (2.2, False), (1.9, False), (1.99, True)):
            self.assert_met(paper.check_data_parallel, met, [({}, loss), (DDP, 2.0)])
        for loss, met in ((2.02, True), (1.96, False), (2.04, False)):
            self.assert_met(paper.check_one_worker, met, [(K[0], loss), (DDP, 2.0)])
        for loss, met in ((2.1, True), (2.2, False)):
            self.assert_met(paper.check_interval_cost, met, [(EVERY[1], 2.0), (EVERY[3], loss)])
        for loss, met in ((2.04, True), (2.06, False), (1.9, True)):  # e^0.04 = 1.041
            self.assert_met(paper.check_dropped, met, [({}, 2.0), ({"drop-sync": 0.5}, loss)])

    def test_orders(self):
        for check, cases, rising in ((paper.check_fixed_tokens, K, True), (paper.check_fixed_steps, STEPS, False),
                                     (paper.check_intervals, EVERY[1:], True)):
            for losses in ((2.0, 2.1, 2.2), (2.2, 2.1, 2.0), (2.0, 2.2, 2.1)):
                met = list(losses) == sorted(losses, reverse=not rising)
                self.assert_met(check, met, list(zip(cases, losses)))
        for losses, met in (((2.5, 2.0, 2.1, 2.2), True), ((2.15, 2.0, 2.1, 2.2), False)):
            self.assert_met(paper.check_every_step, met, list(zip(EVERY, losses)))

    def test_clear_differences(self):  # the seeds' standard deviation is 0.001
        for check, better, worse in ((paper.check_quarter, {}, QUARTER),
                                     (paper.check_delayed, {"method": "eager"}, {"method": "delayed"})):
            for loss, met in ((2.003, True), (2.0015, False), (1.9, False)):
                self.assert_met(check, met, [(better, 2.0), (worse, loss)])
            self.assert_met(check, None, [(better, 2.0), (worse, 2.5)], seeds=1)
        for loss, met in ((2.001, True), (1.999, True), (2.003, False), (1.997, False)):
            self.assert_met(paper.check_codec_loss, met, [({}, loss), ({"codec": "fp32"}, 2.0)])
        for loss, met in ((2.01, True), (1.99, False)):
            self.assert_met(paper.check_averaging, met, [({}, 2.0), ({"outer": "average"}, loss)])

    def test_codec(self):
        for error, met in ((0.0149, True), (0.0151, False)):
            self.assert_met(paper.check_codec_error, met, [({}, 2.0)],
                            rounds=[{"codec_error": 0.001}, {"codec_error": None}, {"codec_error": error}])
        for cosine, met in ((0.99981, True), (0.99979, False)):
            self.assert_met(paper.check_codec_cosine, met, [({}, 2.0)],
                            rounds=[{"codec_cosine": 1.0}, {"codec_cosine": cosine}])

    def test_what_was_not_trained_is_open(self):
        rows = paper.judge(Made([({}, 2.0)], rounds=[{"codec_error": 0.01, "codec_cosine": 1.0}]))
        self.assertEqual(len(rows), len(paper.EXPECTATIONS))
        self.assertEqual([row["verdict"] for row in rows].count("met"), 2)
        self.assertEqual([row["verdict"] for row in rows].count("open"), len(rows) - 2)
        self.assertIn("not trained: method = ddp", rows[0]["figure"])


class Whole(unittest.TestCase):
    def test_tiny(self):
        with tempfile.TemporaryDirectory() as place:
            text, out = pathlib.Path(place) / "text", pathlib.Path(place) / "out"
            text.write_bytes(b"".join(b"%d " % (i * i) for i in range(60000)))
            command = [sys.executable, "-B", TOP / "lab" / "paper" / "paper.py", "--bin", BIN, "--data", text, "--out", out,
                       "--seeds", "1", "--lower-seeds", "1", "--", "--n-embd", "16", "--n-layer", "1", "--context", "8", "--total-steps", "128",
                       "--holdout-every", "8"]
            first = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
            conditions = json.loads((out / "verdicts.json").read_text())["conditions"]
            self.assertEqual(len(conditions), 2)
            self.assertEqual(float(conditions[0]["lr"]), 4 * float(conditions[1]["lr"]))
            for condition in conditions:
                self.assertEqual([row["what"] for row in condition["verdicts"]], [e[0] for e in paper.EXPECTATIONS])
                self.assertEqual([row["verdict"] for row in condition["verdicts"]].count("open"), 3)  # want a deviation
            self.assertEqual((out / "verdicts.md").read_text().count("**"), 4 * len(paper.EXPECTATIONS))
            self.assertIn("<svg", (out / "report.html").read_text())
            again = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
            self.assertNotIn('"event":"cell"', again.stdout)
            self.assertRegex(first.stdout, r"34 runs, in \d+ min")
            self.assertIn("34 runs, 34 of them from before", again.stdout)


if __name__ == "__main__":
    unittest.main()

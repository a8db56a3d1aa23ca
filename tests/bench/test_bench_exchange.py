"""What bench/realnet/exchange.py counts, over made-up samples of two lines of 8 Mbit/s."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "realnet"))
import exchange

RATE = 1000000  # bytes per second
IDLE = 0.25  # part of the processors' time


def samples_of(*stretches):
    """Each stretch: seconds, and the part of its rate that each of the two uplinks carries."""
    t, up, samples = 0.0, [0.0, 0.0], [(0.0, [0.0, 0.0], [0.0, 0.0], 0, 0.0)]
    for seconds, *use in stretches:
        for _ in range(round(seconds / exchange.SAMPLE_S)):
            t += exchange.SAMPLE_S
            up = [x + u * RATE * exchange.SAMPLE_S for x, u in zip(up, use)]
            samples.append((t, list(up), [up[1], up[0]], 0, t * IDLE * os.cpu_count()))
    return samples


PAUSE = (0.5, 0, 0)


class Exchange(unittest.TestCase):
    def measured(self, *stretches):
        samples = samples_of((1, 1, 1), PAUSE, *stretches, PAUSE)
        return exchange.measured(samples, 8, 8, exchange.bursts(samples, RATE / 2, RATE))

    def test_full_lines_reach_the_limit(self):
        one, = self.measured((2, 1, 1))
        self.assertAlmostEqual(one["use"], 1, places=2)
        self.assertAlmostEqual(one["seconds"], 2, places=1)
        self.assertEqual(one["tenths"], [1] * 10)
        self.assertAlmostEqual(one["idle"], IDLE, places=2)

    def test_a_tail_counts(self):
        one, = self.measured((1.6, 1, 1), (0.4, 1, 0))
        self.assertAlmostEqual(one["use"], 1, places=2)  # the busiest line is what limits
        self.assertEqual(one["tenths"][-1], 0.5)
        one, = self.measured((1.6, 1, 1), (0.4, 0.2, 0.2))
        self.assertAlmostEqual(one["use"], 0.84, places=2)

    def test_a_short_gap_belongs_to_the_exchange_and_a_long_one_ends_it(self):
        self.assertEqual(len(self.measured((1, 1, 1), (0.2, 0, 0), (1, 1, 1))), 1)
        self.assertEqual(len(self.measured((1, 1, 1), PAUSE, (1, 1, 1))), 2)

    def test_reports_are_no_bulk(self):
        one, = self.measured((2, 1, 1), (0.4, 0.01, 0.01), PAUSE, (1, 0.02, 0.02))
        self.assertAlmostEqual(one["seconds"], 2, places=1)

    def test_what_members_say_needs_no_pause(self):
        samples = samples_of((1, 1, 1), (2, 1, 0.5), (1, 1, 1))
        one, = exchange.measured(samples, 8, 8, exchange.spanned(samples, [(0, 1), (1, 3)]))
        self.assertAlmostEqual(one["seconds"], 2, delta=3 * exchange.SAMPLE_S)
        self.assertAlmostEqual(one["use"], 1, places=2)
        self.assertAlmostEqual(one["share"][0], 2 / 3, places=1)
        self.assertAlmostEqual(one["share"][1], 4 / 3, places=1)


if __name__ == "__main__":
    unittest.main()

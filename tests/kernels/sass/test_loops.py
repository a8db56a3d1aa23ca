#!/usr/bin/env python3
"""Tests of cubin.py and loops.py on instructions written by hand."""

import unittest

import loops
import test_limits
from cubin import Instruction, Kernel, branch_words, count, instruction


def code(text):
    """Returns instructions of words: "LDG", "BRA:3" (to instruction 3 if a predicate holds), "BRA!3" (always)."""
    made = []
    for word in text.split():
        operation, sign, target = word.partition("!" if "!" in word else ":")
        made.append(Instruction(operation, sign == "!" or word == "EXIT", int(target) if target else None))
    return made


class Decoding(unittest.TestCase):
    def test_branches_of_two_generations(self):
        # As nvdisasm shows them: both go 0x4b0 bytes on from the next instruction.
        self.assertEqual(branch_words(0x000004B000009947, 0, 80) * 4, 0x4B0)
        self.assertEqual(branch_words(0x00000004002C9947, 0, 90) * 4, 0x4B0)

    def test_a_branch_back(self):
        got = instruction(0xFFFFFFFC00C88947, 0x000FEA000383FFFF, 0x19, 90)
        self.assertEqual((got.operation, got.ends, got.target), ("BRA", False, 0x19 + 1 - 14))

    def test_exit_with_and_without_a_predicate(self):
        self.assertTrue(instruction(0x000000000000794D, 0, 0, 90).ends)
        self.assertFalse(instruction(0x000000000000894D, 0, 0, 90).ends)


class Loops(unittest.TestCase):
    def found(self, text):
        return [(loop.head, loop.instructions) for loop in loops.find(code(text))]

    def test_one_loop(self):
        self.assertEqual(self.found("MOV LDG FADD BRA:1 STG EXIT"), [(1, 3)])

    def test_no_loop(self):
        self.assertEqual(self.found("BRA:3 LDG BRA!4 STG EXIT"), [])

    def test_the_branch_to_itself_at_the_end(self):
        self.assertEqual(self.found("LDG EXIT BRA!2"), [])

    def test_an_inner_loop_is_part_of_the_outer(self):
        text = "MOV LDG FADD BRA:2 BRA:1 EXIT"
        self.assertEqual(sorted(self.found(text)), [(1, 4), (2, 2)])
        self.assertEqual([loop.head for loop in loops.innermost(loops.find(code(text)))], [2])

    def test_a_slow_way_behind_the_end_belongs_to_its_loop(self):
        # 1..4 is the loop; 3 may go to 6, which comes back to 4.
        self.assertEqual(self.found("MOV LDG FADD BRA:6 BRA:1 EXIT MUFU BRA!4"), [(1, 6)])

    def test_a_way_back_into_straight_code_is_no_loop(self):
        self.assertEqual(self.found("BRA:4 LDG FADD EXIT MUFU BRA!2"), [])


class Limits(unittest.TestCase):
    def kernel(self, text, **rest):
        instructions = code(text)
        return Kernel(90, "k", instructions, counts=count(instructions), **rest)

    def row(self, **rest):
        return test_limits.Row(
            **{
                **dict(arch=90, kernel="k", loop="+LDG-STG", unit="8*LDG", instructions=3, elements=8, registers=32),
                **rest,
            }
        )

    def test_a_loop_that_grew(self):
        kernel = self.kernel("LDG FADD BRA:0 EXIT", registers=32)
        self.assertEqual(test_limits.compare(self.row(), kernel, True), [])
        self.assertIn(
            "0.50 instructions", test_limits.compare(self.row(), self.kernel("LDG FADD FADD BRA:0 EXIT"), True)[0]
        )
        self.assertEqual(test_limits.compare(self.row(), self.kernel("LDG FADD FADD BRA:0 EXIT"), False), [])

    def test_more_registers(self):
        kernel = self.kernel("LDG FADD BRA:0 EXIT", registers=33)
        self.assertIn("33 registers", test_limits.compare(self.row(), kernel, True)[0])

    def test_a_loop_that_is_gone(self):
        kernel = self.kernel("LDG STG BRA:0 EXIT")
        self.assertIn("no loop with +LDG-STG", test_limits.compare(self.row(), kernel, False)[0])

    def test_the_unrolled_loop_counts(self):
        kernel = self.kernel("LDG FADD BRA:0 LDG LDG FADD FADD BRA:3 EXIT")
        self.assertEqual(test_limits.measured(self.row(), kernel).elements, 16)

    def test_local_memory(self):
        self.assertEqual(list(test_limits.memory_faults(self.kernel("LDG EXIT"), "k")), [])
        self.assertIn("LDL", next(test_limits.memory_faults(self.kernel("LDL EXIT"), "k")))
        self.assertIn("16 bytes", next(test_limits.memory_faults(self.kernel("EXIT", frame_bytes=16), "k")))


if __name__ == "__main__":
    unittest.main()

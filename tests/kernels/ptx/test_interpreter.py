#!/usr/bin/python3
"""Tests of the interpreter on small PTX written by hand: what it computes, and what it must
refuse."""

import sys
import unittest

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing} (python3-numpy)")
    sys.exit(77)
from interpreter import Fault, GlobalMemory, Grid, Unsupported, parse, run
from interpreter.values import from_bf16, to_bf16

REGISTERS = """.reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<40>; .reg .b64 %rd<9>;
.reg .f32 %f<20>; .reg .f64 %fd<4>;"""
# %rd1: where the thread's result goes; %r1: tid.x
PROLOGUE = (
    """ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;"""
)


def kernel(body, shared="", name="k", arrays=""):
    inside = f"{REGISTERS}\n{arrays}\n{PROLOGUE}\n{body}\nret;"
    text = f"{shared}\n.visible .entry {name}(.param .u64 out)\n{{\n{inside}\n}}\n"
    return parse(text)[name]


def result(body, threads=32, dtype=np.uint32, blocks=1, **rest):
    """Runs a body in which each thread stores 4 bytes at %rd1; returns what they stored."""
    memory = GlobalMemory(1 << 16)
    out = memory.put(np.zeros(threads, np.uint32))
    run(kernel(body, **rest), memory, [out], Grid((blocks, 1, 1), (threads, 1, 1)))
    return memory.get(out, dtype, threads)


def float_result(expression, dtype=np.float32):
    """Runs one instruction whose result is %f3."""
    return result(f"cvt.rn.f32.u32 %f1, %r1; {expression} st.global.f32 [%rd1], %f3;", dtype=dtype)


class Arithmetic(unittest.TestCase):
    def test_integers_wrap_and_divide_towards_zero(self):
        got = result("sub.s32 %r2, %r1, 7; div.s32 %r3, %r2, 2; st.global.u32 [%rd1], %r3;", dtype=np.int32)
        self.assertEqual(list(got[:9]), [-3, -3, -2, -2, -1, -1, 0, 0, 0])
        got = result("mul.lo.s32 %r2, %r1, 0x80000001; st.global.u32 [%rd1], %r2;")
        self.assertEqual(int(got[3]), (3 * 0x80000001) & 0xFFFFFFFF)

    def test_shifts_beyond_the_width(self):
        self.assertEqual(int(result("shl.b32 %r2, %r1, 32; st.global.u32 [%rd1], %r2;")[5]), 0)
        got = result("sub.s32 %r2, %r1, 9; shr.s32 %r3, %r2, 40; st.global.u32 [%rd1], %r3;", dtype=np.int32)
        self.assertEqual((got[0], got[20]), (-1, 0))

    def test_fused_multiply_add_rounds_once(self):
        got = float_result("mov.f32 %f2, 0f3F800001; fma.rn.f32 %f3, %f2, %f2, 0fBF800000;")
        self.assertEqual(float(got[0]), float(np.float32(2.0**-22 + 2.0**-46)))
        down = float_result("mov.f32 %f2, 0f3F800001; fma.rm.f32 %f3, %f2, %f2, 0f00000000;")
        self.assertEqual(float(down[0]), 1 + 2.0**-22)

    def test_conversions(self):
        got = result(
            "cvt.rn.f32.u32 %f1, %r1; mul.f32 %f2, %f1, 0f3F000000; cvt.rni.s32.f32 %r3, %f2;"
            "st.global.u32 [%rd1], %r3;"
        )
        self.assertEqual(list(got[:6]), [0, 0, 1, 2, 2, 2])  # halves to even
        got = result(
            "mov.f32 %f1, 0fFF800000; cvt.rzi.s32.f32 %r3, %f1; st.global.u32 [%rd1], %r3;", dtype=np.int32
        )
        self.assertEqual(int(got[0]), -(2**31))

    def test_bf16_rounds_to_even_and_keeps_nan(self):
        given = np.array([1.0, 1.00390625, 1.01171875, np.inf, np.nan, 3.4e38], np.float32)
        self.assertEqual(
            [hex(b) for b in to_bf16(given)], ["0x3f80", "0x3f80", "0x3f82", "0x7f80", "0x7fff", "0x7f80"]
        )
        self.assertEqual(float(from_bf16(np.array([0x4049], np.uint16))[0]), 3.140625)

    def test_packed_conversion_puts_the_first_source_above(self):
        got = result(
            "mov.f32 %f1, 0f3F800000; mov.f32 %f2, 0f40000000; cvt.rn.bf16x2.f32 %r3, %f1, %f2;"
            "st.global.u32 [%rd1], %r3;"
        )
        self.assertEqual(int(got[0]), 0x3F804000)

    def test_comparisons_with_nan(self):
        for compare, expected in (("lt", 0), ("ne", 0), ("ltu", 1), ("neu", 1), ("nan", 1)):
            got = result(
                f"mov.f32 %f1, 0f7FC00000; setp.{compare}.f32 %p1, %f1, 0f00000000; selp.u32 %r2, 1, 0, %p1;"
                "st.global.u32 [%rd1], %r2;"
            )
            self.assertEqual(int(got[0]), expected, compare)

    def test_an_unknown_instruction_is_named(self):
        with self.assertRaisesRegex(Unsupported, "bfind"):
            result("bfind.u32 %r2, %r1;")


class Control(unittest.TestCase):
    def test_divided_threads_meet_again(self):
        body = """setp.lt.u32 %p1, %r1, 10; @%p1 bra $L_small; mov.u32 %r2, 5; bra.uni $L_end;
            $L_small: mov.u32 %r2, 3;
            $L_end: shfl.sync.bfly.b32 %r3|%p2, %r2, 16, 31, -1; st.global.u32 [%rd1], %r3;"""
        got = result(body)
        self.assertEqual(list(got), [5] * 16 + [3] * 10 + [5] * 6)

    def test_loops_of_different_lengths(self):
        body = """mov.u32 %r2, 0; mov.u32 %r3, 0;
            $L_loop: add.s32 %r3, %r3, %r2; add.s32 %r2, %r2, 1; setp.le.u32 %p1, %r2, %r1; @%p1 bra $L_loop;
            st.global.u32 [%rd1], %r3;"""
        self.assertEqual(list(result(body)), [i * (i + 1) // 2 for i in range(32)])

    def test_a_shuffle_in_a_divided_warp(self):
        with self.assertRaisesRegex(Fault, "divided"):
            result(
                "setp.lt.u32 %p1, %r1, 10; @%p1 bra $L_end; shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;"
                "$L_end: mov.u32 %r2, 0;"
            )

    def test_a_barrier_in_a_divided_warp(self):
        with self.assertRaisesRegex(Fault, "divided"):
            result("setp.lt.u32 %p1, %r1, 10; @%p1 bra $L_end; bar.sync 0; $L_end: mov.u32 %r2, 0;")

    def test_a_barrier_that_a_warp_does_not_reach(self):
        with self.assertRaisesRegex(Fault, "never reach"):
            result(
                "setp.lt.u32 %p1, %r1, 32; @%p1 bra $L_end; bar.sync 0; $L_end: mov.u32 %r2, 0;", threads=64
            )

    def test_an_endless_loop(self):
        from unittest import mock

        with mock.patch("interpreter.machine.BLOCKS_RUN_MOST", 100), self.assertRaisesRegex(
            Fault, "does not end"
        ):
            result("$L_loop: bra.uni $L_loop;")


SHARED = ".shared .align 16 .b8 tile[1024];"
STORE = "mov.u32 %r10, tile; shl.b32 %r11, %r1, 2; add.s32 %r10, %r10, %r11; st.shared.u32 [%r10], %r1;"


class SharedMemory(unittest.TestCase):
    def test_neighbours_after_a_barrier(self):
        body = (
            STORE
            + "bar.sync 0; xor.b32 %r12, %r11, 128; mov.u32 %r13, tile; add.s32 %r13, %r13, %r12;"
            + "ld.shared.u32 %r14, [%r13]; st.global.u32 [%rd1], %r14;"
        )
        self.assertEqual(list(result(body, threads=64, shared=SHARED)), [i ^ 32 for i in range(64)])
        with self.assertRaisesRegex(Fault, "read without a barrier after another warp wrote it"):
            # Warp 0 runs ahead of warp 1 here, which does not matter: nothing orders them.
            result(body.replace("bar.sync 0;", ""), threads=64, shared=SHARED)

    def test_a_write_after_another_warps_read(self):
        body = (
            STORE
            + "bar.sync 0; ld.shared.u32 %r14, [tile]; setp.ne.u32 %p1, %r1, 0; @%p1 bra $L_end;"
            + "st.shared.u32 [tile], %r1; $L_end: mov.u32 %r2, 0;"
        )
        with self.assertRaisesRegex(Fault, "written without a barrier after another warp read it"):
            result(body, threads=64, shared=SHARED)
        result(body, threads=32, shared=SHARED)

    def test_two_warps_write_the_same_word(self):
        with self.assertRaisesRegex(Fault, "two warps"):
            result("st.shared.u32 [tile], %r1;", threads=64, shared=SHARED)

    def test_bounds_alignment_and_what_was_never_written(self):
        for access, why in (
            ("st.shared.u32 [tile+1024], %r1;", "in no array"),
            ("ld.shared.u32 %r2, [tile+512];", "nothing was written"),
            ("st.shared.u32 [tile+2], %r1;", "no multiple of 4"),
        ):
            with self.assertRaisesRegex(Fault, why):
                result(access, shared=SHARED)

    def test_global_bounds_and_races(self):
        with self.assertRaisesRegex(Fault, "belong to no allocation"):
            result("st.global.u32 [%rd1+4], %r1;")
        with self.assertRaisesRegex(Fault, "after another warp wrote it"):
            result(
                "st.global.u32 [%rd1], %r1; ld.param.u64 %rd3, [out]; ld.global.u32 %r2, [%rd3];", threads=64
            )
        with self.assertRaisesRegex(Fault, "two warps"):  # two blocks that write the same
            result("st.global.u32 [%rd1], %r1;", blocks=2)


COPY = """mov.u32 %r10, tile; shl.b32 %r11, %r1, 4; add.s32 %r10, %r10, %r11; ld.param.u64 %rd3, [out];
    mov.u32 %r12, 16;
    cp.async.cg.shared.global [%r10], [%rd3], 16, %r12; cp.async.commit_group;"""


class AsynchronousCopies(unittest.TestCase):
    def got(self, body):
        return result(COPY + body + "st.global.u32 [%rd1], %r14;", shared=SHARED)

    def test_arrive_when_their_group_was_waited_for(self):
        self.assertEqual(list(self.got("cp.async.wait_group 0; ld.shared.u32 %r14, [%r10];")), [0] * 32)
        with self.assertRaisesRegex(Fault, "before its asynchronous copy was waited for"):
            self.got("ld.shared.u32 %r14, [%r10];")
        with self.assertRaisesRegex(Fault, "before its asynchronous copy was waited for"):
            self.got("cp.async.wait_group 1; ld.shared.u32 %r14, [%r10];")

    def test_an_empty_group_counts(self):
        self.got("cp.async.commit_group; cp.async.wait_group 1; ld.shared.u32 %r14, [%r10];")

    def test_are_not_overwritten(self):
        with self.assertRaisesRegex(Fault, "while an asynchronous copy is under way"):
            self.got("st.shared.u32 [%r10], %r1; mov.u32 %r14, 0;")

    def test_fill_with_zeroes_and_read_nothing(self):
        body = COPY.replace("mov.u32 %r12, 16;", "mov.u32 %r12, 0; mov.u64 %rd3, 0;")
        got = result(
            body + "cp.async.wait_group 0; ld.shared.u32 %r14, [%r10]; st.global.u32 [%rd1], %r14;",
            shared=SHARED,
        )
        self.assertEqual(list(got), [0] * 32)


class Matrices(unittest.TestCase):
    """Every element of every fragment, by the ISA's formulas written out lane by lane."""

    def test_mma(self):
        draw = np.random.default_rng(1)
        a, b, c = (draw.integers(-8, 8, shape).astype(np.float32) for shape in ((16, 16), (16, 8), (16, 8)))
        memory = GlobalMemory(1 << 16)
        inputs = np.zeros((32, 10), np.uint32)
        for lane in range(32):
            g, q = divmod(lane, 4)
            pairs = [
                a[g, 2 * q : 2 * q + 2],
                a[g + 8, 2 * q : 2 * q + 2],
                a[g, 2 * q + 8 : 2 * q + 10],
                a[g + 8, 2 * q + 8 : 2 * q + 10],
                b[2 * q : 2 * q + 2, g],
                b[2 * q + 8 : 2 * q + 10, g],
            ]
            inputs[lane, :6] = [int(to_bf16(low)) | int(to_bf16(high)) << 16 for low, high in pairs]
            inputs[lane, 6:] = c[[g, g, g + 8, g + 8], [2 * q, 2 * q + 1, 2 * q, 2 * q + 1]].view(np.uint32)
        loads = "".join(f"ld.global.u32 %r{20 + i}, [%rd4+{4 * i}];" for i in range(6))
        loads += "".join(f"ld.global.f32 %f{1 + i}, [%rd4+{24 + 4 * i}];" for i in range(4))
        stores = "".join(f"st.global.f32 [%rd4+{4 * i}], %f{1 + i};" for i in range(4))
        body = f"""ld.param.u64 %rd3, [out]; mul.wide.u32 %rd4, %r1, 40; add.s64 %rd4, %rd4, %rd3; {loads}
            mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {{%f1,%f2,%f3,%f4}},
            {{%r20,%r21,%r22,%r23}}, {{%r24,%r25}}, {{%f1,%f2,%f3,%f4}}; {stores}"""
        at = memory.put(inputs)
        run(kernel(body), memory, [at], Grid((1, 1, 1), (32, 1, 1)))
        got, exact = memory.get(at, np.float32, (32, 10)), a @ b + c
        for lane in range(32):
            g, q = divmod(lane, 4)
            expected = [exact[g, 2 * q], exact[g, 2 * q + 1], exact[g + 8, 2 * q], exact[g + 8, 2 * q + 1]]
            self.assertEqual(list(got[lane, :4]), expected)

    def ldmatrix(self, flags):
        """Element [row, column] of matrix i is 100 i + 10 row + column. Returns (lane, matrix,
        half)."""
        fill = "".join(f"""and.b32 %r13, %r1, 7; mul.lo.u32 %r13, %r13, 10; shr.u32 %r14, %r1, 3;
            mad.lo.u32 %r13, %r14, 100, %r13; add.s32 %r13, %r13, {column}; cvt.u16.u32 %rs1, %r13;
            st.shared.u16 [%r10+{2 * column}], %rs1;""" for column in range(8))
        body = f"""mov.u32 %r10, tile; shl.b32 %r11, %r1, 4; add.s32 %r10, %r10, %r11; {fill} bar.sync 0;
            ldmatrix.sync.aligned.m8n8.x4{flags}.shared.b16 {{%r20,%r21,%r22,%r23}}, [%r10];
            ld.param.u64 %rd3, [out]; mul.wide.u32 %rd4, %r1, 16; add.s64 %rd4, %rd4, %rd3;
            st.global.v4.u32 [%rd4], {{%r20,%r21,%r22,%r23}};"""
        memory = GlobalMemory(1 << 16)
        at = memory.put(np.zeros((32, 4), np.uint32))
        run(kernel(body, shared=SHARED), memory, [at], Grid((1, 1, 1), (32, 1, 1)))
        return memory.get(at, np.uint16, (32, 4, 2))

    def test_ldmatrix(self):
        got, turned = self.ldmatrix(""), self.ldmatrix(".trans")
        for lane in range(32):
            g, q = divmod(lane, 4)
            for i in range(4):
                self.assertEqual(list(got[lane, i]), [100 * i + 10 * g + 2 * q, 100 * i + 10 * g + 2 * q + 1])
                self.assertEqual(
                    list(turned[lane, i]), [100 * i + 10 * (2 * q) + g, 100 * i + 10 * (2 * q + 1) + g]
                )

    def test_ldmatrix_rows_are_aligned(self):
        with self.assertRaisesRegex(Fault, "no multiple of 16"):
            result(
                STORE
                + "mov.u32 %r15, tile; add.s32 %r15, %r15, 4;"
                + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r20}, [%r15];",
                shared=SHARED,
            )


if __name__ == "__main__":
    unittest.main()

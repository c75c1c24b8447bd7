"""Loops whose iterations are apart for reasons that are not plain: parts of open sizes, remainders, promises."""

import re
import unittest

import numpy as np

import tenon
from tenon import te

SIZES = (0, 1, 3, 4, 5, 31, 32, 33, 67)


def plus_one(size):
    a = te.placeholder((size,), name="A")
    c = te.compute((size,), lambda i: a[i] + 1, name="C")
    return te.create_schedule(c.op), a, c


class Splits(unittest.TestCase):
    def check(self, s, args, sizes=SIZES):
        f = tenon.build(s, args)
        for n in sizes:
            x = np.arange(n, dtype="float32")
            np.testing.assert_array_equal(f(x).numpy(), x + 1)

    def test_parts_of_an_open_size(self):
        s, a, c = plus_one(te.var("n"))
        outer, _ = s[c].split(c.op.axis[0], nparts=4)
        s[c].parallel(outer)
        self.check(s, [a, c])

    def test_parts_of_blocks_of_an_open_size(self):
        s, a, c = plus_one(te.var("n"))
        outer, _ = s[c].split(c.op.axis[0], factor=8)
        parts, _ = s[c].split(outer, nparts=4)
        s[c].parallel(parts)
        self.check(s, [a, c])

    def test_parts_of_an_open_size_on_a_grid(self):
        s, a, c = plus_one(te.var("n"))
        outer, inner = s[c].split(c.op.axis[0], nparts=64)
        s[c].bind(outer, te.thread_axis("blockIdx.x"))
        s[c].bind(inner, te.thread_axis("threadIdx.x"))
        self.assertIn("blockIdx.x", str(tenon.lower(s, [a, c])))

    def test_remainders_inside_each_other(self):
        for first, second in ((2, 5), (5, 2), (7, 4), (4, 3)):
            s, a, c = plus_one(33)
            outer, inner = s[c].split(c.op.axis[0], factor=first)
            s[c].split(inner, factor=second)
            s[c].parallel(outer)
            self.check(s, [a, c], (33,))

    def test_a_promise(self):
        s, a, c = plus_one(te.var("n"))
        s[c].assume_independent(c.op.axis[0])
        s[c].parallel(c.op.axis[0])
        self.assertIn('annotate("C.i", "assume_independent", "")', str(s.trace))
        self.check(s, [a, c])


class Scratch(unittest.TestCase):
    def transposed(self, factor, offset):
        a = te.placeholder((128, 128), name="A")
        c = te.compute((128, 128), lambda i, j: a[j, i], name="C")
        s = te.create_schedule(c.op)
        tile = s.cache_read(a, "shared", [c])
        by, bx, i, j = s[c].tile(*c.op.axis, 8, 8)
        for loop, axis in ((by, "blockIdx.y"), (bx, "blockIdx.x"), (i, "threadIdx.y"), (j, "threadIdx.x")):
            s[c].bind(loop, te.thread_axis(axis))
        s[tile].compute_at(s[c], bx)
        y, x = s[tile].op.axis
        s[tile].bind(y, te.thread_axis("threadIdx.y"))
        s[tile].bind(x, te.thread_axis("threadIdx.x"))
        s[tile].storage_align(y, factor, offset)
        return tenon.build(s, [a, c], "cuda -arch=null").get_source()

    def test_rows_of_a_tile_are_padded(self):
        for factor, offset, stride in ((32, 1, 33), (4, 1, 9), (16, 8, 8)):
            found = re.search(r"A_shared\[(\d+)\];", self.transposed(factor, offset))
            self.assertEqual(int(found[1]), 8 * stride)

    def test_tiles_of_tensor_cores(self):
        for n in (256, 1024):
            source = self.product(n).get_source()
            sizes = dict(re.findall(r"(\w)_shared\[(\d+)\];", source))
            self.assertEqual(sizes, {"A": str(64 * 24), "B": str(16 * 72)})
            self.assertEqual(source.count("__syncthreads"), 2)

    def product(self, n):
        a, b = (te.placeholder((n, n), "float16", name=name) for name in "AB")
        k = te.reduce_axis((0, n), name="k")
        term = lambda i, j: a[i, k].astype("float32") * b[k, j].astype("float32")
        c = te.compute((n, n), lambda i, j: te.sum(term(i, j), axis=k), name="C")
        s = te.create_schedule(c.op)
        sums = s.cache_write(c, "fragment")
        tiles = [s.cache_read(t, "shared", sums) for t in (a, b)]
        fragments = [s.cache_read(t, "fragment", sums) for t in tiles]
        by, bx, i, j = s[c].tile(*c.op.axis, 64, 64)
        s[c].bind(by, te.thread_axis("blockIdx.y"))
        s[c].bind(bx, te.thread_axis("blockIdx.x"))
        s[sums].compute_at(s[c], bx)
        io, i = s[sums].split(sums.op.axis[0], factor=16)
        jo, j = s[sums].split(sums.op.axis[1], factor=8)
        ko, kk = s[sums].split(sums.op.reduce_axis[0], factor=16)
        s[sums].reorder(ko, io, jo, i, j, kk)
        s[sums].tensorize(i, "ptx.mma.m16n8k16.f16")
        for part, operation in zip(fragments, ("ptx.ldmatrix.a.f16", "ptx.ldmatrix.b.trans.f16")):
            s[part].compute_at(s[sums], ko)
            _, _, i, j = s[part].tile(*part.op.axis, 16, 16)
            s[part].tensorize(i, operation)
        for tile in tiles:
            s[tile].compute_at(s[sums], ko)
            _, lane, part = s[tile].split(s[tile].fuse(*tile.op.axis), factors=[None, 32, 8])
            s[tile].bind(lane, te.thread_axis("threadIdx.x"))
            s[tile].tensorize(part, "ptx.cp.async.copy.f16")
            s[tile].storage_align(tile.op.axis[0], 16, 8)
        return tenon.build(s, [a, b, c], "cuda -arch=null")


if __name__ == "__main__":
    unittest.main()

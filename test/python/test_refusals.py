"""What a schedule refuses arrives as an exception that names the primitive, the block, the loop and the reason."""

import pathlib
import re
import unittest

from tenon import tir

TABLE = pathlib.Path(__file__).parents[2] / "src" / "schedule" / "primitives.def"
CHOICES = ["decide", "sample_categorical", "sample_perfect_tile"]

FUNCTION = """
func @f<n: 1..=64>(A: f32[8, 6], B: f32[6, 8], E: f32[n], out D: f32[8, 8], out F: f32[n]) {
  alloc C: f32[8, 8]
  for i in 0..8, j in 0..8, k in 0..6 {
    block C(vi: spatial = i, vj: spatial = j, vk: reduce = k) fp: contract {
      reads A[vi, vk], B[vk, vj]; writes C[vi, vj]
      init { C[vi, vj] = 0 }
      C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
    }
  }
  for x in 0..8, y in 0..8 {
    block D(vx: spatial = x, vy: spatial = y) {
      reads C[vx, vy]; writes D[vx, vy]
      D[vx, vy] = max(C[vx, vy], 0)
    }
  }
  for z in 0..n {
    block F(vz: spatial = z) {
      reads E[vz]; writes F[vz]
      F[vz] = E[vz]
    }
  }
}
"""

# Arguments; the block and the loop (or buffer) that the message names; what it says. None: there is none to name.
REFUSED = {
    "split": (("i", [-1, -1]), None, "i", "at most one factor may be -1, got 2"),
    "tile": ((["i", "j"], [2]), None, "i", "expected one factor per loop, got 1 for 2 loops"),
    "partition": (("i", [9]), None, "i", "points must rise strictly and lie inside the loop"),
    "partition_equal": (("i", 9), None, "i", "the extent 8 is less than the number of parts"),
    "fuse": (("j", "i"), None, "j", "expected the outermost loop first"),
    "reorder": (("x", "i"), None, "i", "loops i and x are not perfectly nested|loops x and i are not perfectly nested"),
    "parallel": (("k",), "C", "k", "loop k runs over its reduction"),
    "vectorize": (("k",), "C", "k", "loop k runs over its reduction"),
    "unroll": (("z",), None, "z", "expected a constant extent, got n"),
    "set_store_predicate": (("C", "threadIdx.x == 1"), "C", None, "there is no thread for which"),
    "bind": (("k", "blockIdx.x"), "C", "k", "loop k runs over its reduction"),
    "compute_at": (("C", "i"), "C", "i", "its consumer D is not under loop i"),
    "reverse_compute_at": (("D", "k"), "D", "k", "loop k has not finished C: it runs over the reduction of block C"),
    "compute_root": (("nothing",), None, "nothing", 'no block is named "nothing"'),
    "compute_inline": (("C",), "C", None, "it has reduce or ordered variables"),
    "reverse_compute_inline": (("D",), "D", None, "its producer C is a reduction"),
    "cache_read": (("D", "A", "local"), "D", "A", "it does not read A"),
    "cache_write": (("D", "C", "local"), "D", "C", "it does not write C"),
    "set_scope": (("A", "local"), None, "A", "buffer A is not allocated in the function"),
    "decompose_reduction": (("C", "x"), "C", "x", "it is not under loop x"),
    "rfactor": (("i", 0), "C", "i", "loop i does not run over its reduction"),
    "transform_layout": (("C", "(r, c) -> (r)"), None, "C", "the layout is not known to give every element of C a place"),
    "storage_align": (("A", 0, 4, 1), None, "A", "buffer A is not allocated in the function"),
    "transform_block_layout": (("D", "(r) -> (r)"), "D", None, "it has 2 variables, the map 1"),
    "pad_einsum": (("C", [0, 1, 1]), "C", None, "expected positive multiples, got 0"),
    "prefetch": (("D", "C", "x", 1), "D", "x", "block C writes C"),
    "spread_prefetch": (("D", "C", "x", 1, "y"), "D", "x", "block C writes C"),
    "software_pipeline": (("i", [0, 1], [0, 1]), None, "i", "the body of loop i is one statement"),
    "double_buffer": (("C",), "C", None, "it is not one of several statements in the body of a loop"),
    "rolling_buffer": (("C", "x"), "C", "x", "it is not under loop x"),
    "blockize": (("nothing",), None, "nothing", 'no loop is named "nothing"'),
    "tensorize": (("i", "nothing"), None, "i", 'no intrinsic is named "nothing"'),
    "specialize": (("n == 65",), None, None, "it holds for no sizes of the function"),
    "outline": (("nothing", "f"), None, "nothing", 'no .* is named "nothing"'),
    "annotate": (("i", "", 1), None, "i", "expected the name of an attribute"),
    "decide": (("rows", [2, 4], 3), None, "rows", "the guess is not in the domain"),
    "sample_categorical": (("rows", [2, 4], [1.0]), None, "rows", "expected one probability per candidate"),
    "sample_perfect_tile": (("tile", "z", 2), None, "z", "expected a constant extent of at least 1"),
}


class Refusals(unittest.TestCase):
    def test_each_primitive_is_here(self):
        names = re.findall(r'^TN_PRIMITIVE\(\w+, "(\w+)"', TABLE.read_text(), re.M)
        self.assertEqual(sorted(REFUSED), sorted(names + CHOICES))

    def test_the_exception_names_all(self):
        s = tir.Schedule(FUNCTION)
        before = str(s)
        for primitive, (args, block, name, reason) in REFUSED.items():
            with self.subTest(primitive=primitive):
                with self.assertRaises(ValueError) as caught:
                    getattr(s, primitive)(*args)
                message = str(caught.exception)
                self.assertRegex(message, "^(error: )?" + primitive + r"\(")
                of = f" of block {block}: " if block else "): "
                self.assertIn(of, message)
                self.assertRegex(message.partition(of)[2], reason)
                if name:
                    self.assertIn(name, message)
        self.assertEqual(str(s), before)
        self.assertEqual(len(s.trace), 0)


if __name__ == "__main__":
    unittest.main()

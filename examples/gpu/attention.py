"""Attention on a GPU's tensor cores: O = softmax(Q K^T / sqrt(d)) V for each head, in fp16 (sm_80 and later).

    attention.py [--heads 64] [--length 4096] [--target "cuda -arch=sm_90"] [--save attention.so] [--show]

A warp keeps 32 rows of Q in its registers and goes through K and V 64 rows at a time. The scores of a step are one product's
result; their softmax is taken where they lie, and is the left factor of the next product. Each lane has its part of a row:
it reduces that, and the four lanes that share the row exchange what they got. What came before is scaled when a row's
maximum grows (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention",
2022). Tiles of K and V are copied to shared memory while those before are used.

The kernel is loop IR: `fragment` buffers are indexed by rows and columns, and what a lane holds of them follows from the
operations that they are passed to.
"""

import math

import numpy as np

import tenon
from measure import arguments, build, check, seconds
from tenon import tir

WIDTH, WARPS, ROWS, STEP, STAGES = 64, 4, 32, 64, 3  # of a head; of a block; of a warp; of K and V; of their tiles

KERNEL = """
func @attention(Q: f16[{heads}, {length}, {d}] align 16, K: f16[{heads}, {length}, {d}] align 16,
                V: f16[{heads}, {length}, {d}] align 16, out O: f16[{heads}, {length}, {d}]) target "{target}" {{exported: true}} {{
  for head in 0..{heads} thread blockIdx.y {{
    for block in 0..{length} / {block} thread blockIdx.x {{
      for warp in 0..{warps} thread threadIdx.y {{
        alloc rows: f16[{block}, {d}] layout (i, k) -> (i size _, k size {pitch}) in shared align 16
        alloc keys: f16[{stages}, {step}, {d}] layout (s, i, k) -> (s size _, i size _, k size {pitch}) in shared align 16
        alloc values: f16[{stages}, {step}, {d}] layout (s, i, k) -> (s size _, i size _, k size {pitch}) in shared align 16
        alloc query: f16[{own}, {d}] in fragment
        alloc score: f32[{own}, {step}] in fragment
        alloc weight: f16[{own}, {step}] in fragment
        alloc sum: f32[{own}, {d}] in fragment
        alloc most: f32[{own}, 4] in fragment
        alloc mine: f32[{own}, 4] in fragment
        alloc next: f32[{own}, 4] in fragment
        alloc total: f32[{own}, 4] in fragment
        alloc whole: f32[{own}, 4] in fragment
        alloc scale: f32[{own}, 4] in fragment
        for cq in 0..{block} * {d} / 8 / {threads} unrolled {{
          for cqy in 0..{warps} thread threadIdx.y {{
            for cqx in 0..32 thread threadIdx.x {{
              call @ptx.cp.async.copy.f16(
                  Q[head, block * {block} + (cq * {threads} + cqy * 32 + cqx) / {chunks}, (cq * {threads} + cqy * 32 + cqx) % {chunks} * 8..+8],
                  rows[(cq * {threads} + cqy * 32 + cqx) / {chunks}, (cq * {threads} + cqy * 32 + cqx) % {chunks} * 8..+8])
            }}
          }}
        }}
        for qm in 0..{own} / 16 unrolled {{
          for qk in 0..{d} / 16 unrolled {{
            call @ptx.ldmatrix.a.f16(rows[warp * {own} + qm * 16..+16, qk * 16..+16], query[qm * 16..+16, qk * 16..+16]; {pitch})
          }}
        }}
        for i0 in 0..{own}, j0 in 0..{d} {{ sum[i0, j0] = 0 }}
        for i1 in 0..{own}, q1 in 0..4 {{
          most[i1, q1] = -1e30f32
          total[i1, q1] = 0
        }}
        for t in 0..{length} / {step} + {ahead} {{
          if t < {length} / {step} {{
            for ck in 0..{step} * {d} / 8 / {threads} unrolled {{
              for cky in 0..{warps} thread threadIdx.y {{
                for ckx in 0..32 thread threadIdx.x {{
                  call @ptx.cp.async.copy.f16(
                      K[head, t * {step} + (ck * {threads} + cky * 32 + ckx) / {chunks}, (ck * {threads} + cky * 32 + ckx) % {chunks} * 8..+8],
                      keys[t % {stages}, (ck * {threads} + cky * 32 + ckx) / {chunks}, (ck * {threads} + cky * 32 + ckx) % {chunks} * 8..+8])
                }}
              }}
            }}
            for cv in 0..{step} * {d} / 8 / {threads} unrolled {{
              for cvy in 0..{warps} thread threadIdx.y {{
                for cvx in 0..32 thread threadIdx.x {{
                  call @ptx.cp.async.copy.f16(
                      V[head, t * {step} + (cv * {threads} + cvy * 32 + cvx) / {chunks}, (cv * {threads} + cvy * 32 + cvx) % {chunks} * 8..+8],
                      values[t % {stages}, (cv * {threads} + cvy * 32 + cvx) / {chunks}, (cv * {threads} + cvy * 32 + cvx) % {chunks} * 8..+8])
                }}
              }}
            }}
          }}
          if t >= {ahead} {{
            alloc right: f16[16, {step}] in fragment
            alloc lower: f16[16, {d}] in fragment
            for i2 in 0..{own}, j2 in 0..{step} {{ score[i2, j2] = 0 }}
            for ks in 0..{d} / 16 unrolled {{
              for kn in 0..{step} / 16 unrolled {{
                call @ptx.ldmatrix.b.f16(keys[(t - {ahead}) % {stages}, kn * 16..+16, ks * 16..+16], right[0..16, kn * 16..+16]; {pitch})
              }}
              for km in 0..{own} / 16 unrolled {{
                for kj in 0..{step} / 8 unrolled {{
                  call @ptx.mma.m16n8k16.f16(query[km * 16..+16, ks * 16..+16], right[0..16, kj * 8..+8], score[km * 16..+16, kj * 8..+8])
                }}
              }}
            }}
            for i3 in 0..{own}, q3 in 0..4 {{ mine[i3, q3] = most[i3, q3] }}
            for i4 in 0..{own}, j4 in 0..{step} {{ mine[i4, j4 / 2 % 4] = max(mine[i4, j4 / 2 % 4], score[i4, j4]) }}
            for rm in 0..{own} / 16 unrolled {{
              call @ptx.quad.max.f32(mine[rm * 16..+16, 0..4], next[rm * 16..+16, 0..4])
            }}
            for i5 in 0..{own}, q5 in 0..4 {{
              scale[i5, q5] = exp2((most[i5, q5] - next[i5, q5]) * {factor}f32)
              most[i5, q5] = next[i5, q5]
              total[i5, q5] = total[i5, q5] * scale[i5, q5]
            }}
            for i6 in 0..{own}, j6 in 0..{step} {{
              score[i6, j6] = exp2((score[i6, j6] - most[i6, j6 / 2 % 4]) * {factor}f32)
              total[i6, j6 / 2 % 4] = total[i6, j6 / 2 % 4] + score[i6, j6]
              weight[i6, j6] = f16(score[i6, j6])
            }}
            for i7 in 0..{own}, j7 in 0..{d} {{ sum[i7, j7] = sum[i7, j7] * scale[i7, j7 / 2 % 4] }}
            for vs in 0..{step} / 16 unrolled {{
              for vn in 0..{d} / 16 unrolled {{
                call @ptx.ldmatrix.b.trans.f16(values[(t - {ahead}) % {stages}, vs * 16..+16, vn * 16..+16], lower[0..16, vn * 16..+16]; {pitch})
              }}
              for vm in 0..{own} / 16 unrolled {{
                for vj in 0..{d} / 8 unrolled {{
                  call @ptx.mma.m16n8k16.f16(weight[vm * 16..+16, vs * 16..+16], lower[0..16, vj * 8..+8], sum[vm * 16..+16, vj * 8..+8])
                }}
              }}
            }}
          }}
        }}
        for lm in 0..{own} / 16 unrolled {{ call @ptx.quad.add.f32(total[lm * 16..+16, 0..4], whole[lm * 16..+16, 0..4]) }}
        for i8 in 0..{own} {{
          for j8 in 0..{d} vectorized {{
            O[head, block * {block} + warp * {own} + i8, j8] = f16(sum[i8, j8] / whole[i8, j8 / 2 % 4])
          }}
        }}
      }}
    }}
  }}
}}
"""
OPERATIONS = ("cp.async.copy.f16", "ldmatrix.a.f16", "ldmatrix.b.f16", "ldmatrix.b.trans.f16", "mma.m16n8k16.f16",
              "quad.max.f32", "quad.add.f32")


def attention(heads, length, target, width=WIDTH, warps=WARPS, rows=ROWS, step=STEP, stages=STAGES):
    """The kernel, with the meaning of the operations that it calls."""
    text = KERNEL.format(heads=heads, length=length, target=target, d=width, warps=warps, threads=32 * warps, own=rows,
                         block=warps * rows, step=step, stages=stages, ahead=stages - 1, pitch=width + 8, chunks=width // 8,
                         factor=math.log2(math.e) / math.sqrt(width))
    for name in OPERATIONS:
        text += str(tir.TensorIntrin.get("ptx." + name).desc)
    return tenon.IrModule.parse(text)


def reference(q, k, v):
    score = q.astype("float64") @ k.astype("float64").transpose(0, 2, 1) / math.sqrt(q.shape[-1])
    weight = np.exp(score - score.max(-1, keepdims=True))
    return weight / weight.sum(-1, keepdims=True) @ v.astype("float64")


def main():
    options = arguments(__doc__, heads=64, length=4096)
    shape = (options.heads, options.length, WIDTH)
    module, device = build(attention(*shape[:2], options.target), None, "attention", options)
    if device is None:
        return
    values = [np.random.randn(*shape).astype("float16") for _ in range(3)]
    arrays = [tenon.nd.array(v, device) for v in values] + [tenon.nd.empty(shape, "float16", device)]
    module["attention"](*arrays)
    check(arrays[3].numpy()[:2].astype("float64"), reference(*(v[:2] for v in values)), 2e-3)
    work = 4 * options.heads * options.length**2 * WIDTH
    rate = work / seconds(module, "attention", device, arrays, options.repeat)
    print(f"attention of {options.heads} heads, {options.length} rows: {rate / 1e12:.1f} TFLOP/s")


if __name__ == "__main__":
    main()

"""make_tiles.py FOLDER: what tiles.c needs to run on a machine with AMX, itself included. Needs the package (PYTHONPATH)
and a C compiler; FOLDER/tiles FOLDER then runs anywhere where glibc is."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples/tensor_expressions"))

import low_precision  # noqa: E402
import tenon  # noqa: E402

AMX = "llvm -mcpu=x86-64-v4 -mattr=+amx-int8,+amx-bf16,+avx512vnni,+avx512bf16"
PLAIN = "llvm -mcpu=x86-64-v3"
SIZE = 1024

# Rows of A, S and C are longer than a tile's; the sums start from S.
PRODUCT = """
func @{name}(A: {a}[16, {row}], B: {b}[16, 16, {group}], S: {c}[16, 20], out C: {c}[16, 24]) {{exported: true}} {{
  for i in 0..16, j in 0..24 {{
    block C(vi: spatial = i, vj: spatial = j) {{
      writes C[vi, vj]
      C[vi, vj] = 1{c}
    }}
  }}
  alloc T: {c}[16, 16] in tile
  alloc X: {a}[16, {columns}] in tile
  alloc Y: {b}[16, 16, {group}] in tile
  call @x86.tileloadd.{c}(S[0..16, 2..18], T; 20)
  call @x86.tileloadd.{a}(A[0..16, 3..+{columns}], X; {row})
  call @x86.tileloadd.{b}.groups(B, Y; {columns})
  call @x86.{name}(X, Y, T)
  call @x86.tilestored.{c}(T, C[0..16, 5..21]; 24)
}}
"""


def products():
    """One module of all three, with the meanings that they call."""
    text = ""
    for name, a, b, c, group in (
        ("tdpbusd", "u8", "i8", "i32", 4), ("tdpbssd", "i8", "i8", "i32", 4), ("tdpbf16ps", "bf16", "bf16", "f32", 2)
    ):  # fmt: skip
        text += PRODUCT.format(name=name, a=a, b=b, c=c, group=group, columns=16 * group, row=16 * group + 8)
    return text + "".join(str(tenon.tir.TensorIntrin.get(row).desc) for row in sorted(set(words(text, "call @"))))


def words(text, before):
    return (part.split("(")[0] for part in text.split(before)[1:])


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    objects = {"amx": [], "plain": []}
    for kind, target in (("amx", AMX), ("plain", PLAIN)):
        objects[kind].append(folder / f"{kind}_products.o")
        tenon.build(tenon.IrModule.parse(products()), target=target).save(objects[kind][-1])
    for step in low_precision.STEPS:
        for tiles, name in ((True, "tiles"), (False, {"int8": "vnni", "bf16": "dot"}[step.__name__])):
            function = f"{step.__name__}_{name}"
            objects["amx"].append(folder / f"{function}.o")
            tenon.build(*step(SIZE, tiles), target=AMX, name=function).save(objects["amx"][-1])
    for kind, files in objects.items():
        tenon.contrib.cc.create_shared(folder / f"{kind}.so", files)
        for file in files:
            file.unlink()
    source = ROOT / "test/remote/tiles.c"
    subprocess.run(["cc", "-std=gnu11", "-O1", "-I", ROOT / "include", "-o", folder / "tiles", source, "-ldl"], check=True)
    print(f"{folder / 'tiles'} {folder}")


if __name__ == "__main__":
    main()

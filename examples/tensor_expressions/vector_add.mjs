// node vector_add.mjs add.wasm: calls the module that this writes:
//   vector_add --target "llvm -mtriple=wasm32-unknown-unknown" add.wasm
import { readFile } from "node:fs/promises";

import { load, tensor } from "../wasm/tenon.mjs";

const add = await load(await readFile(process.argv[2] ?? "add.wasm"));
const x = Float32Array.from({ length: 1000 }, (_, i) => i), y = new Float32Array(1000).fill(1);
const z = new Float32Array(1000);
add.call("add", tensor(x), tensor(y), tensor(z));    // into z
const w = add.call("add", tensor(x), tensor(y));     // or a new tensor
for (let i = 0; i < 1000; ++i) {
  if (z[i] !== i + 1 || w.data[i] !== i + 1) throw new Error(`wrong at ${i}`);
}
try {
  add.call("add", tensor(x), tensor(y.subarray(1)));
  throw new Error("the sizes differ and nobody says so");
} catch (error) {
  if (!error.message.includes("Shape mismatch: n=1000 (from A.shape[0]) but B.shape[0]=999")) throw error;
}
try {
  tensor(new Float32Array(3), [2, 4]);
  throw new Error("a shape is no array's and nobody says so");
} catch (error) {
  if (!error.message.includes("shape [2,4] has 8 elements but the array has 3")) throw error;
}
console.log("the results agree");

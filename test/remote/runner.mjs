// node runner.mjs MODULE: what runner.c does, for modules of WebAssembly: the same requests and answers. Before and behind
// a tensor's bytes lie bytes that are looked at after the call.
import fs from "node:fs";

import { load, tensor } from "../../examples/wasm/tenon.mjs";

const GUARD = 64;
const ARRAYS = { "2.32": "float32", "2.64": "float64", "0.32": "int32", "0.64": "int64", "1.8": "uint8", "6.8": "bool" };
const VIEWS = { float32: Float32Array, float64: Float64Array, int32: Int32Array, int64: BigInt64Array, uint8: Uint8Array,
                bool: Uint8Array };

// The bytes asked for, or null where the input has ended before them.
function read(bytes) {
  const out = Buffer.alloc(bytes);
  for (let done = 0; done < bytes;) {
    let n = 0;
    try {
      n = fs.readSync(0, out, done, bytes - done, null);
    } catch (error) {
      if (error.code === "EAGAIN") continue;
      if (error.code !== "EOF") throw error;
    }
    if (n === 0) return null;
    done += n;
  }
  return out;
}
const u32 = () => read(4).readUInt32LE();
const i64 = () => read(8).readBigInt64LE();

function write(buffer) {
  for (let done = 0; done < buffer.length;) done += fs.writeSync(1, buffer, done);
}

function answer(status, text, arrays) {
  const head = Buffer.alloc(4);
  head.writeInt32LE(status);
  write(head);
  if (status === 0) return arrays.forEach(write);
  const bytes = Buffer.from(text);
  head.writeUInt32LE(bytes.length);
  write(head);
  write(bytes);
}

function callPlain({ exports }, name, tensors, ints) {
  const places = tensors.map(({ bytes }) => exports.tn_alloc(bytes.length + 2 * GUARD) + GUARD);
  const memory = () => new Uint8Array(exports.memory.buffer);
  tensors.forEach(({ bytes }, i) => {
    memory().fill(0xff, places[i] - GUARD, places[i] + bytes.length + GUARD);
    memory().set(bytes, places[i]);
  });
  exports[name](...places, ...ints, 0, 1, 0);
  let fault = "";
  const untouched = (from, to) => memory().subarray(from, to).every((byte) => byte === 0xff);
  tensors.forEach(({ bytes }, i) => {
    const end = places[i] + bytes.length;
    if (!untouched(places[i] - GUARD, places[i]) || !untouched(end, end + GUARD)) fault = "written beside a tensor";
    bytes.set(memory().subarray(places[i], end));
    exports.tn_free(places[i] - GUARD);
  });
  return fault;
}

function callPacked(module, name, tensors) {
  const given = tensors.map(({ bytes, shape, dtype }) => {
    const key = ARRAYS[`${dtype & 0xff}.${(dtype >> 8) & 0xff}`];
    return tensor(new VIEWS[key](bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)), shape, key);
  });
  try {
    module.call(name.replace("__tvm_ffi_", ""), ...given);
  } catch (error) {
    return error.message;
  }
  given.forEach(({ data }, i) => tensors[i].bytes.set(new Uint8Array(data.buffer)));
  return "";
}

const module = await load(fs.readFileSync(process.argv[2]));
for (let head = read(4); head; head = read(4)) {
  const name = read(u32()).toString(), count = u32(), numInts = u32();
  const tensors = Array.from({ length: count }, () => {
    const dtype = u32(), ndim = u32(), shape = Array.from({ length: ndim }, () => Number(i64()));
    return { dtype, shape, bytes: read(Number(i64())) };
  });
  const ints = Array.from({ length: numInts }, i64);
  const packed = head.readUInt32LE() === 1;
  const fault = packed ? callPacked(module, name, tensors) : callPlain(module, name, tensors, ints);
  answer(fault ? -1 : 0, fault, tensors.map(({ bytes }) => bytes));
}

// Calls modules that Tenon compiles for WebAssembly, in node and in browsers:
//
//   import { load } from "./tenon.mjs";
//   const add = await load(bytes);                        // what `tenon compile … -o add.wasm` wrote
//   const c = add.call("main", tensor(a), tensor(b));     // returns the outputs, …
//   add.call("main", tensor(a), tensor(b), tensor(c));    // … or writes into arrays that are given
//   axpy.call("main", 2.5, tensor(x), tensor(y));         // numbers and booleans are arguments, too
//
// Every function of a module is `f(self, args, count, result)`, the packed convention of
// include/tenon/ffi_types.h with pointers of 32 bits: an argument is 16 bytes, of which the first
// say that the last are the address of a tensor's description. The arguments are copied into the
// module's memory and the outputs out of it.

const TYPES = {
  float32: [2, 32, Float32Array], float64: [2, 64, Float64Array], int8: [0, 8, Int8Array], int16: [0, 16, Int16Array],
  int32: [0, 32, Int32Array], int64: [0, 64, BigInt64Array], uint8: [1, 8, Uint8Array], uint16: [1, 16, Uint16Array],
  uint32: [1, 32, Uint32Array], uint64: [1, 64, BigUint64Array], bool: [6, 8, Uint8Array], float16: [2, 16, Uint16Array],
  bfloat16: [4, 16, Uint16Array],
};
const INT = 1, BOOL = 2, FLOAT = 3, TENSOR_POINTER = 7, TENSOR_OBJECT = 70, ARRAY_OBJECT = 71;
const ANY_BYTES = 16, TENSOR_BYTES = 40, HEADER_BYTES = 24;  // of an object, before what it holds

/** A tensor over a typed array. The dtype is the array's unless it is named (float16, bfloat16, bool). */
export function tensor(data, shape = [data.length], dtype = undefined) {
  dtype ??= Object.keys(TYPES).find((name) => TYPES[name][2] === data.constructor);
  if (!dtype) throw new TypeError(`no dtype for a ${data.constructor.name}`);
  const size = shape.reduce((a, b) => a * b, 1);
  if (size !== data.length) throw new RangeError(`shape [${shape}] has ${size} elements but the array has ${data.length}`);
  return { data, shape, dtype };
}

/**
 * Instantiates a module. `source`: its bytes, or a Response of fetch(). `imports`: functions by name,
 * for code that calls any of its own (te's call_extern).
 */
export async function load(source, imports = {}) {
  const bytes = typeof Response !== "undefined" && source instanceof Response ? await source.arrayBuffer() : source;
  const { instance } = await WebAssembly.instantiate(bytes, { env: imports });
  return new Module(instance.exports);
}

export class Module {
  constructor(exports) {
    this.exports = exports;
    const view = this.#view(), query = exports.__tenon_query_v5();
    const text = view.getUint32(query + 8, true), size = view.getUint32(view.getUint32(query + 12, true), true);
    /** What the module says of itself: functions, their inputs and outputs, target (kernel_abi.h). */
    this.info = JSON.parse(new TextDecoder().decode(new Uint8Array(exports.memory.buffer, text, size)));
  }

  /** The functions' names. */
  get functions() {
    return this.info.functions.map((f) => f.name);
  }

  /**
   * Calls a function with its inputs (tensors and numbers), which returns its outputs (one tensor, or an array of them),
   * or with its inputs and then its outputs, which writes into those. What it refuses is an Error with its message.
   */
  call(name, ...values) {
    const f = this.exports[`__tvm_ffi_${name}`];
    if (!f) throw new Error(`there is no function '${name}'; the functions are ${this.functions.join(", ")}`);
    const taken = [];
    const alloc = (bytes) => {
      const at = this.exports.tn_alloc(bytes);
      if (at === 0) throw new RangeError(`the module has no memory for ${bytes} bytes`);
      taken.push(at);
      return at;
    };
    try {
      const args = alloc((values.length + 1) * ANY_BYTES);
      const places = values.map((v, i) => this.#put(v, args + i * ANY_BYTES, alloc));
      const result = args + values.length * ANY_BYTES;
      new Uint8Array(this.exports.memory.buffer, result, ANY_BYTES).fill(0);
      if (f(0, args, values.length, result) !== 0) throw new Error(this.#lastError());
      // Memory may have grown and moved: views are made anew.
      values.forEach((v, i) => places[i] !== null && v.data.set(this.#array(places[i], v.dtype, v.data.length)));
      return this.#take(result);
    } finally {
      taken.forEach((at) => this.exports.tn_free(at));
    }
  }

  #view() {
    return new DataView(this.exports.memory.buffer);
  }

  #array(at, dtype, length) {
    return new TYPES[dtype][2](this.exports.memory.buffer, at, length);
  }

  // Writes an argument; a tensor is copied into the module and described there. Where its elements are, null of a number.
  #put(value, any, alloc) {
    if (typeof value !== "object") return this.#putNumber(value, any);
    const { data, shape, dtype } = value;
    const [code, bits] = TYPES[dtype];
    const elements = alloc(data.byteLength), dims = alloc(shape.length * 8), description = alloc(TENSOR_BYTES);
    this.#array(elements, dtype, data.length).set(data);
    const view = this.#view();
    shape.forEach((dim, i) => view.setBigInt64(dims + i * 8, BigInt(dim), true));
    const fields = [elements, 1, 0, shape.length, code | (bits << 8) | (1 << 16), dims, 0, 0, 0, 0];
    fields.forEach((value, i) => view.setUint32(description + i * 4, value, true));
    [TENSOR_POINTER, 0, description, 0].forEach((value, i) => view.setUint32(any + i * 4, value, true));
    return elements;
  }

  #putNumber(value, any) {
    const view = this.#view();
    const kind = typeof value === "boolean" ? BOOL : typeof value === "bigint" || Number.isInteger(value) ? INT : FLOAT;
    if (kind === FLOAT && typeof value !== "number") throw new TypeError(`a ${typeof value} is no tensor and no number`);
    view.setBigInt64(any, BigInt(kind), true);
    if (kind === FLOAT) view.setFloat64(any + 8, value, true);
    else view.setBigInt64(any + 8, BigInt(value), true);
    return null;
  }

  // What a result holds, copied out; the module's own is let go.
  #take(any) {
    const view = this.#view(), kind = view.getInt32(any, true), object = view.getUint32(any + 8, true);
    let value;
    if (kind === TENSOR_OBJECT) value = this.#get(object + HEADER_BYTES);
    if (kind === ARRAY_OBJECT) {
      const items = view.getUint32(object + HEADER_BYTES, true), count = view.getUint32(object + HEADER_BYTES + 8, true);
      value = Array.from({ length: count }, (_, i) =>
        this.#get(view.getUint32(items + i * ANY_BYTES + 8, true) + HEADER_BYTES));
    }
    if (value !== undefined) this.exports.tn_release(any);
    return value;
  }

  #get(description) {
    const view = this.#view();
    const code = view.getUint8(description + 16), bits = view.getUint8(description + 17);
    const dtype = Object.keys(TYPES).find((name) => TYPES[name][0] === code && TYPES[name][1] === bits);
    const dims = view.getUint32(description + 20, true);
    const shape = Array.from({ length: view.getInt32(description + 12, true) }, (_, i) =>
      Number(view.getBigInt64(dims + i * 8, true)));
    const length = shape.reduce((a, b) => a * b, 1);
    return { data: this.#array(view.getUint32(description, true), dtype, length).slice(), shape, dtype };
  }

  #lastError() {
    const bytes = new Uint8Array(this.exports.memory.buffer, this.exports.tn_last_error(0));
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  }
}

// What a chain of small launches costs, apart from the memory that it reads: one decoding step of a
// model of 24 layers as mamba-130m has them, written by hand in several shapes. docs/gpu.md tells
// what they take.
//
//   nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a bench/gpu_chain.cu -o chain &&
//   ./chain
//
// A layer is four products and sums behind one another, each needing all of what the one before it
// made: 768 -> 3072 with the norm of its row, 1536 -> 80, the state's step with 48 -> 1536, and
// 1536 -> 768; 50,280 rows of 768 come last. 257 MB of weights in 16 bits are read once. Every
// shape computes the same numbers, which are compared.
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

constexpr int kLayers = 24, kWide = 3072, kInner = 1536, kRank = 48, kFactors = 80, kStates = 16,
              kModel = 768, kWords = 50280;
constexpr unsigned kAll = 0xffffffffu;

#define CHECK(call)                                     \
  do {                                                  \
    const cudaError_t e = (call);                       \
    if (e != cudaSuccess) {                             \
      printf("%s: %s\n", #call, cudaGetErrorString(e)); \
      exit(1);                                          \
    }                                                   \
  } while (0)

// When a kernel lets the next launch begin: when its blocks have ended, or before anything else.
enum class Begin { kLast, kFirst };

// What a later launch reads, which a launch may ask for: into the second-level cache, each block
// its part.
struct Later {
  const char* at;
  unsigned bytes;
};
__device__ void Prefetch(Later later) {
  if (threadIdx.x != 0 || threadIdx.y != 0 || !later.at) return;
  const unsigned part = (later.bytes / gridDim.x + 127) / 128 * 128, from = blockIdx.x * part;
  for (unsigned at = from; at < min(later.bytes, from + part); at += 8192) {
    const unsigned size = min(8192u, min(later.bytes, from + part) - at) / 16 * 16;
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(later.at + at), "r"(size)
                 : "memory");
  }
}

__device__ void LetBegin() { asm volatile("griddepcontrol.launch_dependents;"); }
__device__ void Wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

__device__ float Dot(uint4 a, uint4 b, float sum) {
  const __half2 *x = reinterpret_cast<const __half2*>(&a),
                *y = reinterpret_cast<const __half2*>(&b);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 u = __half22float2(x[i]), v = __half22float2(y[i]);
    sum = fmaf(u.x, v.x, fmaf(u.y, v.y, sum));
  }
  return sum;
}

template <int kLanes>
__device__ float SumOf(float v) {
#pragma unroll
  for (int d = kLanes / 2; d > 0; d /= 2) v += __shfl_xor_sync(kAll, v, d);
  return v;
}

__device__ float Load(const __half* p) { return __half2float(*p); }

// y = w x (+ before), x normalised first if kNorm; `kRows` rows for each warp, whose weights lie in
// its registers before it waits. Nothing but shuffles between the wait and the store.
template <int kK, int kRows, bool kNorm, Begin kBegin>
__global__ void WarpRows(const __half* x, const __half* w, const __half* before, __half* y, int n,
                         Later later) {
  constexpr int kVectors = kK / 256;
  const int lane = threadIdx.x % 32, row = (blockIdx.x * blockDim.x + threadIdx.x) / 32 * kRows;
  if (kBegin == Begin::kFirst) LetBegin();
  uint4 a[kRows][kVectors], b[kVectors];
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      a[r][v] = row + r < n
                    ? reinterpret_cast<const uint4*>(w)[size_t(row + r) * (kK / 8) + v * 32 + lane]
                    : uint4();
  Prefetch(later);
  Wait();
  if (row >= n) return;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) b[v] = reinterpret_cast<const uint4*>(x)[v * 32 + lane];
  float scale = 1, added = 0, own[kRows];
  if (before && lane < kRows && row + lane < n) added = Load(before + row + lane);
  if (kNorm) {
    float squares = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) squares = Dot(b[v], b[v], squares);
    scale = rsqrtf(SumOf<32>(squares) / kK + 1e-5f);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    own[r] = 0;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) own[r] = Dot(a[r][v], b[v], own[r]);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) own[r] = SumOf<32>(own[r]);
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    if (lane == r && row + r < n) y[row + r] = __float2half(own[r] * scale + added);
}

// The same by a block's threads: kThreads for a row along x, 8 elements each, whose parts meet in
// shared memory twice; the norm's sum too. threadIdx.y has rows of its own.
template <int kThreads, int kParts>
__device__ float BlockSum(float part, float* parts) {
  parts[threadIdx.x] = part;
  __syncthreads();
  if (threadIdx.x < kParts) {
    float s = parts[threadIdx.x];
#pragma unroll
    for (int i = 1; i < kThreads / kParts; ++i) s += parts[threadIdx.x + i * kParts];
    parts[threadIdx.x] = s;
  }
  __syncthreads();
  float s = 0;
#pragma unroll
  for (int i = 0; i < kParts; ++i) s += parts[i];
  return s;
}

template <int kK, int kThreads, int kRows, bool kNorm, Begin kBegin>
__global__ void BlockRows(const __half* x, const __half* w, const __half* before, __half* y,
                          int n) {
  __shared__ float parts[2][kRows + 1][kThreads];
  const int row = (blockIdx.x * blockDim.y + threadIdx.y) * kRows;
  const bool has = threadIdx.x < kK / 8;
  if (kBegin == Begin::kFirst) LetBegin();
  uint4 a[kRows], b = {};
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    a[r] = has && row + r < n
               ? reinterpret_cast<const uint4*>(w)[size_t(row + r) * (kK / 8) + threadIdx.x]
               : uint4();
  Wait();
  if (has) b = reinterpret_cast<const uint4*>(x)[threadIdx.x];
  float scale = 1;
  if (kNorm)
    scale = rsqrtf(BlockSum<kThreads, 8>(Dot(b, b, 0), parts[threadIdx.y][kRows]) / kK + 1e-5f);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float s = BlockSum<kThreads, 16>(Dot(a[r], b, 0), parts[threadIdx.y][r]) * scale;
    if (threadIdx.x == 0 && row + r < n)
      y[row + r] = __float2half(s + (before ? Load(before + row + r) : 0));
  }
}

struct Layer {
  const __half *wide, *factors, *rank, *narrow;
  const float* decay;
  float* state;
};

// One channel's part of the state's step, by 16 lanes; `factor(i)` is what the product with 80 rows
// made.
template <class F>
__device__ void StepOf(const F& factor, const float (&w)[3], float decay, float state, float u,
                       float z, int lane, float* new_state, __half* y) {
  float dt = 0;
#pragma unroll
  for (int i = 0; i < 3; ++i) dt = fmaf(w[i], factor(i * 16 + lane), dt);
  dt = SumOf<16>(dt);
  dt = dt > 15 ? dt : log1pf(expf(dt));
  const float s = fmaf(expf(dt * decay), state, dt * u * factor(kRank + lane));
  *new_state = s;
  const float sum = SumOf<16>(s * factor(kRank + kStates + lane));
  if (lane == 0) *y = __float2half((sum + u) * (z / (1 + expf(-z))));
}

template <Begin kBegin>
__global__ void StateStep(const __half* xz, const __half* factors, Layer l, __half* y,
                          Later later) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, c = i / kStates, lane = i % kStates;
  if (kBegin == Begin::kFirst) LetBegin();
  float w[3];
#pragma unroll
  for (int j = 0; j < 3; ++j) w[j] = __half2float(l.rank[c * kRank + j * 16 + lane]);
  const float decay = l.decay[i];
  Prefetch(later);
  Wait();
  StepOf([&](int j) { return Load(factors + j); }, w, decay, __ldcg(l.state + i), Load(xz + c),
         Load(xz + kInner + c), lane, l.state + i, y + c);
}

// Both in one launch: each cluster of 8 blocks makes all 80 factors, which its blocks read in each
// other's memory.
template <Begin kBegin>
__global__ void __cluster_dims__(8, 1, 1)
    ClusterStep(const __half* xz, Layer l, __half* y, Later later) {
  namespace cg = cooperative_groups;
  __shared__ float made[10], all[kFactors];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, c = i / kStates, lane = i % kStates;
  const int warp = threadIdx.x / 32, at = threadIdx.x % 32, rank = blockIdx.x % 8;
  if (kBegin == Begin::kFirst) LetBegin();
  uint4 a[2][6], b[6];
  const bool second = warp < 2;  // ten rows for eight warps
#pragma unroll
  for (int v = 0; v < 6; ++v) {
    a[0][v] = reinterpret_cast<const uint4*>(l.factors)[(rank * 10 + warp) * 192 + v * 32 + at];
    a[1][v] =
        second
            ? reinterpret_cast<const uint4*>(l.factors)[(rank * 10 + 8 + warp) * 192 + v * 32 + at]
            : uint4();
  }
  float w[3];
#pragma unroll
  for (int j = 0; j < 3; ++j) w[j] = __half2float(l.rank[c * kRank + j * 16 + lane]);
  const float decay = l.decay[i];
  Prefetch(later);
  Wait();
#pragma unroll
  for (int v = 0; v < 6; ++v) b[v] = reinterpret_cast<const uint4*>(xz)[v * 32 + at];
  const float state = __ldcg(l.state + i), u = Load(xz + c), z = Load(xz + kInner + c);
  float s[2] = {0, 0};
#pragma unroll
  for (int v = 0; v < 6; ++v) s[0] = Dot(a[0][v], b[v], s[0]), s[1] = Dot(a[1][v], b[v], s[1]);
  s[0] = SumOf<32>(s[0]), s[1] = SumOf<32>(s[1]);
  // What others read is rounded as it is where it goes through memory.
  if (at == 0) made[warp] = __half2float(__float2half(s[0]));
  if (at == 0 && second) made[8 + warp] = __half2float(__float2half(s[1]));
  cg::cluster_group cluster = cg::this_cluster();
  cluster.sync();
  if (threadIdx.x < kFactors)
    all[threadIdx.x] = cluster.map_shared_rank(made, threadIdx.x / 10)[threadIdx.x % 10];
  __syncthreads();
  StepOf([&](int j) { return all[j]; }, w, decay, state, u, z, lane, l.state + i, y + c);
  cluster.sync();  // nobody leaves while its memory is read
}

template <Begin kBegin>
__global__ void Pass(const __half* x, __half* y) {
  if (kBegin == Begin::kFirst) LetBegin();
  Wait();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kInner) y[i] = x[(i * 7) % kInner];
}

// One launch for everything: blocks of 12 warps stay, and hand over numbers that carry the flag
// that says they are there: 8 bytes, of which 4 are two halves. The weights of the next phase are
// in registers when its numbers come.
struct Flagged {
  unsigned data, flag;
};
__device__ void Put(Flagged* p, __half a, __half b, unsigned flag) {
  const __half2 both = __halves2half2(a, b);
  asm volatile("st.volatile.global.v2.u32 [%0], {%1, %2};" ::"l"(p),
               "r"(*reinterpret_cast<const unsigned*>(&both)), "r"(flag)
               : "memory");
}
__device__ unsigned Get(const Flagged* p, unsigned flag) {
  unsigned data, is;
  do {
    asm volatile("ld.volatile.global.v2.u32 {%0, %1}, [%2];"
                 : "=r"(data), "=r"(is)
                 : "l"(p)
                 : "memory");
  } while (is != flag);
  return data;
}

struct Handed {
  Flagged wide[kWide / 2], factors[kFactors / 2], inner[kInner / 2], model[kModel / 2];
};
struct Network {
  Layer layers[kLayers];
  const __half* words;
};

constexpr int kStaying = 128, kStayingThreads = 384;

template <int kVectors, int kRows>
struct Held {
  uint4 a[kRows][kVectors];
  __device__ void Fetch(const __half* w, int row, bool has) {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
#pragma unroll
      for (int v = 0; v < kVectors; ++v)
        if (has)
          a[r][v] = __ldcs(reinterpret_cast<const uint4*>(w) + size_t(row + r) * (kVectors * 32) +
                           v * 32 + threadIdx.x % 32);
  }
  __device__ void Times(const unsigned* x, float* out) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float s = 0;
#pragma unroll
      for (int v = 0; v < kVectors; ++v)
        s = Dot(a[r][v], reinterpret_cast<const uint4*>(x)[v * 32 + threadIdx.x % 32], s);
      out[r] = s;
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) out[r] = SumOf<32>(out[r]);
  }
};

__global__ void __launch_bounds__(kStayingThreads, 1)
    Staying(const __half* x, Network net, Handed* handed, unsigned flag, __half* y, int rows) {
  __shared__ __align__(16) unsigned got[kWide / 2 + kFactors / 2], row[kModel / 2];
  __shared__ float factors[kFactors];
  const int warp = blockIdx.x * (kStayingThreads / 32) + threadIdx.x / 32, lane = threadIdx.x % 32,
            t = threadIdx.x;
  const int narrow = blockIdx.x * 6 + threadIdx.x / 64;  // one row for two warps
  const bool narrows = threadIdx.x / 32 % 2 == 0,
             makes = threadIdx.x / 32 == 0 && blockIdx.x < kFactors / 2;
  for (int i = t; i < kModel / 2; i += kStayingThreads)
    row[i] = reinterpret_cast<const unsigned*>(x)[i];
  __syncthreads();
  Held<3, 2> wide;
  Held<6, 2> factor;
  Held<6, 1> back;
  wide.Fetch(net.layers[0].wide, warp * 2, true);
  for (int n = 0; n < kLayers; ++n) {
    const Layer& l = net.layers[n];
    Handed& to = handed[n];
    back.Fetch(l.narrow, narrow, narrows);
    factor.Fetch(l.factors, blockIdx.x * 2, makes);
    float s[2], squares = 0;
#pragma unroll
    for (int v = 0; v < 3; ++v) {
      const uint4 b = reinterpret_cast<const uint4*>(row)[v * 32 + lane];
      squares = Dot(b, b, squares);
    }
    const float scale = rsqrtf(SumOf<32>(squares) / kModel + 1e-5f);
    wide.Times(row, s);
    if (lane == 0)
      Put(to.wide + warp, __float2half(s[0] * scale), __float2half(s[1] * scale), flag);
    if (n + 1 < kLayers) wide.Fetch(net.layers[n + 1].wide, warp * 2, true);
    // The state's step: 12 channels of 16 states, by half of the threads; both its operands of the
    // wide row.
    const int c = blockIdx.x * 12 + t / kStates, at = t % kStates;
    const bool steps = t < 192;
    float w[3] = {0, 0, 0}, decay = 0, state = 0;
    if (steps) {
#pragma unroll
      for (int j = 0; j < 3; ++j) w[j] = __half2float(l.rank[c * kRank + j * 16 + at]);
      decay = l.decay[c * kStates + at], state = __ldcg(l.state + c * kStates + at);
    }
    if (blockIdx.x < kFactors / 2) {
      for (int i = t; i < kInner / 2; i += kStayingThreads) got[i] = Get(to.wide + i, flag);
      __syncthreads();
      if (makes) {
        factor.Times(got, s);
        if (lane == 0) Put(to.factors + blockIdx.x, __float2half(s[0]), __float2half(s[1]), flag);
      }
    }
    float u = 0, z = 0;
    if (steps) {
      const unsigned a = Get(to.wide + c / 2, flag), b = Get(to.wide + (kInner + c) / 2, flag);
      const __half2 ah = *reinterpret_cast<const __half2*>(&a),
                    bh = *reinterpret_cast<const __half2*>(&b);
      u = c % 2 ? __high2float(ah) : __low2float(ah),
      z = c % 2 ? __high2float(bh) : __low2float(bh);
    }
    if (t < kFactors / 2) {
      const unsigned a = Get(to.factors + t, flag);
      const __half2 h = *reinterpret_cast<const __half2*>(&a);
      factors[t * 2] = __low2float(h), factors[t * 2 + 1] = __high2float(h);
    }
    __syncthreads();
    if (steps) {
      __half made = __half();
      StepOf([&](int j) { return factors[j]; }, w, decay, state, u, z, at,
             l.state + c * kStates + at, &made);
      const __half other = __shfl_down_sync(kAll, made, 16);
      if (lane == 0) Put(to.inner + c / 2, made, other, flag);
    }
    for (int i = t; i < kInner / 2; i += kStayingThreads) got[i] = Get(to.inner + i, flag);
    __syncthreads();
    __shared__ float parts[6];
    if (narrows) {
      back.Times(got, s);
      if (lane == 0) parts[threadIdx.x / 64] = s[0];
    }
    __syncthreads();
    if (t < 3) {
      const __half2 was = reinterpret_cast<const __half2*>(row)[blockIdx.x * 3 + t];
      Put(to.model + blockIdx.x * 3 + t, __float2half(parts[t * 2] + __low2float(was)),
          __float2half(parts[t * 2 + 1] + __high2float(was)), flag);
    }
    __syncthreads();
    for (int i = t; i < kModel / 2; i += kStayingThreads) row[i] = Get(to.model + i, flag);
    __syncthreads();
  }
  float squares = 0;
#pragma unroll
  for (int v = 0; v < 3; ++v) {
    const uint4 b = reinterpret_cast<const uint4*>(row)[v * 32 + lane];
    squares = Dot(b, b, squares);
  }
  const float scale = rsqrtf(SumOf<32>(squares) / kModel + 1e-5f);
  for (int r = warp * 4; r < rows; r += kStaying * 12 * 4) {
    Held<3, 4> words;
    float s[4];
    words.Fetch(net.words, r, true);
    words.Times(row, s);
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (lane == i) y[r + i] = __float2half(s[i] * scale);
  }
}

__global__ void Fill(__half* p, size_t n, unsigned seed, float size) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < n;
       i += size_t(gridDim.x) * blockDim.x) {
    unsigned h = (unsigned(i) * 2654435761u) ^ seed;
    h ^= h >> 15, h *= 2246822519u, h ^= h >> 13, h *= 3266489917u, h ^= h >> 16;
    p[i] = __float2half((float(h & 0xffff) / 32768.0f - 1) * size);
  }
}

struct Memory {
  __half *weights, *in, *x[2], *wide, *factors, *inner, *words;
  float* floats;
  Handed* handed;
  Network net;
};

cudaStream_t stream;

template <class... P, class... A>
void Launch(void (*kernel)(P...), int blocks, dim3 threads, bool plain, A... args) {
  cudaLaunchConfig_t c = {};
  c.gridDim = blocks, c.blockDim = threads, c.stream = stream;
  cudaLaunchAttribute early;
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  c.attrs = &early, c.numAttrs = plain ? 0 : 1;
  CHECK(cudaLaunchKernelEx(&c, kernel, P(args)...));
}

template <int kK, int kRows, bool kNorm, Begin kBegin>
void Warps(int threads, bool plain, const __half* x, const __half* w, const __half* before,
           __half* y, int n, Later later = {}) {
  const int warps = (n + kRows - 1) / kRows, a_block = threads / 32;
  Launch(WarpRows<kK, kRows, kNorm, kBegin>, (warps + a_block - 1) / a_block, threads, plain, x, w,
         before, y, n, later);
}

// The launches of a step. kWideRows and kNarrowRows: rows of a warp in the first and the last
// product of a layer.
template <Begin kBegin, int kWideRows, int kNarrowRows, bool kCluster>
void ByWarps(const Memory& m, const Network& net, bool prefetch, bool words) {
  constexpr int threads = 256;
  for (int n = 0; n < kLayers; ++n) {
    const Layer& l = net.layers[n];
    const __half* x = n ? m.x[n % 2] : m.in;
    // A layer ahead; the last layer asks for a part of what comes last.
    const auto later = [&](const __half* Layer::* what, size_t elements) {
      const bool last = n + 1 == kLayers;
      return prefetch && !last ? Later{reinterpret_cast<const char*>(net.layers[n + 1].*what),
                                       unsigned(elements * 2)}
                               : Later{};
    };
    Warps<kModel, kWideRows, true, kBegin>(threads, n == 0, x, l.wide, nullptr, m.wide, kWide,
                                           later(&Layer::wide, kWide * kModel));
    if (kCluster) {
      Launch(ClusterStep<kBegin>, kInner * kStates / 256, 256, false, m.wide, l, m.inner,
             later(&Layer::factors, kInner * (kFactors + kRank)));
    } else {
      Warps<kInner, 1, false, kBegin>(128, false, m.wide, l.factors, nullptr, m.factors, kFactors,
                                      later(&Layer::factors, kInner * kFactors));
      Launch(StateStep<kBegin>, kInner * kStates / 256, 256, false, m.wide, m.factors, l, m.inner,
             later(&Layer::rank, kInner * kRank));
    }
    Warps<kInner, kNarrowRows, false, kBegin>(threads, false, m.inner, l.narrow, x,
                                              m.x[(n + 1) % 2], kModel,
                                              later(&Layer::narrow, kInner * kModel));
  }
  if (words)
    Warps<kModel, 4, true, kBegin>(256, false, m.x[0], net.words, nullptr, m.words, kWords);
}

template <Begin kBegin>
void ByBlocks(const Memory& m, const Network& net, bool plain, bool words) {
  for (int n = 0; n < kLayers; ++n) {
    const Layer& l = net.layers[n];
    const __half* x = n ? m.x[n % 2] : m.in;
    Launch(BlockRows<kModel, 128, 2, true, kBegin>, kWide / 4, dim3(128, 2), plain || n == 0, x,
           l.wide, nullptr, m.wide, kWide);
    Launch(BlockRows<kInner, 256, 1, false, kBegin>, kFactors, dim3(256), plain, m.wide, l.factors,
           nullptr, m.factors, kFactors);
    Launch(StateStep<kBegin>, kInner * kStates / 128, 128, plain, m.wide, m.factors, l, m.inner,
           Later{});
    Launch(BlockRows<kInner, 256, 1, false, kBegin>, kModel, dim3(256), plain, m.inner, l.narrow, x,
           m.x[(n + 1) % 2], kModel);
  }
  if (words)
    Warps<kModel, 4, true, kBegin>(256, plain, m.x[0], net.words, nullptr, m.words, kWords);
}

float Elapsed(int calls, const std::function<void()>& call) {
  static cudaEvent_t a, b;
  if (!a) {
    CHECK(cudaEventCreate(&a));
    CHECK(cudaEventCreate(&b));
  }
  CHECK(cudaEventRecord(a, stream));
  for (int i = 0; i < calls; ++i) call();
  CHECK(cudaEventRecord(b, stream));
  CHECK(cudaEventSynchronize(b));
  float ms;
  CHECK(cudaEventElapsedTime(&ms, a, b));
  return ms / calls;
}

std::vector<float> Result(const Memory& m) {
  std::vector<__half> got(kWords);
  CHECK(cudaMemcpy(got.data(), m.words, kWords * 2, cudaMemcpyDeviceToHost));
  return std::vector<float>(got.begin(), got.end());
}

int main() {
  CHECK(cudaStreamCreate(&stream));
  Memory m;
  const size_t layer =
      size_t(kWide) * kModel + kFactors * kInner + kInner * kRank + kInner * kModel;
  const size_t weights = layer * kLayers + size_t(kWords) * kModel,
               states = size_t(kInner) * kStates;
  CHECK(cudaMalloc(&m.weights, weights * 2));
  CHECK(cudaMalloc(&m.floats, states * 4 * 2 * kLayers));
  CHECK(cudaMalloc(&m.handed, sizeof(Handed) * kLayers));
  CHECK(cudaMemset(m.handed, 0, sizeof(Handed) * kLayers));
  for (__half** p : {&m.in, &m.x[0], &m.x[1], &m.wide, &m.factors, &m.inner, &m.words})
    CHECK(cudaMalloc(p, weights / kModel * 2));
  Fill<<<1024, 256>>>(m.weights, weights, 7, 0.06f);
  const __half* at = m.weights;
  const auto take = [&](size_t n) { return std::exchange(at, at + n); };
  std::vector<float> decay(states * kLayers);
  for (size_t i = 0; i < decay.size(); ++i) decay[i] = -float(i % kStates + 1);
  CHECK(cudaMemcpy(m.floats, decay.data(), decay.size() * 4, cudaMemcpyHostToDevice));
  for (int n = 0; n < kLayers; ++n)
    m.net.layers[n] = {take(size_t(kWide) * kModel), take(kFactors * kInner),
                       take(kInner * kRank),         take(kInner * kModel),
                       m.floats + states * n,        m.floats + states * (kLayers + n)};
  m.net.words = at;
  const auto reset = [&] {
    CHECK(cudaMemset(m.floats + states * kLayers, 0, states * 4 * kLayers));
    CHECK(cudaMemset(m.words, 0xff, kWords * 2));
    Fill<<<8, 256>>>(m.in, kModel, 3, 1.0f);
    CHECK(cudaDeviceSynchronize());
  };
  struct Shape {
    std::string name;
    std::function<void()> call;
    bool graph;
  };
  std::vector<Shape> shapes;
  const auto add = [&](const std::string& name, auto record) {
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    record();
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    shapes.push_back({name, [exec] { CHECK(cudaGraphLaunch(exec, stream)); }, true});
  };
  // The same with all layers' weights in the second-level cache, and without what comes last: what
  // is left without memory.
  Network near = m.net;
  for (Layer& l : near.layers)
    l = {m.net.layers[0].wide,
         m.net.layers[0].factors,
         m.net.layers[0].rank,
         m.net.layers[0].narrow,
         l.decay,
         l.state};
  const auto both = [&](const std::string& name, auto record) {
    add(name, [&] { record(m.net, true); });
    add(name + ", near", [&] { record(near, false); });
  };
  using Net = const Network&;
  both("97, blocks, plain edges",
       [&](Net net, bool words) { ByBlocks<Begin::kLast>(m, net, true, words); });
  both("97, blocks, last",
       [&](Net net, bool words) { ByBlocks<Begin::kLast>(m, net, false, words); });
  both("97, blocks, first",
       [&](Net net, bool words) { ByBlocks<Begin::kFirst>(m, net, false, words); });
  both("97, warps, last",
       [&](Net net, bool words) { ByWarps<Begin::kLast, 4, 2, false>(m, net, false, words); });
  both("97, warps, first",
       [&](Net net, bool words) { ByWarps<Begin::kFirst, 4, 2, false>(m, net, false, words); });
  both("97, warps, first, half the rows",
       [&](Net net, bool words) { ByWarps<Begin::kFirst, 2, 1, false>(m, net, false, words); });
  both("97, warps, first, prefetch",
       [&](Net net, bool words) { ByWarps<Begin::kFirst, 4, 2, false>(m, net, true, words); });
  both("73, clusters, last",
       [&](Net net, bool words) { ByWarps<Begin::kLast, 4, 2, true>(m, net, false, words); });
  both("73, clusters, first",
       [&](Net net, bool words) { ByWarps<Begin::kFirst, 4, 2, true>(m, net, false, words); });
  for (const int blocks : {96, 768}) {
    add("97, nothing but numbers, " + std::to_string(blocks) + " blocks, first, near", [&] {
      for (int n = 0; n < 97; ++n)
        Launch(Pass<Begin::kFirst>, blocks, 256, n == 0, n % 2 ? m.x[0] : m.x[1],
               n % 2 ? m.x[1] : m.x[0]);
    });
    add("97, nothing but numbers, " + std::to_string(blocks) + " blocks, last, near", [&] {
      for (int n = 0; n < 97; ++n)
        Launch(Pass<Begin::kLast>, blocks, 256, n == 0, n % 2 ? m.x[0] : m.x[1],
               n % 2 ? m.x[1] : m.x[0]);
    });
  }
  unsigned flag = 0;
  for (const bool is_near : {false, true})
    shapes.push_back(
        {is_near ? "1, blocks that stay, near" : "1, blocks that stay, flagged numbers",
         [&, is_near] {
           ++flag;
           int rows = is_near ? 0 : kWords;
           void* args[] = {&m.in, is_near ? &near : &m.net, &m.handed, &flag, &m.words, &rows};
           CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(Staying), kStaying,
                                             kStayingThreads, args, 0, stream));
         },
         false});
  // Reading alone: as many bytes, by one launch of many blocks.
  add("reading the weights alone", [&] {
    Warps<kModel, 4, false, Begin::kLast>(256, true, m.in, m.weights, nullptr, m.wide,
                                          int(weights / kModel));
  });
  std::vector<float> want;
  std::vector<std::vector<float>> one(shapes.size()), many(shapes.size());
  const size_t alone = shapes.size() - 1;
  for (size_t i = 0; i < shapes.size(); ++i) {
    reset();
    CHECK(cudaStreamSynchronize(stream));
    shapes[i].call();
    CHECK(cudaStreamSynchronize(stream));
    if (i == alone || shapes[i].name.find("near") != std::string::npos) continue;
    const std::vector<float> got = Result(m);
    if (want.empty()) want = got;
    double apart = 0, size = 0;
    for (int j = 0; j < kWords; ++j)
      apart += std::pow(got[j] - want[j], 2), size += std::pow(want[j], 2);
    if (!(std::sqrt(apart / size) < 2e-2))
      printf("%s: WRONG, %.1e of %.1e apart\n", shapes[i].name.c_str(), std::sqrt(apart / size),
             std::sqrt(size));
  }
  for (int round = 0; round < 5; ++round)
    for (size_t i = 0; i < shapes.size(); ++i) {
      std::vector<float> t;
      for (int k = 0; k < 40; ++k) t.push_back(Elapsed(1, shapes[i].call));
      std::sort(t.begin(), t.end());
      one[i].push_back(t[20]), many[i].push_back(Elapsed(100, shapes[i].call));
    }
  const auto best = [](const std::vector<float>& v) {
    return *std::min_element(v.begin(), v.end());
  };
  for (size_t i = 0; i < shapes.size(); ++i)
    printf("%-40s %.4f ms, %.4f behind one another; %.2f, %.2f of reading\n",
           shapes[i].name.c_str(), best(one[i]), best(many[i]), best(one[i]) / best(one[alone]),
           best(many[i]) / best(many[alone]));
}

// Made by scripts/derive_math.py; the forms they belong to are in expand_math.cc.
#pragma once

namespace tenon::math {

/// (e^r - 1 - r) / r^2 on |r| <= ln2/2
inline constexpr double kExpTail32[] = {
    0x1.fffffc0000000p-2, 0x1.5554940000000p-3,  0x1.5558900000000p-5,
    0x1.1239b60000000p-7, 0x1.6a44040000000p-10,
};
/// the same for f64
inline constexpr double kExpTail64[] = {
    0x1.0000000000009p-1,  0x1.55555555553a9p-3,  0x1.5555555551281p-5,  0x1.111111117916ap-7,
    0x1.6c16c17fcdcabp-10, 0x1.a019febfdaa20p-13, 0x1.a019abc47979bp-16, 0x1.71e697e4ecd64p-19,
    0x1.289867f6cedadp-22, 0x1.9e4780b80df6bp-26,
};
/// (2^r - 1) / r on |r| <= 1/2
inline constexpr double kExp2Tail32[] = {
    0x1.62e4320000000p-1, 0x1.ebfc1a0000000p-3,  0x1.c6ae000000000p-5,
    0x1.3b080e0000000p-7, 0x1.5f819a0000000p-10, 0x1.55fe660000000p-13,
};
/// (log(1+f) - f + f^2/2) / f^3 on sqrt(1/2) <= 1+f <= sqrt(2)
inline constexpr double kLogTail32[] = {
    0x1.5555540000000p-2, -0x1.0002280000000p-2, 0x1.99a0360000000p-3, -0x1.5472260000000p-3,
    0x1.22d6140000000p-3, -0x1.0d86700000000p-3, 0x1.0492b00000000p-3, -0x1.341c700000000p-4,
};
/// log2(1+f) / f on the same range
inline constexpr double kLog2Over32[] = {
    0x1.7154760000000p+0, -0x1.71546e0000000p-1, 0x1.ec72440000000p-2, -0x1.715d3e0000000p-2,
    0x1.27274e0000000p-2, -0x1.e9b25e0000000p-3, 0x1.ae64200000000p-3, -0x1.9ab1160000000p-3,
    0x1.40e34a0000000p-3, -0x1.af632c0000000p-5,
};
/// (log((1+s)/(1-s)) - 2s) / s^3 as a polynomial of s^2
inline constexpr double kLogTail64[] = {
    0x1.5555555555555p-1, 0x1.9999999999d11p-2, 0x1.24924924397f9p-2, 0x1.c71c724b670fbp-3,
    0x1.745ce1c89c953p-3, 0x1.3b20248ec91ebp-3, 0x1.0f6742491395bp-3, 0x1.0f0deae3cba13p-3,
};
/// tanh x = x P(x^2) / Q(x^2) on |x| <= 9.02
inline constexpr double kTanhP32[] = {
    0x1.0000000000000p+0,  0x1.1204580000000p-3,  0x1.c9f9040000000p-9,
    0x1.5956ac0000000p-16, 0x1.c9a6fa0000000p-27,
};
/// its denominator
inline constexpr double kTanhQ32[] = {
    0x1.0000000000000p+0,  0x1.de57760000000p-2,  0x1.a7df780000000p-6,
    0x1.5842b20000000p-12, 0x1.a0ba940000000p-21,
};
/// erf x = x P(x^2) / Q(x^2) on |x| <= 3.93
inline constexpr double kErfP32[] = {
    0x1.20dd740000000p+0, 0x1.86b6920000000p-3,  0x1.b0736c0000000p-5,
    0x1.ef5d700000000p-9, 0x1.2aa22a0000000p-12, 0x1.1211860000000p-19,
};
/// its denominator
inline constexpr double kErfQ32[] = {
    0x1.0000000000000p+0, 0x1.013b420000000p-1,  0x1.d3fd0c0000000p-4,
    0x1.eb6afc0000000p-7, 0x1.316f3e0000000p-10, 0x1.3ecc080000000p-15,
};
/// (sin r - r) / r^3 as a polynomial of r^2 on |r| <= pi/4
inline constexpr double kSinTail[] = {
    -0x1.555555555554cp-3, 0x1.111111110fbd4p-7,   -0x1.a01a019c62d8ap-13,
    0x1.71de35b04828ap-19, -0x1.ae5e8b27f06ddp-26, 0x1.5d9c2b1df8c08p-33,
};
/// (cos r - 1 + r^2/2) / r^4 likewise
inline constexpr double kCosTail[] = {
    0x1.5555555555553p-5,   -0x1.6c16c16c15ea9p-10, 0x1.a01a019dcbaf5p-16,
    -0x1.27e4f8bcbf48fp-22, 0x1.1eea588d5e48dp-29,  -0x1.8fe197c1d94edp-37,
};
/// (atan t - t) / t^3 as a polynomial of t^2 on |t| <= tan(pi/8)
inline constexpr double kAtanTail[] = {
    -0x1.555555555554ap-2, 0x1.9999999996e10p-3, -0x1.249249231a4c7p-3, 0x1.c71c7109b1527p-4,
    -0x1.745cfc50d77f6p-4, 0x1.3b114f48fa1fbp-4, -0x1.10eddfa3e25abp-4, 0x1.df2bb1513a7ffp-5,
    -0x1.9d47c67fe497fp-5, 0x1.38e7b12fc0af5p-5, -0x1.279702146ee07p-6,
};
/// erf x = x P(x^2) / Q(x^2) on |x| <= 1, f64
inline constexpr double kErfP64[] = {
    0x1.20dd750429b6dp+0,  0x1.25e6cf29eb935p-3,  0x1.749a0b55a154ep-5,
    0x1.ec26e09ab1b32p-10, 0x1.9ce5ac27440e2p-13, 0x1.4dca245e49733p-24,
};
/// its denominator
inline constexpr double kErfQ64[] = {
    0x1.0000000000000p+0, 0x1.d790a9a1bc955p-2,  0x1.80421fb62c5d5p-4,
    0x1.5e64090ae6fcdp-7, 0x1.6b1183449a6d5p-11, 0x1.5d23570b90136p-16,
};
/// erfc(x) e^(x^2) = P(x) / Q(x) on 1 <= x <= 6
inline constexpr double kErfcP64[] = {
    0x1.000000019a135p+0, 0x1.ffab37425d3f2p+0, 0x1.fa7669f5878b8p+0,
    0x1.3b62a71199ab2p+0, 0x1.0b7d3576d346dp-1, 0x1.3b7f01decd7ebp-3,
    0x1.fadbe6f770c13p-6, 0x1.ffcfc12d14fa8p-9, 0x1.fc80906a16450p-13,
};
/// its denominator
inline constexpr double kErfcQ64[] = {
    0x1.0000000000000p+0, 0x1.9044562cdc51ap+1,  0x1.20712bd4f0366p+2, 0x1.f8a87d8c6dc59p+1,
    0x1.288928279f30ep+1, 0x1.e80a01f11bf17p-1,  0x1.1b2510ee00124p-2, 0x1.c2f3d1e885106p-5,
    0x1.c594c7a26fd94p-8, 0x1.c2a5f9de04968p-12,
};
/// ln 2: the first part times any exponent is exact in f32
inline constexpr double kLn2Parts32[] = {
    0x1.62e8000000000p-1,
    -0x1.e8082e3086543p-16,
};
/// the same for f64
inline constexpr double kLn2Parts64[] = {
    0x1.62e42fefa4000p-1,
    -0x1.8432a1b0e2634p-43,
};
/// log10 2: the first part times any exponent is exact in f64
inline constexpr double kLog10Of2Parts[] = {
    0x1.34413509f8000p-2,
    -0x1.80433b83b532ap-44,
};
/// pi/2: the first two parts times a quadrant below 2^20 are exact in f64
inline constexpr double kHalfPiParts[] = {
    0x1.921fb54400000p+0,
    0x1.0b4611a600000p-34,
    0x1.3198a2e037073p-69,
};
/// 2/pi in pieces of 28 bits: each times an f32 is exact in f64
inline constexpr double kTwoOverPi[] = {
    0x1.45f306c000000p-1,   0x1.c9c882a000000p-29,  0x1.4fe13a8000000p-59,  0x1.f47d4d0000000p-86,
    0x1.bb81b6c000000p-113, 0x1.4acc9e0000000p-143, 0x1.0e4107c000000p-170, 0x1.cc00000000000p-197,
};

}  // namespace tenon::math

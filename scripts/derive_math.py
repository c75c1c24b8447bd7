#!/usr/bin/env python3
"""Derives the coefficients of src/loop/pass/expand_math and prints src/loop/pass/math/coefficients.h.

Polynomials: Remez's exchange on the relative error, in 60 digits. The coefficients are rounded to the working precision
one after another, lowest order first; after each rounding those above are fitted anew, so that they make up for it.
Rational functions: weighted linear least squares on P - f Q, reweighted by 1/|Q| and by the error itself (Lawson), until
the relative error is level; then rounded.

Needs mpmath. Takes about a minute.   scripts/derive_math.py > src/loop/pass/math/coefficients.h
"""
import sys

from mpmath import mp, mpf, matrix, lu_solve, qr_solve, exp, log, tanh, erf, erfc, sin, cos, atan, sqrt, pi, cos as mcos

mp.dps = 60


def to_float(x, bits):
    """x rounded to `bits` bits of mantissa (round to nearest even)."""
    if x == 0:
        return mpf(0)
    m, e = mp.frexp(abs(x))
    scaled = m * mpf(2) ** bits
    n = int(mp.floor(scaled))
    rest = scaled - n
    if rest > mpf(1) / 2 or (rest == mpf(1) / 2 and n % 2 == 1):
        n += 1
    return mp.sign(x) * mpf(n) * mpf(2) ** (e - bits)


def remez(target, weight, powers, lo, hi, grid=1200):
    """Coefficients c minimising max |weight(x) (sum c_i x^powers_i - target(x))| on [lo, hi], and that maximum."""
    n = len(powers)
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    nodes = [mid - half * mcos(pi * i / n) for i in range(n + 1)]
    xs = [mid - half * mcos(pi * (i + mpf(1) / 2) / grid) for i in range(grid)]
    samples = [(x, target(x), weight(x)) for x in xs]
    c, worst = None, None
    for _ in range(25):
        a = matrix(n + 1, n + 1)
        b = matrix(n + 1, 1)
        for i, x in enumerate(nodes):
            for j, p in enumerate(powers):
                a[i, j] = x ** p
            a[i, n] = (-1) ** i / weight(x)
            b[i] = target(x)
        solution = lu_solve(a, b)
        c = [solution[j] for j in range(n)]
        level = abs(solution[n])

        def error(x, f, w):
            total = mpf(0)
            for q, p in zip(c, powers):
                total += q * x ** p
            return w * (total - f)

        errors = [error(*s) for s in samples]
        # One extremum per run of equal sign; of these the n + 1 neighbours that are largest.
        extrema = []
        for (x, _, _), e in zip(samples, errors):
            if extrema and mp.sign(extrema[-1][1]) == mp.sign(e):
                if abs(e) > abs(extrema[-1][1]):
                    extrema[-1] = (x, e)
            else:
                extrema.append((x, e))
        worst = max(abs(e) for e in errors)
        while len(extrema) > n + 1:
            extrema.pop(0 if abs(extrema[0][1]) < abs(extrema[-1][1]) else -1)
        if len(extrema) < n + 1:
            break
        nodes = [x for x, _ in extrema]
        if worst < level * mpf("1.01"):
            break
    return c, worst


def fit(name, target, weight, powers, lo, hi, bits, fixed=None):
    """remez with rounding: `fixed` gives coefficients known beforehand, by power."""
    fixed = dict(fixed or {})
    todo = [p for p in powers if p not in fixed]
    worst = None
    while todo:
        rest = lambda x: target(x) - sum(c * x ** p for p, c in fixed.items())
        c, worst = remez(rest, weight, todo, lo, hi)
        fixed[todo[0]] = to_float(c[0], bits)
        todo = todo[1:]
    xs = [lo + (hi - lo) * i / 3000 for i in range(3001)]
    err = max(abs(weight(x) * (sum(c * x ** p for p, c in fixed.items()) - target(x))) for x in xs if x != 0)
    print(f"{name}: relative error {mp.nstr(err, 3)} = 2^{mp.nstr(log(err, 2), 4)}", file=sys.stderr)
    return [fixed[p] for p in powers], err


def fit_rational(name, target, num, den, lo, hi, bits, points=160, rounds=60):
    """target(u) ~ P(u) / Q(u), Q(0) = 1, on [lo, hi], least relative error. Returns (P, Q) lowest order first."""
    mp.dps = 90
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    us = [mid - half * mcos(pi * (i + mpf(1) / 2) / points) for i in range(points)]
    fs = [target(u) for u in us]
    lawson = [mpf(1)] * points
    q_old = [mpf(1)] * points
    best = None
    for _ in range(rounds):
        a = matrix(points, num + den + 1)
        b = matrix(points, 1)
        for i, (u, f) in enumerate(zip(us, fs)):
            w = sqrt(lawson[i]) / (q_old[i] * f)
            for j in range(num + 1):
                a[i, j] = w * u ** j
            for j in range(1, den + 1):
                a[i, num + j] = -w * f * u ** j
            b[i] = w * f
        # Normal equations: 90 digits leave plenty.
        s = lu_solve(a.T * a, a.T * b)
        p = [s[j] for j in range(num + 1)]
        q = [mpf(1)] + [s[num + j] for j in range(1, den + 1)]
        q_old = [sum(c * u ** k for k, c in enumerate(q)) for u in us]
        errs = [abs(sum(c * u ** k for k, c in enumerate(p)) / d / f - 1) for u, f, d in zip(us, fs, q_old)]
        worst = max(errs)
        if best is None or worst < best[0]:
            best = (worst, p, q)
        lawson = [l * (e / worst + mpf("1e-3")) for l, e in zip(lawson, errs)]
        top = max(lawson)
        lawson = [l / top for l in lawson]
    worst, p, q = best
    mp.dps = 60
    print(f"{name}: relative error {mp.nstr(worst, 3)} = 2^{mp.nstr(log(worst, 2), 4)}", file=sys.stderr)
    return [to_float(c, bits) for c in p], [to_float(c, bits) for c in q]


def show(name, coefficients, comment):
    print(f"/// {comment}")
    print(f"inline constexpr double {name}[] = {{")
    for c in coefficients:
        print(f"    {float(c).hex()},")
    print("};")


def split(name, value, parts, bits, comment):
    """value as a sum of parts; each but the last of `bits` bits."""
    out, rest = [], value
    for i in range(parts):
        part = to_float(rest, bits if i + 1 < parts else 53)
        out.append(part)
        rest -= part
    show(name, out, comment)


def exp_tail(r):
    """(e^r - 1 - r) / r^2."""
    if abs(r) < mpf("1e-15"):
        return mpf(1) / 2 + r / 6
    return (exp(r) - 1 - r) / r ** 2


def main():
    print("// Made by scripts/derive_math.py; the forms they belong to are in expand_math.cc.")
    print("#pragma once\n")
    print("namespace tenon::math {\n")
    ln2, half = log(2), log(2) / 2 * mpf("1.0001")
    root = sqrt(mpf(1) / 2)

    # e^r - 1 - r = r^2 tail(r); the error counts relative to e^r.
    weight = lambda r: r ** 2 / exp(r) + mpf("1e-30")
    c, _ = fit("exp f32", exp_tail, weight, [0, 1, 2, 3, 4], -half, half, 24)
    show("kExpTail32", c, "(e^r - 1 - r) / r^2 on |r| <= ln2/2")
    c, _ = fit("exp f64", exp_tail, weight, list(range(10)), -half, half, 53)
    show("kExpTail64", c, "the same for f64")
    two = lambda r: (mpf(2) ** r - 1) / r if r != 0 else ln2
    c, _ = fit("exp2 f32", two, lambda r: abs(r) / mpf(2) ** r + mpf("1e-30"), list(range(6)), -mpf("0.50001"),
               mpf("0.50001"), 24)
    show("kExp2Tail32", c, "(2^r - 1) / r on |r| <= 1/2")

    # log(1 + f) = f - f^2/2 + f^3 P(f); relative to log(1 + f).
    lo, hi = root - 1 - mpf("1e-6"), sqrt(mpf(2)) - 1 + mpf("1e-6")
    def log_tail(f):
        if abs(f) < mpf("1e-12"):
            return mpf(1) / 3 - f / 4
        return (log(1 + f) - f + f * f / 2) / f ** 3
    lw = lambda f: abs(f ** 3 / log(1 + f)) if f != 0 else mpf("1e-30")
    c, _ = fit("log f32", log_tail, lw, list(range(8)), lo, hi, 24)
    show("kLogTail32", c, "(log(1+f) - f + f^2/2) / f^3 on sqrt(1/2) <= 1+f <= sqrt(2)")
    def log2_over(f):
        return log(1 + f, 2) / f if abs(f) > mpf("1e-20") else 1 / ln2
    c, _ = fit("log2 f32", log2_over, lambda f: 1 / log2_over(f), list(range(10)), lo, hi, 24)
    show("kLog2Over32", c, "log2(1+f) / f on the same range")
    # For f64: s = f / (2 + f); log(1+f) = 2 s + s^3 R(s^2).
    top = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2 * mpf("1.00001")
    def atanh_tail(u):
        s = sqrt(u)
        if u < mpf("1e-20"):
            return mpf(2) / 3
        return (log((1 + s) / (1 - s)) - 2 * s) / s ** 3
    c, _ = fit("log f64", atanh_tail, lambda u: u / 2 + mpf("1e-30"), list(range(8)), mpf(0), top, 53)
    show("kLogTail64", c, "(log((1+s)/(1-s)) - 2s) / s^3 as a polynomial of s^2")

    # Odd functions as x P(x^2) / Q(x^2), up to where they round to 1.
    def over(f):
        return lambda u: f(sqrt(u)) / sqrt(u) if u > mpf("1e-30") else (mpf(1) if f is tanh else 2 / sqrt(pi))
    p, q = fit_rational("tanh f32", over(tanh), 4, 4, mpf(0), mpf("9.02") ** 2, 24)
    show("kTanhP32", p, "tanh x = x P(x^2) / Q(x^2) on |x| <= 9.02")
    show("kTanhQ32", q, "its denominator")
    p, q = fit_rational("erf f32", over(erf), 5, 5, mpf(0), mpf("3.93") ** 2, 24)
    show("kErfP32", p, "erf x = x P(x^2) / Q(x^2) on |x| <= 3.93")
    show("kErfQ32", q, "its denominator")

    # sin and cos on |r| <= pi/4, in f64: sin r = r + r^3 S(r^2), cos r = 1 - r^2/2 + r^4 C(r^2).
    quarter = (pi / 4) ** 2 * mpf("1.001")
    def sin_tail(u):
        r = sqrt(u)
        return (sin(r) - r) / r ** 3 if u > mpf("1e-15") else -mpf(1) / 6 + u / 120
    def cos_tail(u):
        r = sqrt(u)
        return (cos(r) - 1 + u / 2) / u ** 2 if u > mpf("1e-15") else mpf(1) / 24 - u / 720
    c, _ = fit("sin", sin_tail, lambda u: u * sqrt(u) / sin(sqrt(u)) if u > 0 else mpf("1e-30"), list(range(6)),
               mpf(0), quarter, 53)
    show("kSinTail", c, "(sin r - r) / r^3 as a polynomial of r^2 on |r| <= pi/4")
    c, _ = fit("cos", cos_tail, lambda u: u * u / cos(sqrt(u)) + mpf("1e-30"), list(range(6)), mpf(0), quarter, 53)
    show("kCosTail", c, "(cos r - 1 + r^2/2) / r^4 likewise")

    # atan t = t + t^3 A(t^2) up to tan(pi/8).
    eighth = (sqrt(mpf(2)) - 1) ** 2 * mpf("1.001")
    def atan_tail(u):
        t = sqrt(u)
        return (atan(t) - t) / t ** 3 if u > mpf("1e-15") else -mpf(1) / 3 + u / 5
    c, _ = fit("atan", atan_tail, lambda u: u * sqrt(u) / atan(sqrt(u)) if u > 0 else mpf("1e-30"), list(range(11)),
               mpf(0), eighth, 53)
    show("kAtanTail", c, "(atan t - t) / t^3 as a polynomial of t^2 on |t| <= tan(pi/8)")

    # erfc(x) exp(x^2) on [1, 27] for f64, as a rational of t = 1/(1 + x/2); erf near 0 as x R(x^2).
    p, q = fit_rational("erf f64 near 0", over(erf), 5, 5, mpf(0), mpf(1), 53)
    show("kErfP64", p, "erf x = x P(x^2) / Q(x^2) on |x| <= 1, f64")
    show("kErfQ64", q, "its denominator")
    def scaled_erfc(x):
        return erfc(x) * exp(x * x)
    p, q = fit_rational("erfc f64", scaled_erfc, 8, 9, mpf(1), mpf(6), 53)
    show("kErfcP64", p, "erfc(x) e^(x^2) = P(x) / Q(x) on 1 <= x <= 6")
    show("kErfcQ64", q, "its denominator")

    split("kLn2Parts32", ln2, 2, 14, "ln 2: the first part times any exponent is exact in f32")
    split("kLn2Parts64", ln2, 2, 40, "the same for f64")
    split("kLog10Of2Parts", log(2) / log(10), 2, 40, "log10 2: the first part times any exponent is exact in f64")
    split("kHalfPiParts", pi / 2, 3, 33, "pi/2: the first two parts times a quadrant below 2^20 are exact in f64")
    # 2/pi in pieces of 28 bits by place value: piece k is a multiple of 2^(-28(k+1)).
    pieces, rest = [], 2 / pi
    for k in range(8):
        unit = mpf(2) ** (-28 * (k + 1))
        n = mp.floor(rest / unit)
        pieces.append(n * unit)
        rest -= n * unit
    show("kTwoOverPi", pieces, "2/pi in pieces of 28 bits: each times an f32 is exact in f64")
    print("\n}  // namespace tenon::math")


main()

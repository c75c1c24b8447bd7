"""Kernels of other makers in turns with Tenon's: who times what, and how they take turns.

A runner has `time(calls)`, seconds of one call. Peers whose packages would not live in one interpreter with Tenon's are programs of
their own (peer_*.py, run by the interpreter of their environment): they build or tune what their arguments say, print a line of JSON,
and then answer each line, a number of calls, with seconds.
"""

import json
import statistics
import subprocess
import sys
import time

import numpy as np


def aligned(shape, dtype):
    """Zeros where vectors begin: some kernels ask for it."""
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + count].view(dtype).reshape(shape)


class InProcess:
    """A function without arguments."""

    def __init__(self, call):
        self.call = call

    def time(self, calls):
        call = self.call
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - start) / calls

    def close(self):
        pass


class Child:
    """A program that answers (serve)."""

    def __init__(self, command, env=None):
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        # Libraries of peers talk; what is for us begins with a brace.
        line = self.process.stdout.readline()
        while line and not line.startswith("{"):
            line = self.process.stdout.readline()
        if not line:
            message = self.process.stderr.read().strip().splitlines()
            raise RuntimeError(message[-1] if message else "it ended without a word")
        self.about = json.loads(line)

    def time(self, calls):
        self.process.stdin.write(f"{calls}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def serve(call, about):
    """The other side of Child, until its input ends."""
    call()
    print(json.dumps(about), flush=True)
    runner = InProcess(call)
    for line in sys.stdin:
        print(repr(runner.time(int(line))), flush=True)


def race(runners, pairs=100, seconds=2.0, burst=0.5e-3):
    """Seconds of one call of each, and the first one's advantage: the medians of the others' times over its, of rounds in which all
    take turns, the order changing."""
    calls = [max(1, int(burst / max(min(r.time(1) for _ in range(3)), 1e-9))) for r in runners]
    times = [[] for _ in runners]
    start = time.perf_counter()
    for turn in range(pairs):
        order = range(len(runners)) if turn % 2 == 0 else reversed(range(len(runners)))
        for i in order:
            times[i].append(runners[i].time(calls[i]))
        if turn >= 10 and time.perf_counter() - start > seconds:
            break
    ratios = [statistics.median(t / first for t, first in zip(of, times[0])) for of in times]
    return [statistics.median(t) for t in times], ratios

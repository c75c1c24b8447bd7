"""Traces of sessions, as chrome://tracing and Perfetto read them."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from typing import Any, Iterator


class Profile:
    """Events since it was made; thread-safe. `start_ns` is when that was, since the epoch."""

    def __init__(self, prefix: str):
        self.start_ns = time.time_ns()
        self._start = time.monotonic_ns()  # what events are counted from: no clock that is set
        self._is_over = False
        self._events: list = []
        stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
        self._path = f"{prefix}_{stamp}_{time.time_ns() // 1000 % 1000:03d}.json"

    @contextlib.contextmanager
    def span(self, name: str) -> Iterator[None]:
        """What happens inside is one event, also where it fails."""
        begin = time.monotonic_ns()
        try:
            yield
        finally:
            self._add("Session", name, (begin - self._start) // 1000, (time.monotonic_ns() - begin) // 1000, {})

    @contextlib.contextmanager
    def kernels(self, form: Any) -> Iterator[None]:
        """What the launches inside take is an event for each place in the code that launches, one after the other. (Where
        threads share a session, what those of all take is in each.)"""
        begin, before = time.monotonic_ns(), form.launch_times()
        yield
        for launch, (launches, took) in zip(form.launches, form.launch_times() - before):
            if launches == 0:
                continue
            args = {"kernel": launch["kernel"], "launches": int(launches)}
            self._add("Node", launch["node"], (begin - self._start) / 1000, int(took) / 1000, args)
            begin += int(took)

    def _add(self, category: str, name: str, begin: float, took: float, args: dict) -> None:
        """In microseconds, from the start on."""
        event = {"cat": category, "pid": os.getpid(), "tid": threading.get_native_id(), "ph": "X", "name": name}
        self._events.append(event | {"ts": begin, "dur": took, "args": args})

    def end(self) -> str:
        """Writes the file and returns its path; "" where that has been done."""
        if self._is_over:
            return ""
        self._is_over = True
        with open(self._path, "w", encoding="utf-8") as file:
            file.write("[\n" + ",\n".join(json.dumps(e) for e in self._events) + "\n]\n")
        return self._path

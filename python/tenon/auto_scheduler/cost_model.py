"""What predicts how long a schedule takes."""

from __future__ import annotations

from typing import Any

__all__ = ["RandomModel", "XGBModel"]


class RandomModel:
    """Predicts nothing: what is tried is drawn."""

    searcher = "random"


class XGBModel:
    """The model of costs, corrected by what is measured (docs/tuning.md): expected improvement decides what is tried. What
    there is of it in a file is a log: load and update take one."""

    searcher = "improvement"

    def __init__(self, verbose_eval: int = 25, num_warmup_sample: int = 100, seed: int | None = None, model_file: str | None = None, adapative_training: bool = False):
        self.seed, self.files = seed, [] if model_file is None else [model_file]

    def load(self, file_name: str) -> None:
        self.files.append(file_name)

    update_from_file = load

    def save(self, file_name: str) -> None:
        raise NotImplementedError("XGBModel.save: what the model knows is the log; RecordToFile writes it")

    def update(self, inputs: Any, results: Any) -> None:
        raise NotImplementedError("XGBModel.update: what is measured is learned by itself; load takes a log")

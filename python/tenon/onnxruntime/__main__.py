"""python -m tenon.onnxruntime PROGRAM.py [ARGUMENT …], or -m MODULE [ARGUMENT …]: runs it with Tenon as its onnxruntime."""

import runpy
import sys

from . import register


def main() -> None:
    arguments = sys.argv[1:]
    is_module = arguments[:1] == ["-m"]
    if not arguments[is_module:]:
        sys.exit(__doc__)
    register()
    sys.argv = arguments[is_module:]
    if is_module:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


main()

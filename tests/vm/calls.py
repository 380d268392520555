#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the guest's checks do that a shell cannot, or not fast enough: calls.py
COMMAND ARGUMENTS, one function below a command."""

import os
import sys


def pattern(mib):
    """MIB MiB whose every 8 bytes hold the number of their page."""
    chunk = bytearray(1 << 20)  # one for all: a page fault is slow in a guest
    page = 0
    for _ in range(int(mib)):
        for at in range(0, len(chunk), 4096):
            page += 1
            chunk[at:at + 4096] = page.to_bytes(8, "little") * 512
        sys.stdout.buffer.write(chunk)


def churn(directory, times):
    """Make, write, rename, list and remove small files."""
    os.chdir(directory)
    for i in range(int(times)):
        with open(f"new{i}", "w") as f:
            f.write(f"{i}\n" * 50)
        os.rename(f"new{i}", f"name{i % 100}")
        if i % 100 == 99:
            names = sorted(os.listdir("."))
            for n in [n for n in names if n.startswith("name")]:
                os.unlink(n)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

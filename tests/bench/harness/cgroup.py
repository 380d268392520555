# SPDX-License-Identifier: Apache-2.0
"""A memory cgroup for one server, of version 1 or 2, whichever is there."""
import os
import time
from pathlib import Path

V1 = Path('/sys/fs/cgroup/memory')
V2 = (Path('/sys/fs/cgroup/unified'), Path('/sys/fs/cgroup'))


def _v2_root():
    for p in V2:
        f = p / 'cgroup.controllers'
        if f.exists() and 'memory' in f.read_text().split():
            return p
    return None


def memory_limit():
    """Bytes this process may use: its own cgroup's limit, or the machine's."""
    total = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    for line in Path('/proc/self/cgroup').read_text().splitlines():
        _, controllers, path = line.split(':', 2)
        if controllers == 'memory':
            f = Path(f'{V1}{path}/memory.limit_in_bytes')
        elif controllers == '' and _v2_root():
            f = Path(f'{_v2_root()}{path}/memory.max')
        else:
            continue
        try:
            text = f.read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            total = min(total, int(text))
    return total


class Cgroup:
    """Made without a limit; limits come and go with the workloads."""

    def __init__(self, path, v1):
        self._path = path
        self._v1 = v1

    @classmethod
    def make(cls, name):
        """None where there is no right to."""
        if (V1 / 'memory.limit_in_bytes').exists() or V1.is_dir():
            root, v1 = V1, True
        else:
            root, v1 = _v2_root(), False
        if root is None:
            return None
        path = root / name
        try:
            if not v1:
                (root / 'cgroup.subtree_control').write_text('+memory')
            path.mkdir(exist_ok=True)
        except OSError:
            return None
        return cls(path, v1)

    def add(self, pid):
        (self._path / 'cgroup.procs').write_text(str(pid))

    def _file(self, v1, v2):
        return self._path / (v1 if self._v1 else v2)

    def limit(self, size):
        """None: no limit. The cache that is above it goes first."""
        f = self._file('memory.limit_in_bytes', 'memory.max')
        if size is None:
            f.write_text('-1' if self._v1 else 'max')
            return
        if self._v1:
            for _ in range(20):
                try:
                    f.write_text(str(size))
                    return
                except OSError:
                    time.sleep(0.2)
        f.write_text(str(size))

    def usage_mib(self):
        f = self._file('memory.usage_in_bytes', 'memory.current')
        return int(f.read_text()) / (1 << 20)

    def levels(self):
        """Page cache that is charged to it and what of that is dirty or on
        its way to the device, MiB."""
        keys = {'cache': 'cache', 'dirty': 'dirty', 'writeback': 'dirty'} \
            if self._v1 else {'file': 'cache', 'file_dirty': 'dirty',
                              'file_writeback': 'dirty'}
        out = {'cache': 0, 'dirty': 0}
        for line in (self._path / 'memory.stat').read_text().splitlines():
            k, v = line.split()
            if k in keys:
                out[keys[k]] += int(v) / (1 << 20)
        return out

    def close(self):
        try:
            self._path.rmdir()
        except OSError:
            pass

# SPDX-License-Identifier: Apache-2.0
"""What is read around a run: CPU time, memory, the machine's description; and
what is sampled each second while it goes."""
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

TICK = os.sysconf('SC_CLK_TCK')
PF_KTHREAD = 0x00200000
MEMINFO = ('MemTotal', 'MemFree', 'MemAvailable', 'Cached', 'Dirty',
           'Writeback', 'Active(file)', 'Inactive(file)', 'Slab')


def meminfo():
    """In MiB."""
    out = {}
    for line in Path('/proc/meminfo').read_text().splitlines():
        key, value = line.split(':')
        if key in MEMINFO:
            out[key] = int(value.split()[0]) / 1024
    return out


def _stat_fields(pid):
    text = Path(f'/proc/{pid}/stat').read_text()
    return text[text.rindex(')') + 2:].split()


def process_cpu(pid):
    """User and system seconds of a process, all threads that it has or had."""
    f = _stat_fields(pid)
    return (int(f[11]) + int(f[12])) / TICK


def rss_mib(pid):
    for line in Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('VmRSS'):
            return int(line.split()[1]) / 1024
    return 0


def machine_cpu():
    """Busy seconds of all cores: not idle, not waiting, not stolen."""
    with open('/proc/stat', encoding='ascii') as f:
        v = [int(x) for x in f.readline().split()[1:]]
    return (v[0] + v[1] + v[2] + v[5] + v[6]) / TICK


def others_cpu(ours):
    """Seconds by user processes that have nothing to do with the run: neither
    ours (the servers and this process) nor kernel threads. With children that
    they have waited for."""
    total = 0
    for entry in os.listdir('/proc'):
        if not entry.isdigit() or int(entry) in ours:
            continue
        try:
            f = _stat_fields(entry)
        except (OSError, ValueError):
            continue
        if not int(f[6]) & PF_KTHREAD and int(f[1]) not in ours:
            total += sum(int(x) for x in f[11:15]) / TICK
    return total


class Cpu:
    """Seconds between two points: of the machine, of the server's process, of
    the clients (children of this process that have ended), of this process,
    and of what else ran. whole = machine - clients - others: the server with
    the kernel's write-back, loop and network threads."""

    def __init__(self, servers, pid, running=()):
        """running: clients that were there before and stay."""
        self._ours = {os.getpid(), *servers}
        self._pid, self._running = pid, running
        self._start = self._sample()

    def _sample(self):
        t = os.times()
        return {'wall': time.monotonic(), 'machine': machine_cpu(),
                'server': process_cpu(self._pid) if self._pid else None,
                'clients': t.children_user + t.children_system +
                sum(process_cpu(p) for p in self._running),
                'harness': t.user + t.system,
                'others': others_cpu(self._ours)}

    def stop(self):
        end = self._sample()
        d = {k: None if end[k] is None else end[k] - self._start[k]
             for k in end}
        d['others'] = max(0, d['others'])
        d['whole'] = max(0, d['machine'] - d['clients'] - d['harness']
                         - d['others'])
        return d


class Sampler:
    """Once a second: memory of the machine, of the server, of its cgroup;
    vmstat and iostat into files of their own, where they are installed."""

    def __init__(self, directory, device):
        self._dir = directory
        self._device = device
        self._rows = []
        self._peaks = self._base = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = None
        self._children = []
        self.watch = None  # a server

    def start(self):
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()
        self._child('vmstat', '-n', '-t', '1')
        if self._device is not None:
            self._child('iostat', '-x', '-d', '-t', '1', self._device.name)

    def _child(self, *args):
        if shutil.which(args[0]) is None:
            return
        # Ended by us only; its CPU must not count as a client's.
        with open(self._dir / f'{args[0]}.txt', 'w', encoding='utf-8') as f:
            self._children.append(subprocess.Popen(
                args, stdout=f, stderr=subprocess.DEVNULL,
                start_new_session=True))

    def _loop(self):
        """Peaks are looked for ten times a second, rows kept once."""
        second = int(time.time())
        while not self._stop.wait(0.1):
            self._see_peaks()
            if int(time.time()) != second:
                second = int(time.time())
                self._rows.append(self.sample())

    def _levels(self):
        """Page cache and what of it is dirty, MiB: the server's, where it has
        a cgroup, so that nothing else that runs is seen; or the machine's."""
        if self.watch is not None and self.watch.cgroup is not None:
            return self.watch.cgroup.levels()
        m = meminfo()
        return {'cache': m['Cached'], 'dirty': m['Dirty'] + m['Writeback']}

    def _see_peaks(self):
        try:
            levels = self._levels()
        except OSError:
            return
        with self._lock:
            for k, v in levels.items():
                self._peaks[k] = max(v, self._peaks.get(k, 0))

    def reset_peaks(self):
        self._base = self._levels()
        with self._lock:
            self._peaks = dict(self._base)

    def peaks(self):
        """The most that each grew since reset_peaks()."""
        self._see_peaks()
        with self._lock:
            return {k: v - self._base[k] for k, v in self._peaks.items()}

    def sample(self):
        row = {'time': time.time(), **meminfo()}
        server = self.watch
        if server is not None and server.pid:
            try:
                row['server_rss'] = rss_mib(server.pid)
            except OSError:
                pass
            if server.cgroup is not None:
                row['cgroup'] = server.cgroup.usage_mib()
        return row

    def since(self, start):
        return [r for r in self._rows if r['time'] >= start]

    def stop(self):
        self._stop.set()
        if self._thread:
            self._thread.join()
        for c in self._children:
            c.terminate()
            c.wait()
        return self._rows


def system():
    """The machine, for whoever reads the figures later."""
    def read(path):
        try:
            return Path(path).read_text().strip()
        except OSError:
            return None
    cpus = [line.split(':')[1].strip()
            for line in (read('/proc/cpuinfo') or '').splitlines()
            if line.startswith('model name')]
    return {'kernel': ' '.join(os.uname()), 'cpus': len(cpus),
            'cpu_model': cpus[0] if cpus else None,
            'memory_mib': meminfo()['MemTotal'],
            'os': read('/etc/os-release'), 'cmdline': read('/proc/cmdline'),
            'dirty_ratio': read('/proc/sys/vm/dirty_ratio'),
            'dirty_background_ratio':
                read('/proc/sys/vm/dirty_background_ratio'),
            'loadavg': read('/proc/loadavg'),
            'date': time.strftime('%Y-%m-%dT%H:%M:%S%z')}

# SPDX-License-Identifier: Apache-2.0
"""Carries points out: the rounds, interleaved server by server, and what is
read around each run. A record is one run of one point against one server."""
import json
import subprocess
import sys
import time
from pathlib import Path

from . import measure
from .stats import difference, figure_text
from .figures import figures


def say(text):
    print(text, file=sys.stderr, flush=True)


class Runner:
    def __init__(self, build, storage, servers, out, work):
        self.bin = Path(build) / 'tests/bench'
        self.storage, self.servers = storage, servers
        self.out, self.work = out, work
        self.sampler = measure.Sampler(out, storage.device)
        self.failed = 0
        self.serial = 0

    def run(self, points, rounds):
        """Every round has every point on every server in turn."""
        todo = [(r, p, s) for r in range(rounds) for p in points
                for s in self.servers if s.kind in p.kinds]
        self.sampler.start()
        started = time.monotonic()
        try:
            for i, (r, point, server) in enumerate(todo):
                self._progress(i, len(todo), started, point, server)
                self._keep(self.one(r, point, server))
        finally:
            rows = self.sampler.stop()
            (self.out / 'memory.json').write_text(json.dumps(rows))

    def _progress(self, i, n, started, point, server):
        left = ''
        if i:
            s = (time.monotonic() - started) / i * (n - i)
            left = f', about {int(s) // 60}:{int(s) % 60:02d} left'
        say(f'[{i + 1}/{n}{left}] {point.key} {server.name}')

    def _keep(self, record):
        f = record['figures']
        if not record['good']:
            self.failed += 1
            say(f'    FAILED: {record["error"]}')
        else:
            say('    ' + ', '.join(f'{k} {figure_text(f[k])}' for k in
                                   ('mib_s', 'mib_s_stable', 'calls_s',
                                    'p50_us', 'server_s_gib', 'whole_s_gib',
                                    'server_us_call') if f.get(k)))
        with open(self.out / 'runs.jsonl', 'a', encoding='utf-8') as out:
            out.write(json.dumps(record) + '\n')

    # One run ------------------------------------------------------------------

    def one(self, r, point, server):
        name = self._file(point)
        record = {'workload': point.workload, 'point': point.key,
                  'server': server.name, 'kind': server.kind, 'round': r,
                  'op': point.op, 'time': time.time()}
        try:
            self._prepare(point, server, name)
            record.update(self._measured(point, server, name))
            if record['good'] and point.op == 'write' and server.mounts:
                record['verified'] = self._read_back(point, server, name, r)
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            record.update(good=False, error=str(error))
        finally:
            if point.cgroup and server.cgroup:
                server.cgroup.limit(None)
            server.after_run()
            if point.op == 'write':
                self._remove(server, name)
        if record['good'] and record.get('verified') is False:
            record.update(good=False, error='what came back is not what was '
                          'written')
        record['figures'] = figures(record) if record['good'] else {}
        return record

    def _file(self, point):
        """Files to be read are laid down once, for all servers; those to be
        written have a name for every run, as servers remember names."""
        if point.op == 'read':
            return f'bench-read-{point.size}'
        self.serial += 1
        return f'bench-write-{self.serial}'

    def _remove(self, server, name):
        """By the server itself, lest it hold on to the blocks."""
        if server.mounts:
            self._load(server, 'remove', name, [])
        elif server.local:
            self.storage.remove(name)

    def _load(self, server, op, name, options):
        args = [self.bin / 'nvnfsd-load', op, *server.target(), '--file', name,
                *options]
        done = subprocess.run([str(a) for a in args], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if not done.stdout:
            raise RuntimeError(done.stderr.strip() or 'no result')
        return json.loads(done.stdout)

    def _layer(self):
        """Who lays files down: the first server that takes names."""
        return next(s for s in self.servers if s.mounts and s.local)

    def _prepare(self, point, server, name):
        if point.op == 'null':
            server.before_run(self.storage, name)
            return
        there = self.storage.directory / name
        if point.op == 'read' or point.rewrite:
            if server.local and not (there.exists() and
                                     there.stat().st_size == point.size):
                self._lay_down(point, name)
            if server.local:
                self.storage.forget(name)
        server.before_run(self.storage, name)
        if point.cgroup and server.cgroup:
            server.cgroup.limit(point.cgroup)

    def _lay_down(self, point, name):
        got = self._load(self._layer(), 'write', name,
                         ['--size', str(point.size), '--in-flight', '8',
                          '--truncate'])
        if not got['good']:
            raise RuntimeError(f'laying {name} down: {got.get("error")}')

    def _command(self, point, server, name):
        if server.kind == 'local':
            return [self.bin / 'nvnfsd-local', '--size', point.size,
                    '--records', point.records, '--writers', point.writers,
                    *point.local, self.storage.directory / name]
        args = [self.bin / 'nvnfsd-load', point.op, *server.target(),
                '--file', name, *point.load_options()]
        if point.op == 'write' and server.local and server.kind != 'sink':
            args += ['--syncfs', self.storage.directory]
        if server.kind == 'sink':
            args += ['--no-verify']
        return args

    def _measured(self, point, server, name):
        """The run itself, its clock and counters around nothing else."""
        args = [str(a) for a in self._command(point, server, name)]
        pids = [s.pid for s in self.servers if s.pid]
        subprocess.run(['sync', '-f', str(self.storage.directory)],
                       check=True)
        self.sampler.watch = server
        device = self.storage.counters()
        self.sampler.reset_peaks()
        start = time.time()
        cpu = measure.Cpu(pids, server.pid)
        done = subprocess.run(args, check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        seconds = cpu.stop()
        after = self.storage.counters()
        peaks = self.sampler.peaks()
        if not done.stdout:
            raise RuntimeError(done.stderr.strip() or 'no result')
        load = json.loads(done.stdout)
        there = self.storage.directory / name
        return {
            'good': load['good'] and done.returncode == 0,
            'error': load.get('error', 'bytes differ'), 'load': load,
            'cpu': seconds, 'device': difference(after, device),
            'resident': self.storage.resident(name)
            if server.local and there.exists() else None,
            'cache_growth_mib': peaks['cache'], 'dirty_peak_mib':
            peaks['dirty'], 'command': args, 'began': start}

    def _read_back(self, point, server, name, r):
        """Cold, every byte; once a point and server, as nothing of it
        depends on the round."""
        if r > 0:
            return None
        if server.local:
            self.storage.forget(name)
        record = point.records if point.records <= 1 << 20 else 1 << 20
        if point.size % record:
            record = 1 << 20
        got = self._load(server, 'read', name,
                         ['--size', str(point.size), '--records', str(record),
                          '--in-flight', '8'])
        return got['good'] and got['bytes'] == point.size

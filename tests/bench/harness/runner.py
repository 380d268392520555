# SPDX-License-Identifier: Apache-2.0
"""Carries points out: the rounds, interleaved server by server, and what is
read around each run. A record is one run of one point against one server."""
import json
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

from . import measure
from .clients import Clients, Skip
from .figures import figures
from .perf import Perf
from .stats import difference, figure_text

BESIDE_FIRST = 0.5  # seconds that what runs beside has before the run
SHOWN = ('mib_s', 'mib_s_stable', 'calls_s', 'entries_s', 'p50_us', 'p99_us',
         'server_s_gib', 'whole_s_gib', 'server_us_call', 'rss_kib_conn')


def say(text):
    print(text, file=sys.stderr, flush=True)


def reason(load):
    """Why a run is not good, if it is not."""
    for part in (load, *load.get('beside', [])):
        if not part.get('good', True):
            return part.get('error', 'bytes differ')
    return 'the client failed'


class Runner:
    def __init__(self, build, storage, servers, out, work):
        self.clients = Clients(build, storage, work)
        self.storage, self.servers = storage, servers
        self.out, self.work = out, work
        self.sampler = measure.Sampler(out, storage.device)
        self.failed = 0
        self.serial = 0
        self.perf = Perf(out)
        self.laid = set()  # on others' storage

    def run(self, points, rounds):
        """Every round has every point on every server in turn."""
        todo = [(r, p, s) for r in range(rounds) for p in points
                for s in self.servers if s.takes(p)]
        self.sampler.start()
        started = time.monotonic()
        try:
            for i, (r, point, server) in enumerate(todo):
                self._progress(i, len(todo), started, point, server)
                self._keep(self.one(r, point, server))
        finally:
            rows = self.sampler.stop()
            (self.out / 'memory.json').write_text(json.dumps(rows))
            for server, name in self.laid:
                self.clients.load(server, 'remove', name)
            self.clients.close()

    def _progress(self, i, n, started, point, server):
        left = ''
        if i:
            s = (time.monotonic() - started) / i * (n - i)
            left = f', about {int(s) // 60}:{int(s) % 60:02d} left'
        say(f'[{i + 1}/{n}{left}] {point.key} {server.name}')

    def _keep(self, record):
        if 'skipped' in record:
            say(f'    skipped: {record["skipped"]}')
        elif not record['good']:
            self.failed += 1
            say(f'    FAILED: {record["error"]}')
        else:
            f = record['figures']
            say('    ' + ', '.join(f'{k} {figure_text(f[k])}' for k in SHOWN
                                   if f.get(k)))
        with open(self.out / 'runs.jsonl', 'a', encoding='utf-8') as out:
            out.write(json.dumps(record) + '\n')

    # One run ------------------------------------------------------------------

    def one(self, r, point, server):
        name = self._file(point, server)
        names = [name] + [self._fresh() for _ in point.beside]
        record = {'workload': point.workload, 'point': point.key,
                  'server': server.name, 'kind': server.kind, 'round': r,
                  'op': point.op, 'time': time.time(), 'good': False}
        try:
            self._prepare(point, server, names)
            record.update(self._measured(point, server, names))
            if record['good']:
                record['verified'] = self._verified(point, server, name, r)
        except Skip as why:
            record['skipped'] = str(why)
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            record.update(good=False, error=str(error))
        finally:
            self._after(point, server, names)
        if record.get('verified') is False:
            record.update(good=False, error='what came back is not what was '
                          'written')
        record['figures'] = figures(record) if record['good'] else {}
        return record

    def _file(self, point, server):
        """Files to be read are laid down once, for all servers; those to be
        written have a name for every run, as servers remember names."""
        if point.op == 'read':
            return f'bench-read-{point.size}'
        if point.client == 'meta':
            return f'bench-meta-{point.entries}' if point.action == 'list' \
                else f'bench-meta-{server.label}'
        return self._fresh()

    def _fresh(self):
        self.serial += 1
        return f'bench-write-{self.serial}'

    # Before -------------------------------------------------------------------

    def _owner(self, server, name):
        """Who lays a file down, and removes it: nobody else must, since
        servers hold on to files that they have seen. What all read is the
        first server's, and what those use that take no names."""
        if server.mounts and not (
                server.local and name.startswith('bench-read-')):
            return server
        return next(s for s in self.servers if s.mounts)

    def _prepare(self, point, server, names):
        if point.client == 'meta' and point.action == 'list' and server.local:
            if not (self.storage.directory / names[0]).exists():
                self.clients.entries_lay_down(names[0], point.entries)
        if point.client in ('load', 'fio') and point.op != 'null':
            self._files(point, server, names[0])
        server.before_run(self.storage, names[0])
        if point.cgroup and server.cgroup:
            server.cgroup.limit(point.cgroup)

    def _files(self, point, server, name):
        """What has to be there before, cold."""
        wanted = []
        if point.op == 'read' or point.rewrite:
            wanted.append(name)
        if point.job == 'noisy':
            wanted.append(f'bench-read-{point.size}')
        for w in wanted:
            there = self.storage.directory / w
            by = self._owner(server, w)
            if not server.local or not (there.exists() and
                                        there.stat().st_size == point.size):
                self._lay_down(by, w, point.size)
            if server.local:
                self.storage.forget(w)

    def _lay_down(self, server, name, size):
        got = self.clients.load(server, 'write', name, '--size', size,
                                '--in-flight', 8, '--truncate')
        if not got['good']:
            raise RuntimeError(f'laying {name} down: {got.get("error")}')
        if not server.local:
            self.laid.add((server, name))

    # The run itself -----------------------------------------------------------

    def _measured(self, point, server, names):
        """The clock and the counters around nothing else."""
        args, env = self.clients.command(point, server, names[0])
        subprocess.run(['sync', '-f', str(self.storage.directory)],
                       check=True)
        self.sampler.watch = server
        self.sampler.reset_peaks()
        beside = self._beside_start(point, server, names[1:])
        device = self.storage.counters()
        start = time.time()
        perf = self.perf.start(f'{point.key}-{server.label}')
        cpu = measure.Cpu([s.pid for s in self.servers if s.pid], server.pid,
                          [b.pid for b in beside])
        done, held = self._go(args, env, point, server)
        self._make_stable(point, server, names[0])
        stable = time.time()
        seconds = cpu.stop()
        peaks = self.sampler.peaks()
        record = {
            'cpu': seconds, 'held': held, 'command': args, 'began': start,
            'device': difference(self.storage.counters(), device),
            'resident': self._resident(point, server, names[0])}
        self.perf.stop(perf)
        load = self.clients.result(point, done, stable)
        if beside:
            load['beside'] = [json.loads(b.communicate()[0]) for b in beside]
        record.update(
            load=load, cache_growth_mib=peaks['cache'],
            dirty_peak_mib=peaks['dirty'], error=reason(load),
            good=load['good'] and done.returncode == 0 and
            all(b['good'] for b in load.get('beside', []) if 'good' in b))
        return record

    def _beside_start(self, point, server, names):
        started = []
        for b, name in zip(point.beside, names):
            args, _ = self.clients.command(b, server, name)
            started.append(subprocess.Popen(args, stdout=subprocess.PIPE,
                                            text=True))
        if started:
            time.sleep(BESIDE_FIRST)
        return started

    def _go(self, args, env, point, server):
        """Run it to its end; what the server used while it was held."""
        held, start = None, time.monotonic()
        base = server.usage() if point.hold else None
        with subprocess.Popen(args, env=env, text=True,
                              stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as p:
            err = []
            if point.hold and server.pid:
                err.append(p.stderr.readline())
                held = self._held(point, server, base)
            # With both pipes read at once neither can fill up.
            reader = threading.Thread(
                target=lambda: err.append(p.stderr.read()))
            reader.start()
            out = p.stdout.read()
            reader.join()
            p.wait()
        return SimpleNamespace(stdout=out, stderr=''.join(err),
                               returncode=p.returncode,
                               seconds=time.monotonic() - start), held

    def _held(self, point, server, base):
        """All connections are up and idle now."""
        first = server.usage()
        time.sleep(point.hold - 1)
        last = server.usage()
        return {'rss_growth_kib': (last['rss'] - base['rss']) * 1024,
                'idle_cores': (last['cpu'] - first['cpu']) /
                (last['time'] - first['time']),
                'connections': point.connections}

    def _make_stable(self, point, server, name):
        """fio has no COMMIT in its clock, and others than nvnfsd-load no
        syncfs."""
        if point.client == 'fio' and point.op == 'write':
            for i in range(point.files):
                n = f'{name}.{i}' if point.files > 1 else name
                if not self.clients.load(server, 'commit', n)['good']:
                    raise RuntimeError('COMMIT failed')
        if point.client in ('fio', 'mount', 'meta') and server.local and \
                point.action != 'list':
            subprocess.run(['sync', '-f', str(self.storage.directory)],
                           check=True)

    def _resident(self, point, server, name):
        there = self.storage.directory / server.place(point.sub, name)
        if server.local and there.is_file():
            return self.storage.resident(there)
        return None

    # After --------------------------------------------------------------------

    def _verified(self, point, server, name, r):
        """Cold, every byte; once a point and server, as nothing of it depends
        on the round. READs are compared as they come."""
        if point.op == 'read' and point.client == 'load':
            return None if server.kind == 'sink' else True
        if point.op != 'write' or point.client != 'load' or r > 0 or \
                not server.mounts:
            return None
        got = []
        for i in range(point.files):
            n = f'{name}.{i}' if point.files > 1 else name
            if server.local:
                self.storage.forget(server.place(point.sub, n))
            got.append(self.clients.load(
                server, 'read', n, '--size', point.size, '--records', 1 << 20,
                '--in-flight', 4, *server.sub_options(point.sub)))
        return all(g['good'] and g['bytes'] == point.size for g in got)

    def _after(self, point, server, names):
        if point.cgroup and server.cgroup:
            server.cgroup.limit(None)
        server.after_run()
        if point.client in ('meta', 'mount') or point.op == 'null':
            return
        if point.op == 'write':
            self._remove(server, names[0], point)
        for b, name in zip(point.beside, names[1:]):
            self._remove(server, name, b)

    def _remove(self, server, name, point):
        """By the server itself, lest it hold on to the blocks."""
        if server.mounts or point.rewrite:
            owner = self._owner(server, name)
            self.clients.load(owner, 'remove', name, '--files', point.files,
                              *owner.sub_options(point.sub))
        elif server.local:
            self.storage.remove(name)

# SPDX-License-Identifier: Apache-2.0
"""The clients: what is run for a point, and its result in one form, that of
nvnfsd-load's JSON."""
import json
import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent


class Skip(Exception):
    """This machine cannot run the point; why."""


class Clients:
    def __init__(self, build, storage, work):
        self._bin = Path(build) / 'tests/bench'
        self._storage, self._work = storage, work
        self._fio = None

    def command(self, point, server, name):
        """(arguments, environment or None)"""
        make = {'load': self._load, 'meta': self._meta, 'fio': self._fio_job,
                'mount': self._mount}[point.client]
        if server.kind == 'local' and point.client == 'load':
            make = self._local
        args, env = make(point, server, name)
        return [str(a) for a in args], env

    def result(self, point, done, stable):
        """stable: when all was, in seconds of the epoch, where it is the
        harness that made it so."""
        if point.client == 'mount':
            return timed(point, done)
        text = done.stdout[done.stdout.find('{'):]
        if not text.startswith('{'):
            raise RuntimeError(done.stderr.strip() or 'no result')
        got = json.loads(text)
        return from_fio(got, stable) if point.client == 'fio' else got

    # nvnfsd-load ---------------------------------------------------------------

    def load(self, server, op, name, *options):
        """Any operation, not measured; its result."""
        args = [self._bin / 'nvnfsd-load', op, *server.target(), '--file',
                name, *options]
        done = subprocess.run([str(a) for a in args], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if not done.stdout:
            raise RuntimeError(done.stderr.strip() or 'no result')
        return json.loads(done.stdout)

    def _load(self, point, server, name):
        p = point
        a = [self._bin / 'nvnfsd-load', p.op, *server.target(p.sub), '--file',
             name, '--records', p.records, '--writers', p.writers,
             '--in-flight', p.in_flight, '--connections', p.connections]
        if p.op != 'null':
            a += ['--size', p.size, '--files', p.files]
        if p.op == 'write':
            a += ['--stable', p.stable]
            a += [] if p.rewrite else ['--truncate']
        for option in 'seconds', 'operations', 'split', 'hold':
            if getattr(p, option):
                a += [f'--{option}', getattr(p, option)]
        a += ['--random'] if p.random else []
        if server.kind == 'sink':
            a.append('--no-verify')
        elif p.op == 'write' and server.local:
            a += ['--syncfs', self._storage.directory]
        return a, None

    def _local(self, point, server, name):
        return [self._bin / 'nvnfsd-local', '--size', point.size, '--records',
                point.records, '--writers', point.writers, *point.local,
                self._storage.directory / name], None

    # Names ---------------------------------------------------------------------

    def _meta(self, point, server, name):
        a = [self._bin / 'nvnfsd-meta', point.action, '--dir', name,
             '--entries', point.entries]
        if server.kind == 'local':
            return a + ['--local', self._storage.directory], None
        return a + [x for x in server.target() if x != '--raw'], None

    def entries_lay_down(self, name, entries):
        subprocess.run([str(self._bin / 'nvnfsd-meta'), 'create', '--dir',
                        name, '--entries', str(entries), '--local',
                        str(self._storage.directory)], check=True,
                       stdout=subprocess.DEVNULL)

    def _mount(self, point, server, name):
        """rsync -a or tar x of a tree of small files into a new directory,
        through this kernel's NFS client."""
        if shutil.which(point.action) is None:
            raise Skip(f'{point.action} is not installed')
        tree = self._tree(point.entries)
        into = self._storage.directory
        if server.kind != 'local':
            into = self._mounted(server)
        to = into / name
        if point.action == 'rsync':
            return ['rsync', '-a', f'{tree}/', f'{to}/'], None
        return ['sh', '-c', 'mkdir "$1" && tar xf "$2" -C "$1"', 'sh', to,
                f'{tree}.tar'], None

    def _tree(self, files):
        tree = self._work / f'tree-{files}'
        if not tree.exists():
            for i in range(files):
                d = tree / f'd{i % 50}'
                d.mkdir(parents=True, exist_ok=True)
                (d / f'f{i}').write_bytes(b'x' * (i % 8192))
            subprocess.run(['tar', 'cf', f'{tree}.tar', '-C', str(tree), '.'],
                           check=True)
        return tree

    def _mounted(self, server):
        kinds = Path('/proc/filesystems').read_text().split()
        if 'nfs' not in kinds or shutil.which('mount.nfs') is None:
            raise Skip('no NFS client in this kernel, or no mount.nfs')
        at = self._work / f'mnt-{server.label}'
        if not at.is_mount():
            at.mkdir(exist_ok=True)
            subprocess.run(
                ['mount', '-t', 'nfs', '-o', f'vers=3,proto=tcp,nolock,port='
                 f'{server.port},mountport={server.mount_port}',
                 f'{server.address}:{server.export}', str(at)], check=True)
        return at

    def close(self):
        for at in self._work.glob('mnt-*'):
            if at.is_mount():
                subprocess.run(['umount', str(at)], check=False)

    # fio -----------------------------------------------------------------------

    def fio(self):
        if self._fio is None:
            got = subprocess.run([str(HERE / 'get-fio')], check=False,
                                 text=True, stdout=subprocess.PIPE)
            self._fio = got.stdout.strip()
        if not self._fio:
            raise Skip('no fio with the nfs engine')
        return self._fio

    def _fio_job(self, point, server, name):
        env = dict(os.environ, NFS_URL=server.url(), FILE=name,
                   SIZE=str(point.size), PART=str(point.size // 16),
                   READ_FILE=f'bench-read-{point.size}',
                   SECONDS=str(point.seconds), THREADS='16')
        return [self.fio(), '--output-format=json',
                '--eta=never', f'--aux-path={self._work}',
                HERE / 'fio/modes' / f'{point.job}.fio'], env


def timed(point, done):
    """A command that has only its time."""
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-200:])
    s = done.seconds
    return {'op': 'mount', 'good': True, 'bytes': 0,
            'operations': point.entries, 'seconds': s,
            'seconds_to_stable': s, 'calls_s': point.entries / s,
            'entries_s': point.entries / s}


def fio_side(jobs, side):
    """All jobs' writes or reads as one."""
    parts = [j[side] for j in jobs if j[side]['total_ios']]
    if not parts:
        return None
    most = max(parts, key=lambda s: s['total_ios'])
    seconds = max(s['runtime'] for s in parts) / 1000
    count = sum(s['io_bytes'] for s in parts)
    ios = sum(s['total_ios'] for s in parts)
    at = most['clat_ns'].get('percentile', {})

    def us(q):
        return at.get(q, 0) / 1000
    return {'bytes': count, 'operations': ios, 'seconds': seconds,
            'mib_s': count / 1048576 / seconds if seconds else 0,
            'calls_s': ios / seconds if seconds else 0,
            'latency_us': {'mean': most['clat_ns']['mean'] / 1000,
                           'p50': us('50.000000'), 'p99': us('99.000000'),
                           'p99_9': us('99.900000'),
                           'p99_99': us('99.990000')}}


def from_fio(got, stable):
    """fio's JSON in the form of nvnfsd-load's. The reads beside a writer
    stand by themselves, as beside. The engine's own COMMIT, at close, is after
    the jobs' clocks have stopped; from their start to stable it is in."""
    jobs = [j for j in got['jobs'] if not j['jobname'].startswith('lay-')]
    writes, reads = fio_side(jobs, 'write'), fio_side(jobs, 'read')
    main = writes or reads
    if main is None:
        raise RuntimeError('fio did nothing')
    begun = min(j['job_start'] for j in jobs if j['job_start']) / 1000
    stable = max(main['seconds'], stable - begun)
    main.update(op='write' if writes else 'read', seconds_to_stable=stable,
                good=all(j['error'] == 0 for j in got['jobs']),
                mib_s_to_stable=main['bytes'] / 1048576 / stable)
    if writes and reads:
        main['beside'] = [reads]
    return main

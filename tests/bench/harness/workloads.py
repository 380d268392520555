# SPDX-License-Identifier: Apache-2.0
"""The workloads: each a list of points, each point one way to load one server.

A point is pure description; runner.py carries it out. Sizes follow from the
run's size, so that a tiny run is the same run."""
from dataclasses import dataclass, field

MIB = 1 << 20


@dataclass
class Point:
    workload: str
    name: str
    op: str                      # write, read, null
    size: int = 0                # of the file
    records: int = MIB
    in_flight: int = 1           # of each writer
    writers: int = 1
    connections: int = 1
    stable: str = 'unstable'
    options: list = field(default_factory=list)
    rewrite: bool = False        # the file is there, cold
    seconds: int = 0
    operations: int = 0
    cgroup: int = 0              # memory the server may use
    kinds: tuple = ('nvnfsd', 'ganesha', 'remote')
    local: list = field(default_factory=list)  # options of nvnfsd-local
    split: str = ''

    @property
    def key(self):
        return f'{self.workload}/{self.name}' if self.name else self.workload

    def load_options(self):
        """Of nvnfsd-load, beside the server and the file."""
        o = ['--records', str(self.records), '--writers', str(self.writers),
             '--in-flight', str(self.in_flight), '--connections',
             str(self.connections), *self.options]
        if self.op != 'null':
            o += ['--size', str(self.size)]
        if self.op == 'write':
            o += ['--stable', self.stable]
            if not self.rewrite:
                o += ['--truncate']
        if self.seconds:
            o += ['--seconds', str(self.seconds)]
        if self.operations:
            o += ['--operations', str(self.operations)]
        if self.split:
            o += ['--split', self.split]
        return o


SERVERS = ('nvnfsd', 'ganesha', 'remote')
WITH_RELAY = SERVERS + ('relay',)
LIMITS = SERVERS + ('relay', 'sink')


def whole(size, record, most=None):
    """A size of whole records."""
    size = min(size, most or size)
    return max(1, size // record) * record


def null(p):
    return [Point('null', '', 'null', in_flight=64, seconds=p.seconds(4),
                  kinds=SERVERS + ('sink',))]


def seq_write(p):
    return [Point('seq-write', '', 'write', size=p.size, in_flight=16,
                  kinds=LIMITS)]


def seq_read(p):
    return [Point('seq-read', '', 'read', size=p.size, in_flight=16,
                  kinds=LIMITS)]


def rand_write(p):
    """Fresh: records fill holes. Rewrite: the blocks are all there."""
    base = dict(size=p.size, records=64 << 10, in_flight=16,
                options=['--random'], kinds=WITH_RELAY)
    return [Point('rand-write', 'fresh', 'write', **base),
            Point('rand-write', 'rewrite', 'write', rewrite=True, **base)]


def rand_read(p):
    """In a cgroup a quarter of the file, if that holds the server at all."""
    return [Point('rand-read', '', 'read', size=p.size, records=4096,
                  in_flight=16, seconds=p.seconds(6),
                  cgroup=max(p.size // 4, 384 * MIB) if p.cgroups else 0,
                  options=['--random'], kinds=WITH_RELAY)]


def shared_page(p):
    points = []
    for record, most in ((47008, 256), (6000, 64), (49152, 256)):
        for stable in 'file', 'unstable':
            cut = 16 if record == 6000 and stable == 'file' else most
            points.append(Point(
                'shared-page', f'{record}-{stable}', 'write',
                size=whole(p.size, record * 32, cut * MIB), records=record,
                writers=32, connections=4, stable=stable, kinds=SERVERS))
    return points


def sync(p):
    """One in flight: latency. With what it cannot be less than: a local
    pwrite and fsync of the same record, and a NULL."""
    count = p.count(1000)
    points = [Point('sync', f'{record}', 'write', size=record * count,
                    records=record, stable='file',
                    kinds=SERVERS + ('local',), local=['--fsync'])
              for record in (4096, 47008)]
    return points + [Point('sync', 'null', 'null', operations=p.count(20000),
                           kinds=SERVERS + ('sink',))]


WORKLOADS = {
    'null': (null, 'NULL calls, 64 in flight on one connection'),
    'seq-write': (seq_write, '1 MiB WRITEs in sequence, 16 in flight'),
    'seq-read': (seq_read, '1 MiB READs in sequence, 16 in flight'),
    'rand-write': (rand_write, '64 KiB WRITEs in random order, 16 in flight'),
    'rand-read': (rand_read, '4 KiB READs in random order, 16 in flight, '
                  'server in a small memory cgroup'),
    'shared-page': (shared_page, 'interleaved records that end inside a page,'
                    ' 32 writers'),
    'sync': (sync, 'one FILE_SYNC WRITE at a time: latency'),
}


@dataclass
class Plan:
    """What the workloads scale with."""
    size: int
    small: bool = False
    cgroups: bool = True

    def seconds(self, n):
        return 1 if self.small else n

    def count(self, n):
        return max(20, n // 20) if self.small else n

    def points(self, names):
        return [p for n in names for p in WORKLOADS[n][0](self)]

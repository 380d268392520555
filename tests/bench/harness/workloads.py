# SPDX-License-Identifier: Apache-2.0
"""The workloads: each a list of points, each point one way to load one server.

A point is pure description; clients.py makes commands of it and runner.py
carries it out. Sizes follow from the run's size, so that a tiny run is the
same run."""
from dataclasses import dataclass, field
from fnmatch import fnmatch

MIB = 1 << 20
SERVERS = ('nvnfsd', 'ganesha', 'remote')
WITH_RELAY = SERVERS + ('relay',)
LIMITS = SERVERS + ('relay', 'sink')
WITH_LOCAL = SERVERS + ('local',)
# Variants of nvnfsd: '' is its default modes.
MODES = ('', 'w-dontcache', 'w-buffered')
WRITE_MODES = ('w-direct', 'w-dontcache', 'w-buffered', 'w-auto')
READ_MODES = ('', 'r-dontcache', 'r-buffered')
EDGES = ('', 'e-dontcache', 'e-buffered', 'w-dontcache', 'w-buffered')


@dataclass
class Point:
    workload: str
    name: str
    op: str                      # write, read, null, meta
    size: int = 0                # of the file, of each
    records: int = MIB
    in_flight: int = 1           # of each writer
    writers: int = 1
    connections: int = 1
    files: int = 1
    stable: str = 'unstable'
    random: bool = False
    rewrite: bool = False        # the file is there, cold
    split: str = ''              # of nvnfsd-load
    seconds: int = 0             # over and over for so long
    operations: int = 0
    hold: int = 0                # seconds of doing nothing, measured
    cgroup: int = 0              # memory the server may use
    kinds: tuple = SERVERS
    variants: tuple = ('',)
    client: str = 'load'         # load, local, meta, fio, mount
    local: tuple = ()            # further options of nvnfsd-local
    action: str = ''             # of meta, mount: what to do
    entries: int = 0
    job: str = ''                # of fio
    sub: str = ''                # an export of its own, where there is one
    beside: tuple = ()           # points that run meanwhile

    @property
    def key(self):
        return f'{self.workload}/{self.name}' if self.name else self.workload

    @property
    def total(self):
        return self.size * self.files


def whole(size, record, most=None):
    """A size of whole records."""
    size = min(size, most or size)
    return max(1, size // record) * record


def cgroup_of(p, size):
    """A quarter of size, if that holds a server at all."""
    return max(size // 4, 384 * MIB) if p.cgroups else 0


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
    base = dict(size=p.size, records=64 << 10, in_flight=16, random=True,
                kinds=WITH_RELAY)
    return [Point('rand-write', 'fresh', 'write', **base),
            Point('rand-write', 'rewrite', 'write', rewrite=True, **base)]


def rand_read(p):
    return [Point('rand-read', '', 'read', size=p.size, records=4096,
                  in_flight=16, seconds=p.seconds(6), random=True,
                  cgroup=cgroup_of(p, p.size), kinds=WITH_RELAY)]


def shared_page(p):
    """One FILE_SYNC WRITE, two after each other, two together, UNSTABLE and
    COMMIT; into a fresh file and over a cold one. 49,152 is the control: its
    records end with a page, so that there is nothing to cut. What is cut
    meets every policy for its edges, and the modes without edges."""
    points = []
    for record in 47008, 6000, 49152:
        hows = [('file', ''), ('unstable', '')]
        if record % 4096:
            hows += [('file', 'after'), ('file', 'together')]
        for stable, split in hows:
            most = 256 if record > 6000 else 64 if stable != 'file' else 16
            for rewrite in False, True:
                name = '-'.join(x for x in (
                    str(record), stable, split, 'rewrite' if rewrite else '')
                    if x)
                points.append(Point(
                    'shared-page', name, 'write', records=record, writers=32,
                    connections=4, stable=stable, split=split,
                    rewrite=rewrite, variants=EDGES
                    if record == 47008 and not split else ('',),
                    size=whole(p.size, record * 32, most * MIB)))
    return points + shared_page_local(p)


def shared_page_local(p):
    """The same by pwritev2, to show what the kernel does by itself. O_DIRECT
    takes whole blocks only."""
    points = []
    for record in 47008, 6000, 49152:
        flags = {'none': (), 'dontcache': ('--dontcache',),
                 'dsync': ('--dsync',),
                 'dontcache-dsync': ('--dontcache', '--dsync')}
        if record % 4096 == 0:
            flags['direct'] = ('--direct',)
        for name, options in flags.items():
            slow = '--dsync' in options and record == 6000
            points.append(Point(
                'shared-page', f'local-{record}-{name}', 'write',
                records=record, writers=32, local=options, kinds=('local',),
                size=whole(p.size, record * 32, (16 if slow else 256) * MIB)))
    return points


def steady(p):
    """Four times what the server's cgroup may use, and more where the size
    is small, so that memory is full for most of it."""
    limit = cgroup_of(p, p.size)
    total = max(p.size, 4 * limit) if not p.small else p.size
    return [Point('steady', '', 'write', size=whole(total // 32, 64 << 10),
                  records=64 << 10, files=32, writers=32, connections=4,
                  cgroup=limit, variants=MODES)]


def wsize(p):
    points = []
    for record in (64 << 10, 256 << 10, MIB, 4 * MIB):
        for stable in 'unstable', 'file':
            for conns in 1, 16:
                if record > MIB:
                    kinds = ('nvnfsd', 'remote')  # Ganesha's most is 1 MiB
                else:
                    kinds = SERVERS
                points.append(Point(
                    'wsize', f'{record >> 10}k-{stable}-{conns}', 'write',
                    size=whole(p.size, record * 16, 512 * MIB),
                    records=record, stable=stable, writers=conns,
                    connections=conns, in_flight=16 // conns, kinds=kinds,
                    variants=MODES))
    points.append(Point('wsize', 'over', 'write', records=256 << 10,
                        size=min(p.size, 10 << 30), in_flight=16,
                        seconds=p.seconds(20), variants=MODES))
    return points


def neighbours(p):
    """Everything in one small cgroup. The buffered writer has an export of
    its own, in buffered mode, where the server can."""
    s, limit = p.seconds(8), cgroup_of(p, p.size)
    stream = Point('neighbours', 'stream', 'write', size=p.size, in_flight=16,
                   seconds=s + 2, variants=MODES)
    readers = dict(op='read', size=p.size, records=4096, writers=4,
                   connections=4, random=True, seconds=s, cgroup=limit)
    writer = dict(op='write', size=min(p.size // 4, limit or p.size),
                  records=64 << 10, in_flight=4, seconds=s, cgroup=limit,
                  sub='buffered')
    return [
        Point('neighbours', f'{name}-{how}', variants=MODES,
              beside=(stream,) if how == 'beside' else (), **what)
        for name, what in (('readers', readers), ('writer', writer))
        for how in ('alone', 'beside')]


def modes(p):
    """Each mode of writing, and auto, long enough for auto to learn: fresh at
    first, then over and over."""
    s = p.seconds(12)
    base = dict(size=p.size, seconds=s)
    shared = dict(base, writers=32, connections=4)
    ways = {
        'stream': dict(base, in_flight=16),
        'stream-file': dict(base, in_flight=16, stable='file'),
        '256k': dict(base, records=256 << 10, in_flight=16),
        'random': dict(base, records=64 << 10, in_flight=16, random=True),
        'files': dict(shared, records=64 << 10, files=32,
                      size=whole(p.size // 32, 64 << 10)),
        '16k-file': dict(shared, records=16 << 10, stable='file')}
    for record in 47008, 6000:
        for stable in 'unstable', 'file':
            ways[f'{record}-{stable}'] = dict(
                shared, records=record, stable=stable,
                size=whole(p.size, record * 32, 256 * MIB))
    return [Point('modes', name, 'write', kinds=('nvnfsd',),
                  variants=WRITE_MODES, **what)
            for name, what in ways.items()]


def mixes(p):
    """Two at once on one server, long enough for it to learn what they do."""
    s = p.seconds(12)
    base = dict(op='write', connections=4, seconds=s)
    one = {
        'stream': dict(base, size=p.size, in_flight=16, connections=1),
        'random': dict(base, size=p.size, records=64 << 10, in_flight=16,
                       random=True, connections=1),
        '47008': dict(base, size=whole(p.size, 47008 * 32, 512 * MIB),
                      records=47008, writers=32),
        '6000': dict(base, size=whole(p.size, 6000 * 32, 256 * MIB),
                     records=6000, writers=32)}
    return [Point('mixes', f'{a}+{b}', variants=WRITE_MODES, beside=(Point(
        'mixes', b, **dict(one[b], seconds=s + 1)),), **one[a])
        for a, b in (('stream', '47008'), ('stream', '6000'),
                     ('47008', 'random'), ('random', '6000'))]


def sync(p):
    """One in flight: latency, with what it cannot be less than: a local pwrite
    and fsync of the same record, and a NULL. Then many writers."""
    count = p.count(1000)
    points = [Point('sync', f'{record}', 'write', size=record * count,
                    records=record, stable='file', kinds=WITH_LOCAL,
                    local=('--fsync',)) for record in (4096, 47008)]
    points.append(Point('sync', 'null', 'null', operations=p.count(20000),
                        kinds=SERVERS + ('sink',)))
    for writers in (4, 16, 64):
        for files in (1, writers):
            points.append(Point(
                'sync', f'{writers}x{"one" if files == 1 else "many"}',
                'write', size=16384 * (p.count(4000) // files), records=16384,
                stable='file', writers=writers, files=files,
                connections=min(4, writers)))
    return points


def meta(p):
    n = p.count(10000)
    points = [Point('meta', action, 'meta', client='meta', action=action,
                    entries=n, kinds=WITH_LOCAL)
              for action in ('create', 'stat', 'remove')]
    points.append(Point('meta', 'readdirplus', 'meta', client='meta',
                        action='list', entries=p.count(1000000),
                        kinds=WITH_LOCAL))
    points += [Point('meta', action, 'meta', client='mount', action=action,
                     entries=p.count(2000), kinds=WITH_LOCAL)
               for action in ('rsync', 'tar')]
    return points


def connections(p):
    points = [Point('connections', f'busy-{n}', 'read', records=4096,
                    size=min(p.size, 64 * MIB), writers=n, connections=n,
                    random=True, seconds=p.seconds(5))
              for n in p.crowds((1, 100, 1000, 4000))]
    n = p.crowds((4000,))[0]
    return points + [Point('connections', f'idle-{n}', 'null', writers=n,
                           connections=n, operations=n,
                           hold=p.seconds(5) + 1)]


def relay(p):
    return [Point('relay', '', 'write', size=p.size, in_flight=16,
                  kinds=WITH_RELAY),
            Point('relay', 'read', 'read', size=p.size, in_flight=16,
                  kinds=WITH_RELAY)]


def sink(p):
    return [Point('sink', '', 'write', size=p.size, in_flight=16,
                  kinds=SERVERS + ('sink',)),
            Point('sink', 'null', 'null', in_flight=64,
                  seconds=p.seconds(4), kinds=SERVERS + ('sink',))]


def fio(name, op, variants, **what):
    """A job file below fio/modes, by fio's nfs engine."""
    def make(p):
        base = dict(size=p.size, seconds=p.seconds(6))
        base.update({k: v(p) for k, v in what.items()})
        return [Point(f'fio-{name}', '', op, client='fio', job=name,
                      variants=variants, **base)]
    return make


WORKLOADS = {
    'null': (null, 'NULL calls, 64 in flight on one connection'),
    'seq-write': (seq_write, '1 MiB WRITEs in sequence, 16 in flight'),
    'seq-read': (seq_read, '1 MiB READs in sequence, 16 in flight'),
    'rand-write': (rand_write, '64 KiB WRITEs in random order, 16 in flight'),
    'rand-read': (rand_read, '4 KiB READs in random order, 16 in flight, '
                  'server in a small memory cgroup'),
    'shared-page': (shared_page, 'interleaved records that end inside a page,'
                    ' 32 writers; and locally'),
    'steady': (steady, '64 KiB WRITEs to 32 files, more than the cgroup '
               'holds, by the second, three modes'),
    'wsize': (wsize, '64 KiB to 4 MiB a WRITE, both stabilities, 1 and 16 '
              'connections, three modes'),
    'neighbours': (neighbours, 'random readers, and a buffered writer, alone '
                   'and beside a stream, three modes'),
    'modes': (modes, 'each mode of writing, and auto, for 12 s of each kind'
              ' of WRITEs'),
    'mixes': (mixes, 'two write workloads at once, three modes'),
    'sync': (sync, 'FILE_SYNC: one at a time against the same locally, and '
             '4 to 64 writers'),
    'meta': (meta, 'create, stat, remove, READDIRPLUS of 1,000,000; rsync '
             'and tar; against the same locally'),
    'connections': (connections, '1 to 4,000 connections, busy and idle'),
    'relay': (relay, 'against a bare relay to O_DIRECT'),
    'sink': (sink, 'against a bare receiver'),
    'fio-seq-write': (fio('seq-write', 'write', MODES),
                      'fio, 16 jobs, 1 MiB'),
    'fio-rand-write': (fio('rand-write', 'write', MODES),
                       'fio, 16 jobs, 64 KiB'),
    'fio-seq-read': (fio('seq-read', 'read', READ_MODES),
                     'fio, 16 jobs, 1 MiB'),
    'fio-rand-read': (fio('rand-read', 'read', READ_MODES),
                      'fio, 16 jobs, 4 KiB'),
    'fio-multi-write': (fio('multi-write', 'write', MODES,
                            files=lambda p: 4, size=lambda p: p.size // 4),
                        'fio, 4 clients, a file each, 1 MiB'),
    'fio-noisy': (fio('noisy', 'write', ('', 'buffered', 'dontcache',
                                         'direct', 'mixed')),
                  'fio, a streaming writer beside three random readers; '
                  'one mode for both, and mixed (writes dontcache, reads '
                  'buffered)'),
}


def thin(points, most=5):
    """Of each workload a few points, the first and the last among them, and of
    the variants the first and the last: a trial shows that all of it works."""
    step = max(1, -(-(len(points) - 1) // (most - 1)))
    kept = points[::step]
    if points[-1] is not kept[-1]:
        kept.append(points[-1])
    for p in kept:
        p.variants = tuple(dict.fromkeys((p.variants or ('',))[::2]))
    return kept


@dataclass
class Plan:
    """What the workloads scale with."""
    size: int
    small: bool = False
    cgroups: bool = True
    chosen: list = field(default_factory=list)

    def seconds(self, n):
        return 1 if self.small else n

    def count(self, n):
        return max(20, min(n // 20, 2000)) if self.small else n

    def crowds(self, numbers):
        return tuple(min(n, 50) for n in numbers[-1:]) if self.small \
            else numbers

    def points(self):
        """Of each that was chosen, by its name or by a pattern of the keys of
        its points."""
        points = {}
        for name in self.chosen:
            made = WORKLOADS[name.split('/')[0]][0](self)
            if '/' in name:
                made = [p for p in made if fnmatch(p.key, name)]
            elif self.small:
                made = thin(made)
            points.update((p.key, p) for p in made)
        return list(points.values())

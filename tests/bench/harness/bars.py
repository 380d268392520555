# SPDX-License-Identifier: Apache-2.0
"""What nvnfsd has to reach, and whether a run shows that it does. A bar that
the run has no figures for is not judged."""
from dataclasses import dataclass
from typing import Callable

from .stats import add, figure_text, paired_ratio, ratio


@dataclass
class Check:
    """One comparison: value against limit."""
    what: str
    value: Callable
    limit: float
    most: bool = True  # at most; else at least

    def judge(self, results):
        """(value, limit, reached); the last None where there is no value."""
        limit = self.limit(results) if callable(self.limit) else self.limit
        value = self.value(results)
        if value is None or limit is None:
            return value, limit, None
        return value, limit, value <= limit if self.most else value >= limit


def med(point, figure, server='nvnfsd'):
    return lambda r: r.median(point, server, figure)


def versus(point, figure, base='ganesha', server='nvnfsd'):
    return lambda r: r.ratio(point, figure, server, base)


def above(point, figure, base, margin):
    """The median of base and a margin."""
    return lambda r: add(r.median(point, base, figure), margin)


def lone_sync(point, figure):
    """Against a local pwrite and fsync, and one NULL."""
    return lambda r: ratio(
        r.median(point, 'nvnfsd', figure),
        add(r.median(point, 'local', figure),
            r.median('sync/null', 'nvnfsd', figure)))


def other_point(point, base, figure, server='nvnfsd'):
    return lambda r: ratio(r.median(point, server, figure),
                           r.median(base, server, figure))


def quotient(point, figure, base_figure, server):
    return lambda r: ratio(r.median(point, server, figure),
                           r.median(point, server, base_figure))


def across(point, figure, server, base_figure, base):
    """One figure of a server to another of another, round by round."""
    return lambda r: paired_ratio(r.series(point, server, figure),
                                  r.series(point, base, base_figure))


def lowest(prefix, figure, server, base):
    def value(r):
        found = [r.ratio(p, figure, server, base) for p in r.points()
                 if p.startswith(prefix)]
        return min((x for x in found if x is not None), default=None)
    return value


STATIC = ('w-direct', 'w-dontcache', 'w-buffered')


def auto_to_best(r):
    """The least of all points that were written in auto and, in the same
    rounds, in all static modes: auto's rate, with that of what ran beside, of
    the best one's."""
    found = []
    for p in r.points():
        static = [r.ratio(p, 'all_mib_s', 'nvnfsd/w-auto', f'nvnfsd/{m}')
                  for m in STATIC]
        if all(x is not None for x in static):
            found.append(min(static))
    return min(found, default=None)


def ten_ms_or_thrice(point, server):
    def limit(r):
        alone = r.median(point, server, 'p99_us')
        return None if alone is None else max(10000, 3 * alone)
    return limit


def percent(x):
    return None if x is None else 100 * x


S = 'shared-page/'
BARS = [
    ('1 MiB sequential WRITE x16', [
        Check('server CPU s/GiB, at most relay + 0.06',
              med('seq-write', 'server_s_gib'),
              above('seq-write', 'server_s_gib', 'relay', 0.06)),
        Check("server CPU, of Ganesha's", versus('seq-write', 'server_s_gib'),
              0.5),
        Check("whole CPU to stable, of Ganesha's",
              versus('seq-write', 'whole_s_gib'), 0.7),
        Check('MiB/s to stable, of relay',
              versus('seq-write', 'mib_s_stable', 'relay'), 0.9, False),
        Check("MiB/s to stable, of Ganesha's",
              versus('seq-write', 'mib_s_stable'), 1.3, False)]),
    ('64 KiB random WRITE x16, fresh file', [
        Check("MiB/s to stable, of Ganesha's",
              versus('rand-write/fresh', 'mib_s_stable'), 1.8, False),
        Check("server CPU, of Ganesha's",
              versus('rand-write/fresh', 'server_s_gib'), 0.45)]),
    ('64 KiB random WRITE x16, rewrite', [
        Check("MiB/s to stable, of Ganesha's",
              versus('rand-write/rewrite', 'mib_s_stable'), 1.8, False),
        Check("server CPU, of Ganesha's",
              versus('rand-write/rewrite', 'server_s_gib'), 0.45)]),
    ('1 MiB sequential READ x16', [
        Check("MiB/s, of Ganesha's", versus('seq-read', 'mib_s'), 1.25,
              False),
        Check("server CPU, of Ganesha's", versus('seq-read', 'server_s_gib'),
              0.7)]),
    ('4 KiB random READ x16, file 4 x the memory cgroup', [
        Check("calls a server CPU second, of Ganesha's",
              versus('rand-read', 'calls_server_s'), 3, False),
        Check('device reads a call', med('rand-read', 'read_requests_call'),
              1.01)]),
    ('NULL, 64 in flight', [
        Check('server CPU us a call', med('null', 'server_us_call'), 1.2),
        Check("calls/s, of Ganesha's", versus('null', 'calls_s'), 11,
              False)]),
    ('shared-page 47,008 FILE_SYNC, 32 in flight', [
        Check("MiB/s, of Ganesha's", versus(S + '47008-file', 'mib_s_stable'),
              3, False),
        Check('device reads a WRITE', med(S + '47008-file', 'reads_call'),
              0.01),
        Check('resident pages a WRITE',
              med(S + '47008-file', 'resident_call'), 0.01),
        Check('flushes a WRITE', med(S + '47008-file', 'flushes_call'),
              0.125)]),
    ('FILE_SYNC, one in flight', [
        Check('p50, of local pwrite + fsync + a NULL; 4,096 bytes',
              lone_sync('sync/4096', 'p50_us'), 1.1),
        Check('p5 likewise, where a busy machine disturbs less',
              lone_sync('sync/4096', 'p5_us'), 1.1),
        Check('p50; 47,008 bytes', lone_sync('sync/47008', 'p50_us'), 1.1),
        Check('p5; 47,008 bytes', lone_sync('sync/47008', 'p5_us'), 1.1)]),
    ('shared-page 47,008 UNSTABLE + COMMIT', [
        Check("MiB/s to stable, of Ganesha's",
              versus(S + '47008-unstable', 'mib_s_stable'), 1.7, False),
        Check('MiB/s to stable, of our own 49,152',
              other_point(S + '47008-unstable', S + '49152-unstable',
                          'mib_s_stable'), 0.85, False),
        Check('device reads a WRITE', med(S + '47008-unstable', 'reads_call'),
              0.01),
        Check('resident pages a WRITE',
              med(S + '47008-unstable', 'resident_call'), 0.01)]),
    ('shared-page 6,000 UNSTABLE + COMMIT', [
        Check("MiB/s to stable, of Ganesha's",
              versus(S + '6000-unstable', 'mib_s_stable'), 4, False),
        Check('dirty MiB at the most', med(S + '6000-unstable',
                                           'dirty_peak_mib'), 64),
        Check('resident pages a WRITE',
              med(S + '6000-unstable', 'resident_call'), 0.01)]),
    *[(f'steady, {mode}', [
        Check('last quarter, of the first',
              med('steady', 'last_to_first', server), 0.95, False),
        Check('p99.9, of p50', quotient('steady', 'p99_9_us', 'p50_us',
                                        server), 10),
        Check("to stable, of our buffered mode's last quarter",
              across('steady', 'mib_s_stable', server, 'last_quarter',
                     'nvnfsd/w-buffered'), 1.5, False),
        Check("whole CPU, of our buffered mode's",
              versus('steady', 'whole_s_gib', 'nvnfsd/w-buffered', server),
              0.6)])
      for mode, server in (('direct', 'nvnfsd'),
                           ('dontcache', 'nvnfsd/w-dontcache'))],
    ('wsize, dontcache', [
        Check('to stable, of buffered; the least of all sizes',
              lowest('wsize/', 'mib_s_stable', 'nvnfsd/w-dontcache',
                     'nvnfsd/w-buffered'), 0.95, False)]),
    *[(f'neighbours, {mode}', [
        Check('readers beside the stream, of alone',
              other_point('neighbours/readers-beside',
                          'neighbours/readers-alone', 'calls_s', server),
              0.5, False),
        Check('their p99 us, of 10 ms or 3 x alone',
              med('neighbours/readers-beside', 'p99_us', server),
              ten_ms_or_thrice('neighbours/readers-alone', server))])
      for mode, server in (('direct', 'nvnfsd'),
                           ('dontcache', 'nvnfsd/w-dontcache'))],
    ('write-mode=auto', [
        Check('to stable, of the best static mode; the least of all points',
              auto_to_best, 0.95, False)]),
    ('1,000,000-entry READDIRPLUS', [
        Check('time, of a local readdir and statx',
              versus('meta/readdirplus', 'seconds', 'local'), 2)]),
    ('4,000 connections', [
        Check('KiB each, idle', med('connections/idle-4000', 'rss_kib_conn'), 32),
        Check('% of a core together, idle',
              lambda r: percent(r.median('connections/idle-4000', 'nvnfsd',
                                         'idle_cores')), 0.5),
        Check('slowest, of the mean, busy',
              med('connections/busy-4000', 'slowest_to_mean'), 0.3,
              False)]),
    ('page cache growth, direct', [
        Check('MiB during 1 MiB WRITEs', med('seq-write', 'cache_growth_mib'),
              16),
        Check('MiB during 1 MiB READs', med('seq-read', 'cache_growth_mib'),
              16)]),
]


def judge(results):
    """Rows of (bar, check, value, limit, verdict)."""
    words = {True: 'reached', False: 'NOT REACHED', None: 'no figures'}
    rows = []
    for title, checks in BARS:
        for c in checks:
            value, limit, reached = c.judge(results)
            sign = '<=' if c.most else '>='
            rows.append((title, c.what, figure_text(value),
                         f'{sign} {figure_text(limit)}', words[reached]))
    return [r for r in rows if r[4] != words[None]]

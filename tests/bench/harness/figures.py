# SPDX-License-Identifier: Apache-2.0
"""From one record to the figures that are compared. Pure, so that an old
run can be read with new eyes."""
from .stats import quarter_means, ratio

GIB = 1 << 30

# What a figure is, for the tables: label, and whether more is better.
LABELS = {
    'mib_s': ('MiB/s reply', True), 'mib_s_stable': ('MiB/s stable', True),
    'calls_s': ('calls/s', True),
    'entries_s': ('entries/s', True),
    'p50_us': ('p50 us', False), 'p99_us': ('p99 us', False),
    'p99_9_us': ('p99.9 us', False),
    'server_s_gib': ('server s/GiB', False),
    'whole_s_gib': ('whole s/GiB', False),
    'client_s_gib': ('client s/GiB', False),
    'server_us_call': ('server us/call', False),
    'whole_us_call': ('whole us/call', False),
    'calls_server_s': ('calls/server s', True),
    'reads_call': ('dev reads/call', False),
    'read_requests_call': ('read reqs/call', False),
    'writes_call': ('dev writes/call', False),
    'flushes_call': ('flushes/call', False),
    'resident_call': ('resident/call', False),
    'cache_growth_mib': ('cache MiB', False),
    'dirty_peak_mib': ('dirty MiB', False),
    'others_cores': ('others cores', False),
    'slowest_to_mean': ('slowest/mean', True),
    'rss_kib_conn': ('RSS KiB/conn', False),
    'idle_cores': ('idle cores', False),
    'beside_mib_s': ('beside MiB/s', True),
    'last_quarter': ('last quarter MiB/s', True),
    'last_to_first': ('last/first quarter', True),
}


def figures(record):
    load, cpu, dev = record['load'], record['cpu'], record['device']
    gib, calls = load['bytes'] / GIB, load['operations']
    us = load.get('latency_us', {})
    f = {'calls_s': load['calls_s'], 'seconds': load['seconds'], 'p50_us': us.get('p50'),
         'p5_us': us.get('p5'),
         'p99_us': us.get('p99'), 'p99_9_us': us.get('p99_9'),
         'entries_s': load.get('entries_s'),
         'server_us_call': ratio(_us(cpu['server']), calls),
         'whole_us_call': ratio(_us(cpu['whole']), calls),
         'calls_server_s': ratio(calls, cpu['server']),
         'others_cores': ratio(cpu['others'], cpu.get('wall'))}
    f.update(_held(record.get('held')), **_writers(load), **_beside(load))
    if record['op'] in ('null', 'meta'):
        return f
    first, last = quarter_means(load.get('mib_by_tick', []))
    tick = load.get('tick_seconds', 1)
    f.update(
        mib_s=load['mib_s'], server_s_gib=ratio(cpu['server'], gib),
        whole_s_gib=ratio(cpu['whole'], gib),
        client_s_gib=ratio(cpu['clients'], gib),
        reads_call=ratio(dev.get('dev_reads'), calls),
        read_requests_call=ratio(dev.get('dev_read_requests'), calls),
        cache_growth_mib=record['cache_growth_mib'],
        last_to_first=ratio(last, first), last_quarter=ratio(last, tick))
    if record['op'] == 'write':
        f.update(mib_s_stable=load['mib_s_to_stable'],
                 writes_call=ratio(dev.get('dev_writes'), calls),
                 flushes_call=ratio(dev.get('dev_flushes'), calls),
                 resident_call=ratio(record['resident'], calls),
                 dirty_peak_mib=record['dirty_peak_mib'])
        f['all_mib_s'] = f['mib_s_stable'] + f.get('beside_mib_s', 0)
    return f


def _held(held):
    """Of connections that do nothing."""
    if not held:
        return {}
    return {'rss_kib_conn': held['rss_growth_kib'] / held['connections'],
            'idle_cores': held['idle_cores']}


def _writers(load):
    w = load.get('writer_operations')
    return {'slowest_to_mean': ratio(w['least'], w['mean'])} if w else {}


def _beside(load):
    """What ran meanwhile: its rate."""
    rates = [b['mib_s'] for b in load.get('beside', [])]
    return {'beside_mib_s': sum(rates)} if rates else {}


def _us(seconds):
    return None if seconds is None else seconds * 1e6

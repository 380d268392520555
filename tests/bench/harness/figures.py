# SPDX-License-Identifier: Apache-2.0
"""From one record to the figures that are compared. Pure, so that an old
run can be read with new eyes."""
from .stats import quarter_means, ratio

GIB = 1 << 30

# What a figure is, for the tables: label, and whether more is better.
LABELS = {
    'mib_s': ('MiB/s reply', True), 'mib_s_stable': ('MiB/s stable', True),
    'calls_s': ('calls/s', True),
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
    'last_to_first': ('last/first', True),
}


def figures(record):
    load, cpu, dev = record['load'], record['cpu'], record['device']
    gib, calls = load['bytes'] / GIB, load['operations']
    us = load['latency_us']
    f = {'calls_s': load['calls_s'], 'p50_us': us['p50'],
         'p99_us': us['p99'], 'p99_9_us': us['p99_9'],
         'server_us_call': ratio(_us(cpu['server']), calls),
         'whole_us_call': ratio(_us(cpu['whole']), calls),
         'calls_server_s': ratio(calls, cpu['server']),
         'others_cores': ratio(cpu['others'],
                               load['seconds_to_stable'])}
    if record['op'] == 'null':
        return f
    first, last = quarter_means(load.get('mib_by_second', []))
    f.update(
        mib_s=load['mib_s'], server_s_gib=ratio(cpu['server'], gib),
        whole_s_gib=ratio(cpu['whole'], gib),
        client_s_gib=ratio(cpu['clients'], gib),
        reads_call=ratio(dev.get('dev_reads'), calls),
        read_requests_call=ratio(dev.get('dev_read_requests'), calls),
        cache_growth_mib=record['cache_growth_mib'],
        last_to_first=ratio(last, first))
    if record['op'] == 'write':
        f.update(mib_s_stable=load['mib_s_to_stable'],
                 writes_call=ratio(dev.get('dev_writes'), calls),
                 flushes_call=ratio(dev.get('dev_flushes'), calls),
                 resident_call=ratio(record['resident'], calls),
                 dirty_peak_mib=record['dirty_peak_mib'])
    return f


def _us(seconds):
    return None if seconds is None else seconds * 1e6

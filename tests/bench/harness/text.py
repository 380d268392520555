# SPDX-License-Identifier: Apache-2.0
"""The report as plain text, and the tables that the page shows too."""
from . import bars
from .figures import LABELS
from .stats import figure_text, spread

COLUMNS = ('mib_s_stable', 'mib_s', 'calls_s', 'entries_s', 'p50_us', 'p99_us',
           'p99_9_us', 'server_s_gib', 'whole_s_gib', 'server_us_call',
           'reads_call', 'writes_call', 'flushes_call', 'resident_call',
           'dirty_peak_mib', 'cache_growth_mib', 'last_to_first',
           'beside_mib_s', 'slowest_to_mean', 'rss_kib_conn', 'idle_cores',
           'others_cores')
HEAD = ('Medians of interleaved runs. rate/X: the median of the ratios of '
        'pairs run one after',
        'the other, to stable for what writes. spread: (highest - lowest) / '
        'median of that rate.',
        'whole: CPU of the machine less that of the clients and of what had '
        'nothing to do with it;',
        'others cores: how much that was. Device reads and writes in 4 KiB '
        'units.')


def table(rows):
    """Rows of strings; the first is the head. Left column to the left."""
    width = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    lines = []
    for r in rows:
        cells = [r[0].ljust(width[0])]
        cells += [c.rjust(w) for c, w in zip(r[1:], width[1:])]
        lines.append('  '.join(cells).rstrip())
    return lines


def markdown(rows):
    """The same rows as a table for a .md file."""
    rows = [[c.strip().replace('|', '\\|') for c in r] for r in rows]
    rows.insert(1, ['---'] * len(rows[0]))
    return ['| ' + ' | '.join(r) + ' |' for r in rows]


def base_of(servers):
    """Whom the others of a point are compared with."""
    for name in 'ganesha', 'local', 'nvnfsd':
        if name in servers:
            return name
    return servers[0]


def main_figure(results, point, server):
    for f in 'mib_s_stable', 'mib_s', 'entries_s', 'calls_s':
        if results.median(point, server, f) is not None:
            return f
    return None


def point_rows(results, point):
    servers = results.servers(point)
    columns = [c for c in COLUMNS if any(
        results.median(point, s, c) is not None for s in servers)]
    base = base_of(servers)
    head = ['  ' + point] + [LABELS[c][0] for c in columns]
    rows = [head + [f'rate/{base}', 'spread']]
    for s in servers:
        f = main_figure(results, point, s)
        r = results.ratio(point, f, s, base) if f else None
        rows.append(['    ' + s] + [
            figure_text(results.median(point, s, c)) for c in columns
        ] + [figure_text(r), figure_text(
            spread(results.series(point, s, f).values()) if f else None)])
    return rows


def bar_rows(results):
    rows = [('bar', 'check', 'value', 'limit', 'verdict')]
    last = None
    for title, *cells in bars.judge(results):
        rows.append(('' if title == last else title, *cells))
        last = title
    return rows


def notes(results):
    out = []
    if results.system.get('small'):
        out.append('A trial: sizes so small say that it works, not how fast.')
    out += [f'skipped: {p}: {why}' for p, why in sorted(
        {(r['point'], r['skipped']) for r in results.records
         if 'skipped' in r})]
    out += [f'FAILED: {r["point"]} {r["server"]}: {r.get("error")}'
            for r in results.records
            if not r['good'] and 'skipped' not in r]
    verified = [r for r in results.records if r.get('verified')]
    out.append(f'content verified in {len(verified)} of '
               f'{len(results.records)} runs (of WRITEs in the first round: '
               'read back cold; READs always)')
    return out


def render_markdown(results):
    """Tables to be quoted from: the bars, and each point."""
    out = markdown(bar_rows(results))
    for point in results.points():
        if results.has(point):
            out += [''] + markdown(point_rows(results, point))
    return '\n'.join(out) + '\n'


def render(results):
    out = [*HEAD, '']
    for key in ('storage', 'size', 'rounds', 'kernel', 'cpus', 'commit',
                'date'):
        if key in results.system:
            out.append(f'{key}: {results.system[key]}')
    for point in results.points():
        if results.has(point):
            out += [''] + table(point_rows(results, point))
    out += [''] + notes(results)
    rows = bar_rows(results)
    if len(rows) > 1:
        width = [max(len(r[i]) for r in rows) for i in range(5)]
        out += ['', 'bars']
        out += ['  ' + '  '.join(c.ljust(w) for c, w in zip(r, width)).rstrip()
                for r in rows]
    return '\n'.join(out) + '\n'

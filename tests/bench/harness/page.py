# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML page that needs nothing else: tables, and plots as
inline SVG."""
import html
import shutil

from . import bars, text
from .plots import Plots
from .stats import by_second, median

PERCENTILES = (('p1', 0.01), ('p10', 0.1), ('p25', 0.25), ('p50', 0.5),
               ('p75', 0.75), ('p90', 0.9), ('p95', 0.95), ('p99', 0.99),
               ('p99_9', 0.999), ('p99_99', 0.9999))
TICKS_SHOWN = 300
STYLE = '''
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; color: #222;
  max-width: 1180px; padding: 0 1em; background: #fff }
h1 { font-size: 1.5em } h2 { margin-top: 2.2em; border-bottom: 1px solid #ccc }
h3 { margin: 1.6em 0 .4em; font-size: 1em }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: 13px; margin: .4em 0 }
th, td { padding: 3px 9px; text-align: right; border-bottom: 1px solid #eee;
  white-space: nowrap; font-variant-numeric: tabular-nums }
th { background: #f4f4f4; font-weight: 600 }
th:first-child, td:first-child { text-align: left }
#bars td, #bars th { text-align: left }
.reached { color: #00663d } .missed { color: #b00020; font-weight: 600 }
.plots { display: flex; flex-wrap: wrap; gap: 12px }
.plots svg { max-width: 100%; height: auto }
nav a { margin-right: .9em } .note { color: #555 }
'''


def table(rows, attributes=''):
    """The first row is the head."""
    def row(cells, tag):
        return '<tr>' + ''.join(f'<{tag}>{html.escape(c)}</{tag}>'
                                for c in cells) + '</tr>'
    return f'<div class="wide"><table{attributes}>' + row(rows[0], 'th') + \
        ''.join(row(r, 'td') for r in rows[1:]) + '</table></div>'


def bars_table(results):
    rows = bars.judge(results)
    if not rows:
        return ''
    out = ['<h2 id="bars-h">Bars</h2><div class="wide"><table id="bars">',
           '<tr><th>bar<th>check<th>value<th>limit<th>verdict</tr>']
    last = None
    for title, *cells in rows:
        kind = 'reached' if cells[-1] == 'reached' else 'missed'
        shown = [('' if title == last else title)] + cells
        last = title
        out.append(f'<tr class="{kind}">' + ''.join(
            f'<td>{html.escape(c)}</td>' for c in shown) + '</tr>')
    return '\n'.join(out) + '</table></div>'


def typical(results, point, server):
    """The record of the round whose rate is the median, or next to it."""
    figure = text.main_figure(results, point, server)
    if figure is None:
        return None
    series = results.series(point, server, figure)
    middle = median(series.values())
    r = min(series, key=lambda k: abs(series[k] - middle))
    return results.record(point, server, r)


def thinned(series, most=TICKS_SHOWN):
    step = -(-len(series) // most)
    return series[::step] if step > 1 else series


def rate_series(record):
    load = record['load']
    ticks, tick = load.get('mib_by_tick', []), load.get('tick_seconds', 1)
    if record['op'] == 'null' or sum(ticks) == 0 or len(ticks) < 5:
        return []
    if len(ticks) * tick > 20:
        seconds = by_second(ticks, tick)
        return thinned([(i + 0.5, v) for i, v in enumerate(seconds)])
    return [((i + 0.5) * tick, v / tick)
            for i, v in enumerate(ticks[:-1])]


def latency_series(record):
    us = record['load'].get('latency_us', {})
    return [(1 / (1 - share), us[key]) for key, share in PERCENTILES
            if us.get(key)]


def point_plots(results, plots, point):
    rates, latencies = {}, {}
    for server in results.servers(point):
        record = typical(results, point, server)
        if record is not None:
            rates[server] = rate_series(record)
            latencies[server] = latency_series(record)
    tics = ', '.join(f'"{t}" {1 / (1 - q):.6g}' for t, q in (
        ('p10', .1), ('p50', .5), ('p90', .9), ('p99', .99),
        ('p99.9', .999), ('p99.99', .9999)))
    return [plots.lines('rate', rates, 'seconds', 'MiB/s'),
            plots.lines('latency by percentile', latencies, '', 'us',
                        f'set logscale xy\nset xtics ({tics})')]


def windows(results, workload):
    """When its runs went, one after the other."""
    return [(r['began'], r['began'] + r['load']['seconds_to_stable'])
            for r in results.records
            if r['workload'] == workload and 'load' in r]


def memory_plot(results, plots, workload):
    """The machine's page cache and dirty memory, and the servers', during the
    workload's runs, which are put one after the other."""
    rows, before = [], 0
    for first, last in windows(results, workload):
        rows += [(before + m['time'] - first, m) for m in results.memory
                 if first <= m['time'] <= last]
        before += last - first
    if len(rows) < 3:
        return ''
    rows = thinned(rows)
    series = {name: [(x, sum(m[k] for k in keys))
                     for x, m in rows if all(k in m for k in keys)]
              for name, keys in (('page cache', ('Cached',)),
                                 ('dirty', ('Dirty', 'Writeback')),
                                 ('server RSS', ('server_rss',)),
                                 ('server cgroup', ('cgroup',)))}
    return plots.lines("memory, run after run", series, 'seconds', 'MiB')


def ratio_plot(results, plots, workload, points):
    rows, bases = [], set()
    for point in points:
        servers = results.servers(point)
        base = text.base_of(servers)
        for s in servers:
            figure = text.main_figure(results, point, s)
            if s != base and figure:
                label = f'{point.removeprefix(workload + "/")} {s}' \
                    if point != workload else s
                rows.append((label, s,
                             results.ratio(point, figure, s, base)))
                bases.add(base)
    return plots.ratios('rate against the base', rows,
                        ' or '.join(sorted(bases)))


def workload_section(results, plots, workload):
    points = [p for p in results.points_of(workload) if results.has(p)]
    if not points:
        return ''
    out = [f'<h2 id="{workload}">{workload}</h2><div class="plots">',
           ratio_plot(results, plots, workload, points),
           memory_plot(results, plots, workload), '</div>']
    for point in points:
        rows = text.point_rows(results, point)
        rows = [[c.strip() for c in r] for r in rows]
        out += [f'<h3>{point}</h3>', table([[''] + rows[0][1:]] + rows[1:]),
                '<div class="plots">', *point_plots(results, plots, point),
                '</div>']
    return '\n'.join(out)


def render(results):
    if shutil.which('gnuplot') is None:
        raise RuntimeError('the page needs gnuplot (Debian: gnuplot-nox)')
    servers = list(dict.fromkeys(r['server'] for r in results.records))
    plots = Plots(servers + ['page cache', 'dirty', 'server RSS',
                             'server cgroup'])
    workloads = list(dict.fromkeys(r['workload'] for r in results.records))
    system = [['what', 'value']] + [
        [k, str(v)] for k, v in results.system.items()
        if k not in ('os', 'small') and v not in (None, '')]
    note = '\n'.join(text.HEAD)
    parts = ['<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">',
             '<title>nvnfsd benchmark</title>', f'<style>{STYLE}</style>',
             '</head><body><h1>nvnfsd benchmark</h1>',
             f'<p class="note">{html.escape(note)}</p>', '<nav>',
             *[f'<a href="#{w}">{w}</a>' for w in workloads], '</nav>',
             bars_table(results)]
    parts += [workload_section(results, plots, w) for w in workloads]
    parts += ['<h2>Notes</h2><ul>',
              *[f'<li>{html.escape(x)}</li>' for x in text.notes(results)],
              '</ul><h2>The machine</h2>', table(system), '</body></html>']
    return '\n'.join(parts) + '\n'

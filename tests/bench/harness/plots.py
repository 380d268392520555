# SPDX-License-Identifier: Apache-2.0
"""gnuplot's SVGs, to stand in a page. Each is one gnuplot that gets its data on
standard input and leaves nothing behind."""
import re
import subprocess

# Told apart also by those who do not see red and green alike.
COLOURS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9',
           '#000000', '#999933')
HEAD = '''set terminal svg name "%(name)s" size %(width)d,%(height)d \\
	font "sans-serif,11" background "white"
set border 3 lc rgb "#888888"
set grid ytics lc rgb "#dddddd"
set xtics nomirror
set ytics nomirror
set key outside right top vertical noenhanced
set title "%(title)s" noenhanced
set style fill solid 0.9 border -1
'''


class Plots:
    """Counts the plots of one page, so that their ids differ; keeps the colour
    of each server."""

    def __init__(self, servers):
        self._colour = {s: COLOURS[i % len(COLOURS)]
                        for i, s in enumerate(servers)}
        self._count = 0

    def colour(self, server):
        return self._colour.get(server, '#444444')

    def lines(self, title, series, xlabel, ylabel, extra=''):
        """series: name -> [(x, y)]"""
        series = {k: v for k, v in series.items() if v}
        if not series:
            return ''
        script = [extra, f'set xlabel "{xlabel}"', f'set ylabel "{ylabel}"']
        if 'logscale' not in extra:
            script.append('set yrange [0:*]')
        plots = [f"'-' using 1:2 with lines lw 2 lc rgb "
                 f"'{self.colour(s)}' title '{s}'" for s in series]
        script.append('plot ' + ', '.join(plots))
        for points in series.values():
            script += [f'{x:.6g} {y:.6g}' for x, y in points] + ['e']
        return self._draw(title, script)

    def ratios(self, title, rows, base):
        """rows: [(label, server, ratio)], one bar each, from the top down."""
        rows = [r for r in rows if r[2] is not None]
        if not rows:
            return ''
        n = len(rows)
        tics = ', '.join(f"'{label}' {n - i}"
                         for i, (label, _, _) in enumerate(rows))
        script = ['unset key', f'set ytics ({tics}) noenhanced',
                  'unset grid', 'set grid xtics lc rgb "#dddddd"',
                  f'set yrange [0.4:{n + 0.6}]', 'set xrange [0:*]',
                  f'set xlabel "rate, {base} = 1" noenhanced',
                  'set arrow from 1, graph 0 to 1, graph 1 nohead '
                  'lc rgb "#888888" dt 2',
                  "plot '-' using (0):1:(0):2:($1-0.35):($1+0.35):3 "
                  'with boxxyerror lc rgb variable']
        for i, (_, server, value) in enumerate(rows):
            colour = int(self.colour(server)[1:], 16)
            script.append(f'{n - i} {value:.5g} {colour}')
        script.append('e')
        return self._draw(title, script, height=110 + 22 * n)

    def _draw(self, title, script, width=560, height=260):
        self._count += 1
        head = HEAD % {'name': f'p{self._count}', 'width': width,
                       'height': height, 'title': title.replace('"', "'")}
        done = subprocess.run(['gnuplot'], input=head + '\n'.join(script) +
                              '\n', text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, check=False)
        if done.returncode != 0 or '<svg' not in done.stdout:
            raise RuntimeError(f'gnuplot: {done.stderr.strip()[:300]}')
        svg = done.stdout[done.stdout.index('<svg'):]
        svg = re.sub(r'<desc>.*?</desc>', '', svg, flags=re.S)
        # What is the same in every plot, under names of their own.
        return re.sub(r'(id="|url\(#|href=[\'"]#)(gp[A-Za-z]+|gnuplot_canvas)',
                      rf'\1p{self._count}\2', svg)

# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the reports: pure functions, tested by test_stats.py."""
import math


def median(values):
    """The middle one; of an even number the mean of the two in the middle."""
    v = sorted(x for x in values if x is not None)
    if not v:
        return None
    half = len(v) // 2
    return v[half] if len(v) % 2 else (v[half - 1] + v[half]) / 2


def ratio(a, b):
    if a is None or b is None or b == 0:
        return None
    return a / b


def paired_ratio(a, b):
    """The median of a[round] / b[round] over the rounds that both have.

    Both were run one right after the other in a round, so what else the
    machine did then hit both; a quotient of medians would lose that."""
    return median(ratio(a[r], b[r]) for r in a if r in b)


def spread(values):
    """(highest - lowest) / median: how much a row is to be trusted."""
    v = [x for x in values if x is not None]
    m = median(v)
    return (max(v) - min(v)) / m if v and m else None


def add(*terms):
    return None if any(t is None for t in terms) else sum(terms)


def difference(after, before):
    return {k: after[k] - before[k] for k in after if k in before
            and after[k] is not None and before[k] is not None}


def quarter_means(series):
    """Means of the first and the last quarter of a series of equal ticks. The
    last tick is left out: it was not a whole one."""
    whole = series[:-1] if len(series) > 4 else series
    n = max(1, len(whole) // 4)
    if not whole:
        return None, None
    return sum(whole[:n]) / n, sum(whole[-n:]) / n


def by_second(series, tick):
    """Amounts per tick -> amounts per second; a rest of a second is scaled."""
    per = max(1, round(1 / tick))
    return [sum(series[i:i + per]) * per / len(series[i:i + per])
            for i in range(0, len(series), per)]


def size_parse(text):
    """'64M' -> bytes; powers of 1024 as everywhere in the project."""
    units = {'k': 10, 'm': 20, 'g': 30, 't': 40}
    t = text.strip().lower().removesuffix('ib').removesuffix('b')
    shift = units.get(t[-1:], 0)
    number = t[:-1] if shift else t
    value = float(number) * (1 << shift)
    if not math.isfinite(value) or value < 1:
        raise ValueError(f'not a size: {text}')
    return int(value)


def size_text(n):
    for unit, shift in (('T', 40), ('G', 30), ('M', 20), ('K', 10)):
        if n >= 1 << shift:
            v = n / (1 << shift)
            return f'{v:.0f}{unit}' if v == int(v) else f'{v:.1f}{unit}'
    return str(n)


def figure_text(v):
    """Three digits that count, never an exponent."""
    if v is None:
        return '-'
    if v == 0:
        return '0'
    if abs(v) >= 100:
        return f'{v:.0f}'
    digits = max(0, 2 - math.floor(math.log10(abs(v))))
    return f'{v:.{min(digits, 5)}f}'

# SPDX-License-Identifier: Apache-2.0
"""The records of one run, to be asked by point, server and figure."""
import json

from .figures import figures
from .stats import median, paired_ratio


class Results:
    def __init__(self, records, system=None, memory=None):
        self.records = records
        self.system = system or {}
        self.memory = memory or []
        self._figures = {}
        for r in records:
            if r['good']:
                key = (r['point'], r['server'])
                self._figures.setdefault(key, {})[r['round']] = figures(r)

    @classmethod
    def load(cls, directory):
        def read(name, default):
            f = directory / name
            return json.loads(f.read_text()) if f.exists() else default
        lines = (directory / 'runs.jsonl').read_text().splitlines()
        return cls([json.loads(x) for x in lines],
                   read('system.json', {}), read('memory.json', []))

    def points(self):
        return list(dict.fromkeys(r['point'] for r in self.records))

    def points_of(self, workload):
        return list(dict.fromkeys(r['point'] for r in self.records
                                  if r['workload'] == workload))

    def has(self, point):
        """Any figure at all."""
        return any(p == point for p, _ in self._figures)

    def record(self, point, server, r):
        return next(x for x in self.records if x['good'] and x['round'] == r
                    and (x['point'], x['server']) == (point, server))

    def servers(self, point):
        return list(dict.fromkeys(r['server'] for r in self.records
                                  if r['point'] == point))

    def series(self, point, server, figure):
        """round -> value"""
        rounds = self._figures.get((point, server), {})
        return {r: f[figure] for r, f in rounds.items()
                if f.get(figure) is not None}

    def median(self, point, server, figure):
        return median(self.series(point, server, figure).values())

    def ratio(self, point, figure, server, base):
        return paired_ratio(self.series(point, server, figure),
                            self.series(point, base, figure))

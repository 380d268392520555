# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the reports, by numbers worked out by hand."""
import unittest

from harness import bars, clients, figures, stats, text
from harness.results import Results
from harness.workloads import WORKLOADS, Plan, thin


def write_record(server, r, mib_s=100.0, stable=50.0, cpu=1.0, point='seq-write',
                 **load):
    """1 GiB in 1024 calls; the device was read 512 times, flushed 8 times."""
    return {'workload': 'seq-write', 'point': point, 'server': server,
            'round': r, 'op': 'write', 'good': True,
            'cpu': {'server': cpu, 'whole': 2 * cpu, 'clients': 0.5,
                    'others': 0.0, 'wall': 20.0},
            'device': {'dev_reads': 512, 'dev_read_requests': 256,
                       'dev_writes': 262144, 'dev_flushes': 8},
            'resident': 2048, 'cache_growth_mib': 3.0, 'dirty_peak_mib': 4.0,
            'load': {'bytes': 1 << 30, 'operations': 1024, 'calls_s': 512.0,
                     'mib_s': mib_s, 'mib_s_to_stable': stable,
                     'seconds': 10.0, 'seconds_to_stable': 20.0,
                     'latency_us': {'p50': 10, 'p99': 20, 'p99_9': 30},
                     'tick_seconds': 0.1,
                     'mib_by_tick': [10, 10, 9, 9, 8, 8, 5, 5, 1], **load}}


class Numbers(unittest.TestCase):
    def test_median(self):
        self.assertEqual(stats.median([3, 1, 2]), 2)
        self.assertEqual(stats.median([4, 1, 2, 3]), 2.5)
        self.assertEqual(stats.median([None, 7]), 7)
        self.assertIsNone(stats.median([]))

    def test_ratio_of_nothing_is_none(self):
        self.assertEqual(stats.ratio(6, 3), 2)
        self.assertIsNone(stats.ratio(6, 0))
        self.assertIsNone(stats.ratio(None, 3))

    def test_pairs_are_of_one_round(self):
        # The machine was ten times slower in round 1, for both.
        a, b = {0: 200, 1: 30, 2: 200}, {0: 100, 1: 10, 2: 100}
        self.assertEqual(stats.paired_ratio(a, b), 2)
        self.assertEqual(stats.paired_ratio(a, {1: 10}), 3)
        self.assertIsNone(stats.paired_ratio(a, {5: 10}))

    def test_spread(self):
        self.assertEqual(stats.spread([90, 100, 120]), 0.3)
        self.assertIsNone(stats.spread([]))

    def test_difference_wants_both(self):
        self.assertEqual(stats.difference({'a': 5, 'b': None, 'c': 1},
                                          {'a': 3, 'b': 1}), {'a': 2})

    def test_quarters_leave_the_last_tick_out(self):
        self.assertEqual(stats.quarter_means([4, 4, 3, 3, 2, 2, 1, 1, 99]),
                         (4, 1))
        self.assertEqual(stats.quarter_means([]), (None, None))

    def test_by_second(self):
        self.assertEqual(stats.by_second([1] * 20 + [3, 3], 0.1),
                         [10, 10, 30])

    def test_sizes(self):
        for t, n in (('64M', 64 << 20), ('1.5g', 3 << 29), ('4096', 4096),
                     ('2GiB', 2 << 30), ('8kb', 8192)):
            self.assertEqual(stats.size_parse(t), n)
        for t in ('', 'M', '-1M', 'nan', 'inf', '0'):
            with self.assertRaises(ValueError):
                stats.size_parse(t)
        self.assertEqual(stats.size_text(3 << 29), '1.5G')
        self.assertEqual(stats.size_text(512), '512')

    def test_figures_have_three_digits(self):
        for v, t in ((None, '-'), (0, '0'), (1234.5, '1234'), (12.34, '12.3'),
                     (0.01234, '0.0123'), (0.000001234, '0.00000'),
                     (-5.4321, '-5.43')):
            self.assertEqual(stats.figure_text(v), t)


class Figures(unittest.TestCase):
    def test_a_write(self):
        f = figures.figures(write_record('nvnfsd', 0, cpu=0.25))
        self.assertEqual(f['mib_s_stable'], 50)
        self.assertEqual(f['server_s_gib'], 0.25)
        self.assertEqual(f['whole_s_gib'], 0.5)
        self.assertAlmostEqual(f['server_us_call'], 0.25e6 / 1024)
        self.assertEqual(f['reads_call'], 0.5)
        self.assertEqual(f['flushes_call'], 8 / 1024)
        self.assertEqual(f['resident_call'], 2)
        self.assertEqual(f['last_to_first'], 0.5)
        self.assertEqual(f['last_quarter'], 50)

    def test_a_server_without_a_process(self):
        r = write_record('remote', 0)
        r['cpu']['server'] = None
        r['resident'] = None
        f = figures.figures(r)
        self.assertIsNone(f['server_s_gib'])
        self.assertIsNone(f['resident_call'])

    def test_connections_that_do_nothing(self):
        r = write_record('nvnfsd', 0)
        r.update(op='null', held={'rss_growth_kib': 4000, 'connections': 1000,
                                  'idle_cores': 0.01})
        f = figures.figures(r)
        self.assertEqual(f['rss_kib_conn'], 4)
        self.assertEqual(f['idle_cores'], 0.01)

    def test_the_starved_writer(self):
        r = write_record('nvnfsd', 0, writer_operations={
            'least': 3, 'most': 20, 'mean': 10.0})
        self.assertEqual(figures.figures(r)['slowest_to_mean'], 0.3)


class Bars(unittest.TestCase):
    def judge(self, *records):
        return {(t, c): (v, verdict) for t, c, v, _, verdict in
                bars.judge(Results(list(records)))}

    def test_a_bar_is_judged_by_pairs(self):
        records = [write_record('nvnfsd', r, stable=s) for r, s in
                   ((0, 130), (1, 14), (2, 140))]
        records += [write_record('ganesha', r, stable=s) for r, s in
                    ((0, 100), (1, 10), (2, 100))]
        got = self.judge(*records)
        key = ('1 MiB sequential WRITE x16', "MiB/s to stable, of Ganesha's")
        self.assertEqual(got[key], ('1.40', 'reached'))

    def test_a_bar_is_missed(self):
        got = self.judge(write_record('nvnfsd', 0, cpu=0.6),
                         write_record('ganesha', 0, cpu=1.0))
        key = ('1 MiB sequential WRITE x16', "server CPU, of Ganesha's")
        self.assertEqual(got[key], ('0.600', 'NOT REACHED'))

    def test_the_limit_that_follows_the_relay(self):
        got = self.judge(write_record('nvnfsd', 0, cpu=0.25),
                         write_record('relay', 0, cpu=0.20))
        key = ('1 MiB sequential WRITE x16',
               'server CPU s/GiB, at most relay + 0.06')
        self.assertEqual(got[key], ('0.250', 'reached'))

    def test_no_figures_no_verdict(self):
        self.assertEqual(bars.judge(Results([])), [])

    def test_a_failed_run_counts_for_nothing(self):
        bad = dict(write_record('nvnfsd', 0), good=False)
        self.assertEqual(self.judge(bad, write_record('ganesha', 0)), {})

    def test_the_lone_sync(self):
        def one(point, server, p50):
            return write_record(server, 0, point=point, latency_us={
                'p50': p50, 'p99': p50, 'p99_9': p50})
        got = self.judge(one('sync/4096', 'nvnfsd', 120.0),
                         one('sync/4096', 'local', 80.0),
                         one('sync/null', 'nvnfsd', 20.0))
        value, verdict = got[(
            'FILE_SYNC, one in flight',
            'p50, of local pwrite + fsync + a NULL; 4,096 bytes')]
        self.assertEqual((value, verdict), ('1.20', 'NOT REACHED'))


class Fio(unittest.TestCase):
    @staticmethod
    def side(n, ms, p50=1000):
        return {'io_bytes': n << 20, 'total_ios': n, 'runtime': ms,
                'clat_ns': {'mean': p50, 'percentile': {
                    '50.000000': p50, '99.000000': 2 * p50,
                    '99.900000': 3 * p50, '99.990000': 4 * p50}}}

    def job(self, name, write, read):
        return {'jobname': name, 'error': 0, 'write': write, 'read': read,
                'job_start': 100000}

    def test_jobs_are_added_up(self):
        none = self.side(0, 0)
        got = clients.from_fio({'jobs': [
            self.job('a', self.side(10, 1000), none),
            self.job('b', self.side(30, 2000), none)]}, 104.0)
        self.assertEqual(got['bytes'], 40 << 20)
        self.assertEqual(got['mib_s'], 20)
        self.assertEqual(got['mib_s_to_stable'], 10)
        self.assertEqual(got['latency_us']['p99'], 2)

    def test_readers_stand_by_themselves(self):
        none = self.side(0, 0)
        got = clients.from_fio({'jobs': [
            self.job('writer', self.side(10, 1000), none),
            dict(self.job('readers', none, self.side(5, 1000)),
                 job_start=0)]}, 100)
        self.assertEqual(got['op'], 'write')
        self.assertEqual(got['beside'][0]['mib_s'], 5)


class Points(unittest.TestCase):
    def test_every_workload_has_points_of_whole_records(self):
        for small in False, True:
            plan = Plan(1 << 30, small, chosen=list(WORKLOADS))
            for p in plan.points():
                if p.client == 'load' and p.op != 'null':
                    self.assertEqual(p.size % min(p.records, p.size), 0, p.key)
                    self.assertGreater(p.size, 0, p.key)

    def test_names_are_unique(self):
        keys = [p.key for p in Plan(1 << 30, chosen=list(WORKLOADS)).points()]
        self.assertEqual(len(keys), len(set(keys)))

    def test_points_by_pattern(self):
        plan = Plan(1 << 30, chosen=['shared-page/6000-*', 'null',
                                     'shared-page/6000-file'])
        keys = [p.key for p in plan.points()]
        self.assertIn('shared-page/6000-unstable', keys)
        self.assertEqual(keys.count('shared-page/6000-file'), 1)
        self.assertNotIn('shared-page/47008-file', keys)
        self.assertEqual(keys[-1], 'null')

    def test_a_trial_keeps_both_ends(self):
        points = Plan(1 << 30, chosen=['wsize']).points()
        kept = thin(points)
        self.assertLessEqual(len(kept), 6)
        self.assertIs(kept[0], points[0])
        self.assertIs(kept[-1], points[-1])


class Text(unittest.TestCase):
    def test_the_table_has_a_row_a_server(self):
        out = text.render(Results([write_record('nvnfsd', 0, stable=80.0),
                                   write_record('ganesha', 0, stable=40.0)]))
        row = next(x for x in out.splitlines() if x.startswith('    nvnfsd'))
        self.assertEqual(row.split()[-2:], ['2.00', '0'])
        self.assertIn('NOT REACHED', out)


    def test_markdown(self):
        self.assertEqual(text.markdown([['a', ' b'], ['1|2', '3']]),
                         ['| a | b |', '| --- | --- |', '| 1\\|2 | 3 |'])


if __name__ == '__main__':
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""perf beside a run: lock contention of the whole machine, or where the server
and the kernel's threads spend their time. Each ends up as text in the results;
perf's own overhead is in the figures of such a run."""
import signal
import subprocess
import time

ROWS = 60
START = 0.7  # seconds until perf looks


class Perf:
    def __init__(self, out):
        self._out = out
        self.lock = self.profile = False
        self._count = 0

    def start(self, label):
        """What is running, for stop(); the label goes into file names."""
        self._count += 1
        stem = self._out / f'{self._count}-{label.replace("/", "-")}'
        running = []
        if self.lock:
            running.append(self._record(stem, 'lock', ['lock', 'record',
                                                       '-a']))
        if self.profile:
            running.append(self._record(stem, 'profile', [
                'record', '-a', '-g', '-F', '499']))
        if running:
            time.sleep(START)
        return running

    @staticmethod
    def _record(stem, kind, args):
        data = stem.with_name(f'{kind}-{stem.name}.data')
        p = subprocess.Popen(['perf', *args, '-o', str(data)],
                             stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL,
                             start_new_session=True)
        return p, kind, data

    def stop(self, running):
        for p, _, _ in running:
            p.send_signal(signal.SIGINT)
        for p, kind, data in running:
            p.wait()
            if kind == 'lock':
                args = ['lock', 'contention', '-E', str(ROWS)]
            else:
                args = ['report', '--stdio', '--no-children', '-g', 'none',
                        '--percent-limit', '0.3', '-s', 'comm,dso,symbol']
            got = subprocess.run(['perf', *args, '-i', str(data)],
                                 check=False, text=True,
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT)
            data.with_suffix('.txt').write_text(
                '\n'.join(got.stdout.splitlines()[:4 * ROWS]) + '\n')
            data.unlink(missing_ok=True)

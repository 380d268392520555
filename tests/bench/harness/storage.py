# SPDX-License-Identifier: Apache-2.0
"""Where the served files lie: a directory that is given, or a file system made
in an image behind a loop device. All of an image's blocks are there before the
first run, so that no run pays for them."""
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .stats import size_text

TMPFS_DIR = Path('/dev/shm')


def disk_dir():
    return Path(os.environ.get('TMPDIR', '/var/tmp'))


def command(*args, **kw):
    return subprocess.run([str(a) for a in args], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          **kw).stdout


class Storage:
    """Made by the run, which owns it, and closed at its end."""

    def __init__(self, directory):
        self.directory = Path(directory).resolve()
        self.kind = 'given'
        self._image = None
        self._home = None

    @classmethod
    def make(cls, size, ram, block, fs):
        base = TMPFS_DIR if ram else disk_dir()
        free = shutil.disk_usage(base).free
        if free < size:
            raise RuntimeError(f'{base} has room for {size_text(free)}, '
                               f'not for {size_text(size)}')
        home = Path(tempfile.mkdtemp(prefix='nvnfsd-bench.', dir=base))
        s = cls(home / 'export')
        s._home = home
        s.kind = f'{fs}, {block}-byte blocks, loop over ' \
            f'{"RAM" if ram else base}, {size_text(size)}'
        try:
            s._mount(size, block, fs)
        except Exception as error:
            s.close()
            if isinstance(error, subprocess.CalledProcessError):
                raise RuntimeError(error.stderr.strip()) from error
            raise
        return s

    def _mount(self, size, block, fs):
        self.directory.mkdir()
        image = self._home / 'image'
        command('fallocate', '-l', size, image)
        loop = ['losetup', '--find', '--show', '--sector-size', block]
        try:
            device = command(*loop, '--direct-io=on', image).strip()
        except subprocess.CalledProcessError:
            device = command(*loop, image).strip()
        self._undo_last_user(device)
        try:
            # Discarding would give the image's blocks back.
            if fs == 'xfs':
                command('mkfs.xfs', '-q', '-f', '-K', device)
            else:
                command('mkfs.ext4', '-q', '-F', '-E', 'nodiscard,'
                        'lazy_itable_init=0,lazy_journal_init=0', device)
            command('mount', '-t', fs, device, self.directory)
            self._image = image
        finally:
            command('losetup', '-d', device)

    @staticmethod
    def _undo_last_user(device):
        """A loop device keeps the limit of its requests when it is let go of:
        tests that lower it to a page would slow down whoever is next."""
        queue = Path('/sys/block', device.removeprefix('/dev/'),
                             'queue')
        most = (queue / 'max_hw_sectors_kb').read_text()
        (queue / 'max_sectors_kb').write_text(most)

    def close(self):
        """What was made goes as a whole; of a directory that was given, what
        runs leave in it."""
        if self.kind == 'given':
            self.remove('bench-*')
            self.remove('buffered')
        if self._image:
            subprocess.run(['umount', str(self.directory)], check=False)
            self._image = None
        if self._home:
            shutil.rmtree(self._home, ignore_errors=True)
            self._home = None

    @property
    def device(self):
        """The sysfs directory of the block device, or None."""
        number = os.stat(self.directory).st_dev
        p = Path(f'/sys/dev/block/{os.major(number)}:{os.minor(number)}')
        return p.resolve() if p.exists() else None

    def counters(self):
        """Reads and writes in 4 KiB units, read requests, flushes."""
        d = self.device
        if d is None:
            return {}
        f = [int(x) for x in (d / 'stat').read_text().split()]
        return {'dev_reads': f[2] / 8, 'dev_read_requests': f[0],
                'dev_writes': f[6] / 8,
                'dev_flushes': f[15] if len(f) > 15 else 0}

    def forget(self, name):
        """Write one file back and drop it from the page cache, it only."""
        fd = os.open(self.directory / name, os.O_RDONLY)
        os.fdatasync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)

    @staticmethod
    def resident(path):
        """Pages of a file in the page cache."""
        return int(command('fincore', '-n', '-b', '-o', 'PAGES', path))

    def remove(self, name):
        for p in self.directory.glob(name):
            if p.is_dir():
                shutil.rmtree(p)
            else:
                p.unlink()

# SPDX-License-Identifier: Apache-2.0
"""The servers that a run can start, and those that it is told of. Each is up
from start() to stop() and serves the run's storage."""
import os
import re
import resource
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from .cgroup import Cgroup
from .measure import process_cpu, rss_mib

HERE = Path(__file__).resolve().parent.parent


class Server:
    """name: in the tables. kind: nvnfsd, ganesha, relay, sink, remote."""
    mounts = True      # it has a MOUNT service and files by name
    local = True       # its storage is the run's
    wants_cgroup = True

    def __init__(self, name, kind, variant='', ops=()):
        """variant: of nvnfsd, its modes. ops: it was asked for by a mode, for
        all points that do these."""
        self.name, self.kind = name, kind
        self.variant, self._ops = variant, ops
        self.address, self.port, self.mount_port = '127.0.0.1', 0, 0
        self.export = None
        self.pid = None
        self.cgroup = None
        self._process = None

    @property
    def label(self):
        """For file names."""
        return re.sub(r'[^A-Za-z0-9.-]', '-', self.name)

    def takes(self, point):
        if self.kind not in point.kinds:
            return False
        return self.kind != 'nvnfsd' or self.variant in point.variants or \
            point.op in self._ops

    def usage(self):
        """RSS in MiB, CPU seconds, now."""
        return {'rss': rss_mib(self.pid) if self.pid else 0,
                'cpu': process_cpu(self.pid) if self.pid else 0,
                'time': time.monotonic()}

    def start(self, storage, work):
        """Come up; self.pid, port, mount_port and export are set."""

    def before_run(self, storage, name):
        """name: the file that the next run will use."""

    def after_run(self):
        """Let go of the file."""

    def stop(self):
        p, self._process, self.pid = self._process, None, None
        if p is not None:
            p.send_signal(signal.SIGTERM)
            try:
                p.wait(60)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
        if self.cgroup is not None:
            self.cgroup.close()
            self.cgroup = None

    def target(self, sub=''):
        """Options of nvnfsd-load."""
        t = ['--server', self.address, '--port', str(self.port),
             '--mount-port', str(self.mount_port), '--raw']
        return t + (['--export', str(self.export)] if self.mounts
                    else ['--no-mount']) + self.sub_options(sub)

    def sub_options(self, sub):
        """To use the export of that name, below the first: here, the one
        export there is."""
        return []

    def place(self, sub, name):
        """Of a file below the storage's directory."""
        return f'{sub}/{name}' if self.sub_options(sub) else name

    def url(self):
        """For fio and other users of libnfs."""
        host = f'[{self.address}]' if ':' in self.address else self.address
        return f'nfs://{host}{self.export}?nfsport={self.port}' \
            f'&mountport={self.mount_port}'

    def _spawn(self, args, work, ready):
        """Wait for a line that matches ready, in its output."""
        out = work / f'{self.label}.log'
        with open(out, 'w', encoding='utf-8') as f:
            self._process = subprocess.Popen(
                [str(a) for a in args], stdin=subprocess.DEVNULL, stdout=f,
                stderr=f, start_new_session=True, preexec_fn=raise_limits)
        self.pid = self._process.pid
        if self.cgroup is None and self.wants_cgroup:
            self.cgroup = Cgroup.make(f'nvnfsd-bench-{self.pid}')
        if self.cgroup is not None:
            self.cgroup.add(self.pid)
        while True:
            found = re.search(ready, out.read_text(encoding='utf-8'), re.M)
            if found:
                return found
            if self._process.poll() is not None:
                raise RuntimeError(f'{self.name} did not start: see {out}')
            time.sleep(0.05)


class Nvnfsd(Server):
    """From a build directory, with modes. A variant is one of r-MODE or w-MODE
    (the other side buffered, as in the kernel developers' runs), MODE (both),
    mixed (writes dontcache, reads buffered), e-HOW (direct, with these edges),
    or nothing: the defaults."""

    def __init__(self, build, variant='', ops=()):
        super().__init__(f'nvnfsd/{variant}' if variant else 'nvnfsd',
                         'nvnfsd', variant, ops)
        self._build = Path(build)

    def _modes(self):
        v = self.variant
        if v == '' or v.startswith('e-'):
            return []
        read = write = v
        if v == 'mixed':
            read, write = 'buffered', 'dontcache'
        elif v.startswith('r-'):
            read, write = v[2:], 'buffered'
        elif v.startswith('w-'):
            read, write = 'buffered', v[2:]
        return ['--read-mode', read, '--write-mode', write]

    def sub_options(self, sub):
        return ['--export', f'{self.export}/{sub}'] if sub else []

    def start(self, storage, work):
        state = work / f'state-{self.label}'
        state.mkdir(exist_ok=True)
        empty = work / 'empty'
        empty.touch()
        self.export = storage.directory
        sub = storage.directory / 'buffered'
        sub.mkdir(exist_ok=True)
        who = '127.0.0.1(rw,no_root_squash,insecure'
        edges = f',edges={self.variant[2:]}' \
            if self.variant.startswith('e-') else ''
        args = [self._build / 'nfsd/nvnfsd', '--config', empty, '--exports',
                empty, '--export', f'"{self.export}" {who},fsid=1{edges})',
                '--export', f'"{sub}" {who},fsid=2,read-mode=buffered,'
                'write-mode=buffered)', '--listen', '127.0.0.1', '--port',
                '0', '--state-dir', state, '--no-rpcbind', *self._modes()]
        found = self._spawn(args, work,
                            r'ready nfs=.*:(\d+) mount=.*:(\d+) ')
        self.port, self.mount_port = int(found[1]), int(found[2])


class Limit(Server):
    """relay or sink."""
    mounts = False

    def __init__(self, build, kind):
        super().__init__(kind, kind)
        self._build = Path(build)
        self._work = None

    def start(self, storage, work):
        self._work = work
        if self.kind == 'sink':
            self._up([])

    def _up(self, args):
        found = self._spawn(
            [self._build / f'tests/bench/nvnfsd-{self.kind}', *args],
            self._work, r'ready nfs=.*:(\d+) mount=.*:(\d+) ')
        self.port = self.mount_port = int(found[1])

    def before_run(self, storage, name):
        """The relay knows one file, from its start on."""
        if self.kind == 'relay':
            self.stop()
            self._up([storage.directory / name])

    def after_run(self):
        if self.kind == 'relay':
            self.stop()


class Remote(Server):
    """Any NFSv3 server: ADDR:PORT/EXPORT."""

    def __init__(self, spec):
        found = re.fullmatch(r'(\[[^]]+\]|[^:/]+):(\d+)(/.*)', spec)
        if not found:
            raise ValueError(f'not ADDR:PORT/EXPORT: {spec}')
        super().__init__(spec, 'remote')
        self.address = found[1].strip('[]')
        self.port = self.mount_port = int(found[2])
        self.export = found[3]
        self.local = False


class Ganesha(Server):
    """NFS-Ganesha with FSAL_VFS out of a root that get-ganesha made."""

    def __init__(self):
        super().__init__('ganesha', 'ganesha')
        self._root = None
        self._rpcbind = None

    CONFIG = '''NFS_CORE_PARAM { Protocols = 3; RPC_Max_Connections = 10000; NFS_Port = %(nfs)d;
  MNT_Port = %(mnt)d; Bind_addr = 127.0.0.1; Enable_NLM = false;
  Enable_RQUOTA = false; Enable_UDP = false; mount_path_pseudo = true;
  fsid_device = true; allow_set_io_flusher_fail = true; }
NFSv4 { Graceless = true; RecoveryBackend = none; }
EXPORT_DEFAULTS { Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
  Protocols = 3; Transports = TCP; PrivilegedPort = false; }
EXPORT { Export_Id = 1; Path = /export; Pseudo = /export; MaxRead = 1048576;
  MaxWrite = 1048576; PrefRead = 1048576; PrefWrite = 1048576;
  FSAL { Name = VFS; } }
LOG { Default_Log_Level = EVENT; }
'''
    SCRIPT = '''set -e
mount --make-rprivate /
mount --bind "$1" "$1"
for d in export run etc/ganesha var/log; do
	mkdir -p "$1/$d"
done
mount --bind "$2" "$1/export"
mount -t tmpfs run "$1/run"
mkdir -p "$1/run/ganesha" "$1/run/rpcbind" "$1/run/dbus"
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
mount --rbind /sys "$1/sys"
mount --bind "$3" "$1/mnt"
unshare -n chroot "$1" /usr/sbin/rpcbind -f >"$3/rpcbind.log" 2>&1 &
echo $! >"$3/rpcbind.pid"
while ! [ -S "$1/run/rpcbind.sock" ]; do sleep 0.05; done
exec chroot "$1" /usr/bin/ganesha.nfsd -F -f /mnt/ganesha.conf \\
	-L /mnt/ganesha.log -p /run/ganesha/pid
'''

    def start(self, storage, work):
        got = subprocess.run([str(HERE / 'get-ganesha')], check=False,
                             stdout=subprocess.PIPE, text=True)
        if got.returncode != 0:
            raise RuntimeError('no Ganesha here')
        root = got.stdout.strip()
        home = Path(tempfile.mkdtemp(prefix='ganesha-', dir=work))
        ports = free_ports(2)
        (home / 'ganesha.conf').write_text(
            self.CONFIG % {'nfs': ports[0], 'mnt': ports[1]})
        self._spawn(['unshare', '-m', 'sh', '-c', self.SCRIPT, 'sh', root,
                     storage.directory, home], work, '')
        pid = home / 'rpcbind.pid'
        while not listens(ports[0]):
            if self._process.poll() is not None:
                raise RuntimeError(f'ganesha did not start: see {home}')
            time.sleep(0.1)
        self._rpcbind = int(pid.read_text())
        self.port, self.mount_port = ports
        self.export = '/export'

    def stop(self):
        super().stop()
        if self._rpcbind:
            try:
                os.kill(self._rpcbind, signal.SIGTERM)
            except ProcessLookupError:
                pass
            self._rpcbind = None


def raise_limits():
    """One descriptor a connection and file, as a service manager gives."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(('127.0.0.1', 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(('127.0.0.1', port)) == 0

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Locks as programs of two clients take them: locks.py CHECK, one function
below a check. The environment says where: ONE and TWO are the same directory
as two clients have it, WORK is it on the server; ADDRESSES are the server's and
the client's for ONE, then for TWO; SERVER is nvnfsd or knfsd. What only the
shell can do it has exported as functions."""

import atexit
import errno
import fcntl
import multiprocessing
import os
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import traceback

ONE, TWO, WORK = (os.environ[n] for n in ("ONE", "TWO", "WORK"))
TO_ONE, AT_ONE, TO_TWO, AT_TWO = os.environ["ADDRESSES"].split()
KERNEL = os.environ["SERVER"] == "knfsd"

READ, WRITE, NONE = fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK
OFD_GETLK, OFD_SETLK = 36, 37
FLOCK = "hhqqi4x"  # struct flock

# What never comes must not be waited for for ever. No check's verdict is about
# how long something took.
PATIENCE = 300


class Interrupted(Exception):
    pass


def interrupted(*_):
    raise Interrupted


def locking(fd, command, kind, start, length):
    """fcntl(2): None, or what a GETLK names as (kind, start, length, pid)."""
    asked = struct.pack(FLOCK, kind, os.SEEK_SET, start, length, 0)
    kind, _, start, length, pid = struct.unpack(
        FLOCK, fcntl.fcntl(fd, command, asked))
    if command not in (fcntl.F_GETLK, OFD_GETLK) or kind == NONE:
        return None
    return kind, start, length, pid


def child(function, *args):
    """All of a process that was forked: it prints what went wrong."""
    try:
        function(*args)
        os._exit(0)
    except Exception:
        traceback.print_exc()
    finally:
        os._exit(1)


class Program:
    """A process that has a file open, and does with its locks what it is told.
    It answers with what locking() returns, or an error's name."""

    def __init__(self, directory, file="f", flags=os.O_RDWR | os.O_CREAT):
        self.tube, mine = multiprocessing.Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            child(self.serve, mine, f"{directory}/{file}", flags)
        mine.close()
        atexit.register(self.kill)

    @staticmethod
    def serve(tube, path, flags):
        fd = os.open(path, flags, 0o666)
        signal.signal(signal.SIGUSR1, interrupted)
        while True:
            asked = tube.recv()
            try:
                answer = locking(fd, *asked)
            except Interrupted:
                answer = "EINTR"
            except OSError as e:
                answer = errno.errorcode[e.errno]
            tube.send(answer)

    def begin(self, *asked):
        self.tube.send(asked)

    def result(self):
        assert self.tube.poll(PATIENCE), "no answer"
        return self.tube.recv()

    def waits(self):
        return not self.tube.poll(0)

    def ask(self, *asked):
        self.begin(*asked)
        return self.result()

    def lock(self, kind, start, length):
        return self.ask(fcntl.F_SETLK, kind, start, length)

    def wait(self, kind, start, length):
        self.begin(fcntl.F_SETLKW, kind, start, length)

    def unlock(self, start=0, length=0):
        is_("unlock", self.lock(NONE, start, length), None)

    def test(self, kind, start, length):
        return self.ask(fcntl.F_GETLK, kind, start, length)

    def kill(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self.pid = 0


def is_(what, got, want):
    assert got == want, f"{what}: {got}, not {want}"


class Wire(threading.Thread):
    """The NLM calls that pass by the server's interfaces, in their order."""

    TEST, LOCK, CANCEL, UNLOCK, GRANTED = range(1, 6)
    MSG = 5  # from a procedure to its asynchronous form

    def __init__(self):
        super().__init__(daemon=True)
        self.calls = []
        self.seen = set()
        # All protocols: what goes out shows only to who asks for all.
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM,
                                    socket.htons(3))
        self.start()

    def run(self):
        # A call, of RPC version 2, to NLM version 4.
        begin = struct.pack(">5L", 0, 2, 100021, 4, 0)[:16]
        while True:
            packet, (_, kind, *_) = self.socket.recvfrom(1 << 16)
            if kind != 0x800:
                continue
            at = packet.find(begin)
            while at >= 4:
                xid, = struct.unpack_from(">L", packet, at - 4)
                proc, = struct.unpack_from(">L", packet, at + 16)
                call = (socket.inet_ntoa(packet[12:16]),
                        socket.inet_ntoa(packet[16:20]), proc)
                if (xid, call) not in self.seen:
                    self.calls.append(call)
                self.seen.add((xid, call))
                at = packet.find(begin, at + 1)

    def count(self, source, target, proc):
        return sum(c[:2] == (source, target) and c[2] in (proc, proc + self.MSG)
                   for c in self.calls)

    def until(self, source, target, proc, count):
        end = time.monotonic() + PATIENCE
        while self.count(source, target, proc) < count:
            assert time.monotonic() < end, f"no call {proc}: {self.calls}"
            time.sleep(0.02)


def shell(command):
    subprocess.run(["bash", "-ec", command], check=True)


def ranges():
    """Who is let in where, by what the other holds."""
    a, b = Program(ONE), Program(TWO)
    again, far = "EAGAIN", (1 << 63) - 1
    steps = [
        (a, WRITE, 100, 100, None),
        (b, WRITE, 150, 1, again), (b, READ, 199, 1, again),
        (b, READ, 99, 2, again), (b, WRITE, 0, 0, again),
        (b, READ, 200, 1, None), (b, WRITE, 0, 100, None),
        # a hole in the middle
        (a, NONE, 140, 20, None),
        (b, WRITE, 140, 20, None), (b, WRITE, 139, 1, again),
        (b, WRITE, 160, 1, again), (b, NONE, 0, 0, None),
        # downgrade and upgrade
        (a, READ, 100, 100, None), (b, READ, 100, 100, None),
        (b, WRITE, 199, 1, again), (b, WRITE, 150, 1, again),
        (a, READ, 149, 1, None), (a, WRITE, 100, 1, again),
        (b, NONE, 0, 0, None), (a, WRITE, 100, 100, None),
        (b, READ, 100, 1, again), (a, NONE, 0, 0, None),
        # to the end, and the last byte there is
        (a, WRITE, 1 << 40, 0, None), (b, WRITE, far, 1, again),
        (b, WRITE, (1 << 40) - 1, 1, None), (b, WRITE, 1, 1 << 40, again),
        (a, NONE, far, 1, None), (b, WRITE, far, 1, None),
        (a, NONE, 0, 0, None), (b, NONE, 0, 0, None),
        (a, WRITE, 0, 0, None),
    ]
    for i, (who, kind, start, length, want) in enumerate(steps):
        is_(f"step {i}", who.lock(kind, start, length), want)


def holder():
    """A test names who is in the way, and with what."""
    a, b = Program(ONE), Program(TWO)
    a.lock(WRITE, 0, 10)
    a.lock(WRITE, 10, 10)
    a.lock(READ, 100, 50)
    *got, pid = b.test(WRITE, 0, 0)
    is_("the first, in one piece", got, [WRITE, 0, 20])
    assert pid != 0
    is_("a reader", b.test(WRITE, 120, 1)[:3], (READ, 100, 50))
    is_("readers together", b.test(READ, 120, 1), None)
    is_("nobody", b.test(WRITE, 20, 80), None)
    is_("nor oneself", a.test(WRITE, 0, 0), None)
    c = Program(ONE)
    c.lock(WRITE, 1000, 1)
    is_("another of the same client", c.test(READ, 19, 1)[:3], (WRITE, 0, 20))
    if not KERNEL:  # which names lockd
        assert b.test(WRITE, 1000, 1)[3] != pid
    a.kill()
    is_("of a process that was killed", b.lock(WRITE, 0, 200), None)


def blocking():
    """Whoever waits is called back when it is his turn."""
    wire, a, b, c = Wire(), Program(ONE), Program(TWO), Program(TWO)
    a.lock(WRITE, 0, 100)
    b.wait(WRITE, 0, 50)
    c.wait(READ, 50, 50)
    wire.until(AT_TWO, TO_TWO, wire.LOCK, 2)
    a.unlock(50, 50)
    is_("the one", c.result(), None)
    assert b.waits()
    a.unlock(0, 1)
    assert b.waits()
    a.unlock()
    is_("the other", b.result(), None)
    wire.until(TO_TWO, AT_TWO, wire.GRANTED, 2)
    print(f"fact: asked {wire.count(AT_TWO, TO_TWO, wire.LOCK)} times for two")
    is_("held against", a.test(READ, 0, 50)[:3], (WRITE, 0, 50))
    # A writer behind two readers. For his own client's the client makes him wait
    # before it asks.
    a.lock(READ, 200, 1)
    c.lock(READ, 200, 1)
    b.wait(WRITE, 200, 1)
    c.kill()
    wire.until(AT_TWO, TO_TWO, wire.LOCK, 4)
    assert b.waits()
    a.unlock()
    is_("the writer", b.result(), None)


def cancelled():
    """Who gives up waiting gets nothing later, by a signal or killed."""
    wire, a, b = Wire(), Program(ONE), Program(TWO)
    a.lock(WRITE, 0, 10)
    b.wait(WRITE, 0, 10)
    wire.until(AT_TWO, TO_TWO, wire.LOCK, 1)
    os.kill(b.pid, signal.SIGUSR1)
    is_("interrupted", b.result(), "EINTR")
    wire.until(AT_TWO, TO_TWO, wire.CANCEL, 1)
    a.unlock()
    is_("for the next", a.lock(WRITE, 0, 10), None)
    is_("callbacks", wire.count(TO_TWO, AT_TWO, wire.GRANTED), 0)
    # Its CANCEL may come after the unlock, and then it refuses what it got.
    b.wait(WRITE, 0, 10)
    wire.until(AT_TWO, TO_TWO, wire.LOCK, 2)
    b.kill()
    a.unlock()
    a.wait(WRITE, 0, 10)
    is_("when that is gone", a.result(), None)


def deadlock():
    """Two that would wait for each other: the second is refused."""
    wire, a, b = Wire(), Program(ONE), Program(TWO)
    a.lock(WRITE, 0, 1)
    b.lock(WRITE, 1, 1)
    a.wait(WRITE, 1, 1)
    wire.until(AT_ONE, TO_ONE, wire.LOCK, 2)
    b.wait(WRITE, 0, 1)
    is_("the second", b.result(), errno.errorcode[errno.EDEADLK])
    assert a.waits()
    b.unlock()
    is_("the first", a.result(), None)


def local():
    """A process on the server is kept out, and keeps out."""
    wire, a, b, c = Wire(), Program(ONE), Program(WORK), Program(TWO)
    a.lock(WRITE, 0, 10)
    a.lock(READ, 20, 10)
    for command in fcntl.F_SETLK, OFD_SETLK:
        is_("write", b.ask(command, WRITE, 5, 1), "EAGAIN")
        is_("read", b.ask(command, READ, 5, 1), "EAGAIN")
        is_("write beside a reader", b.ask(command, WRITE, 25, 1), "EAGAIN")
        is_("read beside a reader", b.ask(command, READ, 25, 1), None)
        is_("unlock", b.ask(command, NONE, 0, 0), None)
    a.unlock(0, 5)
    is_("given back", b.lock(WRITE, 0, 5), None)
    is_("a client", c.lock(READ, 4, 1), "EAGAIN")
    # The client tells another machine's processes by a minus.
    is_("holder", c.test(READ, 0, 1), (WRITE, 0, 5, -b.pid))
    c.wait(WRITE, 0, 5)
    wire.until(AT_TWO, TO_TWO, wire.LOCK, 2)
    b.unlock()
    is_("after it", c.result(), None)
    is_("the process", b.lock(READ, 0, 1), "EAGAIN")
    a.kill()
    c.kill()
    is_("at last", b.lock(WRITE, 0, 0), None)


def reclaimed():
    """The server dies with locks held and waited for. Whoever held one holds
    it, and nobody was let in before."""
    wire = Wire()
    a, b, c = Program(ONE), Program(TWO), Program(TWO)
    late, here = Program(TWO), Program(WORK)
    a.lock(WRITE, 0, 10)
    a.lock(READ, 100, 10)
    b.lock(WRITE, 20, 10)
    c.wait(WRITE, 0, 10)
    wire.until(AT_TWO, TO_TWO, wire.LOCK, 2)
    before = wire.count(AT_ONE, TO_ONE, wire.LOCK)
    shell("locks_server_kill")
    late.wait(WRITE, 100, 10)
    # A new lock is given when the grace period has ended.
    is_("new", Program(TWO).lock(WRITE, 200, 1), None)
    wire.until(AT_ONE, TO_ONE, wire.LOCK, before + 2)
    for start, kind in (0, WRITE), (20, WRITE), (100, READ):
        got = here.ask(OFD_GETLK, WRITE, start, 10)
        is_("reclaimed", got and got[:3], (kind, start, 10))
    assert c.waits()
    assert late.waits()
    a.unlock()
    is_("the waiter", c.result(), None)
    is_("the late one", late.result(), None)
    is_("for the one", a.test(WRITE, 0, 10)[:3], (WRITE, 0, 10))


def rebooted():
    """A client that comes up anew says so: what it held before is free."""
    wire, a, b = Wire(), Program(ONE), Program(TWO)
    here = Program(WORK)
    a.lock(WRITE, 0, 10)
    b.wait(WRITE, 0, 10)
    wire.until(AT_TWO, TO_TWO, wire.LOCK, 1)
    shell("in_client left sm-notify -f")
    is_("the waiter", b.result(), None)
    wire.until(TO_TWO, AT_TWO, wire.GRANTED, 1)
    a.kill()
    is_("held", here.lock(WRITE, 0, 10), "EAGAIN")
    b.kill()
    is_("free", here.lock(WRITE, 0, 10), None)


def read_only():
    """A file that is only read can be locked so, and keeps writers out: on a
    mount that is read-only, and of an export that is."""
    a = Program(os.environ["MOUNTED_RO"], flags=os.O_RDONLY)
    b = Program(TWO)
    is_("read", a.lock(READ, 0, 10), None)
    is_("write", a.lock(WRITE, 0, 10), "EBADF")
    is_("a writer", b.lock(WRITE, 5, 1), "EAGAIN")
    is_("a reader", b.lock(READ, 5, 1), None)
    a.kill()
    is_("the writer", b.lock(WRITE, 5, 1), None)
    c = Program(os.environ["EXPORTED_RO"], "file", os.O_RDONLY)
    d = Program(os.environ["THERE_RO"], "file", os.O_RDWR)
    is_("read", c.lock(READ, 0, 10), None)
    is_("a writer here", d.lock(WRITE, 5, 1), "EAGAIN")
    c.kill()
    d.wait(WRITE, 5, 1)
    is_("the writer here", d.result(), None)


def together(work, times):
    """work(directory, i) by four processes, so many times each."""
    pids = []
    for i, directory in enumerate((ONE, TWO, ONE, TWO)):
        pids.append(os.fork())
        if pids[-1] == 0:
            child(lambda: [work(directory, i * times + n)
                           for n in range(times)])
    assert all([os.waitpid(p, 0)[1] == 0 for p in pids]), "one failed"


def step(fd):
    """One more than what the file says."""
    n = int(os.pread(fd, 20, 0) or b"0")
    os.pwrite(fd, b"%d" % (n + 1), 0)


def count_by_fcntl(directory, _):
    fd = os.open(f"{directory}/f", os.O_RDWR | os.O_CREAT, 0o666)
    fcntl.lockf(fd, fcntl.LOCK_EX, 7, 1000)
    step(fd)
    fcntl.lockf(fd, fcntl.LOCK_UN, 7, 1000)
    os.close(fd)


def counted():
    """Nobody's step is lost."""
    wire = Wire()
    together(count_by_fcntl, 40)
    with open(f"{WORK}/f") as f:
        is_("steps", f.read(), "160")
    n = (wire.count(TO_ONE, AT_ONE, wire.GRANTED) +
         wire.count(TO_TWO, AT_TWO, wire.GRANTED))
    print(f"fact: {n} callbacks")


def deliver(directory, i):
    """Into a mailbox as mailers do: a lock file that is linked, then flock."""
    own, dot = f"{directory}/own{i}", f"{directory}/mbox.lock"
    os.close(os.open(own, os.O_CREAT | os.O_EXCL, 0o666))
    while True:
        try:
            os.link(own, dot)
        except FileExistsError:
            time.sleep(0.01)
            continue
        break
    is_("links", os.stat(own).st_nlink, 2)
    fd = os.open(f"{directory}/mbox", os.O_RDWR | os.O_CREAT, 0o666)
    fcntl.flock(fd, fcntl.LOCK_EX)
    step(fd)
    os.close(fd)
    os.unlink(dot)
    os.unlink(own)


def delivered():
    together(deliver, 20)
    with open(f"{WORK}/mbox") as f:
        is_("steps", f.read(), "80")
    is_("left", os.listdir(WORK), ["mbox"])


def database_of(directory):
    """SQLite follows /proc/PID/root, which then leads to its own root: so that
    must be the client's."""
    root, mount, within = directory.partition("/mnt/")
    if mount:
        os.chroot(root)
    return sqlite3.connect(f"{mount}{within or directory}/db", PATIENCE,
                           isolation_level=None)


def insert(directory, i):
    db = database_of(directory)
    db.execute("begin immediate")
    n, = db.execute("select count(*) from t").fetchone()
    db.execute("insert into t values (?, ?)", (n, f"row {i} " * 50))
    db.execute("commit")
    db.close()


def verify(directory, _):
    db = database_of(directory)
    is_("check", db.execute("pragma integrity_check").fetchall(), [("ok",)])
    is_("rows", db.execute("select max(n), count(*) from t").fetchone(),
        (59, 60))


def database():
    """SQLite by two clients, each row numbered by how many there were."""
    db = database_of(WORK)
    db.execute("create table t (n integer primary key, s text unique)")
    db.close()
    together(insert, 15)
    together(verify, 1)
    verify(WORK, 0)


if __name__ == "__main__":
    globals()[sys.argv[1]]()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the guest's checks do that a shell cannot, or not fast enough: calls.py
COMMAND ARGUMENTS, one function below a command."""

import errno
import itertools
import mmap
import os
import random
import socket as sockets
import sqlite3
import sys
import time


def pattern(mib):
    """MIB MiB whose every 8 bytes hold the number of their page."""
    chunk = bytearray(1 << 20)  # one for all: a page fault is slow in a guest
    page = 0
    for _ in range(int(mib)):
        for at in range(0, len(chunk), 4096):
            page += 1
            chunk[at:at + 4096] = page.to_bytes(8, "little") * 512
        sys.stdout.buffer.write(chunk)


def churn(directory, times):
    """Make, write, rename, list and remove small files."""
    os.chdir(directory)
    for i in range(int(times)):
        with open(f"new{i}", "w") as f:
            f.write(f"{i}\n" * 50)
        os.rename(f"new{i}", f"name{i % 100}")
        if i % 100 == 99:
            names = sorted(os.listdir("."))
            for n in [n for n in names if n.startswith("name")]:
                os.unlink(n)


def opened(path, flags):
    """path for reading and writing, with O_DIRECT when flags say so."""
    direct = os.O_DIRECT if flags == "direct" else 0
    return os.open(path, os.O_RDWR | os.O_CREAT | direct, 0o644)


def every(source, path, record, records, first, step, flags):
    """Write each step-th record of source to its place, from first on."""
    record = int(record)
    with open(source, "rb") as f:
        fd = opened(path, flags)
        for i in range(int(first), int(records), int(step)):
            f.seek(i * record)
            assert os.pwrite(fd, f.read(record), i * record) > 0
        os.close(fd)


def append(path, who, times):
    """Append lines of 100 bytes, each with a write of its own."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for i in range(int(times)):
        os.write(fd, f"{who} {i} ".ljust(99, ".").encode() + b"\n")
    os.close(fd)


def mapped(path, model):
    """Write through a mapping, some of it also by pwrite."""
    size = 6000003
    rng = random.Random(5)
    copy = bytearray(size)
    fd = opened(path, "")
    os.ftruncate(fd, size)
    m = mmap.mmap(fd, size)
    for i in range(1500):
        n = rng.randrange(1, 9000)
        at = rng.randrange(size - n)
        b = rng.randbytes(n)
        copy[at:at + n] = b
        if i % 10 == 9:
            os.pwrite(fd, b, at)
        else:
            m[at:at + n] = b
        if i % 200 == 199:
            m.flush()
    assert m[:] == copy
    m.flush()
    m.close()
    os.fsync(fd)
    os.close(fd)
    with open(model, "wb") as f:
        f.write(copy)


def through_mapping(fd, copy, at, n):
    """Read from at on, and turn around what is there."""
    with mmap.mmap(fd, len(copy)) as m:
        at %= len(copy)
        assert m[at:at + n] == copy[at:at + n], (at, n)
        copy[at:at + n] = reversed(copy[at:at + n])
        m[at:at + n] = bytes(copy[at:at + n])


def mixed(path, model, flags):
    """Writes and reads of all lengths anywhere, through mappings too, truncates,
    fsyncs, closes and opens, as fsx has them; what is read must be what was
    written, at once."""
    rng = random.Random(7)
    copy = bytearray()
    fd = opened(path, flags)
    for _ in range(1200):
        what = rng.randrange(20)
        n = rng.choice((1, 100, 4096, 6000, 47008, 65536, 200000))
        at = rng.randrange(4000000)
        if rng.randrange(2):
            at &= ~4095
        if what < 10:
            b = rng.randbytes(n)
            copy.extend(bytes(max(0, at + n - len(copy))))
            copy[at:at + n] = b
            assert os.pwrite(fd, b, at) == n
        elif what < 17:
            assert os.pread(fd, n, at) == copy[at:at + n], (at, n)
        elif what == 17:
            os.fsync(fd)
        elif what == 18:
            os.ftruncate(fd, at)
            copy = copy[:at] + bytes(max(0, at - len(copy)))
        elif flags or not copy:
            assert os.fstat(fd).st_size == len(copy)
        elif rng.randrange(2):
            through_mapping(fd, copy, at, n)
        else:
            os.close(fd)
            fd = opened(path, flags)
    os.fsync(fd)
    os.close(fd)
    with open(model, "wb") as f:
        f.write(copy)


def full(path, ballast):
    """Fill the disk; then make room and write on where it stopped."""
    chunk = random.Random(3).randbytes(1 << 20)
    with open(ballast, "wb") as f:
        for _ in range(100):
            f.write(chunk)
    fd = opened(path, "")
    size = 0
    try:
        while True:
            size += os.write(fd, chunk)
            os.fsync(fd)
    except OSError as e:
        assert e.errno == errno.ENOSPC, e
    assert size > 100 << 20, size
    kept = size - (1 << 20)
    os.unlink(ballast)
    for at in range(kept, kept + (50 << 20), 1 << 20):
        assert os.pwrite(fd, chunk, at) == len(chunk)
    os.fsync(fd)
    for at in range(0, kept + (50 << 20), 1 << 20):
        assert os.pread(fd, 1 << 20, at) == chunk, at
    os.close(fd)


# Made by a check when what goes on beside it shall end.
ENOUGH = "/run/enough"


def exclusive(directory, times):
    """Print the names that were ours, of so many, or on until ENOUGH."""
    for i in itertools.count() if times == "on" else range(int(times)):
        if times == "on" and os.path.exists(ENOUGH):
            break
        try:
            os.close(os.open(f"{directory}/{i}",
                             os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            print(i, flush=True)
        except FileExistsError:
            pass


def names(here, there, server):
    """Names that are no text: what one client makes the other can use."""
    all_names = [b"x" * 255, b"\xff\xfe\x80", "na\u0308me\u20ac".encode(),
                 b" ", b"new\nline", b"\\back", b"...", b"-rf", b"*?[a]",
                 b"\xe2\x82" * 127, bytes(range(1, 47)) + bytes(range(48, 256))]
    here, there, server = (os.fsencode(d) for d in (here, there, server))
    for i, n in enumerate(all_names):
        with open(here + b"/" + n, "wb") as f:
            f.write(n)
        with open(there + b"/" + n, "rb") as f:
            assert f.read() == n, n
        if i % 2:
            os.rename(there + b"/" + n, there + b"/" + n[:200] + b".")
    want = sorted(n[:200] + b"." if i % 2 else n
                  for i, n in enumerate(all_names))
    for d in here, there, server:
        assert sorted(os.listdir(d)) == want, (d, os.listdir(d))


def socket(path):
    """A socket's name; the path may be longer than the call takes."""
    os.chdir(os.path.dirname(path))
    s = sockets.socket(sockets.AF_UNIX)
    s.bind(os.path.basename(path))
    s.close()


def links(directory, times):
    """link1 and so on, to the file f."""
    os.chdir(directory)
    for i in range(int(times)):
        os.link("f", f"link{i}")


def many(directory, times):
    """Empty files by number."""
    os.chdir(directory)
    for i in range(int(times)):
        os.close(os.open(f"file{i:06}", os.O_WRONLY | os.O_CREAT, 0o644))


def database(path, journal):
    """Transactions, some rolled back, indexes, a vacuum."""
    db = sqlite3.connect(path, isolation_level=None)
    got = db.execute(f"pragma journal_mode={journal}").fetchone()[0]
    assert got == journal, got
    db.execute("create table t (n integer primary key, s text unique)")
    for i in range(60):
        db.execute("begin")
        for n in range(i * 20, i * 20 + 20):
            db.execute("insert into t values (?, ?)", (n, f"row {n} " * 20))
        db.execute("rollback" if i % 10 == 9 else "commit")
    db.execute("delete from t where n % 7 = 0")
    db.execute("vacuum")
    db.close()


def database_check(path):
    """Is what database() made."""
    db = sqlite3.connect(path)
    assert db.execute("pragma integrity_check").fetchone()[0] == "ok"
    want = [n for n in range(1200) if n // 20 % 10 != 9 and n % 7]
    got = [n for n, in db.execute("select n from t order by n")]
    assert got == want, (len(got), len(want))
    db.close()


RECORD = 47008


def record_at(i):
    """What stands in the i-th record of a stream."""
    return i.to_bytes(8, "little") * (RECORD // 8)


def stream(path, mib, flags=""):
    """Records one after the other, from the front again after so many MiB, each
    synced or now and then, until ENOUGH. Prints a line a record."""
    records = (int(mib) << 20) // RECORD
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    for i in itertools.count():
        if os.path.exists(ENOUGH):
            break
        at = i % records * RECORD
        assert os.pwrite(fd, record_at(i), at) == RECORD
        if flags == "sync" or i % 100 == 99:
            os.fsync(fd)
            time.sleep(0.002)
        print(i, flush=True)
    os.fsync(fd)
    os.close(fd)


def stream_check(path, mib, count):
    """Is what stream() wrote that printed count lines."""
    records, count = (int(mib) << 20) // RECORD, int(count)
    assert count > 0
    with open(path, "rb") as f:
        for at in range(min(count, records)):
            last = at + (count - 1 - at) // records * records
            assert f.read(RECORD) == record_at(last), (at, last)
        assert f.read() == b""


def steps(directory):
    """Calls that may not be made twice, each of which must succeed: an answer
    that got lost must not come back as EEXIST or ENOENT. Until ENOUGH, a line
    for each round."""
    os.mkdir(directory)
    os.chdir(directory)
    for i in itertools.count():
        if os.path.exists(ENOUGH):
            break
        os.close(os.open(f"new{i}", os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        os.rename(f"new{i}", f"moved{i}")
        os.link(f"moved{i}", f"kept{i}")
        os.unlink(f"moved{i}")
        os.mkdir(f"dir{i}")
        os.symlink(f"kept{i}", f"symlink{i}")
        os.rmdir(f"dir{i}")
        print(i, flush=True)


def steps_check(directory, times):
    """Is what steps() left."""
    want = [f"{w}{i}" for w in ("kept", "symlink") for i in range(int(times))]
    assert sorted(os.listdir(directory)) == sorted(want), os.listdir(directory)


def numbers(directory, who, times):
    """Make files and remove two of each three."""
    for i in range(int(times)):
        path = f"{directory}/{who}{i}"
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
        if i % 3:
            os.unlink(path)


def words(*numbers):
    return b"".join(int(n).to_bytes(4, "big") for n in numbers)


def quota(path, kind, who, uid, gid):
    """Ask RQUOTA version 2 for the user's (0) or group's (1) quota, as uid and
    gid: status, block size, active, blocks hard, soft, used, files likewise,
    seconds of grace for both."""
    name = path.encode()
    cred = words(0, 0, uid, gid, 0)
    call = words(1, 0, 2, 100011, 2, 1, 1, len(cred)) + cred + words(0, 0)
    call += words(len(name)) + name + bytes(-len(name) % 4) + words(kind, who)
    # A port that nobody has: below those that the kernel's client takes.
    own = ("127.0.0.1", 500 + os.getpid() % 100)
    with sockets.create_connection(("127.0.0.1", 2049),
                                   source_address=own) as s:
        s.sendall(words(1 << 31 | len(call)) + call)
        with s.makefile("rb") as f:
            mark = int.from_bytes(f.read(4), "big")
            reply = f.read(mark & ~(1 << 31))
    assert reply[:24] == words(1, 1, 0, 0, 0, 0), reply
    print(*(int.from_bytes(reply[i:i + 4], "big", signed=True)
            for i in range(24, len(reply), 4)))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])

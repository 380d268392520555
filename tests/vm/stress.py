#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random operations on names and files by several processes at a time, as
fsstress has them, but held against a model: stress.py DIRECTORY WORK TIMES.
DIRECTORY is where a client has it, WORK is it on the server. Each process has a
tree of its own, which is compared with its model, from both sides; and all of
them fight over the names of one more."""

import errno
import os
import random
import stat
import sys

PROCESSES = 4
NAMES = 12  # in a directory: few, so that they meet
DEPTH = 4
FIGHT = (errno.ENOENT, errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR,
         errno.ENOTDIR, errno.ESTALE)


class Node:
    """What a path leads to; a file may have several."""

    def __init__(self, kind, mode=None, target=None):
        self.kind, self.mode, self.target = kind, mode, target
        self.data = bytearray()
        self.links = 1


class Tree:
    """All that one process does, and what must then be there."""

    def __init__(self, root, seed):
        self.root = root
        self.rng = random.Random(seed)
        self.nodes = {"": Node("d", 0o755)}
        os.mkdir(root, 0o755)

    def path(self, name):
        return f"{self.root}{name}"

    def some(self, *kinds):
        names = [n for n, node in self.nodes.items()
                 if n and node.kind in kinds]
        return self.rng.choice(names) if names else None

    def new(self):
        """A name that is free, or None."""
        parents = [n for n, node in self.nodes.items()
                   if node.kind == "d" and n.count("/") < DEPTH]
        name = f"{self.rng.choice(parents)}/{self.rng.randrange(NAMES)}"
        return None if name in self.nodes else name

    def below(self, name):
        return [n for n in self.nodes if n.startswith(f"{name}/")]

    def forget(self, name):
        node = self.nodes.pop(name)
        node.links -= 1

    def create(self):
        name = self.new()
        if name:
            os.close(os.open(self.path(name), os.O_CREAT | os.O_EXCL, 0o644))
            self.nodes[name] = Node("f", 0o644)

    def mkdir(self):
        name = self.new()
        if name:
            os.mkdir(self.path(name), 0o755)
            self.nodes[name] = Node("d", 0o755)

    def symlink(self):
        name = self.new()
        if name:
            target = "x" * self.rng.randrange(1, 1000)
            os.symlink(target, self.path(name))
            self.nodes[name] = Node("l", target=target)

    def link(self):
        name, other = self.new(), self.some("f")
        if name and other:
            os.link(self.path(other), self.path(name))
            self.nodes[name] = self.nodes[other]
            self.nodes[name].links += 1

    def remove(self):
        name = self.some("f", "l")
        if name:
            os.unlink(self.path(name))
            self.forget(name)

    def rmdir(self):
        name = self.some("d")
        if not name:
            return
        if self.below(name):
            self.refused(errno.ENOTEMPTY, os.rmdir, self.path(name))
        else:
            os.rmdir(self.path(name))
            self.forget(name)

    def rename(self):
        name = self.some("f", "d", "l")
        to = self.new()
        if not name or not to:
            return
        if f"{to}/".startswith(f"{name}/"):
            self.refused(errno.EINVAL, os.rename, self.path(name),
                         self.path(to))
            return
        os.rename(self.path(name), self.path(to))
        for n in [name] + self.below(name):
            self.nodes[to + n[len(name):]] = self.nodes.pop(n)

    def replace(self):
        name, to = self.some("f"), self.some("f")
        if not name or self.nodes[name] is self.nodes[to]:
            return
        os.rename(self.path(name), self.path(to))
        self.forget(to)
        self.nodes[to] = self.nodes.pop(name)

    def write(self):
        name = self.some("f")
        if not name:
            return
        data = self.nodes[name].data
        at = self.rng.randrange(100000)
        b = self.rng.randbytes(self.rng.choice((1, 100, 4096, 6000, 47008)))
        with open(self.path(name), "r+b", buffering=0) as f:
            assert os.pwrite(f.fileno(), b, at) == len(b)
        data.extend(bytes(max(0, at + len(b) - len(data))))
        data[at:at + len(b)] = b

    def truncate(self):
        name = self.some("f")
        if name:
            node, size = self.nodes[name], self.rng.randrange(150000)
            os.truncate(self.path(name), size)
            node.data = node.data[:size].ljust(size, b"\0")

    def chmod(self):
        name = self.some("f", "d")
        if name:
            mode = self.rng.choice((0o600, 0o644, 0o755, 0o700, 0o711))
            os.chmod(self.path(name), mode)
            self.nodes[name].mode = mode

    def look(self):
        name = self.some("f", "d", "l")
        if name:
            self.compare(self.root, name)

    @staticmethod
    def refused(error, call, *args):
        try:
            call(*args)
        except OSError as e:
            assert e.errno == error, e
        else:
            raise AssertionError(f"{call.__name__} {args}")

    def compare(self, root, name):
        node, path = self.nodes[name], f"{root}{name}"
        st = os.lstat(path)
        kind = {"d": stat.S_IFDIR, "f": stat.S_IFREG, "l": stat.S_IFLNK}
        assert stat.S_IFMT(st.st_mode) == kind[node.kind], path
        if node.kind == "l":
            assert os.readlink(path) == node.target, path
            return
        assert stat.S_IMODE(st.st_mode) == node.mode, (path, st)
        if node.kind == "d":
            there = {n.rpartition("/")[2] for n in self.below(name)
                     if n.count("/") == name.count("/") + 1}
            listed = os.listdir(path)
            assert sorted(listed) == sorted(there), (path, listed, there)
            return
        assert st.st_nlink == node.links, (path, st)
        with open(path, "rb") as f:
            assert f.read() == node.data, path

    def run(self, times, shared):
        steps = (self.create, self.create, self.mkdir, self.symlink, self.link,
                 self.remove, self.rmdir, self.rename, self.replace, self.write,
                 self.write, self.truncate, self.chmod, self.look)
        for _ in range(times):
            self.rng.choice(steps)()
            if self.rng.randrange(4) == 0:
                fight(shared, self.rng)


def fight(shared, rng):
    """One operation on names that others use too: it is done, or refused as it
    would be where they were before or after."""
    a, b = (f"{shared}/{rng.randrange(NAMES)}" for _ in "ab")
    what = rng.randrange(6)
    try:
        if what == 0:
            os.close(os.open(a, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        elif what == 1:
            os.mkdir(a)
        elif what == 2:
            os.unlink(a)
        elif what == 3:
            os.rmdir(a)
        elif what == 4:
            os.rename(a, b)
        else:
            for n in os.listdir(shared):
                assert n in map(str, range(NAMES)) or n.startswith(".nfs"), n
    except OSError as e:
        assert e.errno in FIGHT, (what, a, b, e)


def main(directory, work, times):
    shared = f"{directory}/shared"
    os.mkdir(shared)
    pids = []
    for i in range(PROCESSES):
        pids.append(os.fork())
        if pids[-1]:
            continue
        tree = Tree(f"{directory}/{i}", i)
        tree.run(int(times), shared)
        os.sync()
        for name in tree.nodes:
            tree.compare(f"{directory}/{i}", name)
            tree.compare(f"{work}/{i}", name)
        print(f"process {i}: {len(tree.nodes)} names are right")
        sys.stdout.flush()
        os._exit(0)
    assert all([os.waitpid(p, 0)[1] == 0 for p in pids]), "one failed"
    assert sorted(os.listdir(shared)) == sorted(os.listdir(f"{work}/shared"))


if __name__ == "__main__":
    main(*sys.argv[1:])

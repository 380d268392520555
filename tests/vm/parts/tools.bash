# SPDX-License-Identifier: Apache-2.0
# What people run on a mount. Sourced by client-guest.
# shellcheck shell=bash disable=SC2154

headers=/host/usr/include/linux # some hundred files, small and large

tools_tar() {
	local d=$mnt/$name
	tar -C "$headers/.." -c linux >/dev/shm/t.tar
	tar -C "$d" -xf /dev/shm/t.tar
	diff -r "$headers" "$work/linux"
	diff -r "$headers" "$mnt2/$name/linux"
	tar -C "$d" -df /dev/shm/t.tar
	tar -C "$mnt2/$name" -c linux | tar -t | sort >/run/two
	tar -tf /dev/shm/t.tar | sort | cmp - /run/two
	rm -r "$d/linux"
	is left "$(ls -A "$work")" ''
	rm /dev/shm/t.tar
}

tools_rsync() {
	local d=$mnt/$name
	rsync -aH "$headers" "$d/"
	is "changed, by content" "$(rsync -aHcni "$headers" "$d/")" ''
	is "changed, by the other client" \
		"$(rsync -aHni "$headers" "$mnt2/$name/")" ''
	rm -r "$d/linux/netfilter"
	echo >>"$d/linux/nfs.h"
	rsync -aH --delete --inplace "$headers" "$d/"
	diff -r "$headers" "$work/linux"
}

tools_sed() {
	cp "$headers/nfs3.h" "$mnt/$name/f"
	sed -i 's/NFS3/nfs3/g' "$mnt/$name/f"
	sed 's/NFS3/nfs3/g' "$headers/nfs3.h" | cmp - "$work/f"
	is left "$(ls -A "$work")" f
	seq 1 20000 | sort -R | sort -n -T "$mnt/$name" -S 50k >"$mnt/$name/sorted"
	seq 1 20000 | cmp - "$mnt2/$name/sorted"
}

tools_git() {
	local d=$mnt/$name
	export HOME=/run GIT_CONFIG_NOSYSTEM=1
	git config --global user.name n
	git config --global user.email e
	git config --global --add safe.directory '*'
	git init -q -b main /dev/shm/repo
	cp -r "$headers/netfilter" "$headers"/nfs*.h /dev/shm/repo/
	git -C /dev/shm/repo add .
	git -C /dev/shm/repo commit -qm one
	git -C /dev/shm/repo checkout -qb side
	cp "$headers"/v*.h /dev/shm/repo/
	git -C /dev/shm/repo add .
	git -C /dev/shm/repo commit -qm two
	git clone -q --no-local /dev/shm/repo "$d/clone"
	git -C "$d/clone" checkout -q main
	git -C "$d/clone" checkout -q side
	is status "$(git -C "$d/clone" status --porcelain)" ''
	echo more >>"$d/clone/nfs.h"
	git -C "$d/clone" commit -qam three
	git -C "$d/clone" gc -q
	git -C "$d/clone" fsck --full --strict
	is "log of the other client" \
		"$(git -C "$mnt2/$name/clone" log --format=%s | tr '\n' ' ')" \
		'three two one '
	git -C "$mnt2/$name/clone" worktree add -q "$mnt2/$name/tree" main
	is "its worktree" "$(git -C "$mnt2/$name/tree" status --porcelain)" ''
	rm -rf /dev/shm/repo
}

tools_sqlite() { # JOURNAL
	tool database "$mnt/$name/db" "$1"
	tool database_check "$mnt2/$name/db"
	tool database_check "$work/db"
}

tools_make() {
	local d=$mnt/$name i
	for i in 1 2 3 4 5; do
		printf 'int f%s(void);\nint f%s(void) { return %s; }\n' $i $i $i \
			>"$d/f$i.c"
	done
	printf 'lib.a: f1.o f2.o f3.o f4.o f5.o\n\tar rc $@ $^\n' >"$d/Makefile"
	make -C "$d" -s -j2
	is "nothing to do" "$(make -C "$d" -q && echo yes)" yes
	sleep 1
	touch "$d/f3.c"
	is rebuilt "$(make -C "$d" | grep -c '^cc')" 1
	nm "$mnt2/$name/lib.a" | grep -c ' T f[1-5]$'
}

tools_find() {
	cp -r "$headers/netfilter" "$mnt/$name/"
	find "$mnt2/$name" -type f -name '*.h' -newer /etc/hostname -print0 |
		xargs -0 grep -l NFT_ | wc -l >/run/here
	find "$work" -type f -name '*.h' -print0 | xargs -0 grep -l NFT_ |
		wc -l | cmp - /run/here
	is size "$(du -s --apparent-size "$mnt2/$name/netfilter" | cut -f 1)" \
		"$(du -s --apparent-size "$work/netfilter" | cut -f 1)"
	chmod -R go-rwx "$mnt/$name"
	is modes "$(find "$work/netfilter" -perm /077 | wc -l)" 0
}

part_tools() {
	mount_both || return
	check tar tools_tar
	check rsync tools_rsync
	check sed-i tools_sed
	check git tools_git
	check sqlite-delete tools_sqlite delete
	check sqlite-wal tools_sqlite wal
	check make tools_make
	check find tools_find
}

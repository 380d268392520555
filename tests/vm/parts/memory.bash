# SPDX-License-Identifier: Apache-2.0
# A client that is mounted on the server itself, both in one memory control
# group of 256 MiB: what the client has written only the server can write back,
# so the server must get on while the group is full. It must neither hang nor be
# killed. With a slow device (20 ms a write, say) the client's kernel kills the
# writer for want of pages that it could free, also where the server is in another
# group; so it is a fast one. Sourced by client-guest.
# shellcheck shell=bash disable=SC2154

group=/sys/fs/cgroup/small.slice

event() { awk -v n="$1" '$1 == n {print $2}' $group/memory.events; }
# With one processor the client, looking for pages to free, must not keep the
# server from what would free them.
in_group() {
	(echo $BASHPID >$group/client/cgroup.procs && exec nice -n 19 "$@")
}

begin_full() {
	full_before=$(event max) killed_before=$(event oom_kill)
	group_server=$(server_pid)
}

# The group was full, and yet nobody was killed.
was_full() {
	[ "$(event max)" -gt "$full_before" ] || fail "the group was never full"
	is killed "$(event oom_kill)" "$killed_before"
	[ "$server" = knfsd ] ||
		is "the server" "$(server_pid)" "$group_server"
	say "fact: $(($(cat $group/memory.peak) >> 20)) MiB at most"
}

memory_stream() {
	begin_full
	in_group dd if=/dev/zero of="$mnt/$name/f" bs=1M count=4096 conv=fsync
	was_full
	is size "$(stat -c %s "$work/f")" $((4 << 30))
}

memory_content() { # RECORD
	begin_full
	# Made outside of the group, which then pays for the mount's pages only.
	tool pattern 384 >/dev/shm/pattern
	in_group dd if=/dev/shm/pattern of="$mnt/$name/f" bs="$1" conv=fsync
	was_full
	drop_caches
	cmp /dev/shm/pattern "$work/f"
	rm /dev/shm/pattern
}

# Files come and go, others are listed, while a large one is written.
memory_files() {
	local i
	begin_full
	in_group dd if=/dev/zero of="$mnt/$name/large" bs=1M count=1024 \
		conv=fsync &
	in_group python3 "$here/calls.py" churn "$mnt/$name" 1500 &
	for i in 1 2 3 4; do
		in_group dd if=/dev/zero of="$mnt/$name/$i" bs=47008 \
			count=1000 conv=fsync
		is "size of $i" "$(stat -c %s "$work/$i")" 47008000
	done
	wait -n
	wait -n
	was_full
	is "size of the large one" "$(stat -c %s "$work/large")" $((1 << 30))
}

memory_set_up() {
	umount "$mnt" "$mnt2"
	mkdir -p /run/systemd/system/nvnfsd.service.d
	printf '[Slice]\nMemoryMax=256M\n' >/run/systemd/system/small.slice
	printf '[Service]\nSlice=small.slice\n' \
		>/run/systemd/system/nvnfsd.service.d/small.conf
	systemctl daemon-reload
	systemctl restart "$server"
	systemctl start small.slice
	is limit "$(cat $group/memory.max)" $((256 << 20))
	mkdir -p $group/client
	mount_both
}

part_memory() {
	mount_both || return
	check memory-set-up memory_set_up
	check memory-stream memory_stream
	check memory-content memory_content 1M
	check memory-records memory_content 47008
	check memory-files memory_files
}

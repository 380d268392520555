# SPDX-License-Identifier: Apache-2.0
# Two clients with addresses of their own: network namespaces, joined to the
# server's by a pair of interfaces each. They share the guest's kernel, but
# neither connections nor caches. Sourced by client-guest.
# shellcheck shell=bash disable=SC2154

one=/mnt/one two=/mnt/two

# mount_in NAME N DIRECTORY MOUNTPOINT [OPTIONS]
mount_in() {
	mkdir -p "$4"
	nsenter --net="/run/netns/$1" mount -t nfs \
		-o "vers=3,nolock${5:+,$5}" "10.9.$2.1:$3" "$4"
}

two_set_up() {
	modprobe veth
	client_make one 1
	client_make two 2
	mount_in one 1 "$data" $one
	mount_in two 2 "$data" $two
	showmount -a --no-headers localhost >/run/a
	grep -qx "10.9.1.2:$data" /run/a
	grep -qx "10.9.2.2:$data" /run/a
}

two_close_to_open() {
	local i
	for ((i = 0; i < 10; i++)); do
		seq "$i" 3000 >"$one/$name/f"
		seq "$i" 3000 | cmp - "$two/$name/f"
		echo "$i" >>"$two/$name/f"
		is "the last line" "$(tail -n 1 "$one/$name/f")" "$i"
	done
}

# What one makes, renames and removes, the other sees when its attributes have
# expired.
two_directories() {
	local i
	mkdir "$one/$name/d"
	for i in 1 2 3 4 5; do
		echo "$i" >"$one/$name/d/$i"
		[ "$(cat "$two/$name/d/$i")" = "$i" ]
	done
	mv "$two/$name/d/1" "$two/$name/d/6"
	rm "$two/$name/d/2"
	# acdirmax: a minute; opening a directory asks at once.
	is "what one lists" "$(ls -x "$one/$name/d")" '3  4  5  6'
	rm -r "$one/$name/d"
	refused 'no such file|stale' ls "$two/$name/d"
}

# Records that share pages, sent as they are because of O_DIRECT.
two_interleaved() { # RECORD
	local record=$1 records=$((6000000 / $1))
	head -c $((records * record)) /dev/urandom >/dev/shm/source
	for who in 0 1; do
		m=$one
		[ $who = 0 ] || m=$two
		beside tool every /dev/shm/source "$m/$name/f" \
			"$record" "$records" $who 2 direct
	done
	together
	cmp /dev/shm/source "$work/f"
	cmp /dev/shm/source "$one/$name/f"
	cmp /dev/shm/source "$two/$name/f"
	rm /dev/shm/source
}

two_exclusive() {
	rm -f /run/won.*
	beside tool exclusive "$one/$name" 200 >/run/won.1
	beside tool exclusive "$two/$name" 200 >/run/won.2
	together
	is "names won" "$(cat /run/won.* | wc -l)" 200
	is "names won once" "$(sort -u /run/won.* | wc -l)" 200
}

# Both make and remove in one directory at the same time.
two_churn() {
	beside tool numbers "$one/$name" one 300
	beside tool numbers "$two/$name" two 300
	together
	is files "$(find "$work" -type f | wc -l)" 200
	(cd "$work" && printf '%s\n' *) >/run/there
	(cd "$one/$name" && printf '%s\n' *) | cmp - /run/there
	(cd "$two/$name" && printf '%s\n' *) | cmp - /run/there
}

# An export for one of them is closed to the other.
two_rights() {
	mount_in one 1 "$more/closed" /mnt/c
	echo >/mnt/c/f
	rm /mnt/c/f
	umount /mnt/c
	refused 'access denied|permission denied' \
		mount_in two 2 "$more/closed" /mnt/c
	# Nor by a handle that the other has.
	is "what two may" "$(showmount -e --no-headers localhost |
		grep -c "^$more/closed .*10.9.1.0/24")" 1
}

two_lost_peer() {
	# The one's network goes away in the midst of a write; the other goes on.
	stream one tool stream "$one/$name/f" 20 sync
	streams_advance
	ip -n one link set eth0 down
	dd if=/dev/zero of="$two/$name/g" bs=1M count=64 conv=fsync
	ip -n one link set eth0 up
	streams_advance
	streams_end
	tool stream_check "$work/f" 20 "$(stream_steps one)"
	is size "$(stat -c %s "$work/g")" 67108864
}

part_two() {
	mount_both || return
	check two-set-up two_set_up
	check two-close-to-open two_close_to_open
	check two-directories two_directories
	check two-interleaved-6000 two_interleaved 6000
	check two-interleaved-47008 two_interleaved 47008
	check two-exclusive two_exclusive
	check two-churn two_churn
	check two-rights two_rights
	check two-lost-peer two_lost_peer
	umount $one $two
}

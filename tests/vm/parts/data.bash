# SPDX-License-Identifier: Apache-2.0
# Bytes: written in every way a client's programs have, read back by another
# client and on the server, compared with a local copy. Sourced by client-guest.
# shellcheck shell=bash disable=SC2154

source=/dev/shm/source # random bytes, no multiple of anything

# same FILE: as the source, on the server, and read by the other client.
same() {
	cmp "$source" "$work/$1"
	cmp "$source" "$mnt2/$name/$1"
}

data_dd() { # RECORD FLAGS
	dd if="$source" of="$mnt/$name/f" bs="$1" ${2:+oflag="$2"} conv=fsync
	same f
	echo 3 >/proc/sys/vm/drop_caches
	dd if="$mnt/$name/f" of=/dev/shm/back bs="$1" ${2:+iflag="$2"}
	cmp "$source" /dev/shm/back
	rm /dev/shm/back
}

# Over what is there, in another order.
data_dd_rewrite() { # RECORD FLAGS
	local records i
	head -c "$(stat -c %s "$source")" /dev/zero >"$mnt/$name/f"
	records=$((($(stat -c %s "$source") + $1 - 1) / $1))
	for ((i = 0; i < 7; i++)); do
		tool every "$source" "$mnt/$name/f" "$1" \
			"$records" "$i" 7 "$2"
	done
	same f
}

data_sparse() {
	truncate -s 64M /dev/shm/holes
	dd if=/dev/urandom of=/dev/shm/holes bs=1M count=1 seek=7 conv=notrunc
	dd if=/dev/urandom of=/dev/shm/holes bs=1000 count=3 seek=51001 conv=notrunc
	cp --sparse=always /dev/shm/holes "$mnt/$name/f"
	cmp /dev/shm/holes "$mnt2/$name/f"
	is "KiB on the disk" "$(du -k "$work/f" | awk '{print ($1 < 3000)}')" 1
	cp --sparse=never /dev/shm/holes "$mnt/$name/g"
	cmp /dev/shm/holes "$work/g"
	rm /dev/shm/holes
}

# Past 8 TiB and past 16 TiB, the last page of a page cache with 32-bit indexes.
data_far() {
	local at
	for at in 8T 16T 17T; do
		echo "here is $at" | dd of="$mnt/$name/f" bs=1 conv=notrunc,fsync \
			seek="$at" oflag=seek_bytes
		is "back from $at" "$(tail -c +$(($(numfmt --from=iec $at) + 1)) \
			"$mnt2/$name/f" | head -n 1)" "here is $at"
	done
	is size "$(stat -c %s "$work/f")" $((17 * (1 << 40) + 12))
	is hole "$(dd if="$mnt2/$name/f" bs=1M count=1 skip=9T \
		iflag=skip_bytes | tr -d '\0' | wc -c)" 0
	truncate -s 9T "$mnt/$name/f"
	is "cut off" "$(stat -c %s "$work/f")" $((9 << 40))
}

data_truncate() {
	cp "$source" "$mnt/$name/f"
	truncate -s 1000001 "$mnt/$name/f"
	truncate -s 3000003 "$mnt/$name/f"
	{
		head -c 1000001 "$source"
		head -c 2000002 /dev/zero
	} >/dev/shm/cut
	cmp /dev/shm/cut "$work/f"
	cmp /dev/shm/cut "$mnt2/$name/f"
	: >"$mnt/$name/f"
	is size "$(stat -c %s "$work/f")" 0
	rm /dev/shm/cut
}

data_append() {
	local i
	for i in 1 2 3 4; do
		beside tool append "$mnt/$name/f" "writer$i" 200
	done
	together
	is lines "$(sort -u "$work/f" | wc -l)" 800
	is size "$(stat -c %s "$work/f")" $((800 * 100))
}

# Each sees where the other has stopped: close-to-open.
data_append_turns() {
	local i
	for ((i = 0; i < 8; i++)); do
		tool append "$mnt/$name/f" "one$i" 3
		tool append "$mnt2/$name/f" "two$i" 2
	done
	is lines "$(sort -u "$work/f" | wc -l)" 40
	cmp "$mnt/$name/f" "$mnt2/$name/f"
}

data_close_to_open() {
	local i
	for ((i = 0; i < 10; i++)); do
		echo "turn $i" >"$mnt/$name/f"
		is "what the other reads" "$(cat "$mnt2/$name/f")" "turn $i"
		echo "back $i" >"$mnt2/$name/f"
		is "what the one reads" "$(cat "$mnt/$name/f")" "back $i"
	done
}

data_mmap() {
	tool mapped "$mnt/$name/f" /dev/shm/model
	cmp /dev/shm/model "$work/f"
	cmp /dev/shm/model "$mnt2/$name/f"
	rm /dev/shm/model
}

data_mixed() {
	tool mixed "$mnt/$name/f" /dev/shm/model "$1"
	cmp /dev/shm/model "$work/f"
	cmp /dev/shm/model "$mnt2/$name/f"
	rm /dev/shm/model
}

# A full disk: the writer is told, and goes on in the same file when there is
# room again.
data_full() {
	mount -t nfs -o vers=3,nolock "localhost:$more/data" /mnt/c
	tool full /mnt/c/f /mnt/c/ballast
	rm -f /mnt/c/f /mnt/c/ballast
	umount /mnt/c
}

part_data() {
	local record
	mount_both || return
	head -c 12000003 /dev/urandom >"$source"
	for record in 4096 6000 47008 49152 1M; do
		check "dd-$record" data_dd "$record" ''
		check "dd-direct-$record" data_dd "$record" direct
	done
	check dd-sync-47008 data_dd 47008 sync
	check dd-dsync-direct-47008 data_dd 47008 direct,dsync
	check rewrite-6000 data_dd_rewrite 6000 ''
	check rewrite-47008 data_dd_rewrite 47008 ''
	check rewrite-direct-47008 data_dd_rewrite 47008 direct
	check sparse data_sparse
	check far data_far
	check truncate data_truncate
	check append data_append
	check append-turns data_append_turns
	check close-to-open data_close_to_open
	check mmap data_mmap
	check mixed data_mixed ''
	check mixed-direct data_mixed direct
	check full-disk data_full
	rm "$source"
}

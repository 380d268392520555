# SPDX-License-Identifier: Apache-2.0
# Suites of others, from Debian's packages, run over a mount. Sourced by
# client-guest.
# shellcheck shell=bash disable=SC2154

# fio writes, reads back and verifies each block by its checksum.
strangers_fio() { # ENGINE RW BS [OPTION...]
	local engine=$1 rw=$2 bs=$3
	shift 3
	fio --name=j --directory="$mnt/$name" --ioengine="$engine" --rw="$rw" \
		--bs="$bs" --size=12m --nrfiles=3 --verify=crc32c \
		--verify_fatal=1 --end_fsync=1 --fallocate=none --thread \
		--output=/run/fio.out "$@" || {
		cat /run/fio.out
		fail "fio: $(grep -m 1 -iE 'error|verify' /run/fio.out)"
	}
	grep -q ' err= 0' /run/fio.out
}

strangers_stress() { # STRESSOR
	stress-ng --temp-path "$mnt/$name" --"$1" 2 -t 2 --verify \
		--oomable --log-brief >/run/stress.out 2>&1 || {
		cat /run/stress.out
		fail "$(grep -m 1 -E 'fail' /run/stress.out)"
	}
	is "left behind" "$(find "$work" -mindepth 1 | wc -l)" 0
}

strangers_bonnie() {
	bonnie++ -q -f -d "$mnt/$name" -s 32 -r 16 -n 1:4096:0:2 -u root \
		-m guest >/run/bonnie.out
	grep -q guest /run/bonnie.out
}

strangers_dbench() { # OPTIONS
	# shellcheck disable=SC2086
	dbench -D "$mnt/$name" -t 8 $1 2 >/run/dbench.out
	tail -n 3 /run/dbench.out
	grep -q ^Throughput /run/dbench.out
}

strangers_postmark() {
	printf '%s\n' "set location $mnt/$name" 'set number 300' \
		'set transactions 600' 'set size 500 60000' 'set seed 9' \
		run quit >/run/postmark.in
	postmark /run/postmark.in >/run/postmark.out
	grep -A 3 '^Files' /run/postmark.out
	grep -q '^[[:space:]]*594 created' /run/postmark.out
	is "left behind" "$(find "$work" -type f | wc -l)" 0
}

# libnfs's own tools, another client altogether.
strangers_libnfs() {
	local url="nfs://127.0.0.1$data/$name"
	head -c 5000001 /dev/urandom >/dev/shm/f
	nfs-cp /dev/shm/f "$url/f?uid=0&gid=0"
	cmp /dev/shm/f "$work/f"
	nfs-cat "$url/f" | cmp - /dev/shm/f
	nfs-cp "$url/f" /dev/shm/g
	cmp /dev/shm/f /dev/shm/g
	nfs-ls "$url" >/run/listed
	grep -q ' 5000001 f$' /run/listed
	nfs-ls -R "nfs://127.0.0.1$data" >/run/listed
	grep -q "$name" /run/listed
	rm /dev/shm/f /dev/shm/g
}

part_strangers() {
	local s
	mount_both || return
	check fio-psync strangers_fio psync randrw 47008
	check fio-psync-direct strangers_fio psync randwrite 6000 --direct=1
	check fio-mmap strangers_fio mmap randwrite 4k
	check fio-libaio-direct strangers_fio libaio randwrite 64k --direct=1 \
		--iodepth=16
	check fio-io_uring strangers_fio io_uring randrw 16k --iodepth=8
	check fio-pvsync-jobs strangers_fio pvsync write 49152 --numjobs=3
	check fio-fsync strangers_fio sync write 47008 --fsync=1
	check libnfs strangers_libnfs
	check postmark strangers_postmark
	check dbench strangers_dbench ''
	check dbench-sync strangers_dbench -s
	check bonnie strangers_bonnie
	for s in access chdir chmod chown copy-file dentry dir dirdeep dirmany \
		fallocate fcntl filename flock fpunch fsize fstat getdent hdd \
		inotify io iomix lease locka lockf lockofd mknod open rename \
		seek sync-file touch utime; do
		check "stress-$s" strangers_stress "$s"
	done
}

# SPDX-License-Identifier: Apache-2.0
# Devices that fail, go away or become read-only under an export, and a clock
# that is set. Who writes there is told, once; everybody else is served.
# Sourced by client-guest.
# shellcheck shell=bash disable=SC2154

bad=/srv/bad # what lies on the device in trouble

# bad_disk OPTIONS MKFS...: a file system on a device that device_is changes,
# exported with OPTIONS and mounted at /mnt/c and /mnt/d.
bad_disk() {
	local options=$1 n m
	shift
	# What a check that failed has left.
	for m in /mnt/c /mnt/d; do
		if mountpoint -q $m; then umount -fl $m; fi
	done
	if mountpoint -q $bad; then umount -l $bad; fi
	n=$(cat /sys/class/zram-control/hot_add)
	echo 512M >"/sys/block/zram$n/disksize"
	under=/dev/zram$n disk=bad$n
	sectors=$(cat "/sys/block/zram$n/size")
	dmsetup create "$disk" --table "0 $sectors linear $under 0"
	"$@" "/dev/mapper/$disk"
	mkdir -p $bad /mnt/d
	mount "/dev/mapper/$disk" $bad
	echo "$bad *(rw,no_root_squash,no_subtree_check$options)" >>"$exports"
	reload $bad rw
	mount -t nfs -o vers=3,nolock "localhost:$bad" /mnt/c
	mount -t nfs -o vers=3,nolock,nosharecache "localhost:$bad" /mnt/d
}

# Take it back, whatever state it is in, and serve it again.
bad_again() {
	nvnfsctl unexport $bad
	umount $bad
	device_is linear
	"$@"
	mount "/dev/mapper/$disk" $bad
	reload $bad rw
}

bad_end() {
	local m
	for m in /mnt/c /mnt/d; do
		if mountpoint -q $m; then umount $m; fi
	done
	cp /run/exports "$exports"
	reload $bad -
	[ "$server" = nvnfsd ] || return 0 # which keeps files open
	umount $bad
	dmsetup remove --retry "$disk"
}

fsck_ext4() {
	local rc=0
	fsck.ext4 -fy "/dev/mapper/$disk" || rc=$?
	[ $rc -lt 4 ]
}

# device_is linear|flakey|error: all is well, WRITEs fail, all fails. Nothing is
# written out before.
device_is() {
	local table="0 $sectors $1 $under 0"
	case $1 in
	flakey) table+=" 0 86400 1 error_writes" ;;
	error) table="0 $sectors error" ;;
	esac
	dmsetup suspend --nolockfs --noflush "$disk"
	dmsetup load "$disk" --table "$table"
	dmsetup resume "$disk"
}

# record MOUNTPOINT SEEK [FLAGS]: 20 records of the source, to their place.
record() {
	dd if=/dev/shm/source of="$1/f" bs=47008 count=20 skip="$2" seek="$2" \
		conv=notrunc,fsync ${3:+oflag="$3"}
}

# The same, and it must fail with EIO.
record_fails() {
	local said=/run/failed.$2
	if record "$@" >"$said" 2>&1; then fail "written: $*"; fi
	grep -q 'Input/output error' "$said" || fail "$*: $(cat "$said")"
}

verifiers() { nvnfsctl --json stats | python3 -c \
	'import json, sys; print(json.load(sys.stdin)["verifier_changes"])'; }

trouble_error() { # OPTIONS
	local flags before
	head -c 4700800 /dev/urandom >/dev/shm/source
	# Without a journal, which would take no more after the first failure.
	bad_disk "$1" mkfs.ext4 -q -O ^has_journal -e continue
	[ "$server" = knfsd ] || before=$(verifiers)
	record /mnt/c 0
	record /mnt/d 20
	device_is flakey
	beside record_fails /mnt/c 0
	beside record_fails /mnt/d 20
	together
	for flags in sync direct direct,sync; do
		record_fails /mnt/c 40 $flags
	done
	device_is linear
	# It was told, and is not told again.
	for m in /mnt/c /mnt/d; do
		dd if=/dev/null of=$m/f conv=notrunc,fsync
	done
	record /mnt/c 0
	record /mnt/d 20
	record /mnt/c 40 direct,sync
	record /mnt/d 60 sync
	record /mnt/c 80
	cmp /dev/shm/source /mnt/d/f
	[ "$server" = knfsd ] || [ "$(verifiers)" -gt "$before" ] ||
		fail "no other verifier"
	umount /mnt/c /mnt/d
	if [ "$server" = nvnfsd ]; then
		# As it is on the device.
		bad_again true
		cmp /dev/shm/source $bad/f
	fi
	bad_end
	rm /dev/shm/source
}

# The device is gone, and comes back; a stream to another file system goes on.
trouble_gone() {
	only_nvnfsd
	head -c 4700800 /dev/urandom >/dev/shm/source
	bad_disk '' mkfs.xfs -q
	record /mnt/c 0
	exec 3<>/mnt/c/f
	stream elsewhere tool stream "$mnt/$name/stream" 20 sync
	streams_advance
	device_is error
	record_fails /mnt/c 20
	record_fails /mnt/d 40 sync
	refused 'input/output error' touch /mnt/d/new
	streams_advance
	bad_again true
	streams_advance
	streams_end
	tool stream_check "$work/stream" 20 "$(stream_steps elsewhere)"
	# The same handles.
	cmp -n 940160 /dev/shm/source - <&3
	exec 3>&-
	record /mnt/c 20
	record /mnt/d 40 sync
	cmp -n 2820480 /dev/shm/source $bad/f
	touch /mnt/d/new
	bad_end
	rm /dev/shm/source
}

# The file system finds itself in error and goes read-only: it is read on.
trouble_read_only() {
	local dm
	only_nvnfsd
	head -c 4700800 /dev/urandom >/dev/shm/source
	bad_disk '' mkfs.ext4 -q -e remount-ro
	record /mnt/c 0
	dm=dm-$(dmsetup info -c --noheadings -o minor "$disk")
	echo 1 >"/sys/fs/ext4/$dm/trigger_fs_error"
	refused 'read-only file system' touch $bad/new
	refused 'read-only file system' record /mnt/c 20
	refused 'read-only file system' record /mnt/d 20 direct,sync
	refused 'read-only file system' touch /mnt/d/new
	refused 'read-only file system' rm /mnt/d/f
	echo 3 >/proc/sys/vm/drop_caches
	cmp -n 940160 /dev/shm/source /mnt/d/f
	bad_again fsck_ext4
	record /mnt/c 20
	record /mnt/d 40 direct,sync
	cmp -n 2820480 /dev/shm/source $bad/f
	bad_end
	rm /dev/shm/source
}

# The clock is set to and fro under clients that write. What is decided by times
# of change is decided right.
clock_set() { date -s "@$((began + $(cut -d. -f1 /proc/uptime) + $1))"; }

clock_steps() {
	local step
	for step in 7200 -86400 3600 -3600; do
		clock_set $step
		streams_advance
	done
}

trouble_clock() {
	local f=/mnt/c/$name/f
	began=$(($(date +%s) - $(cut -d. -f1 /proc/uptime)))
	trap 'clock_set 0; kill -9 $(jobs -p) 2>/dev/null || :' EXIT
	mount -t nfs -o vers=3,nolock,noac "127.0.0.3:$data" /mnt/c
	stream synced tool stream "$mnt/$name/stream" 20 sync
	stream steps tool steps "$mnt2/$name/steps"
	streams_advance
	clock_steps
	# Rights that were looked up when it was later.
	echo >"$f"
	chmod 666 "$f"
	as_user 1002 1002 sh -c "echo one >>$f"
	clock_set -7200
	chmod 600 "$work/f"
	refused 'permission denied' as_user 1002 1002 sh -c "echo two >>$f"
	chmod 666 "$work/f"
	as_user 1002 1002 sh -c "echo three >>$f"
	is lines "$(paste -sd ' ' "$work/f")" ' one three'
	# What the one changes in the past the other sees.
	echo four >>"$work/f"
	is "the last line" "$(tail -n 1 "$f")" four
	clock_set 0
	streams_advance
	streams_end
	tool stream_check "$work/stream" 20 "$(stream_steps synced)"
	tool steps_check "$mnt/$name/steps" "$(stream_steps steps)"
	umount /mnt/c
}

part_trouble() {
	mount_both || return
	export DM_DISABLE_UDEV=1
	modprobe -a dm_mod dm_flakey
	check device-errors trouble_error ''
	[ "$server" = knfsd ] ||
		check device-errors-buffered trouble_error ,write-mode=buffered
	check device-gone trouble_gone
	check device-read-only trouble_read_only
	check clock trouble_clock
}

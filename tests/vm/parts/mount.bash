# SPDX-License-Identifier: Apache-2.0
# Mounting and unmounting with every option that a client may give, and the
# tools that show it. Sourced by client-guest.
# shellcheck shell=bash disable=SC2154

try() { mount -t nfs -o "vers=3,nolock${1:+,$1}" "$2" /mnt/c; }

# Something goes through the mount, both ways.
used() {
	echo "$name" >"/mnt/c/$name/used"
	is "read back" "$(cat "/mnt/c/$name/used")" "$name"
	is "on the server" "$(cat "$work/used")" "$name"
}

mount_options() { # OPTIONS [HOST]
	try "$1" "${2:-localhost}:$data"
	used
	umount /mnt/c
}

mount_no_option() {
	mount "localhost:$data" /mnt/c
	is vers "$(option /mnt/c vers)" 3
	used
	umount /mnt/c
}

# Nobody to ask for a port, and nobody misses him.
mount_without_rpcbind() { # OPTIONS
	systemctl stop rpcbind.socket rpcbind
	mount_options "$1"
	systemctl start rpcbind.socket
	mount_options ''
}

mount_proto() { # OPTIONS HOST PROTO
	try "$1" "$2:$data"
	is proto "$(option /mnt/c proto)" "$3"
	is mountproto "$(option /mnt/c mountproto)" "$3"
	used
	umount /mnt/c
}

mount_nconnect() {
	# Mounts of one server, by its address, share their connections.
	try nconnect=8 "127.0.0.2:$data"
	dd if=/dev/zero of="/mnt/c/$name/f" bs=1M count=32 conv=fsync
	is connections "$(ss -Htn state established dst 127.0.0.2:2049 | wc -l)" 8
	umount /mnt/c
}

# size ASKED WANT: what the client and the server settle on. 1 MiB is the most
# that the client takes.
size() {
	try "rsize=$1,wsize=$1" "localhost:$data"
	is rsize "$(option /mnt/c rsize)" "$2"
	is wsize "$(option /mnt/c wsize)" "$2"
	dd if=/dev/urandom of="/mnt/c/$name/f" bs=1M count=4
	cmp "/mnt/c/$name/f" "$work/f"
	umount /mnt/c
}

mount_sizes() {
	size 1024 1024
	size 4096 4096
	size 32768 32768
	size 131072 131072
	size 1048576 1048576
	size 4194304 1048576
	try '' "localhost:$data"
	is "rsize where none is asked for" "$(option /mnt/c rsize)" 1048576
	is "wsize where none is asked for" "$(option /mnt/c wsize)" 1048576
	umount /mnt/c
}

mount_subdirectory() {
	mkdir -p "$work/one/two"
	echo inside >"$work/one/two/file"
	try '' "localhost:$work/one"
	is inside "$(cat /mnt/c/two/file)" inside
	echo out >/mnt/c/out
	is out "$(cat "$work/one/out")" out
	is "the root's parent" "$(stat -c %i /mnt/c/..)" "$(stat -c %i /mnt)"
	umount /mnt/c
	try '' "localhost:$work/one/two"
	is two "$(ls /mnt/c)" file
	umount /mnt/c
}

mount_read_only() {
	try ro "localhost:$data"
	refused 'read-only file system' touch "/mnt/c/$name/f"
	mount -o remount,rw /mnt/c
	used
	mount -o remount,ro /mnt/c
	refused 'read-only file system' touch "/mnt/c/$name/f"
	umount /mnt/c
}

mount_read_only_export() {
	try '' "localhost:$more/ro"
	is file "$(cat /mnt/c/file)" "read only"
	refused 'read-only file system' touch /mnt/c/f
	refused 'read-only file system' rm /mnt/c/file
	# By ACCESS, as from the kernel's server.
	refused 'permission denied' sh -c 'echo >>/mnt/c/file'
	umount /mnt/c
}

mount_refused() {
	refused 'access denied|permission denied' try '' "localhost:$more/closed"
	refused 'no such file' try '' "localhost:$data/is/not/there"
	refused 'access denied|permission denied|no such file' try '' localhost:/etc
	refused 'not supported|not available|no such|access denied' \
		mount -t nfs -o vers=4.2 "localhost:$data" /mnt/c
}

mount_fstab() {
	echo "localhost:$data /mnt/c nfs vers=3,nolock,_netdev 0 0" >/etc/fstab
	mount /mnt/c
	used
	umount /mnt/c
	mount -a -O _netdev
	used
	umount /mnt/c
	systemctl daemon-reload
	systemctl start mnt-c.mount
	used
	grep -q mnt-c.mount < <(systemctl list-dependencies --plain \
		remote-fs.target) || fail "systemd takes it for a local one"
	systemctl stop mnt-c.mount
	if mountpoint -q /mnt/c; then fail "still mounted"; fi
	: >/etc/fstab
	systemctl daemon-reload
}

mount_again_and_again() {
	local i
	for i in {1..5}; do
		try "nosharecache" "localhost:$data"
		echo "$i" >"/mnt/c/$name/$i"
		umount /mnt/c
	done
	is files "$(find "$work" -type f | wc -l)" 5
}

mount_statfs() {
	try '' "localhost:$more/data"
	# The client's blocks are of 1 MiB.
	is size "$(df --output=size -BM /mnt/c)" "$(df --output=size -BM "$more")"
	is free "$(df --output=avail -BM /mnt/c)" "$(df --output=avail -BM "$more")"
	is "inodes, all and free" "$(stat -f -c '%c %d' /mnt/c)" \
		"$(stat -f -c '%c %d' "$more")"
	umount /mnt/c
}

tools_showmount() {
	showmount -e localhost >/run/e
	grep -qxE "$data +\*" /run/e
	grep -qE "^$more/closed +.*192\.0\.2\.1" /run/e
	is exports "$(tail -n +2 /run/e | wc -l)" 5
	try '' "localhost:$data"
	showmount -a --no-headers localhost >/run/a
	grep -qxE "(127\.0\.0\.1|localhost|::1):$data" /run/a
	grep -qx "$data" < <(showmount -d --no-headers localhost)
	umount /mnt/c
}

tools_dump_clean() {
	# The two mounts that all checks share.
	local before
	before=$(showmount -a --no-headers localhost | sort)
	try '' "localhost:$more/data"
	grep -q ":$more/data\$" < <(showmount -a --no-headers localhost)
	umount /mnt/c
	is "left mounted" "$(showmount -a --no-headers localhost | sort)" "$before"
}

tools_rpcinfo() {
	rpcinfo -p localhost >/run/p
	grep -qE '^ +100003 +3 +tcp +2049 ' /run/p
	grep -qE '^ +100005 +1 +tcp +(2049|20048) ' /run/p
	grep -qE '^ +100005 +3 +tcp +(2049|20048) ' /run/p
	rpcinfo -t localhost 100003 3
	rpcinfo -t localhost 100005 3
	rpcinfo -T tcp6 ::1 100003 3
	refused 'not available|mismatch' rpcinfo -t localhost 100003 4
}

tools_nfsstat() {
	nfsstat -m "$mnt" >/run/m
	grep -q "^$mnt from localhost:$data" /run/m
	grep -q 'vers=3,rsize=1048576,wsize=1048576' /run/m
	grep -qw getattr < <(nfsstat -c -3)
	echo x >"$mnt/$name/f"
	nfsiostat "$mnt" >/run/i
	grep -q "^localhost:$data mounted on $mnt:" /run/i
}

# The kernel's automounter, by systemd and by autofs's own daemon.
mount_automount() {
	echo "localhost:$data /mnt/auto nfs vers=3,nolock,noauto,x-systemd.automount,x-systemd.idle-timeout=2 0 0" \
		>/etc/fstab
	systemctl daemon-reload
	systemctl start mnt-auto.automount
	if findmnt -nt nfs /mnt/auto; then fail "mounted too early"; fi
	echo auto >"/mnt/auto/$name/f"
	is "on the server" "$(cat "$work/f")" auto
	until ! findmnt -nt nfs /mnt/auto; do sleep 0.5; done
	is again "$(cat "/mnt/auto/$name/f")" auto
	systemctl stop mnt-auto.automount
	: >/etc/fstab
	systemctl daemon-reload
}

mount_autofs() {
	command -v automount || skip "no automount"
	echo '/mnt/by /etc/auto.by --timeout=2' >/etc/auto.master
	echo "* -fstype=nfs,vers=3,nolock localhost:$more/&" >/etc/auto.by
	modprobe autofs4 || modprobe autofs
	cp /usr/share/autofs/conffiles/autofs.conf /etc/
	# Of its own process group: the kernel takes members for the daemon.
	: >/run/autofs.log
	setsid automount --foreground --verbose /etc/auto.master \
		>/run/autofs.log 2>&1 &
	until grep -q 'mounted indirect' /run/autofs.log; do
		kill -0 $!
		sleep 0.1
	done
	is read "$(cat /mnt/by/ro/file || cat /run/autofs.log)" "read only"
	echo >/mnt/by/data/f
	[ -e "$more/data/f" ]
	refused 'no such file' ls /mnt/by/nothing
	until ! findmnt -nt nfs /mnt/by/data; do sleep 0.5; done
	rm /mnt/by/data/f
	kill $!
	wait $!
}

part_mount() {
	local o mountport=2049
	[ "$server" = nvnfsd ] || mountport=20048
	check mount-ports mount_options "port=2049,mountport=$mountport"
	for o in '' soft hard sec=sys \
		noac,lookupcache=none sync noacl,nordirplus; do
		check "mount-${o:-rpcbind}" mount_options "$o"
	done
	# Without proto=tcp the client asks rpcbind all the same.
	check mount-without-rpcbind mount_without_rpcbind \
		"proto=tcp,port=2049,mountport=$mountport"
	check mount-tcp mount_proto proto=tcp 127.0.0.1 tcp
	check mount-tcp6 mount_proto proto=tcp6 '[::1]' tcp6
	check mount-no-option mount_no_option
	check mount-nconnect mount_nconnect
	check mount-sizes mount_sizes
	check mount-subdirectory mount_subdirectory
	check mount-ro mount_read_only
	check mount-ro-export mount_read_only_export
	check mount-refused mount_refused
	check mount-fstab mount_fstab
	check mount-automount mount_automount
	check mount-autofs mount_autofs
	check mount-again-and-again mount_again_and_again
	check mount-statfs mount_statfs
	mount_both || return
	check showmount tools_showmount
	check dump-clean tools_dump_clean
	check rpcinfo tools_rpcinfo
	check nfsstat tools_nfsstat
}

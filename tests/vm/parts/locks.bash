# SPDX-License-Identifier: Apache-2.0
# Locks by two clients that are mounted without any option. Each is a machine of
# its own as far as that goes: a network, a host name, an rpcbind and an
# rpc.statd. Sourced by client-guest.
# shellcheck shell=bash disable=SC2154,SC2034

grace=15 # seconds

# The first process of a client's namespaces; /run and /var/lib/nfs are its own.
# shellcheck disable=SC2016
client_init='
	hostname "$1"
	mount -t tmpfs run /run
	mount --bind "/var/lib/nfs.$1" /var/lib/nfs
	rpcbind
	rpc.statd --no-notify
	: >/run/ready
	exec sleep infinity'

client_start() { # NAME N
	local pid
	client_make "$1" "$2"
	echo "10.9.$2.2 $1" >>/etc/hosts
	install -d -o statd -g nogroup "/var/lib/nfs.$1"{,/sm,/sm.bak}
	setsid nsenter --net="/run/netns/$1" unshare --mount --uts \
		bash -ec "$client_init" - "$1" &
	pid=$!
	echo "$pid" >"/run/$1.pid"
	until [ -e "/proc/$pid/root/run/ready" ]; do
		kill -0 "$pid" || return
		sleep 0.1
	done
	mkdir -p "/mnt/$1"
	in_client "$1" mount "10.9.$2.1:$data" "/mnt/$1"
}

in_client() { # NAME COMMAND...
	local name=$1
	shift
	nsenter -t "$(cat "/run/$name.pid")" -m -u -n -- "$@"
}

# What a client sees, seen from here.
client_root() { echo "/proc/$(cat "/run/$1.pid")/root"; }

# The server dies, locks and all, and comes back. The kernel's cannot be killed:
# when it stops it tells statd that it has no more locks, and so none of the
# clients would hear of it.
locks_server_kill() {
	if [ "$server" = nvnfsd ]; then
		server_kill
		return
	fi
	cp -a /var/lib/nfs/sm /run/
	rpc.nfsd 0
	sleep 1
	cp -a /run/sm /var/lib/nfs/
	systemctl reload-or-restart knfsd
	sm-notify -f
}

locks_set_up() {
	modprobe -a veth lockd || return
	# What other parts have mounted here would have the kernel's own lock
	# manager in rpcbind.
	umount -a -t nfs
	if [ "$server" = nvnfsd ]; then
		printf '[lockd]\ngrace = %s\n' $grace >>/etc/nvnfsd/nvnfsd.conf
	else
		echo $grace >/sys/module/lockd/parameters/nlm_grace_period
		rpc.nfsd 0
		echo $grace >/proc/fs/nfsd/nfsv4gracetime
	fi
	systemctl start rpc-statd || return
	systemctl restart "$server" || return
	client_start left 3 && client_start right 4
}

locks() { # CHECK
	SERVER=$server WORK=$work ONE=$one/$name TWO=$two/$name \
		ADDRESSES='10.9.3.1 10.9.3.2 10.9.4.1 10.9.4.2' \
		python3 "$here/locks.py" "$1"
}

locks_mounted() {
	local m
	for m in left right; do
		in_client $m cat /proc/mounts >/run/mounts
		awk -v m="/mnt/$m" '$2 == m {print $4}' /run/mounts | tr , '\n' \
			>/run/options
		grep -qx vers=3 /run/options
		grep -qx local_lock=none /run/options
	done
	rpcinfo -p localhost >/run/p
	grep -qE '^ +100021 +4 +tcp ' /run/p
	grep -qE '^ +100021 +4 +udp ' /run/p
	in_client left rpcinfo -t 10.9.3.1 100021 4
	in_client left rpcinfo -u 10.9.3.1 100021 4
}

# not_now COMMAND...: flock -n ends with 1 when another has it.
not_now() {
	local rc=0
	"$@" true || rc=$?
	is "status of $*" $rc 1
}

locks_flock() {
	local f=$one/$name/f g=$two/$name/f
	exec 3<>"$f"
	flock 3
	not_now flock -n "$g"
	not_now flock -n -s "$g"
	flock -s 3
	flock -n -s "$g" true
	not_now flock -n "$g"
	flock -u 3
	flock -n "$g" true
	flock 3
	beside flock "$g" sh -c "echo mine >>'$g'" 3>&-
	echo yours >>"$f"
	exec 3>&-
	together
	is lines "$(paste -sd ' ' "$work/f")" 'yours mine'
}

locks_read_only() {
	local left
	left=$(client_root left)
	in_client left mkdir -p /run/ro /run/export
	in_client left mount -o ro "10.9.3.1:$data" /run/ro
	in_client left mount "10.9.3.1:$more/ro" /run/export
	: >"$work/f"
	MOUNTED_RO=$left/run/ro/$name EXPORTED_RO=$left/run/export \
		THERE_RO=$more/ro locks read_only
	in_client left umount /run/ro /run/export
}

# Who unmounts leaves nothing behind, on the wire's other side neither.
locks_umount() {
	local f
	f=$(client_root left)/run/m/$name/f
	in_client left mkdir -p /run/m
	in_client left mount -o nosharecache "10.9.3.1:$data" /run/m
	exec 3<>"$f"
	flock 3
	not_now flock -n "$two/$name/f"
	refused busy in_client left umount /run/m
	exec 3>&-
	in_client left umount /run/m
	flock -n "$two/$name/f" true
}

# Without a statd beside the server locks are given all the same, and the log
# says what is missing: of a client that is new, hence by another address.
locks_without_statd() {
	local f
	only_nvnfsd
	f=$(client_root left)/run/m/$name/f
	ip addr add 10.9.5.1/24 dev to-left
	ip -n left addr add 10.9.5.2/24 dev eth0
	trap 'systemctl start rpc-statd' EXIT
	systemctl stop rpc-statd
	in_client left mkdir -p /run/m
	in_client left mount "10.9.5.1:$data" /run/m
	flock -n "$f" true
	flock "$two/$name/f" true
	in_client left umount /run/m
	journalctl -b -u nvnfsd -q -o cat >/run/journal
	grep -F '10.9.5.2 has locks, and nobody will tell when it reboots: no rpc.statd runs here' \
		/run/journal
}

part_locks() {
	local c one two
	locks_set_up >"$log" 2>&1 || {
		report "FAIL locks: no clients: $(tail -n 1 "$log")"
		failed=1
		return
	}
	one=$(client_root left)/mnt/left
	two=$(client_root right)/mnt/right
	export -f locks_server_kill server_kill server_pid in_client
	export server
	check locks-mounted locks_mounted
	check locks-flock locks_flock
	for c in ranges holder blocking cancelled deadlock local counted \
		delivered database; do
		check "locks-$c" locks "$c"
	done
	check locks-read-only locks_read_only
	check locks-umount locks_umount
	check locks-reclaimed locks reclaimed
	check locks-rebooted locks rebooted
	check locks-without-statd locks_without_statd
	kill "$(cat /run/left.pid)" "$(cat /run/right.pid)"
}

# SPDX-License-Identifier: Apache-2.0
# Debian's rpcbind in network and mount namespaces of a script's own, with a /run
# of its own, and what is registered there. To be sourced with the script's
# arguments: it starts the script anew inside.
# shellcheck shell=bash
skip() {
	echo "skip: $*"
	exit 77
}

if [ -z "${BIND_INSIDE:-}" ]; then
	PATH=$PATH:/usr/sbin:/sbin
	for tool in rpcbind rpcinfo unshare setpriv ip; do
		command -v "$tool" >/dev/null || skip "no $tool here"
	done
	unshare -n -m true 2>/dev/null ||
		skip "no right to make namespaces (needs root)"
	BIND_INSIDE=1 exec unshare -n -m --propagation private "$0" "$@"
fi

mount -t tmpfs -o mode=755 tmpfs /run
ip link set lo up
pids=()
cleanup() {
	local pid
	for pid in "${pids[@]}"; do
		kill -CONT "$pid" 2>/dev/null || true
		kill "$pid" 2>/dev/null || true
	done
	wait
}
trap cleanup EXIT

# serve: $nvnfsd, which the script sets, on port 2049 with /run/export, what is
# in /run/conf and the options in serve_with; sets server. stop: it ends well.
serve_with=()
# shellcheck disable=SC2154
serve() {
	mkdir -p /run/export
	"$nvnfsd" --config /run/conf --exports /dev/null --port 2049 \
		--export '/run/export *(rw,fsid=1,insecure)' \
		--state-dir /run/state "${serve_with[@]}" >/run/ready 2>/run/log &
	server=$!
	pids+=("$server")
	until grep -q ready /run/ready; do
		kill -0 "$server" || {
			cat /run/log
			exit 1
		}
		sleep 0.05
	done
}
stop() {
	kill "$server"
	wait "$server"
}

# is WHAT GOT WANTED
is() {
	if [ "$2" != "$3" ]; then
		printf 'FAIL: %s\n--- got\n%s\n--- wanted\n%s\n' "$1" "$2" "$3"
		exit 1
	fi
	echo "ok: $1"
}

# What is registered: "PROGRAM VERSION NETID ADDRESS OWNER", but for rpcbind's
# own lines.
registered() {
	rpcinfo | awk 'NR > 1 && $1 != 100000 { print $1, $2, $3, $4, $NF }' |
		sort
}

# The lines that nvnfsd's services make: OWNER ADDRESS [ADDRESS6]. The programs
# in $no_udp are served by TCP only.
no_udp=
lines() {
	local p netid
	for p in "100003 3" "100005 1" "100005 2" "100005 3" \
		"100011 1" "100011 2" "100021 4" "100227 3"; do
		for netid in tcp udp; do
			[ $netid = tcp ] || [[ " $no_udp " != *" ${p% *} "* ]] ||
				continue
			printf '%s %s %s %s\n' "$p" $netid "$2" "$1"
			[ -z "${3:-}" ] ||
				printf '%s %s6 %s %s\n' "$p" $netid "$3" "$1"
		done
	done
}

start_rpcbind() {
	mkdir -p /run/rpcbind
	chown _rpc /run/rpcbind 2>/dev/null || true
	rpcbind -w -f &
	rpcbind_pid=$!
	pids+=("$rpcbind_pid")
	until rpcinfo >/dev/null 2>&1; do
		kill -0 "$rpcbind_pid" 2>/dev/null || {
			echo "FAIL: rpcbind did not start"
			exit 1
		}
		sleep 0.1
	done
}

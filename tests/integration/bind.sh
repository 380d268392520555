#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bind.sh BIND_CALL - registration with Debian's rpcbind, which runs in network
# and mount namespaces of this script's own, with a /run of its own. What is
# registered is read back with rpcinfo.
set -euo pipefail
call=$1

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
	BIND_INSIDE=1 exec unshare -n -m --propagation private "$0" "$call"
fi

mount -t tmpfs -o mode=755 tmpfs /run
ip link set lo up
out=$(mktemp -d /run/bind.XXXXXX)
pids=()
# shellcheck disable=SC2317 # called by the trap
cleanup() {
	local pid
	exec 9>&- # ends what serves
	for pid in "${pids[@]}"; do
		kill -CONT "$pid" 2>/dev/null || true
		kill "$pid" 2>/dev/null || true
	done
	wait
}
trap cleanup EXIT

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

# The lines that nvnfsd's three services make: OWNER ADDRESS [ADDRESS6]
lines() {
	local p
	for p in "100003 3" "100005 1" "100005 3"; do
		printf '%s tcp %s %s\n' "$p" "$2" "$1"
		[ -z "${3:-}" ] || printf '%s tcp6 %s %s\n' "$p" "$3" "$1"
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

# serve PROGRAM.VERSION: $port is where; ends when descriptor 9 is closed.
serve() {
	rm -f "$out/stdin" "$out/port"
	mkfifo "$out/stdin"
	"$call" serve "$1" <"$out/stdin" >"$out/port" &
	serve_pid=$!
	exec 9>"$out/stdin"
	until [ -s "$out/port" ]; do
		kill -0 "$serve_pid"
		sleep 0.05
	done
	port=$(cat "$out/port")
}
stop_serving() {
	exec 9>&-
	wait "$serve_pid"
}
# The two bytes of a port, as a universal address ends.
bytes() { echo "$(($1 / 256)).$(($1 % 256))"; }

unprivileged() { setpriv --reuid=12345 --regid=12345 --clear-groups "$@"; }

is "no rpcbind" "$("$call" register 2049 2049)" ECONNREFUSED
is "nothing to withdraw from" "$("$call" unregister 2049 2049)" ok
# A socket that a killed rpcbind left.
start_rpcbind
kill -KILL "$rpcbind_pid"
wait "$rpcbind_pid" 2>/dev/null || true
[ -S /run/rpcbind.sock ]
is "a dead rpcbind's socket" "$("$call" register 2049 2049)" ECONNREFUSED
start_rpcbind

is "register" "$("$call" register 2049 2050)" ok
is "registered" "$(registered)" \
	"$(lines superuser 0.0.0.0.8.1 ::.8.2)"
is "portmap's clients find it too" \
	"$(rpcinfo -p 127.0.0.1 | awk '$1 == 100003 { print $2, $3, $4 }')" \
	"3 tcp 2049"

is "register once more" "$("$call" register 2049 2050)" ok
is "registered as before" "$(registered)" \
	"$(lines superuser 0.0.0.0.8.1 ::.8.2)"

is "in a dead server's place" "$("$call" register 4100 4100)" ok
is "replaced" "$(registered)" \
	"$(lines superuser 0.0.0.0.16.4 ::.16.4)"

is "withdraw what is another's" "$("$call" unregister 2049 2050)" ok
is "nothing withdrawn" "$(registered)" \
	"$(lines superuser 0.0.0.0.16.4 ::.16.4)"
is "withdraw" "$("$call" unregister 4100 4100)" ok
is "withdrawn" "$(registered)" ""

is "IPv4 alone" "$("$call" register 2049 0)" ok
is "IPv4 alone registered" "$(registered)" "$(lines superuser 0.0.0.0.8.1)"
is "IPv4 alone withdrawn" "$("$call" unregister 2049 0; registered)" ok

# A living server keeps what it registered; a dead one does not.
serve 100005.1
is "another server" "$("$call" register "$port" 0 100005.1)" ok
is "it lives" "$("$call" register 2049 2049)" EADDRINUSE
is "it keeps its place" "$(registered)" \
	"100005 1 tcp 0.0.0.0.$(bytes "$port") superuser"
stop_serving
is "it is dead" "$("$call" register 2049 2050)" ok
is "its place is taken" "$(registered)" \
	"$(lines superuser 0.0.0.0.8.1 ::.8.2)"
# Its port may be a server's of something else by then.
serve 400000.1
is "a left registration" "$("$call" register "$port" 0)" ok
is "whose port serves another program" "$("$call" register 2049 2050)" ok
is "is replaced" "$(registered)" \
	"$(lines superuser 0.0.0.0.8.1 ::.8.2)"
stop_serving

# Nobody but root takes what root registered.
is "another user" "$(unprivileged "$call" register 5000 5000)" EPERM
is "another user withdraws" "$(unprivileged "$call" unregister 2049 2050)" ok
is "root's stay" "$(registered)" \
	"$(lines superuser 0.0.0.0.8.1 ::.8.2)"
"$call" unregister 2049 2050 >"$out/unregister"
# Refused at the last of the six: the five before are taken back.
is "mount 1 is root's" "$("$call" register 0 2049 100005.1)" ok
is "refused late" "$(unprivileged "$call" register 5000 5000)" EPERM
is "nothing half done" "$(registered)" "100005 1 tcp6 ::.8.1 superuser"
is "root replaces anyone's" \
	"$(unprivileged "$call" register 6000 6000 100003.3)$(
		"$call" register 2049 2050)" okok
is "and owns it" "$(registered)" "$(lines superuser 0.0.0.0.8.1 ::.8.2)"

kill -STOP "$rpcbind_pid"
is "an rpcbind that hangs" "$("$call" register 2049 2050)" ETIMEDOUT
kill -CONT "$rpcbind_pid"
echo "all passed"

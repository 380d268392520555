#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# bind.sh BIND_CALL - registration with Debian's rpcbind. What is registered is
# read back with rpcinfo.
set -euo pipefail
call=$1

# shellcheck source=tests/integration/rpcbind.bash
. "$(dirname "$0")/rpcbind.bash"
out=$(mktemp -d /run/bind.XXXXXX)
trap 'exec 9>&-; cleanup' EXIT # descriptor 9 ends what serves

# serve PROGRAM.VERSION [udp]: $port is where; ends when descriptor 9 is closed.
serve() {
	rm -f "$out/stdin" "$out/port"
	mkfifo "$out/stdin"
	"$call" serve "$@" <"$out/stdin" >"$out/port" &
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
	$'3 tcp 2049\n3 udp 2049'

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
	"$(printf '100005 1 %s superuser\n' "tcp 0.0.0.0.$(bytes "$port")" \
		"udp 0.0.0.0.$(bytes "$port")")"
stop_serving
serve 100005.1 udp
is "another server, by UDP" "$("$call" register "$port" 0 100005.1)" ok
is "it lives too" "$("$call" register 2049 2049)" EADDRINUSE
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
# Refused at one of the last: those before are taken back.
is "mount 1 is root's" "$("$call" register 0 2049 100005.1)" ok
is "refused late" "$(unprivileged "$call" register 5000 5000)" EPERM
is "nothing half done" "$(registered)" \
	$'100005 1 tcp6 ::.8.1 superuser\n100005 1 udp6 ::.8.1 superuser'
is "root replaces anyone's" \
	"$(unprivileged "$call" register 6000 6000 100003.3)$(
		"$call" register 2049 2050)" okok
is "and owns it" "$(registered)" "$(lines superuser 0.0.0.0.8.1 ::.8.2)"

kill -STOP "$rpcbind_pid"
is "an rpcbind that hangs" "$("$call" register 2049 2050)" ETIMEDOUT
kill -CONT "$rpcbind_pid"
echo "all passed"

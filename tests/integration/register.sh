#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# register.sh NVNFSD BIND_CALL - the server beside an rpcbind that is not there,
# comes later, or hangs: it starts and serves all the same, and is registered as
# soon as that can be done; and beside another lock manager.
set -euo pipefail
nvnfsd=$1 call=$2
# shellcheck source=tests/integration/rpcbind.bash
. "$(dirname "$0")/rpcbind.bash"

serve_with=(--listen 127.0.0.1)
: >/run/conf
# What the server does not serve by UDP.
no_udp="100003 100227"
want=$(lines superuser 127.0.0.1.8.1)
# until_registered WHAT: it is waited for, however long it takes.
until_registered() {
	until [ "$(registered)" = "$want" ]; do
		kill -0 "$server"
		sleep 0.1
	done
	is "$1" "$(registered)" "$want"
}

serve
is "no rpcbind" "$(grep -c 'not registered with rpcbind' /run/log)" 1
start_rpcbind
until_registered "one that came later"
is "which is said" "$(grep -c ': registered with rpcbind' /run/log)" 1
stop
is "withdrawn" "$(registered)" ""

serve
is "registered before it is ready" "$(registered)" "$want"
stop

kill -STOP "$rpcbind_pid"
serve
is "it serves while rpcbind hangs" "$(rpcinfo -a 127.0.0.1.8.1 -T tcp 100003 3)" \
	"program 100003 version 3 ready and waiting"
kill -CONT "$rpcbind_pid"
until_registered "one that came to itself"
stop
is "withdrawn again" "$(registered)" ""

kill -STOP "$rpcbind_pid"
serve
stop
echo "ok: ends while rpcbind hangs"
kill -CONT "$rpcbind_pid"
until rpcinfo >/dev/null 2>&1; do sleep 0.1; done

# Another lock manager keeps its place, and nothing but it.
mkfifo /run/stdin
"$call" serve 100021.4 </run/stdin >/run/port &
pids+=("$!")
exec 9>/run/stdin
until [ -s /run/port ]; do sleep 0.05; done
other=$(cat /run/port)
is "another lock manager" "$("$call" register "$other" 0 100021.4)" ok
theirs=$(registered)
serve
is "keeps its place" "$(registered)" \
	"$(printf '%s\n' "$(grep -v '^100021 ' <<<"$want")" "$theirs" | sort)"
is "which is said" "$(grep -c 'another lock manager' /run/log)" 1
stop
is "and after us" "$(registered)" "$theirs"
exec 9>&-
echo "all passed"

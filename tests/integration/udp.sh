#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# udp.sh NVNFSD UDP_CALL - the server by UDP on a machine of several addresses,
# with an rpcbind: who asks one address is answered from it, and strangers'
# clients find what is there.
set -euo pipefail
nvnfsd=$1 call=$2
# shellcheck source=tests/integration/rpcbind.bash
. "$(dirname "$0")/rpcbind.bash"
command -v showmount >/dev/null || skip "no showmount here"

v4=(127.0.0.1 127.0.0.9 192.0.2.1 192.0.2.2)
v6=(::1 2001:db8::1 2001:db8::2)
for a in "${v4[@]:2}"; do ip addr add "$a/24" dev lo; done
for a in "${v6[@]:1}"; do ip -6 addr add "$a/64" dev lo nodad; done
: >/run/conf
# ready PROGRAM VERSION: as rpcinfo says it.
ready() { echo "program $1 version $2 ready and waiting"; }

start_rpcbind
serve
no_udp="100003 100227"
is "registered" "$(registered)" "$(lines superuser 0.0.0.0.8.1 ::.8.1)"
for a in "${v4[@]}" "${v6[@]}"; do
	is "MOUNT at $a" "$("$call" "$a" 2049 100005 3)" ok
	is "RQUOTA at $a" "$("$call" "$a" 2049 100011 2)" ok
done
for p in "100005 1" "100005 2" "100005 3" "100011 1" "100011 2"; do
	# shellcheck disable=SC2086
	is "rpcinfo -u, program ${p% *}, version ${p#* }" \
		"$(rpcinfo -u 127.0.0.1 $p)" "$(ready $p)"
	# shellcheck disable=SC2086
	is "and by udp6" "$(rpcinfo -T udp6 ::1 $p)" "$(ready $p)"
done
if out=$("$call" 127.0.0.1 2049 100003 3 2>&1); then
	echo "FAIL: NFS by UDP, unasked"
	exit 1
fi
is "no NFS" "$out" "RPC: Program unavailable"
rpcinfo -u 127.0.0.1 100003 3 >/run/out 2>&1 && {
	echo "FAIL: NFS is registered for UDP, unasked"
	exit 1
}
is "showmount -e" "$(showmount --no-headers -e 127.0.0.1)" "/run/export *"
is "showmount -e, IPv6" "$(showmount --no-headers -e ::1)" "/run/export *"
stop
is "withdrawn" "$(registered)" ""

printf '[nfsd]\nudp = yes\n' >/run/conf
serve
no_udp=
is "NFS registered" "$(registered)" "$(lines superuser 0.0.0.0.8.1 ::.8.1)"
for a in "${v4[@]}" "${v6[@]}"; do
	is "NFS at $a" "$("$call" "$a" 2049 100003 3)" ok
done
is "rpcinfo -u, NFS" "$(rpcinfo -u 127.0.0.1 100003 3)" "$(ready 100003 3)"
is "rpcinfo -u, NFSACL" "$(rpcinfo -u 127.0.0.1 100227 3)" "$(ready 100227 3)"
stop

# Somebody else has the port of UDP: where NFS is wanted there it is an error,
# else all goes on by TCP.
mkfifo /run/stop
"$call" hold 2049 </run/stop >/run/held &
holder=$!
pids+=("$holder")
exec 8>/run/stop
until [ -s /run/held ]; do sleep 0.05; done
"$nvnfsd" --config /run/conf --exports /dev/null --state-dir /run/state \
	>/run/ready 2>/run/log && {
	echo "FAIL: NFS by UDP was asked for, and cannot be"
	exit 1
}
is "the port is in use" \
	"$(grep -c 'cannot receive on UDP port 2049: Address already' /run/log)" 1
: >/run/conf
serve
is "by TCP at least" "$(showmount --no-headers -e 127.0.0.1)" "/run/export *"
is "which is said" "$(grep -c 'UDP port 2049.*by TCP only' /run/log)" 1
stop
exec 8>&-
wait "$holder"
echo "all passed"

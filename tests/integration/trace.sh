#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# trace.sh probes NVNFSD           - the binary has every probe
# trace.sh scripts NVNFSD LOAD DIR - bpftrace understands the scripts of DIR,
#     and, where this kernel lets it, they show the WRITEs of a server
set -uo pipefail

skip() {
	echo "skip: $*"
	exit 77
}

fail() {
	echo "FAIL: $*"
	exit 1
}

# Those that nvnfsctl(8) documents, from there.
documented() {
	sed -nE 's/^\.It Fn ([a-z_]+) .*/\1/p' \
		"$(dirname "$0")/../../systemd/nvnfsctl.8" | sort
}

probes() {
	local have want
	have=$(readelf -n "$1" | grep -A1 'Provider: nvnfsd' |
		sed -nE 's/^ *Name: //p' | sort -u)
	want=$(documented)
	[ -n "$have" ] || skip "built without sys/sdt.h"
	[ -n "$want" ] || fail "nvnfsctl(8) names no probes"
	[ "$have" = "$want" ] || fail "probes: $have; documented: $want"
}

# start BINARY: a server on a free port; sets pid and port.
start() {
	mkdir "$work/export"
	chmod 777 "$work/export"
	"$1" --listen 127.0.0.1 --port 0 --no-rpcbind --config /dev/null \
		--state-dir "$work/state" \
		--export "$work/export *(rw,insecure,no_root_squash)" \
		>"$work/ready" 2>"$work/log" &
	pid=$!
	until grep -q ready "$work/ready"; do
		kill -0 "$pid" 2>/dev/null || fail "$(cat "$work/log")"
		sleep 0.05
	done
	port=$(sed -nE 's/.* nfs=[^ ]*:([0-9]+) .*/\1/p' "$work/ready")
}

# Can bpftrace attach here to anything at all? Here: to the C library, which is
# not ours, and finds what it is asked for.
can_attach() {
	local libc
	libc=$(ldd "$(command -v bpftrace)" | awk '$1 == "libc.so.6" {print $3}')
	bpftrace -e "uprobe:$libc:getpid {} BEGIN {exit()}" >"$work/out" 2>&1 &&
		grep -q 'Attaching 2 probes' "$work/out"
}

# begun SCRIPT: the tracer says that it traces.
begun() {
	until grep -qs '; Ctrl-C ends it' "$work/out"; do
		kill -0 "$tracer" 2>/dev/null || {
			cat "$work/out"
			fail "$1 does not run"
		}
		sleep 0.05
	done
}

# What comes each second has come, and all of it.
ticked() {
	local before
	before=$(ticks)
	until [ "$(ticks)" -ge $((before + 2)) ]; do
		kill -0 "$tracer" || fail "the tracer has ended"
		sleep 0.1
	done
}
ticks() { grep -cE '^[0-9]{2}:[0-9]{2}:[0-9]{2}$' "$work/out"; }

# run SCRIPT PATTERN...: what it prints of some WRITEs matches all of them.
run() {
	local script=$1 pattern
	shift
	rm -f "$work/out" # the last script's says that it traces, too
	bpftrace "$script" >"$work/out" 2>&1 &
	tracer=$!
	begun "$script"
	"$load" --port "$port" --mount-port "$port" --export "$work/export" \
		--size 20M --records 94016 --in-flight 4 write \
		>"$work/json" || fail "no traffic"
	if grep -q '^interval' "$script"; then ticked; fi
	# A first one can come before it listens.
	while kill -INT "$tracer" 2>/dev/null; do sleep 0.2; done
	wait "$tracer" || fail "$script ended badly: $(tail -n 5 "$work/out")"
	tracer=
	for pattern; do
		grep -qE "$pattern" "$work/out" || {
			cat "$work/out"
			fail "$script: no $pattern"
		}
	done
}

scripts() {
	local binary=$1 dir=$3 script
	load=$2
	command -v bpftrace >/dev/null || skip "no bpftrace"
	[ "$(id -u)" = 0 ] || skip "not root"
	readelf -n "$binary" | grep -q 'Provider: nvnfsd' ||
		skip "built without sys/sdt.h"
	work=$(mktemp -d)
	pid='' tracer=''
	trap 'kill -9 $pid $tracer 2>/dev/null; rm -rf "$work"' EXIT
	for script in write-time split-map; do
		sed "s|usdt:[^ :]*:nvnfsd:|usdt:$binary:nvnfsd:|" \
			"$dir/$script.bt" >"$work/$script.bt"
		bpftrace -d "$work/$script.bt" >"$work/out" 2>&1 || {
			cat "$work/out"
			fail "$script is not understood"
		}
	done
	can_attach || skip "bpftrace cannot attach here: $(tail -n 1 "$work/out")"
	start "$binary"
	run "$work/write-time.bt" '@us\[1 to the cut\]' '@us\[3 in pieces\]' \
		'@us\[4 to the reply\]' '@sync_us'
	run "$work/split-map.bt" '@writes\[(split|lone|small)\]: [0-9]' \
		'@direct_bytes: [1-9]'
}

case ${1:-} in
probes | scripts) "$@" ;;
*)
	echo "usage: trace.sh probes|scripts NVNFSD [LOAD DIR]"
	exit 2
	;;
esac

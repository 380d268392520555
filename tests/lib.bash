# SPDX-License-Identifier: Apache-2.0
# What tests/run, nfsd/quickstart and the scripts below tests/ share: messages,
# Debian packages, builds. To be sourced; it changes nothing by itself.
# shellcheck shell=bash disable=SC2034

say() { printf '%s\n' "$*" >&2; }

# The package lists stand here, once, so that the README need not name them.
packages_build=(gcc libc6-dev meson ninja-build pkg-config liburing-dev
	libtirpc-dev libsystemd-dev libsodium-dev libinih-dev libjson-c-dev
	libnvme-dev libncurses-dev systemtap-sdt-dev uthash-dev)
packages_load=(libnfs-dev jq xfsprogs util-linux util-linux-extra mount kmod
	iproute2 procps)
packages_bench=(python3 gnuplot-nox sysstat rsync debootstrap)
packages_tests=(clang clang-format clang-tidy libclang-rt-14-dev libcmocka-dev
	shellcheck mandoc git e2fsprogs btrfs-progs rpcbind acl attr libcap2-bin
	libnfs-utils nfs-common pyflakes3 bpftrace)
packages_vm=(user-mode-linux systemd iproute2 kmod)
packages_client=(nfs-common rpcbind xfsprogs e2fsprogs python3 git rsync acl)
packages_client_unpacked=(autofs quota) # in the guest only
packages_strangers=(fio stress-ng bonnie++ dbench postmark libnfs-utils)
packages_nvme=(qemu-system-x86 busybox-static iproute2 kmod jq xfsprogs dmsetup
	util-linux)

packages_missing() {
	local p
	for p in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = \
			installed ] || printf '%s\n' "$p"
	done
}

# packages_need NAME...: install what is missing and name it; without the
# right to, say what to install and fail.
packages_need() {
	local missing
	command -v dpkg-query >/dev/null || {
		say "this is no Debian: install by hand what these hold: $*"
		return 1
	}
	mapfile -t missing < <(packages_missing "$@")
	[ "${#missing[@]}" -gt 0 ] || return 0
	if [ "$(id -u)" != 0 ]; then
		say "missing Debian packages; as root:" \
			"apt-get install ${missing[*]}"
		return 1
	fi
	say "installing Debian packages: ${missing[*]}"
	local log
	log=$(mktemp) || return 1
	if ! { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q \
		install -y --no-install-recommends "${missing[@]}"; } \
		>"$log" 2>&1 </dev/null; then
		tail -n 20 "$log" >&2
		rm -f "$log"
		say "apt-get could not install them"
		return 1
	fi
	rm -f "$log"
}

# packages_unpack DIR NAME...: what they hold, below DIR, for packages that start
# a service wherever they are installed.
packages_unpack() {
	local dir=$1 work package rc=0
	local get=(apt-get -q -o APT::Sandbox::User=root)
	shift
	work=$(mktemp -d) || return 1
	if ! (cd "$work" && { "${get[@]}" download "$@" || { "${get[@]}" update &&
		"${get[@]}" download "$@"; }; } >log 2>&1 </dev/null); then
		tail -n 5 "$work/log" >&2
		rm -rf "$work"
		say "apt-get could not fetch $*"
		return 1
	fi
	for package in "$work"/*.deb; do
		dpkg -x "$package" "$dir" || rc=1
	done
	rm -rf "$work"
	return $rc
}

# build_dir DIR SOURCE [MESON-OPTION...]: set up once, then build; only what
# matches build_only where that is set. What the tools say is shown only when
# they fail.
build_dir() {
	local dir=$1 source=$2 log=$1/build.log targets=()
	shift 2
	if [ ! -f "$dir/build.ninja" ]; then
		rm -rf "$dir"
		mkdir -p "$dir"
		meson setup "$dir" "$source" "$@" >"$log" 2>&1 </dev/null || {
			tail -n 40 "$log" >&2
			return 1
		}
	fi
	[ -z "${build_only:-}" ] || mapfile -t targets < <(ninja -C "$dir" \
		-t targets all | sed -n "s|^\($build_only\): .*|\1|p")
	ninja -C "$dir" "${targets[@]}" >"$log" 2>&1 </dev/null || {
		grep -vE '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 60 >&2
		return 1
	}
}

# wait_line PID FILE PATTERN: until a line of FILE matches, or PID has ended.
wait_line() {
	local pid=$1 file=$2 pattern=$3
	until grep -qE "$pattern" "$file" 2>/dev/null; do
		kill -0 "$pid" 2>/dev/null || {
			grep -qE "$pattern" "$file" 2>/dev/null
			return
		}
		sleep 0.05
	done
}

# ready_ports FILE: "NFS MOUNT", the ports of the daemon's ready line.
ready_ports() {
	sed -nE 's/^nvnfsd: ready nfs=.*:([0-9]+) mount=.*:([0-9]+) .*/\1 \2/p' \
		"$1" | head -n 1
}

# image_mount FILE SIZE DIR: a new XFS with 4096-byte logical blocks in FILE,
# mounted on DIR. The loop device lets go of itself when DIR is unmounted. Sets
# image_device; fails with the reason in image_error.
image_mount() {
	local file=$1 size=$2 dir=$3
		image_error='' image_device=''
	mkdir -p "$dir"
	if ! image_error=$(truncate -s "$size" "$file" 2>&1); then return 1; fi
	if ! image_device=$(losetup --find --show --sector-size 4096 \
		--direct-io=on "$file" 2>&1) &&
		! image_device=$(losetup --find --show --sector-size 4096 \
			"$file" 2>&1); then
		image_error=$image_device image_device=''
		return 1
	fi
	# It keeps what its last user made of this, tests among them a page.
	cat "/sys/block/${image_device#/dev/}/queue/max_hw_sectors_kb" \
		>"/sys/block/${image_device#/dev/}/queue/max_sectors_kb"
	if image_error=$(mkfs.xfs -q -f "$image_device" 2>&1) &&
		image_error=$(mount -t xfs "$image_device" "$dir" 2>&1); then
		losetup -d "$image_device"
		return 0
	fi
	losetup -d "$image_device"
		image_device=''
	return 1
}

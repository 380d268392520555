# SPDX-License-Identifier: Apache-2.0
# What is read around a run: the device's counters, the page cache of one file,
# the server's CPU time, memory and own counters. To be sourced.
# shellcheck shell=bash

# block_device DIR: the sysfs directory of the device below DIR, or nothing (a
# file system of several devices or of none).
block_device() {
	local number
	number=$(findmnt -n -o MAJ:MIN -T "$1" | tr -d ' ' | head -n 1)
	readlink -e "/sys/dev/block/$number" || :
}

# device_stat SYSFS-DIR: 4 KiB units read, 4 KiB units written, flushes.
device_stat() {
	if [ -r "${1:-}/stat" ]; then
		awk '{print $3 / 8, $7 / 8, $16 + 0}' "$1/stat"
	else
		echo "- - -"
	fi
}

# resident FILE: its pages in the page cache.
resident() { fincore -n -b -o PAGES "$1" | tr -d ' '; }

# forget FILE: write it back and drop it from the page cache, and no other.
forget() {
	dd if=/dev/null of="$1" conv=notrunc,fdatasync status=none
	dd if="$1" iflag=nocache count=0 status=none
}

# cpu_seconds PID: user and system time so far, all threads.
cpu_seconds() {
	sed 's/.*) //' "/proc/$1/stat" |
		awk -v hz="$(getconf CLK_TCK)" '{print ($12 + $13) / hz}'
}

# rss_mib PID: now, and at the most.
rss_mib() {
	awk '/^VmRSS/ {now = $2} /^VmHWM/ {most = $2}
		END {printf "%.1f %.1f\n", now / 1024, most / 1024}' \
		"/proc/$1/status"
}

# server_stats PID STATE-DIR: its counters as one line of JSON.
server_stats() {
	local file=$2/stats.json
	rm -f "$file"
	kill -USR1 "$1"
	until [ -s "$file" ] && jq -c . "$file" 2>/dev/null; do
		kill -0 "$1" || return 1
		sleep 0.02
	done
}

# writes_by_kind BEFORE AFTER: "split 714, small 3": what became of the WRITEs
# between two lines of server_stats.
writes_by_kind() {
	jq -rn --argjson a "$1" --argjson b "$2" '[$b.writes | to_entries[] |
		{key, n: (.value - ($a.writes[.key] // 0))} |
		select(.n > 0) | "\(.key) \(.n)"] | join(", ")'
}

# SPDX-License-Identifier: Apache-2.0
# The server goes away and comes back under clients that have it mounted: a hard
# mount sees no error, and nothing of what was written is lost. Sourced by
# client-guest.
# shellcheck shell=bash disable=SC2154

# under COMMAND...: streams are written by two clients, one of them with a sync
# for each record, for as long as COMMAND runs; afterwards all of it must be
# there.
under() {
	stream now-and-then tool stream "$mnt/$name/stream" 80
	stream each tool stream "$mnt2/$name/synced" 20 sync
	"$@"
	streams_advance
	streams_end
	echo 3 >/proc/sys/vm/drop_caches
	tool stream_check "$mnt/$name/stream" 80 "$(stream_steps now-and-then)"
	tool stream_check "$work/synced" 20 "$(stream_steps each)"
}

# Also calls that may not be made twice. Not with kill -9: what the server did
# and had no time to say it does not know afterwards, so the client's second
# RENAME finds no such file (the kernel's server is no better).
under_with_steps() {
	stream steps tool steps "$mnt/$name/steps"
	under "$@"
	tool steps_check "$mnt2/$name/steps" "$(stream_steps steps)"
}

killing() {
	for _ in 1 2 3; do
		streams_advance
		server_kill
	done
}

restarting() {
	for _ in 1 2 3; do
		streams_advance
		systemctl restart "$server"
	done
}

stopping() {
	streams_advance
	systemctl stop "$server"
	sleep 5
	systemctl start "$server"
}

reloading() {
	for _ in 1 2 3 4; do
		streams_advance
		systemctl reload "$server"
	done
}

# Reads wait for it as well, and one that was opened before goes on after.
restart_reading() {
	head -c 40M /dev/urandom >"$mnt/$name/f"
	exec 3<"$mnt2/$name/f"
	echo 3 >/proc/sys/vm/drop_caches
	head -c 1000000 <&3 >/dev/shm/one
	systemctl stop "$server"
	beside cat <&3 >/dev/shm/two
	# The server shall be missed before it is back.
	until grep -q '^State:.D' "/proc/${beside[0]}/status"; do sleep 0.1; done
	systemctl start "$server"
	together
	exec 3<&-
	cat /dev/shm/one /dev/shm/two | cmp - "$work/f"
	rm /dev/shm/one /dev/shm/two
}

# An exclusive create whose reply is lost is not told that the name exists.
restart_exclusive() {
	stream won tool exclusive "$mnt/$name" on
	killing
	streams_advance
	streams_end
	is "names won" "$(stream_steps won)" "$(find "$work" -type f | wc -l)"
}

restart_soft() {
	mount -t nfs -o vers=3,nolock,soft,timeo=10,retrans=1 \
		"127.0.0.3:$data" /mnt/c
	echo >"/mnt/c/$name/f"
	systemctl stop "$server"
	refused 'input/output error|timed out' touch "/mnt/c/$name/g"
	systemctl start "$server"
	touch "/mnt/c/$name/h"
	umount /mnt/c
}

# An export that is withdrawn is stale at once, and there again with its files
# when it comes back.
restart_withdrawn() {
	mount -t nfs -o vers=3,nolock,noac "127.0.0.3:$more/data" /mnt/c
	echo kept >/mnt/c/f
	exec 3<>/mnt/c/f
	sed -i "\\|^$more/data |s|^|#|" "$exports"
	reload "$more/data" -
	refused 'stale file handle|permission denied' stat /mnt/c/f
	refused 'stale file handle|permission denied' touch /mnt/c/g
	sed -i "s|^#||" "$exports"
	reload "$more/data" rw
	is again "$(head -n 1 <&3)" kept
	echo more >>/mnt/c/f
	exec 3>&-
	is "on the server" "$(tail -n 1 "$more/data/f")" more
	rm /mnt/c/f
	umount /mnt/c
}

# Rights shrink at once, without a remount.
restart_rights() {
	mount -t nfs -o vers=3,nolock,noac "127.0.0.3:$more/data" /mnt/c
	echo kept >/mnt/c/f
	sed -i "\\|^$more/data |s|rw|ro|" "$exports"
	reload "$more/data" ro
	refused 'read-only file system|permission denied' sh -c 'echo no >>/mnt/c/f'
	is still "$(cat /mnt/c/f)" kept
	sed -i "\\|^$more/data |s|ro|rw|" "$exports"
	reload "$more/data" rw
	# The client remembers ACCESS's answers as long as the inode.
	echo 3 >/proc/sys/vm/drop_caches
	echo yes >>/mnt/c/f
	rm /mnt/c/f
	umount /mnt/c
}

# A file that moves out of the exported directory while it is open stays open.
restart_moved_out() {
	mount -t nfs -o vers=3,nolock,noac "127.0.0.3:$more/data" /mnt/c
	echo one >/mnt/c/f
	exec 3<>/mnt/c/f
	mv "$more/data/f" "$more/out"
	is read "$(head -n 1 <&3)" one
	echo two >&3
	exec 3>&-
	is "on the server" "$(tr '\n' ' ' <"$more/out")" 'one two '
	refused 'no such file' cat /mnt/c/f
	is "what is listed" "$(ls /mnt/c)" ''
	rm "$more/out"
	umount /mnt/c
}

# Withdrawn exports let go of their file system: it can be unmounted, checked,
# and is served again after a reload.
restart_unmounted() {
	local disk
	only_nvnfsd
	disk=$(findmnt -no SOURCE "$more")
	mount -t nfs -o vers=3,nolock,noac "127.0.0.3:$more/data" /mnt/c
	exec 3<>/mnt/c/f
	echo one >&3
	for export in data squash ro closed; do
		nvnfsctl unexport "$more/$export"
	done
	refused 'stale file handle' cat /mnt/c/f
	mount -o remount,ro "$more"
	umount "$more"
	fsck.ext4 -fn "$disk"
	mount "$disk" "$more"
	reload "$more/data" rw
	echo two >&3
	exec 3>&-
	is "after all" "$(tr '\n' ' ' <"$more/data/f")" 'one two '
	rm /mnt/c/f
	umount /mnt/c
}

# Who has the port already is named: here the kernel's own server.
restart_port_taken() {
	only_nvnfsd
	modprobe nfsd
	mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
	systemctl stop nvnfsd
	echo tcp 2049 >/proc/fs/nfsd/portlist
	echo 1 >/proc/fs/nfsd/threads
	refused "port 2049 is in use by the kernel's NFS server: stop it .*nfs-server" \
		timeout 60 nvnfsd --state-dir /run/other
	echo 0 >/proc/fs/nfsd/threads
	umount /proc/fs/nfsd
	systemctl start nvnfsd
}

part_restart() {
	mount_both || return
	check killed under killing
	check restarted under_with_steps restarting
	check stopped under_with_steps stopping
	check reloaded under_with_steps reloading
	check stopped-reading restart_reading
	check killed-exclusive restart_exclusive
	check soft restart_soft
	check withdrawn restart_withdrawn
	check rights-shrink restart_rights
	check moved-out restart_moved_out
	check unmounted restart_unmounted
	check port-taken restart_port_taken
}

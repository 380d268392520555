# SPDX-License-Identifier: Apache-2.0
# Who may do what: modes, groups, ACLs, sticky and setgid directories, root with
# and without squash, and quotas. Sourced by client-guest.
# shellcheck shell=bash disable=SC2154

rights_modes() {
	local d=$mnt/$name
	chmod 777 "$d"
	as_user 1001 1001 sh -c "umask 077 && echo secret >$d/own"
	is owner "$(stat -c '%u %g %a' "$work/own")" '1001 1001 600'
	is "to its owner" "$(as_user 1001 1001 cat "$d/own")" secret
	refused 'permission denied' as_user 1002 1001 cat "$d/own"
	is "to root" "$(cat "$d/own")" secret
	as_user 1001 1001 chmod 640 "$d/own"
	is "to the group" "$(as_user 1002 1001 cat "$d/own")" secret
	refused 'permission denied' as_user 1002 1001 sh -c "echo >>$d/own"
	refused 'permission denied' as_user 1002 1002 cat "$d/own"
	refused 'not permitted' as_user 1002 1001 chmod 666 "$d/own"
	refused 'not permitted|permission denied' as_user 1002 1001 touch -d yesterday "$d/own"
	is "in the 16th group" "$(setpriv --reuid 1003 --regid 1003 --groups \
		"$(seq -s , 2000 2014),1001" cat "$d/own")" secret
	mkdir -m 711 "$d/through"
	echo found >"$d/through/file"
	chmod 644 "$d/through/file"
	is "through a directory" "$(as_user 1002 1002 cat "$d/through/file")" found
	refused 'permission denied' as_user 1002 1002 ls "$d/through"
	refused 'permission denied' as_user 1002 1002 touch "$d/through/new"
}

rights_sticky() {
	local d=$mnt/$name/sticky
	mkdir "$d"
	chmod 1777 "$d"
	is mode "$(stat -c %a "$work/sticky")" 1777
	as_user 1001 1001 touch "$d/one"
	refused 'not permitted|permission denied' as_user 1002 1002 rm -f "$d/one"
	refused 'not permitted|permission denied' as_user 1002 1002 mv "$d/one" "$d/two"
	as_user 1002 1002 touch "$d/three"
	refused 'not permitted|permission denied' as_user 1002 1002 \
		mv "$d/three" "$d/one"
	as_user 1001 1001 mv "$d/one" "$d/four"
	as_user 1001 1001 rm "$d/four"
}

rights_setgid() {
	local d=$mnt/$name/shared
	mkdir "$d"
	chgrp 3000 "$d"
	chmod 2777 "$d"
	as_user 1001 1001 touch "$d/file"
	as_user 1001 1001 mkdir "$d/below"
	is "group of a file" "$(stat -c %g "$work/shared/file")" 3000
	is "of a directory" "$(stat -c %g "$work/shared/below")" 3000
	is "and its mode" "$(($(stat -c 0%a "$work/shared/below") & 02000))" 1024
	as_user 1001 1001 touch "$mnt/$name/shared/below/file"
	is "further down" "$(stat -c %g "$work/shared/below/file")" 3000
}

rights_setuid() {
	local f=$mnt/$name/f
	chmod 777 "$mnt/$name"
	as_user 1001 1001 sh -c "echo >$f; chmod 6777 $f"
	is mode "$(stat -c %a "$work/f")" 6777
	as_user 1002 1002 sh -c "echo more >>$f"
	is "mode after a stranger's write" "$(stat -c %a "$work/f")" 777
	chmod 6777 "$f"
	chown 1005:1005 "$f"
	is "mode after chown" "$(stat -c %a "$work/f")" 777
}

rights_chown_root() {
	local f=$mnt/$name/f
	echo >"$f"
	chown 1234:4321 "$f"
	is owner "$(stat -c '%u %g' "$work/f")" '1234 4321'
	chown 4294967294:4294967290 "$f"
	is "ids above 2^31" "$(stat -c '%u %g' "$mnt2/$name/f")" \
		'4294967294 4294967290'
	chown 1001:1001 "$f"
	refused 'not permitted' as_user 1001 1001 chown 1002 "$f"
	refused 'not permitted' as_user 1001 1001 chgrp 1002 "$f"
	setpriv --reuid 1001 --regid 1001 --groups 1002 chgrp 1002 "$f"
	is group "$(stat -c %g "$work/f")" 1002
}

# facl FILE: its ACL in one line, by numbers.
facl() { getfacl -ncEp "$1" | paste -sd ' ' | sed 's/ *$//'; }

rights_acl() {
	local d=$mnt/$name/d f=$mnt/$name/f want
	echo secret >"$f"
	chown 1001:1001 "$f"
	chmod 640 "$f"
	is "the mode's" "$(facl "$f")" "user::rw- group::r-- other::---"
	refused 'permission denied' as_user 1002 1002 cat "$f"
	as_user 1001 1001 setfacl -m u:1002:rw,g:3000:r "$f"
	want="user::rw- user:1002:rw- group::r-- group:3000:r-- mask::rw- other::---"
	is "set, seen here" "$(facl "$f")" "$want"
	is "and there" "$(facl "$work/f")" "$want"
	is "by the other mount" "$(facl "$mnt2/$name/f")" "$want"
	is "to the named one" "$(as_user 1002 1002 cat "$f")" secret
	is "to the named group" "$(as_user 1003 3000 cat "$f")" secret
	refused 'permission denied' as_user 1003 3000 sh -c "echo >>$f"
	refused 'permission denied' as_user 1003 1003 cat "$f"
	refused 'not permitted' as_user 1002 1002 setfacl -m u:1003:r "$f"
	cp -p "$f" "$f.copy"
	is "of a copy" "$(facl "$work/f.copy")" "$want"
	as_user 1001 1001 setfacl -b "$f"
	is "taken away" "$(facl "$work/f")" "user::rw- group::r-- other::---"
	refused 'permission denied' as_user 1002 1002 cat "$f"

	mkdir "$d"
	chmod 777 "$d"
	setfacl -m d:u::rwx,d:u:1002:rwx,d:g::rx,d:o::- "$d"
	want="user::rwx group::rwx other::rwx default:user::rwx"
	want+=" default:user:1002:rwx default:group::r-x default:mask::rwx"
	want+=" default:other::---"
	is "default" "$(facl "$work/d")" "$want"
	# The umask has no say where there is a default ACL.
	as_user 1001 1001 sh -c "umask 077; echo secret >$d/f; mkdir $d/below"
	is "inherited by a file" "$(facl "$work/d/f")" \
		"user::rw- user:1002:rwx group::r-x mask::rw- other::---"
	is "as seen here" "$(facl "$d/f")" "$(facl "$work/d/f")"
	is "to the heir" "$(as_user 1002 1002 cat "$d/f")" secret
	want="user::rwx user:1002:rwx group::r-x mask::rwx other::---"
	want+=" default:user::rwx default:user:1002:rwx default:group::r-x"
	want+=" default:mask::rwx default:other::---"
	is "and by a directory" "$(facl "$work/d/below")" "$want"
	setfacl -k "$d"
	is "no default" "$(facl "$work/d")" "user::rwx group::rwx other::rwx"
}

rights_squash() {
	local d=/mnt/c/$name
	mount -t nfs -o vers=3,nolock "localhost:$more/squash" /mnt/c
	mkdir "$d"
	echo >"$d/f"
	is "root's file" "$(stat -c '%u %g' "$more/squash/$name/f")" '65534 65534'
	refused 'not permitted' chown 1001 "$d/f"
	# Not even to itself, as the kernel's server has it.
	refused 'not permitted' chown 0:0 "$d/f"
	echo kept >"$more/squash/$name/roots"
	chmod 600 "$more/squash/$name/roots"
	refused 'permission denied' cat "$d/roots"
	refused 'not permitted|permission denied' mknod "$d/char" c 1 3
	mkfifo "$d/pipe"
	rm -r "$d"
	umount /mnt/c
}

# within WHAT IS FROM TO
within() {
	if [ "$2" -lt "$3" ] || [ "$2" -gt "$4" ]; then
		fail "$1: $2, not $3 to $4"
	fi
}

# A user who may have 3 MiB here, 1 MiB in the long run, and 4 files.
rights_quota() {
	local q=/srv/quota d=/mnt/c device left
	disk $q 1G mkfs.xfs -q
	device=$(findmnt -no SOURCE $q)
	umount $q
	mount -o uquota,gquota "$device" $q
	chmod 777 $q
	xfs_quota -x -c 'limit bsoft=1m bhard=3m ihard=4 1001' $q
	echo "$q *(rw,no_root_squash,no_subtree_check)" >>"$exports"
	reload $q rw
	mount -t nfs -o vers=3,nolock "localhost:$q" $d
	as_user 1001 1001 dd if=/dev/zero of=$d/one bs=256K count=2 status=none
	refused 'quota exceeded' as_user 1001 1001 \
		dd if=/dev/zero of=$d/two bs=1M count=4 conv=fsync
	as_user 1001 1001 sh -c "cd $d && : >three && : >four"
	refused 'quota exceeded' as_user 1001 1001 sh -c ": >$d/five"
	# Others are free, and there is room again for him.
	as_user 1001 1001 truncate -s 1M $d/two
	as_user 1002 1001 dd if=/dev/zero of=$d/six bs=1M count=5 status=none
	as_user 1001 1001 dd if=/dev/zero of=$d/one bs=1M count=1 conv=fsync \
		status=none
	# The kernel's server would need rpc.rquotad(8) for it.
	left=
	[ "$server" != nvnfsd ] ||
		left=$(as_user 1001 1001 quota -w -p -u 1001 2>&1) || true
	umount $d
	[ "$server" = nvnfsd ] || return 0

	echo "$left"
	is "quota(1), by UDP" "$(awk -v fs="localhost:$q" '$1 == fs {
		print $3, $4, $6, $7, $8 }' <<<"$left")" "1024 3072 4* 0 4"
	left=$(tool quota $q 0 1001 1001 1001)
	echo "$left"
	is "as told" "$(cut -d ' ' -f 1-5,7-9,11 <<<"$left")" \
		"1 1024 1 3072 1024 4 0 4 0"
	within "used" "$(cut -d ' ' -f 6 <<<"$left")" 2048 3072
	within "seconds of grace" "$(cut -d ' ' -f 10 <<<"$left")" 600000 604800
	is "below the export, to root" "$(tool quota $q/one 0 1001 0 0 |
		cut -d ' ' -f 1-9)" "$(cut -d ' ' -f 1-9 <<<"$left")"
	left=$(tool quota $q 1 1001 1002 1001)
	echo "$left"
	is "of the group" "$(cut -d ' ' -f 1-5,7-11 <<<"$left")" \
		"1 1024 1 0 0 0 0 5 0 0"
	within "used by it" "$(cut -d ' ' -f 6 <<<"$left")" 7168 9216
	is "a stranger's" "$(tool quota $q 0 1001 1002 1002)" 3
	is "where there are none" "$(tool quota "$data" 0 1001 1001 1001)" 2
	cp /run/exports "$exports"
	reload $q -
	umount $q
}

part_rights() {
	mount_both || return
	check modes rights_modes
	check sticky rights_sticky
	check setgid rights_setgid
	check setuid rights_setuid
	check chown-root rights_chown_root
	check acl rights_acl
	check squash rights_squash
	check quota rights_quota
}

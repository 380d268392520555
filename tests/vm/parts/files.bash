# SPDX-License-Identifier: Apache-2.0
# Names, kinds and links. Sourced by client-guest.
# ls -f lists what the server lists, in its order, and nothing twice goes unseen.
# shellcheck shell=bash disable=SC2154,SC2012,SC2164

# The tree as the server sees it and as both clients do: kind, mode, owner,
# links, size, time, target, name.
tree() {
	(cd "$1" && find . -printf '%y %m %U %G %n %s %T@ %l %p\0' | sort -z |
		sed -z 's/^d \(.* \)[0-9]* \([0-9.]* *[^ ]*\)$/d \1 \2/')
}
same_tree() {
	tree "$work" >/run/tree
	tree "$mnt/$name" | cmp - /run/tree
	tree "$mnt2/$name" | cmp - /run/tree
}

files_exclusive() {
	local m i=0
	rm -f /run/won.*
	for m in "$mnt" "$mnt" "$mnt2" "$mnt2"; do
		i=$((i + 1))
		beside tool exclusive "$m/$name" 150 >"/run/won.$i"
	done
	together
	is "names won" "$(cat /run/won.* | wc -l)" 150
	is "names won once" "$(sort -u /run/won.* | wc -l)" 150
	is files "$(find "$work" -type f | wc -l)" 150
	rm /run/won.*
}

files_rename_over_open() {
	echo old >"$mnt/$name/target"
	exec 3<"$mnt/$name/target"
	echo new >"$mnt/$name/new"
	mv -f "$mnt/$name/new" "$mnt/$name/target"
	is "the one that is open" "$(cat <&3)" old
	is "the name" "$(cat "$mnt/$name/target")" new
	exec 3<&-
	is left "$(ls -A "$work")" target
	# By the other client: nothing keeps it then, but what it says is ESTALE.
	exec 3<"$mnt/$name/target"
	echo newer >"$mnt2/$name/new"
	mv -f "$mnt2/$name/new" "$mnt2/$name/target"
	is "the name" "$(cat "$mnt2/$name/target")" newer
	exec 3<&-
	is "the name, opened again" "$(cat "$mnt/$name/target")" newer
}

files_silly_rename() {
	echo kept >"$mnt/$name/f"
	exec 3<>"$mnt/$name/f"
	rm "$mnt/$name/f"
	is "silly names" "$(find "$work" -name '.nfs*' | wc -l)" 1
	is "what is open" "$(head -n 1 <&3)" kept
	echo more >&3
	exec 3>&-
	is left "$(ls -A "$work")" ''
}

# It is gone on the server while a client has it open.
files_stale() {
	echo gone >"$mnt/$name/f"
	exec 3<"$mnt/$name/f"
	rm "$work/f"
	echo 3 >/proc/sys/vm/drop_caches
	refused 'stale file handle' cat /dev/fd/3
	exec 3<&-
	refused 'no such file' cat "$mnt/$name/f"
}

files_names() {
	tool names "$mnt/$name" "$mnt2/$name" "$work"
	same_tree
	refused 'name too long' touch "$mnt/$name/$(printf 'x%.0s' {1..256})"
}

files_deep() {
	local i path=$mnt/$name
	# Longer than a path may be in one call.
	cd "$path"
	for ((i = 0; i < 30; i++)); do
		mkdir "$(printf "d%.0s" {1..200})"
		cd "$(printf "d%.0s" {1..200})"
	done
	echo deep >file
	cd /
	is found "$(find "$mnt2/$name" -name file | wc -l)" 1
	rm -r "${path:?}"/*
	is left "$(ls -A "$work")" ''
}

files_kinds() {
	local d=$mnt/$name
	mknod "$d/char" c 259 70000
	mknod "$d/block" b 511 262143 # all that XFS takes
	mknod "$d/pipe" p
	tool socket "$d/socket"
	ln -s "$(printf 'y%.0s' {1..1000})" "$d/long"
	ln -s 'to nowhere' "$d/symlink"
	mkdir -m 1755 "$d/directory"
	: >"$d/file"
	is char "$(stat -c '%F %t %T' "$work/char")" \
		'character special file 103 11170'
	is block "$(stat -c '%F %t %T' "$work/block")" \
		'block special file 1ff 3ffff'
	is pipe "$(stat -c %F "$work/pipe")" fifo
	is socket "$(stat -c %F "$work/socket")" socket
	(cd "$d" && stat -c '%n %F %t %T %a' -- *) >/run/here
	(cd "$work" && stat -c '%n %F %t %T %a' -- *) | cmp - /run/here
	(cd "$mnt2/$name" && stat -c '%n %F %t %T %a' -- *) | cmp - /run/here
	same_tree
	# A pipe works among the processes of one client.
	beside sh -c "echo through >'$d/pipe'"
	is "through the pipe" "$(cat "$d/pipe")" through
	together
}

files_links() {
	: >"$mnt/$name/f"
	tool links "$mnt/$name" 10000
	is links "$(stat -c %h "$mnt2/$name/f")" 10001
	is links "$(stat -c %h "$work/f")" 10001
	is names "$(ls -f "$mnt2/$name" | wc -l)" 10003
	is inodes "$(find "$mnt/$name" -type f -printf '%i\n' | sort -u | wc -l)" 1
	rm -r "${mnt:?}/$name"/link*
	is links "$(stat -c %h "$work/f")" 1
}

files_times() {
	local d=$mnt/$name
	echo >"$d/f"
	touch -d '1999-12-31 23:59:59.123456789' "$d/f"
	is mtime "$(stat -c %y "$mnt2/$name/f")" \
		"$(stat -c %y "$work/f")"
	is nanoseconds "$(date -r "$work/f" +%s.%N)" \
		"$(date -d '1999-12-31 23:59:59' +%s).123456789"
	touch -a -d '2037-01-01 00:00:01.5' "$d/f"
	is atime "$(stat -c %X "$work/f")" "$(date -d '2037-01-01 00:00:01' +%s)"
	is "mtime as before" "$(stat -c %Y "$work/f")" \
		"$(date -d '1999-12-31 23:59:59' +%s)"
	touch "$d/f"
	[ $(($(date +%s) - $(stat -c %Y "$work/f"))) -lt 60 ] ||
		fail "now is not now"
}

files_many() {
	tool many "$mnt/$name" 5000
	is "names here" "$(ls -f "$mnt/$name" | sort | uniq -c | awk '$1 == 1' | wc -l)" 5002
	is "names there" "$(ls -f "$mnt2/$name" | wc -l)" 5002
	ls -l "$mnt2/$name" | awk 'NR > 1 {print $9}' | sort >/run/listed
	(cd "$work" && find . -type f -printf '%P\n' | sort) | cmp - /run/listed
	# While half of them go.
	beside rm "$mnt/$name"/*[02468]
	ls -f "$mnt2/$name" | sort | uniq -d >/run/twice
	together
	is "names twice" "$(cat /run/twice)" ''
	is left "$(find "$work" -type f | wc -l)" 2500
	rm -r "${mnt:?}/$name"
	[ ! -e "$work" ] || fail "still there"
}

files_directories() {
	local d=$mnt/$name
	mkdir -p "$d/a/b/c" "$d/x"
	is "links of a" "$(stat -c %h "$d/a")" 3
	refused 'not empty' rmdir "$d/a"
	refused 'file exists' mkdir "$d/a"
	mv "$d/a/b" "$d/x/moved"
	[ -d "$work/x/moved/c" ] || fail "not moved"
	is "links of a" "$(stat -c %h "$mnt2/$name/a")" 2
	refused 'subdirectory of itself' mv "$d/x" "$d/x/moved/c/x"
	: >"$d/file"
	refused 'not a directory|cannot overwrite' mv -T "$d/x" "$d/file"
	refused 'directory' mv -T "$d/file" "$d/x"
	mkdir "$d/empty"
	mv -T "$d/x" "$d/empty"
	[ -d "$work/empty/moved/c" ] || fail "not over the empty one"
	rm -r "$d/a" "$d/empty" "$d/file"
	is left "$(ls -A "$work")" ''
}

files_execute() {
	cp /bin/true "$mnt/$name/true"
	"$mnt/$name/true"
	"$mnt2/$name/true"
	printf '#!/bin/sh\necho ran\n' >"$mnt/$name/script"
	chmod +x "$mnt/$name/script"
	is script "$("$mnt2/$name/script")" ran
}

files_stress() { python3 "$here/stress.py" "$mnt/$name" "$work" 2000; }

part_files() {
	mount_both || return
	check exclusive files_exclusive
	check rename-over-open files_rename_over_open
	check silly-rename files_silly_rename
	check stale files_stale
	check names files_names
	check deep files_deep
	check kinds files_kinds
	check hard-links files_links
	check times files_times
	check many-files files_many
	check directories files_directories
	check execute files_execute
	check stress files_stress
}

# shellcheck shell=sh
# What node-run has to itself: regular files, a temporary folder, and the node while it measures.

# not_ours PATH...: prints the first of these that is there and no regular file: to write it could harm what is not ours
not_ours() {
    for path in "$@"; do
        if [ -L "$path" ] || { [ -e "$path" ] && [ ! -f "$path" ]; }; then
            printf '%s' "$path"
            return
        fi
    done
    return 1
}

# too_large PATH...: prints the first of these lists that has more than 4 MiB, as readers refuse it, too: awk would take it
# into its memory, one line of zeros as long as a sparse file is
too_large() {
    for path in "$@"; do
        if [ -n "$(find "$path" -prune -type f -size +8192 2>/dev/null)" ]; then
            printf '%s' "$path"
            return
        fi
    done
    return 1
}

# linked PATH...: prints the first of these folders that is a symbolic link: what is written there comes to whom it belongs
linked() {
    for path in "$@"; do
        if [ -L "$path" ]; then
            printf '%s' "$path"
            return
        fi
    done
    return 1
}

# own_folder: makes $tmp, which this process alone has. Whoever holds the lock of a folder is at work in it, also in
# another container that has this /tmp; the folder of a node-run that was killed goes with the next one. A new folder
# gets its name when it is locked.
own_folder() {
    set +f
    for left in "${TMPDIR:-/tmp}/node-run.$host".* "/dev/shm/node-run.$host".*; do
        [ -O "$left" ] && [ -f "$left/lock" ] && flock -n "$left/lock" true 2>/dev/null && rm -rf "$left"
    done
    set -f
    new=$(mktemp -d "${TMPDIR:-/tmp}/.node-run.XXXXXX" 2>/dev/null || mktemp -d /dev/shm/.node-run.XXXXXX 2>/dev/null) || {
        say "no temporary folder can be made in ${TMPDIR:-/tmp} or /dev/shm; set TMPDIR to a folder on a local disk"
        return 1
    }
    exec 8>"$new/lock"
    ! have flock || flock -n 8
    tmp=${new%/*}/node-run.$host.${new##*.}
    mv "$new" "$tmp"
}

# take_lock: waits until this node is ours, naming who has it; fails with a sentence where it cannot be locked
take_lock() {
    have flock || {
        printf 'flock is not installed; install util-linux'
        return 1
    }
    have cksum || {
        printf 'cksum is not installed; install coreutils'
        return 1
    }
    have setsid || {
        printf 'setsid is not installed; install util-linux'
        return 1
    }
    waited=0
    while ! refusal=$(flock -n 9 2>&1); do
        [ -z "$refusal" ] || {
            printf '%s: cannot be locked (%s); the campaign must be on a file system with flock' "$lock" "$refusal"
            return 1
        }
        if [ $((waited % 30)) -eq 0 ]; then
            holder='' holder_pid=''
            IFS=$TAB read -r _ holder_pid holder_node holder_since <"$lock" 2>/dev/null && holder=yes
            if [ -z "$holder" ]; then
                say "waiting: another node-run measures $host"
            elif [ -d "/proc/$holder_pid" ]; then
                say "waiting: $host is measured by process $holder_pid (node $holder_node) since $holder_since"
            else
                say "waiting: node-run $holder_pid (node $holder_node, since $holder_since) is gone, but its kernel still runs on $host"
            fi
        fi
        sleep 1
        waited=$((waited + 1))
    done
    printf '%s\t%s\t%s\t%s\n' "$host" "$$" "$node" "$(now)" 2>/dev/null >"$lock"
    return 0
}

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

# doubled PATH...: prints the first of these files that has another name (a hard link): what is appended would change a
# file that lies elsewhere
doubled() {
    for path in "$@"; do
        if [ -n "$(find "$path" -prune -type f -links +1 2>/dev/null)" ]; then
            printf '%s' "$path"
            return
        fi
    done
    return 1
}

# anew FILE COMMAND...: what the command prints becomes FILE, which is new: nothing that lay there is followed or changed
anew() {
    new=$1
    shift
    rm -f "$new" && (set -C && "$@" >"$new")
}

# append_to FD PATH: makes FD a descriptor that appends to a file of the campaign; fails where that is no regular file
# with one name. What was opened is asked of the descriptor, as a name may be another file a moment later.
append_to() {
    [ -e "$2" ] || (set -C && : >"$2") 2>/dev/null
    [ -r "$2" ] || return 1
    eval "exec $1<\"\$2\""
    # shellcheck disable=SC2046 # mode and number of links
    set -- "$1" "$2" $(ls -lnL "/proc/self/fd/$1")
    case $3 in
    -*) [ "$4" = 1 ] && [ "$(readlink "/proc/self/fd/$1")" = "$(cd -P "$campaign" && pwd -P)${2#"$campaign"}" ] ;;
    *) false ;;
    esac && [ -w "/proc/self/fd/$1" ] && eval "exec $1>>/proc/self/fd/$1"
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

# places: folders for temporary files in which no other user but root can rename or replace what we make, without links in
# their paths
places() (
    for place in "${TMPDIR:-/tmp}" /tmp /dev/shm; do
        place=$(cd -P "$place" 2>/dev/null && pwd -P) || continue
        if path=$(exposed "$place" strictly); then
            say "$path: other users may replace what lies there, so that no temporary files are made in $place"
        else
            printf '%s\n' "$place"
        fi
    done
)

# own_folder: makes $tmp, which this process alone has, by the name that mktemp found free: it is never renamed, as
# somebody might wait for it under the other name. Whoever holds the lock of a folder is at work in it, also in another
# container that has this /tmp; the folder of a node-run that was killed goes with the next one. The lock gets its name
# when it is held.
own_folder() {
    places=$(places)
    printf '%s\n' "$places" | while read -r place; do remove_left "$place"; done
    tmp=$(printf '%s\n' "$places" | while read -r place; do ! mktemp -d "$place/node-run.$host.XXXXXX" 2>/dev/null || break; done)
    [ -n "$tmp" ] || {
        say "no temporary directory can be made in ${TMPDIR:-/tmp}, /tmp or /dev/shm; set TMPDIR to a directory of your own on a local disk"
        return 1
    }
    exec 8>"$tmp/new"
    ! have flock || flock -n 8
    mv "$tmp/new" "$tmp/lock"
    export TMPDIR="$tmp" # of what we start, too
}

# remove_left PLACE: what killed ones have left there
remove_left() (
    set +f
    for left in "$1/node-run.$host".*; do
        [ ! -L "$left" ] && [ -O "$left" ] && [ -f "$left/lock" ] && flock -n "$left/lock" true 2>/dev/null && rm -rf "$left"
    done
)

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
    printf '%s\t%s\t%s\t%s\n' "$host" "$$" "$node" "$(now)" 2>/dev/null >/proc/self/fd/9
    return 0
}

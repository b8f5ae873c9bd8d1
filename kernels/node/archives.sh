# shellcheck shell=sh
# A complete run is one archive. It gets its name when it is whole, and the record files go after that: at any moment
# all is there at least once.

# within_limit COMMAND...: no file that it writes is larger than what readers take (256 MiB in blocks of 512 bytes), so
# that a file somebody has put here does not fill the node's disk
within_limit() (ulimit -f 524288 && exec "$@")

# has_records: whether a former attempt has left records, whole or begun
has_records() (
    set +f
    [ -z "$(archives)" ] || return 0
    for records in "$folder"/run*/*.jsonl "$folder"/run*/*.jsonl.gz; do
        [ ! -s "$records" ] || return 0
    done
    return 1
)

archives() (
    set +f
    for archive in "$folder"/run*.tar.gz "$folder"/run*.tar.xz "$folder"/run*.tar.zst; do
        [ ! -f "$archive" ] || [ -L "$archive" ] || echo "${archive##*/}"
    done
)
run_of() { printf '%s' "${1%%.*}" | cut -c 4-; }
measurements_of() { awk -F '\t' -v run="$1" '$1 == run { print $2 }' "$tmp/steps.tsv"; }

# noted_as_packed ARCHIVE...: run and name of what is in these archives, by the notes
noted_as_packed() {
    for archive in "$@"; do
        awk -F '\t' -v OFS='\t' -v run="$(run_of "$archive")" '$1 == run && $3 == "done" { print $1, $2 }' "$folder/outcomes.tsv" 2>/dev/null
    done
}

# compressor SUFFIX: the command that makes archives of this kind; both of the first take half the bytes of gzip, and
# zstd is unpacked ten times as fast as xz
compressor() {
    case $1 in
    zst) echo 'zstd -q -15' ;;
    xz) echo 'xz -T0 --block-size=2MiB' ;;
    gz) echo gzip ;;
    esac
}

# pack RUN: makes an archive of its record files where all are there that are to be had on this node
pack() {
    files=
    for name in $(measurements_of "$1"); do
        if [ -f "run$1/$name.jsonl.gz" ]; then files="$files run$1/$name.jsonl.gz"
        elif [ "$(last_outcome "$1" "$name")" != unavailable ]; then return 0
        fi
    done
    [ -n "$files" ] || return 0
    for suffix in zst xz gz; do
        compress=$(compressor $suffix)
        ! $compress -c </dev/null >/dev/null 2>&1 || break # busybox has an xz that only unpacks
    done
    archive=run$1.tar.$suffix
    if path=$(not_ours "$archive" "$archive.tmp"); then
        say "$path: is no regular file, and only those are replaced; remove it, then run again to pack the record files of run $1"
        return
    fi
    mkdir -p "$tmp/pack/run$1"
    if write_archive 2>/dev/null; then
        count_as_packed "$1"
    else
        rm -f "$archive.tmp"
        say "$archive: cannot be written; the record files of run $1 stay as they are"
    fi
    rm -rf "$tmp/pack"
}
write_archive() {
    set --
    for file in $files; do
        within_limit gzip -cd "$file" >"$tmp/pack/${file%.gz}" || return
        set -- "$@" "${file%.gz}"
    done
    tar -C "$tmp/pack" -cf "$tmp/pack/tar" "$@" || return
    # shellcheck disable=SC2086 # a command of words
    anew "$archive.tmp" $compress -c "$tmp/pack/tar" && $compress -t "$archive.tmp" || return
    sync "$archive.tmp"
    mv -f "$archive.tmp" "$archive"
}

# count_as_packed RUN: all of it is in its archive
count_as_packed() {
    for name in $(measurements_of "$1"); do
        [ -f "$tmp/pack/run$1/$name.jsonl" ] || continue
        printf '%s\t%s\n' "$1" "$name" >>"$tmp/packed.tsv"
        rm -f "run$1/$name.jsonl" "run$1/$name.jsonl.gz" "run$1/$name.jsonl.gz.tmp"
    done
    rmdir "run$1" 2>/dev/null # files that are kept as .bad stay
}

# open_archives: looks into those of a former attempt. One that is damaged, or lacks a measurement that its run has now,
# is taken apart: what is whole in it becomes record files again.
open_archives() {
    : >"$tmp/packed.tsv"
    for archive in $(archives); do
        run=$(run_of "$archive") whole=yes all=yes
        compress=$(compressor "${archive##*.}")
        if ! have "${compress%% *}"; then
            say "$archive: ${compress%% *} is not installed any more, so it cannot be checked"
            noted_as_packed "$archive" >>"$tmp/packed.tsv"
            continue
        fi
        mkdir -p "$tmp/pack"
        within_limit "${compress%% *}" -dc "$archive" >"$tmp/pack/tar" 2>/dev/null || whole=no
        within_limit tar -C "$tmp/pack" -xf "$tmp/pack/tar" 2>/dev/null || whole=no
        for name in $(measurements_of "$run"); do
            [ -f "$tmp/pack/run$run/$name.jsonl" ] || all=no
        done
        if [ "$whole $all" = 'yes yes' ]; then
            count_as_packed "$run"
        elif ! take_apart "$run"; then
            say "run$run: $archive cannot be unpacked there; check permissions, quota and free space, then run again"
        elif [ $whole = yes ]; then
            rm -f "$archive"
        else
            set_aside "$archive" 'what it lacks is measured again'
        fi
        rm -rf "$tmp/pack"
    done
}

# take_apart RUN: the records of an archive, unpacked in $tmp/pack, become files again; of a damaged one those with a
# trailer
take_apart() {
    for name in $(measurements_of "$1"); do
        file=$tmp/pack/run$1/$name.jsonl out=run$1/$name.jsonl.gz
        [ -f "$file" ] || continue
        [ $whole = yes ] || is_ended "$file" || continue
        { mkdir -p "run$1" && anew "$out.tmp" gzip -c "$file" && mv -f "$out.tmp" "$out"; } 2>/dev/null || return
    done
}

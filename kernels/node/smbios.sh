# shellcheck shell=sh
# Memory modules by the firmware's own tables, where dmidecode is not installed.

# smbios_modules: of the tables on standard input (/sys/firmware/dmi/tables/DMI, which root may read) the slots for memory
# modules, in the lines that dmidecode prints of them. DSP0134, System Management BIOS, 7.18: of a structure the first byte
# is its type and the second its length, and its strings follow, each ended by a 0 and all of them by another.
smbios_modules() {
    od -An -v -tu1 | LC_ALL=C awk '
    function word(at) { return byte[at] + 256 * byte[at + 1] }
    function long(at) { return word(at) + 65536 * word(at + 2) }
    function has(at, bytes) { return at + bytes <= start + size }
    function told(name, at,   number) {
        number = has(start + at, 1) ? byte[start + at] : 0
        printf "\t%s: %s\n", name, (number > 0 && number <= strings ? text[number] : "Not Specified")
    }
    function speed(name, at, more,   mts) {
        mts = has(start + at, 2) ? word(start + at) : 0
        if (mts == 65535) mts = has(start + more, 4) ? long(start + more) : 0
        printf "\t%s: %s\n", name, (mts > 0 ? mts " MT/s" : "Unknown")
    }
    function capacity(   mib) {
        mib = word(start + 12)
        if (mib == 0) return "No Module Installed"
        if (mib == 65535) return "Unknown"
        if (mib == 32767 && has(start + 28, 4)) mib = long(start + 28)
        else if (mib >= 32768) return mib - 32768 " kB"
        return mib % 1024 == 0 ? mib / 1024 " GB" : mib " MB"
    }
    BEGIN {
        split("18:DDR 19:DDR2 24:DDR3 26:DDR4 27:LPDDR 28:LPDDR2 29:LPDDR3 30:LPDDR4 32:HBM 33:HBM2 34:DDR5 35:LPDDR5 36:HBM3", kinds, " ")
        for (i in kinds) { split(kinds[i], pair, ":"); kind[pair[1]] = pair[2] }
        kind[31] = "Logical non-volatile device"
        for (i = 32; i < 127; i++) letter[i] = sprintf("%c", i)
    }
    { for (i = 1; i <= NF; i++) byte[total++] = $i }
    END {
        for (start = 0; start + 4 <= total; start = end) {
            type = byte[start]
            size = byte[start + 1]
            if (size < 4) break
            strings = 0
            # the "" because awk of BusyBox 1.30 takes a name before a bracket for a function
            for (end = start + size; end < total && byte[end] != 0; end++) {
                for (line = ""; end < total && byte[end] != 0; end++) line = line "" (byte[end] in letter ? letter[byte[end]] : ".")
                text[++strings] = line
            }
            end += strings > 0 ? 1 : 2
            if (type == 127) break
            if (type != 17 || size < 21) continue
            printf "Handle 0x%04X, DMI type 17, %d bytes\nMemory Device\n", word(start + 2), size
            printf "\tSize: %s\n", capacity()
            told("Locator", 16)
            told("Bank Locator", 17)
            printf "\tType: %s\n", (byte[start + 18] in kind ? kind[byte[start + 18]] : "Unknown")
            speed("Speed", 21, 84)
            told("Manufacturer", 23)
            told("Serial Number", 24)
            told("Part Number", 26)
            speed("Configured Memory Speed", 32, 88)
            printf "\n"
        }
    }'
}

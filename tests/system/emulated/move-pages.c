/* move-pages PID FROM TO: moves all pages of a process from one NUMA node to another, as an administrator's tool would. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    unsigned long from = 1ul << atoi(argv[2]), to = 1ul << atoi(argv[3]);
    long left = syscall(SYS_migrate_pages, atoi(argv[1]), 8 * sizeof from, &from, &to);
    if (left < 0) perror("migrate_pages");
    printf("moved, %ld pages stayed\n", left);
    return left < 0;
}

/* A ping-pong as anybody would write it in C, for bench/linktest.py: argv is
 * bytes, warm-up, samples, messages a sample; prints the lower quartile of half
 * a round trip in ns. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  int rank, bytes, warm_up, samples, messages;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc != 7)
    return 2;
  bytes = atoi(argv[1]), warm_up = atoi(argv[2]), samples = atoi(argv[3]),
  messages = atoi(argv[4]);
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET((size_t)atoi(argv[5 + rank]), &mine);
  if (sched_setaffinity(0, sizeof mine, &mine) != 0)
    return 3;
  void *send = NULL, *receive = NULL;
  double *times = malloc((size_t)samples * sizeof *times);
  if (times == NULL || posix_memalign(&send, 4096, (size_t)bytes + 4096) != 0 ||
      posix_memalign(&receive, 4096, (size_t)bytes + 4096) != 0)
    return 3;
  memset(send, 1, (size_t)bytes);
  memset(receive, 1, (size_t)bytes);
  for (int i = -1; i < samples; i++) {
    int count = i < 0 ? warm_up : messages;
    double start = MPI_Wtime();
    for (int k = 0; k < count; k++) {
      if (rank == 0) {
        MPI_Send(send, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(receive, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(receive, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        MPI_Send(send, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
      }
    }
    if (i >= 0)
      times[i] = (MPI_Wtime() - start) * 1e9 / 2 / messages;
  }
  qsort(times, (size_t)samples, sizeof *times, by_size);
  if (rank == 0)
    printf("%.1f\n", times[samples / 4]);
  return MPI_Finalize();
}

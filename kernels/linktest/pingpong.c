/* The timed part of LinkTest, a library: messages between two ranks of a communicator that mpi4py has made. Nothing of
 * Python runs between two readings of the clock; mpi4py's own 1 to 2 us a message would be shown as the machine's. */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

enum mode { SEMIDIRECTIONAL, BIDIRECTIONAL, UNIDIRECTIONAL };
enum { MESSAGE = 1, COUNT = 2, MOST_MESSAGES = 1 << 20 };

/* A pair as both of its ranks see it; timed.py has the same in ctypes. */
struct link_pair {
    int mode, first; /* `first`: this rank starts, and its clock is read */
    int partner;     /* the other's rank */
    int bytes, warm_up, samples;
    int messages;            /* of a sample; 0: as many as take `batch_ns`; the number taken is left here */
    int together;            /* all ranks of the communicator begin at once */
    double batch_ns;         /* how long a sample must last for the clock's steps not to be seen */
    double took_ns, lost_ns; /* of all samples, left here: how long they took, and how long this rank did not run
                              * meanwhile; both 0 where it slept, which nobody took from it */
    void *send, *receive;
};

int link_measure(void *communicator, struct link_pair *pair, double *sample_ns);
int link_setting(const char *name, char *word, int length);
const char *link_compiled_for(void);
const char *link_compiler(void);

static int64_t now_ns(void) {
    struct timespec time;
    if (clock_gettime(CLOCK_MONOTONIC, &time) != 0) return 0;
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* What this thread has had of its CPU. */
struct had {
    int64_t at_ns, ran_ns;
    long slept;
};

static struct had had_now(void) {
    struct timespec ran;
    struct rusage usage;
    struct had had = {.at_ns = now_ns()};
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran) == 0) had.ran_ns = (int64_t)ran.tv_sec * 1000000000 + ran.tv_nsec;
    if (getrusage(RUSAGE_THREAD, &usage) == 0) had.slept = usage.ru_nvcsw;
    return had;
}

static void set_lost(struct link_pair *pair, const struct had *before) {
    struct had after = had_now();
    pair->took_ns = pair->lost_ns = 0;
    if (after.slept != before->slept) return;
    pair->took_ns = (double)(after.at_ns - before->at_ns);
    double lost_ns = pair->took_ns - (double)(after.ran_ns - before->ran_ns);
    if (lost_ns > 0) pair->lost_ns = lost_ns;
}

static int send_to(const struct link_pair *pair, MPI_Comm comm) {
    return MPI_Send(pair->send, pair->bytes, MPI_BYTE, pair->partner, MESSAGE, comm);
}

static int receive_from(const struct link_pair *pair, MPI_Comm comm) {
    return MPI_Recv(pair->receive, pair->bytes, MPI_BYTE, pair->partner, MESSAGE, comm, MPI_STATUS_IGNORE);
}

/* `count` messages to and fro. */
static int ping_pong(const struct link_pair *pair, int count, MPI_Comm comm) {
    int error = MPI_SUCCESS;
    for (int i = 0; i < count && error == MPI_SUCCESS; i++) {
        error = pair->first ? send_to(pair, comm) : receive_from(pair, comm);
        if (error == MPI_SUCCESS) error = pair->first ? receive_from(pair, comm) : send_to(pair, comm);
    }
    return error;
}

/* `count` messages in both directions at once. */
static int exchange(const struct link_pair *pair, int count, MPI_Comm comm) {
    int error = MPI_SUCCESS;
    for (int i = 0; i < count && error == MPI_SUCCESS; i++)
        error = MPI_Sendrecv(pair->send, pair->bytes, MPI_BYTE, pair->partner, MESSAGE, pair->receive, pair->bytes,
                             MPI_BYTE, pair->partner, MESSAGE, comm, MPI_STATUS_IGNORE);
    return error;
}

/* `count` messages one after another from the first rank, and an empty one back when all have arrived. */
static int stream(const struct link_pair *pair, int count, MPI_Comm comm) {
    int error = MPI_SUCCESS;
    for (int i = 0; i < count && error == MPI_SUCCESS; i++)
        error = pair->first ? send_to(pair, comm) : receive_from(pair, comm);
    if (error != MPI_SUCCESS) return error;
    if (pair->first) return MPI_Recv(NULL, 0, MPI_BYTE, pair->partner, MESSAGE, comm, MPI_STATUS_IGNORE);
    return MPI_Send(NULL, 0, MPI_BYTE, pair->partner, MESSAGE, comm);
}

static int batch(const struct link_pair *pair, int count, MPI_Comm comm) {
    if (pair->mode == SEMIDIRECTIONAL) return ping_pong(pair, count, comm);
    return pair->mode == BIDIRECTIONAL ? exchange(pair, count, comm) : stream(pair, count, comm);
}

/* How many messages a sample has, agreed by both ranks: doubled until a sample lasts long enough. */
static int agree_on_messages(struct link_pair *pair, MPI_Comm comm) {
    int count = pair->messages > 0 ? pair->messages : 1;
    for (int last = pair->messages > 0; !last;) {
        int64_t start = now_ns();
        int error = batch(pair, count, comm);
        if (error != MPI_SUCCESS) return error;
        int next[2] = {count, 1};
        double took = (double)(now_ns() - start);
        if (pair->first && took < pair->batch_ns && count < MOST_MESSAGES) next[0] = 2 * count, next[1] = 0;
        error = pair->first ? MPI_Send(next, 2, MPI_INT, pair->partner, COUNT, comm)
                            : MPI_Recv(next, 2, MPI_INT, pair->partner, COUNT, comm, MPI_STATUS_IGNORE);
        if (error != MPI_SUCCESS) return error;
        count = next[0];
        last = next[1];
    }
    pair->messages = count;
    return MPI_SUCCESS;
}

/* Measures this rank's part of a pair. `sample_ns` (samples) is each sample's time of one message, on the first rank.
 * Returns MPI's error code. */
int link_measure(void *communicator, struct link_pair *pair, double *sample_ns) {
    MPI_Comm comm = *(MPI_Comm *)communicator;
    if (pair->together) {
        int error = MPI_Barrier(comm);
        if (error != MPI_SUCCESS || pair->partner < 0) return error; /* it rests in this round */
    }
    int error = batch(pair, pair->warm_up, comm);
    if (error == MPI_SUCCESS) error = agree_on_messages(pair, comm);
    double ways = pair->mode == SEMIDIRECTIONAL ? 2 : 1;
    struct had before = had_now();
    for (int i = 0; i < pair->samples && error == MPI_SUCCESS; i++) {
        int64_t start = now_ns();
        error = batch(pair, pair->messages, comm);
        sample_ns[i] = (double)(now_ns() - start) / ways / pair->messages;
    }
    set_lost(pair, &before);
    return error;
}

/* The word that a setting of the MPI library has now, by its name (MPI_T); not 0 where it has none. */
int link_setting(const char *name, char *word, int length) {
    int provided, index, count, value, error;
    MPI_T_cvar_handle handle;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return -1;
    error = MPI_T_cvar_get_index(name, &index);
    if (error == MPI_SUCCESS) error = MPI_T_cvar_handle_alloc(index, NULL, &handle, &count);
    if (error == MPI_SUCCESS) {
        int name_length = 0, description_length = 0, verbosity, bind, scope;
        MPI_Datatype type;
        MPI_T_enum words = MPI_T_ENUM_NULL;
        error = MPI_T_cvar_get_info(index, NULL, &name_length, &verbosity, &type, &words, NULL, &description_length,
                                    &bind, &scope);
        if (error == MPI_SUCCESS) error = count == 1 && words != MPI_T_ENUM_NULL ? MPI_T_cvar_read(handle, &value) : -1;
        for (int i = 0, number = 0; error == MPI_SUCCESS; i++) { /* ends with an error where no item has the value */
            int room = length;
            error = MPI_T_enum_get_item(words, i, &number, word, &room);
            if (error == MPI_SUCCESS && number == value) break;
        }
        if (MPI_T_cvar_handle_free(&handle) != MPI_SUCCESS) error = -1;
    }
    if (MPI_T_finalize() != MPI_SUCCESS) error = -1;
    return error == MPI_SUCCESS ? 0 : -1;
}

/* The MPI that this was compiled for, as the beginning of what MPI_Get_library_version says. */
const char *link_compiled_for(void) {
#ifdef OMPI_MAJOR_VERSION
    return "Open MPI";
#else
    return "another MPI";
#endif
}

const char *link_compiler(void) {
    return COMPILER;
}

/* A probe of the core's clock by a clock that stands still for 100 us and loses time to an interruption, as an emulator's
 * does: the calibration ends early then, and a probe of its length takes no time. Linked with --wrap=clock_gettime. */
#include <math.h>
#include <time.h>

#include "harness/frequency.h"
#include "tests/check.h"

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

static unsigned readings;

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
    enum { STEP_NS = 100000, INTERRUPTED = 10 }; /* 8 readings are of the clock itself */
    int result = __real_clock_gettime(clock, now);
    now->tv_nsec = now->tv_nsec / STEP_NS * STEP_NS;
    if (++readings >= INTERRUPTED) now->tv_sec++;
    return result;
}

int main(void) {
    for (int i = 0; i < 20; i++) {
        readings = 0;
        double hz = core_hz(1, 2000);
        CHECK(isfinite(hz) && hz > 0);
    }
    return failures > 0;
}

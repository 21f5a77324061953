/* spt_delay: an artificial delay for synthetic-perturbation tuning, in C and C++.
 *
 * Put, at every place that might be a bottleneck,
 *
 *     #ifdef F1
 *       spt_delay(SPT_DELAY);
 *     #endif
 *
 * and build with -DF1 -DSPT_DELAY=100 to delay that place. The delay is out of line, touches no memory, cannot be
 * removed by the compiler, and is fenced, so that the processor cannot hide it behind other work. Without a fence
 * a short delay costs less than half of what it should (measured: 7 ns asked for, 3 ns added).
 *
 * The unit is one floating-point multiplication that waits for the one before; Phasewright tells how long it takes.
 * Calibrate: cc -O2 -DSPT_CALIBRATE -x c spt_delay.h -o calibrate && ./calibrate
 */
#ifndef SPT_DELAY_H
#define SPT_DELAY_H

#ifndef SPT_DELAY
#define SPT_DELAY 100
#endif

#if defined(__GNUC__) || defined(__clang__)
#define SPT_NOINLINE __attribute__((noinline, unused))
#if defined(__x86_64__) || defined(__i386__)
#define SPT_FENCE() __asm__ __volatile__("lfence" ::: "memory")
#elif defined(__aarch64__)
#define SPT_FENCE() __asm__ __volatile__("isb" ::: "memory")
#elif defined(__powerpc__) || defined(__powerpc64__)
#define SPT_FENCE() __asm__ __volatile__("isync" ::: "memory")
#elif defined(__riscv)
#define SPT_FENCE() __asm__ __volatile__("fence.i" ::: "memory")
#else
#define SPT_FENCE() __sync_synchronize()
#endif
/* The product is used, as far as the compiler knows, so that no multiplication can be left out. */
#if defined(__x86_64__)
#define SPT_KEEP(x) __asm__ __volatile__("" : "+x"(x))
#elif defined(__aarch64__)
#define SPT_KEEP(x) __asm__ __volatile__("" : "+w"(x))
#elif defined(__powerpc__) || defined(__powerpc64__)
#define SPT_KEEP(x) __asm__ __volatile__("" : "+d"(x))
#elif defined(__riscv_flen)
#define SPT_KEEP(x) __asm__ __volatile__("" : "+f"(x))
#else
#define SPT_KEEP(x) __asm__ __volatile__("" : "+m"(x))
#endif
#else
#define SPT_NOINLINE
#define SPT_FENCE()
#define SPT_KEEP(x) (*(volatile double *)&(x) = (x))
#endif

static SPT_NOINLINE void spt_delay(unsigned long units)
{
    double x = 1.0;
    SPT_FENCE();
    for (; units; units--) {
        x *= 1.0000000001;
        SPT_KEEP(x);
    }
    SPT_FENCE();
}

#ifdef SPT_CALIBRATE
#include <stdio.h>
#include <time.h>

static double spt_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Calls of 0.1 ms: on a busy machine some of them are interrupted by nothing. */
int main(void)
{
    double best = 1e9;
    int i;
    for (i = 0; i < 4000; i++) {
        double begin = spt_seconds(), took;
        spt_delay(100000UL);
        took = spt_seconds() - begin;
        if (took < best)
            best = took;
    }
    printf("SPT unit_ns=%.4f\n", best / 100000.0 * 1e9);
    return 0;
}
#endif
#endif

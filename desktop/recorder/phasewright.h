/* Regions of a program's own, for `phasewright record`. Nothing has to be linked: without the recorder they do nothing.
 *
 *     phasewright_region("solve");               to the end of the block, in C (GCC, Clang) and C++
 *     phasewright_begin("solve"); ... phasewright_end("solve");
 */
#ifndef PHASEWRIGHT_H
#define PHASEWRIGHT_H

#ifdef __cplusplus
extern "C" {
#endif
extern void phasewright_enter(const char *name) __attribute__((weak));
extern void phasewright_leave(const char *name) __attribute__((weak));
#ifdef __cplusplus
}
#endif

static inline void phasewright_begin(const char *name) { if (phasewright_enter) phasewright_enter(name); }
static inline void phasewright_end(const char *name) { if (phasewright_leave) phasewright_leave(name); }
static inline void phasewright_end_of_block(const char *const *name) { phasewright_end(*name); }

#define PHASEWRIGHT_JOIN_(a, b) a##b
#define PHASEWRIGHT_JOIN(a, b) PHASEWRIGHT_JOIN_(a, b)
#define phasewright_region(name) \
    __attribute__((cleanup(phasewright_end_of_block))) const char *const PHASEWRIGHT_JOIN(phasewright_here_, __LINE__) = \
        (phasewright_begin(name), (name))

#endif

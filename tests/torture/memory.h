/* The C library's allocation in this process, which can be told to fail. Only with glibc, and without a sanitizer, which
 * has an allocation of its own. */
#ifndef NEML2_CAPI_TESTS_MEMORY_H
#define NEML2_CAPI_TESTS_MEMORY_H

#include <errno.h> /* which tells whether this is glibc */

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MEMORY_CAN_FAIL 1
#endif

/* To be called first, while there is memory. */
void memory_prepare(void);

/* Thread-local memory is left alone: glibc ends the process itself if it cannot have that, when a thread first uses a
 * thread_local variable of a package, or one with a destructor.
 *
 * Fails allocation number `at`, counted from 1, of those that follow; and all later ones if `lasting`. With `at` 0
 * none fails. */
void memory_fails(long at, int lasting);

/* Lets all allocations succeed again. Returns how many were asked for since memory_fails(). */
long memory_returns(void);

/* The number of allocations that failed since memory_fails(); whether the dynamic loader asked for one of them, or the
 * code of a package for the first one; and the number of blocks in use. */
long memory_failures(void);
int memory_failed_in_loader(void);
int memory_failed_in_package(void);
long memory_blocks(void);

/* Whether to print where an allocation fails, on stderr. */
extern int memory_traces;
void memory_trace(void);

#endif

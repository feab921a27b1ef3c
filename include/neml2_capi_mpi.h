/*
 * neml2_capi_mpi.h: what a host with MPI needs beside neml2_capi.h, in C99 and C++.
 *
 * The library is not linked with MPI. Here are three inline functions over it and <mpi.h>, for programs that are
 * compiled with the wrapper of their own MPI: mpicc host.c $(pkg-config --cflags --libs neml2_capi). neml2_capi_mpi.f90
 * is the same over mpi_f08, and neml2_capi.mpi in Python over mpi4py.
 *
 * Each rank loads a model of its own, and evaluates points of its own. If a node has several devices, each of its
 * ranks keeps one of them; if points fail on one rank, all must cut the step:
 *
 *     neml2_scheduler_create(&scheduler);
 *     neml2_scheduler_add(scheduler, &first); // two structures neml2_device, of CUDA devices
 *     neml2_scheduler_add(scheduler, &second);
 *     status = neml2_mpi_keep_rank(scheduler, MPI_COMM_WORLD);
 *     source.scheduler = scheduler; // of a neml2_source with the path
 *     if (status == NEML2_OK) status = neml2_model_open(&model, &source);
 *     status = neml2_mpi_worst_status(status, MPI_COMM_WORLD);
 *     ...
 *     status = neml2_mpi_worst_status(neml2_call_run(call, npoints), MPI_COMM_WORLD);
 *     if (status > 0) ... every rank is here: cut the step
 *
 * Collective  Every rank of the communicator must call each of these functions, as with MPI's own collective functions,
 *             also a rank that has failed before; one that does not keeps the others waiting for ever. What fails on
 *             one rank is an error of all, so that all take the same way.
 * Errors      ARGUMENT if MPI is not initialized, or the communicator is MPI_COMM_NULL or one between two groups.
 *             MPI's errors end the program, unless the communicator's handler is MPI_ERRORS_RETURN: then they are
 *             RUNTIME. neml2_error_message() tells them all.
 * Threads     As MPI was initialized: MPI_THREAD_FUNNELED allows the main thread, for example.
 */
#ifndef NEML2_CAPI_MPI_H
#define NEML2_CAPI_MPI_H

#include <mpi.h>

#include "neml2_capi_experimental.h"

/* For the functions below: record what MPI says of an error. */
static inline int32_t neml2_mpi_error(int code) {
  char message[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (code == MPI_SUCCESS) return NEML2_OK;
  if (MPI_Error_string(code, message, &length) != MPI_SUCCESS) message[0] = '\0';
  return neml2_error_record(NEML2_ERROR_RUNTIME, NEML2_CAUSE_NONE, "MPI", message);
}

/* For the functions below: whether a communicator can be asked. */
static inline int32_t neml2_mpi_check(MPI_Comm comm) {
  int initialized = 0, finalized = 0, between = 0;
  int32_t status = neml2_mpi_error(MPI_Initialized(&initialized));
  if (status == NEML2_OK) status = neml2_mpi_error(MPI_Finalized(&finalized));
  if (status != NEML2_OK) return status;
  if (!initialized || finalized)
    return neml2_error_record(NEML2_ERROR_ARGUMENT, NEML2_CAUSE_NONE, "MPI",
                              initialized ? "MPI was finalized before: call MPI_Finalize last"
                                          : "MPI is not initialized: call MPI_Init first");
  if (comm == MPI_COMM_NULL)
    return neml2_error_record(
        NEML2_ERROR_ARGUMENT, NEML2_CAUSE_NONE, "comm",
        "the communicator is MPI_COMM_NULL: this process is in none; call with one that it is in");
  status = neml2_mpi_error(MPI_Comm_test_inter(comm, &between));
  if (status == NEML2_OK && between)
    status = neml2_error_record(NEML2_ERROR_ARGUMENT, NEML2_CAUSE_NONE, "comm",
                                "the communicator is one between two groups: merge them with MPI_Intercomm_merge");
  return status;
}

/** Count the ranks of `comm` that are on this node, `size`, and tell which of them this is, from 0, in the order of
 *  `comm`. Collective over `comm`. Either out-parameter may be NULL. Since 1.0. */
static inline int32_t neml2_mpi_local_rank(int64_t *rank, int64_t *size, MPI_Comm comm) {
  MPI_Comm node = MPI_COMM_NULL;
  int own = 0, count = 0;
  int32_t status = neml2_mpi_check(comm);
  if (status == NEML2_OK)
    status = neml2_mpi_error(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  if (status != NEML2_OK) return status;
  status = neml2_mpi_error(MPI_Comm_rank(node, &own));
  if (status == NEML2_OK) status = neml2_mpi_error(MPI_Comm_size(node, &count));
  MPI_Comm_free(&node);
  if (status == NEML2_OK && rank) *rank = own;
  if (status == NEML2_OK && size) *size = count;
  return status;
}

/** The worst of the statuses of all ranks: the least if one is fatal, else the greatest, which says that points
 *  failed. If it is not the caller's own, the error of the thread says that another rank has failed. Collective over
 *  `comm`. Since 1.0. */
static inline int32_t neml2_mpi_worst_status(int32_t status, MPI_Comm comm) {
  int own[2], worst[2];
  const int32_t usable = neml2_mpi_check(comm);
  if (usable != NEML2_OK) return usable;
  own[0] = -status;
  own[1] = status;
  const int32_t reduced = neml2_mpi_error(MPI_Allreduce(own, worst, 2, MPI_INT, MPI_MAX, comm));
  if (reduced != NEML2_OK) return reduced;
  const int32_t result = worst[0] > 0 ? -worst[0] : worst[1];
  if (result == status) return status;
  return neml2_error_record(result, NEML2_CAUSE_NONE, "comm",
                            result < 0 ? "another rank of the communicator has failed: its message is there"
                                       : "points of another rank of the communicator failed: cut the step here, too");
}

/** neml2_scheduler_keep_rank() with the ranks of `comm` on this node: of the devices of `scheduler`, this rank's own
 *  stays. Collective over `comm`: if a node has fewer ranks than devices, or a rank has no scheduler, all fail, and
 *  no scheduler is changed. Since 1.0. */
static inline int32_t neml2_mpi_keep_rank(neml2_scheduler *scheduler, MPI_Comm comm) {
  int64_t rank = 0, size = 0, devices = 0;
  int32_t status = neml2_mpi_local_rank(&rank, &size, comm);
  if (status != NEML2_OK) return status;
  /* One that cannot be kept is not changed, and only the library knows what to say of it. */
  status = neml2_scheduler_count(&devices, scheduler);
  if (status == NEML2_OK && (devices == 0 || devices > size)) status = neml2_scheduler_keep_rank(scheduler, rank, size);
  status = neml2_mpi_worst_status(status, comm);
  return status == NEML2_OK ? neml2_scheduler_keep_rank(scheduler, rank, size) : status;
}

#endif

/* The interface between point kernels and what calls them.
 *
 * A kernel evaluates one graph of a material model for a block of `lanes` material points. Arrays are
 * [component][lane]: component c of lane l of an array stands at [c * lanes + l]. All arrays are aligned
 * to lanes * sizeof(real), and real is double or float as `real_size` says.
 *
 * Every lane is computed by itself: a lane that is not used may hold anything that is finite or not, and no
 * result of a lane depends on another one.
 *
 * Shared objects export neml2_kernels(). Objects that are linked statically are reached through
 * neml2_kernels_of_<model>(), so that several models fit into one program.
 */
#ifndef NEML2_KERNEL_H
#define NEML2_KERNEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels of version 1 are those without `sparse`. */
#define NEML2_KERNEL_VERSION 2

/* A part of an input or output: a variable, with its place in the array. */
typedef struct neml2_kernel_part {
  const char *name;
  int32_t offset; /* of its first component */
  int32_t components;
} neml2_kernel_part;

typedef enum neml2_kernel_use {
  NEML2_KERNEL_PER_POINT = 0, /* one value for each point */
  NEML2_KERNEL_UNIFORM = 1    /* one value for all points in the package; per lane here, as all others */
} neml2_kernel_use;

typedef struct neml2_kernel_array {
  const char *name;
  int32_t components;
  int32_t use;     /* a neml2_kernel_use */
  int32_t changes; /* inputs: 1 where run() may be called again with another value, see prepare() */
  int32_t part_count;
  const neml2_kernel_part *parts; /* NULL where the array is one variable */
  const signed char *structure;   /* outputs: per component 0 computed, 1 zero, 2 another constant; else NULL */
} neml2_kernel_array;

/* An output of `size` components of which few are stored: its array has these alone, and all others are zero. */
typedef struct neml2_kernel_sparse {
  int32_t output; /* its number */
  int32_t size;
  const int32_t *places; /* of each component of the array, ascending */
} neml2_kernel_sparse;

typedef struct neml2_kernel {
  uint32_t version;     /* NEML2_KERNEL_VERSION */
  uint32_t size;        /* of this struct in bytes: newer ones are longer */
  const char *name;     /* the package that it stands for, without .pt2 */
  const char *checksum; /* of the graph, SHA-256 in hexadecimal digits */
  int32_t real_size;    /* 8 double, 4 float */
  int32_t lanes;
  int32_t input_count, output_count;
  const neml2_kernel_array *inputs, *outputs;
  int32_t operations; /* of prepare() and run() together, per point */
  int32_t kept;       /* components that prepare() hands to run(), or that run() needs for itself, [kept][lane] */
  /* Compute what depends on no input that `changes`. Call it once before run() where the others are new. */
  void (*prepare)(const void *const *inputs, void *kept);
  /* Compute all outputs. Inputs, outputs and kept must not overlap. */
  void (*run)(const void *const *inputs, void *const *outputs, const void *kept);
  /* Since version 2 */
  int32_t sparse_count;
  const neml2_kernel_sparse *sparse;
  /* Of a Jacobian: auxiliary unknowns w, which the residual r(u, w) takes and which are w(u, w) themselves. Its last two
   * outputs are then dr/dw, (rows, w), and dw/d(u, w), (w, columns and w): each w depends on earlier ones alone. */
  int32_t auxiliaries;
  /* The same as run() in less time, if all lanes hold the same point. NULL if run() takes no more; a struct whose `size` ends
   * before it has none. */
  void (*run_one)(const void *const *inputs, void *const *outputs, const void *kept);
  int32_t sites; /* of that point, which run_one computes side by side in lanes; 0 where it has no loops over sites */
  /* Computes full blocks of points as run() does, from and to arrays of the caller, which need no alignment. Component c of
   * point p stands at inputs[i][p * strides[i] + c], and in an output of n components at outputs[i][p * n + c]. Returns how
   * many blocks are done. It stops before a block with an input or output that is not finite, and writes nothing of it. NULL
   * if the kernel has no such function; a struct whose `size` ends before it has none. */
  int64_t (*run_rows)(const void *const *inputs, const int64_t *strides, void *const *outputs, int64_t blocks);
} neml2_kernel;

typedef struct neml2_kernel_set {
  uint32_t version; /* NEML2_KERNEL_VERSION */
  uint32_t size;    /* of this struct in bytes */
  const char *model;
  int32_t count;
  const neml2_kernel *const *kernels;
} neml2_kernel_set;

/* The kernels of a shared object; the set is static. */
const neml2_kernel_set *neml2_kernels(void);

#ifdef __cplusplus
}
#endif

#endif

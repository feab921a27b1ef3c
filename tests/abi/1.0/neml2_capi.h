/*
 * neml2_capi.h: run ahead-of-time compiled material models from any language.
 *
 * `neml2-compile` lowers a constitutive model (elasticity, plasticity, crystal plasticity) to an artifact: a folder
 * with metadata.json and one .pt2 package per compiled graph. This header is the whole contract for running such an
 * artifact. It is C99, and the only ABI: neml2_capi.hpp (C++17), neml2_capi.f90 (Fortran 2018) and the Python
 * package are written over it.
 *
 *
 * EXAMPLE
 *
 * Linear elasticity at two material points: strain in, stress out. It compiles as it stands, and its only argument
 * is the folder of an artifact, such as examples/artifacts/elasticity.
 *
 *     #include <stdio.h>
 *     #include "neml2_capi.h"
 *
 *     int main(int argc, char **argv) {
 *       double strain[2][6] = {{1e-3, -3e-4, -3e-4, 0, 0, 0}, {0, 0, 0, 2e-4, 0, 0}};
 *       double stress[2][6];
 *       neml2_source source = {.size = sizeof source, .path = argc > 1 ? argv[1] : "elasticity"};
 *       neml2_model *model = NULL;
 *       neml2_call *call = NULL;
 *       int32_t status = neml2_model_open(&model, &source);
 *
 *       if (status == NEML2_OK) status = neml2_call_create(&call, model);
 *       if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6);
 *       if (status == NEML2_OK) status = neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6);
 *       if (status == NEML2_OK) status = neml2_call_run(call, 2);
 *       if (status != NEML2_OK) {
 *         char message[1024];
 *         neml2_error_message(message, sizeof message, NULL);
 *         fprintf(stderr, "%s\n", message);
 *       } else {
 *         for (int p = 0; p < 2; ++p) printf("stress xx %g, yz %g\n", stress[p][0], stress[p][3]);
 *       }
 *       neml2_call_free(&call);
 *       neml2_model_free(&model);
 *       return status == NEML2_OK ? 0 : 1;
 *     }
 *
 * With an installed library: cc example.c $(pkg-config --cflags --libs neml2_capi); from the Python package:
 * cc example.c $(python -m neml2_capi --cflags --libs).
 *
 *
 * WHAT TO READ
 *
 * The sections go from what every host needs to what few do:
 *
 *   Opening             say what to open: an artifact or a package, a device, an element type
 *   Describing          what variables, histories and derivatives a model has
 *   Calls               bind arrays by name once, evaluate blocks of points again and again
 *   Calls, advanced     consistent tangents and other derivatives, and the report of every point
 *   Tensors             arrays as handles: own, wrapped, shared, exchanged through DLPack
 *   Evaluation          of models over tensors of any batch shape: outputs, Jacobians, products
 *   Parameters, Options change material constants and the Newton solver
 *   Solving yourself    your own Newton loop, or SNES or KINSOL, over the nonlinear systems of a model
 *   Log                 what the solvers and the loader have to tell: Newton's history, for example
 *   Interrupting        end a long evaluation, at Ctrl-C for example
 *   Graphs              any AOTInductor package, alone (experimental, and so are all below)
 *   libtorch            the runtime for packages that need more than the built-in one has
 *   Operators           functions of yours that packages call
 *   Devices             models and graphs on CUDA
 *   Schedulers          models whose points are spread over several devices, or processes over those of a node
 *
 * The ABI is frozen: a program that was built with this header runs with every later library of the same major version.
 * Sections that are marked as experimental, and the runtime TENSORS, may change in any release; then a program that
 * uses what has changed does not start, and the dynamic loader says why. docs/design/frozen-abi.md has the promise.
 *
 * An implicit host does five things more than the example. It binds the history too: `x~1` is `x` at the previous
 * step, and every input must be bound. It lets state variables interleave in one array, by a point stride that is
 * greater than their size. It binds the tangent (neml2_call_bind_derivative()) in the order of its own stiffness. It
 * binds a status per point, and where neml2_call_run() returns a positive number it cuts the step: the old state is
 * still there. And it gives every thread a call of its own over one shared model. examples/ has all of them: c/,
 * fem/ and umat/.
 *
 *
 * CONVENTIONS
 *
 * Names       neml2_<handle>_<part>_<verb>: what is worked on, a part of it, and what is done. To open or create makes a
 *             handle, to free ends it. What there are several of has _count(), _find() for the position of a name, and
 *             _inspect() to fill a structure. What can be changed has _get() and _set(). Out-parameters come first,
 *             then the handle; then the `kind` (NEML2_INPUT, NEML2_OUTPUT, NEML2_PARAMETER), the name or the index.
 * Status      Every function that can fail returns an int32_t. 0 is success. Positive is recoverable, and says what
 *             became of some material points; the others hold good results. Where a solve failed, cut the step and
 *             try again. Negative is fatal: the request was wrong, and nothing was changed. neml2_error_message()
 *             says what was wrong, what was expected and what to do. No function exits, aborts, prints or lets an
 *             exception out.
 * Ownership   `neml2_X **out` that a function fills is *owned*: free it with neml2_X_free(), which accepts NULL and
 *             sets the handle to NULL. A pointer that is *borrowed from X* is valid until X is freed. Arguments are
 *             borrowed for the length of the call unless marked *consumed*. When a function fails, its
 *             out-parameters are not touched.
 * Shapes      Row-major. A variable of one material point has the shape (sub-batch axes..., base axes...), its *point
 *             shape*; a batch of points has the batch axes before it. Sizes, strides and counts are int64_t and count
 *             elements, not bytes. C's [point][i] is Fortran's (i, point): the same memory.
 * Tensors     A symmetric second-order tensor (SR2) is stored in Mandel notation:
 *             xx, yy, zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy. Abaqus/Standard orders 11, 22, 33, 12, 13, 23
 *             and uses engineering shear strains (gamma = 2 eps): examples/umat converts.
 * History     `x~1` is the value of `x` at the previous step, `x~2` the one before. Every input is bound, history
 *             too: nothing defaults.
 * Units       The artifact's: numbers pass through as they are.
 * Floating    The floating-point environment (traps, rounding, flush-to-zero) is set to its default inside and
 *   point     restored on return: hosts that trap can call.
 * Handles     are checked in every function: one that was freed, also through a copy, that is of another kind, or is no
 *             handle at all is ARGUMENT, and the message says which. To free it once more does nothing, and the log
 *             has a warning. Handles are opaque: copy and compare them only. What a structure lends (a name, a shape)
 *             goes with its handle, and the memory of an array that is bound or wrapped is yours to keep: these cannot
 *             be checked.
 * Stack       A thread needs 64 kB, and more for libtorch and for functions of yours.
 *
 * Every function says two things at its end.
 *
 * Errors      The fatal statuses that it can return, without their prefix NEML2_ERROR_. Every function that can fail
 *             may also return ARGUMENT for a NULL or a value out of its bounds, MEMORY, and INTERNAL, which is a
 *             defect. If the host has set neml2_interrupt_set(), what evaluates can return INTERRUPTED.
 * Threads     `any`: any number of threads may call it at once, also with the same handle; results are the same as
 *             one after another. `one`: a handle of this kind (a call, a solve, a report, a tensor that is written)
 *             belongs to one thread at a time; threads with a handle each do not meet. One that is entered while
 *             another function runs on it, in another thread or from a function of yours that the library called, is
 *             ARGUMENT; what is written to a tensor of two threads is not seen. A handle that is freed while functions
 *             run on it is gone for all others at once; what is behind it goes when the last of them returns, and the
 *             log has a warning. Errors are kept per thread.
 */
#ifndef NEML2_CAPI_H
#define NEML2_CAPI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define NEML2_CAPI __attribute__((visibility("default")))
#else
#define NEML2_CAPI
#endif

/* ---------------------------------------------------------------------------------------------
 * Version
 * ------------------------------------------------------------------------------------------- */

/** The ABI that this header describes: 1000 * major + minor. A minor adds functions, fields at the end of structures,
 *  statuses, causes, roles, kinds and options; it takes nothing away. Take a positive status that you do not know for
 *  recoverable, and a negative one for fatal. */
#define NEML2_ABI_VERSION 1000

/** The ABI of the library that is loaded, as 1000 * major + minor. Its meaning never changes.
 *  Errors: it cannot fail. Threads: any. */
NEML2_CAPI int32_t neml2_abi_version(void);

/** The release of the library, for example "1.0.0". Borrowed, never freed.
 *  Errors: it cannot fail. Threads: any. */
NEML2_CAPI const char *neml2_version(void);

/* ---------------------------------------------------------------------------------------------
 * Status and errors
 *
 * A point is NEML2_NON_FINITE if an output of it, or whatever else was asked for, is NaN or infinite: a derivative block,
 * a product with tangents or cotangents, a derivative with respect to a parameter; of a sum over points, its own part.
 * It is, too, if an input, a parameter, a tangent or a cotangent that it was given is NaN, and if its solve failed and one
 * of them is infinite; no smaller step mends that. The message names the first such point, and what is not finite there.
 * A law whose values are finite may have a tangent that is not, as sqrt(x) has at 0, where many jobs begin: a host must
 * not go on with it.
 * ------------------------------------------------------------------------------------------- */

/** Status of a call and, for the first four, of one material point. */
enum {
  NEML2_OK = 0,

  /* Recoverable: what some material points met. The others hold good results. */
  NEML2_NON_FINITE = 1,    /**< a value or a derivative is NaN or infinite, and was written as it is */
  NEML2_NOT_CONVERGED = 2, /**< a nonlinear solve did not converge, or met NaN; nothing was written */
  NEML2_SINGULAR = 3,      /**< the Jacobian of a nonlinear solve is singular; nothing was written */

  /* Fatal: the request cannot be met. Nothing was changed, and every handle stays usable. */
  NEML2_ERROR_ARGUMENT = -1,    /**< a NULL argument, or a value out of its bounds */
  NEML2_ERROR_NAME = -2,        /**< no input, output, parameter or option of this name */
  NEML2_ERROR_MISSING = -3,     /**< an input was not given */
  NEML2_ERROR_SHAPE = -4,       /**< a wrong trailing shape, or batches that do not broadcast */
  NEML2_ERROR_DTYPE = -5,       /**< a wrong element type */
  NEML2_ERROR_FILE = -6,        /**< a file is missing or cannot be read */
  NEML2_ERROR_ARTIFACT = -7,    /**< a file is not what it should be: truncated, not JSON, inconsistent */
  NEML2_ERROR_UNSUPPORTED = -8, /**< a schema, operator, device or instruction set that is not supported */
  NEML2_ERROR_RUNTIME = -9,     /**< a compiled package reported an error */
  NEML2_ERROR_MEMORY = -10,     /**< out of memory */
  NEML2_ERROR_INTERNAL = -11,   /**< a defect of this library */
  NEML2_ERROR_INTERRUPTED = -12 /**< the host ended the evaluation: see neml2_interrupt_set() */
};

/** Cause of a failure that a program may cure, where the status alone does not tell it. */
enum {
  NEML2_CAUSE_NONE = 0,             /**< the status says it all */
  NEML2_CAUSE_LIBTORCH_MISSING = 1, /**< UNSUPPORTED: libtorch was not found; see neml2_libtorch_suggest() */
  NEML2_CAUSE_SCHEMA_UNKNOWN = 2,   /**< UNSUPPORTED: see neml2_operator_declare() */
  NEML2_CAUSE_MATRIX_SINGULAR = 3,  /**< RUNTIME: a package was to solve with a singular matrix */
  NEML2_CAUSE_OF_HOST = 1000        /**< this and greater ones are yours: see neml2_error_record() */
};

/** The status of this thread's last failed call; NEML2_OK where none failed yet.
 *  Errors: it cannot fail. Threads: any. */
NEML2_CAPI int32_t neml2_error_status(void);

/** The cause of this thread's last failed call: NEML2_CAUSE_*, or a number of the host's.
 *  Errors: it cannot fail. Threads: any. */
NEML2_CAPI int32_t neml2_error_cause(void);

/** Copy the message of this thread's last failed call to `buffer`, cut to `capacity` bytes with its
 *  terminating zero. `needed` (or NULL) receives the size of the whole message with its zero. `buffer` may
 *  be NULL when `capacity` is 0.
 *  Errors: it cannot fail. Threads: any. */
NEML2_CAPI int32_t neml2_error_message(char *buffer, int64_t capacity, int64_t *needed);

/** Copy, as neml2_error_message() does, the name of the variable, parameter, option, segment or file that the
 *  error is about; empty where there is none.
 *  Errors: it cannot fail. Threads: any. */
NEML2_CAPI int32_t neml2_error_subject(char *buffer, int64_t capacity, int64_t *needed);

/** Count the errors of this thread's last failed call: 1, or more where a scheduler's devices failed side by side; 0
 *  where none failed yet. They are in the order of their points.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_error_count(int64_t *out);

/** The status and the cause of one of those errors, and its message as neml2_error_message() copies it. The status of
 *  the call is positive where that of each is: the same call may succeed with a smaller step. Either may be NULL.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_error_get(int32_t *status, int32_t *cause, char *buffer, int64_t capacity, int64_t *needed,
                                   int64_t index);

/** Record an error of this thread that was found outside of the library, in a solver or in the face of another
 *  language, so that it is read like the others. `cause` is one of NEML2_CAUSE_*, or a number of
 *  yours from NEML2_CAUSE_OF_HOST on, by which you find what you know of the error again when the library has passed
 *  it on. `subject` and `message` are copied, and NULL is empty. Returns `status`, which must not be NEML2_OK.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_error_record(int32_t status, int32_t cause, const char *subject, const char *message);

/* ---------------------------------------------------------------------------------------------
 * Handles and element types
 * ------------------------------------------------------------------------------------------- */

/** A compiled material model. Any number of threads may evaluate it at once. */
typedef struct neml2_model neml2_model;

/** Arrays of a host, bound to the variables of a model; one per thread. */
typedef struct neml2_call neml2_call;

/** An n-dimensional array in memory of the host, or of a CUDA device. The handle has one owner; the storage behind it
 *  is counted and may be shared by several handles. */
typedef struct neml2_tensor neml2_tensor;

/** Statuses, iterations and norms of the points of one evaluation over tensors. */
typedef struct neml2_report neml2_report;

/** An evaluation whose nonlinear systems the caller solves. */
typedef struct neml2_solve neml2_solve;

/** The nonlinear systems of one implicit segment, at all points. */
typedef struct neml2_system neml2_system;

/** One AOTInductor package (.pt2) for the CPU or CUDA, ready to run. Any number of threads may run it at once. */
typedef struct neml2_graph neml2_graph;

/** One call of an operator that is a function of yours; it lives while the function runs. */
typedef struct neml2_operator_call neml2_operator_call;

/** Devices over which a model spreads its points. */
typedef struct neml2_scheduler neml2_scheduler;

/** Element types; 0 is the usual one. */
enum {
  NEML2_FLOAT64 = 1,
  NEML2_FLOAT32 = 2,
  NEML2_INT64 = 3,
  NEML2_INT32 = 4,
  NEML2_INT16 = 5,
  NEML2_INT8 = 6,
  NEML2_UINT8 = 7,
  NEML2_BOOL = 8,
  NEML2_FLOAT16 = 9,
  NEML2_BFLOAT16 = 10
};

/** Kind of memory, by the numbers of DLPack; 0 is the usual one. */
enum { NEML2_DEVICE_CPU = 1, NEML2_DEVICE_CUDA = 2 };

/** Runtime of packages. BUILTIN needs nothing else. LIBTORCH is the libtorch of an installed torch, see "libtorch".
 *  AUTO is the built-in runtime for each package of which it has all that is called, else libtorch. TENSORS is
 *  libtorch, and Newton's method and the chain rule by its operators, too: what a model on CUDA always has, on the CPU
 *  to try it (experimental). */
enum { NEML2_RUNTIME_AUTO = 0, NEML2_RUNTIME_BUILTIN = 1, NEML2_RUNTIME_LIBTORCH = 2, NEML2_RUNTIME_TENSORS = 3 };

/** Kinds of variables. Unknowns are what implicit segments solve for. */
enum { NEML2_INPUT = 0, NEML2_OUTPUT = 1, NEML2_PARAMETER = 2, NEML2_UNKNOWN = 3 };

/* ---------------------------------------------------------------------------------------------
 * Opening
 *
 * A *source* says what to open, and for what. All but the first two fields may stay 0:
 *
 *     neml2_source source = {.size = sizeof source, .path = "aoti/elasticity"};
 *     neml2_model *model = NULL;
 *
 *     source.runtime = NEML2_RUNTIME_LIBTORCH;
 *     neml2_model_open(&model, &source);
 *
 * Every structure of this header begins with `size`, which you set to its sizeof. So a program and a library of
 * different releases understand each other: a field that one of them does not know is 0. ARGUMENT, naming the field,
 * where `size` is none of its sizes, or where a field is given that the library does not know.
 * ------------------------------------------------------------------------------------------- */

/** Model or graph to open, its device and element type. Texts and bytes are borrowed for the length of the call. */
typedef struct neml2_source {
  int64_t size;         /**< sizeof(neml2_source) */
  const char *path;     /**< an artifact, a HIT stub or a package (.pt2): see neml2_model_open(), neml2_graph_open() */
  const char *name;     /**< the model of a stub; else NULL */
  const void *content;  /**< in place of `path`, a package or an artifact in memory: see neml2_model_open() */
  int64_t content_size; /**< its bytes */
  const neml2_scheduler *scheduler; /**< the devices to spread points over, in place of `device`; or NULL */
  int32_t dtype;                    /**< of a model, NEML2_FLOAT64 (also 0) or NEML2_FLOAT32: which packages */
  int32_t device;                   /**< NEML2_DEVICE_*; 0: the CPU, and of a package alone, what it was compiled for */
  int32_t device_index;             /**< which of the CUDA devices */
  int32_t runtime;                  /**< NEML2_RUNTIME_* */
} neml2_source;

/** Open the artifact at `path`: its folder, a device folder in it, its metadata.json or <model>_meta.json; or the HIT
 *  stub of one model, or that of several with the `name` of one: the <name>_aoti.i file that neml2-compile writes
 *  beside an artifact. Reads artifacts of NEML2 3.0.0 to 3.1. The artifact_path of a stub is taken relative to it; if
 *  that is gone, the artifact is looked for beside the stub. The [Solvers] settings of a stub of NEML2 3.0.4 to
 *  3.0.6 hold. An artifact in memory (`content`) is a zip archive of its folder, with metadata.json at the root and
 *  entries that are stored, not compressed; it is copied. Everything that the packages need is checked first: the
 *  instruction set, the C library, every function and operator that they call; what is missing is named. Owned.
 *  Errors: NAME, DTYPE, FILE, ARTIFACT, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_model_open(neml2_model **out, const neml2_source *source);

/** Free the handle and set it to NULL. Calls and solves made from the model keep what they need.
 *  Errors: it cannot fail. Threads: any. */
NEML2_CAPI void neml2_model_free(neml2_model **model);

/* ---------------------------------------------------------------------------------------------
 * Describing
 *
 * What there is of one kind is counted, found by name and inspected by its position, from 0 on. To inspect is to fill a
 * structure; texts and arrays in it are borrowed from the handle.
 * ------------------------------------------------------------------------------------------- */

/** A model. One with a scheduler is on the CPU, and takes tensors of any device. */
typedef struct neml2_model_info {
  int64_t size;         /**< sizeof(neml2_model_info) */
  int32_t dtype;        /**< of the floating-point variables: what the packages compute in, which neml2-compile 3.1.0
                             makes float64 for `--dtype float32`, too */
  int32_t device;       /**< where inputs, parameters and results are: NEML2_DEVICE_* */
  int32_t device_index; /**< which of the CUDA devices */
  int32_t runtime;      /**< NEML2_RUNTIME_BUILTIN; LIBTORCH where one package runs on it; or TENSORS. Of a model with a
                             scheduler, on its first device */
} neml2_model_info;

/** Inspect a model.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_model_inspect(neml2_model_info *out, const neml2_model *model);

/** Count the variables of a kind.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_model_variable_count(int64_t *out, const neml2_model *model, int32_t kind);

/** The position of the variable `name` among its kind. NAME, with the names there are, when there is none.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_model_variable_find(int64_t *out, const neml2_model *model, int32_t kind, const char *name);

/** A variable of a model. Its *point shape* has `ndim` sizes, of which the first `sub_ndim` are sub-batch axes and the
 *  rest base axes. */
typedef struct neml2_variable_info {
  int64_t size; /**< sizeof(neml2_variable_info) */
  const char *name;
  const char *type; /**< the mathematical type, as NEML2 names it: "SR2", "Scalar"; empty for parameters */
  int64_t ndim;
  int64_t sub_ndim;
  const int64_t *shape; /**< `ndim` sizes */
  int32_t dtype;
  int32_t kind; /**< NEML2_INPUT and so on */
} neml2_variable_info;

/** Inspect variable `index` of a kind.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_model_variable_inspect(neml2_variable_info *out, const neml2_model *model, int32_t kind,
                                                int64_t index);

/** Count the derivatives that were compiled with respect to inputs (`kind` NEML2_INPUT) or parameters (NEML2_PARAMETER).
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_model_derivative_count(int64_t *out, const neml2_model *model, int32_t kind);

/** A derivative that was compiled. The block of a point has the shape (output's point shape..., variable's point
 *  shape...). An artifact of one forward segment gives (sub-batch axes..., output's base axes..., input's base
 *  axes...), which relates each site of the output to the same site of the input, or all of them to a sub-batch axis of
 *  size 1. */
typedef struct neml2_derivative_info {
  int64_t size;     /**< sizeof(neml2_derivative_info) */
  int64_t output;   /**< the position of the output */
  int64_t variable; /**< the position of the input or parameter */
  int64_t ndim;
  const int64_t *shape; /**< `ndim` sizes of the block of a point */
  int32_t batched;      /**< 0 where the block is the same for all points */
  int32_t kind;         /**< of the variable: NEML2_INPUT or NEML2_PARAMETER */
} neml2_derivative_info;

/** Inspect derivative `index` with respect to variables of a kind.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_model_derivative_inspect(neml2_derivative_info *out, const neml2_model *model, int32_t kind,
                                                  int64_t index);

/** Count the inputs that are history: `x~1`, `x~2` and so on, the values of `x` one and two steps before.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_model_history_count(int64_t *out, const neml2_model *model);

/** A history: the input `x~n`, and what it becomes at the next step; -1 where the model has no such variable. */
typedef struct neml2_history_info {
  int64_t size;    /**< sizeof(neml2_history_info) */
  int64_t input;   /**< the position of the input `x~n` */
  int64_t age;     /**< n */
  int64_t output;  /**< the position of the output `x` */
  int64_t current; /**< the position of the input `x`, which is a force */
} neml2_history_info;

/** Inspect history `index`.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_model_history_inspect(neml2_history_info *out, const neml2_model *model, int64_t index);

/** Describe a model, as neml2_source_describe() does. `buffer`, `capacity` and `needed` as in
 *  neml2_error_message().
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_model_describe(char *buffer, int64_t capacity, int64_t *needed, const neml2_model *model);

/** Describe an artifact by a JSON document: inputs, outputs, parameters, segments with their packages, the pairs
 *  that derivatives were compiled for, solver settings. The document has the same form for every schema of NEML2. No
 *  package is loaded, and `runtime` does not count. `buffer`, `capacity` and `needed` as in neml2_error_message().
 *  Errors: NAME, DTYPE, FILE, ARTIFACT, UNSUPPORTED. Threads: any. */
NEML2_CAPI int32_t neml2_source_describe(char *buffer, int64_t capacity, int64_t *needed, const neml2_source *source);

/* ---------------------------------------------------------------------------------------------
 * Calls
 *
 * A call binds arrays of the host to the model's variables by name, once, and evaluates the points in them any
 * number of times: nothing is allocated after the first run.
 *
 * An array is a pointer to the first point, an element type and a *point stride*: the distance in elements from one
 * point to the next. Within a point the values are row-major and dense. A point stride of 0 means one value for all
 * points; a stride greater than the point's size lets state variables interleave, and one between is
 * NEML2_ERROR_SHAPE. A model of float64 takes NEML2_FLOAT64, and anything else is NEML2_ERROR_DTYPE. Binding again
 * replaces; a NULL pointer takes the binding back. The arrays must stay where they are until the last run.
 * ------------------------------------------------------------------------------------------- */

/** A call without bindings. It keeps the model alive. Owned.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_call_create(neml2_call **out, const neml2_model *model);

/** Role of an array in a call: a variable, by its kind NEML2_INPUT, NEML2_OUTPUT or NEML2_PARAMETER, or one of these.
 *
 *  NEML2_INPUT       read; every input must be bound when the call runs. The name of an unknown that is no input is
 *                    taken, too, as NEML2's runtime takes a guess of it, and not read: a predictor gives it.
 *  NEML2_OUTPUT      written, if it is bound. It may be the very array of an input, with the same stride, or one that
 *                    overlaps no other: arrays of one stride may interleave, those of unequal strides must lie apart.
 *                    An output over its own history (`x` over `x~1`) is changed for the points that succeeded: to
 *                    retry, restore your own copy first.
 *  NEML2_PARAMETER   read in place of the stored value, in this call only: one for all points or one for each
 *  NEML2_TANGENT     read: the direction of an input; zero where it is not bound
 *  NEML2_JVP         written: the derivative of an output along the tangents, see neml2_model_jvp(). Through an
 *                    implicit model it costs about one more Newton step; in a call that binds derivative blocks, too,
 *                    it is their product, the same up to round-off.
 *  NEML2_COTANGENT   read: that of an output; zero where it is not bound
 *  NEML2_ADJOINT     written: that of an input, see neml2_model_vjp(). With a point stride of 0 it is the sum over all
 *                    points that did not fail.
 *  NEML2_PARAMETER_ADJOINT   the same of a parameter */
enum { NEML2_TANGENT = 4, NEML2_JVP = 5, NEML2_COTANGENT = 6, NEML2_ADJOINT = 7, NEML2_PARAMETER_ADJOINT = 8 };

/** Bind an array to the variable `name`, in a role. What is written may not have the point stride 0, but adjoints, and
 *  what is read is left as it is. UNSUPPORTED where a derivative was not compiled.
 *  Errors: NAME, SHAPE, DTYPE, UNSUPPORTED. Threads: one. */
NEML2_CAPI int32_t neml2_call_bind(neml2_call *call, int32_t role, const char *name, void *data, int32_t dtype,
                                   int64_t point_stride);

/** Evaluate `npoints` material points; with 0 it does nothing, bound or not. Returns NEML2_OK, or the greatest status
 *  of any point, or an error. The outputs of points that are NEML2_NOT_CONVERGED or NEML2_SINGULAR are left as they
 *  were. ARGUMENT where arrays overlap that must not, MISSING where an input is not bound, or nothing that could be
 *  written. Everything is checked before the first point; only when a
 *  package itself fails (RUNTIME), memory ends (MEMORY), or a derivative cannot be told for the numbers given, along
 *  the sites of a sub-batch or through substeps (UNSUPPORTED), can the results of earlier chunks of points have been
 *  written.
 *  Errors: MISSING, SHAPE, UNSUPPORTED, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_call_run(neml2_call *call, int64_t npoints);

/** Free the handle and set it to NULL. The arrays are yours, and stay.
 *  Errors: it cannot fail. Threads: one. */
NEML2_CAPI void neml2_call_free(neml2_call **call);

/* ---------------------------------------------------------------------------------------------
 * Calls, advanced
 * ------------------------------------------------------------------------------------------- */

/** Bind a derivative of `output` with respect to `variable`, an input (`kind` NEML2_INPUT) or a parameter
 *  (NEML2_PARAMETER): of an implicit model the consistent tangent. Its block is written for every point, also where
 *  it is the same for all; see neml2_model_derivative_inspect() for its shape, and neml2_call_block_order_set().
 *  UNSUPPORTED where it was not compiled. It may overlap no other array.
 *  Errors: NAME, SHAPE, DTYPE, UNSUPPORTED. Threads: one. */
NEML2_CAPI int32_t neml2_call_bind_derivative(neml2_call *call, int32_t kind, const char *output, const char *variable,
                                              void *data, int32_t dtype, int64_t point_stride);

/** The order of the components in a block: the output's before the variable's, or the other way round. */
enum { NEML2_OUTPUT_FIRST = 0, NEML2_INPUT_FIRST = 1 };

/** The order of the components in the blocks of a call: NEML2_OUTPUT_FIRST, the default, has [point][output][input],
 *  which is (input, output, point) in Fortran; NEML2_INPUT_FIRST the transpose, (output, input, point) in Fortran, as
 *  Abaqus wants DDSDDE.
 *  Errors: none more. Threads: one. */
NEML2_CAPI int32_t neml2_call_block_order_set(neml2_call *call, int32_t order);

/** Quantities that an evaluation can report of each material point. */
enum {
  NEML2_REPORT_STATUS = 0,           /**< int32: NEML2_OK, NON_FINITE, NOT_CONVERGED or SINGULAR */
  NEML2_REPORT_ITERATIONS = 1,       /**< int32: Newton steps made, over all implicit segments */
  NEML2_REPORT_RESIDUAL_NORM = 2,    /**< float64: last |r|, the greatest over the implicit segments; 0 without one */
  NEML2_REPORT_RESIDUAL_HISTORY = 3, /**< float64, `miters` values: |r| at the initial guess and after each step of
                                          the last implicit segment, with substeps of its whole increment; NaN
                                          beyond */
  NEML2_REPORT_SUGGESTED_CUT = 4     /**< float64: by what to multiply the increment before another try: 0.5 where the
                                          residual was going down, 0.25 where it was not, 1 where the point converged,
                                          and where no smaller step helps: NON_FINITE, or the step is zero already */
};

/** Bind an array of the report, one of NEML2_REPORT_*, of the type named there, in which the point stride counts; it
 *  is 1 or more, and for RESIDUAL_HISTORY at least the option miters when the call runs. It may overlap no other
 *  array. NULL takes the binding back. A bound history is filled whatever the option collect_history is.
 *  Errors: SHAPE. Threads: one. */
NEML2_CAPI int32_t neml2_call_bind_report(neml2_call *call, int32_t kind, void *data, int64_t point_stride);

/* ---------------------------------------------------------------------------------------------
 * Tensors
 * ------------------------------------------------------------------------------------------- */

/** A new tensor of zeros, row-major. `shape` has `ndim` entries, at most 16, and may be NULL when `ndim` is 0.
 *  Owned.
 *  Errors: SHAPE, DTYPE. Threads: any. */
NEML2_CAPI int32_t neml2_tensor_create(neml2_tensor **out, int32_t dtype, int64_t ndim, const int64_t shape[]);

/** A tensor over memory of yours, without a copy. `strides` is NULL for row-major; none may be negative. The memory
 *  must stay valid until `deleter(context)` is called, which happens once, on any thread, when no handle uses the
 *  storage any more; where `deleter` is NULL, until the last handle that shares it is freed. When this function
 *  fails the deleter is not called. Owned.
 *  Errors: SHAPE, DTYPE. Threads: any. */
NEML2_CAPI int32_t neml2_tensor_wrap(neml2_tensor **out, void *data, int32_t dtype, int64_t ndim, const int64_t shape[],
                                     const int64_t strides[], void (*deleter)(void *), void *context);

/** Another handle to the same storage: a write through one is seen through the other. Owned.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_tensor_share(neml2_tensor **out, const neml2_tensor *tensor);

struct DLManagedTensorVersioned; /* of dlpack.h, version 1 */

/** Take over a DLPack tensor without a copy. `managed` is *consumed* on success: its deleter is called when the
 *  storage is no longer used. Only tensors of the CPU and of CUDA, of major version 1. Owned.
 *  Errors: SHAPE, DTYPE, UNSUPPORTED. Threads: any. */
NEML2_CAPI int32_t neml2_tensor_from_dlpack(neml2_tensor **out, struct DLManagedTensorVersioned *managed);

/** Hand a tensor to a DLPack consumer without a copy. `managed` receives a structure that holds the storage until
 *  its own deleter is called; freeing `tensor` does not disturb it. Owned by the consumer.
 *  Errors: DTYPE. Threads: any. */
NEML2_CAPI int32_t neml2_tensor_to_dlpack(struct DLManagedTensorVersioned **managed, const neml2_tensor *tensor);

/** A tensor. */
typedef struct neml2_tensor_info {
  int64_t size; /**< sizeof(neml2_tensor_info) */
  void *data;   /**< the first element, an address on the device; NULL is possible where there are none.
                               Borrowed from the storage */
  int64_t ndim;
  const int64_t *shape;   /**< `ndim` sizes, borrowed from the handle */
  const int64_t *strides; /**< `ndim` strides in elements, borrowed from the handle */
  int32_t dtype;
  int32_t device;       /**< NEML2_DEVICE_CPU or NEML2_DEVICE_CUDA */
  int32_t device_index; /**< which of the CUDA devices */
  int32_t row_major;    /**< 1 where the elements lie in the order of their indices, without gaps */
} neml2_tensor_info;

/** Inspect a tensor.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_tensor_inspect(neml2_tensor_info *out, const neml2_tensor *tensor);

/** Free the handle and set it to NULL.
 *  Errors: it cannot fail. Threads: one. */
NEML2_CAPI void neml2_tensor_free(neml2_tensor **tensor);

/* ---------------------------------------------------------------------------------------------
 * Evaluation of models over tensors
 *
 * For batches of any shape, and all derivatives at once. `inputs` has one handle per input, `parameters` is NULL or
 * has one per parameter, in the order of the model's variables.
 * ------------------------------------------------------------------------------------------- */

/** Evaluate a model. `inputs` has one handle per input, and `outputs` receives one owned handle per output, in the
 *  order of the model's variables. The shape of an input is (*B, *point shape); the batches B of all inputs and
 *  parameters broadcast to a common one, which every output has. B may be empty, and may hold zeros. A NULL in
 *  `inputs` is a missing input. Inputs that are not row-major are copied.
 *  `parameters` is NULL, or has one handle per parameter; one that is not NULL replaces the stored value in this
 *  call. `report` (or NULL) receives an owned report.
 *  Returns a positive status when a point failed: `outputs` and `report` are then filled all the same. The values of
 *  points that are NEML2_NOT_CONVERGED or NEML2_SINGULAR are NaN; those of NEML2_NON_FINITE are what was computed, and
 *  with them derivatives, in the functions below.
 *  Handles that stand in `outputs` or `*report` before are overwritten, not freed.
 *  Errors: MISSING, SHAPE, DTYPE, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_model_forward(neml2_tensor *outputs[], neml2_report **report, const neml2_model *model,
                                       neml2_tensor *const inputs[], neml2_tensor *const parameters[]);

/** Evaluate a model and its derivative along one direction. `tangents` has one handle per input, of the shape of the
 *  input, or NULL, which is zero; their batches broadcast with the others. `jvps` receives one owned handle per
 *  output, d output / d inputs applied to the tangents; NULL for an output of which no derivative was compiled. An
 *  output sums over the inputs for which a derivative of it was compiled (see neml2_model_derivative_inspect()).
 *  `outputs` is as in neml2_model_forward(), or NULL. Points that fail are NaN in all results. UNSUPPORTED where no
 *  derivative was compiled. The other arguments and the status as in neml2_model_forward().
 *  Errors: MISSING, SHAPE, DTYPE, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_model_jvp(neml2_tensor *outputs[], neml2_tensor *jvps[], neml2_report **report,
                                   const neml2_model *model, neml2_tensor *const inputs[],
                                   neml2_tensor *const tangents[], neml2_tensor *const parameters[]);

/** Evaluate a model and the transpose of its derivative. `cotangents` has one handle per output, of the shape of the
 *  output, or NULL, which is zero. `adjoints` receives one owned handle per variable of `kind`, NEML2_INPUT or
 *  NEML2_PARAMETER: the sum over the outputs of d output / d variable, transposed, applied to the cotangent; NULL for a
 *  variable with respect to which no derivative was compiled. An adjoint has the shape of its variable: where that is
 *  one value for many points, their sum, which is NaN where one of them failed. Otherwise as neml2_model_jvp().
 *  Errors: MISSING, SHAPE, DTYPE, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_model_vjp(neml2_tensor *outputs[], neml2_tensor *adjoints[], neml2_report **report,
                                   const neml2_model *model, int32_t kind, neml2_tensor *const inputs[],
                                   neml2_tensor *const cotangents[], neml2_tensor *const parameters[]);

/** Evaluate a model and its Jacobian. `blocks` receives one owned handle per derivative with respect to variables of
 *  `kind`, in the order of neml2_model_derivative_inspect(): (*B, *block shape); with respect to inputs without B where
 *  the derivative is the same for all points, of which there must be one. Otherwise as neml2_model_jvp().
 *  Errors: MISSING, SHAPE, DTYPE, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_model_jacobian(neml2_tensor *outputs[], neml2_tensor *blocks[], neml2_report **report,
                                        const neml2_model *model, int32_t kind, neml2_tensor *const inputs[],
                                        neml2_tensor *const parameters[]);

/** A tensor of a report: shape (*B). RESIDUAL_HISTORY has (*B, miters), and is there only where the option
 *  collect_history was 1. Owned.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_report_get(neml2_tensor **out, const neml2_report *report, int32_t kind);

/** The last iterate of an unknown, of those of kind NEML2_UNKNOWN, where the solve failed: shape (*B, *point shape),
 *  NaN at the points that did not fail. MISSING where none failed. Owned.
 *  Errors: MISSING. Threads: any. */
NEML2_CAPI int32_t neml2_report_get_unknown(neml2_tensor **out, const neml2_report *report, int64_t index);

/** Free the handle and set it to NULL.
 *  Errors: it cannot fail. Threads: one. */
NEML2_CAPI void neml2_report_free(neml2_report **report);

/* ---------------------------------------------------------------------------------------------
 * Parameters
 * ------------------------------------------------------------------------------------------- */

/** A handle to the stored value of a parameter, of shape (*B, *base) with B empty or one value per batch element.
 *  It shares the storage: a write through it takes effect from the next evaluation on. Unlike
 *  neml2_model_parameter_set(), such a write must not coincide with an evaluation on another thread. Owned.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_model_parameter_get(neml2_tensor **out, const neml2_model *model, const char *name);

/** Replace the value of a parameter by a copy of `value`, of shape (*B, *base). The batch B must broadcast with that
 *  of the inputs when the model is evaluated. Evaluations that already run keep the value that they began with.
 *  Handles from neml2_model_parameter_get() see the new value where the shape is the same, and keep the old one
 *  where it is not.
 *  Errors: NAME, SHAPE, DTYPE. Threads: any. */
NEML2_CAPI int32_t neml2_model_parameter_set(neml2_model *model, const char *name, const neml2_tensor *value);

/* ---------------------------------------------------------------------------------------------
 * Options
 *
 * A model starts with the values that its artifact records. Numbers are set and read as double, choices as text:
 *
 *   atol             number   a point has converged when |r| < atol or r = 0, ...
 *   rtol             number   ... or when |r| / |r0| < rtol, with r0 the residual at the initial guess
 *   miters           number   bound of the iteration count: at most miters - 1 Newton steps are made
 *   ls_type          text     line search: "BACKTRACKING" (Armijo) or "STRONG_WOLFE"
 *   ls_max_iters     number   bound of the trial count, exclusive; 1 switches the line search off
 *   ls_cutback       number   the step length is divided by this after each failed trial
 *   ls_c             number   the fraction of the expected decrease that a trial must reach
 *   substep_del_tol  number   bound of the relative Newton step in the substepping solve
 *   convergence      text     "point": each point converges, stops and is reported on its own;
 *                             "batch": all points iterate until all have converged, and one that fails fails all,
 *                             as NEML2's own runtime does it
 *   collect_history  number   1: reports of neml2_model_forward() hold the residual history; 0: they do not
 *   chunk            number   points that are evaluated together; 0, the default: so many that what they take and
 *                             give fits the processor's second-level cache
 *   threads          number   threads that share the chunks of an evaluation, the calling one among them; 0: as many
 *                             as the calling thread has processors. 1 unless the environment variable
 *                             NEML2_CAPI_THREADS says otherwise: most hosts run several threads or processes
 *                             themselves. (In Python: 0.)
 *   kernels          text     "auto": where the artifact's point kernels give all that is asked for, they run instead
 *                             of the packages, and their results agree to round-off; "off": never; "required":
 *                             always, and an error says what they cannot do
 *   capsule          text     a folder, to which a call that fails is written for `neml2-capi replay`; empty, the
 *                             default, for nowhere. The environment variable NEML2_CAPI_CAPSULE names it, too
 *
 * The threads of `threads` are the library's own: they are not woken for little work, serve one caller at a time
 * (others run alone), keep to the caller's processors and leave OpenMP alone. No result depends on their number.
 * Evaluations that already run keep the options that they began with.
 *
 * A *capsule* is an .npz file, which numpy.load() reads: inputs, parameters, tangents and cotangents of a call, what
 * became of each point, and in capsule.json the options, the versions, the artifact with the size and the CRC-32 of its
 * metadata and packages, and what was asked for. It is written where points are NON_FINITE, NOT_CONVERGED or SINGULAR,
 * and for RUNTIME, UNSUPPORTED and INTERNAL while packages run; not for a solve of yours. Of more than 10000 points it
 * holds those that failed. The folder is made, no file is overwritten, and a process writes at most 16 to a folder.
 * What keeps a capsule from being written is told to the log, and changes no result.
 * ------------------------------------------------------------------------------------------- */

/** Count the options.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_model_option_count(int64_t *out, const neml2_model *model);

/** An option: a number, or a text. */
typedef struct neml2_option_info {
  int64_t size; /**< sizeof(neml2_option_info) */
  const char *name;
  const char *choices; /**< what a text can be, separated by spaces, or "*" for any text; NULL for a number */
  double least;        /**< bounds of a number */
  double greatest;
} neml2_option_info;

/** Inspect option `index`. Its texts are never freed.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_model_option_inspect(neml2_option_info *out, const neml2_model *model, int64_t index);

/** Set a number. Out of its bounds, or not whole where it must be, it is ARGUMENT, and nothing is changed.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_model_option_set_number(neml2_model *model, const char *name, double value);

/** Read a number.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_model_option_get_number(double *out, const neml2_model *model, const char *name);

/** Set a text to one of its choices; anything else is ARGUMENT. A text that may be anything is copied, and kept as long
 *  as the process lives.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_model_option_set_text(neml2_model *model, const char *name, const char *value);

/** Read a text. Borrowed, never freed.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_model_option_get_text(const char **out, const neml2_model *model, const char *name);

/* ---------------------------------------------------------------------------------------------
 * Solving yourself
 *
 * Each implicit segment of a model is a batch of independent nonlinear systems r(u) = 0, one per material point. A
 * *solve* is an evaluation that hands them out, one segment after another, so that the loop is yours:
 *
 *     neml2_solve *solve = NULL;
 *     neml2_system *system = NULL;
 *
 *     neml2_solve_begin(&solve, model, inputs, NULL);
 *     while (neml2_solve_next(&system, solve) == NEML2_OK && system) {
 *       neml2_system_guess(u, system);
 *       for (int k = 0; k < 10; ++k) {
 *         neml2_system_step(du, NULL, system, u);
 *         for (int64_t i = 0; i < npoints * n; ++i) u[i] += du[i];
 *       }
 *       neml2_system_accept(system, u, NULL, NULL);
 *     }
 *     neml2_solve_end(outputs, NULL, &solve);
 *
 * Vectors are float64 arrays (npoints, n), row-major, with n numbers per point, whatever the element type of the
 * model is. All points form one batch: the option `chunk` does not count, and a promoted parameter of an implicit
 * segment must be one value for all points (else NEML2_ERROR_SHAPE). Substepping is left to you: a segment that
 * would substep gives the system of the whole increment. Of the solver options only those inside a Krylov linear
 * solve count.
 *
 * A solve belongs to one thread at a time; any number of solves of one model may be under way at once.
 * ------------------------------------------------------------------------------------------- */

/** Begin a solve. `inputs` and `parameters` as in neml2_model_forward(); their values are copied. It keeps the model
 *  alive. Owned.
 *  Errors: MISSING, SHAPE, DTYPE. Threads: any. */
NEML2_CAPI int32_t neml2_solve_begin(neml2_solve **out, const neml2_model *model, neml2_tensor *const inputs[],
                                     neml2_tensor *const parameters[]);

/** Begin a solve of `npoints` points with what is bound in `call`, as neml2_call_run() would. The values of inputs
 *  and parameters are copied. All other arrays that are bound now, derivatives too, are read and written by
 *  neml2_solve_end(), and must stay where they are until then; the call itself need not. Owned.
 *  Errors: MISSING, SHAPE. Threads: one. */
NEML2_CAPI int32_t neml2_solve_begin_call(neml2_solve **out, const neml2_call *call, int64_t npoints);

/** Go on to the next implicit segment: what is explicit before it is evaluated. `system` is *borrowed from solve
 *  until the next call* of neml2_solve_next(), neml2_solve_end() or neml2_solve_free(); NULL where no system is
 *  left, and at once where there are no points. ARGUMENT where the last system was not accepted.
 *  Errors: SHAPE, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_solve_next(neml2_system **system, neml2_solve *solve);

/** End a solve for which neml2_solve_next() has given NULL. `outputs`, `report` (or NULL) and the status as in
 *  neml2_model_forward(); for a solve of a call `outputs` and `report` are NULL, and the arrays of the call are
 *  written as by neml2_call_run(). The report has what neml2_system_accept() was told, and NaN for the residual
 *  history. `solve` is *consumed* and set to NULL, unless an error (a negative status) is returned.
 *  Errors: UNSUPPORTED, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_solve_end(neml2_tensor *outputs[], neml2_report **report, neml2_solve **solve);

/** Free the handle and set it to NULL: a solve that is not ended is abandoned, and nothing is written.
 *  Errors: it cannot fail. Threads: one. */
NEML2_CAPI void neml2_solve_free(neml2_solve **solve);

/** The systems of one segment. */
typedef struct neml2_system_info {
  int64_t size;      /**< sizeof(neml2_system_info) */
  int64_t npoints;   /**< points */
  int64_t n;         /**< numbers per point in a vector */
  int64_t nunknowns; /**< unknowns, in the sense of NEML2_UNKNOWN, that these numbers belong to */
} neml2_system_info;

/** Inspect the systems of a segment.
 *  Errors: none more. Threads: one. */
NEML2_CAPI int32_t neml2_system_inspect(neml2_system_info *out, const neml2_system *system);

/** Place of an unknown in the vector of a point. Its values in row-major order are `pieces` pieces of `piece_size`
 *  numbers, the first at `offset` and each `piece_stride` after the one before: one piece in a dense group, and one per
 *  sub-batch site in a block group, where the unknowns interleave. A residual belongs to each place in the same way. */
typedef struct neml2_unknown_info {
  int64_t size;    /**< sizeof(neml2_unknown_info) */
  int64_t unknown; /**< its position among the model's variables of kind NEML2_UNKNOWN */
  int64_t offset;
  int64_t pieces;
  int64_t piece_stride;
  int64_t piece_size;
} neml2_unknown_info;

/** Inspect unknown `index` of a system.
 *  Errors: none more. Threads: one. */
NEML2_CAPI int32_t neml2_system_unknown_inspect(neml2_unknown_info *out, const neml2_system *system, int64_t index);

/** The initial guess, from the model's predictor.
 *  Errors: RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_system_guess(double u[], const neml2_system *system);

/** The residual r(u). `r` may be the array `u`.
 *  Errors: RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_system_residual(double r[], neml2_system *system, const double u[]);

/** The Newton step du = -(dr/du)^-1 r at `u`, by the model's own linear solver. `singular` (or NULL) receives, per
 *  point, 1 where dr/du is singular, and du means nothing; else 0. `du` may be the array `u`.
 *  Errors: RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_system_step(double du[], int32_t singular[], neml2_system *system, const double u[]);

/** The Jacobian dr/du at `u`: (npoints, n, n), with one row per residual. UNSUPPORTED where the artifact has no
 *  package for it (matrix-free, or of a schema before 12).
 *  Errors: UNSUPPORTED, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_system_jacobian(double a[], neml2_system *system, const double u[]);

/** y = dr/du v at `u`: from the matrix-free operator where there is one, else from the Jacobian, with its limits.
 *  `y` may be the array `v`.
 *  Errors: UNSUPPORTED, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_system_matvec(double y[], neml2_system *system, const double u[], const double v[]);

/** Accept `u` as the solution, once per system. `status` says for each point NEML2_OK, NEML2_NOT_CONVERGED or
 *  NEML2_SINGULAR; NULL: the tolerances of the model decide (its options atol and rtol, from neml2_system_guess()
 *  on), and a point a thousand times above both is NEML2_NOT_CONVERGED. The outputs of points that failed are as in
 *  neml2_model_forward(). `iterations` (or NULL: 0) is for the report. The residual is evaluated once more, for the
 *  norms in the report.
 *  Errors: UNSUPPORTED, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_system_accept(neml2_system *system, const double u[], const int32_t status[],
                                       const int32_t iterations[]);

/** Evaluate a model, as neml2_model_forward() does, with a solver of yours: it is called for each system, and must
 *  accept it; what neml2_system_accept() is told counts. Where it returns a negative status, the evaluation ends with
 *  that status. The functions of this library may be called inside; the floating-point environment is the default one
 *  there. `solver` is called on the calling thread.
 *  Errors: MISSING, SHAPE, DTYPE, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_solve_run(neml2_tensor *outputs[], neml2_report **report, const neml2_model *model,
                                   neml2_tensor *const inputs[], neml2_tensor *const parameters[],
                                   int32_t (*solver)(void *context, neml2_system *system), void *context);

/* ---------------------------------------------------------------------------------------------
 * Log
 *
 * What the library has to tell of its work: it prints nothing, but queues *records*, each of a channel, of a level and
 * with a message of one line, until the host takes them:
 *
 *     char message[NEML2_LOG_LENGTH];
 *     const char *channel;
 *     int32_t level;
 *
 *     neml2_log_level_set("newton", NEML2_LOG_DEBUG);
 *     neml2_call_run(call, npoints);
 *     while (neml2_log_next(&level, &channel, message, sizeof message, NULL) == NEML2_OK && level != NEML2_LOG_SILENT)
 *       fprintf(stderr, "%s: %s\n", channel, message);
 *
 * The channels are those of NEML2: "newton" (a warning where points fail; INFO has a line for each solve, and DEBUG for
 * each iteration), "linear" (Krylov solvers), "substep", "model" (what was loaded), "tensor" (copies of what cannot be
 * read in place) and "driver" (empty here: it is for drivers through time, as the Python package has one). "all" means
 * all of them. The levels are at first those of the environment variable NEML2_LOGS, for example
 * "all=info,substep=debug", else NEML2_LOG_WARNING. What was misunderstood in it is a record of "model".
 *
 * There is one queue for the process, of one megabyte: when it is full the oldest records are forgotten, and a record
 * tells how many. Records of one thread stay in their order. A process that was forked begins with an empty queue.
 * ------------------------------------------------------------------------------------------- */

/** Levels; a channel has the records up to its own. */
enum { NEML2_LOG_SILENT = 0, NEML2_LOG_WARNING = 1, NEML2_LOG_INFO = 2, NEML2_LOG_DEBUG = 3 };

/** The size of a buffer that holds any message with its terminating zero; longer ones are cut when they are made. */
enum { NEML2_LOG_LENGTH = 1024 };

/** Set the level of a channel, or of "all". It replaces what NEML2_LOGS says, and holds for the process.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_log_level_set(const char *channel, int32_t level);

/** The level of a channel; of "all", the greatest that one has.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_log_level_get(int32_t *out, const char *channel);

/** Count the records that wait.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_log_count(int64_t *out);

/** Take the oldest record. `level` receives its level, or NEML2_LOG_SILENT where none waits; `channel` (or NULL) the
 *  name of its channel, a constant; `buffer` the message, with `capacity` and `needed` as in neml2_error_message(); the
 *  record is taken in any case.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_log_next(int32_t *level, const char **channel, char *buffer, int64_t capacity,
                                  int64_t *needed);

/* ---------------------------------------------------------------------------------------------
 * Interrupting
 *
 * A host that wants to end a long evaluation, at Ctrl-C for example, lets the library ask it:
 *
 *     static volatile sig_atomic_t stop;
 *     static void on_signal(int number) { stop = number; }
 *     static int32_t asked(void *context) { return stop; }
 *
 *     signal(SIGINT, on_signal);
 *     neml2_interrupt_set(asked, NULL);
 *     status = neml2_call_run(call, npoints);   // NEML2_ERROR_INTERRUPTED within a second of the signal
 * ------------------------------------------------------------------------------------------- */

/** A function of yours that returns 0 to go on and anything else to end the evaluation. A number from
 *  NEML2_CAUSE_OF_HOST on becomes the cause of the error. */
typedef int32_t (*neml2_interrupt_fn)(void *context);

/** Set the function that evaluations of the whole process ask, or none for NULL. It runs on the threads that evaluate,
 *  never on those of the library, ten times a second at most, and may not evaluate itself. An evaluation that it ends
 *  returns INTERRUPTED: what it wrote to arrays is incomplete, and the model and its calls stay usable. It is asked
 *  between blocks of points and between Newton iterations, not within one run of a package.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_interrupt_set(neml2_interrupt_fn asked, void *context);

/* ---------------------------------------------------------------------------------------------
 * Graphs (experimental)
 *
 * Packages are of torch's format, which torch may change.
 * ------------------------------------------------------------------------------------------- */

/** Open a package (.pt2), by its path or its bytes, which are read in place and not needed any more when this returns.
 *  Everything that it needs is checked first: the instruction set, the C library, every function and operator that it
 *  calls; what is missing is named. Then its code is mapped, and runs with all rights of the process before this returns: a
 *  package that passed the checks may still do anything. `name`, `dtype` and `scheduler` must be 0. Owned.
 *  Errors: FILE, ARTIFACT, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_graph_open(neml2_graph **out, const neml2_source *source);

/** Make the checks of neml2_graph_open(), and load nothing: no byte of the package is mapped as code. The message has a
 *  line for each thing that is wrong. `runtime` (or NULL) receives the NEML2_RUNTIME_* that would be taken. libtorch is
 *  opened where it is asked about. Safe on bytes that nobody vouches for, as neml2_source_describe() is.
 *  Errors: FILE, ARTIFACT, UNSUPPORTED. Threads: any. */
NEML2_CAPI int32_t neml2_graph_check(int32_t *runtime, const neml2_source *source);

/** Free the handle and set it to NULL.
 *  Errors: it cannot fail. Threads: any. */
NEML2_CAPI void neml2_graph_free(neml2_graph **graph);

/** A graph. The specifications say how the arguments and the results of the module that was compiled are made of
 *  tensors: torch's pytree specifications in JSON, as the package holds them; empty where it has none. */
typedef struct neml2_graph_info {
  int64_t size; /**< sizeof(neml2_graph_info) */
  const char *in_spec;
  const char *out_spec;
  int32_t device;       /**< where inputs and outputs are: NEML2_DEVICE_* */
  int32_t device_index; /**< which of the CUDA devices */
  int32_t runtime;      /**< NEML2_RUNTIME_BUILTIN or NEML2_RUNTIME_LIBTORCH */
  int32_t reserved;     /**< 0 */
} neml2_graph_info;

/** Inspect a graph.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_graph_inspect(neml2_graph_info *out, const neml2_graph *graph);

/** Count the tensors that the graph takes (NEML2_INPUT) or returns (NEML2_OUTPUT).
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_graph_variable_count(int64_t *out, const neml2_graph *graph, int32_t kind);

/** Name, shape and element type of one input or output that a graph was compiled for. Names are those that the author of the package gave, where
 *  the package tells them: of arguments in one of neml2_capi.export.package(), else of keyword arguments and in
 *  dictionaries ("parts.1" is in the dictionary or list "parts"); any other has a name that torch made up, such as
 *  "arg0_1", or "output0". Of an output it tells what the package tells: what an operator outside of the package
 *  returns may have the element type 0, and -1 axes without sizes; it is known when it has run. */
typedef struct neml2_graph_variable_info {
  int64_t size; /**< sizeof(neml2_graph_variable_info) */
  const char *name;
  int64_t ndim;
  const int64_t *least;    /**< `ndim` sizes, the least that fit; -1 where one depends on the inputs; or NULL */
  const int64_t *greatest; /**< the greatest: equal where a size is fixed */
  const int64_t *order; /**< of an input, its axes from the outermost to the innermost one in memory, where the elements
                                lie side by side: 0, 1, ... where it is row-major. NULL of an output */
  int32_t dtype;
  int32_t kind; /**< NEML2_INPUT or NEML2_OUTPUT */
} neml2_graph_variable_info;

/** Inspect input or output `index`.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_graph_variable_inspect(neml2_graph_variable_info *out, const neml2_graph *graph, int32_t kind,
                                                int64_t index);

/** Run the graph. `inputs` are checked against neml2_graph_variable_inspect(), sizes that must be equal among
 *  them, and are borrowed; those whose elements lie in another order, which is row-major as a rule, are copied.
 *  `outputs` receives `noutputs` owned handles, which may share storage with the inputs and with one another, and need
 *  not be row-major. On CUDA it does not wait: see "Devices".
 *  Errors: SHAPE, DTYPE, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_graph_run(neml2_tensor *outputs[], int64_t noutputs, const neml2_graph *graph,
                                   neml2_tensor *const inputs[], int64_t ninputs);

/** Run the graph without the checks and copies of neml2_graph_run(), but for the numbers of tensors: the inputs must be
 *  what the package was compiled for, in element type, sizes and order in memory. Others are read as if they were,
 *  beyond their ends if they are too small. `outputs` receives owned handles.
 *  Errors: RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_graph_run_unguarded(neml2_tensor *outputs[], int64_t noutputs, const neml2_graph *graph,
                                             neml2_tensor *const inputs[], int64_t ninputs);

/** Count the constants (weights, buffers) of the graph. A package of neml2_capi.export.package() has all; in others,
 *  the compiler makes numbers in the code of small ones, of 8 elements or fewer, and of those whose elements are all
 *  equal.
 *  Errors: RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_graph_constant_count(int64_t *out, const neml2_graph *graph);

/** A copy of constant `index`, and its name in the module that was compiled, such as "layers.0.weight". Either may be
 *  NULL. The tensor is owned, the name borrowed from `graph`.
 *  Errors: RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_graph_constant_get(neml2_tensor **out, const char **name, const neml2_graph *graph,
                                            int64_t index);

/** Replace `count` constants at once, while the graph may be running: a run uses the values that it began with, and
 *  never some of each. The tensors have the shapes and element types of neml2_graph_constant_get(). They are borrowed
 *  and copied; or, where `share` is not 0, their memory is used, which must not be written any more: so several graphs
 *  have one copy of their weights. (A tensor that starts at no multiple of 64 bytes, or has other strides than the
 *  package wants, is copied all the same.) The old values are freed when the last run that uses them ends; those that
 *  were compiled in, with the graph. After an error none is replaced.
 *  Errors: NAME, DTYPE, SHAPE, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_graph_constant_set(neml2_graph *graph, int64_t count, const char *const names[],
                                            neml2_tensor *const values[], int32_t share);

/* ---------------------------------------------------------------------------------------------
 * libtorch (experimental)
 *
 * What the built-in runtime lacks, convolutions or attention for example, libtorch has: torch 2.10 or later, on the
 * CPU. Nothing here is linked with it. A process can hold one libtorch: the one that is loaded already, whoever did so,
 * else that of the environment variable NEML2_CAPI_LIBTORCH (the file libtorch_cpu.so, its folder, or that of the
 * Python package torch), else the one that was suggested.
 * ------------------------------------------------------------------------------------------- */

/** Suggest the place of libtorch, for where nothing else tells it; `place` as in NEML2_CAPI_LIBTORCH. It is not looked at before it is
 *  needed, and does nothing once libtorch was opened.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_libtorch_suggest(const char *place);

/** Open libtorch, unless it is, and tell its file and its version, "2.13.0". Either may be NULL; both are borrowed,
 *  for the life of the process. Every function of it that is needed is looked up; what is missing is named.
 *  Errors: FILE, UNSUPPORTED. Threads: any. */
NEML2_CAPI int32_t neml2_libtorch_open(const char **path, const char **version);

/** Tell the schema of a custom operator, as torch writes it: "mylib::scale(Tensor x, float factor=1.0) -> Tensor". It
 *  is needed before a package that calls the operator is loaded for libtorch, which does not tell it; those of torch's
 *  own operators are known. The operator itself is registered with torch by a library of yours.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_operator_declare(const char *schema);

/* ---------------------------------------------------------------------------------------------
 * Operators (experimental)
 *
 * A package calls by name what was not compiled into it: the custom operators of torch that the model was exported
 * with, and those of torch's own that are called through the dispatcher. The built-in runtime has a few of them (an
 * error at load lists them); any other may be a function of yours, which is registered before the package is loaded:
 *
 *     // "mylib::scale(Tensor x, float factor=1.0) -> Tensor"
 *     int32_t scale(void *context, neml2_operator_call *call) {
 *       neml2_tensor *const *x = NULL;
 *       neml2_tensor *result = NULL;
 *       neml2_tensor_info from = {.size = sizeof from}, to = {.size = sizeof to};
 *       const double *factor = NULL;
 *       int64_t size = 1;
 *       int32_t status = neml2_operator_call_get_tensors(&x, call, 0);
 *
 *       if (status == NEML2_OK) status = neml2_operator_call_get_reals(&factor, call, 1);
 *       if (status == NEML2_OK) status = neml2_tensor_inspect(&from, *x);
 *       if (status == NEML2_OK) status = neml2_tensor_create(&result, NEML2_FLOAT64, from.ndim, from.shape);
 *       if (status == NEML2_OK) status = neml2_tensor_inspect(&to, result);
 *       if (status != NEML2_OK) return status;
 *       for (int64_t i = 0; i < from.ndim; ++i) size *= from.shape[i];
 *       for (int64_t i = 0; i < size; ++i) ((double *)to.data)[i] = *factor * ((const double *)from.data)[i];
 *       return neml2_operator_call_set_output(call, 0, &result);
 *     }
 *
 * The function is called on the thread that runs the package, a worker of this library's perhaps, on several at once,
 * and with zeros while a model is loaded. It may call this library, but for the graph that called it. The
 * floating-point environment is the default one there. What a material point becomes must not depend on its neighbours:
 * the library chooses which points it runs together.
 *
 * A point for which there is no result gets NaN, and is then NON_FINITE or NOT_CONVERGED on its own. A function that
 * returns a status fails the run: NOT_CONVERGED and SINGULAR are recoverable, all others are fatal. Why it failed is
 * the message of the function of this library whose status it returns, or its own (neml2_error_record()). In a model,
 * the points of a run that failed recoverably are evaluated again one by one, and the status is that of the points for
 * which it comes again; a graph or a solve returns it.
 *
 * On libtorch a package calls the operator that torch has of this name, and never the function; with the runtime
 * "auto", one that is registered lets the built-in runtime be taken.
 * ------------------------------------------------------------------------------------------- */

/** Kind of an argument; a list of integers is INTEGER. NONE: it was not given. */
enum {
  NEML2_ARGUMENT_NONE = 0,
  NEML2_ARGUMENT_TENSOR = 1,
  NEML2_ARGUMENT_INTEGER = 2,
  NEML2_ARGUMENT_REAL = 3,
  NEML2_ARGUMENT_BOOLEAN = 4,
  NEML2_ARGUMENT_TEXT = 5
};

/** A function that is an operator. It makes all outputs and returns NEML2_OK, or another status: see above. */
typedef int32_t (*neml2_operator_fn)(void *context, neml2_operator_call *call);

/** Register a function for the packages that are loaded from now on, in the whole process. `schema` is as torch writes
 *  it: "mylib::scale.overload(Tensor x, int[] axes, float factor=1.0) -> (Tensor, Tensor)", with arguments of Tensor,
 *  int, SymInt, float, bool and str, any of them with '?', and lists of all but str. ARGUMENT where it is no such
 *  schema, or its name is that of an operator that is registered, or that the built-in runtime has.
 *  Errors: FILE. Threads: any. */
NEML2_CAPI int32_t neml2_operator_register(const char *schema, neml2_operator_fn function, void *context);

/** Unregister an operator, by its name, "mylib::scale.overload", or its whole schema: when this returns, no thread is
 *  in the function, and none will call it again. A package that was loaded before fails with UNSUPPORTED where it calls
 *  it, also when the name is registered anew. ARGUMENT where the function itself calls this.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_operator_unregister(const char *name);

/** Count the arguments of the schema (NEML2_INPUT), or its outputs (NEML2_OUTPUT).
 *  Errors: none more. Threads: one. */
NEML2_CAPI int32_t neml2_operator_call_count(int64_t *out, const neml2_operator_call *call, int32_t kind);

/** The position of an argument, from its name in the schema.
 *  Errors: NAME. Threads: one. */
NEML2_CAPI int32_t neml2_operator_call_find(int64_t *out, const neml2_operator_call *call, const char *name);

/** An argument of an operator. */
typedef struct neml2_argument_info {
  int64_t size;     /**< sizeof(neml2_argument_info) */
  const char *name; /**< in the schema */
  int64_t count;    /**< the length of a list, else -1 */
  int32_t kind;     /**< NEML2_ARGUMENT_* */
  int32_t reserved; /**< 0 */
} neml2_argument_info;

/** Inspect argument `index`.
 *  Errors: none more. Threads: one. */
NEML2_CAPI int32_t neml2_operator_call_inspect(neml2_argument_info *out, const neml2_operator_call *call,
                                               int64_t index);

/** A tensor argument, or a list of them: `*out[0]` is the first. They are row-major, borrowed from `call`, as is their
 *  memory, and are not written; copy what is to be kept. `*out` is NULL for None, and an item is where it is None.
 *  DTYPE where the argument is of another kind.
 *  Errors: DTYPE. Threads: one. */
NEML2_CAPI int32_t neml2_operator_call_get_tensors(neml2_tensor *const **out, const neml2_operator_call *call,
                                                   int64_t index);

/** An integer or boolean (0 or 1) argument, or a list of them. Otherwise as neml2_operator_call_get_tensors().
 *  Errors: DTYPE. Threads: one. */
NEML2_CAPI int32_t neml2_operator_call_get_integers(const int64_t **out, const neml2_operator_call *call,
                                                    int64_t index);

/** A real argument, or a list of them. Otherwise as neml2_operator_call_get_tensors().
 *  Errors: DTYPE. Threads: one. */
NEML2_CAPI int32_t neml2_operator_call_get_reals(const double **out, const neml2_operator_call *call, int64_t index);

/** A text argument; NULL for None. Borrowed from `call`.
 *  Errors: DTYPE. Threads: one. */
NEML2_CAPI int32_t neml2_operator_call_get_text(const char **out, const neml2_operator_call *call, int64_t index);

/** Give output `index`. `tensor` is *consumed* and set to NULL, also where it is refused: SHAPE or DTYPE where the
 *  package was compiled for another shape or element type, as far as its source tells. One that neml2_tensor_create()
 *  made is not copied; one that was wrapped, or shares its memory, is.
 *  Errors: SHAPE, DTYPE, UNSUPPORTED. Threads: one. */
NEML2_CAPI int32_t neml2_operator_call_set_output(neml2_operator_call *call, int64_t index, neml2_tensor **tensor);

/* ---------------------------------------------------------------------------------------------
 * Devices (experimental)
 *
 * Packages that were compiled for CUDA run on a libtorch that is built for it. THIS IS UNTESTED: no GPU was at hand.
 * What a model does there beside its packages was tested on the CPU, with NEML2_RUNTIME_TENSORS.
 *
 * A model or a graph of a CUDA device takes and returns tensors of that device, which come and go through DLPack
 * without a copy; those of another device are UNSUPPORTED. A parameter can be set from the host. Work is put on torch's
 * current stream of the thread, or on that of neml2_stream_set(), and no call waits for it, but: each iteration of
 * Newton's method waits for one flag, and where points failed the call waits for their number. So the status of a call
 * does not tell NEML2_NON_FINITE, the report does. Values are the caller's to synchronise, as with torch.
 *
 * Models are there as far as their segments are explicit, or implicit with a direct linear solver. UNSUPPORTED, by
 * name, are substeps, Krylov solvers, fixed batches, convergence = batch, arrays of the host (neml2_call_create()) and
 * solving yourself (neml2_solve_begin()). A promoted parameter of an implicit segment must be one value for all points
 * (SHAPE). `chunk`, `threads` and `capsule` do not count.
 * ------------------------------------------------------------------------------------------- */

/** Put this thread's work on CUDA device `index` on `stream`, a cudaStream_t, from now on; NULL: on torch's current
 *  stream again.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_stream_set(int32_t index, void *stream);

/* ---------------------------------------------------------------------------------------------
 * Schedulers (experimental)
 *
 * A model that is opened with a scheduler spreads the points of every evaluation over its devices, in sub-batches, and
 * is otherwise a model like any other: calls, evaluations over tensors, parameters, options and reports are the same.
 *
 *     neml2_device cpu = {.size = sizeof cpu, .batch_size = 512};
 *     neml2_device cuda = {.size = sizeof cuda, .device = NEML2_DEVICE_CUDA, .batch_size = 4096, .priority = 1};
 *     neml2_source source = {.size = sizeof source, .path = "aoti/viscoplastic"};
 *     neml2_scheduler *scheduler = NULL;
 *
 *     neml2_scheduler_create(&scheduler);
 *     neml2_scheduler_add(scheduler, &cpu);
 *     neml2_scheduler_add(scheduler, &cuda);
 *     source.scheduler = scheduler;
 *     neml2_model_open(&model, &source);
 *     neml2_scheduler_free(&scheduler);
 *
 * Where a scheduler has one device, the calling thread evaluates sub-batch after sub-batch on it. Where it has several,
 * each has a thread of its own, and the next sub-batch goes to the device of the highest priority that has capacity
 * left: the points that it evaluates or that wait for it, and those of its next sub-batch, are at most its capacity.
 * Sub-batches are chunked once more inside, by the option `chunk`. Any number of threads may evaluate at once, and
 * share the devices.
 *
 * Results are gathered where the inputs are, on the host or on a CUDA device. Values of parameters are those of the
 * model, on all devices; those that vary by point are sliced with the points. Adjoints that are one value for many
 * points are summed in the order of the points, whatever device had them. Which device evaluates a point depends on
 * when they are ready: results differ by as much as those of the devices do. With the option convergence = batch, a
 * sub-batch converges as a whole.
 *
 * Points that fail are those of the whole batch, as without a scheduler, and neml2_error_get() tells of each sub-batch
 * that has some. A sub-batch that cannot be evaluated (RUNTIME, MEMORY) ends the evaluation: nothing new is begun, and
 * what is under way is waited for; the model is as good as before, and results of some points may have been written.
 * One such error is returned as it is. Of several the worst is, and neml2_error_get() tells all; sub-batches whose
 * points failed are among them.
 *
 * A model of several devices cannot be solved by the caller (neml2_solve_begin()), and takes no fixed batches that its
 * sub-batches are no multiples of.
 * ------------------------------------------------------------------------------------------- */

/** A scheduler without devices. Owned.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_scheduler_create(neml2_scheduler **out);

/** A device of a scheduler. Of devices with capacity left that of the greatest priority is given the next sub-batch,
 *  and the first that was added where they are equal. */
typedef struct neml2_device {
  int64_t size;         /**< sizeof(neml2_device) */
  int64_t batch_size;   /**< points of a sub-batch; 0, which is for a model of one device only: no bound */
  int64_t capacity;     /**< points that the device may be given at once, at least `batch_size`, so that the next
                             sub-batch waits while one is evaluated; 0: twice `batch_size` */
  double priority;      /**< any finite number */
  int32_t device;       /**< NEML2_DEVICE_*; 0: the CPU */
  int32_t device_index; /**< which of the CUDA devices */
  int32_t runtime;      /**< NEML2_RUNTIME_* */
  int32_t reserved;     /**< 0 */
} neml2_device;

/** Add a device. ARGUMENT where a number is out of bounds, or where the device is there already: two would contend for
 *  it. (To compare runtimes, the CPU may be there once for each of BUILTIN, LIBTORCH and TENSORS.)
 *  Errors: UNSUPPORTED. Threads: one. */
NEML2_CAPI int32_t neml2_scheduler_add(neml2_scheduler *scheduler, const neml2_device *device);

/** Count the devices.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_scheduler_count(int64_t *out, const neml2_scheduler *scheduler);

/** Inspect the device that was added as number `index`, with the capacity that it has.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_scheduler_inspect(neml2_device *out, const neml2_scheduler *scheduler, int64_t index);

/** Keep one device, for a process of many on one node, as MPI's: that of number `local_rank` modulo their count.
 *  `local_rank` counts the `local_size` processes of this node from 0. Several processes may share a device; ARGUMENT
 *  where there are fewer processes than devices, since some would be idle: start more, or add fewer devices. Nothing
 *  here is linked with MPI; neml2_capi_mpi.h and neml2_capi_mpi.f90, and neml2_capi.mpi in Python, ask it for both
 *  numbers.
 *  Errors: none more. Threads: one. */
NEML2_CAPI int32_t neml2_scheduler_keep_rank(neml2_scheduler *scheduler, int64_t local_rank, int64_t local_size);

/** Free the handle and set it to NULL. Models that were opened with it keep what they need.
 *  Errors: it cannot fail. Threads: one. */
NEML2_CAPI void neml2_scheduler_free(neml2_scheduler **scheduler);

/** Count the points that device `index` of a model's scheduler has evaluated since the model was opened: what a batch
 *  size or a priority is worth. ARGUMENT where the model has no such device.
 *  Errors: none more. Threads: any. */
NEML2_CAPI int32_t neml2_model_points(int64_t *out, const neml2_model *model, int64_t index);

#ifdef __cplusplus
}
#endif

#endif

/*
 * neml2_capi.h: run ahead-of-time compiled material models from any language.
 *
 * `neml2-compile` lowers a constitutive model to an artifact: a folder with metadata.json and one
 * .pt2 package per compiled graph. This header is the whole contract for running such an artifact. It
 * is C99, and the only ABI: the C++, Fortran and Python faces are written over it.
 *
 *
 * INTRODUCTION
 *
 * There are three tiers, and each can be used alone.
 *
 *   tensor   An n-dimensional array. It owns its storage, or borrows yours.
 *   graph    One .pt2 package: tensors in, tensors out.
 *   model    A whole artifact: named inputs, outputs and parameters; nonlinear solves are done inside.
 *
 * A finite-element host needs only a model and a `neml2_call`: bind its arrays by name once, and then
 * evaluate a block of material points with one function. Elasticity, for 8 points:
 *
 *     neml2_model *model = NULL;
 *     neml2_call *call = NULL;
 *     double strain[8][6] = {{1e-3, -3e-4, -3e-4, 0, 0, 0}}, stress[8][6];
 *
 *     if (neml2_model_load(&model, "aoti/elasticity", NULL, NULL) == NEML2_OK &&
 *         neml2_call_create(&call, model) == NEML2_OK &&
 *         neml2_call_bind_input(call, "strain", strain, NEML2_FLOAT64, 6) == NEML2_OK &&
 *         neml2_call_bind_output(call, "stress", stress, NEML2_FLOAT64, 6) == NEML2_OK)
 *       neml2_call_run(call, 8);
 *     neml2_call_free(&call);
 *     neml2_model_free(&model);
 *
 *
 * CONVENTIONS
 *
 * Status      Every function that can fail returns an int32_t. 0 is success. Positive is recoverable, and says what
 *             became of some material points; the others hold good results. Where a solve failed, cut the step and
 *             try again. Negative is fatal: the request was wrong, and nothing was changed. neml2_error_message() says
 *             what was wrong, what was expected and what to do. No function exits, aborts, prints or
 *             lets an exception out.
 * Ownership   `neml2_X **out` that a function fills is *owned*: free it with neml2_X_free(), which accepts
 *             NULL and sets the handle to NULL. A pointer that is *borrowed from X* is valid until X is
 *             freed. Arguments are borrowed for the length of the call unless marked *consumed*. When a
 *             function fails, its out-parameters are not touched.
 * Shapes      Row-major. A variable of one material point has the shape (sub-batch axes..., base axes...),
 *             its *point shape*; a batch of points has the batch axes before it. Sizes, strides and counts are
 *             int64_t and count elements, not bytes.
 * Tensors     A symmetric second-order tensor (SR2) is stored in Mandel notation:
 *             xx, yy, zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy. Abaqus/Standard orders 11, 22, 33, 12, 13, 23
 *             and uses engineering shear strains (gamma = 2 eps).
 * History     `x~1` is the value of `x` at the previous step. Every input is bound, history too: nothing
 *             defaults.
 * Units       The artifact's: numbers pass through as they are.
 * Threads     A graph or a loaded model may be called from many threads at once; results are the same as one
 *             after another. Setting a parameter or an option is atomic: calls that already run keep the
 *             values they began with. A call, a report or a tensor handle belongs to one thread at a time.
 *             Errors are kept per thread.
 * Floating    The floating-point environment (traps, rounding, flush-to-zero) is set to its default inside
 *   point     and restored on return: hosts that trap can call.
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

/** The ABI that this header describes: 1000 * major + minor. Within a major, functions are only added. */
#define NEML2_ABI_VERSION 1000

/** The ABI of the library that is loaded, as 1000 * major + minor. Its meaning never changes.
 *  Since 1.0. */
NEML2_CAPI int32_t neml2_abi_version(void);

/** The release of the library, for example "0.1.0". Borrowed, never freed. Since 1.0. */
NEML2_CAPI const char *neml2_version(void);

/* ---------------------------------------------------------------------------------------------
 * Status and errors
 * ------------------------------------------------------------------------------------------- */

/** What a function returned, and, for the first four, what became of one material point. */
enum {
  NEML2_OK = 0,

  /* Recoverable: what some material points met. The others hold good results. */
  NEML2_NON_FINITE = 1,    /**< an explicit result is NaN or infinite; it was written as it is */
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
  NEML2_ERROR_INTERNAL = -11    /**< a defect of this library */
};

/** The status of this thread's last failed call; NEML2_OK where none failed yet. Since 1.0. */
NEML2_CAPI int32_t neml2_error_status(void);

/** Copy the message of this thread's last failed call to `buffer`, cut to `capacity` bytes with its
 *  terminating zero. `needed` (or NULL) receives the size of the whole message with its zero. `buffer` may
 *  be NULL when `capacity` is 0. Returns NEML2_OK. Since 1.0. */
NEML2_CAPI int32_t neml2_error_message(char *buffer, int64_t capacity, int64_t *needed);

/** Like neml2_error_message(), for the name of the variable, parameter, option, segment or file that the
 *  error is about; empty where there is none. Since 1.0. */
NEML2_CAPI int32_t neml2_error_subject(char *buffer, int64_t capacity, int64_t *needed);

/* ---------------------------------------------------------------------------------------------
 * Tensors
 * ------------------------------------------------------------------------------------------- */

/** Element types. */
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

/** An n-dimensional array in host memory. The handle has one owner; the storage behind it is counted and
 *  may be shared by several handles. */
typedef struct neml2_tensor neml2_tensor;

struct DLManagedTensorVersioned; /* of dlpack.h, version 1 */

/** A new tensor of zeros, row-major. `shape` has `ndim` entries and may be NULL when `ndim` is 0.
 *  Owned. Since 1.0. */
NEML2_CAPI int32_t neml2_tensor_create(neml2_tensor **out, int32_t dtype, int64_t ndim, const int64_t *shape);

/** A tensor over memory of yours, without a copy. `strides` is NULL for row-major. The memory must stay valid
 *  until `deleter(context)` is called, which happens once, on any thread, when no handle uses the storage any
 *  more; where `deleter` is NULL, until the last handle that shares it is freed. When this function fails the
 *  deleter is not called. Owned. Since 1.0. */
NEML2_CAPI int32_t neml2_tensor_wrap(neml2_tensor **out, void *data, int32_t dtype, int64_t ndim, const int64_t *shape,
                                     const int64_t *strides, void (*deleter)(void *), void *context);

/** Another handle to the same storage: a write through one is seen through the other. Owned. Since 1.0. */
NEML2_CAPI int32_t neml2_tensor_share(neml2_tensor **out, const neml2_tensor *tensor);

/** Take over a DLPack tensor without a copy. `managed` is *consumed* on success: its deleter is called when the
 *  storage is no longer used. Only CPU tensors of major version 1. Owned. Since 1.0. */
NEML2_CAPI int32_t neml2_tensor_from_dlpack(neml2_tensor **out, struct DLManagedTensorVersioned *managed);

/** Hand a tensor to a DLPack consumer without a copy. `managed` receives a structure that holds the storage until
 *  its own deleter is called; freeing `tensor` does not disturb it. Owned by the consumer. Since 1.0. */
NEML2_CAPI int32_t neml2_tensor_to_dlpack(struct DLManagedTensorVersioned **managed, const neml2_tensor *tensor);

/** Element type. Since 1.0. */
NEML2_CAPI int32_t neml2_tensor_dtype(int32_t *out, const neml2_tensor *tensor);

/** Number of axes, and their sizes and strides in elements. Any of the out-parameters may be NULL. The arrays are
 *  borrowed from `tensor`. Since 1.0. */
NEML2_CAPI int32_t neml2_tensor_shape(int64_t *ndim, const int64_t **shape, const int64_t **strides,
                                      const neml2_tensor *tensor);

/** The first element. Borrowed from the storage of `tensor`; NULL is possible where there are no elements.
 *  Since 1.0. */
NEML2_CAPI int32_t neml2_tensor_data(void **out, const neml2_tensor *tensor);

/** Free the handle and set it to NULL. Since 1.0. */
NEML2_CAPI void neml2_tensor_free(neml2_tensor **tensor);

/* ---------------------------------------------------------------------------------------------
 * Graphs
 * ------------------------------------------------------------------------------------------- */

/** One AOTInductor package (.pt2) for the CPU, ready to run. Any number of threads may run it at once. */
typedef struct neml2_graph neml2_graph;

/** Load a package. Everything that it needs is checked first: the instruction set, the C library, every function
 *  and operator that it calls; what is missing is named. Owned. Since 1.0. */
NEML2_CAPI int32_t neml2_graph_load(neml2_graph **out, const char *path);

/** How many tensors the graph takes and returns. Either may be NULL. Since 1.0. */
NEML2_CAPI int32_t neml2_graph_arity(int64_t *ninputs, int64_t *noutputs, const neml2_graph *graph);

/** What the graph was compiled for, of its input `index`: the element type, the number of axes, and the least and
 *  the greatest size of each axis (equal where it is fixed). Any out-parameter may be NULL. The arrays are borrowed
 *  from `graph`. Since 1.0. */
NEML2_CAPI int32_t neml2_graph_input(int32_t *dtype, int64_t *ndim, const int64_t **least, const int64_t **greatest,
                                     const neml2_graph *graph, int64_t index);

/** Run the graph. `inputs` are checked against neml2_graph_input() and are borrowed; those that are not row-major
 *  are copied. `outputs` receives `noutputs` owned handles, which may share storage with the inputs and with one
 *  another, and need not be row-major. Since 1.0. */
NEML2_CAPI int32_t neml2_graph_run(neml2_tensor **outputs, int64_t noutputs, const neml2_graph *graph,
                                   neml2_tensor *const *inputs, int64_t ninputs);

/** Free the handle and set it to NULL. Since 1.0. */
NEML2_CAPI void neml2_graph_free(neml2_graph **graph);

/* ---------------------------------------------------------------------------------------------
 * Models
 * ------------------------------------------------------------------------------------------- */

/** A compiled material model. Any number of threads may evaluate it at once. */
typedef struct neml2_model neml2_model;

/** The kinds of a model's variables. */
enum { NEML2_INPUT = 0, NEML2_OUTPUT = 1, NEML2_PARAMETER = 2 };

/** Load the artifact at `path`, the folder that holds metadata.json. `device` ("cpu") and `dtype` ("float64",
 *  "float32") choose the <device>/<dtype> leaf; NULL means "cpu" and "float64". Owned. Since 1.0. */
NEML2_CAPI int32_t neml2_model_load(neml2_model **out, const char *path, const char *device, const char *dtype);

/** Load the model `name` of a HIT stub, the <name>_aoti.i file that neml2-compile writes beside an artifact.
 *  Its artifact_path is taken relative to the stub. `device` and `dtype` as in neml2_model_load(). Owned.
 *  Since 1.0. */
NEML2_CAPI int32_t neml2_model_load_stub(neml2_model **out, const char *stub, const char *name, const char *device,
                                         const char *dtype);

/** The element type of the model's floating-point variables. It is what the packages compute in: neml2-compile 3.1.0
 *  writes float64 packages for `--dtype float32` too. Since 1.0. */
NEML2_CAPI int32_t neml2_model_dtype(int32_t *out, const neml2_model *model);

/** How many variables of a kind there are. Since 1.0. */
NEML2_CAPI int32_t neml2_model_variable_count(int64_t *out, const neml2_model *model, int32_t kind);

/** The position of the variable `name` among its kind. NEML2_ERROR_NAME, with the names there are, when there is
 *  none. Since 1.0. */
NEML2_CAPI int32_t neml2_model_variable_find(int64_t *index, const neml2_model *model, int32_t kind, const char *name);

/** The name of a variable, and its mathematical type as NEML2 names it ("SR2", "Scalar"; empty for parameters).
 *  Either may be NULL. Borrowed from `model`. Since 1.0. */
NEML2_CAPI int32_t neml2_model_variable_name(const char **name, const char **type, const neml2_model *model,
                                             int32_t kind, int64_t index);

/** The point shape of a variable: `ndim` sizes, of which the first `sub_ndim` are sub-batch axes and the rest base
 *  axes. Any out-parameter may be NULL. Borrowed from `model`. Since 1.0. */
NEML2_CAPI int32_t neml2_model_variable_shape(int64_t *ndim, const int64_t **shape, int64_t *sub_ndim,
                                              const neml2_model *model, int32_t kind, int64_t index);

/** The element type of a variable. Since 1.0. */
NEML2_CAPI int32_t neml2_model_variable_dtype(int32_t *out, const neml2_model *model, int32_t kind, int64_t index);

/** A handle to the stored value of a parameter, of shape (*B, *base) with B empty or one value per batch element.
 *  It shares the storage: a write through it takes effect from the next evaluation on. Unlike
 *  neml2_model_parameter_set(), such a write must not coincide with an evaluation on another thread. Owned.
 *  Since 1.0. */
NEML2_CAPI int32_t neml2_model_parameter_get(neml2_tensor **out, const neml2_model *model, const char *name);

/** Replace the value of a parameter by a copy of `value`, of shape (*B, *base). The batch B must broadcast with that
 *  of the inputs when the model is evaluated. Handles from neml2_model_parameter_get() see the new value where the
 *  shape is the same, and keep the old one where it is not. Since 1.0. */
NEML2_CAPI int32_t neml2_model_parameter_set(neml2_model *model, const char *name, const neml2_tensor *value);

/** Free the handle and set it to NULL. Calls made from the model keep what they need. Since 1.0. */
NEML2_CAPI void neml2_model_free(neml2_model **model);

/* ---------------------------------------------------------------------------------------------
 * Solver options
 *
 * A model starts with the values that its artifact records. Numbers are set and read as double, choices as text:
 *
 *   atol             number   a point has converged when |r| < atol; with 0, not even r = 0 does; ...
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
 *   chunk            number   points that are evaluated together
 * ------------------------------------------------------------------------------------------- */

/** How many options there are. Since 1.0. */
NEML2_CAPI int32_t neml2_model_option_count(int64_t *out, const neml2_model *model);

/** The name of option `index`; the least and the greatest value of a number; or for a text, `choices`: what it can
 *  be, separated by spaces, and NULL for a number. Any out-parameter may be NULL. Borrowed, never freed.
 *  Since 1.0. */
NEML2_CAPI int32_t neml2_model_option_info(const char **name, double *least, double *greatest, const char **choices,
                                           const neml2_model *model, int64_t index);

/** Set or read a number. Since 1.0. */
NEML2_CAPI int32_t neml2_model_option_set_number(neml2_model *model, const char *name, double value);
NEML2_CAPI int32_t neml2_model_option_get_number(double *out, const neml2_model *model, const char *name);

/** Set or read a text; what is read is borrowed and never freed. Since 1.0. */
NEML2_CAPI int32_t neml2_model_option_set_text(neml2_model *model, const char *name, const char *value);
NEML2_CAPI int32_t neml2_model_option_get_text(const char **out, const neml2_model *model, const char *name);

/* ---------------------------------------------------------------------------------------------
 * Evaluation with tensors
 * ------------------------------------------------------------------------------------------- */

/** What an evaluation can report of each material point. */
enum {
  NEML2_REPORT_STATUS = 0,          /**< int32: NEML2_OK, NON_FINITE, NOT_CONVERGED or SINGULAR */
  NEML2_REPORT_ITERATIONS = 1,      /**< int32: Newton steps made, over all implicit segments */
  NEML2_REPORT_RESIDUAL_NORM = 2,   /**< float64: last |r|, the greatest over the implicit segments; 0 without one */
  NEML2_REPORT_RESIDUAL_HISTORY = 3 /**< float64, `miters` values: |r| at the initial guess and after each step of
                                         the last implicit segment; NaN beyond */
};

/** The report of one evaluation. */
typedef struct neml2_report neml2_report;

/** Evaluate a model. `inputs` has one handle per input, and `outputs` receives one owned handle per output, in the
 *  order of the model's variables. The shape of an input is (*B, *point shape); the batches B of all inputs and
 *  parameters broadcast to a common one, which every output has. B may be empty, and may hold zeros. A NULL in
 *  `inputs` is a missing input. Inputs that are not row-major are copied.
 *  `parameters` is NULL, or has one handle per parameter; one that is not NULL replaces the stored value in this call.
 *  `report` (or NULL) receives an owned report.
 *  Returns a positive status when a point failed: `outputs` and `report` are then filled all the same. The values of
 *  points that are NEML2_NOT_CONVERGED or NEML2_SINGULAR are NaN; those of NEML2_NON_FINITE are what was computed.
 *  Handles that stand in `outputs` or `*report` before are overwritten, not freed. Since 1.0. */
NEML2_CAPI int32_t neml2_model_forward(neml2_tensor **outputs, neml2_report **report, const neml2_model *model,
                                       neml2_tensor *const *inputs, neml2_tensor *const *parameters);

/** A tensor of a report: shape (*B). RESIDUAL_HISTORY has (*B, miters), and is there only where the option
 *  collect_history was 1. Owned. Since 1.0. */
NEML2_CAPI int32_t neml2_report_get(neml2_tensor **out, const neml2_report *report, int32_t kind);

/** Free the handle and set it to NULL. Since 1.0. */
NEML2_CAPI void neml2_report_free(neml2_report **report);

/* ---------------------------------------------------------------------------------------------
 * Evaluation in place: calls
 *
 * A call binds arrays of the host to the model's variables by name, once, and evaluates the points in them any number
 * of times.
 *
 * An array is a pointer to the first point, an element type and a *point stride*: the distance in elements from one
 * point to the next. Within a point the values are row-major and dense. A point stride of 0 means one value for all
 * points; a stride greater than the point's size lets state variables interleave, and one between is NEML2_ERROR_SHAPE.
 * A model of float64 takes NEML2_FLOAT64, and anything else is NEML2_ERROR_DTYPE. Binding again replaces; a NULL
 * pointer takes the binding back.
 * ------------------------------------------------------------------------------------------- */

/** A set of bindings; one per thread. */
typedef struct neml2_call neml2_call;

/** A call without bindings. It keeps the model alive. Owned. Since 1.0. */
NEML2_CAPI int32_t neml2_call_create(neml2_call **out, const neml2_model *model);

/** Bind an input. Every input must be bound when the call runs. Since 1.0. */
NEML2_CAPI int32_t neml2_call_bind_input(neml2_call *call, const char *name, const void *data, int32_t dtype,
                                         int64_t point_stride);

/** Bind an output. It may be the very array of an input, with the same stride, or one that overlaps no other: arrays of
 *  one stride may interleave, those of unequal strides must lie apart. Outputs that are not bound are not written; a
 * point stride of 0 is an error. Mind that an output over its own history (`x` over `x~1`) is changed for the points
 * that succeeded, so that a step that is tried again must begin from a saved copy. Since 1.0. */
NEML2_CAPI int32_t neml2_call_bind_output(neml2_call *call, const char *name, void *data, int32_t dtype,
                                          int64_t point_stride);

/** Bind a parameter to values of the host, which replace the stored one in this call only. Since 1.0. */
NEML2_CAPI int32_t neml2_call_bind_parameter(neml2_call *call, const char *name, const void *data, int32_t dtype,
                                             int64_t point_stride);

/** Bind an array of the report, one of NEML2_REPORT_*, of the type named there, in which the point stride counts; it is
 *  1 or more, and for RESIDUAL_HISTORY at least the option miters when the call runs. It may overlap no other array.
 * NULL takes the binding back. A bound history is filled whatever the option collect_history is. Since 1.0. */
NEML2_CAPI int32_t neml2_call_bind_report(neml2_call *call, int32_t kind, void *data, int64_t point_stride);

/** Evaluate `npoints` material points; with 0 it does nothing, bound or not. Returns NEML2_OK, or the greatest status
 * of any point, or an error. The outputs of points that are NEML2_NOT_CONVERGED or NEML2_SINGULAR are left as they
 * were. Everything is checked before the first point; only when a package itself fails (NEML2_ERROR_RUNTIME) or memory
 * ends (NEML2_ERROR_MEMORY) can the outputs of points before the failure have been written. Since 1.0. */
NEML2_CAPI int32_t neml2_call_run(neml2_call *call, int64_t npoints);

/** Free the handle and set it to NULL. Since 1.0. */
NEML2_CAPI void neml2_call_free(neml2_call **call);

#ifdef __cplusplus
}
#endif

#endif

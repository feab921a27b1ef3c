/*
 * neml2_capi_experimental.h: what libneml2_capi offers beyond the stable contract of neml2_capi.h.
 *
 * Everything that this header declares may change in any release. A program that uses something that has changed does
 * not start with the later library, and the dynamic loader says why. The conventions of neml2_capi.h hold here too.
 *
 *
 * WHAT TO READ
 *
 *   Graphs      any AOTInductor package, alone
 *   libtorch    the runtime for packages that need more than the built-in one has
 *   Operators   functions of yours that packages call
 *   Devices     models and graphs on CUDA
 *   Arrays on a device  calls over memory of OpenCL or CUDA
 *   Custom calls of XLA  models in programs of jax
 *   Schedulers  models whose points are spread over several devices, or over the processes of a node
 */
#ifndef NEML2_CAPI_EXPERIMENTAL_H
#define NEML2_CAPI_EXPERIMENTAL_H

#include "neml2_capi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------
 * Graphs
 *
 * A graph is one package. Packages are of torch's format, which torch may change.
 * ------------------------------------------------------------------------------------------- */

/** One AOTInductor package (.pt2) for the CPU or CUDA, ready to run. Any number of threads may run it at once. */
typedef struct neml2_graph neml2_graph;

/** Open a package (.pt2), by its path or its bytes, which are read in place and not needed any more when this returns.
 *  Its needs are checked first: the instruction set, the C library, every function and operator that it calls; the
 *  message names what is missing. Then its code is mapped, and runs with all rights of the process before this
 *  returns: a package that passed the checks may still do anything. `name`, `dtype` and `scheduler` must be 0. Owned.
 *  Errors: FILE, ARTIFACT, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_graph_open(neml2_graph **out, const neml2_source *source);

/** Make the checks of neml2_graph_open(), and load nothing: no byte of the package is mapped as code. The message has a
 *  line for each thing that is wrong. `runtime` (or NULL) receives the NEML2_RUNTIME_* that would be taken. libtorch is
 *  opened if the source asks for it. Safe for untrusted bytes, as neml2_source_describe() is.
 *  Errors: FILE, ARTIFACT, UNSUPPORTED. Threads: any. */
NEML2_CAPI int32_t neml2_graph_check(int32_t *runtime, const neml2_source *source);

/** Free the handle and set it to NULL.
 *  Threads: any. */
NEML2_CAPI void neml2_graph_free(neml2_graph **graph);

/** A graph. The specifications say how the arguments and the results of the module that was compiled are made of
 *  tensors: torch's pytree specifications in JSON, as the package holds them; empty if it has none. */
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
 *  Threads: any. */
NEML2_CAPI int32_t neml2_graph_inspect(neml2_graph_info *out, const neml2_graph *graph);

/** Count the tensors that the graph takes (NEML2_INPUT) or returns (NEML2_OUTPUT).
 *  Threads: any. */
NEML2_CAPI int32_t neml2_graph_variable_count(int64_t *out, const neml2_graph *graph, int32_t kind);

/** Name, shape and element type of one input or output that a graph was compiled for. The name is the author's, if the
 *  package has it: a package of neml2_capi.export.package() has the names of its arguments, others only the names of
 *  keyword arguments and the keys of dictionaries ("parts.1" is in the dictionary or list "parts"). Any other name is
 *  torch's, such as "arg0_1", or "output0". If an operator outside of the package makes an output, its element type may
 *  be 0 and its sizes -1: they are known when the graph has run. */
typedef struct neml2_graph_variable_info {
  int64_t size; /**< sizeof(neml2_graph_variable_info) */
  const char *name;
  int64_t ndim;
  const int64_t *least;    /**< `ndim` sizes, the least that fit; -1 if one depends on the inputs; or NULL */
  const int64_t *greatest; /**< the greatest: equal to `least` if a size is fixed */
  const int64_t *order;    /**< of an input, its axes from the outermost to the innermost one in memory, if the elements
                                lie side by side: 0, 1, ... if it is row-major. NULL of an output */
  int32_t dtype;
  int32_t kind; /**< NEML2_INPUT or NEML2_OUTPUT */
} neml2_graph_variable_info;

/** Inspect input or output `index`.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_graph_variable_inspect(neml2_graph_variable_info *out, const neml2_graph *graph, int32_t kind,
                                                int64_t index);

/** Run the graph. `inputs` are borrowed, and checked against neml2_graph_variable_inspect() and one another, if sizes
 *  must be equal. Inputs whose elements lie in another order, which is row-major as a rule, are copied. `outputs`
 *  receives `noutputs` owned handles, which may share storage with the inputs and with one another, and need not be
 *  row-major. On CUDA it does not wait: see "Devices".
 *  Errors: SHAPE, DTYPE, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_graph_run(neml2_tensor *outputs[], int64_t noutputs, const neml2_graph *graph,
                                   neml2_tensor *const inputs[], int64_t ninputs);

/** Run the graph without the checks and copies of neml2_graph_run(), except for the numbers of tensors: the inputs must
 *  have the element type, sizes and order in memory that the package was compiled for. Others are read as if they had,
 *  beyond their ends if they are too small. `outputs` receives owned handles.
 *  Errors: RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_graph_run_unguarded(neml2_tensor *outputs[], int64_t noutputs, const neml2_graph *graph,
                                             neml2_tensor *const inputs[], int64_t ninputs);

/** Count the constants (weights, buffers) of the graph. A package of neml2_capi.export.package() has all. In others,
 *  the compiler turns some into numbers in the code: constants of 8 elements or fewer, and constants whose elements are
 *  all equal.
 *  Errors: RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_graph_constant_count(int64_t *out, const neml2_graph *graph);

/** A copy of constant `index`, and its name in the module that was compiled, such as "layers.0.weight". Either may be
 *  NULL. The tensor is owned, the name borrowed from `graph`.
 *  Errors: RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_graph_constant_get(neml2_tensor **out, const char **name, const neml2_graph *graph,
                                            int64_t index);

/** Replace `count` constants at once, while the graph may be running: a run uses the values that it began with, and
 *  never some of each. The tensors have the shapes and element types of neml2_graph_constant_get(). They are borrowed
 *  and copied. If `share` is not 0, their memory is used instead, so that several graphs have one copy of their
 *  weights; it must not be written any more. (A tensor is copied all the same if it starts at no multiple of 64 bytes,
 *  or has other strides than the package wants.) The old values are freed when the last run that uses them ends; values
 *  that were compiled in, with the graph. After an error none is replaced.
 *  Errors: NAME, DTYPE, SHAPE, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_graph_constant_set(neml2_graph *graph, int64_t count, const char *const names[],
                                            neml2_tensor *const values[], int32_t share);

/* ---------------------------------------------------------------------------------------------
 * libtorch
 *
 * libtorch has what the built-in runtime lacks, convolutions or attention for example: torch 2.10 or later, on the CPU.
 * Nothing here is linked with it. A process can hold one libtorch: the one that is loaded already, by any part of it;
 * else the one that the environment variable NEML2_CAPI_LIBTORCH names (the file libtorch_cpu.so, its folder, or the
 * folder of the Python package torch); else the one that was suggested.
 * ------------------------------------------------------------------------------------------- */

/** Suggest the place of libtorch, in case nothing else names it; `place` as in NEML2_CAPI_LIBTORCH. The place is not
 *  looked at before libtorch is needed; the suggestion does nothing once libtorch was opened.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_libtorch_suggest(const char *place);

/** Open libtorch, unless it is open, and tell its file and its version, "2.13.0". Either may be NULL; both are
 *  borrowed, for the life of the process. Every function that is needed of it is looked up; the message names what is
 *  missing.
 *  Errors: FILE, UNSUPPORTED. Threads: any. */
NEML2_CAPI int32_t neml2_libtorch_open(const char **path, const char **version);

/** Declare the schema of a custom operator, as torch writes it: "mylib::scale(Tensor x, float factor=1.0) -> Tensor",
 *  before a package that calls the operator is loaded for libtorch, which does not tell it. Schemas of torch's own
 *  operators are known. The operator itself is registered with torch by a library of yours.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_operator_declare(const char *schema);

/* ---------------------------------------------------------------------------------------------
 * Operators
 *
 * A package calls by name the operators that were not compiled into it: custom operators of torch that the model was
 * exported with, and torch's own operators that are called through the dispatcher. The built-in runtime has a few of
 * them (an error at load lists them); any other may be a function of yours, which is registered before the package is
 * loaded:
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
 * The function is called on the thread that runs the package, perhaps a worker of this library, on several at once, and
 * with zeros while a model is loaded. It may call this library, except for the graph that called it. The floating-point
 * environment is the default one there. The result of a material point must not depend on its neighbours: the library
 * chooses which points it runs together.
 *
 * A point for which there is no result gets NaN, and is then NON_FINITE or NOT_CONVERGED on its own. A function that
 * returns a status fails the run: NOT_CONVERGED and SINGULAR are recoverable, all others are fatal. The message is the
 * library's, of the call whose status it returns, or its own (neml2_error_record()). In a model, the points of a run
 * that failed recoverably are evaluated again one by one, and only the points for which it fails again get the status;
 * a graph or a solve returns it.
 *
 * On libtorch a package calls torch's own operator of this name, never your function. With the runtime "auto", a
 * registered function lets the built-in runtime be taken.
 * ------------------------------------------------------------------------------------------- */

/** One call of an operator that is a function of yours; it lives while the function runs. */
typedef struct neml2_operator_call neml2_operator_call;

/** Kind of an argument; a list of integers is INTEGER. NONE: it was not given. */
enum neml2_argument_kind {
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
 *  int, SymInt, float, bool and str, any of them with '?', and lists of all but str. ARGUMENT if it is no such schema,
 *  or if an operator of its name is registered already, or built in.
 *  Errors: FILE. Threads: any. */
NEML2_CAPI int32_t neml2_operator_register(const char *schema, neml2_operator_fn function, void *context);

/** Unregister an operator, by its name, "mylib::scale.overload", or its whole schema: when this returns, no thread is
 *  in the function, and none will call it again. A package that was loaded before fails with UNSUPPORTED when it calls
 *  the operator, even if the name is registered again. ARGUMENT if the function itself calls this.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_operator_unregister(const char *name);

/** Count the arguments of the schema (NEML2_INPUT), or its outputs (NEML2_OUTPUT).
 *  Threads: one. */
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
 *  Threads: one. */
NEML2_CAPI int32_t neml2_operator_call_inspect(neml2_argument_info *out, const neml2_operator_call *call,
                                               int64_t index);

/** A tensor argument, or a list of them: `*out[0]` is the first. They are row-major, borrowed from `call` with their
 *  memory, and must not be written; copy what you keep. `*out` is NULL for None, and so is an item of a list that is
 *  None. DTYPE if the argument is of another kind.
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

/** Give output `index`. `tensor` is *consumed* and set to NULL, even if it is refused: SHAPE or DTYPE if the package
 *  was compiled for another shape or element type, as far as its source tells. A tensor of neml2_tensor_create() is not
 *  copied; a tensor that was wrapped, or shares its memory, is.
 *  Errors: SHAPE, DTYPE, UNSUPPORTED. Threads: one. */
NEML2_CAPI int32_t neml2_operator_call_set_output(neml2_operator_call *call, int64_t index, neml2_tensor **tensor);

/* ---------------------------------------------------------------------------------------------
 * Devices
 *
 * Packages that were compiled for CUDA run on a libtorch that is built for it. Graphs and explicit models ran on an H200
 * (torch 2.11), implicit models on the CPU alone, with NEML2_RUNTIME_TENSORS.
 *
 * A model or a graph of a CUDA device takes and returns tensors of that device, which come and go through DLPack
 * without a copy; tensors of another device are UNSUPPORTED. A parameter can be set from the host. Work is put on the
 * stream of neml2_stream_set(), or on torch's current stream of the thread. Calls do not wait for it, with two
 * exceptions: each iteration of Newton's method waits for one flag, and if points failed, the call waits for their
 * number. So the status of a call does not tell NEML2_NON_FINITE, the report does. Synchronising values is up to the
 * caller, as with torch.
 *
 * Segments may be explicit, or implicit with a direct linear solver. UNSUPPORTED, by name, are substeps, Krylov
 * solvers, fixed batches, convergence = batch, arrays of the host (neml2_call_create()) and solving yourself
 * (neml2_solve_begin()). A promoted parameter of an implicit segment must be one value for all points (SHAPE). The
 * options `chunk`, `threads` and `capsule` are ignored.
 * ------------------------------------------------------------------------------------------- */

/** One more runtime: Newton's method and the chain rule, too, run by operators of libtorch. A model on CUDA always uses
 *  it; on the CPU it is for trying it out. */
enum neml2_experimental_runtime { NEML2_RUNTIME_TENSORS = 3 };

/** Put this thread's work on CUDA device `index` on `stream`, a cudaStream_t, from now on. NULL: on torch's current
 *  stream again.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_stream_set(int32_t index, void *stream);

/* ---------------------------------------------------------------------------------------------
 * Derivatives through steps
 *
 * A state that came of earlier steps moves with the parameters of the law, and so may a strain. Bind the derivatives of such
 * inputs, and the derivatives that neml2_call_bind_derivative() bound are total ones, by the chain rule:
 *
 *     neml2_call_bind_derivative(call, NEML2_PARAMETER, "stress", "E", slope, NEML2_FLOAT64, 6);
 *     neml2_call_derivative_step_stride_set(call, NEML2_PARAMETER, "stress", "E", POINTS * 6);
 *     neml2_call_bind_input_derivative(call, "stress~1", NEML2_PARAMETER, "E", old_slope, NEML2_FLOAT64, 6);
 *     status = neml2_call_run_steps(&made, call, POINTS, STEPS);
 *
 * has d(stress)/d(E) of the whole history after each step, all in one call: in lanes, each column of a parameter is
 * one solution more with the factors of Newton's method. neml2_call_run_steps() carries derivatives as it carries
 * history: the array holds the derivative of `x~1` before the first step, and in later steps it is the derivative of the
 * output `x` in the step before, which must be bound, and with a step stride if there is an `x~2`. The derivative of another
 * input is the same in all steps. An input without one does not move, so bind one for each history that the law has, zeros
 * if it begins fixed.
 * If all histories have a step stride, so that the states are known, solves begin at them, and derive alone.
 * By a history itself, `x~1` as NEML2_INPUT with the unit matrix for `x~1`, derivatives are by the value before the first
 * step.
 * ------------------------------------------------------------------------------------------- */

/** Bind the derivative of an input with respect to `variable`, an input (`kind` NEML2_INPUT) or a parameter
 *  (NEML2_PARAMETER), of the shape (input's point shape..., variable's point shape...), which is read; a point stride of 0 is
 *  one for all points. It replaces the unit matrix that an input is by itself. NULL removes it. It may overlap no
 *  array that is written. A run is UNSUPPORTED if the model has no kernels for all of it and no hypothesis, is seen
 *  through another view or a scheduler, if products with tangents or cotangents are bound, or if a derivative by
 *  that input was not compiled; points are not rescued, but under a hypothesis. So it is through steps if the block that
 *  becomes the derivative is NEML2_INPUT_FIRST, and neither has one component alone.
 *  Errors: NAME, SHAPE, DTYPE, UNSUPPORTED. Threads: one. */
NEML2_CAPI int32_t neml2_call_bind_input_derivative(neml2_call *call, const char *input, int32_t kind,
                                                    const char *variable, void *data, int32_t dtype,
                                                    int64_t point_stride);

/* ---------------------------------------------------------------------------------------------
 * Arrays on a device
 *
 * A model that computes on OpenCL, or on CUDA by the text of its kernels (see neml2_model_open()), takes the host's
 * arrays, and copies them there and back. A call may have arrays on the device instead, and a queue of yours:
 *
 *     neml2_call_memory memory = {.size = sizeof memory, .queue = queue, .component_stride = npoints};
 *
 *     neml2_call_memory_set(call, &memory);
 *     neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 1); // strain[6][npoints], on the device
 *     neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 1);
 *     neml2_call_run(call, npoints); // returns as soon as the work is in the queue
 *     your_assembly(queue, stress);  // follows it there
 *     status = neml2_call_wait(call);
 *
 * neml2_call_run() copies nothing to the host, and waits for nothing. It reads and writes the arrays when its turn comes in
 * the queue: what the queue was given before is done, and what it is given later finds the results. So it returns NEML2_OK:
 * statuses of points are in the report, on the device, and neml2_call_wait() returns the greatest. Points that are not
 * NEML2_OK are as neml2_call_run() has them: results of a point whose solve failed are left as they were. Memory that was
 * bound must stay until the queue has done its work, the model and the call need not. Stored parameters have the values
 * that they had when neml2_call_run() was called.
 *
 * An array of any role may be on the device, and a report, and derivatives of inputs, whose totals agree with the host's to
 * round-off. Not there, and refused by name: adjoints that are sums over the points, NEML2_REPORT_RESCUE_SOLVES, and what
 * the kernels of a text do not give. Solves (neml2_solve_begin_call()) are for arrays of the host.
 *
 * neml2_call_run_steps() puts all steps into the queue, and returns NEML2_OK as neml2_call_run() does, if `made` is NULL;
 * else it waits, as neml2_call_wait(), to tell how many were made. Once a point is not good, later steps write nothing, so
 * that arrays are as on the host: statuses are in the report, which has a row for each step if it has a step stride, and
 * neml2_call_wait() returns the status of that step. If a result has room for one step alone, all points go at once, or
 * if the option `chunk` or the memory says less, each step is evaluated twice.
 * ------------------------------------------------------------------------------------------- */

/** Kinds of pointers to arrays: an address on the device (on CUDA; on OpenCL of shared virtual memory), or a cl_mem
 *  of OpenCL, whose first element is the array's (a part of one is a sub-buffer). */
enum neml2_memory_kind { NEML2_MEMORY_ADDRESSES = 0, NEML2_MEMORY_BUFFERS = 1 };

/** Memory of a call on a device. */
typedef struct neml2_call_memory {
  int64_t size; /**< sizeof(neml2_call_memory) */
  void *queue;  /**< a cl_command_queue of the model's device, in order and in any context; or a cudaStream_t of
                                 its device, NULL for the default stream */
  int64_t component_stride; /**< elements from one value of a point to the next, in all arrays: the number of points
                                 for arrays [value][point], bound with a point stride of 1; 0: 1, for rows. One value for
                                 all points, of a point stride of 0, is dense */
  int32_t kind;             /**< NEML2_MEMORY_* */
  int32_t reserved;         /**< 0 */
} neml2_call_memory;

/** Say where the arrays of a call are from now on, and take back all that is bound; NULL: on the host again. UNSUPPORTED
 *  if the model does not compute by text on a device, or a device of OpenCL has no shared memory and `kind` is
 *  NEML2_MEMORY_ADDRESSES; ARGUMENT for a queue of another device, or one that is out of order.
 *  Errors: SHAPE, UNSUPPORTED, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_call_memory_set(neml2_call *call, const neml2_call_memory *memory);

/** Wait for the runs of a call over memory of a device, and return the greatest status of a point in all of them since the
 *  last wait. RUNTIME if the device failed. NEML2_OK at once if there were none.
 *  Errors: RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_call_wait(neml2_call *call);

/* ---------------------------------------------------------------------------------------------
 * Custom calls of XLA
 *
 * XLA, the compiler of jax, can evaluate a model as an operation of a program: it calls a handler with the buffers, which
 * are read and written where they are. On CUDA the model must be open on the same device by its text (see "Arrays on a
 * device"): its work goes to XLA's stream, and the handler waits for it, to tell of points that failed. The attributes of
 * the operation are
 *
 *     model      the neml2_model *, an integer of 64 bits; the model must be open when the operation runs
 *     arrays     a string: a line for each operand, and then for each result, of four fields with tabs between them: a
 *                number, NEML2_INPUT, NEML2_PARAMETER or NEML2_OUTPUT; the name; for a block of derivatives the name of
 *                the variable that it is by, after the kind of that variable and the name of the output, else nothing;
 *                and the values per point
 *     on_device  an integer of 64 bits, 1 on CUDA; else 0, or left out
 *
 * A buffer has the values of a point one after another. An operand has one value for each point, or one for all.
 * A parameter that is no operand must be set to one value: which of several is a point's, its buffers do not tell.
 * Several threads may run operations of a model at once. Status 1 is no error; points that failed are one, ABORTED, and
 * what cannot be done is FAILED_PRECONDITION, with the message of neml2_error_message().
 * ------------------------------------------------------------------------------------------- */

/** Get the handler of XLA's custom calls, a function of its typed interface, version 0: `XLA_FFI_Error *(XLA_FFI_CallFrame *)`.
 *  XLA refuses to register it for a version that it does not speak. Borrowed: it is there as long as the library.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_xla_handler_get(void **out);

/* ---------------------------------------------------------------------------------------------
 * Schedulers
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
 * If a scheduler has one device, the calling thread evaluates sub-batch after sub-batch on it. If it has several, each
 * has a thread of its own, and the next sub-batch goes to the device of the highest priority that has capacity left:
 * the points that it evaluates or that wait for it, and the points of its next sub-batch, are at most its capacity.
 * The option `chunk` divides sub-batches once more. Any number of threads may evaluate at once, and share the devices.
 *
 * Results are gathered where the inputs are, on the host or on a CUDA device. All devices use the model's values of
 * parameters; values that vary by point are sliced with the points. Adjoints that are one value for many points are
 * summed in the order of the points, whatever device had them. Which device evaluates a point depends on when they are
 * ready: results differ by as much as the devices do. With the option convergence = batch, a sub-batch converges as a
 * whole.
 *
 * Messages number failed points within the whole batch, as without a scheduler, and neml2_error_get() has an error for
 * each sub-batch with failed points. A sub-batch that cannot be evaluated (RUNTIME, MEMORY) ends the evaluation:
 * nothing new is begun, and the sub-batches under way are waited for. The model stays usable, and results of some
 * points may have been written. One such error is returned as it is. Of several the worst is returned, and
 * neml2_error_get() has all, including the sub-batches whose points failed.
 *
 * A model of several devices cannot be solved by the caller (neml2_solve_begin()). If it has fixed batches, its
 * sub-batches must be multiples of them.
 * ------------------------------------------------------------------------------------------- */

/** A scheduler without devices. Owned.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_scheduler_create(neml2_scheduler **out);

/** A device of a scheduler. The next sub-batch goes to the device with the greatest priority among the devices with
 *  capacity left; if several have it, to the one that was added first. */
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

/** Add a device. ARGUMENT if a number is out of bounds, or if the device is there already: two would contend for it.
 *  (To compare runtimes, the CPU may be there once for each of BUILTIN, LIBTORCH and TENSORS.)
 *  Errors: UNSUPPORTED. Threads: one. */
NEML2_CAPI int32_t neml2_scheduler_add(neml2_scheduler *scheduler, const neml2_device *device);

/** Count the devices.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_scheduler_count(int64_t *out, const neml2_scheduler *scheduler);

/** Inspect the device that was added as number `index`, with the capacity that it has.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_scheduler_inspect(neml2_device *out, const neml2_scheduler *scheduler, int64_t index);

/** Keep one device, for a process of many on one node, as MPI's: the device of number `local_rank` modulo their count.
 *  `local_rank` counts the `local_size` processes of this node from 0. Several processes may share a device. ARGUMENT
 *  if there are fewer processes than devices, since some would be idle: start more, or add fewer devices. Nothing here
 *  is linked with MPI; neml2_capi_mpi.h and neml2_capi_mpi.f90, and neml2_capi.mpi in Python, ask it for both numbers.
 *  Threads: one. */
NEML2_CAPI int32_t neml2_scheduler_keep_rank(neml2_scheduler *scheduler, int64_t local_rank, int64_t local_size);

/** Free the handle and set it to NULL. Models that were opened with it keep what they need.
 *  Threads: one. */
NEML2_CAPI void neml2_scheduler_free(neml2_scheduler **scheduler);

/** Count the points that device `index` of a model's scheduler has evaluated since the model was opened: what a batch
 *  size or a priority is worth. ARGUMENT if the model has no such device.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_model_points(int64_t *out, const neml2_model *model, int64_t index);

#ifdef __cplusplus
}
#endif

#endif

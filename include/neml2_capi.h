/*
 * neml2_capi.h: run ahead-of-time compiled material models from any language.
 *
 * `neml2-compile` lowers a constitutive model (elasticity, plasticity, crystal plasticity) to an artifact: a folder
 * with metadata.json and one .pt2 package per compiled graph. This header is the stable contract for running such an
 * artifact. It is C99, and the only ABI: neml2_capi.hpp (C++17), neml2_capi.f90 (Fortran 2018) and the Python
 * package are written over it. neml2_capi_experimental.h beside it declares what may still change.
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
 * The sections begin with what every host needs:
 *
 *   Opening             say what to open: an artifact, a device, an element type
 *   Describing          what variables, histories and derivatives a model has
 *   Calls               bind arrays by name once, evaluate blocks of points again and again
 *   Calls, advanced     consistent tangents and other derivatives, and the report of every point
 *   Steps               replay histories: blocks of points through many steps, without coming back in between
 *   Tensors             arrays as handles: own, wrapped, shared, exchanged through DLPack
 *   Evaluation          of models over tensors of any batch shape: outputs, Jacobians, products
 *   Parameters, Options change material constants and the Newton solver
 *   Bounds              where a law is valid, and what becomes of points beyond
 *   Solving yourself    your own Newton loop, or SNES or KINSOL, over the nonlinear systems of a model
 *   Log                 messages of the solvers and the loader: Newton's history, for example
 *   Interrupting        end a long evaluation, at Ctrl-C for example
 *
 * neml2_capi_experimental.h goes on with graphs (packages alone), libtorch, operators of yours, CUDA devices, and
 * schedulers, which spread points over devices.
 *
 * The ABI of this header is frozen: a program that was built with it runs with every later library of the same major
 * version. What neml2_capi_experimental.h declares may change in any release; a program that uses something that has
 * changed does not start, and the dynamic loader says why. docs/design/frozen-abi.md has the promise.
 *
 * A host of an implicit model does five things more than the example:
 *
 * - It binds the history too: `x~1` is `x` at the previous step, and every input must be bound.
 * - It lets state variables interleave in one array, by a point stride that is greater than their size.
 * - It binds the tangent (neml2_call_bind_derivative()) in the order of its own stiffness.
 * - It binds a status per point. If neml2_call_run() returns a positive number, it cuts the step: the old state is
 *   still there.
 * - It gives every thread a call of its own over one shared model.
 *
 * examples/ has all of them: c/, fem/ and umat/.
 *
 *
 * CONVENTIONS
 *
 * Names       neml2_<handle>_<part>_<verb>: the handle, a part of it, and what is done. open and create make a handle,
 *             free ends it. A list has count, find (the position of a name) and inspect (fills a structure). What can
 *             change has get and set. Out-parameters come first, then the handle, then the `kind` (NEML2_INPUT,
 *             NEML2_OUTPUT, NEML2_PARAMETER), then the name or the index.
 * Status      Every function that can fail returns an int32_t. 0 is success. A positive status is recoverable: some
 *             material points failed, and the others hold good results. If a solve failed, cut the step and try again.
 *             A negative status is fatal: the request was wrong, and nothing was changed. neml2_error_message() says
 *             what was wrong, what was expected and what to do. No function exits, aborts, prints or lets an exception
 *             out.
 * Ownership   A function that fills `neml2_X **out` gives you an *owned* handle: free it with neml2_X_free(), which
 *             accepts NULL and sets the handle to NULL. A pointer that is *borrowed from X* is valid until X is freed.
 *             Arguments are borrowed for the length of the call unless they are marked *consumed*. A function that
 *             fails leaves its out-parameters as they were.
 * Shapes      Row-major. A variable of one material point has the shape (sub-batch axes..., base axes...), its *point
 *             shape*; a batch of points has the batch axes before it. Sizes, strides and counts are int64_t and count
 *             elements, not bytes. C's [point][i] is Fortran's (i, point): the same memory.
 * Tensors     A symmetric second-order tensor (SR2) is stored in Mandel notation:
 *             xx, yy, zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy. Abaqus/Standard orders 11, 22, 33, 12, 13, 23
 *             and uses engineering shear strains (gamma = 2 eps): examples/umat converts.
 * History     `x~1` is the value of `x` at the previous step, `x~2` the one before. Every input must be bound, history
 *             too: there are no defaults.
 * Units       The artifact's: numbers pass through as they are.
 * Floating    The floating-point environment (traps, rounding, flush-to-zero) is set to its default inside and
 *   point     restored on return: hosts that trap can call.
 * Handles     Every function checks its handles. A freed handle, a copy of one, a handle of another kind and a stray
 *             pointer are ARGUMENT, and the message says which it is. Freeing a handle twice does nothing but log a
 *             warning. Handles are opaque: copy and compare them only. Names and shapes that a structure lends end
 *             with their handle, and you must keep the memory of bound and wrapped arrays: neither can be checked.
 * Stack       A thread needs 64 kB, 128 kB for large laws such as crystal plasticity, and more for libtorch and for
 *             functions of yours.
 * Errors      Every function may return ARGUMENT (a NULL, or a value out of its bounds), MEMORY or INTERNAL (a defect).
 *             Functions that evaluate may return INTERRUPTED, if the host has called neml2_interrupt_set(). All other
 *             fatal statuses of a function stand at the end of its comment, after "Errors:", without their prefix
 *             NEML2_ERROR_. Functions that return void cannot fail.
 * Threads     The comment of every function ends with one of two words. `any`: any number of threads may call it at
 *             once, also with the same handle, and get the same results as one after another. `one`: use each handle of
 *             this kind (a call, a solve, a report, a tensor that is written) in one thread at a time; different
 *             threads may use different handles. It is ARGUMENT to enter a handle while another function runs on it, in
 *             another thread or from a function of yours that the library called. Concurrent writes to a tensor are not
 *             detected. If a handle is freed while functions run on it, it is invalid for all others at once; its
 *             object is destroyed when the last of them returns, and the log has a warning. Errors are kept per thread.
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

/** The ABI that this header describes: 1000 * major + minor. A minor version may add functions, fields at the end of
 *  structures, statuses, causes, roles, kinds and options; it removes nothing. Treat a positive status that you do not
 *  know as recoverable, and a negative one as fatal. */
#define NEML2_ABI_VERSION 1000

/** The ABI of the library that is loaded, as 1000 * major + minor. Its meaning never changes. It cannot fail.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_abi_version(void);

/** The release of the library, for example "1.0.0". Borrowed, never freed. It cannot fail.
 *  Threads: any. */
NEML2_CAPI const char *neml2_version(void);

/* ---------------------------------------------------------------------------------------------
 * Status and errors
 *
 * A point is NEML2_NON_FINITE if any of its results is NaN or infinite: an output, a derivative block, a product with
 * tangents or cotangents, a derivative with respect to a parameter, its own part of a sum over points. It is
 * NON_FINITE, too, if it was given a NaN (an input, a parameter, a tangent or a cotangent), or if it was given an
 * infinite number and its solve failed; a smaller step cures neither. The message names the first such point and the
 * quantity.
 * A law with finite values may have an infinite tangent, as sqrt(x) has at 0, where many jobs begin: a host must not
 * go on with it.
 * ------------------------------------------------------------------------------------------- */

/** Status of a call. Those that are not negative are also the statuses of one material point. */
enum neml2_status {
  NEML2_OK = 0,

  /* Recoverable: some material points failed. The others hold good results. */
  NEML2_NON_FINITE = 1,    /**< a value or a derivative is NaN or infinite, and was written as it is */
  NEML2_NOT_CONVERGED = 2, /**< a nonlinear solve did not converge, or met NaN; nothing was written */
  NEML2_SINGULAR = 3,      /**< the Jacobian of a nonlinear solve is singular; nothing was written */
  NEML2_OUT_OF_BOUNDS = 4, /**< an input or a parameter is out of its bounds, see the section; nothing was written */

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

/** Cause of a failure that a program may cure, if the status alone does not tell it. */
enum neml2_cause {
  NEML2_CAUSE_NONE = 0,             /**< the status says it all */
  NEML2_CAUSE_LIBTORCH_MISSING = 1, /**< UNSUPPORTED: libtorch was not found; see neml2_libtorch_suggest() */
  NEML2_CAUSE_SCHEMA_UNKNOWN = 2,   /**< UNSUPPORTED: see neml2_operator_declare() */
  NEML2_CAUSE_MATRIX_SINGULAR = 3,  /**< RUNTIME: a package was to solve with a singular matrix */
  NEML2_CAUSE_OF_HOST = 1000        /**< this and greater ones are yours: see neml2_error_record() */
};

/** The status of this thread's last failed call, or NEML2_OK if none has failed yet. It cannot fail.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_error_status(void);

/** The cause of this thread's last failed call: NEML2_CAUSE_*, or a number of the host's. It cannot fail.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_error_cause(void);

/** Copy the message of this thread's last failed call to `buffer`, cut between characters to at most `capacity` bytes
 *  with its terminating zero. `needed` (or NULL) receives the size of the whole message with its zero. `buffer` may be
 *  NULL if `capacity` is 0. It cannot fail.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_error_message(char *buffer, int64_t capacity, int64_t *needed);

/** Copy, as neml2_error_message() does, the name of the variable, parameter, option, segment or file that the error is
 *  about; it is empty if there is none. It cannot fail.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_error_subject(char *buffer, int64_t capacity, int64_t *needed);

/** Count the errors of this thread's last failed call: 0 if none has failed yet, else 1, or more if devices of a
 *  scheduler failed side by side. They are in the order of their points.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_error_count(int64_t *out);

/** The status and the cause of one of those errors, and its message, copied as by neml2_error_message(). `status` and
 *  `cause` may be NULL. The call's own status is positive if all of its errors are: then the same call may succeed with
 *  a smaller step.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_error_get(int32_t *status, int32_t *cause, char *buffer, int64_t capacity, int64_t *needed,
                                   int64_t index);

/** Record an error of this thread that was found outside of the library, in a solver or in the face of another
 *  language, so that it is read like the others. `cause` is one of NEML2_CAUSE_*, or a number of yours from
 *  NEML2_CAUSE_OF_HOST on, by which you recognize the error when the library has passed it on. `subject` and `message`
 *  are copied, and NULL is empty. Returns `status`, which must not be NEML2_OK.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_error_record(int32_t status, int32_t cause, const char *subject, const char *message);

/* ---------------------------------------------------------------------------------------------
 * Handles and element types
 * ------------------------------------------------------------------------------------------- */

/** A compiled material model. Any number of threads may evaluate it at once. */
typedef struct neml2_model neml2_model;

/** Arrays of a host, bound to the variables of a model; one per thread. */
typedef struct neml2_call neml2_call;

/** An n-dimensional array in memory of the host, or of a CUDA device. The handle has one owner; its storage is counted,
 *  and several handles may share it. */
typedef struct neml2_tensor neml2_tensor;

/** Statuses, iterations and norms of the points of one evaluation over tensors. */
typedef struct neml2_report neml2_report;

/** An evaluation whose nonlinear systems the caller solves. */
typedef struct neml2_solve neml2_solve;

/** The nonlinear systems of one implicit segment, at all points. */
typedef struct neml2_system neml2_system;

/** Devices over which a model spreads its points: see neml2_capi_experimental.h. */
typedef struct neml2_scheduler neml2_scheduler;

/** Element types. In a structure, 0 is the usual one. */
enum neml2_dtype {
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

/** Kind of device, by the numbers of DLPack. In a structure, 0 is the CPU. Arrays of a model on OpenCL are the host's:
 *  see neml2_model_open(). */
enum neml2_device_type { NEML2_DEVICE_CPU = 1, NEML2_DEVICE_CUDA = 2, NEML2_DEVICE_OPENCL = 4 };

/** Runtime of packages. BUILTIN needs nothing else. LIBTORCH uses the libtorch of an installed torch. AUTO takes, for
 *  each package, the built-in runtime if it has every function that the package calls, else libtorch. */
enum neml2_runtime { NEML2_RUNTIME_AUTO = 0, NEML2_RUNTIME_BUILTIN = 1, NEML2_RUNTIME_LIBTORCH = 2 };

/** Role of a variable or of an array. The first four are the *kinds* of variables; implicit segments solve for the
 *  unknowns. An array that is bound to a call has one of these roles:
 *
 *  NEML2_INPUT       read; every input must be bound when the call runs. A host of NEML2's runtime may bind a guess of
 *                    an unknown that is not an input: it is accepted and not read, because a predictor gives the guess.
 *  NEML2_OUTPUT      written, if it is bound. It may be the very array of an input, with the same stride, or one that
 *                    overlaps no other: arrays of one stride may interleave, arrays of unequal strides must lie apart.
 *                    An output over its own history (`x` over `x~1`) is changed for the points that succeeded: to
 *                    retry, restore your own copy first.
 *  NEML2_PARAMETER   read instead of the stored value, in this call only: one for all points or one for each
 *  NEML2_TANGENT     read: the direction of an input; zero if it is not bound
 *  NEML2_JVP         written: the derivative of an output along the tangents, see neml2_model_jvp(). Through an
 *                    implicit model it costs about one more Newton step; in a call that binds derivative blocks, too,
 *                    it is their product, the same up to round-off.
 *  NEML2_COTANGENT   read: the cotangent of an output; zero if it is not bound
 *  NEML2_ADJOINT     written: the adjoint of an input, see neml2_model_vjp(). With a point stride of 0 it is the sum
 *                    over all points that did not fail.
 *  NEML2_PARAMETER_ADJOINT   written: the adjoint of a parameter, in the same way */
enum neml2_role {
  NEML2_INPUT = 0,
  NEML2_OUTPUT = 1,
  NEML2_PARAMETER = 2,
  NEML2_UNKNOWN = 3,
  NEML2_TANGENT = 4,
  NEML2_JVP = 5,
  NEML2_COTANGENT = 6,
  NEML2_ADJOINT = 7,
  NEML2_PARAMETER_ADJOINT = 8
};

/** Hypothesis of an element: which components of the strain and of the stress it has. The other strains are zero, or they
 *  are solved for at each point so that their stresses vanish. The section on opening has both. */
enum neml2_hypothesis {
  NEML2_TRIDIMENSIONAL = 0,           /**< all six */
  NEML2_PLANE_STRAIN = 1,             /**< xx, yy, zz, xy: zz is what the host gives, 0 or less the thermal strain */
  NEML2_AXISYMMETRICAL = 2,           /**< rr, zz, tt, rz: the second component is along the axis */
  NEML2_GENERALISED_PLANE_STRAIN = 3, /**< xx, yy, zz, xy */
  NEML2_PLANE_STRESS = 4,             /**< xx, yy, xy */
  NEML2_UNIAXIAL = 5,                 /**< xx: a truss */
  NEML2_BEAM = 6,                     /**< xx, xz, xy: a beam with two shears */
  NEML2_PLANE_BEAM = 7,               /**< xx, xy: a beam with one shear, or with torsion */
  NEML2_SHELL = 8,                    /**< xx, yy, yz, xz, xy: a plate with transverse shears */
  NEML2_AXISYMMETRICAL_GENERALISED_PLANE_STRAIN = 9 /**< rr, zz, tt */
};

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
 * different releases understand each other: a field that one of them does not know is 0. It is ARGUMENT, naming the
 * field, if `size` is none of the sizes of the structure, or if a field is given that the library does not know.
 *
 * A model may be opened under the *hypothesis* of an element. Its strain and stress then have the components of the
 * hypothesis only, in the order of Mandel notation, shears times sqrt(2):
 *
 *     hypothesis                                strain and stress     zero strains   strains that are solved for
 *     PLANE_STRAIN, AXISYMMETRICAL,
 *       GENERALISED_PLANE_STRAIN                xx, yy, zz, xy        yz, xz         none
 *     PLANE_STRESS                              xx, yy, xy            none           zz, yz, xz
 *     UNIAXIAL                                  xx                    none           yy, zz, yz, xz, xy
 *     BEAM                                      xx, xz, xy            none           yy, zz, yz
 *     PLANE_BEAM                                xx, xy                none           yy, zz, yz, xz
 *     SHELL                                     xx, yy, yz, xz, xy    none           zz
 *     AXISYMMETRICAL_GENERALISED_PLANE_STRAIN   xx, yy, zz            yz, xz, xy     none
 *
 * Strains that are solved for are the output `strain_transverse`, named after the strain. If the law has a history, their
 * values of the step before are the input `strain_transverse~1`: the solve begins there, and they complete the law's own
 * `strain~1`. A law with a history of the stress has the stresses of zero strains as the pair `stress_transverse`, too. All
 * other variables are the law's. Derivatives are condensed, and those are there for which the law has what that needs, the
 * derivative of the stress with respect to the strain above all. A point is NOT_CONVERGED, too, if its strains are not found
 * within `miters` evaluations of the law. convergence = batch, solves of your own and a strain measure are UNSUPPORTED.
 * ------------------------------------------------------------------------------------------- */

/** Strain that a law of small strain is given under large deformation, and what its stress T then is. C = F^T F.
 *
 *  NEML2_STRAIN_LOGARITHMIC      ln(C) / 2, and T is conjugate to it (Miehe, Apel, Lambrecht, Comput. Methods Appl. Mech.
 *                                Eng. 191 (2002) 3383). Hencky's elasticity, and the plasticity of metals
 *  NEML2_STRAIN_GREEN_LAGRANGE   (C - 1) / 2, and T is the second Piola-Kirchhoff stress. St. Venant-Kirchhoff's elasticity
 *  NEML2_STRAIN_COROTATIONAL     ln(U) of F = R U, and T = R^T sigma R is Cauchy's stress in axes that turn with R */
enum neml2_strain_measure {
  NEML2_STRAIN_OF_LAW = 0,
  NEML2_STRAIN_LOGARITHMIC = 1,
  NEML2_STRAIN_GREEN_LAGRANGE = 2,
  NEML2_STRAIN_COROTATIONAL = 3
};

/** Stress that a model with a strain measure gives: the output pk1_stress (3, 3), P = J sigma F^-T; or the symmetric
 *  cauchy_stress, sigma; pk2_stress, F^-1 P; kirchhoff_stress, J sigma. */
enum neml2_stress_measure {
  NEML2_STRESS_PK1 = 0,
  NEML2_STRESS_CAUCHY = 1,
  NEML2_STRESS_PK2 = 2,
  NEML2_STRESS_KIRCHHOFF = 3
};

/** Kernels that a program was linked with, see neml2_source::kernels. */
struct neml2_kernel_set;

/** Model or graph to open, its device and element type. Texts and bytes are borrowed for the length of the call. */
typedef struct neml2_source {
  int64_t size;         /**< sizeof(neml2_source) */
  const char *path;     /**< an artifact, a HIT stub or a package (.pt2): see neml2_model_open(), neml2_graph_open() */
  const char *name;     /**< the model of a stub; else NULL */
  const void *content;  /**< instead of `path`, a package or an artifact in memory: see neml2_model_open() */
  int64_t content_size; /**< its bytes */
  const neml2_scheduler *scheduler; /**< the devices to spread points over, instead of `device`; or NULL */
  int32_t dtype;                    /**< of a model, NEML2_FLOAT64 (also 0) or NEML2_FLOAT32: which packages */
  int32_t device;                   /**< NEML2_DEVICE_*; 0: the CPU, and of a package alone, what it was compiled for */
  int32_t device_index;             /**< which of the devices of CUDA, or of OpenCL */
  int32_t runtime;                  /**< NEML2_RUNTIME_* */
  int32_t strain_measure;           /**< NEML2_STRAIN_*, around a law of small strain; see neml2_model_open() */
  int32_t stress_measure;           /**< NEML2_STRESS_*, with a strain measure */
  int32_t material_axes;            /**< 1: tensors are turned by an input `material_axes` of each point */
  int32_t hypothesis;               /**< of a model: NEML2_PLANE_STRESS and the like, or 0 for all components */
  const char *strain;               /**< the input that is the strain; NULL: found by its name */
  const char *stress;               /**< the output that is the stress; NULL: found by its name */
  const struct neml2_kernel_set *kernels; /**< instead of code of the artifact: see neml2_model_open(); NULL: none */
} neml2_source;

/** Open the artifact at `path`: its folder, a device folder in it, its metadata.json or <model>_meta.json; or a HIT
 *  stub, the <name>_aoti.i file that neml2-compile writes beside an artifact, with the `name` of a model if it has
 *  several. Reads artifacts of NEML2 3.0.0 to 3.1. The artifact_path of a stub is taken relative to the stub; if that
 *  is gone, the artifact is looked for beside the stub. The [Solvers] settings of a stub of NEML2 3.0.4 to 3.0.6 hold.
 *  An artifact in memory (`content`) is a zip archive of its folder, with metadata.json at the root and entries that
 *  are stored, not compressed; it is copied. The needs of the packages are checked first: the instruction set, the C
 *  library, every function and operator that they call; the message names what is missing.
 *  With `kernels`, which are compiled into the program, no code is loaded: a source whose artifact is in memory opens no
 *  file, and works in a static program. `neml2-capi static ARTIFACT -o law.c` writes the kernels in C, with the archive
 *  and a function that returns the whole source. They run on the CPU; ARTIFACT if they are not of this artifact's graphs.
 *  On NEML2_DEVICE_OPENCL a model runs its kernels, which `neml2-capi build-kernels ARTIFACT --target opencl` writes as
 *  text; they are compiled here, and kept in the user's folder of caches. Its inputs, parameters and results are arrays
 *  of the host. What text does not give is UNSUPPORTED when it is asked for: the residual history, line searches,
 *  convergence = batch.
 *  With a strain measure the model has an input `deformation_gradient` (3, 3), F, in place of the law's strain, and two
 *  more outputs: the law's strain, which becomes its history, and the stress of the stress measure. All else is the
 *  law's, its own stress T too, in axes that do not turn. Derivatives by the strain become derivatives by F: of the
 *  stress the consistent tangent, d pk1_stress / d deformation_gradient (3, 3, 3, 3) for example. A point whose F has no
 *  determinant above 0 is NOT_CONVERGED, and the message says so.
 *  With material axes the model has one more input, `material_axes` (3, 3), whose rows are the unit vectors of the
 *  material's axes. All symmetric tensors (SR2), tensors (R2) and vectors (Vec, WR2) that it takes and gives are in the
 *  axes of the caller, history too, and are turned for the law; so are derivatives. With both, F and the axes are of the
 *  unturned material. Owned.
 *  Errors: NAME, SHAPE, DTYPE, FILE, ARTIFACT, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_model_open(neml2_model **out, const neml2_source *source);

/** Free the handle and set it to NULL. Calls and solves made from the model keep what they need.
 *  Threads: any. */
NEML2_CAPI void neml2_model_free(neml2_model **model);

/* ---------------------------------------------------------------------------------------------
 * Describing
 *
 * The items of a kind are counted, found by name and inspected by their position, from 0 on. inspect fills a structure;
 * texts and arrays in it are borrowed from the handle.
 * ------------------------------------------------------------------------------------------- */

/** A model. A model with a scheduler is on the CPU, and takes tensors of any device. */
typedef struct neml2_model_info {
  int64_t size;         /**< sizeof(neml2_model_info) */
  int32_t dtype;        /**< of the floating-point variables: what the packages compute in, which neml2-compile 3.1.0
                             makes float64 for `--dtype float32`, too */
  int32_t device;       /**< where inputs, parameters and results are: NEML2_DEVICE_* */
  int32_t device_index; /**< which of the CUDA devices */
  int32_t runtime;      /**< NEML2_RUNTIME_BUILTIN, or another if one package runs on it. Of a model with a scheduler,
                             on its first device */
} neml2_model_info;

/** Inspect a model.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_model_inspect(neml2_model_info *out, const neml2_model *model);

/** Count the variables of a kind.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_model_variable_count(int64_t *out, const neml2_model *model, int32_t kind);

/** The position of the variable `name` among its kind. If there is none, NAME, with a message that lists the names.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_model_variable_find(int64_t *out, const neml2_model *model, int32_t kind, const char *name);

/** A variable of a model. Its *point shape* has `ndim` sizes: first the `sub_ndim` sub-batch axes, then the base
 *  axes. */
typedef struct neml2_variable_info {
  int64_t size; /**< sizeof(neml2_variable_info) */
  const char *name;
  const char
      *type; /**< the mathematical type, as NEML2 names it: "SR2", "Scalar"; empty for parameters. Of a tensor under
                         a hypothesis with its components: "SR2(xx, yy, xy)" */
  int64_t ndim;
  int64_t sub_ndim;
  const int64_t *shape; /**< `ndim` sizes */
  int32_t dtype;
  int32_t kind; /**< NEML2_INPUT and so on */
} neml2_variable_info;

/** Inspect variable `index` of a kind.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_model_variable_inspect(neml2_variable_info *out, const neml2_model *model, int32_t kind,
                                                int64_t index);

/** Count the derivatives that were compiled with respect to inputs (`kind` NEML2_INPUT) or parameters
 *  (NEML2_PARAMETER).
 *  Threads: any. */
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
  int32_t batched;      /**< 0 if the block is the same for all points */
  int32_t kind;         /**< of the variable: NEML2_INPUT or NEML2_PARAMETER */
} neml2_derivative_info;

/** Inspect derivative `index` with respect to variables of a kind.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_model_derivative_inspect(neml2_derivative_info *out, const neml2_model *model, int32_t kind,
                                                  int64_t index);

/** Count the inputs that are history: `x~1`, `x~2` and so on, the values of `x` one and two steps before.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_model_history_count(int64_t *out, const neml2_model *model);

/** A history: the input `x~n`, and what it becomes at the next step; -1 if the model has no such variable. */
typedef struct neml2_history_info {
  int64_t size;    /**< sizeof(neml2_history_info) */
  int64_t input;   /**< the position of the input `x~n` */
  int64_t age;     /**< n */
  int64_t output;  /**< the position of the output `x` */
  int64_t current; /**< the position of the input `x`, which is a force */
} neml2_history_info;

/** Inspect history `index`.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_model_history_inspect(neml2_history_info *out, const neml2_model *model, int64_t index);

/** Count the bounds of inputs and parameters that the artifact has: see the section on bounds.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_model_bound_count(int64_t *out, const neml2_model *model);

/** Bounds of one input or parameter, which hold component by component; a component that has none is infinite there. */
typedef struct neml2_bound_info {
  int64_t size;        /**< sizeof(neml2_bound_info) */
  int64_t variable;    /**< the position of the input or parameter */
  int64_t ncomponents; /**< numbers of one value */
  const double *lower; /**< `ncomponents` numbers */
  const double *upper; /**< `ncomponents` numbers */
  int32_t kind;        /**< of the variable: NEML2_INPUT or NEML2_PARAMETER */
  int32_t physical;    /**< 1: beyond them a value has no meaning; 0: the law is not valid there */
} neml2_bound_info;

/** Inspect bound `index`. The arrays are borrowed from `model`. A model with a hypothesis or a strain measure shows those
 *  bounds of its law that are of its own inputs, and looks at all.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_model_bound_inspect(neml2_bound_info *out, const neml2_model *model, int64_t index);

/** Describe a model, as neml2_source_describe() does. `buffer`, `capacity` and `needed` as in
 *  neml2_error_message().
 *  Threads: any. */
NEML2_CAPI int32_t neml2_model_describe(char *buffer, int64_t capacity, int64_t *needed, const neml2_model *model);

/** The SHA-256 of what the artifact of a model computes, in hexadecimal, as files of states tell it: of its metadata, and
 *  of each package or, without packages, of the graphs of its kernels. It is the same for kernels that are built for
 *  other processors. Reads the files of the artifact. `buffer`, `capacity` and `needed` as in neml2_error_message().
 *  Errors: FILE, ARTIFACT. Threads: any. */
NEML2_CAPI int32_t neml2_model_checksum(char *buffer, int64_t capacity, int64_t *needed, const neml2_model *model);

/** Describe an artifact by a JSON document: inputs, outputs, parameters, segments with their packages, the derivatives
 *  that were compiled, solver settings. The document has the same form for every schema of NEML2. No package is loaded,
 *  and `runtime` is ignored. `buffer`, `capacity` and `needed` as in neml2_error_message().
 *  Errors: NAME, DTYPE, FILE, ARTIFACT, UNSUPPORTED. Threads: any. */
NEML2_CAPI int32_t neml2_source_describe(char *buffer, int64_t capacity, int64_t *needed, const neml2_source *source);

/* ---------------------------------------------------------------------------------------------
 * Calls
 *
 * A call binds arrays of the host to the model's variables by name, once, and evaluates the points in them any number
 * of times: nothing is allocated after the first run.
 *
 * An array is a pointer to the first point, an element type and a *point stride*: the distance in elements from one
 * point to the next. Within a point the values are row-major and dense. A point stride of 0 means one value for all
 * points. A stride greater than the point's size lets state variables interleave; a smaller one is SHAPE. A model of
 * float64 takes NEML2_FLOAT64 only; anything else is DTYPE. Binding again replaces the array, and a NULL pointer
 * removes it. The arrays must stay where they are until the last run.
 * ------------------------------------------------------------------------------------------- */

/** A call without bindings. It keeps the model alive. Owned.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_call_create(neml2_call **out, const neml2_model *model);

/** Bind an array to the variable `name`, in a role (enum neml2_role). Arrays that are read are never changed. The point
 *  stride of a written array may not be 0, except of adjoints. UNSUPPORTED if a derivative was not compiled.
 *  Errors: NAME, SHAPE, DTYPE, UNSUPPORTED. Threads: one. */
NEML2_CAPI int32_t neml2_call_bind(neml2_call *call, int32_t role, const char *name, void *data, int32_t dtype,
                                   int64_t point_stride);

/** Evaluate `npoints` material points; 0 points need no bindings. Returns NEML2_OK, or the greatest status of any
 *  point, or an error. The outputs of points of a status above NEML2_NON_FINITE are left as they were.
 *  ARGUMENT if arrays overlap that must not; MISSING if an input is not bound, or nothing that could be written.
 *  Everything is checked before the first point. Results of earlier chunks of points can have been written only if a
 *  package itself fails (RUNTIME), memory ends (MEMORY), or a derivative is undefined for the numbers given, along the
 *  sites of a sub-batch or through substeps (UNSUPPORTED).
 *  Errors: MISSING, SHAPE, UNSUPPORTED, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_call_run(neml2_call *call, int64_t npoints);

/** Write the state of `npoints` points to the file `path`, by which a run is continued: the values of all bound inputs
 *  that are history (`x~1`, `x~2`) or the first guess of an output. `step` and `time` are yours, and are given back. The
 *  file is of safetensors, little-endian, with checksums of the artifact and of itself, and with the hypothesis, the strain
 *  measure and the material axes of the model; it gets its name when it is whole, and replaces the one before. MISSING if
 *  such an input is not bound.
 *  Errors: MISSING, FILE. Threads: one. */
NEML2_CAPI int32_t neml2_call_state_save(neml2_call *call, const char *path, int64_t npoints, int64_t step,
                                         double time);

/** Read what neml2_call_state_save() wrote into the arrays of the bound inputs, which must be memory that can be written.
 *  `step` and `time` receive what was given then, unless they are NULL. FILE if the file is damaged, ARTIFACT if it is
 *  of another artifact, or of a model with another hypothesis, strain measure or material axes, SHAPE if it is of another
 *  number of points, NAME if it is of other variables; then no array was written. A file of 1.0.0rc1 tells of none of the
 *  three: it is taken for the law's as it is.
 *  Errors: MISSING, FILE, ARTIFACT, SHAPE, NAME, DTYPE. Threads: one. */
NEML2_CAPI int32_t neml2_call_state_load(int64_t *step, double *time, neml2_call *call, const char *path,
                                         int64_t npoints);

/** Free the handle and set it to NULL. The arrays are yours, and stay.
 *  Threads: one. */
NEML2_CAPI void neml2_call_free(neml2_call **call);

/* ---------------------------------------------------------------------------------------------
 * Calls, advanced
 * ------------------------------------------------------------------------------------------- */

/** Bind a derivative of `output` with respect to `variable`, an input (`kind` NEML2_INPUT) or a parameter
 *  (NEML2_PARAMETER): of an implicit model the consistent tangent. Its block is written for every point, even if all
 *  points have the same; see neml2_model_derivative_inspect() for its shape, and neml2_call_block_order_set().
 *  UNSUPPORTED if it was not compiled. It may overlap no other array.
 *  Errors: NAME, SHAPE, DTYPE, UNSUPPORTED. Threads: one. */
NEML2_CAPI int32_t neml2_call_bind_derivative(neml2_call *call, int32_t kind, const char *output, const char *variable,
                                              void *data, int32_t dtype, int64_t point_stride);

/** The order of the components in a block: the output's before the variable's, or the other way round. */
enum neml2_block_order { NEML2_OUTPUT_FIRST = 0, NEML2_INPUT_FIRST = 1 };

/** The order of the components in the blocks of a call: NEML2_OUTPUT_FIRST, the default, has [point][output][input],
 *  which is (input, output, point) in Fortran; NEML2_INPUT_FIRST the transpose, (output, input, point) in Fortran, as
 *  Abaqus wants DDSDDE.
 *  Threads: one. */
NEML2_CAPI int32_t neml2_call_block_order_set(neml2_call *call, int32_t order);

/** Quantities that an evaluation can report of each material point. */
enum neml2_report_kind {
  NEML2_REPORT_STATUS = 0,           /**< int32: NEML2_OK, NON_FINITE, NOT_CONVERGED, SINGULAR, ... */
  NEML2_REPORT_ITERATIONS = 1,       /**< int32: Newton steps made, over all implicit segments */
  NEML2_REPORT_RESIDUAL_NORM = 2,    /**< float64: last |r|, the greatest over the implicit segments; 0 without one */
  NEML2_REPORT_RESIDUAL_HISTORY = 3, /**< float64, `miters` values: |r| at the initial guess and after each step of
                                          the last implicit segment, with substeps of its whole increment; NaN
                                          beyond */
  NEML2_REPORT_SUGGESTED_CUT = 4,    /**< float64: by what to multiply the increment before another try: 0.5 if the
                                          residual was going down, 0.25 if it was not, 1 if the point converged, or if
                                          no smaller step helps: NON_FINITE, or the step is zero already */
  NEML2_REPORT_RESCUE_SOLVES = 5     /**< int32: solves by which the option rescue went on after a point had not
                                          converged: 0: none; 1: the same equations with a line search; more: the
                                          stages of a homotopy, too. Their steps count among the iterations */
};

/** Bind an array of the report, one of NEML2_REPORT_*, of the type named there. The point stride is 1 or more, and for
 *  RESIDUAL_HISTORY at least the option miters when the call runs. It may overlap no other array. NULL removes it. A
 *  bound history is filled whatever the option collect_history is.
 *  Errors: SHAPE. Threads: one. */
NEML2_CAPI int32_t neml2_call_bind_report(neml2_call *call, int32_t kind, void *data, int64_t point_stride);

/* ---------------------------------------------------------------------------------------------
 * Steps
 *
 * A host that knows the inputs of many steps beforehand, because it replays a history or drives a test, evaluates them by
 * one function. A block of points goes through all steps before the next block begins, so that its history stays in the
 * processor's cache. An array with a value for each step has a *step stride*, the distance in elements from one step to
 * the next:
 *
 *     double time[STEPS], strain[STEPS][POINTS][6], stress[STEPS][POINTS][6], old_stress[POINTS][6];
 *     int64_t made;
 *
 *     neml2_call_bind(call, NEML2_INPUT, "t", time, NEML2_FLOAT64, 0);
 *     neml2_call_step_stride_set(call, NEML2_INPUT, "t", 1);
 *     neml2_call_bind(call, NEML2_INPUT, "strain", strain, NEML2_FLOAT64, 6);
 *     neml2_call_step_stride_set(call, NEML2_INPUT, "strain", POINTS * 6);
 *     neml2_call_bind(call, NEML2_INPUT, "stress~1", old_stress, NEML2_FLOAT64, 6);
 *     neml2_call_bind(call, NEML2_OUTPUT, "stress", stress, NEML2_FLOAT64, 6);
 *     neml2_call_step_stride_set(call, NEML2_OUTPUT, "stress", POINTS * 6);
 *     status = neml2_call_run_steps(&made, call, POINTS, STEPS);
 *
 * Any layout will do, [step][point][i] as well as [point][step][i]. Without a step stride, an input is the same in all
 * steps, and an output, a derivative or a report holds the last step.
 *
 * History is carried: the array of `x~1` holds what `x` was before the first step, and in later steps `x~1` is the `x` of
 * the step before, an output or an input; `x~2` is the `x` of two steps before, and so on. It is read where `x` lies, so an
 * output `x` must be bound, apart from the array of `x~1`, and with a step stride if there is an `x~2`. A history that has
 * a step stride of its own is read there. An input of an output's name is the guess from which its solve begins, and becomes
 * that output, too, unless it has a step stride.
 * ------------------------------------------------------------------------------------------- */

/** Set the step stride of the array that is bound to the variable `name` as NEML2_INPUT or NEML2_OUTPUT: 0 or more
 *  elements. Binding an array again sets it to 0.
 *  Errors: NAME, MISSING, SHAPE. Threads: one. */
NEML2_CAPI int32_t neml2_call_step_stride_set(neml2_call *call, int32_t role, const char *name, int64_t step_stride);

/** Set the step stride of the array of a derivative, which neml2_call_bind_derivative() bound.
 *  Errors: NAME, MISSING, SHAPE, UNSUPPORTED. Threads: one. */
NEML2_CAPI int32_t neml2_call_derivative_step_stride_set(neml2_call *call, int32_t kind, const char *output,
                                                         const char *variable, int64_t step_stride);

/** Set the step stride of an array of the report, which neml2_call_bind_report() bound.
 *  Errors: MISSING, SHAPE. Threads: one. */
NEML2_CAPI int32_t neml2_call_report_step_stride_set(neml2_call *call, int32_t kind, int64_t step_stride);

/** Evaluate `nsteps` steps of `npoints` material points: the same, to the bit, as neml2_call_run() for one step after
 *  another. It ends before the first step in which a point is not NEML2_OK, and returns the greatest status of that step;
 *  its message is about that step. `made` (or NULL) receives the number of steps before it, and `nsteps` if all are NEML2_OK.
 *  Arrays without a step stride then hold the last step that was made, or if none was, the first one as neml2_call_run()
 *  leaves it; arrays with one hold those steps, the failed step as neml2_call_run() leaves it, and what there is of later
 *  steps has no meaning. To go on, bind what follows the steps that were made, with `x~1` at the last `x`.
 *  ARGUMENT if arrays overlap, also of different steps; in more than one step no output may be the array of an input.
 *  MISSING if an output is not bound that becomes history, SHAPE if it needs a step stride, or if the steps of an array
 *  overlap. UNSUPPORTED if products with tangents or cotangents are bound, or a history comes from none that the model has.
 *  Otherwise as neml2_call_run().
 *  Errors: MISSING, SHAPE, UNSUPPORTED, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_call_run_steps(int64_t *made, neml2_call *call, int64_t npoints, int64_t nsteps);

/* ---------------------------------------------------------------------------------------------
 * Tensors
 * ------------------------------------------------------------------------------------------- */

/** A new tensor of zeros, row-major. `shape` has `ndim` entries, at most 16, and may be NULL if `ndim` is 0. Owned.
 *  Errors: SHAPE, DTYPE. Threads: any. */
NEML2_CAPI int32_t neml2_tensor_create(neml2_tensor **out, int32_t dtype, int64_t ndim, const int64_t shape[]);

/** A tensor over memory of yours, without a copy. `strides` is NULL for row-major; none may be negative. The memory
 *  must stay valid until `deleter(context)` is called, which happens once, on any thread, when no handle uses the
 *  storage any more; without a deleter (NULL), until the last handle that shares it is freed. If this function fails,
 *  the deleter is not called. Owned.
 *  Errors: SHAPE, DTYPE. Threads: any. */
NEML2_CAPI int32_t neml2_tensor_wrap(neml2_tensor **out, void *data, int32_t dtype, int64_t ndim, const int64_t shape[],
                                     const int64_t strides[], void (*deleter)(void *), void *context);

/** Another handle to the same storage: a write through one is seen through the other. Owned.
 *  Threads: any. */
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
  void *data;   /**< the first element, an address on the device; it may be NULL if there are none.
                               Borrowed from the storage */
  int64_t ndim;
  const int64_t *shape;   /**< `ndim` sizes, borrowed from the handle */
  const int64_t *strides; /**< `ndim` strides in elements, borrowed from the handle */
  int32_t dtype;
  int32_t device;       /**< NEML2_DEVICE_CPU or NEML2_DEVICE_CUDA */
  int32_t device_index; /**< which of the CUDA devices */
  int32_t row_major;    /**< 1 if the elements lie in the order of their indices, without gaps */
} neml2_tensor_info;

/** Inspect a tensor.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_tensor_inspect(neml2_tensor_info *out, const neml2_tensor *tensor);

/** Free the handle and set it to NULL.
 *  Threads: one. */
NEML2_CAPI void neml2_tensor_free(neml2_tensor **tensor);

/* ---------------------------------------------------------------------------------------------
 * Evaluation of models over tensors
 *
 * For batches of any shape, and all derivatives at once. `inputs` has one handle per input, `parameters` is NULL or
 * has one per parameter, in the order of the model's variables.
 * ------------------------------------------------------------------------------------------- */

/** Evaluate a model. `outputs` receives one owned handle per output. The shape of an input is (*B, *point shape); the
 *  batches B of all inputs and parameters broadcast to a common one, which every output has. B may be empty, and may
 *  hold zeros. A NULL in `inputs` is a missing input. Inputs that are not row-major are copied. A handle in
 *  `parameters` that is not NULL replaces the stored value in this call. `report` (or NULL) receives an owned report.
 *  Returns a positive status if a point failed: `outputs` and `report` are filled all the same. The values of points
 *  of a status above NEML2_NON_FINITE are NaN; values and derivatives of NEML2_NON_FINITE points are what
 *  was computed. Handles that stand in `outputs` or `*report` before are overwritten, not freed.
 *  Errors: MISSING, SHAPE, DTYPE, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_model_forward(neml2_tensor *outputs[], neml2_report **report, const neml2_model *model,
                                       neml2_tensor *const inputs[], neml2_tensor *const parameters[]);

/** Evaluate a model and its derivative along one direction. `tangents` has one handle per input, of the shape of the
 *  input, or NULL, which is zero; their batches broadcast with the others. `jvps` receives one owned handle per
 *  output, d output / d inputs applied to the tangents, or NULL if no derivative of the output was compiled. An
 *  output sums over the inputs for which a derivative of it was compiled (see neml2_model_derivative_inspect()).
 *  `outputs` is as in neml2_model_forward(), or NULL. Points that fail are NaN in all results. UNSUPPORTED if no
 *  derivative was compiled. The other arguments and the status as in neml2_model_forward().
 *  Errors: MISSING, SHAPE, DTYPE, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_model_jvp(neml2_tensor *outputs[], neml2_tensor *jvps[], neml2_report **report,
                                   const neml2_model *model, neml2_tensor *const inputs[],
                                   neml2_tensor *const tangents[], neml2_tensor *const parameters[]);

/** Evaluate a model and the transpose of its derivative. `cotangents` has one handle per output, of the shape of the
 *  output, or NULL, which is zero. `adjoints` receives one owned handle per variable of `kind`, NEML2_INPUT or
 *  NEML2_PARAMETER: the sum of d output / d variable, transposed, applied to the cotangent, over the outputs for which it
 *  was compiled (see neml2_model_derivative_inspect()); or NULL if it was for none. An adjoint has the shape of its
 *  variable. If the variable is one value for many points, the adjoint is the sum over them, and NaN if one of them
 *  failed. Otherwise as neml2_model_jvp().
 *  Errors: MISSING, SHAPE, DTYPE, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_model_vjp(neml2_tensor *outputs[], neml2_tensor *adjoints[], neml2_report **report,
                                   const neml2_model *model, int32_t kind, neml2_tensor *const inputs[],
                                   neml2_tensor *const cotangents[], neml2_tensor *const parameters[]);

/** Evaluate a model and its Jacobian. `blocks` receives one owned handle per derivative with respect to variables of
 *  `kind`, in the order of neml2_model_derivative_inspect(): (*B, *block shape). A derivative with respect to inputs
 *  that is the same for all points has no B; then there must be at least one point. Otherwise as neml2_model_jvp().
 *  Errors: MISSING, SHAPE, DTYPE, UNSUPPORTED, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_model_jacobian(neml2_tensor *outputs[], neml2_tensor *blocks[], neml2_report **report,
                                        const neml2_model *model, int32_t kind, neml2_tensor *const inputs[],
                                        neml2_tensor *const parameters[]);

/** A tensor of a report: shape (*B). RESIDUAL_HISTORY has (*B, miters), and exists only if the option collect_history
 *  was 1; RESCUE_SOLVES exists only if the option rescue was more than 0. Owned.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_report_get(neml2_tensor **out, const neml2_report *report, int32_t kind);

/** The last iterate of an unknown (kind NEML2_UNKNOWN) at the points whose solve failed: shape (*B, *point shape), NaN
 *  at the points that did not fail. MISSING if none failed. Owned.
 *  Errors: MISSING. Threads: any. */
NEML2_CAPI int32_t neml2_report_get_unknown(neml2_tensor **out, const neml2_report *report, int64_t index);

/** Free the handle and set it to NULL.
 *  Threads: one. */
NEML2_CAPI void neml2_report_free(neml2_report **report);

/* ---------------------------------------------------------------------------------------------
 * Parameters
 * ------------------------------------------------------------------------------------------- */

/** A handle to the stored value of a parameter, of shape (*B, *base) with B empty or one value per batch element.
 *  It shares the storage: a write through it takes effect from the next evaluation on. Unlike
 *  neml2_model_parameter_set(), such a write must not coincide with an evaluation on another thread. Owned.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_model_parameter_get(neml2_tensor **out, const neml2_model *model, const char *name);

/** Replace the value of a parameter by a copy of `value`, of shape (*B, *base). The batch B must broadcast with the
 *  batch of the inputs when the model is evaluated. Evaluations that already run keep the value that they began with.
 *  Handles from neml2_model_parameter_get() see the new value if its shape is the same as before; else they keep the
 *  old one.
 *  Errors: NAME, SHAPE, DTYPE. Threads: any. */
NEML2_CAPI int32_t neml2_model_parameter_set(neml2_model *model, const char *name, const neml2_tensor *value);

/* ---------------------------------------------------------------------------------------------
 * Options
 *
 * A model starts with the values that its artifact records. Numbers are set and read as double, choices as text:
 *
 *   atol             number   a point has converged when |r| < atol or r = 0, ...
 *   rtol             number   ... or when |r| / |r0| < rtol, with r0 the residual at the initial guess
 *   divtol           number   a point has failed once |r| > divtol |r0|; unlimited by default. A host that cuts its
 *                             steps saves iterations that lead nowhere
 *   miters           number   bound of the iteration count: at most miters - 1 Newton steps are made
 *   ls_type          text     line search: "BACKTRACKING" (Armijo) or "STRONG_WOLFE"
 *   ls_max_iters     number   bound of the trial count, exclusive; 1 switches the line search off
 *   ls_cutback       number   the step length is divided by this after each failed trial
 *   ls_c             number   the fraction of the expected decrease that a trial must reach
 *   substep_del_tol  number   bound of the relative Newton step in the substepping solve
 *   convergence      text     "point": each point converges, stops and is reported on its own;
 *                             "batch": all points iterate until all have converged, and one that fails fails all,
 *                             as in NEML2's own runtime
 *   collect_history  number   1: reports of neml2_model_forward() hold the residual history; 0: they do not
 *   chunk            number   points that are evaluated together; 0, the default: so many that their inputs and
 *                             results fit the processor's second-level cache
 *   threads          number   threads that share the chunks of an evaluation, the calling one among them; 0: as many
 *                             as the calling thread has processors. 1 unless the environment variable
 *                             NEML2_CAPI_THREADS says otherwise: most hosts run several threads or processes
 *                             themselves. (In Python: 0.)
 *   kernels          text     "auto": the artifact's point kernels run instead of the packages if they can compute all
 *                             that is requested; results agree to round-off. "off": never. "required": always, and an
 *                             error says what they cannot do
 *   rescue           number   the most solves by which a point that did not converge is rescued; 0, the default: none.
 *                             The first solves the same equations again, with a line search and pivots of its own. The
 *                             others are a homotopy: inputs `x` that have an `x~1` move from it to `x`, in steps that
 *                             adapt, from solution to solution; the last one is of the equations of the step. Points
 *                             that are rescued are NEML2_OK, all others have the same bits as without. 100 is enough;
 *                             plug-ins have it
 *   bounds           text     what becomes of points that are beyond bounds of validity: "off": nothing; "warn", the
 *                             default: they are evaluated, and the log tells of them; "fail": they are
 *                             NEML2_OUT_OF_BOUNDS. See the next section
 *   capsule          text     a folder, to which a call that fails is written for `neml2-capi replay`; empty, the
 *                             default, for nowhere. The environment variable NEML2_CAPI_CAPSULE names it, too
 *
 * The threads of `threads` are the library's own: they are not woken for little work, serve one caller at a time
 * (others run alone), keep to the caller's processors and leave OpenMP alone. No result depends on their number.
 * Evaluations that already run keep the options that they began with.
 *
 * A *capsule* is an .npz file, which numpy.load() reads: inputs, parameters, tangents and cotangents of a call, the
 * report of each point, and in capsule.json the options, the versions, the request, the hypothesis, measures and axes
 * of the source, and the artifact with the size and the CRC-32 of its metadata and packages. It is written if a point
 * is not NEML2_OK, and for RUNTIME, UNSUPPORTED and INTERNAL while packages run; a solve of yours writes none. Of
 * more than 10000 points it holds those that failed. The folder is made, no file is overwritten, and a process writes
 * at most 16 to a folder. If a capsule cannot be written, the log says why, and no result changes.
 * ------------------------------------------------------------------------------------------- */

/** Count the options.
 *  Threads: any. */
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
 *  Threads: any. */
NEML2_CAPI int32_t neml2_model_option_inspect(neml2_option_info *out, const neml2_model *model, int64_t index);

/** Set a number. ARGUMENT, and nothing is changed, if it is out of its bounds, or not whole although it must be.
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
 * Bounds
 *
 * An artifact may say where its law is valid, and which values have a meaning at all: a lower and an upper bound of each
 * component of an input or a parameter. `neml2-capi compile --bounds` and neml2_capi.export write them, into bounds.json
 * beside metadata.json. Each evaluation looks at them, at the values that the law is given: history `x~1`, values of
 * parameters, and strains that a hypothesis or a strain measure gives the law, too. A value on a bound is within it, and
 * NaN is NEML2_NON_FINITE.
 *
 * Beyond bounds of validity the option `bounds` decides: nothing, a warning in the log, or the status NEML2_OUT_OF_BOUNDS
 * of each point that is beyond. Beyond physical bounds a point has that status whatever the option. Such points are not
 * evaluated, and all others are. The message of the error, or the record of the channel "bounds", names the variable, the
 * first point, its value and the bound. The log has a bound for the first, the second, the fourth evaluation that goes
 * beyond it, and so on. The suggested cut is 0.5 if a smaller step may mend that: of inputs that are no history.
 *
 * neml2_model_parameter_set() refuses a value beyond physical bounds, and beyond bounds of validity if the option says
 * "fail" (ARGUMENT). In a solve of your own the systems have all points, and the end tells those that are beyond. Tensors
 * and arrays on a device are evaluated without a look at bounds; with "fail", or physical bounds, they are UNSUPPORTED.
 * Artifacts without bounds cost nothing.
 * ------------------------------------------------------------------------------------------- */

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
 * model is. All points form one batch: the option `chunk` is ignored, and a promoted parameter of an implicit segment
 * must be one value for all points (else SHAPE). Substepping is left to you: a segment that would substep gives the
 * system of the whole increment. The solver options are ignored, except the options of a Krylov linear solver.
 *
 * A solve belongs to one thread at a time; any number of solves of one model may be under way at once.
 * ------------------------------------------------------------------------------------------- */

/** Begin a solve. `inputs` and `parameters` as in neml2_model_forward(); their values are copied. It keeps the model
 *  alive. Owned.
 *  Errors: MISSING, SHAPE, DTYPE. Threads: any. */
NEML2_CAPI int32_t neml2_solve_begin(neml2_solve **out, const neml2_model *model, neml2_tensor *const inputs[],
                                     neml2_tensor *const parameters[]);

/** Begin a solve of `npoints` points with the arrays that are bound in `call`, as neml2_call_run() would. The values of
 *  inputs and parameters are copied. neml2_solve_end() reads and writes all other arrays that are bound now,
 *  derivatives too: they must stay where they are until then; the call itself need not. Owned.
 *  Errors: MISSING, SHAPE. Threads: one. */
NEML2_CAPI int32_t neml2_solve_begin_call(neml2_solve **out, const neml2_call *call, int64_t npoints);

/** Go on to the next implicit segment, evaluating the explicit ones before it. `system` is *borrowed from solve until
 *  the next call* of neml2_solve_next(), neml2_solve_end() or neml2_solve_free(). It is NULL if no system is left, and
 *  at once if there are no points. ARGUMENT if the last system was not accepted.
 *  Errors: SHAPE, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_solve_next(neml2_system **system, neml2_solve *solve);

/** End a solve for which neml2_solve_next() has given NULL. `outputs`, `report` (or NULL) and the status as in
 *  neml2_model_forward(); for a solve of a call `outputs` and `report` are NULL, and the arrays of the call are
 *  written as by neml2_call_run(). The report has the arguments of neml2_system_accept(), and NaN for the residual
 *  history. `solve` is *consumed* and set to NULL, unless an error (a negative status) is returned.
 *  Errors: UNSUPPORTED, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_solve_end(neml2_tensor *outputs[], neml2_report **report, neml2_solve **solve);

/** Free the handle and set it to NULL: a solve that is not ended is abandoned, and nothing is written.
 *  Threads: one. */
NEML2_CAPI void neml2_solve_free(neml2_solve **solve);

/** The systems of one segment. */
typedef struct neml2_system_info {
  int64_t size;      /**< sizeof(neml2_system_info) */
  int64_t npoints;   /**< points */
  int64_t n;         /**< numbers per point in a vector */
  int64_t nunknowns; /**< unknowns, in the sense of NEML2_UNKNOWN, that these numbers belong to */
} neml2_system_info;

/** Inspect the systems of a segment.
 *  Threads: one. */
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
 *  Threads: one. */
NEML2_CAPI int32_t neml2_system_unknown_inspect(neml2_unknown_info *out, const neml2_system *system, int64_t index);

/** The initial guess, from the model's predictor.
 *  Errors: RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_system_guess(double u[], const neml2_system *system);

/** The residual r(u). `r` may be the array `u`.
 *  Errors: RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_system_residual(double r[], neml2_system *system, const double u[]);

/** The Newton step du = -(dr/du)^-1 r at `u`, by the model's own linear solver. `singular` (or NULL) receives, per
 *  point, 1 if dr/du is singular, so that its du has no meaning; else 0. `du` may be the array `u`.
 *  Errors: RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_system_step(double du[], int32_t singular[], neml2_system *system, const double u[]);

/** The Jacobian dr/du at `u`: (npoints, n, n), with one row per residual. UNSUPPORTED if the artifact has no package
 *  for it (matrix-free, or of a schema before 12).
 *  Errors: UNSUPPORTED, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_system_jacobian(double a[], neml2_system *system, const double u[]);

/** y = dr/du v at `u`: from the matrix-free operator if there is one, else from the Jacobian, with its limits.
 *  `y` may be the array `v`.
 *  Errors: UNSUPPORTED, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_system_matvec(double y[], neml2_system *system, const double u[], const double v[]);

/** Accept `u` as the solution, once per system. `status` says for each point NEML2_OK, NEML2_NOT_CONVERGED or
 *  NEML2_SINGULAR. If it is NULL, the tolerances of the model decide (its options atol and rtol, from
 *  neml2_system_guess() on): a point a thousand times above both is NEML2_NOT_CONVERGED. The outputs of points that
 *  failed are as in neml2_model_forward(). `iterations` (or NULL: 0) is for the report. The residual is evaluated once
 *  more, for the norms in the report.
 *  Errors: UNSUPPORTED, RUNTIME. Threads: one. */
NEML2_CAPI int32_t neml2_system_accept(neml2_system *system, const double u[], const int32_t status[],
                                       const int32_t iterations[]);

/** Evaluate a model, as neml2_model_forward() does, with a solver of yours. It is called for each system, on the
 *  calling thread, and must accept it with neml2_system_accept(). If it returns a negative status, the evaluation ends
 *  with that status. The solver may call this library; the floating-point environment is the default one there.
 *  Errors: MISSING, SHAPE, DTYPE, RUNTIME. Threads: any. */
NEML2_CAPI int32_t neml2_solve_run(neml2_tensor *outputs[], neml2_report **report, const neml2_model *model,
                                   neml2_tensor *const inputs[], neml2_tensor *const parameters[],
                                   int32_t (*solver)(void *context, neml2_system *system), void *context);

/* ---------------------------------------------------------------------------------------------
 * Log
 *
 * The library prints nothing. It queues *records*, each with a channel, a level and a message of one line, until the
 * host takes them:
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
 * The channels are NEML2's: "newton" (a warning if points fail; INFO has a line for each solve, and DEBUG for each
 * iteration), "linear" (Krylov solvers), "substep", "model" (what was loaded), "tensor" (copies of arrays that cannot
 * be read in place) and "driver" (for drivers through time, as the Python package has one; the library logs nothing to
 * it); and "bounds" (values beyond bounds of validity). "all" means all of them. The environment variable NEML2_LOGS sets the levels to begin with, for example
 * "all=info,substep=debug"; without it they are NEML2_LOG_WARNING. Mistakes in it become records of "model".
 *
 * There is one queue for the process, of one megabyte: when it is full the oldest records are forgotten, and a record
 * tells how many. Records of one thread stay in their order. A process that was forked begins with an empty queue.
 * ------------------------------------------------------------------------------------------- */

/** Levels; a channel has the records up to its own. */
enum neml2_log_level { NEML2_LOG_SILENT = 0, NEML2_LOG_WARNING = 1, NEML2_LOG_INFO = 2, NEML2_LOG_DEBUG = 3 };

/** The size of a buffer that holds any message with its terminating zero; longer messages are cut. */
enum neml2_log_size { NEML2_LOG_LENGTH = 1024 };

/** Set the level of a channel, or of "all". It replaces the level of NEML2_LOGS, and holds for the process.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_log_level_set(const char *channel, int32_t level);

/** The level of a channel; of "all", the greatest level of any channel.
 *  Errors: NAME. Threads: any. */
NEML2_CAPI int32_t neml2_log_level_get(int32_t *out, const char *channel);

/** Count the records that wait.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_log_count(int64_t *out);

/** Take the oldest record, whatever fits. `level` receives its level, or NEML2_LOG_SILENT if none waits; `channel` (or
 *  NULL) the name of its channel, a constant; `buffer` the message, with `capacity` and `needed` as in
 *  neml2_error_message().
 *  Threads: any. */
NEML2_CAPI int32_t neml2_log_next(int32_t *level, const char **channel, char *buffer, int64_t capacity,
                                  int64_t *needed);

/* ---------------------------------------------------------------------------------------------
 * Interrupting
 *
 * A host that wants to end a long evaluation, at Ctrl-C for example, gives the library a function to ask:
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

/** Set the function that evaluations of the whole process ask, or none for NULL. It runs on the threads that call the
 *  library, never on the library's own, ten times a second at most, and may not evaluate itself. An evaluation that it
 *  ends returns INTERRUPTED: the arrays that it wrote are incomplete, and the model and its calls stay usable. It is
 *  asked between blocks of points and between Newton iterations, not within one run of a package.
 *  Threads: any. */
NEML2_CAPI int32_t neml2_interrupt_set(neml2_interrupt_fn asked, void *context);

#ifdef __cplusplus
}
#endif

#endif

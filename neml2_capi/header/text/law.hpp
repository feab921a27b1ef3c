$head
#ifndef NEML2_TEXT_$checksum
#define NEML2_TEXT_$checksum
#ifdef NEML2_LAW_$name
#error "another law is named $name in this file: write one of them again with another --name"
#endif
#define NEML2_LAW_$name

$refused#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error "this header needs numbers that are rounded as they are: compile with -mfpmath=sse"
#endif
/* Precedes each function: __host__ __device__ or KOKKOS_INLINE_FUNCTION, for example. */
#ifndef NEML2_FUNCTION
#if defined(__CUDACC__) || defined(__HIPCC__)
#define NEML2_FUNCTION __host__ __device__
#else
#define NEML2_FUNCTION
#endif
#endif
#if defined(__CUDA_ARCH__) || defined(__NVPTX__) || defined(__AMDGCN__) || defined(__SPIR__) || defined(__SPIRV__)
#define NEML2_ON_DEVICE 1
#else
#define NEML2_ON_DEVICE 0
#endif
#if NEML2_ON_DEVICE || defined(__FMA__) || defined(__aarch64__)
#define NEML2_FUSED 1
#else
#define NEML2_FUSED 0
#endif
/* Before loops: a rolled one stays a loop, since copies of it would take registers; an unrolled one is written out, so that
   its arrays are registers. */
#if NEML2_ON_DEVICE || defined(__clang__)
#define NEML2_ROLLED _Pragma("unroll 1")
#elif defined(__GNUC__)
#define NEML2_ROLLED _Pragma("GCC unroll 1")
#else
#define NEML2_ROLLED
#endif
#if NEML2_ON_DEVICE
#define NEML2_UNROLLED _Pragma("unroll")
#else
#define NEML2_UNROLLED
#endif
/* How many columns of derivatives go through all segments together: few, whose numbers nvcc keeps in registers, or all. */
#if defined(__CUDA_ARCH__) && !defined(__clang__)
#define NEML2_BAND(all) 2
#else
#define NEML2_BAND(all) all
#endif
/* Before a function that is not inlined: few points need it, and its arrays would take registers from the others. */
#ifndef NEML2_APART
#if defined(_MSC_VER)
#define NEML2_APART __declspec(noinline)
#elif defined(__CUDACC__) || defined(__HIPCC__)
#define NEML2_APART __host__ __device__ __attribute__((noinline))
#else
#define NEML2_APART __attribute__((noinline))
#endif
#endif
#if !defined(__GNUC__) && !defined(__CUDACC_RTC__)
#include <cmath>
#endif

$precise
namespace $name {
/* Another law of the same name may be linked with this one. */
inline namespace law_$checksum {

using real = $real;

/* Inputs of a point. */
struct inputs {
$inputs
};

/* Outputs of a point. */
struct outputs {
$outputs
};

/* Parameters of the material. The defaults are the model's values. */
struct parameters {
$parameters
};

/* Derivatives of outputs with respect to inputs, both side by side: entry (i, j) is values[i * columns + j]. Columns of
   parameters follow, if they were asked for. Derivatives that were not compiled are left as they are. */
struct tangent {
  static constexpr int rows = $num_outputs, columns = $width;
  real values[$num_outputs * $width];
$derivatives
};

/* Settings of Newton's method. The defaults are the model's. */
struct settings {
$settings
};

/* Report of a point. Results of a point that failed, of status 2, 3 or 4, are NaN. */
struct report {
  int status;            /* 0: good; 1: a result is not finite; 2: it did not converge; 3: its system is singular; 4: it is beyond its bounds */
  int iterations;        /* of Newton's method, all systems together */
  double residual_norm;  /* the greatest of the systems */
  double suggested_cut;  /* the factor by which to cut the increment of a point that failed; else 1 */
};

/* The functions behind update(). */
struct law {
enum { undecided = -1, ok = 0, non_finite = 1, not_converged = 2, singular_system = 3, out_of_bounds = 4 };

${refused_by_clang}$numbers

$functions
};

/* Evaluates a point, with rows of its systems exchanged if `careful`. Without, the status is -1 if rows would have to be
   exchanged, or if the point fails. */
[[maybe_unused]] NEML2_FUNCTION static report update_by(int careful, const inputs &in, outputs &out, tangent *derivatives,
                                       const parameters &constants, const settings &rules) {
  law::lanes x[$num_inputs], p[$num_parameters], y[$num_outputs];
  report told;
$load
  law::walk(x, p, y, derivatives ? derivatives->values : nullptr, 1, rules, careful, &told);
$store
  return told;
}

[[maybe_unused]] NEML2_APART static void update_with_care(inputs in, outputs *out, tangent *derivatives,
                                                        parameters constants, settings rules, report *told) {
  *told = update_by(1, in, *out, derivatives, constants, rules);
}

/* Evaluates a point, and its derivatives if `derivatives` is not null. */
[[maybe_unused]] NEML2_FUNCTION static report update(const inputs &in, outputs &out, tangent *derivatives = nullptr,
                                                     const parameters &constants = parameters(),
                                                     const settings &rules = settings()) {
  report told = update_by(0, in, out, derivatives, constants, rules);
  if (told.status == law::undecided) {
    outputs made;
    report of_made;
    update_with_care(in, &made, derivatives, constants, rules, &of_made);
    out = made;
    told = of_made;
  }
  return told;
}

/* As update_point, with rows exchanged if `careful`. Returns false if the point was left, and has to be evaluated with care. */
[[maybe_unused]] NEML2_FUNCTION static bool update_point_by(int careful, long long i, long long points, const real *inputs,
                                           const real *parameters, bool parameters_vary, real *outputs, real *tangent,
                                           int *reports, double *norms, const settings &rules) {
  law::lanes x[$num_inputs], p[$num_parameters], y[$num_outputs];
  report told;
  for (int c = 0; c < $num_inputs; ++c) x[c] = inputs[c * points + i];
$load_parameters
  law::walk(x, p, y, tangent ? tangent + i : nullptr, points, rules, careful, &told);
  if (told.status == law::undecided) return false;
  for (int c = 0; c < $num_outputs; ++c) outputs[c * points + i] = law::as_real(y[c]);
  reports[i] = told.status;
  reports[points + i] = told.iterations;
  norms[i] = told.residual_norm;
  norms[points + i] = told.suggested_cut;
  return true;
}

[[maybe_unused]] NEML2_APART static void update_point_with_care(long long i, long long points, const real *inputs,
                                                              const real *parameters, bool parameters_vary,
                                                              real *outputs, real *tangent, int *reports, double *norms,
                                                              settings rules) {
  update_point_by(1, i, points, inputs, parameters, parameters_vary, outputs, tangent, reports, norms, rules);
}

/* Evaluates point i of `points`, whose arrays are [component][point], with the components of the structures one after the
   other. Parameters have one value each, or are [component][point] if they vary. `tangent` may be null; `reports` is
   [2][point], status and iterations; `norms` is [2][point], the norm of the residual and the suggested cut. */
[[maybe_unused]] NEML2_FUNCTION static void update_point(long long i, long long points, const real *inputs,
                                                         const real *parameters, bool parameters_vary, real *outputs,
                                                         real *tangent, int *reports, double *norms,
                                                         const settings &rules = settings()) {
  if (!update_point_by(0, i, points, inputs, parameters, parameters_vary, outputs, tangent, reports, norms, rules))
    update_point_with_care(i, points, inputs, parameters, parameters_vary, outputs, tangent, reports, norms, rules);
}

}  // namespace law_$checksum
}  // namespace $name

$kernel$imprecise#undef NEML2_ON_DEVICE
#undef NEML2_FUSED
#undef NEML2_ROLLED
#undef NEML2_UNROLLED
#undef NEML2_BAND
#endif

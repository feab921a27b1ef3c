$head
$refused#if __OPENCL_C_VERSION__ < 120
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
$precise#pragma OPENCL FP_CONTRACT OFF
#define NEML2_FUNCTION static inline
#define NEML2_FUSED 1

typedef $real real;
enum { undecided = -1, ok = 0, non_finite = 1, not_converged = 2, singular_system = 3, out_of_bounds = 4 };

/* Settings of Newton's method. */
typedef struct settings {
$settings
} settings;

/* Report of a point. */
typedef struct report {
  int status;           /* 0: good; 1: a result is not finite; 2: it did not converge; 3: its system is singular; 4: it is beyond its bounds */
  int iterations;       /* of Newton's method, all systems together */
  double residual_norm; /* the greatest of the systems */
  double suggested_cut; /* the factor by which to cut the increment of a point that failed; else 1 */
} report;

${refused_by_clang}$numbers

$functions
$kernel
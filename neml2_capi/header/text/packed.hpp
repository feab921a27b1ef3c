/* A kernel with a thread for each point, if NEML2_KERNEL says how one is declared: extern "C" __global__, for example. */
#ifdef NEML2_KERNEL
NEML2_KERNEL void neml2_update(long points, const $real *inputs, const $real *parameters, long parameters_vary,
                               $real *outputs, $real *tangent, int *reports, double *norms,
                               $given) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  $name::settings rules;
$rules
  if (i < points)
    $name::update_point(i, points, inputs, parameters, parameters_vary != 0, outputs, tangent, reports, norms, rules);
}
#endif

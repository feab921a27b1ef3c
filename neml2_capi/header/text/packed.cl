/* Evaluates a point, with rows of its systems exchanged if `careful`. Without, it returns 0 and leaves a point of which rows
   would have to be exchanged, or that fails. */
NEML2_FUNCTION int update_point(int careful, long i, long points, __global const real *inputs,
                                __global const real *parameters, long parameters_vary, __global real *outputs,
                                __global real *tangent, __global int *reports, __global double *norms, settings rules) {
  lanes x[$num_inputs], p[$num_parameters], y[$num_outputs];
  report told;
  for (int c = 0; c < $num_inputs; ++c) x[c] = inputs[c * points + i];
$load_parameters
  walk(x, p, y, tangent ? tangent + i : 0, points, rules, careful, &told);
  if (told.status == undecided) return 0;
  for (int c = 0; c < $num_outputs; ++c) outputs[c * points + i] = as_real(y[c]);
  reports[i] = told.status;
  reports[points + i] = told.iterations;
  norms[i] = told.residual_norm;
  norms[points + i] = told.suggested_cut;
  return 1;
}

/* A function that is not inlined: few points need it, and its arrays would take registers from the others. */
static __attribute__((noinline)) void update_point_with_care(
    long i, long points, __global const real *inputs, __global const real *parameters, long parameters_vary,
    __global real *outputs, __global real *tangent, __global int *reports, __global double *norms, settings rules) {
  update_point(1, i, points, inputs, parameters, parameters_vary, outputs, tangent, reports, norms, rules);
}

/* One work item for each point. Arrays are [component][point]; parameters have one value each, unless they vary. `tangent`
   may be null; entries of derivatives that were not compiled are left as they are. `reports` is [2][point], status and
   iterations; `norms` is [2][point], the norm of the residual and the suggested cut. Results of points that failed are NaN. */
${attributes}__kernel void neml2_update(long points, __global const real *inputs, __global const real *parameters, long parameters_vary,
                           __global real *outputs, __global real *tangent, __global int *reports, __global double *norms,
                           $given) {
  const long i = get_global_id(0);
  if (i >= points) return;
  settings rules;
$rules
  if (!update_point(0, i, points, inputs, parameters, parameters_vary, outputs, tangent, reports, norms, rules))
    update_point_with_care(i, points, inputs, parameters, parameters_vary, outputs, tangent, reports, norms, rules);
}

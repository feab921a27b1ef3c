$open
/* Evaluates point i, with rows of its systems exchanged if `careful`. Without, it
   returns 0 and leaves a point of which rows would have to be exchanged, or that fails. */
$function int point_of_arrays(int careful, int leaves, long i, long points, $pointers,
                              $global real *tangent, $global int *reports, $global double *norms, settings rules) {
  lanes x[$num_inputs], p[$num_parameters], y[$num_outputs];
  report told;
$load
  walk(x, p, y, tangent ? tangent + i : 0, points, rules, careful, &told);
  if (told.status == undecided) return 0;
  if (!leaves || told.status <= non_finite) {
$store
  }
  reports[i] = told.status;
  reports[points + i] = told.iterations;
  if (norms) {
    norms[i] = told.residual_norm;
    norms[points + i] = told.suggested_cut;
  }
  return 1;
}

/* A function that is not inlined: few points need it, and its arrays would take registers from the others. */
$apart void point_with_care(int leaves, long i, long points, $pointers,
                            $global real *tangent, $global int *reports, $global double *norms, settings rules) {
  point_of_arrays(1, leaves, i, points, $names, tangent, reports, norms, rules);
}
$close

/* One work item for each point. Each array comes with the elements to its first point, between points, and between
   components; one of the outputs may be null. `tangent` is [component][point], or null; `reports` is [2][point], status and
   iterations; `norms` is [2][point], the norm of the residual and the suggested cut, or null. Nothing is done if summary[0]
   is less than `until`. `derivatives` has a bit for each input, and behind them each parameter, to derive by. Outputs of points that failed are left as they are; without `summary` they are NaN. */
${attributes}$entry void neml2_law(long points, $arrays,
                $global $real *tangent, $global int *reports, $global double *norms, $global const int *summary, long until,
                long derivatives, $given) {
  const long i = $item;
  (void)derivatives;
  if (i >= points || (summary && summary[0] < until)) return;
  ${of}settings rules;
$rules
  if (!${within}point_of_arrays(0, summary != 0, i, points, $names,
                       tangent, reports, norms, rules))
    ${within}point_with_care(summary != 0, i, points, $names,
                    tangent, reports, norms, rules);
}

// A host of a header: points one after the other, by arrays and by structures. HEADER, LAW and, for derivatives, DERIVES
// come from the command line.
#include HEADER

#include <cstring>

namespace {

// Copies a structure of numbers from or to component c, c + 1, ... of point i.
template <class Structure>
void take(Structure& structure, const LAW::real* from, long long i, long long points) {
  LAW::real values[sizeof(Structure) / sizeof(LAW::real)];
  long long c = 0;
  for (LAW::real& value : values) value = from[c++ * points + i];
  std::memcpy(&structure, values, sizeof structure);
}

template <class Structure>
void give(const Structure& structure, LAW::real* to, long long i, long long points) {
  LAW::real values[sizeof(Structure) / sizeof(LAW::real)];
  std::memcpy(values, &structure, sizeof structure);
  long long c = 0;
  for (const LAW::real value : values) to[c++ * points + i] = value;
}

}  // namespace

extern "C" void by_arrays(long long points, const LAW::real* inputs, const LAW::real* parameters, int vary,
                          LAW::real* outputs, LAW::real* tangent, int* reports, double* norms, double atol, double rtol,
                          double divtol, long long miters) {
  LAW::settings rules;
  rules.atol = atol;
  rules.rtol = rtol;
  rules.divtol = divtol;
  rules.miters = miters;
  for (long long i = 0; i < points; ++i)
    LAW::update_point(i, points, inputs, parameters, vary != 0, outputs, tangent, reports, norms, rules);
}

extern "C" void by_structures(long long points, const LAW::real* inputs, LAW::real* outputs, LAW::real* tangent,
                              int* reports, double* norms, double* cuts) {
  for (long long i = 0; i < points; ++i) {
    LAW::inputs in;
    LAW::outputs out;
    LAW::tangent derivatives = {};
    take(in, inputs, i, points);
    const LAW::report told = LAW::update(in, out, tangent ? &derivatives : nullptr);
    give(out, outputs, i, points);
    if (tangent) give(derivatives, tangent, i, points);
    reports[i] = told.status;
    reports[points + i] = told.iterations;
    norms[i] = told.residual_norm;
    cuts[i] = told.suggested_cut;
  }
}

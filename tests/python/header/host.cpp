// A host of a header: points one after the other, by arrays and by structures. HEADER and LAW come from the command line.
#include HEADER

#include <cstdio>
#include <cstring>
#include <vector>

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

// Points whose pivots are not trusted.
extern "C" long long points_of_care(long long points, const LAW::real* inputs, const LAW::real* parameters,
                                    LAW::real* outputs, LAW::real* tangent, int* reports, double* norms) {
  long long count = 0;
  for (long long i = 0; i < points; ++i)
    count += !LAW::update_point_by(0, i, points, inputs, parameters, false, outputs, tangent, reports, norms, {});
  return count;
}

extern "C" void by_structures(long long points, const LAW::real* inputs, LAW::real* outputs, LAW::real* tangent,
                              int* reports, double* norms) {
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
    norms[points + i] = told.suggested_cut;
  }
}

// As a program, for sanitizers: points and atol, rtol and miters; then arrays as by_arrays() has them.
int main() {
  double head[4];
  if (std::fread(head, sizeof head, 1, stdin) != 1) return 1;
  const long long points = static_cast<long long>(head[0]), miters = static_cast<long long>(head[3]);
  const auto components = [](std::size_t bytes) { return bytes / sizeof(LAW::real); };
  const auto sized = [&](std::size_t rows) {
    return std::vector<LAW::real>(rows * static_cast<std::size_t>(points) + 1);
  };
  std::vector<LAW::real> inputs = sized(LAW::tangent::columns), outputs = sized(LAW::tangent::rows);
  std::vector<LAW::real> tangent = sized(LAW::tangent::rows * LAW::tangent::columns);
  std::vector<LAW::real> parameters(components(sizeof(LAW::parameters)) + 1);
  std::vector<int> reports(2 * static_cast<std::size_t>(points));
  std::vector<double> norms(2 * static_cast<std::size_t>(points));
  const auto read = [](auto& array) { return std::fread(array.data(), sizeof array[0], array.size() - 1, stdin); };
  if (read(inputs) != inputs.size() - 1 || (read(parameters), false)) return 1;
  by_arrays(points, inputs.data(), parameters.data(), 0, outputs.data(), tangent.data(), reports.data(), norms.data(),
            head[1], head[2], 1.7976931348623157e308, miters);
  const auto write = [](const auto& array, std::size_t count) {
    return std::fwrite(array.data(), sizeof array[0], count, stdout) == count;
  };
  const bool written = write(outputs, outputs.size() - 1) && write(tangent, tangent.size() - 1) &&
                       write(reports, reports.size()) && write(norms, norms.size());
  return written ? 0 : 1;
}

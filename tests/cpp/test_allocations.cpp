// A call that runs again takes no memory from the system: malloc and its kin are counted. What a compiled package takes
// for itself, a list of its inputs, is not ours to spare.
#include <dlfcn.h>
#include <execinfo.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "neml2_capi.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)

int main() { return 77; }  // a sanitizer has a malloc of its own, and the library then keeps no memory

#else

namespace {

bool counting = false;
long taken = 0;

// Packages are opened through /proc/self/fd.
bool from_a_package() {
  void* frames[12];
  const int depth = backtrace(frames, 12);
  for (int i = 0; i < depth; ++i) {
    Dl_info info{};
    if (dladdr(frames[i], &info) && info.dli_fname && std::strncmp(info.dli_fname, "/proc/", 6) == 0) return true;
  }
  return false;
}

void note() {
  if (!std::exchange(counting, false)) return;
  if (!from_a_package()) ++taken;
  counting = true;
}

}  // namespace

// These take the place of the C library's in the whole process.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  note();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  note();
  return __libc_calloc(count, bytes);
}
void* realloc(void* block, std::size_t bytes) {
  note();
  return __libc_realloc(block, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  note();
  return __libc_memalign(alignment, bytes);
}
}

namespace {

void expect(bool condition, const std::string& what) {
  if (condition) return;
  char reason[1024] = "";
  neml2_error_message(reason, sizeof reason, nullptr);
  std::fprintf(stderr, "failed: %s (%s)\n", what.c_str(), reason);
  std::exit(1);
}

std::string artifact(const std::string& name) { return std::string(std::getenv("NEML2_TEST_ARTIFACTS")) + "/" + name; }

struct Array {
  const char* name;
  std::int64_t size;  // per point
  std::vector<double> values;
};

// The arrays of a call, each with one value for all points but the first, which varies.
struct Bound {
  neml2_model* model = nullptr;
  neml2_call* call = nullptr;
  std::vector<Array> inputs, outputs;

  Bound(const std::string& name, std::vector<Array> in, std::vector<Array> out, std::int64_t points,
        neml2_source source = {})
      : inputs(std::move(in)), outputs(std::move(out)) {
    const std::string path = artifact(name);
    source.size = sizeof source;
    source.path = path.c_str();
    expect(neml2_model_open(&model, &source) == NEML2_OK, "load " + name);
    expect(neml2_call_create(&call, model) == NEML2_OK, "create");
    for (Array& input : inputs) {
      const bool varies = &input == inputs.data();
      if (varies)
        for (std::int64_t i = input.size; i < points * input.size; ++i)
          input.values.push_back(input.values[static_cast<std::size_t>(i - input.size)] * (1 + 1e-3 * double(i % 7)));
      expect(neml2_call_bind(call, NEML2_INPUT, input.name, input.values.data(), NEML2_FLOAT64,
                             varies ? input.size : 0) == 0,
             input.name);
    }
    for (Array& output : outputs) {
      output.values.resize(static_cast<std::size_t>(points * output.size));
      expect(neml2_call_bind(call, NEML2_OUTPUT, output.name, output.values.data(), NEML2_FLOAT64, output.size) == 0,
             output.name);
    }
  }
  ~Bound() {
    neml2_call_free(&call);
    neml2_model_free(&model);
  }
};

void expect_nothing_taken(Bound& bound, std::int64_t points, const std::string& what) {
  for (int run = 0; run < 3; ++run) expect(neml2_call_run(bound.call, points) == NEML2_OK, what);
  taken = 0;
  counting = true;
  for (int run = 0; run < 5; ++run)
    if (neml2_call_run(bound.call, points) != NEML2_OK) std::abort();
  counting = false;
  expect(taken == 0, what + " took memory " + std::to_string(taken) + " times in five runs");
}

std::vector<Array> strains(std::initializer_list<const char*> names) {
  std::vector<Array> arrays;
  for (const char* name : names) arrays.push_back({name, 6, {2e-3, -6e-4, -5e-4, 1e-4, 2e-4, -1e-4}});
  return arrays;
}

void an_explicit_model(std::int64_t points) {
  Bound bound("elasticity", strains({"strain"}), {{"stress", 6, {}}}, points);
  expect_nothing_taken(bound, points, "elasticity at " + std::to_string(points) + " points");
}

void its_jacobian(std::int64_t points) {
  Bound bound("elasticity", strains({"strain"}), {{"stress", 6, {}}}, points);
  std::vector<double> block(static_cast<std::size_t>(36 * points));
  expect(neml2_call_bind_derivative(bound.call, NEML2_INPUT, "stress", "strain", block.data(), NEML2_FLOAT64, 36) == 0,
         "bind the tangent");
  expect_nothing_taken(bound, points, "the tangent of elasticity at " + std::to_string(points) + " points");
}

void an_implicit_model(std::int64_t points) {
  std::vector<Array> inputs = strains({"strain"});
  for (const char* name : {"strain~1", "stress~1", "X1~1", "X2~1"}) inputs.push_back({name, 6, std::vector(6, 0.0)});
  inputs.push_back({"equivalent_plastic_strain~1", 1, {0.0}});
  inputs.push_back({"t", 1, {1.0}});
  inputs.push_back({"t~1", 1, {0.0}});
  Bound bound("viscoplastic", inputs, {{"stress", 6, {}}, {"equivalent_plastic_strain", 1, {}}}, points);
  expect_nothing_taken(bound, points, "viscoplasticity at " + std::to_string(points) + " points");
}

void a_view(std::int64_t points) {
  neml2_source source{};
  source.strain_measure = NEML2_STRAIN_LOGARITHMIC;
  source.material_axes = 1;
  Bound bound("elasticity",
              {{"deformation_gradient", 9, {1.1, 0.2, 0, 0, 0.9, 0.1, 0, 0, 1}},
               {"material_axes", 9, {0, 1, 0, -1, 0, 0, 0, 0, 1}}},
              {{"pk1_stress", 9, {}}}, points, source);
  std::vector<double> block(static_cast<std::size_t>(81 * points));
  expect(neml2_call_bind_derivative(bound.call, NEML2_INPUT, "pk1_stress", "deformation_gradient", block.data(),
                                    NEML2_FLOAT64, 81) == 0,
         "bind the tangent");
  expect_nothing_taken(bound, points, "large strain at " + std::to_string(points) + " points");
}

void a_hypothesis(std::int64_t points) {
  neml2_source source{};
  source.hypothesis = NEML2_PLANE_STRESS;
  Bound bound("elasticity", {{"strain", 3, {2e-3, -6e-4, 1e-4}}}, {{"stress", 3, {}}, {"strain_transverse", 3, {}}},
              points, source);
  std::vector<double> block(static_cast<std::size_t>(9 * points));
  expect(neml2_call_bind_derivative(bound.call, NEML2_INPUT, "stress", "strain", block.data(), NEML2_FLOAT64, 9) == 0,
         "bind the tangent");
  expect_nothing_taken(bound, points, "plane stress at " + std::to_string(points) + " points");
}

}  // namespace

int main() {
  from_a_package();  // which takes memory itself when it is first called
  counting = true;
  std::free(std::malloc(1));
  counting = false;
  expect(taken == 1, "malloc is counted");
  for (std::int64_t points : {1, 7, 300, 5000}) {
    an_explicit_model(points);
    its_jacobian(points);
    a_view(points);
    a_hypothesis(points);
  }
  for (std::int64_t points : {1, 7, 300}) an_implicit_model(points);
  return 0;
}

#endif

// What is fatal is thrown and says what it is about; what is recoverable is returned, or thrown if that is asked for.
#include <cstring>
#include <thread>

#include "face.hpp"

using face::refuses;

constexpr std::size_t n = 4, bad = 2;

static bool says(const neml2::Error& error, const char* text) { return std::strstr(error.what(), text) != nullptr; }

static void what_cannot_be_loaded_is_named() {
  CHECK(refuses(NEML2_ERROR_FILE, "/nothing/here", [] { neml2::Model("/nothing/here"); }));
  CHECK(refuses(NEML2_ERROR_FILE, "here.pt2", [] { neml2::Graph("/nothing/here.pt2"); }));
  CHECK(refuses(NEML2_ERROR_FILE, "here.pt2", [] { neml2::Graph::check("/nothing/here.pt2"); }));
  CHECK(refuses(NEML2_ERROR_FILE, "/nothing/here", [] { neml2::describe("/nothing/here"); }));
  CHECK(refuses(NEML2_ERROR_FILE, "/nothing.i", [] { neml2::Model(neml2::Source("/nothing.i").name("model")); }));
}

static void a_run_returns_what_is_recoverable(const neml2::Model& model) {
  face::Step step(model, n);
  step.strain[bad][0] = 1e200;
  const int32_t status = step.call.run(n);
  CHECK(status >= NEML2_NOT_CONVERGED);
  try {
    step.call.run_or_throw(n);
    check_failed(__FILE__, __LINE__, "it was not thrown");
  } catch (const neml2::Error& error) {
    CHECK(error.recoverable() && error.status() == status && says(error, "point 2"));
  }
  step.strain[bad][0] = 0;
  step.call.run_or_throw(n);
}

static void a_result_tells_what_failed(const neml2::Model& model) {
  face::Step step(model, n);
  step.strain[bad][0] = 1e200;
  neml2::Result result = model.forward(step.arguments());
  CHECK(result.status >= NEML2_NOT_CONVERGED);
  const auto stress = result.outputs.at("stress").values<double>();
  const auto status = result.report.status().values<int32_t>();
  const auto cut = result.report.suggested_cut().values<double>();
  for (std::size_t p = 0; p < n; ++p) {
    CHECK(std::isnan(stress(p, 0)) == (p == bad));
    CHECK((status(p) == NEML2_OK) == (p != bad) && (cut(p) < 1) == (p == bad));
  }
  CHECK(result.report.unknown(0).shape()[1] == 6);
  CHECK(
      refuses(NEML2_ERROR_FILE, "/nothing/here", [&] { neml2::Model("/nothing/here"); }));  // another error in between
  try {
    result.or_throw();
    check_failed(__FILE__, __LINE__, "it was not thrown");
  } catch (const neml2::Error& error) {
    CHECK(error.recoverable() && error.status() == result.status && says(error, "point 2"));
  }
}

static void what_is_well_is_passed_on(const neml2::Model& model) {
  face::Step step(model, n);
  const neml2::Result result = model.forward(step.arguments()).or_throw();
  CHECK(result.status == NEML2_OK && result.message.empty() && result.outputs.size() == 4);
  CHECK(refuses(NEML2_ERROR_NAME, "stres", [&] { result.outputs.at("stres"); }));
  CHECK(refuses(NEML2_ERROR_NAME, "stress:strain", [&] { result.derivatives.at("stress", "strain"); }));
  CHECK(refuses(NEML2_ERROR_MISSING, "unknown", [&] { result.report.unknown(0); }));
}

// The message belongs to the thread, and stays with the exception.
static void an_error_travels() {
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      neml2::Model("/nothing/here");
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  CHECK(refuses(NEML2_ERROR_FILE, "/nothing/here", [&] { std::rethrow_exception(thrown); }));
}

int main() {
  return face::run([] {
    const neml2::Model model(face::path("viscoplastic"));
    what_cannot_be_loaded_is_named();
    a_run_returns_what_is_recoverable(model);
    a_result_tells_what_failed(model);
    what_is_well_is_passed_on(model);
    an_error_travels();
  });
}

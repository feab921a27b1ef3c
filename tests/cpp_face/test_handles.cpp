// Every object is the one owner of its handle: it moves, and what was moved from refuses every use.
#include "face.hpp"

using face::refuses;

template <class T>
constexpr bool moves_only = std::is_nothrow_move_constructible_v<T>&& std::is_move_assignable_v<T> &&
                            !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>;

static_assert(moves_only<neml2::Tensor> && moves_only<neml2::Graph> && moves_only<neml2::Model>);
static_assert(moves_only<neml2::Call> && moves_only<neml2::Report> && moves_only<neml2::Solve>);
static_assert(std::is_nothrow_copy_constructible_v<neml2::Error>, "as what is thrown must be");

static void a_call_keeps_its_model_and_bindings_when_it_moves() {
  const auto strain = face::strains(2);
  std::vector<face::Tensor6> stress(2);
  auto model = std::make_unique<neml2::Model>(face::path("elasticity"));
  neml2::Call call(*model);
  call.bind_input("strain", strain);
  neml2::Call moved = std::move(call);
  model.reset();
  moved.bind_output("stress", stress);
  CHECK(moved.run(2) == NEML2_OK);
  CHECK(face::near(stress[1], face::hooke(strain[1])));
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain", [&] { moved.run_or_throw(3); }));
}

static void what_was_moved_from_is_refused() {
  neml2::Model model(face::path("elasticity")), other = std::move(model);
  CHECK(!model && other);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "model", [&] { model.inputs(); }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "model", [&] { neml2::Call none(model); }));
  neml2::Call call(other), taken = std::move(call);
  std::vector<double> strain(6);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "call", [&] { call.run_or_throw(1); }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "model", [&] { call.bind_input("strain", strain); }));
  neml2::Tensor tensor = neml2::Tensor::zeros<double>({6}), owner = std::move(tensor);
  CHECK(!tensor && owner);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "tensor", [&] { tensor.share(); }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "strain", [&] { static_cast<void>(other.forward({{"strain", tensor}})); }));
  CHECK(face::is_elastic(other));
}

static void handles_come_from_c_and_go_to_it() {
  neml2_model* handle = nullptr;
  const neml2::Source source(face::path("elasticity"));
  const neml2_source in_c = source.get();
  REQUIRE_OK(neml2_model_open(&handle, &in_c));
  const neml2::Model model(handle);
  CHECK(model.get() == handle && face::is_elastic(model));

  neml2::Tensor tensor = neml2::Tensor::zeros<float>({2});
  neml2_tensor* given = tensor.release();
  CHECK(!tensor && given);
  const neml2::Tensor back(given);
  CHECK(back.dtype() == NEML2_FLOAT32);
}

static void what_is_assigned_over_is_freed() {  // the sanitizers watch
  neml2::Tensor tensor = neml2::Tensor::zeros<double>({1000});
  tensor = neml2::Tensor::zeros<double>({1});
  CHECK(tensor.size() == 1);
  neml2::Model model(face::path("viscoplastic"));
  model = neml2::Model(face::path("elasticity"));
  CHECK(face::is_elastic(model));
}

int main() {
  return face::run([] {
    a_call_keeps_its_model_and_bindings_when_it_moves();
    what_was_moved_from_is_refused();
    handles_come_from_c_and_go_to_it();
    what_is_assigned_over_is_freed();
  });
}

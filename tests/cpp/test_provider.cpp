// The built-in provider by itself: its functions are found in the library that is named on the command line.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "provider_calls.h"

using namespace neml2_capi;
using namespace neml2_capi::test;
using graph::SingularInfo;
using namespace aoti;

namespace {

using Status = std::int32_t;
using Ints = Vector<std::int64_t>;
constexpr std::int32_t torch_float64 = 7;

std::string last_error() { return find<const char*()>("nml2_last_error")(); }

// A handle that a function of the ABI returned.
using Owned = std::unique_ptr<Tensor, void (*)(Tensor*)>;

Owned own(Tensor* tensor) {
  return Owned(tensor, [](Tensor* t) { find<Status(Tensor*)>("nml2_torch_delete_tensor_object")(t); });
}

template <class Function, class... Arguments>
Owned make(const char* name, Arguments... arguments) {
  Tensor* tensor = nullptr;
  EXPECT(find<Function>(name)(arguments..., &tensor) == 0);
  return own(tensor);
}

// Reproducible numbers in (-1, 1).
double next_number() {
  static std::uint64_t state = 42;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(static_cast<std::int64_t>(state)) / 9.3e18;
}

Tensor numbers(const Dims& sizes) {
  Tensor tensor = Tensor::empty(DType::float64, sizes);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data_as<double>()[i] = next_number();
  return tensor;
}

// The same values, stored with the last two axes swapped.
Tensor swapped(const Tensor& tensor) {
  const std::int64_t n = tensor.ndim();
  Dims sizes = tensor.sizes(), strides = tensor.strides();
  std::swap(sizes[n - 2], sizes[n - 1]);
  std::swap(strides[n - 2], strides[n - 1]);
  const Tensor stored = Tensor(tensor.storage(), tensor.dtype(), sizes, strides, tensor.offset()).copy();
  strides = stored.strides();
  std::swap(strides[n - 2], strides[n - 1]);
  return Tensor(stored.storage(), tensor.dtype(), tensor.sizes(), strides);
}

double at(const Tensor& tensor, const Ints& index) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * tensor.strides()[static_cast<std::int64_t>(i)];
  return tensor.data_as<double>()[offset];
}

// Calls an extern operator as a package does. Returns the status; outputs are written to `outputs`.
Status call(const char* target, Vector<Tensor> inputs, Vector<Tensor>& outputs, SingularInfo* singular = nullptr,
            std::vector<Argument> fixed = {}) {
  OperatorNode node;
  node.target = target;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Argument argument;
    argument.kind = Argument::Kind::tensor;
    node.inputs.push_back(argument);
  }
  node.inputs.insert(node.inputs.end(), fixed.begin(), fixed.end());
  node.outputs.resize(outputs.size());
  node.function = find<Operator(const char*)>("nml2_find_operator")(target);
  const std::vector<OperatorNode> nodes = {node};
  RunContext run;
  run.nodes = &nodes;
  run.singular = singular;
  std::vector<Tensor*> handles;
  for (Tensor& tensor : inputs) handles.push_back(&tensor);
  for (Tensor& tensor : outputs) handles.push_back(&tensor);
  return find<Status(RunContext*, int, int, std::int64_t*, int, Tensor**)>("nml2_torch_proxy_executor_call_function")(
      &run, 0, 0, nullptr, static_cast<int>(handles.size()), handles.data());
}

Argument boolean(const char* name, bool value) {
  Argument argument;
  argument.name = name;
  argument.kind = Argument::Kind::boolean;
  argument.boolean = value;
  return argument;
}

// max |A x - b| over a batch of matrices and column right-hand sides
double residual(const Tensor& a, const Tensor& x, const Tensor& b) {
  double worst = 0;
  for (std::int64_t m = 0; m < a.sizes()[0]; ++m)
    for (std::int64_t i = 0; i < a.sizes()[1]; ++i)
      for (std::int64_t j = 0; j < x.sizes()[2]; ++j) {
        double sum = -at(b, {m, i, j});
        for (std::int64_t k = 0; k < a.sizes()[1]; ++k) sum += at(a, {m, i, k}) * at(x, {m, k, j});
        worst = std::fmax(worst, std::fabs(sum));
      }
  return worst;
}

void a_storage_lives_as_long_as_its_last_handle() {
  static int freed = 0;
  static double values[6] = {};
  auto* tensor = new Tensor(Storage::wrap(
                                values, sizeof values, [](void*) { ++freed; }, nullptr),
                            DType::float64, {2, 3}, {3, 1});
  Owned original = own(tensor);
  Owned second = make<Status(Tensor*, Tensor**)>("nml2_torch_new_tensor_handle", original.get());
  const Ints sizes = {3}, strides = {2};
  Owned view = make<Status(Tensor*, std::int64_t, const std::int64_t*, const std::int64_t*, std::int64_t, Tensor**)>(
      "nml2_torch__reinterpret_tensor", original.get(), std::int64_t{1}, sizes.data(), strides.data(), std::int64_t{1});
  EXPECT(view->data() == values + 1);
  Owned assigned = make<Status(Tensor**)>("nml2_torch_new_uninitialized_tensor");
  find<Status(Tensor*, Tensor*)>("nml2_torch_assign_tensors")(view.get(), assigned.get());
  original.reset();
  second.reset();
  view.reset();
  EXPECT(freed == 0);
  assigned.reset();
  EXPECT(freed == 1);
}

void a_view_beyond_its_storage_is_refused() {
  Tensor tensor = Tensor::zeros(DType::float64, {2, 3}), *view = nullptr;
  const Ints sizes = {2, 3}, strides = {3, 1};
  EXPECT(find<Status(Tensor*, std::int64_t, const std::int64_t*, const std::int64_t*, std::int64_t, Tensor**)>(
             "nml2_torch__reinterpret_tensor")(&tensor, 2, sizes.data(), strides.data(), 1, &view) == 1);
  EXPECT(last_error().find("exceeds its storage of 48 bytes") != std::string::npos);
  EXPECT(last_error().empty());
}

void only_cpu_tensors_of_known_types_are_made() {
  using Create = Status(std::int64_t, const std::int64_t*, const std::int64_t*, std::int32_t, std::int32_t,
                        std::int32_t, Tensor**);
  const Ints sizes = {0, 4}, strides = {4, 1};
  Owned empty =
      make<Create>("nml2_torch_empty_strided", std::int64_t{2}, sizes.data(), strides.data(), torch_float64, 0, 0);
  EXPECT(empty->numel() == 0);
  Tensor* none = nullptr;
  EXPECT(find<Create>("nml2_torch_empty_strided")(2, sizes.data(), strides.data(), torch_float64, 1, 0, &none) == 1);
  EXPECT(find<Create>("nml2_torch_empty_strided")(2, sizes.data(), strides.data(), 9, 0, 0, &none) == 1);
  EXPECT(last_error().find("scalar type 9") != std::string::npos);
}

// If a block waits for the handle, it is made without a call; what is unusual must be found all the same.
void handles_from_memory_that_waits_are_checked() {
  using View = Status(Tensor*, std::int64_t, const std::int64_t*, const std::int64_t*, std::int64_t, Tensor**);
  using Create = Status(std::int64_t, const std::int64_t*, const std::int64_t*, std::int32_t, std::int32_t,
                        std::int32_t, Tensor**);
  find<void(memory::Allocate, memory::Release)>("nml2_use_memory")(memory::allocate_for, memory::release_for);
  const auto leave_a_block = [] { make<Status(Tensor**)>("nml2_torch_new_uninitialized_tensor").reset(); };
  for (int i = 0; i < 2; ++i) leave_a_block();  // the first only makes the cache known
  struct Axes {
    Ints sizes, strides;
    std::int64_t further;
  };

  Tensor tensor = numbers({2, 3});
  const Ints many(17, 1);
  for (const Axes& axes : {Axes{{2, 3}, {3, 1}, 1}, Axes{{6}, {1}, 1}, Axes{{2}, {1}, -1}, Axes{{2}, {-1}, 3},
                           Axes{{-1}, {1}, 0}, Axes{{-1, -2}, {1, 1}, 0}, Axes{many, many, 0}}) {
    leave_a_block();
    Tensor* view = nullptr;
    EXPECT(find<View>("nml2_torch__reinterpret_tensor")(&tensor, std::ssize(axes.sizes), axes.sizes.data(),
                                                        axes.strides.data(), axes.further, &view) == 1);
    EXPECT(view == nullptr && !last_error().empty() && tensor.storage().is_unique());
  }
  for (const Axes& axes : {Axes{{}, {}, 5}, Axes{{3, 2}, {1, 3}, 0}, Axes{{5}, {0}, 5}, Axes{{9, 0}, {9, 9}, 6}}) {
    leave_a_block();
    const Owned view = make<View>("nml2_torch__reinterpret_tensor", &tensor, std::ssize(axes.sizes), axes.sizes.data(),
                                  axes.strides.data(), axes.further);
    EXPECT(view->data() == tensor.data_as<double>() + axes.further && view->dtype() == DType::float64);
    EXPECT(view->sizes() == Dims(axes.sizes) && view->strides() == Dims(axes.strides));
    EXPECT(view->offset() == axes.further && !tensor.storage().is_unique());
    const Ints sizes = {1}, strides = {1};  // a view of a view counts from there
    Tensor* further = nullptr;
    EXPECT(find<View>("nml2_torch__reinterpret_tensor")(view.get(), 1, sizes.data(), strides.data(), 6, &further) == 1);
  }
  EXPECT(tensor.storage().is_unique());

  const Ints sizes = {2, 3}, strides = {1, 4};  // from the first to the last: 10 elements
  for (const auto& [type, bytes] : {std::pair{7, 80}, {6, 40}, {4, 80}, {11, 10}}) {
    for (int i = 0; i < 2; ++i) {  // the second has the memory of the first
      const Owned made =
          make<Create>("nml2_torch_empty_strided", std::int64_t{2}, sizes.data(), strides.data(), type, 0, 0);
      EXPECT(made->storage().bytes() == bytes && made->sizes() == Dims(sizes) && made->strides() == Dims(strides));
      std::memset(made->data(), 0, static_cast<std::size_t>(bytes));
    }
  }
  only_cpu_tensors_of_known_types_are_made();
}

void a_clone_keeps_the_order_of_axes() {
  const Tensor tensor = swapped(numbers({2, 3, 4}));
  Owned clone = make<Status(Tensor*, Tensor**)>("nml2_torch_clone", const_cast<Tensor*>(&tensor));
  EXPECT(same_values<double>(*clone, tensor));
  EXPECT(clone->strides() == tensor.strides());
  EXPECT(clone->data() != tensor.data());
  // Expanded: dense afterwards.
  const Tensor row = numbers({4});
  Tensor expanded(row.storage(), DType::float64, {3, 4}, {0, 1});
  clone = make<Status(Tensor*, Tensor**)>("nml2_torch_clone", &expanded);
  EXPECT(same_values<double>(*clone, expanded));
  EXPECT((clone->strides() == Dims{4, 1}));
  clone = make<Status(Tensor*, Tensor**)>("nml2_torch_clone_preserve_strides", &expanded);
  EXPECT(same_values<double>(*clone, expanded));
  EXPECT((clone->strides() == Dims{0, 1}));
}

void values_are_broadcast_and_converted_on_copy() {
  Tensor destination = Tensor::zeros(DType::float64, {2, 3});
  Tensor source = Tensor::zeros(DType::int32, {3});
  for (int i = 0; i < 3; ++i) source.data_as<std::int32_t>()[i] = i + 1;
  EXPECT(find<Status(Tensor*, Tensor*, std::int32_t)>("nml2_torch_copy_")(&destination, &source, 0) == 0);
  EXPECT(at(destination, {1, 2}) == 3.0);
  bool truth = false;
  Owned scalar = make<Status(double, Tensor**)>("nml2_torch_scalar_to_tensor_float64", 0.5);
  EXPECT(find<Status(Tensor*, bool*)>("nml2_torch_item_bool")(scalar.get(), &truth) == 0);
  EXPECT(truth);
  double value = 0;
  EXPECT(find<Status(Tensor*, double*)>("nml2_torch_item_float64")(&destination, &value) == 1);
  EXPECT(!last_error().empty());
}

void a_solve_has_the_layout_that_packages_assume() {
  const Tensor a = numbers({4, 7, 7}), b = numbers({4, 7, 2});
  Vector<Tensor> out(4);
  EXPECT(call("aten::_linalg_solve_ex", {a, b}, out) == 0);
  EXPECT(residual(a, out[0], b) < 1e-12);
  EXPECT((out[0].strides() == Dims{14, 1, 7}));
  EXPECT((out[1].strides() == Dims{49, 1, 7}));
  EXPECT((out[2].dtype() == DType::int32 && out[2].sizes() == Dims{4, 7}));
  EXPECT((out[3].dtype() == DType::int32 && out[3].sizes() == Dims{4}));
}

void a_solve_does_not_depend_on_strides_or_batch() {
  const Tensor a = numbers({5, 6, 6}), b = numbers({5, 6, 3});
  Vector<Tensor> whole(4), other(4);
  EXPECT(call("aten::_linalg_solve_ex", {a, b}, whole) == 0);
  EXPECT(call("aten::_linalg_solve_ex", {swapped(a), swapped(b)}, other) == 0);
  EXPECT(same_values<double>(whole[0], other[0]));
  for (std::int64_t i = 0; i < 5; ++i) {
    EXPECT(call("aten::_linalg_solve_ex", {entries(a, i, 1), entries(b, i, 1)}, other) == 0);
    EXPECT(same_values<double>(other[0], entries(whole[0], i, 1)));
  }
}

void a_solve_broadcasts_and_takes_vectors_and_right_sides() {
  const Tensor a = numbers({3, 4, 4}), b = numbers({3, 4});
  Vector<Tensor> columns(4), vectors(4);
  EXPECT(call("aten::_linalg_solve_ex", {a, b}, vectors) == 0);
  EXPECT((vectors[0].sizes() == Dims{3, 4}));
  const Tensor b_columns(b.storage(), DType::float64, {3, 4, 1}, {4, 1, 1});
  EXPECT(call("aten::_linalg_solve_ex", {a, b_columns}, columns) == 0);
  EXPECT(same_values<double>(vectors[0], Tensor(columns[0].storage(), DType::float64, {3, 4}, {4, 1})));
  // One right-hand side for all matrices.
  EXPECT(call("aten::_linalg_solve_ex", {a, entries(b_columns, 0, 1)}, columns) == 0);
  const Tensor repeated(b.storage(), DType::float64, {3, 4, 1}, {0, 1, 1});
  EXPECT(residual(a, columns[0], repeated) < 1e-12);
  // X A = B is A^T X^T = B^T.
  Vector<Tensor> right(4), left(4);
  const Tensor rows = numbers({3, 2, 4});
  EXPECT(call("aten::_linalg_solve_ex", {a, rows}, right, nullptr, {boolean("left", false)}) == 0);
  EXPECT((right[0].strides() == Dims{8, 4, 1}));
  const auto transposed = [](const Tensor& t) {
    return Tensor(t.storage(), t.dtype(), {t.sizes()[0], t.sizes()[2], t.sizes()[1]},
                  {t.strides()[0], t.strides()[2], t.strides()[1]});
  };
  EXPECT(residual(transposed(a), transposed(right[0]), transposed(rows)) < 1e-12);
  EXPECT(call("aten::_linalg_solve_ex", {a, numbers({3, 5, 1})}, left) == 1);
  EXPECT(last_error().find("right-hand sides") != std::string::npos);
  // No matrices at all.
  EXPECT(call("aten::_linalg_solve_ex", {numbers({0, 4, 4}), numbers({0, 4, 1})}, left) == 0);
  EXPECT(left[0].numel() == 0);
}

void a_singular_matrix_spoils_only_its_own_result() {
  const Tensor a = numbers({8, 3, 3}).copy(), b = numbers({8, 3, 1});
  Vector<Tensor> before(4), out(4), none;
  EXPECT(call("aten::_linalg_solve_ex", {a, b}, before) == 0);
  for (int i = 0; i < 3; ++i) a.data_as<double>()[2 * 9 + 3 * i + 1] = 0;  // the second column of matrix 3
  EXPECT(call("aten::_linalg_solve_ex", {a, b}, out) == 0);
  for (std::int64_t m = 0; m < 8; ++m) {
    EXPECT(out[3].data_as<std::int32_t>()[m] == (m == 2 ? 2 : 0));
    for (std::int64_t i = 0; i < 3; ++i) EXPECT(std::isnan(at(out[0], {m, i, 0})) == (m == 2));
    if (m != 2) EXPECT(same_values<double>(entries(out[0], m, 1), entries(before[0], m, 1)));
  }
  SingularInfo singular;
  EXPECT(call("aten::_linalg_check_errors", {before[3]}, none, &singular) == 0);
  EXPECT(singular.empty());
  EXPECT(call("aten::_linalg_check_errors", {out[3]}, none, &singular) == 0);
  EXPECT((singular == SingularInfo{0, 0, 2, 0, 0, 0, 0, 0}));
  // Two matrices per point, of which one is singular at the last point.
  Tensor finer = Tensor::zeros(DType::int32, {8, 2});
  finer.data_as<std::int32_t>()[15] = 1;
  EXPECT(call("aten::_linalg_check_errors", {finer}, none, &singular) == 0);
  EXPECT((singular == SingularInfo{0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  // Nobody asked for a report: the run fails.
  EXPECT(call("aten::_linalg_check_errors", {out[3]}, none) == 1);
  EXPECT(last_error() == "matrix 3 of 8 is singular");
}

void an_inverse_is_column_major_and_inverts() {
  const Tensor a = numbers({3, 4, 4});
  Vector<Tensor> out(2);
  EXPECT(call("aten::linalg_inv_ex", {a}, out) == 0);
  EXPECT((out[0].strides() == Dims{16, 1, 4}));
  Tensor identity = Tensor::zeros(DType::float64, {3, 4, 4});
  for (std::int64_t m = 0; m < 3; ++m)
    for (std::int64_t i = 0; i < 4; ++i) identity.data_as<double>()[m * 16 + i * 5] = 1;
  EXPECT(residual(a, out[0], identity) < 1e-12);
}

void a_product_takes_any_strides_and_depends_on_no_other_row() {
  using Product = Status(Tensor*, Tensor*, Tensor*);
  Tensor a = numbers({5, 4, 3}), b = numbers({5, 3, 6});
  Tensor out = Tensor::zeros(DType::float64, {5, 4, 6});
  EXPECT(find<Product>("nml2_torch_cpu_bmm_out")(&out, &a, &b) == 0);
  for (std::int64_t m = 0; m < 5; ++m)
    for (std::int64_t i = 0; i < 4; ++i)
      for (std::int64_t j = 0; j < 6; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < 3; ++k) sum += at(a, {m, i, k}) * at(b, {m, k, j});
        EXPECT(std::fabs(at(out, {m, i, j}) - sum) < 1e-15);
      }
  Tensor a_swapped = swapped(a), b_swapped = swapped(b), out_swapped = swapped(numbers({5, 4, 6}));
  EXPECT(find<Product>("nml2_torch_cpu_bmm_out")(&out_swapped, &a_swapped, &b_swapped) == 0);
  EXPECT(same_values<double>(out, out_swapped));
  // One row of one entry, as a matrix.
  Tensor row(a.storage(), DType::float64, {1, 3}, {3, 1}, 3 * 12 + 2 * 3);
  Tensor matrix(b.storage(), DType::float64, {3, 6}, {6, 1}, 3 * 18);
  Tensor product = Tensor::zeros(DType::float64, {1, 6});
  EXPECT(find<Product>("nml2_torch_cpu_mm_out")(&product, &row, &matrix) == 0);
  EXPECT(same_values<double>(product, Tensor(out.storage(), DType::float64, {1, 6}, {6, 1}, 3 * 24 + 2 * 6)));
  // beta * added + alpha * a b, where `added` is repeated for every row.
  Tensor added = numbers({6}), sum = Tensor::zeros(DType::float64, {1, 6});
  EXPECT(find<Status(Tensor*, Tensor*, Tensor*, Tensor*, double, double)>("nml2_torch_cpu_addmm_out")(
             &sum, &added, &row, &matrix, 2.0, 3.0) == 0);
  for (std::int64_t j = 0; j < 6; ++j) EXPECT(at(sum, {0, j}) == 2.0 * at(added, {j}) + 3.0 * at(product, {0, j}));
  EXPECT(find<Product>("nml2_torch_cpu_mm_out")(&product, &matrix, &row) == 1);
  EXPECT(last_error().find("matrix product") != std::string::npos);
}

void a_power_broadcasts_and_keeps_the_layout_of_its_base() {
  const Tensor numbers_ = numbers({3, 4}).copy();
  for (std::int64_t i = 0; i < 12; ++i) numbers_.data_as<double>()[i] = std::fabs(numbers_.data_as<double>()[i]);
  const Tensor base = swapped(numbers_);
  Tensor exponent = Tensor::empty(DType::float64, {});
  *exponent.data_as<double>() = 3.7;
  Vector<Tensor> out(1);
  EXPECT(call("neml2::opaque_pow", {base, exponent}, out) == 0);
  EXPECT(out[0].strides() == base.strides());
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 4; ++j)
      EXPECT(std::fabs(at(out[0], {i, j}) / std::pow(at(base, {i, j}), 3.7) - 1) < 3e-16);
  EXPECT(call("neml2::opaque_pow", {base, Tensor::zeros(DType::int64, {})}, out) == 1);
  EXPECT(last_error().find("int64") != std::string::npos);
}

void a_call_that_wrapper_json_does_not_describe_fails() {
  Vector<Tensor> out(1);
  EXPECT(call("aten::cosh", {numbers({2})}, out) == 1);
  EXPECT(last_error().find("aten::cosh is not supported") != std::string::npos);
  EXPECT(std::string(find<const char*()>("nml2_supported_operators")()).find("aten::_linalg_solve_ex") !=
         std::string::npos);
}

}  // namespace

int main(int argc, char** argv) {
  open_provider(argc, argv);
  a_storage_lives_as_long_as_its_last_handle();
  a_view_beyond_its_storage_is_refused();
  only_cpu_tensors_of_known_types_are_made();
  a_clone_keeps_the_order_of_axes();
  values_are_broadcast_and_converted_on_copy();
  a_solve_has_the_layout_that_packages_assume();
  a_solve_does_not_depend_on_strides_or_batch();
  a_solve_broadcasts_and_takes_vectors_and_right_sides();
  a_singular_matrix_spoils_only_its_own_result();
  an_inverse_is_column_major_and_inverts();
  a_product_takes_any_strides_and_depends_on_no_other_row();
  a_power_broadcasts_and_keeps_the_layout_of_its_base();
  a_call_that_wrapper_json_does_not_describe_fails();
  handles_from_memory_that_waits_are_checked();
  return 0;
}

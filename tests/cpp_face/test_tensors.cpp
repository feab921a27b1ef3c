// Tensors: over memory of the host, sharing storage, with typed views, through DLPack.
#include "face.hpp"

using face::refuses;
using neml2::Tensor;

static void a_new_tensor_is_zero() {
  const Tensor tensor = Tensor::zeros<double>({2, 3});
  CHECK(tensor.dtype() == NEML2_FLOAT64 && tensor.size() == 6 && tensor.is_row_major());
  CHECK(tensor.shape().size() == 2 && tensor.shape()[1] == 3 && tensor.strides()[0] == 3);
  for (const double value : tensor.values<double>()) CHECK(value == 0);
  CHECK(Tensor::zeros(NEML2_INT32, {}).size() == 1);
}

static void every_element_type_has_its_number() {
  CHECK(Tensor::zeros<float>({1}).dtype() == NEML2_FLOAT32);
  CHECK(Tensor::zeros<int64_t>({1}).dtype() == NEML2_INT64);
  CHECK(Tensor::zeros<long long>({1}).dtype() == NEML2_INT64);
  CHECK(Tensor::zeros<int>({1}).dtype() == NEML2_INT32);
  CHECK(Tensor::zeros<int16_t>({1}).dtype() == NEML2_INT16);
  CHECK(Tensor::zeros<int8_t>({1}).dtype() == NEML2_INT8);
  CHECK(Tensor::zeros<uint8_t>({1}).dtype() == NEML2_UINT8);
  CHECK(Tensor::zeros<bool>({1}).dtype() == NEML2_BOOL);
}

static void a_view_knows_type_and_shape() {
  double values[2][3] = {{1, 2, 3}, {4, 5, 6}};
  const Tensor tensor = Tensor::wrap(values, {2, 3});
  const auto view = tensor.values<const double>();
  CHECK(view.data() == values[0] && view.size() == 6 && view.shape()[0] == 2);
  CHECK(view(1, 2) == 6 && view[4] == 5);
  tensor.values<double>()(0, 1) = 20;
  CHECK(values[0][1] == 20);
  CHECK(refuses(NEML2_ERROR_DTYPE, "", [&] { tensor.values<float>(); }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "indices", [&] { view(1); }));

  const Tensor columns = Tensor::wrap(values, {3, 2}, {1, 3});
  CHECK(!columns.is_row_major() && columns.strides()[1] == 3 && columns.data() == values);
  CHECK(refuses(NEML2_ERROR_SHAPE, "", [&] { columns.values<double>(); }));
}

static void a_view_outlives_its_tensor() {
  const auto view = Tensor::own(std::vector<double>{1, 2, 3}, {3, 1}).values<double>();
  CHECK(view(2, 0) == 3 && view.shape()[0] == 3);
}

static void an_array_that_is_too_short_is_refused() {
  std::vector<double> values(6);
  CHECK(Tensor::wrap(values, {2, 2}, {3, 2}).size() == 4);  // the last is number 5
  CHECK(refuses(NEML2_ERROR_SHAPE, "values", [&] { Tensor::wrap(values, {7}); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "values", [&] { Tensor::wrap(values, {2, 2}, {4, 2}); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "values", [&] { Tensor::copy(values, {2, 4}); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "values", [&] { Tensor::wrap(values, {INT64_MAX, 2}); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "values", [&] { Tensor::wrap(values, {2, 2}, {INT64_MAX, 1}); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "strides", [&] { Tensor::wrap(values, {2, 2}, {-1, 1}); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "strides", [&] { Tensor::wrap(values, {2, 2}, {1}); }));
  CHECK(Tensor::wrap(values, {1000, 0}).size() == 0);
}

static void a_copy_is_another() {
  const std::vector<int32_t> values = {1, 2, 3};
  const Tensor tensor = Tensor::copy(values, {3});
  CHECK(tensor.values<int32_t>().data() != values.data() && tensor.values<int32_t>()[2] == 3);
}

static void a_share_is_the_same() {
  Tensor tensor = Tensor::zeros<double>({4});
  const Tensor other = tensor.share();
  tensor.values<double>()[2] = 7;
  tensor = Tensor();
  CHECK(other.values<double>()[2] == 7);
}

// A container that tells when it is gone.
struct Counted {
  explicit Counted(int* c) : numbers(4, 1.5), count(c) {}
  Counted(Counted&& other) noexcept : numbers(std::move(other.numbers)), count(std::exchange(other.count, nullptr)) {}
  ~Counted() {
    if (count) ++*count;
  }
  double* data() { return numbers.data(); }
  const double* data() const { return numbers.data(); }
  std::size_t size() const { return numbers.size(); }

  std::vector<double> numbers;
  int* count;
};

static void a_container_lives_with_its_tensor() {
  int gone = 0;
  {
    Tensor tensor = Tensor::own(Counted(&gone), {2, 2});
    const Tensor other = tensor.share();
    tensor = Tensor();
    CHECK(gone == 0 && other.values<double>()(1, 1) == 1.5);
  }
  CHECK(gone == 1);
  CHECK(refuses(NEML2_ERROR_SHAPE, "values", [&] { Tensor::own(Counted(&gone), {5}); }));
  CHECK(gone == 2);
}

static void dlpack_keeps_the_storage() {
  int gone = 0;
  {
    Tensor tensor = Tensor::own(Counted(&gone), {4});
    const double* data = tensor.values<double>().data();
    DLManagedTensorVersioned* managed = tensor.to_dlpack();
    tensor = Tensor();
    CHECK(gone == 0);
    const Tensor back = Tensor::from_dlpack(managed);
    CHECK(back.values<double>().data() == data && back.shape()[0] == 4);
  }
  CHECK(gone == 1);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "managed", [] { Tensor::from_dlpack(nullptr); }));
}

int main() {
  return face::run([] {
    a_new_tensor_is_zero();
    every_element_type_has_its_number();
    a_view_knows_type_and_shape();
    a_view_outlives_its_tensor();
    an_array_that_is_too_short_is_refused();
    a_copy_is_another();
    a_share_is_the_same();
    a_container_lives_with_its_tensor();
    dlpack_keeps_the_storage();
  });
}

/*
 * neml2_capi.hpp: the C++ face of neml2_capi.h.
 *
 * C++17, header only, over the C ABI alone: whatever compiler and standard library built libneml2_capi, this file is
 * compiled with yours, and only C crosses the boundary. Link the C library, nothing else. Read the conventions of
 * neml2_capi.h first (Mandel notation, histories, shapes); this file says what differs here.
 *
 *
 * EXAMPLE
 *
 * Linear elasticity at two material points: strain in, stress out. It compiles as it stands, and its only argument is
 * the folder of an artifact, such as examples/artifacts/elasticity.
 *
 *     #include <array>
 *     #include <cstdio>
 *     #include <vector>
 *
 *     #include "neml2_capi.hpp"
 *
 *     int main(int argc, char** argv) try {
 *       const std::vector<std::array<double, 6>> strain = {{1e-3, -3e-4, -3e-4, 0, 0, 0}, {0, 0, 0, 2e-4, 0, 0}};
 *       std::vector<std::array<double, 6>> stress(2);
 *
 *       const neml2::Model model(argc > 1 ? argv[1] : "elasticity");
 *       neml2::Call call(model);
 *       call.bind_input("strain", strain);
 *       call.bind_output("stress", stress);
 *       if (call.run(2) != NEML2_OK) return 1;  // some points failed: cut the step
 *       for (const auto& point : stress) std::printf("stress xx %g, yz %g\n", point[0], point[3]);
 *       return 0;
 *     } catch (const neml2::Error& error) {
 *       std::fprintf(stderr, "%s\n", error.what());
 *       return 1;
 *     }
 *
 *
 * WHAT TO READ
 *
 *   Source     what to open, and for what
 *   Model      an artifact: evaluate it with tensors, ask what it has, change parameters and options
 *   Call       all that a finite-element host needs: arrays bound by name once, blocks of points again and again
 *   Tensor     an n-dimensional array: own, wrapped, shared, exchanged through DLPack
 *   Solve      your own Newton loop, or SNES or KINSOL, over the nonlinear systems of a model
 *
 * neml2_capi_experimental.hpp goes on with what may change in any release: graphs, operators, schedulers.
 *
 * An implicit host binds the history too, lets the variables of a point interleave in one array of states, and asks
 * for the consistent tangent in the order of its stiffness:
 *
 *     call.bind_input("X1~1", neml2::Span(old_state).from(7), 19);  // from number 7 on, 19 numbers per point
 *     call.bind_output("X1", neml2::Span(state).from(7), 19);
 *     call.bind_input("t", time, 0);                                // one number for all points
 *     call.bind_derivative("stress", "strain", tangent).set_block_order(NEML2_INPUT_FIRST);
 *     call.bind_report(NEML2_REPORT_STATUS, status);
 *
 * Evaluation with tensors is for batches of any shape, and for all derivatives at once:
 *
 *     const neml2::Tensor strains = neml2::Tensor::copy(strain, {2, 6});
 *     const neml2::Result result = model.jacobian({{"strain", strains}});
 *     const auto tangent = result.derivatives.at("stress", "strain").values<double>();  // tangent(p, i, j)
 *
 *
 * CONVENTIONS
 *
 * Errors      What is fatal in C, a negative status, throws neml2::Error: what() says what was wrong, what was expected
 *             and what to do; subject() names the variable, option or file. What is recoverable, a positive status, is
 *             a result: run() returns it and Result has it, since a host that cuts its steps asks after every one.
 *             Those who want it thrown call run_or_throw() or Result::or_throw(): then recoverable() of the Error is
 *             true. If devices of a Scheduler failed side by side, the Error is an AggregateError. All that is not
 *             noexcept can throw std::bad_alloc too.
 * Ownership   Objects own their C handle; they move and do not copy. Tensor::share() makes another handle to the same
 *             storage. get() lends the handle to a C function; Tensor, Model and Report take one over, and
 *             release() gives it up, except a Model's, which its calls share. An object that was moved from refuses
 *             every use with an Error. Arguments are borrowed for the length of a call, except arrays that are bound
 *             or wrapped.
 * Arrays      Wherever an Array or a ConstArray is wanted, give a std::vector, std::array, C array, std::span or
 *             Span(pointer, size) of numbers, also nested (std::array<double, 6> is six numbers), anything else with
 *             data() and size(), or a variable that is one number. Nothing is copied. What is bound must stay where it
 *             is until the last run: a temporary is refused by the compiler, and a std::vector must not grow.
 * Extents     The library sees pointers; this file sees how long arrays are. A call remembers how many points each
 *             array holds, and a run of more is NEML2_ERROR_SHAPE, naming the variable, before anything is touched.
 * Names       Statuses, kinds and element types are the NEML2_* of neml2_capi.h. Variables go by name.
 * Threads     As in C: a Model serves many threads at once, everything else one at a time. A thread needs a Call of
 *             its own.
 */
#ifndef NEML2_CAPI_HPP
#define NEML2_CAPI_HPP

#include <neml2_capi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace neml2 {

/** Sizes of axes, or strides, in elements. */
using Shape = std::vector<int64_t>;

/** A point stride: the points of an array lie one behind the other. */
inline constexpr int64_t dense = std::numeric_limits<int64_t>::min();

/* ---------------------------------------------------------------------------------------------
 * Version and errors
 * ------------------------------------------------------------------------------------------- */

/** The ABI of the library that is loaded, as 1000 * major + minor. */
inline int32_t abi_version() noexcept { return neml2_abi_version(); }

/** The release of the library, for example "1.0.0". */
inline const char* version() noexcept { return neml2_version(); }

/** What a function of the library could not do, or, if recoverable(), what became of some points. */
class Error : public std::runtime_error {
 public:
  Error(int32_t status, const std::string& subject, const std::string& message, int32_t cause = NEML2_CAUSE_NONE)
      : std::runtime_error(message),
        status_(status),
        cause_(cause),
        subject_(std::make_shared<const std::string>(subject)) {}

  /* Copied where it is moved: one that was moved from has its words still. */
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;

  /** One of NEML2_ERROR_* or, if recoverable, of the positive ones. */
  int32_t status() const noexcept { return status_; }

  /** One of NEML2_CAUSE_*, or a number of the host's. */
  int32_t cause() const noexcept { return cause_; }

  /** The variable, parameter, option, segment or file that the error is about; empty if there is none. */
  const std::string& subject() const noexcept { return *subject_; }

  /** Some points failed and the others hold good results: cut the step and try again. */
  bool recoverable() const noexcept { return status_ > NEML2_OK; }

 private:
  int32_t status_, cause_;
  std::shared_ptr<const std::string> subject_; /* an exception must be copied without throwing */
};

/** Several errors of one call, if devices of a Scheduler failed side by side; recoverable() if each is. */
class AggregateError : public Error {
 public:
  AggregateError(const Error& worst, std::vector<Error> errors)
      : Error(worst), errors_(std::make_shared<const std::vector<Error>>(std::move(errors))) {}

  AggregateError(const AggregateError&) noexcept = default;
  AggregateError& operator=(const AggregateError&) noexcept = default;

  /** All of them, in the order of their points. */
  const std::vector<Error>& errors() const noexcept { return *errors_; }

 private:
  std::shared_ptr<const std::vector<Error>> errors_;
};

namespace detail {

/* The text that a function copies to a buffer, capacity and needed size. */
template <class Copy>
std::string text(Copy&& copy) {
  int64_t needed = 0;
  copy(nullptr, int64_t{0}, &needed);
  std::string result(static_cast<std::size_t>(needed), '\0');
  copy(&result[0], needed, &needed);
  result.resize(std::strlen(result.c_str()));
  return result;
}

/* What is thrown for one error or several. */
[[noreturn]] inline void throw_error(const Error& worst, std::vector<Error> errors) {
  if (errors.size() > 1) throw AggregateError(worst, std::move(errors));
  throw worst;
}

/* The errors of this thread's last failed call, if they are several. */
inline std::vector<Error> last_errors() {
  std::vector<Error> errors;
  int64_t count = 0;
  static_cast<void>(neml2_error_count(&count));
  for (int64_t i = 0; count > 1 && i < count; ++i) {
    int32_t status = NEML2_OK, cause = NEML2_CAUSE_NONE;
    const std::string message =
        text([&](auto... to) { static_cast<void>(neml2_error_get(&status, &cause, to..., i)); });
    errors.emplace_back(status, "", message, cause);
  }
  return errors;
}

/* The last error of this thread. */
[[noreturn]] inline void throw_last_error(int32_t status) {
  throw_error({status, text(neml2_error_subject), text(neml2_error_message), neml2_error_cause()}, last_errors());
}

/* What is fatal is thrown; NEML2_OK or what is recoverable is returned. */
inline int32_t checked(int32_t status) {
  if (status < NEML2_OK) throw_last_error(status);
  return status;
}

/* What has no result unless all is well throws what is recoverable, too. */
inline void completed(int32_t status) {
  if (status != NEML2_OK) throw_last_error(status);
}

/* What a function gives through its first parameter. */
template <class Out, class... Parameters, class... Arguments>
Out made(int32_t (*function)(Out*, Parameters...), Arguments... arguments) {
  Out out{};
  completed(function(&out, arguments...));
  return out;
}

/* The structure that a function fills. */
template <class Info, class... Parameters, class... Arguments>
Info inspected(int32_t (*function)(Info*, Parameters...), Arguments... arguments) {
  Info info{};
  info.size = sizeof info;
  checked(function(&info, arguments...));
  return info;
}

/* The one owner of a C handle. */
template <class T, void (*free)(T**)>
class Handle {
 public:
  Handle() noexcept = default;

  /** Take over a handle of the C library. */
  explicit Handle(T* owned) noexcept : handle_(owned) {}

  /** The handle, borrowed; NULL after a move. */
  T* get() const noexcept { return handle_.get(); }

  /** Give the handle up: it is yours to free. */
  T* release() noexcept { return handle_.release(); }

  /** Whether there is something to use. */
  explicit operator bool() const noexcept { return handle_ != nullptr; }

 private:
  struct Free {
    void operator()(T* handle) const noexcept { free(&handle); }
  };
  std::unique_ptr<T, Free> handle_;
};

/* a + b c of what is not negative; what is too great becomes the greatest number. */
inline int64_t multiply_add(int64_t a, int64_t b, int64_t c) {
  constexpr int64_t greatest = std::numeric_limits<int64_t>::max();
  return c > 0 && b > (greatest - a) / c ? greatest : a + b * c;
}

/* How many elements there are; less than 0 if a size is. */
template <class Sizes>
int64_t product(const Sizes& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    if (size <= 0) return size;
    count = multiply_add(0, count, size);
  }
  return count;
}

/* NEML2_FLOAT64 and so on, of a C++ type. */
template <class T>
constexpr int32_t dtype_of() {
  constexpr bool is_signed = std::is_integral_v<T> && std::is_signed_v<T>, is_byte = std::is_same_v<T, uint8_t>;
  constexpr bool is_real = std::is_same_v<T, double> || std::is_same_v<T, float>, is_bool = std::is_same_v<T, bool>;
  static_assert(is_signed || is_real || is_byte || is_bool, "the library has no such element type");
  if constexpr (is_real) return sizeof(T) == 8 ? NEML2_FLOAT64 : NEML2_FLOAT32;
  if constexpr (is_byte || is_bool) return is_bool ? NEML2_BOOL : NEML2_UINT8;
  constexpr int32_t of_size[] = {0, NEML2_INT8, NEML2_INT16, 0, NEML2_INT32, 0, 0, 0, NEML2_INT64};
  return of_size[sizeof(T)];
}

inline const char* name_of(int32_t dtype) {
  constexpr const char* names[] = {"float64", "float32", "int64", "int32",   "int16",
                                   "int8",    "uint8",   "bool",  "float16", "bfloat16"};
  return dtype >= NEML2_FLOAT64 && dtype <= NEML2_BFLOAT16 ? names[dtype - 1] : "an unknown type";
}

/* The number type at the bottom of nested arrays. */
template <class T>
struct Bottom {
  using type = T;
};
template <class T, std::size_t n>
struct Bottom<T[n]> : Bottom<T> {};
template <class T, std::size_t n>
struct Bottom<std::array<T, n>> : Bottom<T> {};
template <class T, std::size_t n>
struct Bottom<const std::array<T, n>> : Bottom<const T> {};

/* What the data() of a container points to, and the numbers in it. */
template <class Container>
using Item = std::remove_pointer_t<decltype(std::data(std::declval<Container&>()))>;
template <class Container>
using Number = typename Bottom<Item<Container>>::type;

template <class Container>
Number<Container>* first_number(Container& container) {
  static_assert(sizeof(Item<Container>) % sizeof(Number<Container>) == 0, "nested arrays must be dense");
  return reinterpret_cast<Number<Container>*>(std::data(container));
}

/* Whether a container only looks at what it gives: it is no longer const if the container is. */
template <class Container>
inline constexpr bool is_view = std::is_const_v<Item<Container>> || !std::is_const_v<Item<const Container>>;
template <class T, std::size_t n>
inline constexpr bool is_view<std::array<T, n>> = false;
template <class T>
inline constexpr bool is_view<std::initializer_list<T>> = false;

/* Whether the numbers of a container that is given so are there after the statement. */
template <class Values>
inline constexpr bool outlives =
    std::is_lvalue_reference_v<Values> || is_view<std::remove_cv_t<std::remove_reference_t<Values>>>;

template <class Container>
std::size_t count_numbers(const Container& container) {
  return static_cast<std::size_t>(std::size(container)) * (sizeof(Item<Container>) / sizeof(Number<Container>));
}

}  // namespace detail

/* ---------------------------------------------------------------------------------------------
 * Arrays of the host
 * ------------------------------------------------------------------------------------------- */

/** Numbers that lie one behind the other in memory of someone else: std::span, for C++17. */
template <class T>
class Span {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using iterator = T*;

  constexpr Span() noexcept = default;
  constexpr Span(T* data, std::size_t size) noexcept : data_(data), size_(size) {}

  /** All numbers of a container, also of nested arrays. */
  template <class Container, class = std::enable_if_t<std::is_convertible_v<
                                 detail::Number<std::remove_reference_t<Container>> (*)[], T (*)[]>>>
  Span(Container&& container) : Span(detail::first_number(container), detail::count_numbers(container)) {
    static_assert(detail::outlives<Container>, "a temporary is gone before it is used: give it a name");
  }

  constexpr T* data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr T* begin() const noexcept { return data_; }
  constexpr T* end() const noexcept { return data_ + size_; }
  constexpr T& operator[](std::size_t i) const noexcept { return data_[i]; }

  /** All but the first numbers: where a variable begins in an array of states. */
  Span from(std::size_t first) const {
    if (first > size_)
      throw Error(NEML2_ERROR_ARGUMENT, "first",
                  "A span of " + std::to_string(size_) + " numbers cannot begin at " + std::to_string(first) + ".");
    return {data_ + first, size_ - first};
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

template <class T, class Size>
Span(T*, Size) -> Span<T>;
template <class Container>
Span(Container&&) -> Span<detail::Number<std::remove_reference_t<Container>>>;

/** An array of the host that the library reads: where, of what, and how many numbers. nullptr: no array. */
class ConstArray {
 public:
  ConstArray(std::nullptr_t) noexcept {}

  /** A container of numbers, or a variable that is one number. */
  template <class Values, class Plain = std::remove_cv_t<std::remove_reference_t<Values>>,
            class = std::enable_if_t<!std::is_base_of_v<ConstArray, Plain> && !std::is_null_pointer_v<Plain>>>
  ConstArray(Values&& values) {
    if constexpr (std::is_arithmetic_v<Plain>) {
      static_assert(std::is_lvalue_reference_v<Values>, "a temporary is gone before it is used: give it a name");
      assign(&values, 1);
    } else {
      static_assert(detail::outlives<Values>, "a temporary is gone before it is used: give it a name");
      assign(detail::first_number(values), detail::count_numbers(values));
      item_ = static_cast<int64_t>(sizeof(detail::Item<Values>) / sizeof(detail::Number<Values>));
    }
  }

  const void* data() const noexcept { return data_; }

  /** NEML2_FLOAT64 and so on; 0 if there is no array. */
  int32_t dtype() const noexcept { return dtype_; }

  /** How many numbers there are. */
  int64_t size() const noexcept { return size_; }

  /** How many numbers one item has, of a container of std::array or of built-in arrays; else 1. */
  int64_t item_size() const noexcept { return item_; }

  /** Whether the numbers were const where the array was made: nothing writes there. */
  bool is_const() const noexcept { return const_; }

 private:
  template <class T>
  void assign(T* data, std::size_t size) {
    data_ = data;
    const_ = std::is_const_v<T>;
    dtype_ = detail::dtype_of<std::remove_cv_t<T>>();
    size_ = static_cast<int64_t>(size);
  }

  const void* data_ = nullptr;
  int32_t dtype_ = 0;
  int64_t size_ = 0, item_ = 1;
  bool const_ = false;
};

/** An array of the host that the library writes. */
class Array : public ConstArray {
 public:
  Array(std::nullptr_t) noexcept : ConstArray(nullptr) {}

  template <class Values, class Plain = std::remove_cv_t<std::remove_reference_t<Values>>,
            class = std::enable_if_t<!std::is_base_of_v<ConstArray, Plain> && !std::is_null_pointer_v<Plain>>>
  Array(Values&& values) : ConstArray(std::forward<Values>(values)) {
    if constexpr (std::is_arithmetic_v<Plain>)
      static_assert(!std::is_const_v<std::remove_reference_t<Values>>, "what the library writes must not be const");
    else
      static_assert(!std::is_const_v<detail::Number<std::remove_reference_t<Values>>>,
                    "what the library writes must not be const");
  }

  void* data() const noexcept { return const_cast<void*>(ConstArray::data()); }
};

/* ---------------------------------------------------------------------------------------------
 * Tensors
 * ------------------------------------------------------------------------------------------- */

/** The numbers of a row-major tensor, and its shape. It keeps the storage: the tensor may be gone. */
template <class T>
class View : public Span<T> {
 public:
  View(Span<T> values, Span<const int64_t> shape, std::shared_ptr<const void> storage) noexcept
      : Span<T>(values), shape_(shape), storage_(std::move(storage)) {}

  View(const View&) noexcept = default;
  /** One that was moved from is empty, since it no longer keeps the storage. */
  View(View&& other) noexcept
      : Span<T>(std::exchange(static_cast<Span<T>&>(other), {})),
        shape_(std::exchange(other.shape_, {})),
        storage_(std::move(other.storage_)) {}
  View& operator=(View other) noexcept {
    std::swap(static_cast<Span<T>&>(*this), static_cast<Span<T>&>(other));
    std::swap(shape_, other.shape_);
    storage_.swap(other.storage_);
    return *this;
  }

  Span<const int64_t> shape() const noexcept { return shape_; }

  /** The element at one index per axis, which are not checked against the shape. */
  template <class... Indices>
  T& operator()(Indices... indices) const {
    if (sizeof...(indices) != shape_.size())
      throw Error(NEML2_ERROR_ARGUMENT, "indices",
                  "A tensor of " + std::to_string(shape_.size()) + " axes needs as many indices; got " +
                      std::to_string(sizeof...(indices)) + ".");
    std::size_t offset = 0, axis = 0;
    ((offset = offset * static_cast<std::size_t>(shape_[axis++]) + static_cast<std::size_t>(indices)), ...);
    return (*this)[offset];
  }

 private:
  Span<const int64_t> shape_;
  std::shared_ptr<const void> storage_;
};

namespace detail {
/* With it the storage may be gone. */
template <class T>
inline constexpr bool is_view<View<T>> = false;
}  // namespace detail

/** Where memory is, or what a model runs on: NEML2_DEVICE_*, and which of the devices of CUDA or OpenCL. */
struct Device {
  int32_t type, index;
};

inline constexpr Device cpu{NEML2_DEVICE_CPU, 0};
constexpr Device cuda(int32_t index = 0) { return {NEML2_DEVICE_CUDA, index}; }
constexpr Device opencl(int32_t index = 0) { return {NEML2_DEVICE_OPENCL, index}; }

namespace detail {
template <class Info>
Device device_of(const Info& info) {
  return {info.device, info.device_index};
}
}  // namespace detail

/** An n-dimensional array. It owns its storage, or borrows yours; a const Tensor keeps its storage, not its values. */
class Tensor : public detail::Handle<neml2_tensor, neml2_tensor_free> {
 public:
  using Handle::Handle;

  /** Zeros, row-major, of the type T. */
  template <class T>
  static Tensor zeros(const Shape& shape) {
    return zeros(detail::dtype_of<T>(), shape);
  }

  /** The same, with the element type, one of NEML2_FLOAT64 and so on, chosen at run time. */
  static Tensor zeros(int32_t dtype, const Shape& shape) {
    return Tensor(detail::made(neml2_tensor_create, dtype, axes(shape), shape.data()));
  }

  /** A tensor over an array, which must stay valid until the last handle that shares it is gone; what is const must be
   *  copied. Without `strides` it is row-major. NEML2_ERROR_SHAPE if the array is too short. */
  static Tensor wrap(const Array& values, const Shape& shape, const Shape& strides = {}) {
    return over(values, shape, strides, nullptr, nullptr);
  }

  /** A tensor with a copy of the values, which are row-major. */
  static Tensor copy(const ConstArray& values, const Shape& shape) {
    require_reach(values, shape, {});
    Tensor made = zeros(values.dtype(), shape);
    void* data = made.data();
    if (const int64_t count = detail::product(shape); count > 0)
      std::memcpy(data, values.data(), static_cast<std::size_t>(count) * size_of(values.dtype()));
    return made;
  }

  /** A tensor that takes over a container, a std::vector for example, without a copy. */
  template <class Container>
  static Tensor own(Container container, const Shape& shape) {
    auto held = std::make_unique<Container>(std::move(container));
    const auto free = [](void* context) { delete static_cast<Container*>(context); };
    Tensor made = over(Array(*held), shape, {}, free, held.get());
    static_cast<void>(held.release());
    return made;
  }

  /** Take over a DLPack tensor without a copy; if this throws, it is still yours. */
  static Tensor from_dlpack(DLManagedTensorVersioned* managed) {
    return Tensor(detail::made(neml2_tensor_from_dlpack, managed));
  }

  /** Hand the storage to a DLPack consumer without a copy; it lives until the deleter of what is returned is called. */
  DLManagedTensorVersioned* to_dlpack() const { return detail::made(neml2_tensor_to_dlpack, get()); }

  /** Another handle to the same storage: a write through one is seen through the other. */
  Tensor share() const { return Tensor(detail::made(neml2_tensor_share, get())); }

  /** Element type: one of NEML2_FLOAT64 and so on. */
  int32_t dtype() const { return inspect().dtype; }

  /** Where the memory is. */
  Device device() const { return detail::device_of(inspect()); }

  /** Sizes of the axes, borrowed from this handle. */
  Span<const int64_t> shape() const {
    const neml2_tensor_info info = inspect();
    return {info.shape, static_cast<std::size_t>(info.ndim)};
  }

  /** Strides of the axes in elements, borrowed from this handle. */
  Span<const int64_t> strides() const {
    const neml2_tensor_info info = inspect();
    return {info.strides, static_cast<std::size_t>(info.ndim)};
  }

  /** How many elements there are. */
  int64_t size() const { return detail::product(shape()); }

  /** The first element, of any type; for those that are not row-major, see strides(). */
  void* data() const { return inspect().data; }

  /** Whether the elements lie in the order of their indices, without gaps. */
  bool is_row_major() const { return inspect().row_major != 0; }

  /** The values. NEML2_ERROR_DTYPE if T is not their type, NEML2_ERROR_SHAPE if they are not row-major, and
   *  NEML2_ERROR_UNSUPPORTED if they are not in memory of the host. */
  template <class T>
  View<T> values() const {
    constexpr int32_t wanted = detail::dtype_of<std::remove_cv_t<T>>();
    if (const int32_t held = dtype(); held != wanted)
      throw Error(NEML2_ERROR_DTYPE, "",
                  std::string("The tensor holds ") + detail::name_of(held) + "; " + detail::name_of(wanted) +
                      " was asked for.");
    if (device().type != NEML2_DEVICE_CPU)
      throw Error(NEML2_ERROR_UNSUPPORTED, "", "The tensor is on a CUDA device: hand it to what computes there.");
    if (!is_row_major())
      throw Error(NEML2_ERROR_SHAPE, "", "The tensor is not row-major: read it with data(), shape() and strides().");
    auto storage = std::make_shared<const Tensor>(share());
    return {{static_cast<T*>(storage->data()), static_cast<std::size_t>(size())}, storage->shape(), storage};
  }

 private:
  neml2_tensor_info inspect() const { return detail::inspected(neml2_tensor_inspect, get()); }

  static int64_t axes(const Shape& shape) { return static_cast<int64_t>(shape.size()); }

  static std::size_t size_of(int32_t dtype) {
    constexpr std::size_t bytes[] = {8, 4, 8, 4, 2, 1, 1, 1};
    return bytes[dtype - 1];
  }

  static Tensor over(const Array& values, const Shape& shape, const Shape& strides, void (*deleter)(void*),
                     void* context) {
    require_reach(values, shape, strides);
    return Tensor(detail::made(neml2_tensor_wrap, values.data(), values.dtype(), axes(shape), shape.data(),
                               strides.empty() ? nullptr : strides.data(), deleter, context));
  }

  /* The library sees no extents: an array that is too short must be found here. */
  static void require_reach(const ConstArray& values, const Shape& shape, const Shape& strides) {
    if (!strides.empty() && strides.size() != shape.size())
      throw Error(NEML2_ERROR_SHAPE, "strides",
                  "There must be one stride per axis: " + std::to_string(shape.size()) + ", not " +
                      std::to_string(strides.size()) + ".");
    int64_t reach = detail::product(shape);
    if (reach > 0 && !strides.empty()) {
      reach = 1;
      for (std::size_t i = 0; i < shape.size(); ++i) {
        if (strides[i] < 0)
          throw Error(NEML2_ERROR_SHAPE, "strides",
                      "A stride must be 0 or more: an array begins with its first element.");
        reach = detail::multiply_add(reach, shape[i] - 1, strides[i]);
      }
    }
    if (reach > values.size())
      throw Error(NEML2_ERROR_SHAPE, "values",
                  "The shape needs " + std::to_string(reach) + " elements; the array has " +
                      std::to_string(values.size()) + ".");
  }
};

/** The tensor that stands for a name in an evaluation; it is borrowed for the length of the call. */
struct Argument {
  Argument(std::string variable, const Tensor& value) : name(std::move(variable)), tensor(value.get()) {}

  std::string name;
  neml2_tensor* tensor;
};

/** Tensors by name: {{"strain", strain}, {"t", t}}. */
using Arguments = std::vector<Argument>;

/** Tensors that an evaluation gave, each of a variable, or of an output and what it was differentiated by. */
class Tensors {
 public:
  struct Entry {
    std::string name, by;
    Tensor tensor;
  };

  /** The tensor of a variable, or of a pair. NEML2_ERROR_NAME if there is none. */
  const Tensor& at(const std::string& name, const std::string& by = {}) const {
    std::string there;
    for (const Entry& entry : entries_) {
      if (entry.name == name && entry.by == by) return entry.tensor;
      there += (there.empty() ? "'" : ", '") + label(entry.name, entry.by) + "'";
    }
    throw Error(NEML2_ERROR_NAME, label(name, by),
                "There is no '" + label(name, by) + "' among the results. " +
                    (there.empty() ? "There are none." : "There are " + there + "."));
  }

  /** The same, to move it out: std::move(result.outputs.at("stress")). */
  Tensor& at(const std::string& name, const std::string& by = {}) {
    return const_cast<Tensor&>(std::as_const(*this).at(name, by));
  }

  std::size_t size() const noexcept { return entries_.size(); }
  std::vector<Entry>::const_iterator begin() const noexcept { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const noexcept { return entries_.end(); }

 private:
  friend class Model;
  friend class Solve;

  static std::string label(const std::string& name, const std::string& by) {
    return by.empty() ? name : name + ":" + by;
  }

  void expect(std::string name, std::string by = {}) { entries_.push_back({std::move(name), std::move(by), {}}); }

  /* Take over one handle per name; NULL: there is no such tensor. */
  void receive(const std::vector<neml2_tensor*>& handles) noexcept {
    for (std::size_t i = 0; i < entries_.size(); ++i) entries_[i].tensor = Tensor(handles[i]);
    entries_.erase(std::remove_if(entries_.begin(), entries_.end(), [](const Entry& e) { return !e.tensor; }),
                   entries_.end());
  }

  std::vector<Entry> entries_;
};

/* ---------------------------------------------------------------------------------------------
 * Opening
 * ------------------------------------------------------------------------------------------- */

/** Devices to spread points over: see neml2_capi_experimental.hpp. */
class Scheduler;

/** What to open, and for what: a path, or more than that:
 *
 *     neml2::Source("aoti/plasticity_aoti.i").name("plasticity").runtime(NEML2_RUNTIME_LIBTORCH)
 */
class Source {
 public:
  /** An artifact (its folder, its metadata file, or the HIT stub of one model), or a package. */
  Source(std::string path) : path_(std::move(path)) {}
  Source(const char* path) : path_(path ? std::optional<std::string>(path) : std::nullopt) {}

  /** The `size` bytes of a package in memory, borrowed. */
  Source(const void* content, std::size_t size) {
    source_.content = content;
    source_.content_size = static_cast<int64_t>(size);
  }

  /** A source in C, of which texts are copied, and all else is borrowed: neml2_source_of_NAME(), for example, which
   *  neml2-capi static writes. */
  Source(const neml2_source& in_c) : source_(in_c) {
    if (in_c.path) path_ = in_c.path;
    if (in_c.name) name_ = in_c.name;
  }

  /** The model of a HIT stub, the <name>_aoti.i file that neml2-compile writes beside an artifact. */
  Source& name(std::string model) {
    name_ = std::move(model);
    return *this;
  }

  /** The packages of a model: NEML2_FLOAT64, which is the default, or NEML2_FLOAT32. */
  Source& dtype(int32_t dtype) {
    source_.dtype = dtype;
    return *this;
  }

  /** Where to compute; the CPU, and of a package what it was compiled for, unless given. */
  Source& device(Device device) {
    source_.device = device.type;
    source_.device_index = device.index;
    return *this;
  }

  /** One of NEML2_RUNTIME_*. */
  Source& runtime(int32_t runtime) {
    source_.runtime = runtime;
    return *this;
  }

  /** Around a law of small strain, one of NEML2_STRAIN_*, and the stress that is made of the law's, NEML2_STRESS_*. */
  Source& strain_measure(int32_t measure, int32_t stress = NEML2_STRESS_PK1) {
    source_.strain_measure = measure;
    source_.stress_measure = stress;
    return *this;
  }

  /** Whether tensors are turned by an input `material_axes` of each point. */
  Source& material_axes(bool turned = true) {
    source_.material_axes = turned ? 1 : 0;
    return *this;
  }

  /** Sets the hypothesis of the model, NEML2_PLANE_STRESS for example. */
  Source& hypothesis(int32_t hypothesis) {
    source_.hypothesis = hypothesis;
    return *this;
  }

  /** The input that is the strain, and the output that is the stress, unless their names tell. */
  Source& tensors(std::string strain, std::string stress) {
    strain_ = std::move(strain);
    stress_ = std::move(stress);
    return *this;
  }

  /** The devices to spread points over, borrowed until the model is open; later changes of them do not count. */
  Source& scheduler(const Scheduler& devices);

  /** The same in C, borrowed from this object. */
  neml2_source get() const noexcept {
    neml2_source source = source_;
    source.size = sizeof source;
    source.path = path_ ? path_->c_str() : nullptr;
    source.name = name_ ? name_->c_str() : nullptr;
    source.strain = strain_ ? strain_->c_str() : nullptr;
    source.stress = stress_ ? stress_->c_str() : nullptr;
    return source;
  }

 private:
  std::optional<std::string> path_, name_, strain_, stress_;
  neml2_source source_{};
};

namespace detail {

/* What a function opens. */
template <class T>
T* opened(int32_t (*open)(T**, const neml2_source*), const Source& source) {
  const neml2_source given = source.get();
  return made(open, &given);
}

}  // namespace detail

/* ---------------------------------------------------------------------------------------------
 * Models
 * ------------------------------------------------------------------------------------------- */

/** What an evaluation with tensors can tell of each material point. */
class Report : public detail::Handle<neml2_report, neml2_report_free> {
 public:
  using Handle::Handle;

  /** One of NEML2_REPORT_*: shape (*B), or (*B, miters) for the residual history, which is there only if the option
   *  collect_history is 1. The solves of a rescue are there only if the option rescue is more than 0. */
  Tensor get_tensor(int32_t kind) const { return Tensor(detail::made(neml2_report_get, get(), kind)); }

  Tensor status() const { return get_tensor(NEML2_REPORT_STATUS); }                     /**< int32 */
  Tensor iterations() const { return get_tensor(NEML2_REPORT_ITERATIONS); }             /**< int32 */
  Tensor residual_norm() const { return get_tensor(NEML2_REPORT_RESIDUAL_NORM); }       /**< float64 */
  Tensor residual_history() const { return get_tensor(NEML2_REPORT_RESIDUAL_HISTORY); } /**< float64 */
  Tensor suggested_cut() const { return get_tensor(NEML2_REPORT_SUGGESTED_CUT); }       /**< float64 */
  Tensor rescue_solves() const { return get_tensor(NEML2_REPORT_RESCUE_SOLVES); }       /**< int32 */

  /** The last iterate of an unknown, counted among Model::variables(NEML2_UNKNOWN), where the solve failed. */
  Tensor unknown(int64_t index) const { return Tensor(detail::made(neml2_report_get_unknown, get(), index)); }
};

/** What an evaluation with tensors gave. */
struct Result {
  int32_t status = NEML2_OK; /**< NEML2_OK, or the greatest status of any point */
  std::string message;       /**< which points failed and how, if some did */
  Tensors outputs;           /**< of each output, at("stress"); values of failed points are NaN */
  Tensors derivatives;       /**< if they were asked for */
  Report report;
  std::vector<Error> errors; /**< of each sub-batch of a Scheduler whose points failed, if they are several */

  /** Throw an Error that is recoverable() if a point failed. */
  Result& or_throw() & {
    if (status != NEML2_OK) detail::throw_error({status, "", message}, errors);
    return *this;
  }
  Result or_throw() && { return std::move(or_throw()); }
};

/** A variable of a model. */
struct Variable {
  std::string name;
  std::string type; /**< as NEML2 names it: "SR2", "Scalar"; empty for parameters */
  int32_t dtype;    /**< its element type */
  Shape shape;      /**< of one point: sub-batch axes, then base axes */
  int64_t sub_ndim; /**< how many of them are sub-batch axes */

  /** Numbers per point. */
  int64_t size() const { return detail::product(shape); }
};

/** A derivative that was compiled. */
struct Derivative {
  std::string output, variable;
  bool batched; /**< false if the block is the same for all points */
  Shape shape;  /**< of the block of one point: (output's point shape..., variable's point shape...) */
};

/** An input `x~n`, and what it becomes at the next step; empty if the model has no such variable. */
struct History {
  std::string input;
  int64_t age;         /**< n */
  std::string output;  /**< `x`, of the outputs */
  std::string current; /**< `x`, of the inputs: a force */
};

/** The bounds of an input or a parameter, component by component, infinite if there is none: see neml2_bound_info. */
struct Bound {
  std::string variable;
  bool physical; /**< whether a value beyond has no meaning; else the law is not valid there */
  std::vector<double> lower, upper;
};

/** A solver option: a number with its bounds, or a text with its choices. */
struct Option {
  std::string name;
  double least, greatest;
  std::string choices; /**< separated by spaces, "*" for any text; empty for a number */
};

class System;

/** A compiled material model. Any number of threads may use it at once. */
class Model {
 public:
  explicit Model(const Source& source) : Model(detail::opened(neml2_model_open, source)) {}

  /** Take over a handle of the C library. */
  explicit Model(neml2_model* owned) : handle_(owned, [](neml2_model* handle) { neml2_model_free(&handle); }) {}

  Model(Model&&) noexcept = default;
  Model& operator=(Model&&) noexcept = default;

  /** The handle, borrowed; NULL after a move. */
  neml2_model* get() const noexcept { return handle_.get(); }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  /** What its packages run on: NEML2_RUNTIME_BUILTIN; LIBTORCH if one of them does; TENSORS if all of the model
   *  does. */
  int32_t runtime() const { return inspect().runtime; }

  /** Where its inputs, parameters and results are. */
  Device device() const { return detail::device_of(inspect()); }

  /** What the model holds, as a JSON document. */
  std::string describe() const {
    return detail::text([&](auto... to) { detail::checked(neml2_model_describe(to..., get())); });
  }

  /** The SHA-256 of what the artifact computes, in hexadecimal: see neml2_model_checksum(). */
  std::string checksum() const {
    return detail::text([&](auto... to) { detail::checked(neml2_model_checksum(to..., get())); });
  }

  /** The element type of the floating-point variables. */
  int32_t dtype() const { return inspect().dtype; }

  /** The variables of a kind: NEML2_INPUT, NEML2_OUTPUT, NEML2_PARAMETER or NEML2_UNKNOWN. */
  std::vector<Variable> variables(int32_t kind) const {
    std::vector<Variable> list;
    for (int64_t i = 0, n = count(kind); i < n; ++i) list.push_back(variable(kind, i));
    return list;
  }

  std::vector<Variable> inputs() const { return variables(NEML2_INPUT); }
  std::vector<Variable> outputs() const { return variables(NEML2_OUTPUT); }
  std::vector<Variable> parameters() const { return variables(NEML2_PARAMETER); }

  /** One variable by its name. */
  Variable variable(int32_t kind, const std::string& name) const { return variable(kind, find(kind, name)); }

  /** The derivatives that were compiled with respect to inputs, or to parameters (NEML2_PARAMETER). */
  std::vector<Derivative> derivatives(int32_t kind = NEML2_INPUT) const {
    std::vector<Derivative> list;
    for (int64_t i = 0, n = detail::made(neml2_model_derivative_count, get(), kind); i < n; ++i) {
      const neml2_derivative_info of = detail::inspected(neml2_model_derivative_inspect, get(), kind, i);
      list.push_back({name(NEML2_OUTPUT, of.output), name(kind, of.variable), of.batched != 0,
                      Shape(of.shape, of.shape + of.ndim)});
    }
    return list;
  }

  /** The inputs that are history. */
  std::vector<History> histories() const {
    std::vector<History> list;
    for (int64_t i = 0, n = detail::made(neml2_model_history_count, get()); i < n; ++i) {
      const neml2_history_info of = detail::inspected(neml2_model_history_inspect, get(), i);
      list.push_back({name(NEML2_INPUT, of.input), of.age, of.output < 0 ? "" : name(NEML2_OUTPUT, of.output),
                      of.current < 0 ? "" : name(NEML2_INPUT, of.current)});
    }
    return list;
  }

  /** Where the law is valid: the bounds of inputs and parameters. */
  std::vector<Bound> bounds() const {
    std::vector<Bound> list;
    for (int64_t i = 0, n = detail::made(neml2_model_bound_count, get()); i < n; ++i) {
      const neml2_bound_info of = detail::inspected(neml2_model_bound_inspect, get(), i);
      list.push_back({name(of.kind, of.variable),
                      of.physical != 0,
                      {of.lower, of.lower + of.ncomponents},
                      {of.upper, of.upper + of.ncomponents}});
    }
    return list;
  }

  /** The stored value of a parameter: a handle to its storage, so that a write through it takes effect from the next
   *  evaluation on. Such a write must not coincide with an evaluation on another thread. */
  Tensor parameter(const std::string& name) const {
    return Tensor(detail::made(neml2_model_parameter_get, get(), name.c_str()));
  }

  /** Replace the value of a parameter by a copy of `value`, of shape (*B, *base). */
  void set_parameter(const std::string& name, const Tensor& value) {
    detail::checked(neml2_model_parameter_set(get(), name.c_str(), value.get()));
  }

  /** The same for one number. */
  void set_parameter(const std::string& name, double value) {
    const float single = static_cast<float>(value);
    set_parameter(name, dtype() == NEML2_FLOAT32 ? Tensor::copy(single, {}) : Tensor::copy(value, {}));
  }

  /** The solver options; neml2_capi.h says what they mean. */
  std::vector<Option> options() const {
    std::vector<Option> list;
    for (int64_t i = 0, n = detail::made(neml2_model_option_count, get()); i < n; ++i) {
      const neml2_option_info of = detail::inspected(neml2_model_option_inspect, get(), i);
      list.push_back({of.name, of.least, of.greatest, of.choices ? of.choices : ""});
    }
    return list;
  }

  void set_option(const std::string& name, double value) {
    detail::checked(neml2_model_option_set_number(get(), name.c_str(), value));
  }
  void set_option(const std::string& name, const std::string& value) {
    detail::checked(neml2_model_option_set_text(get(), name.c_str(), value.c_str()));
  }

  double number_option(const std::string& name) const {
    return detail::made(neml2_model_option_get_number, get(), name.c_str());
  }
  std::string text_option(const std::string& name) const {
    return detail::made(neml2_model_option_get_text, get(), name.c_str());
  }

  /* Evaluation with tensors. An input has the shape (*B, *point shape), and the batches B broadcast; `parameters`
   * replace the stored ones in this evaluation. The Result tells the points that failed. */

  /** Evaluate the model. */
  [[nodiscard]] Result forward(const Arguments& inputs, const Arguments& parameters = {}) const {
    const auto forward = [](neml2_tensor** out, neml2_tensor**, const auto&... given) {
      return neml2_model_forward(out, given...);
    };
    return evaluate({}, forward, tensors_of(NEML2_INPUT, inputs), tensors_of(NEML2_PARAMETER, parameters));
  }

  /** With the derivative along `tangents`, of inputs; those not given are zero. Result::derivatives has one tensor per
   *  output of which a derivative was compiled: at("stress"). */
  [[nodiscard]] Result jvp(const Arguments& inputs, const Arguments& tangents, const Arguments& parameters = {}) const {
    return evaluate(named(NEML2_OUTPUT), neml2_model_jvp, tensors_of(NEML2_INPUT, inputs),
                    tensors_of(NEML2_INPUT, tangents), tensors_of(NEML2_PARAMETER, parameters));
  }

  /** With the transposed derivative applied to `cotangents`, of outputs; those not given are zero. Result::derivatives
   *  has one tensor per input by which a derivative was compiled: at("strain"). */
  [[nodiscard]] Result vjp(const Arguments& inputs, const Arguments& cotangents,
                           const Arguments& parameters = {}) const {
    return adjoint(NEML2_INPUT, inputs, cotangents, parameters);
  }

  /** The same with respect to parameters: at("elasticity.E"). */
  [[nodiscard]] Result param_vjp(const Arguments& inputs, const Arguments& cotangents,
                                 const Arguments& parameters = {}) const {
    return adjoint(NEML2_PARAMETER, inputs, cotangents, parameters);
  }

  /** With all derivatives that were compiled with respect to inputs: at("stress", "strain"), of shape (*B, *block), or
   *  without B if the block is the same for all points. */
  [[nodiscard]] Result jacobian(const Arguments& inputs, const Arguments& parameters = {}) const {
    return blocks(NEML2_INPUT, inputs, parameters);
  }

  /** The same with respect to parameters: at("stress", "elasticity.E"). */
  [[nodiscard]] Result param_jacobian(const Arguments& inputs, const Arguments& parameters = {}) const {
    return blocks(NEML2_PARAMETER, inputs, parameters);
  }

  /** forward() with a solver of yours in place of the built-in one: solver(System&) is called for each nonlinear
   *  system, and must accept it. What it throws ends the evaluation, and is thrown again from here. */
  template <class Solver>
  [[nodiscard]] Result forward_with(const Arguments& inputs, Solver&& solver, const Arguments& parameters = {}) const;

 private:
  friend class Call;
  friend class Solve;

  explicit Model(std::shared_ptr<neml2_model> shared) noexcept : handle_(std::move(shared)) {}

  int64_t count(int32_t kind) const { return detail::made(neml2_model_variable_count, get(), kind); }

  int64_t find(int32_t kind, const std::string& name) const {
    return detail::made(neml2_model_variable_find, get(), kind, name.c_str());
  }

  std::string name(int32_t kind, int64_t index) const {
    return detail::inspected(neml2_model_variable_inspect, get(), kind, index).name;
  }

  /* NEML2's runtime takes an input of an unknown's name as a guess, which its predictor replaces. */
  bool is_replaced_guess(const std::string& name) const {
    int64_t index = 0;
    return neml2_model_variable_find(&index, get(), NEML2_INPUT, name.c_str()) == NEML2_ERROR_NAME &&
           neml2_model_variable_find(&index, get(), NEML2_UNKNOWN, name.c_str()) == NEML2_OK;
  }

  Variable variable(int32_t kind, int64_t index) const {
    const neml2_variable_info of = detail::inspected(neml2_model_variable_inspect, get(), kind, index);
    return {of.name, of.type, of.dtype, Shape(of.shape, of.shape + of.ndim), of.sub_ndim};
  }

  neml2_model_info inspect() const { return detail::inspected(neml2_model_inspect, get()); }

  /* A result to come, of each variable of a kind. */
  Tensors named(int32_t kind) const {
    Tensors list;
    for (int64_t i = 0, n = count(kind); i < n; ++i) list.expect(name(kind, i));
    return list;
  }

  /* The handles of arguments in the order of the model's variables; NULL: not given. Never without a pointer. */
  struct Handles {
    std::vector<neml2_tensor*> list;
    operator neml2_tensor* const*() const noexcept { return list.data(); }
  };

  Handles tensors_of(int32_t kind, const Arguments& arguments) const {
    std::vector<neml2_tensor*> list(static_cast<std::size_t>(count(kind)) + 1);
    for (const Argument& argument : arguments) {
      neml2_tensor*& place = list[static_cast<std::size_t>(find(kind, argument.name))];
      if (place) throw Error(NEML2_ERROR_ARGUMENT, argument.name, "'" + argument.name + "' is given twice.");
      if (!argument.tensor)
        throw Error(NEML2_ERROR_ARGUMENT, argument.name, "'" + argument.name + "' is a tensor that was moved away.");
      place = argument.tensor;
    }
    return {std::move(list)};
  }

  /* Names and room are there before the library hands tensors out: nothing is lost if memory ends. */
  template <class Function, class... Given>
  Result evaluate(Tensors derivatives, Function&& function, const Given&... given) const {
    Result result;
    result.outputs = named(NEML2_OUTPUT);
    result.derivatives = std::move(derivatives);
    std::vector<neml2_tensor*> out(result.outputs.size() + 1), more(result.derivatives.size() + 1);
    neml2_report* report = nullptr;
    result.status = detail::checked(function(out.data(), more.data(), &report, get(), given...));
    result.outputs.receive(out);
    result.derivatives.receive(more);
    result.report = Report(report);
    if (result.status != NEML2_OK) {
      result.message = detail::text(neml2_error_message);
      result.errors = detail::last_errors();
    }
    return result;
  }

  Result adjoint(int32_t kind, const Arguments& inputs, const Arguments& cotangents,
                 const Arguments& parameters) const {
    return evaluate(named(kind), neml2_model_vjp, kind, tensors_of(NEML2_INPUT, inputs),
                    tensors_of(NEML2_OUTPUT, cotangents), tensors_of(NEML2_PARAMETER, parameters));
  }

  Result blocks(int32_t kind, const Arguments& inputs, const Arguments& parameters) const {
    Tensors pairs;
    for (const Derivative& pair : derivatives(kind)) pairs.expect(pair.output, pair.variable);
    return evaluate(std::move(pairs), neml2_model_jacobian, kind, tensors_of(NEML2_INPUT, inputs),
                    tensors_of(NEML2_PARAMETER, parameters));
  }

  std::shared_ptr<neml2_model> handle_; /* shared with the calls, which ask it about the variables */
};

/** What an artifact holds, as a JSON document; no package is loaded. */
inline std::string describe(const Source& source) {
  const neml2_source given = source.get();
  return detail::text([&](auto... to) { detail::checked(neml2_source_describe(to..., &given)); });
}

/* ---------------------------------------------------------------------------------------------
 * Calls
 * ------------------------------------------------------------------------------------------- */

namespace detail {
struct Experimental; /* of neml2_capi_experimental.hpp */
}

/** Arrays of the host bound to a model's variables, for any number of runs; one per thread. It keeps the model alive.
 *
 *  Every bind_ takes the name of a variable, an array, and a point stride: the distance in elements from one point to
 *  the next. Without one, the points are dense; 0 is one value for all points. A step stride is the distance from one
 *  step to the next, for run_steps(). Binding again replaces; nullptr takes the binding back. NEML2_ERROR_SHAPE if the
 *  array holds less than one point; an empty one is a block without points. What is refused leaves the binding before. */
class Call : public detail::Handle<neml2_call, neml2_call_free> {
 public:
  explicit Call(const Model& model) : Handle(detail::made(neml2_call_create, model.get())), model_(model.handle_) {}

  /* The handle and the extents that guard it move as one, also to themselves. */
  Call(Call&&) noexcept = default;
  Call& operator=(Call&& other) noexcept {
    Call moved(std::move(other));
    static_cast<Handle&>(*this) = std::move(static_cast<Handle&>(moved));
    model_ = std::move(moved.model_);
    extents_.swap(moved.extents_);
    component_stride_ = moved.component_stride_;
    return *this;
  }

  /** Every input must be bound when the call runs. */
  Call& bind_input(const std::string& name, const ConstArray& array, int64_t stride = dense, int64_t step_stride = 0) {
    return bind_variable(NEML2_INPUT, name, array, stride, step_stride);
  }

  /** Outputs that are not bound are not written. One may be the very array of an input. */
  Call& bind_output(const std::string& name, const Array& array, int64_t stride = dense, int64_t step_stride = 0) {
    return bind_variable(NEML2_OUTPUT, name, array, stride, step_stride);
  }

  /** Values that replace the stored ones of a parameter in this call. */
  Call& bind_parameter(const std::string& name, const ConstArray& array, int64_t stride = dense) {
    return bind_variable(NEML2_PARAMETER, name, array, stride);
  }

  /** The derivative of an output with respect to an input: one block per point, see set_block_order(). */
  Call& bind_derivative(const std::string& output, const std::string& input, const Array& array, int64_t stride = dense,
                        int64_t step_stride = 0) {
    return bind_block(NEML2_INPUT, output, input, array, stride, step_stride);
  }

  /** The derivative of an output with respect to a parameter. */
  Call& bind_parameter_derivative(const std::string& output, const std::string& parameter, const Array& array,
                                  int64_t stride = dense, int64_t step_stride = 0) {
    return bind_block(NEML2_PARAMETER, output, parameter, array, stride, step_stride);
  }

  /** NEML2_OUTPUT_FIRST, the default: a block is [output][input]; NEML2_INPUT_FIRST: the transpose. */
  Call& set_block_order(int32_t order) {
    detail::checked(neml2_call_block_order_set(get(), order));
    return *this;
  }

  /** A direction of an input, and the derivative of an output along all of them. Those not bound are zero. */
  Call& bind_tangent(const std::string& input, const ConstArray& array, int64_t stride = dense) {
    return bind_variable(NEML2_TANGENT, input, array, stride);
  }
  Call& bind_jvp(const std::string& output, const Array& array, int64_t stride = dense) {
    return bind_variable(NEML2_JVP, output, array, stride);
  }

  /** A cotangent of an output, and the adjoint of an input or a parameter; with the stride 0, the sum over all points.
   *  Cotangents not bound are zero. */
  Call& bind_cotangent(const std::string& output, const ConstArray& array, int64_t stride = dense) {
    return bind_variable(NEML2_COTANGENT, output, array, stride);
  }
  Call& bind_adjoint(const std::string& input, const Array& array, int64_t stride = dense) {
    return bind_variable(NEML2_ADJOINT, input, array, stride);
  }
  Call& bind_parameter_adjoint(const std::string& parameter, const Array& array, int64_t stride = dense) {
    return bind_variable(NEML2_PARAMETER_ADJOINT, parameter, array, stride);
  }

  /** An array of the report, one of NEML2_REPORT_*: int32_t for status, iterations and the solves of a rescue, double for
   *  the others. Without a stride, the points of a residual history are as far apart as the option miters is now. */
  Call& bind_report(int32_t kind, const Array& array, int64_t stride = dense, int64_t step_stride = 0) {
    const bool counts =
        kind == NEML2_REPORT_STATUS || kind == NEML2_REPORT_ITERATIONS || kind == NEML2_REPORT_RESCUE_SOLVES;
    const int32_t wanted = counts ? NEML2_INT32 : NEML2_FLOAT64;
    const std::string label = report_name(kind);
    if (!label.empty() && array.dtype() != 0 && array.dtype() != wanted)
      throw Error(NEML2_ERROR_DTYPE, label,
                  "The report '" + label + "' must be " + detail::name_of(wanted) + "; got " +
                      detail::name_of(array.dtype()) + ".");
    int64_t size = 1;
    if (kind == NEML2_REPORT_RESIDUAL_HISTORY)
      size = stride == dense ? static_cast<int64_t>(model_.number_option("miters")) : std::max<int64_t>(stride, 1);
    return bind(
        {"report", NEML2_OUTPUT, label, size}, array, stride, step_stride,
        [&](int64_t distance) { return neml2_call_bind_report(get(), kind, array.data(), distance); },
        [&] { return neml2_call_report_step_stride_set(get(), kind, step_stride); });
  }

  /** Evaluate `npoints` material points. Returns NEML2_OK, or the greatest status of any point: the outputs of points
   *  that did not converge are left as they were, and the others are good. */
  [[nodiscard]] int32_t run(int64_t npoints) {
    require_points(npoints);
    return detail::checked(neml2_call_run(get(), npoints));
  }

  /** The same for those who take failed points for an error: it is recoverable(). */
  void run_or_throw(int64_t npoints) { detail::completed(run(npoints)); }

  /** Write the state of `npoints` points to a file, with your own count of steps and time. See
   *  neml2_call_state_save(). */
  void save_state(const std::string& path, int64_t npoints, int64_t step = 0, double time = 0) {
    require_points(npoints);
    detail::checked(neml2_call_state_save(get(), path.c_str(), npoints, step, time));
  }

  /** Read it into the arrays of the inputs that are history, which must not be const. Returns the step, and `time` (or
   *  nullptr) receives the time. See neml2_call_state_load(). */
  int64_t load_state(const std::string& path, int64_t npoints, double* time = nullptr) {
    require_points(npoints);
    if (npoints > 0) require_state_to_write();
    int64_t step = 0;
    detail::checked(neml2_call_state_load(&step, time, get(), path.c_str(), npoints));
    return step;
  }

  /** Evaluate `nsteps` steps of `npoints` material points, to the bit as run() for one step after another, with history
   *  carried. It ends before the first step in which a point is not NEML2_OK, and returns the greatest status of that
   *  step; `made` (or nullptr) receives the number of steps before it. See neml2_call_run_steps(). */
  [[nodiscard]] int32_t run_steps(int64_t npoints, int64_t nsteps, int64_t* made = nullptr) {
    require_steps(npoints, nsteps);
    return detail::checked(neml2_call_run_steps(made, get(), npoints, nsteps));
  }

 private:
  friend class Solve;
  friend struct detail::Experimental;

  static constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

  /* What an array is bound to, and once it is, the points that it holds. */
  struct Place {
    const char* role;
    int32_t kind; /* of the variable that is bound, or derived by */
    std::string name;
    int64_t point_size, points = unlimited, value_size = 1; /* a value is what a point has at one site */
    int64_t distance = 0, step = 0, room = unlimited;       /* room: the elements behind the first point */
    bool is_const = false;

    bool is_of(const char* of, int32_t by) const { return std::strcmp(role, of) == 0 && kind == by; }
  };

  static const char* report_name(int32_t kind) {
    constexpr const char* names[] = {"status",           "iterations",    "residual norm",
                                     "residual history", "suggested cut", "rescue solves"};
    return kind >= NEML2_REPORT_STATUS && kind <= NEML2_REPORT_RESCUE_SOLVES ? names[kind] : "";
  }

  /* A role's name in messages, and the kind of its variables. */
  struct Role {
    const char* name;
    int32_t kind;
  };

  static Role role_of(int32_t role) {
    constexpr Role roles[] = {
        {"input", NEML2_INPUT},         {"output", NEML2_OUTPUT},    {"parameter", NEML2_PARAMETER},
        {"unknown", NEML2_UNKNOWN},     {"tangent of", NEML2_INPUT}, {"jvp of", NEML2_OUTPUT},
        {"cotangent of", NEML2_OUTPUT}, {"adjoint of", NEML2_INPUT}, {"adjoint of", NEML2_PARAMETER}};
    return roles[role];
  }

  /* What is only read is not written, whatever its type says. */
  Call& bind_variable(int32_t role, const std::string& name, const ConstArray& array, int64_t stride,
                      int64_t step_stride = 0) {
    const Role as = role_of(role);
    if (role == NEML2_INPUT && model_.is_replaced_guess(name)) return *this;
    const Variable found = model_.variable(as.kind, name); /* with its whole name, of a parameter too */
    Place place{as.name, as.kind, found.name, found.size()};
    place.value_size = detail::product(Shape(found.shape.begin() + found.sub_ndim, found.shape.end()));
    return bind(
        std::move(place), array, stride, step_stride,
        [&](int64_t distance) {
          void* data = const_cast<void*>(array.data());
          return neml2_call_bind(get(), role, name.c_str(), data, array.dtype(), distance);
        },
        [&] { return neml2_call_step_stride_set(get(), role, name.c_str(), step_stride); });
  }

  Call& bind_block(int32_t kind, const std::string& output, const std::string& by, const Array& array, int64_t stride,
                   int64_t step_stride) {
    const std::string name = model_.variable(NEML2_OUTPUT, output).name + ":" + model_.variable(kind, by).name;
    Place place{"derivative", kind, name, 1}; /* the library refuses one that was not compiled */
    for (const Derivative& known : model_.derivatives(kind))
      if (known.output + ":" + known.variable == name) place.point_size = detail::product(known.shape);
    return bind(
        place, array, stride, step_stride,
        [&](int64_t distance) {
          return neml2_call_bind_derivative(get(), kind, output.c_str(), by.c_str(), array.data(), array.dtype(),
                                            distance);
        },
        [&] { return neml2_call_derivative_step_stride_set(get(), kind, output.c_str(), by.c_str(), step_stride); });
  }

  /* How many points of `reach` elements, from the first value to the last, lie `stride` apart in `length` elements. */
  static int64_t points_held(int64_t length, int64_t reach, int64_t stride) {
    if (length < reach) return 0;
    return stride <= 0 || reach == 0 ? unlimited : 1 + (length - reach) / stride;
  }

  /* All that can be refused is refused before the binding before is replaced: a step stride, too, which is set in an
   * array that is bound. */
  template <class Bind, class SetStep>
  Call& bind(Place place, const ConstArray& array, int64_t stride, int64_t step_stride, Bind&& function,
             SetStep&& set_step) {
    const int64_t distance = stride == dense ? place.point_size : stride;
    const bool given = array.dtype() != 0; /* an empty array stands for a block without points */
    const int64_t apart = distance == 0 ? 1 : component_stride_;
    const int64_t reach = place.point_size > 0 ? detail::multiply_add(1, place.point_size - 1, apart) : 0;
    if (given) place.points = points_held(array.size(), reach, distance);
    if (given) place.room = array.size() - reach;
    place.distance = distance;
    place.step = step_stride;
    place.is_const = array.is_const() && array.size() > 0;
    if (step_stride < 0)
      throw Error(NEML2_ERROR_SHAPE, place.name,
                  std::string("The step stride of ") + place.role + " '" + place.name + "' must be 0 or more; got " +
                      std::to_string(step_stride) + ".");
    if (place.points == 0 && array.size() > 0)
      throw Error(NEML2_ERROR_SHAPE, place.name,
                  std::string("The array of ") + place.role + " '" + place.name + "' holds not one point: one has " +
                      std::to_string(place.point_size) + " values" +
                      (apart > 1 ? ", each " + std::to_string(apart) + " after the one before," : ",") +
                      " and the array has " + std::to_string(array.size()) + ".");
    if (stride == dense && array.item_size() > 1 && array.item_size() % std::max<int64_t>(place.value_size, 1) != 0)
      throw Error(NEML2_ERROR_SHAPE, place.name,
                  std::string("One value of ") + place.role + " '" + place.name + "' has " +
                      std::to_string(place.value_size) + " numbers, and one item of the array " +
                      std::to_string(array.item_size()) + ". Give an array of such values, or a point stride.");
    extents_.reserve(extents_.size() + 1);
    detail::checked(function(distance));
    extents_.erase(
        std::remove_if(extents_.begin(), extents_.end(),
                       [&](const Place& e) { return e.is_of(place.role, place.kind) && e.name == place.name; }),
        extents_.end());
    if (given) extents_.push_back(std::move(place));
    std::sort(extents_.begin(), extents_.end(), [](const Place& a, const Place& b) { return a.points < b.points; });
    if (step_stride > 0 && array.data()) detail::checked(set_step());
    return *this;
  }

  /* Forget the arrays, of which the library has taken all bindings back. */
  void forget(int64_t component_stride) noexcept {
    extents_.clear();
    component_stride_ = component_stride;
  }

  /* The library sees no extents: an array that is too short must be found here. */
  void require_points(int64_t npoints) const {
    if (extents_.empty() || extents_.front().points >= npoints) return;
    const Place& shortest = extents_.front();
    throw Error(NEML2_ERROR_SHAPE, shortest.name,
                std::string("The array of ") + shortest.role + " '" + shortest.name + "' holds " +
                    std::to_string(shortest.points) + " points; the run is of " + std::to_string(npoints) + ".");
  }

  void require_steps(int64_t npoints, int64_t nsteps) const {
    require_points(npoints);
    if (npoints <= 0 || nsteps <= 0) return;
    for (const Place& place : extents_) {
      const int64_t left = place.room - (npoints - 1) * place.distance;
      if (place.step > 0 && nsteps - 1 > left / place.step)
        throw Error(NEML2_ERROR_SHAPE, place.name,
                    std::string("The array of ") + place.role + " '" + place.name + "' holds " +
                        std::to_string(left < 0 ? 0 : 1 + left / place.step) + " steps of " + std::to_string(npoints) +
                        " points; the run is of " + std::to_string(nsteps) + ".");
    }
  }

  /* The library writes the inputs that carry the state, and sees not whether their arrays are const. */
  void require_state_to_write() const {
    const auto require = [this](const std::string& input) {
      for (const Place& place : extents_)
        if (place.is_const && place.is_of(role_of(NEML2_INPUT).name, NEML2_INPUT) && place.name == input)
          throw Error(NEML2_ERROR_ARGUMENT, input,
                      "The state is read into the array of the input '" + input +
                          "', which was bound as const: bind an array that is not const.");
    };
    for (const History& history : model_.histories())
      if (!history.output.empty() || !history.current.empty()) require(history.input);
    for (const Variable& output : model_.outputs()) require(output.name); /* first guesses */
  }

  Model model_;
  std::vector<Place> extents_;   /* the shortest first */
  int64_t component_stride_ = 1; /* from one value of a point to the next */
};

/** The history of points, carried from step to step: what a model reads as `x~1` of its own outputs and of the forces.
 *
 *     neml2::State state(model, npoints);
 *     state.bind(call);                            // and bind what has no history yourself
 *     for (const Step& step : steps) {
 *       std::copy(step.strain.begin(), step.strain.end(), state["strain"].begin());
 *       call.run_or_throw(npoints);                // as often as the host iterates
 *       use(state["stress"]);
 *       state.advance();                           // at the end of the step: what is now becomes old
 *     }
 *
 *  All begins at zero. The arrays are the state's, and stay where they are while it lives: longer than the call is run.
 *  A step that failed moves nothing, and may be tried again. NEML2_ERROR_DTYPE if the history is not of doubles. */
class State {
 public:
  State(const Model& model, int64_t npoints) : carried_(std::make_unique<List>()) {
    if (npoints < 0)
      throw Error(NEML2_ERROR_ARGUMENT, "npoints",
                  "The number of points must be 0 or more; got " + std::to_string(npoints) + ".");
    const auto inputs = model.inputs();
    const auto find = [&](const std::string& name) {
      return *std::find_if(inputs.begin(), inputs.end(), [&](const Variable& v) { return v.name == name; });
    };
    for (const History& history : model.histories()) {
      const std::string& name = history.output.empty() ? history.current : history.output;
      if (name.empty()) continue; /* the model says nothing of its value now */
      const Variable old = find(history.input);
      if (old.dtype != NEML2_FLOAT64)
        throw Error(NEML2_ERROR_DTYPE, name,
                    "The history of '" + name + "' is " + detail::name_of(old.dtype) +
                        ", and a State holds float64: carry it yourself.");
      const int64_t count = detail::multiply_add(0, old.size(), npoints);
      if (static_cast<std::size_t>(count) > std::vector<double>().max_size())
        throw Error(
            NEML2_ERROR_ARGUMENT, name,
            "No memory holds " + std::to_string(npoints) + " points of '" + name + "'. Was the number of points set?");
      Carried& carried = of(name);
      carried.is_output = !history.output.empty();
      carried.values.resize(std::max(carried.values.size(), static_cast<std::size_t>(history.age) + 1));
      for (auto& values : carried.values) values.resize(static_cast<std::size_t>(count));
      carried.inputs.resize(carried.values.size());
      carried.inputs[static_cast<std::size_t>(history.age)] = history.input;
    }
  }

  /** Bind all that has a history, now and before. */
  void bind(Call& call) {
    for (auto& [name, carried] : list()) {
      if (carried.is_output)
        call.bind_output(name, carried.values[0]);
      else
        call.bind_input(name, carried.values[0]);
      for (std::size_t age = 1; age < carried.values.size(); ++age)
        if (!carried.inputs[age].empty()) call.bind_input(carried.inputs[age], carried.values[age]);
    }
  }

  /** The values of `x` now, side by side for each point: to be written for a force, and read for an output. */
  Span<double> operator[](const std::string& name) { return at(name).values[0]; }

  /** The values `age` steps before: to begin elsewhere than at zero. */
  Span<double> old(const std::string& name, std::size_t age = 1) {
    Carried& carried = at(name);
    if (age < 1 || age >= carried.values.size())
      throw Error(NEML2_ERROR_ARGUMENT, name,
                  "The model remembers '" + name + "' for " + std::to_string(carried.values.size() - 1) +
                      " steps; it has none of age " + std::to_string(age) + ".");
    return carried.values[age];
  }

  /** Make what is now old. */
  void advance() {
    for (auto& [name, carried] : list())
      for (std::size_t age = carried.values.size(); --age > 0;)
        std::copy(carried.values[age - 1].begin(), carried.values[age - 1].end(), carried.values[age].begin());
  }

 private:
  struct Carried {
    bool is_output = false;
    std::vector<std::vector<double>> values; /* by age; 0 is now */
    std::vector<std::string> inputs;         /* by age */
  };

  using List = std::vector<std::pair<std::string, Carried>>;

  List& list() {
    if (!carried_) throw Error(NEML2_ERROR_ARGUMENT, "state", "The state was moved away; use the one that has it now.");
    return *carried_;
  }

  Carried& of(const std::string& name) {
    for (auto& [known, carried] : list())
      if (known == name) return carried;
    return list().emplace_back(name, Carried()).second;
  }

  Carried& at(const std::string& name) {
    std::string names;
    for (auto& [known, carried] : list()) {
      if (known == name) return carried;
      names += (names.empty() ? "" : ", ") + known;
    }
    throw Error(NEML2_ERROR_NAME, name, "The state has no '" + name + "'. It has: " + names + ".");
  }

  std::unique_ptr<List> carried_; /* the arrays stay where they are bound when this moves */
};

/* ---------------------------------------------------------------------------------------------
 * Solving yourself
 * ------------------------------------------------------------------------------------------- */

/** The nonlinear systems r(u) = 0 of one implicit segment, one per point: vectors are (points, size), row-major. It is
 *  borrowed from its Solve until the next step of that. Arrays of another length are NEML2_ERROR_SHAPE. */
class System {
 public:
  /** Where an unknown, counted among Model::variables(NEML2_UNKNOWN), stands in the vector of a point. */
  using Layout = neml2_unknown_info;

  System() noexcept = default;
  explicit System(neml2_system* borrowed) : handle_(borrowed) {
    if (!handle_) return;
    const neml2_system_info info = detail::inspected(neml2_system_inspect, handle_);
    points_ = info.npoints;
    size_ = info.n;
    unknowns_ = info.nunknowns;
  }

  neml2_system* get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return handle_ != nullptr; }

  int64_t points() const noexcept { return points_; }
  int64_t size() const noexcept { return size_; } /**< numbers per point */

  /** One per unknown of the system. */
  std::vector<Layout> layout() const {
    std::vector<Layout> list;
    for (int64_t i = 0; i < unknowns_; ++i) list.push_back(detail::inspected(neml2_system_unknown_inspect, handle_, i));
    return list;
  }

  /** The initial guess, from the model's predictor. */
  void guess(Span<double> u) const { detail::completed(neml2_system_guess(vector("u", u), handle_)); }

  /** The residual r(u). */
  void residual(Span<double> r, Span<const double> u) {
    detail::completed(neml2_system_residual(vector("r", r), handle_, vector("u", u)));
  }

  /** The Newton step du = -(dr/du)^-1 r, and on request, for each point whether dr/du is singular. */
  void step(Span<double> du, Span<const double> u, Span<int32_t> singular = {}) {
    detail::completed(neml2_system_step(vector("du", du), flags("singular", singular), handle_, vector("u", u)));
  }

  /** The Jacobian dr/du: (points, size, size), with one row per residual. */
  void jacobian(Span<double> a, Span<const double> u) {
    detail::completed(neml2_system_jacobian(sized("a", a, points_ * size_ * size_), handle_, vector("u", u)));
  }

  /** y = dr/du v. */
  void matvec(Span<double> y, Span<const double> u, Span<const double> v) {
    detail::completed(neml2_system_matvec(vector("y", y), handle_, vector("u", u), vector("v", v)));
  }

  /** Accept `u` as the solution, once per system, with the status and the iterations of each point. */
  void accept(Span<const double> u, Span<const int32_t> status = {}, Span<const int32_t> iterations = {}) {
    detail::completed(
        neml2_system_accept(handle_, vector("u", u), flags("status", status), flags("iterations", iterations)));
  }

 private:
  template <class T>
  T* sized(const char* name, Span<T> values, int64_t expected) const {
    if (static_cast<int64_t>(values.size()) != expected)
      throw Error(NEML2_ERROR_SHAPE, name,
                  std::string("'") + name + "' must have " + std::to_string(expected) + " values, for " +
                      std::to_string(points_) + " points of " + std::to_string(size_) + " unknowns; got " +
                      std::to_string(values.size()) + ".");
    return values.data();
  }

  template <class T>
  T* vector(const char* name, Span<T> values) const {
    return sized(name, values, points_ * size_);
  }

  /* One number per point, or none. */
  template <class T>
  T* flags(const char* name, Span<T> values) const {
    return values.empty() ? nullptr : sized(name, values, points_);
  }

  neml2_system* handle_ = nullptr;
  int64_t points_ = 0, size_ = 0, unknowns_ = 0;
};

/** An evaluation whose nonlinear systems you solve:
 *
 *     neml2::Solve solve(model, {{"strain", strain}, ...});
 *     while (neml2::System system = solve.next()) {
 *       system.guess(u);
 *       ...
 *       system.accept(u);
 *     }
 *     neml2::Result result = solve.end();
 */
class Solve : public detail::Handle<neml2_solve, neml2_solve_free> {
 public:
  /** Begin with tensors, whose values are copied. */
  Solve(const Model& model, const Arguments& inputs, const Arguments& parameters = {})
      : Handle(detail::made(neml2_solve_begin, model.get(), model.tensors_of(NEML2_INPUT, inputs),
                            model.tensors_of(NEML2_PARAMETER, parameters))),
        of_tensors_(true) {
    result_.outputs = model.named(NEML2_OUTPUT);
  }

  /** Begin `npoints` points with what is bound in a call. The arrays other than inputs and parameters are written by
   *  end(), and must stay where they are until then. */
  Solve(const Call& call, int64_t npoints) : Handle(begun(call, npoints)) {}

  /* The handle and the room for its results move as one, also to themselves. */
  Solve(Solve&&) noexcept = default;
  Solve& operator=(Solve&& other) noexcept {
    Solve moved(std::move(other));
    static_cast<Handle&>(*this) = std::move(static_cast<Handle&>(moved));
    std::swap(result_, moved.result_);
    of_tensors_ = moved.of_tensors_;
    return *this;
  }

  /** The next system; false if none is left. */
  System next() { return System(detail::made(neml2_solve_next, get())); }

  /** End the solve. Of one of a call the Result has the status only. */
  [[nodiscard]] Result end() {
    std::vector<neml2_tensor*> outputs(result_.outputs.size() + 1);
    neml2_report* report = nullptr;
    neml2_solve* solve = get();
    result_.status = neml2_solve_end(of_tensors_ ? outputs.data() : nullptr, of_tensors_ ? &report : nullptr, &solve);
    if (!solve) static_cast<void>(release()); /* it was consumed */
    detail::checked(result_.status);
    result_.outputs.receive(outputs);
    result_.report = Report(report);
    if (result_.status != NEML2_OK) result_.message = detail::text(neml2_error_message);
    return std::move(result_);
  }

 private:
  static neml2_solve* begun(const Call& call, int64_t npoints) {
    call.require_points(npoints);
    return detail::made(neml2_solve_begin_call, call.get(), npoints);
  }

  Result result_;
  bool of_tensors_ = false;
};

template <class Solver>
Result Model::forward_with(const Arguments& inputs, Solver&& solver, const Arguments& parameters) const {
  struct Context {
    std::remove_reference_t<Solver>& solver;
    std::exception_ptr thrown;
  };
  /* An exception must not pass through C. */
  const auto callback = [](void* pointer, neml2_system* borrowed) noexcept -> int32_t {
    Context& context = *static_cast<Context*>(pointer);
    try {
      System system(borrowed);
      context.solver(system);
      return NEML2_OK;
    } catch (...) {
      context.thrown = std::current_exception();
      return NEML2_ERROR_RUNTIME;
    }
  };
  Context context{solver, nullptr};
  const auto run = [&](neml2_tensor** out, neml2_tensor**, const auto&... given) {
    const int32_t status = neml2_solve_run(out, given..., callback, &context);
    if (context.thrown) std::rethrow_exception(context.thrown);
    return status;
  };
  return evaluate({}, run, tensors_of(NEML2_INPUT, inputs), tensors_of(NEML2_PARAMETER, parameters));
}

/* ---------------------------------------------------------------------------------------------
 * Log
 * ------------------------------------------------------------------------------------------- */

/** What the library had to tell of its work; the section Log of neml2_capi.h says more. */
struct LogRecord {
  int32_t level; /**< NEML2_LOG_WARNING, NEML2_LOG_INFO or NEML2_LOG_DEBUG */
  std::string channel, message;
};

/** Set the level of a channel, "newton" for example, or of "all". */
inline void set_log_level(const std::string& channel, int32_t level) {
  detail::checked(neml2_log_level_set(channel.c_str(), level));
}

/** The level of a channel; of "all", the greatest that one has. */
inline int32_t log_level(const std::string& channel) { return detail::made(neml2_log_level_get, channel.c_str()); }

/** How many records wait. */
inline int64_t log_count() { return detail::made(neml2_log_count); }

/** Take the oldest record; nullopt if none waits. */
inline std::optional<LogRecord> next_log_record() {
  char message[NEML2_LOG_LENGTH];
  const char* channel = nullptr;
  int32_t level = NEML2_LOG_SILENT;
  detail::checked(neml2_log_next(&level, &channel, message, sizeof message, nullptr));
  if (level == NEML2_LOG_SILENT) return std::nullopt;
  return LogRecord{level, channel, message};
}

/* ---------------------------------------------------------------------------------------------
 * Interrupting
 * ------------------------------------------------------------------------------------------- */

/** Set the function that long evaluations ask, on the threads that evaluate, whether to end with an Error of
 *  NEML2_ERROR_INTERRUPTED; nullptr for none. It must not throw. */
inline void set_interrupt(bool (*asked)()) {
  const neml2_interrupt_fn ask = [](void* context) -> int32_t { return reinterpret_cast<bool (*)()>(context)(); };
  detail::checked(neml2_interrupt_set(asked ? ask : nullptr, reinterpret_cast<void*>(asked)));
}

/* ---------------------------------------------------------------------------------------------
 * Mandel notation: symmetric tensors as NEML2 stores them, from and to the forms that others have
 *
 *     strain = neml2::mandel::from_voigt(gauss_point_strain, neml2::mandel::Shear::engineering);
 *
 * Mandel notation is xx, yy, zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy. `Scalar` is double or float. They work at one point;
 * std::transform takes them over arrays of points.
 * ------------------------------------------------------------------------------------------- */
namespace mandel {

/** A tensor's components of shear, as of a stress, or twice these, as of a strain. */
enum class Shear { tensor, engineering };

/** Shears in the order yz, xz, xy; or xy, xz, yz, which Abaqus, LS-DYNA and CalculiX have. */
enum class Order { voigt, abaqus };

template <class Scalar>
using Six = std::array<Scalar, 6>;
template <class Scalar>
using Tensor = std::array<std::array<Scalar, 3>, 3>;

namespace detail {

constexpr std::size_t row[6] = {0, 1, 2, 1, 0, 0}, column[6] = {0, 1, 2, 2, 2, 1};

template <class Scalar>
constexpr Scalar factor(std::size_t i) {
  return i < 3 ? Scalar(1) : static_cast<Scalar>(1.41421356237309504880);
}
/** Position in Mandel notation of component i of an order; the permutation is its own inverse. */
constexpr std::size_t place(std::size_t i, Order order) { return i < 3 || order == Order::voigt ? i : 8 - i; }
template <class Scalar>
constexpr Scalar doubled(std::size_t i, Shear shear) {
  return i < 3 || shear == Shear::tensor ? Scalar(1) : Scalar(2);
}

}  // namespace detail

/** The Mandel vector of a symmetric tensor; of another tensor, of its symmetric part. */
template <class Scalar>
constexpr Six<Scalar> from_tensor(const Tensor<Scalar>& tensor) {
  Six<Scalar> mandel{};
  for (std::size_t i = 0; i < 6; ++i) {
    const std::size_t r = detail::row[i], c = detail::column[i];
    mandel[i] = detail::factor<Scalar>(i) * (tensor[r][c] + tensor[c][r]) / 2;
  }
  return mandel;
}

/** The symmetric tensor of a Mandel vector. */
template <class Scalar>
constexpr Tensor<Scalar> to_tensor(const Six<Scalar>& mandel) {
  Tensor<Scalar> tensor{};
  for (std::size_t i = 0; i < 6; ++i) {
    const std::size_t r = detail::row[i], c = detail::column[i];
    tensor[r][c] = tensor[c][r] = mandel[i] / detail::factor<Scalar>(i);
  }
  return tensor;
}

/** The Mandel vector of six components. */
template <class Scalar>
constexpr Six<Scalar> from_voigt(const Six<Scalar>& voigt, Shear shear, Order order = Order::voigt) {
  Six<Scalar> mandel{};
  for (std::size_t i = 0; i < 6; ++i)
    mandel[i] = voigt[detail::place(i, order)] * detail::factor<Scalar>(i) / detail::doubled<Scalar>(i, shear);
  return mandel;
}

/** Six components of a Mandel vector. */
template <class Scalar>
constexpr Six<Scalar> to_voigt(const Six<Scalar>& mandel, Shear shear, Order order = Order::voigt) {
  Six<Scalar> voigt{};
  for (std::size_t i = 0; i < 6; ++i)
    voigt[detail::place(i, order)] = mandel[i] * detail::doubled<Scalar>(i, shear) / detail::factor<Scalar>(i);
  return voigt;
}

}  // namespace mandel

}  // namespace neml2

#endif

// Custom calls of XLA: a model evaluates the buffers of an operation, where they are.
#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <string_view>

#include "capi/abi/call.h"
#include "capi/abi/handles.h"
#include "capi/abi/xla_frame.h"

namespace neml2_capi::abi::xla {

// Buffer of a custom call, as its attribute `arrays` has it.
struct Place {
  std::int32_t role = 0;       // NEML2_*; of a block, the kind of the variable
  std::string name, variable;  // the latter of a block of derivatives alone
  std::int64_t size = 0;       // values per point
};

// Array that is bound for a buffer.
struct Bound {
  void* data = nullptr;
  std::int64_t stride = -1;
  std::int32_t type = 0;  // of XLA

  bool operator==(const Bound&) const = default;
};

// Call over the buffers of a custom call, and what was bound last.
struct Kept {
  Owned<neml2_call> call;
  void* stream = nullptr;
  bool is_on_device = false;
  std::vector<Bound> bound;
};

namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(NEML2_ERROR_ARGUMENT, "call_frame", message); }

// Returns the part of a text before the next `end`, which it cuts off with it.
std::string_view next(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return part;
}

std::int64_t number_of(std::string_view text, std::int64_t least) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least)
    refuse(join("The attribute 'arrays' has '", text, "' where a number of ", least, " or more is expected."));
  return value;
}

std::vector<Place> places_of(std::string_view text) {
  std::vector<Place> places;
  while (!text.empty()) {
    std::string_view line = next(text, '\n');
    Place place;
    place.role = static_cast<std::int32_t>(number_of(next(line, '\t'), 0));
    place.name = next(line, '\t');
    place.variable = next(line, '\t');
    place.size = number_of(line, 1);
    places.push_back(std::move(place));
  }
  return places;
}

std::int32_t dtype_of(std::int32_t type) {
  switch (type) {
    case pred: return NEML2_BOOL;
    case s8: return NEML2_INT8;
    case s16: return NEML2_INT16;
    case s32: return NEML2_INT32;
    case s64: return NEML2_INT64;
    case u8: return NEML2_UINT8;
    case f16: return NEML2_FLOAT16;
    case f32: return NEML2_FLOAT32;
    case f64: return NEML2_FLOAT64;
    case bf16: return NEML2_BFLOAT16;
    default: refuse(join("No model has elements of XLA's type ", type, "."));
  }
}

std::int64_t count_of(const Buffer& buffer) {
  return std::accumulate(buffer.sizes, buffer.sizes + buffer.rank, std::int64_t{1}, std::multiplies<>());
}

}  // namespace

// Calls by the text that tells their buffers. Several threads may run custom calls with the same text, each with a call of
// its own.
class Calls {
 public:
  struct Form {
    std::vector<Place> places;
    std::vector<std::unique_ptr<Kept>> idle;
  };

  std::pair<Form&, std::unique_ptr<Kept>> take(std::string_view arrays) {
    const std::lock_guard lock(mutex_);
    auto found = forms_.find(arrays);
    if (found == forms_.end()) found = forms_.emplace(arrays, Form{places_of(arrays), {}}).first;
    Form& form = found->second;
    std::unique_ptr<Kept> kept;
    if (!form.idle.empty()) {
      kept = std::move(form.idle.back());
      form.idle.pop_back();
    }
    return {form, std::move(kept)};
  }
  void give_back(Form& form, std::unique_ptr<Kept> kept) {
    const std::lock_guard lock(mutex_);
    form.idle.push_back(std::move(kept));
  }

 private:
  locks::Mutex mutex_;
  std::map<std::string, Form, std::less<>> forms_;
};

std::shared_ptr<Calls> no_calls() { return std::make_shared<Calls>(); }

namespace {

// Throws what a function of the library has recorded.
std::int32_t require(std::int32_t status) {
  if (status < 0 || status > NEML2_NON_FINITE) throw Error(status, "", std::string(last_message()));
  return status;
}

struct Request {
  neml2_model* model = nullptr;
  std::string_view arrays;
  bool is_on_device = false;
};

Request request_of(const Attributes& attributes) {
  Request request;
  for (std::int64_t i = 0; i < attributes.count; ++i) {
    const std::string_view name(attributes.names[i]->data, attributes.names[i]->size);
    if (attributes.types[i] == is_text && name == "arrays") {
      const auto& text = *static_cast<const Text*>(attributes.values[i]);
      request.arrays = {text.data, text.size};
    } else if (const auto* scalar = static_cast<const Scalar*>(attributes.values[i]);
               attributes.types[i] == is_scalar && scalar->dtype == s64) {
      const std::int64_t value = *static_cast<const std::int64_t*>(scalar->value);
      if (name == "model") request.model = reinterpret_cast<neml2_model*>(value);
      if (name == "on_device") request.is_on_device = value != 0;
    }
  }
  if (!request.model)
    refuse("A custom call of a model needs the attributes 'model', of 64 bits, and 'arrays', a string.");
  return request;
}

void* stream_of(const Frame& frame) {
  StreamRequest asked{sizeof(StreamRequest), nullptr, frame.context, nullptr};
  if (frame.api->get_stream(&asked)) refuse("XLA has no stream here: leave the attribute 'on_device' out.");
  return asked.stream;
}

void bind(neml2_call* call, const Place& place, const Buffer& buffer, const Bound& array, bool is_result) {
  const std::int32_t dtype = dtype_of(buffer.dtype);
  require(place.variable.empty() || !is_result
              ? neml2_call_bind(call, place.role, place.name.c_str(), array.data, dtype, array.stride)
              : neml2_call_bind_derivative(call, place.role, place.name.c_str(), place.variable.c_str(), array.data,
                                           dtype, array.stride));
}

// Binds what is elsewhere than at the last run.
void bind_all(Kept& kept, const std::vector<Place>& places, const Frame& frame, std::int64_t points) {
  kept.bound.resize(places.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t operands = static_cast<std::size_t>(frame.operands.count);
    const bool is_result = i >= operands;
    const Buffer& buffer = *(is_result ? frame.results.buffers[i - operands] : frame.operands.buffers[i]);
    const Place& place = places[i];
    const std::int64_t count = count_of(buffer);
    const bool is_one = !is_result && count == place.size && points > 1;
    if (!is_one && count != place.size * points)
      refuse(join("The buffer of '", place.name, "' has ", count, " values; expected ", place.size, " for each of ",
                  points, " points", is_result ? "." : ", or for all."));
    const Bound array{buffer.data, is_one ? 0 : place.size, buffer.dtype};
    if (array == kept.bound[i]) continue;
    kept.bound[i] = {};
    bind(kept.call.get(), place, buffer, array, is_result);
    kept.bound[i] = array;
  }
}

std::unique_ptr<Kept> new_call(const ModelObject& model) {
  require_host(*model.value, "A custom call of XLA is");
  auto kept = std::make_unique<Kept>();
  kept->call = Owned<neml2_call>(std::make_unique<CallObject>(model));
  return kept;
}

void require_memory(Kept& kept, bool is_on_device, void* stream) {
  if (kept.is_on_device == is_on_device && kept.stream == stream) return;
  const neml2_call_memory memory{sizeof(neml2_call_memory), stream, 1, NEML2_MEMORY_ADDRESSES, 0};
  require(neml2_call_memory_set(kept.call.get(), is_on_device ? &memory : nullptr));
  kept.is_on_device = is_on_device;
  kept.stream = stream;
  kept.bound.clear();
}

// Throws if a parameter that is not bound has values by point: buffers have no batch that these could broadcast with.
void require_one_value_stored(neml2_call* call) {
  require(alone(call, "call", [](const CallObject& its) {
    const auto& parameters = its.model->variables(model::Kind::parameter);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (its.overrides[i].data) continue;
      const std::int64_t count = its.model->parameter(i).numel() / parameters[i].point_shape.product();
      if (count == 1) continue;
      throw Error(NEML2_ERROR_SHAPE, parameters[i].name,
                  join("The parameter '", parameters[i].name, "' was set to values for ", count,
                       " points, which a program of XLA cannot broadcast. Give them as a parameter of the call, or set "
                       "it to one value."));
    }
  }));
}

void evaluate(const Frame& frame) {
  if (frame.results.count == 0) return;
  const Request request = request_of(frame.attributes);
  const Shared use(request.model, "model");
  auto [form, kept] = use->xla_calls->take(request.arrays);
  if (std::ssize(form.places) != frame.operands.count + frame.results.count)
    refuse(join("The attribute 'arrays' has ", form.places.size(), " lines; expected one for each of ",
                frame.operands.count, " operands and ", frame.results.count, " results."));
  const std::int64_t points =
      count_of(*frame.results.buffers[0]) / form.places[static_cast<std::size_t>(frame.operands.count)].size;
  if (points == 0) return;
  if (!kept) kept = new_call(*use);
  require_memory(*kept, request.is_on_device, request.is_on_device ? stream_of(frame) : nullptr);
  bind_all(*kept, form.places, frame, points);
  require_one_value_stored(kept->call.get());
  std::int32_t status = neml2_call_run(kept->call.get(), points);
  if (status == NEML2_OK && request.is_on_device) status = neml2_call_wait(kept->call.get());
  if (status >= 0) use->xla_calls->give_back(form, std::move(kept));
  require(status);
}

bool fits(const Frame& frame) {
  return frame.size >= sizeof(Frame) && frame.operands.size == sizeof(Buffers) &&
         frame.results.size == sizeof(Buffers) && frame.attributes.size == sizeof(Attributes);
}

bool fits(const Api* api) { return api && api->size >= sizeof(Api) && api->version.major == 0; }

// Tells XLA the version of its interface that this handler speaks, so that XLA refuses to register it in another one.
void tell_version(const Frame& frame, const MetadataExtension& asked) {
  const std::int32_t minor = fits(frame.api) ? frame.api->version.minor : 1;
  asked.metadata->version = {sizeof(Version), nullptr, 0, minor};
  asked.metadata->traits = 0;
}

Failure* failure(const Api& api, const char* message, std::int32_t code) {
  FailureRequest request{sizeof(FailureRequest), nullptr, message, code};
  return api.create_error(&request);
}

Failure* handle(Frame* frame) noexcept {
  if (const Extension* first = frame->extensions; first && first->type == asks_for_metadata) {
    tell_version(*frame, *reinterpret_cast<const MetadataExtension*>(first));
    return nullptr;
  }
  std::int32_t status = NEML2_OK;
  try {
    if (!fits(*frame)) refuse("XLA calls in a way that this release of neml2_capi does not know: take an older jax.");
    evaluate(*frame);
    return nullptr;
  } catch (const Error& error) {
    status = error.status();
    return failure(*frame->api, error.what(), status > 0 ? aborted : failed_precondition);
  } catch (...) {
    status = record_exception();
    return failure(*frame->api, std::string(last_message()).c_str(), failed_precondition);
  }
}

}  // namespace
}  // namespace neml2_capi::abi::xla

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_xla_handler_get(void** out) {
  return guarded([&] { required(out, "out") = reinterpret_cast<void*>(&xla::handle); });
}

// How XLA calls a handler: the structures of its C interface, version 0.1, to which later versions of 0 add at the end.
// OpenXLA's xla/ffi/api/c_api.h has the types and numbers. Each structure begins with its size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace neml2_capi::abi::xla {

struct Failure;  // XLA's error
struct Context;  // of an execution

struct Extension {
  std::size_t size;
  std::int32_t type;
  Extension* next;
};

struct Version {
  std::size_t size;
  Extension* extensions;
  std::int32_t major, minor;
};

// Request of XLA when a handler is registered, the first extension of a frame.
struct Metadata {
  std::size_t size;
  Version version;
  std::uint32_t traits;
};
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};
inline constexpr std::int32_t asks_for_metadata = 1;

struct FailureRequest {
  std::size_t size;
  Extension* extensions;
  const char* message;
  std::int32_t code;
};
enum : std::int32_t { failed_precondition = 9, aborted = 10 };

struct StreamRequest {
  std::size_t size;
  Extension* extensions;
  Context* context;
  void* stream;
};

struct Api {
  std::size_t size;
  Extension* extensions;
  Version version;
  const void* internal;
  Failure* (*create_error)(FailureRequest*);
  void (*error_message)(void*);
  void (*destroy_error)(void*);
  Failure* (*register_handler)(void*);
  Failure* (*get_stream)(StreamRequest*);
};

struct Buffer {
  std::size_t size;
  Extension* extensions;
  std::int32_t dtype;
  void* data;
  std::int64_t rank;
  const std::int64_t* sizes;
};

// Operands, or results.
struct Buffers {
  std::size_t size;
  Extension* extensions;
  std::int64_t count;
  const std::int32_t* types;
  Buffer* const* buffers;
};

struct Text {
  const char* data;
  std::size_t size;
};
struct Scalar {
  std::int32_t dtype;
  const void* value;
};
enum : std::int32_t { is_scalar = 3, is_text = 4 };

struct Attributes {
  std::size_t size;
  Extension* extensions;
  std::int64_t count;
  const std::int32_t* types;
  const Text* const* names;
  const void* const* values;
};

struct Frame {
  std::size_t size;
  Extension* extensions;
  const Api* api;
  Context* context;
  std::int32_t stage;
  Buffers operands, results;
  Attributes attributes;
};

// Types of elements that models have too.
enum DataType : std::int32_t {
  pred = 1,
  s8 = 2,
  s16 = 3,
  s32 = 4,
  s64 = 5,
  u8 = 6,
  f16 = 10,
  f32 = 11,
  f64 = 12,
  bf16 = 16
};

}  // namespace neml2_capi::abi::xla

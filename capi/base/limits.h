// Limits of all readers, in one place. They stand before the loops: bytes, depth and counts are compared first, so that
// time is linear in a file's size, and memory at most a few times it. docs/security.md has them as a table.
#pragma once

#include <cstddef>
#include <cstdint>

namespace neml2_capi::limits {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

// Packages and other files that are read whole: what an archive without zip64 can tell.
constexpr std::size_t package_bytes = std::size_t{1} << 32;

// Stubs.
constexpr std::size_t stub_bytes = mebibyte;
constexpr std::size_t stub_entries = 1000;  // sections, and fields
constexpr std::size_t stub_depth = 16;      // of names in a path: "Models/m/type"

// JSON documents: metadata, kernels.json, and those in packages.
constexpr std::size_t json_bytes = 64 * mebibyte;
constexpr std::size_t json_values = std::size_t{1} << 20;
constexpr std::size_t json_depth = 200;
constexpr std::size_t name_characters =
    1024;  // of a text in metadata, a path in a stub, and a function that a package calls

// Metadata.
constexpr std::int64_t tensor_elements = std::int64_t{1} << 40;
constexpr std::int64_t point_axes = 15;  // with the points: a tensor's axes
constexpr std::size_t variable_pairs = std::size_t{1} << 16;
constexpr std::size_t groups = 1024;

// Source text of a package.
constexpr std::size_t source_bytes = 32 * mebibyte;
constexpr std::int64_t package_tensors = 1 << 14;  // inputs, and outputs
constexpr std::size_t operators = std::size_t{1} << 14;
constexpr std::size_t operator_outputs = std::size_t{1} << 16;
constexpr std::size_t source_name_characters = 128;  // of a variable or a size

// Shared objects.
constexpr std::size_t segments = 64;
constexpr std::size_t imports = 4096;               // functions that a package calls
constexpr std::size_t symbol_versions = 4096;       // of the system's libraries
constexpr std::uint64_t image_bytes = 1ull << 36;   // of memory that an object asks for
constexpr std::uint64_t thread_bytes = 1ull << 24;  // of thread-local storage

}  // namespace neml2_capi::limits

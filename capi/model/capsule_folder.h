// Folder of capsules, and how many were written to it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace neml2_capi::model {

class CapsuleFolder {
 public:
  // The only one of this path. It lives as long as the process: options, which are copied at every evaluation, point to
  // it, and its path is handed out.
  static const CapsuleFolder* of(std::string_view path);

  explicit CapsuleFolder(std::string_view path) : path_(path) {}

  const std::string& path() const { return path_; }
  // The number of the next capsule that this process writes there, from 1 on. A process that was forked counts its own.
  std::int64_t next_number() const;

 private:
  std::string path_;
  mutable std::atomic<std::int64_t> owner_{0};
  mutable std::atomic<std::int64_t> count_{0};
};

}  // namespace neml2_capi::model

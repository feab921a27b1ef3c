// What Linux has of its own.
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>

#include "capi/platform/process.h"
#include "capi/platform/threads.h"

namespace neml2_capi::platform {

Processors Processors::of_this_thread() {
  Processors processors;
  CPU_ZERO(&processors.set_);
  sched_getaffinity(0, sizeof(processors.set_), &processors.set_);
  return processors;
}

int Processors::count() const { return std::max(1, CPU_COUNT(&set_)); }

void Processors::take_thread(Processors& mine) const {
  if (!CPU_EQUAL(&mine.set_, &set_) && sched_setaffinity(0, sizeof(set_), &set_) == 0) mine = *this;
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(": ") != line.npos) return line.substr(line.find(": ") + 2);
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "";
}

}  // namespace neml2_capi::platform

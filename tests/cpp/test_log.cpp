// Records of the log, taken by threads that each want their own.
#include <string>
#include <thread>

#include "capi/base/log.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;

namespace {

void write(const char* words) { log::write(log::Channel::bounds, log::Level::warning, words); }

bool is_next(const std::optional<log::Record>& record, const std::string& words) {
  return words.empty() ? !record : record && record->message == words;
}

// A plug-in says which material a warning is of, by the thread that evaluated it.
void own_records() {
  write("mine");
  std::thread([] {
    expect(is_next(log::take_own(), ""), "another thread's record is not taken");
    write("theirs, 1");
    write("theirs, 2");
    expect(is_next(log::take_own(), "theirs, 1"), "the oldest record of a thread is taken");
  }).join();
  expect(log::count() == 2, "records of others stay");
  expect(is_next(log::take_own(), "mine"), "a thread takes what it wrote before");
  expect(is_next(log::take_own(), ""), "records of an ended thread are not taken for one's own");
  expect(is_next(log::take(), "theirs, 2"), "whoever takes all takes them, too");
}

}  // namespace

int main() {
  own_records();
  return 0;
}

// Work at the end of a thread.
//
// A thread_local with a destructor is registered by the C library, which ends the process if it lacks the memory for
// that. Here the record is part of the caller's own thread-local storage.
#pragma once

namespace neml2_capi::thread_end {

// Record of a thread, in storage that is initialised statically: constinit thread_local.
struct Record {
  void (*run)() noexcept = nullptr;
  Record* next = nullptr;
  bool waits = false;
};

// Calls record.run() when this thread ends, after the destructors of its thread_local objects. Returns false if the
// system has no place to remember it. Does nothing for a record that waits already. The first thread of the process does
// not end: its memory goes with the process.
bool call(Record& record) noexcept;

}  // namespace neml2_capi::thread_end

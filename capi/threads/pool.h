// Worker threads of the library, apart from the host's.
//
// Workers start when they are first needed, sleep between jobs, block all signals, and run in the default
// floating-point environment, on the processors of the caller. The pool serves one caller at a time; another caller
// works alone. After a fork, the child starts workers of its own.
#pragma once

namespace neml2_capi::threads {

// Number of processors that the calling thread may run on.
int available_processors();

// Job of several threads, each of which takes pieces of it until none is left.
class Job {
 public:
  virtual ~Job() = default;
  // Must not throw.
  virtual void work() = 0;
};

// Calls job.work() on the calling thread, and at the same time on at most `helpers` workers; returns when all are done.
// A worker that wakes up after the caller is done does not begin.
void run(Job& job, int helpers);

}  // namespace neml2_capi::threads

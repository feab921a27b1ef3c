// Worker threads of the library's own, apart from any of the host's.
//
// They are started when they are first needed, sleep between jobs, block all signals, run in the default floating-point
// environment and on the processors that the caller may run on. The pool serves one caller at a time; whoever comes
// meanwhile works alone. After a fork, the child starts workers of its own.
#pragma once

namespace neml2_capi::threads {

// How many processors the calling thread may run on.
int available_processors();

// What each of several threads does: it takes parts of the work until none is left.
class Job {
 public:
  virtual ~Job() = default;
  // Must not throw.
  virtual void work() = 0;
};

// Have job.work() done by the calling thread, and at the same time by at most `helpers` workers; return when all of
// them are done. A worker that wakes up after the caller is done does not begin.
void run(Job& job, int helpers);

}  // namespace neml2_capi::threads

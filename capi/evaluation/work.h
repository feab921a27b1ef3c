// The chunks of an evaluation, which several threads take one after another.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "capi/base/error.h"
#include "capi/model/model.h"
#include "capi/threads/pool.h"

namespace neml2_capi::model {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// A chunk that this thread works with, taken from those that wait in the model, so that its memory is used again.
class Model::Borrowed {
 public:
  explicit Borrowed(const Model& model) : model_(model) {
    const std::lock_guard lock(model_.chunks_mutex_);
    if (model_.chunks_.empty()) {
      chunk_ = std::make_unique<Chunk>();
      model_.chunks_.reserve(++model_.num_chunks_);  // so that it can always be given back
      return;
    }
    chunk_ = std::move(model_.chunks_.back());
    model_.chunks_.pop_back();
  }
  ~Borrowed() {
    chunk_->release_values();  // which hold memory, of the caller's perhaps
    const std::lock_guard lock(model_.chunks_mutex_);
    model_.chunks_.push_back(std::move(chunk_));
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  Chunk& operator*() const { return *chunk_; }

 private:
  const Model& model_;
  std::unique_ptr<Chunk> chunk_;
};

class Model::Work final : public threads::Job {
 public:
  Work(const Model& model, const Evaluation& evaluation, const Options& options, std::int64_t size)
      : model_(model),
        evaluation_(evaluation),
        options_(options),
        size_(size),
        sums_(has_sums(evaluation)),
        graph_(model.graph_for(evaluation)) {}

  // Throws what the first chunk that failed threw.
  Tally run(int threads) {
    if (model_.end_of_chunk(0, size_, evaluation_, options_) == evaluation_.points)
      run_chunk(*Borrowed(model_), 0, evaluation_.points, 0, tally_);
    else if (threads > 1)
      run_on(threads);
    else
      work();
    if (failure_) std::rethrow_exception(failure_);
    return tally_;
  }

  void work() override {
    Tally tally;
    try {
      const Borrowed chunk(model_);
      while (take_chunk(*chunk, tally)) {
      }
    } catch (...) {  // no memory for a chunk
      note_failure(evaluation_.points);
    }
    const std::lock_guard lock(mutex_);
    tally_.add(tally);
  }

 private:
  // To wake a worker costs some ten microseconds. One chunk tells how long the rest will take.
  void run_on(int threads) {
    constexpr double worth_waking = 100e-6;  // seconds
    const Stopwatch watch;
    if (!take_chunk(*Borrowed(model_), tally_)) return;
    const double per_point = watch.seconds() / static_cast<double>(next_);
    model_.seconds_per_point_.store(per_point, std::memory_order_relaxed);
    const std::int64_t left = evaluation_.points - next_, chunks = (left + size_ - 1) / size_;
    if (per_point * static_cast<double>(left) < worth_waking)
      work();
    else
      threads::run(*this, static_cast<int>(std::min<std::int64_t>(threads, chunks)) - 1);
  }

  // Evaluate the next chunk; false where there is none.
  bool take_chunk(Chunk& chunk, Tally& tally) {
    std::int64_t begin = 0, number = 0;
    try {
      std::int64_t end = 0;
      {
        const std::lock_guard lock(mutex_);
        if (failure_ || next_ == evaluation_.points) return false;
        begin = next_;
        end = next_ = model_.end_of_chunk(begin, size_, evaluation_, options_);
        number = taken_++;
      }
      run_chunk(chunk, begin, end - begin, number, tally);
      return true;
    } catch (...) {
      note_failure(begin);
      return false;
    }
  }

  // Keep the exception in flight, if it is that of the first chunk that failed so far.
  void note_failure(std::int64_t begin) {
    const std::lock_guard lock(mutex_);
    if (!failure_ || begin < failed_at_) {
      failure_ = std::current_exception();
      failed_at_ = begin;
    }
    turn_came_.notify_all();
  }

  // Nothing is written before all packages have run. A user's operator that fails recoverably fails its points alone.
  void run_chunk(Chunk& chunk, std::int64_t begin, std::int64_t points, std::int64_t number, Tally& tally) {
    Found found;
    try {
      if (graph_) return model_.run_graph(*graph_, evaluation_, begin, points, tally, chunk.repeated);
      found = run_points(chunk, begin, points);
    } catch (const Error& error) {
      if (error.status() < NEML2_OK) throw;
      return run_one_by_one(chunk, begin, points, number, tally);
    }
    if (sums_ && !wait_for_turn(number)) return;
    if (sums_ && begin == 0) model_.clear_sums(evaluation_);
    write(chunk, begin, found, tally);
    if (sums_) end_turn();
  }

  void run_one_by_one(Chunk& chunk, std::int64_t begin, std::int64_t points, std::int64_t number, Tally& tally) {
    if (sums_ && !wait_for_turn(number)) return;
    if (sums_ && begin == 0) model_.clear_sums(evaluation_);
    const std::int64_t step = options_.whole_batch() ? points : std::max<std::int64_t>(model_.baked_batch_, 1);
    for (std::int64_t point = begin; point < begin + points; point += step) {
      Found found;
      try {
        found = run_points(chunk, point, step);
      } catch (const Error& error) {
        if (error.status() < NEML2_OK) throw;
        found = model_.fail(evaluation_, error.status(), chunk);
        tally.note(error.what(), point, error.cause());
      }
      write(chunk, point, found, tally);
    }
    if (sums_) end_turn();
  }

  Found run_points(Chunk& chunk, std::int64_t begin, std::int64_t points) {
    if (begin > 0) chunk.release_values();
    model_.fill(chunk, evaluation_, options_, begin, points);
    return model_.run_segments(evaluation_, begin, chunk);
  }

  void write(Chunk& chunk, std::int64_t begin, const Found& found, Tally& tally) {
    model_.write_results(evaluation_, begin, chunk);
    model_.write_derivatives(evaluation_, begin, chunk.status, found);
    if (evaluation_.unknowns) {
      const std::lock_guard lock(mutex_);
      model_.write_unknowns(evaluation_, begin, chunk);
    }
    tally.add(chunk.status, begin);
  }

  // Sums over all points are added up in the order of the points, whatever thread has them. False where an earlier
  // chunk failed.
  bool wait_for_turn(std::int64_t number) {
    std::unique_lock lock(mutex_);
    turn_came_.wait(lock, [&] { return turn_ == number || failure_; });
    return !failure_;
  }
  void end_turn() {
    const std::lock_guard lock(mutex_);
    ++turn_;
    turn_came_.notify_all();
  }

  static bool has_sums(const Evaluation& evaluation) {
    return std::ranges::any_of(evaluation.adjoints, is_one_value) ||
           std::ranges::any_of(evaluation.parameter_adjoints, is_one_value);
  }

  const Model& model_;
  const Evaluation& evaluation_;
  const Options& options_;
  const std::int64_t size_;
  const bool sums_;
  const GraphCall* const graph_;  // what gives all that is wanted, or null

  std::mutex mutex_;  // guards what follows
  std::condition_variable turn_came_;
  std::int64_t next_ = 0, taken_ = 0, turn_ = 0;
  Tally tally_;
  std::exception_ptr failure_;
  std::int64_t failed_at_ = 0;
};

}  // namespace neml2_capi::model

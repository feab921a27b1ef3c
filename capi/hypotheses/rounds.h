// Newton's method on the free strains, around the law: each round evaluates it at all points that are still open.
#pragma once

#include <cstdint>

#include "capi/hypotheses/results.h"

namespace neml2_capi::model {

class Rounds {
 public:
  // The solve must outlive it.
  explicit Rounds(FreeSolve& solve) : s_(solve), results_(solve) {}

  // Solves for the free strains of these points, by position, and writes results.
  void run(Vector<std::size_t> open);

 private:
  void evaluate(const Vector<std::size_t>& some);
  bool is_done(FreeStrain& each, std::size_t row, bool is_last);
  bool correct(FreeStrain& each, std::size_t row, bool is_last);
  bool cut_back(FreeStrain& each) const;
  bool fail(FreeStrain& each, std::int32_t status, double residual) const;
  bool accept(FreeStrain& each, std::size_t row, const Inverse* inverse) const;
  bool write(FreeStrain& each, std::size_t row, const Inverse* inverse) const;
  void write_history(const FreeStrain& each, std::size_t row) const;
  void keep_iterates(const FreeStrain& each, std::size_t row) const;

  FreeSolve& s_;
  const ResultsUnder results_;
};

}  // namespace neml2_capi::model

// Products with tangents and cotangents, by the implicit function theorem: the free strains have a tangent, and the
// stresses that vanish a cotangent, which a first evaluation gives.
#pragma once

#include "capi/hypotheses/results.h"

namespace neml2_capi::model {

class Products {
 public:
  // The solve must outlive it, and be at an end.
  explicit Products(FreeSolve& solve) : s_(solve), results_(solve) {}

  // Evaluates and writes the products of all points that were solved.
  void run();

 private:
  void give_directions(const Vector<double>* tangents, const Vector<double>* cotangents);
  // Returns the points whose law was solved.
  Vector<std::size_t> solve_directions(const Vector<std::size_t>& good);
  void solve_directions(std::size_t row, FreeStrain& each);
  void ask();
  void evaluate();
  bool is_good(FreeStrain& each, std::size_t row) const;

  FreeSolve& s_;
  const ResultsUnder results_;
  Vector<double> tangents_, cotangents_;  // by row
};

}  // namespace neml2_capi::model

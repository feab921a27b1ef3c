// Changes that a view makes to a law: the inputs that it takes, the outputs that it makes, and their values at a point.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capi/values/points.h"

namespace neml2_capi::model {

class Change {
 public:
  // An input of the view, at a position of the law's inputs, instead of that; or one more, behind them.
  struct Taken {
    std::size_t position;
    Variable variable;
  };
  // An output of the view, at a position of the law's outputs, instead of that; or one more, behind them.
  struct Made {
    std::size_t position;
    Variable variable;
    std::int64_t of_law = -1;    // the output of the law that it is made of; -1: none
    std::int64_t by_taken = -1;  // the one of the taken on which it depends besides; -1: none
  };

  // Derivative of the values of a site: (rows, columns), row by row.
  struct Slope {
    std::size_t rows = 0, columns = 0;
    Vector<double> values;
    void set(std::size_t r, std::size_t c, const double* from) {
      rows = r;
      columns = c;
      values.assign(from, from + r * c);
    }
  };
  // All of one point, by position among the taken and the made.
  struct Point {
    std::vector<Vector<double>> taken, law_inputs;  // the latter empty for an additional input
    std::vector<Vector<double>> law_outputs, made;
    std::vector<Slope> of_input;  // d law input / d taken
    std::vector<Slope> of_law;    // d made / d law output, at constant taken inputs
    std::vector<Slope> direct;    // d made / d taken, at constant outputs of the law
  };

  virtual ~Change() = default;

  const std::vector<Taken>& taken() const { return taken_; }
  const std::vector<Made>& made() const { return made_; }

  // Why there are no inputs of the law; empty: there are. A smaller step may mend what is of the step.
  struct Refusal {
    std::string why;
    bool is_of_step = false;
  };
  // Makes the inputs of the law of what is taken, and the slopes `of_input`; NaN of NaN, which it refuses, too.
  virtual Refusal before(Point& point, bool with_slopes) const = 0;
  // Makes the outputs of what the law gave, and all slopes.
  virtual void after(Point& point, bool with_slopes) const = 0;

 protected:
  std::vector<Taken> taken_;
  std::vector<Made> made_;
};

}  // namespace neml2_capi::model

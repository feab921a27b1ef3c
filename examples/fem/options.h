// What the command line says.
#pragma once

#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

#include "element.h"
#include "material.h"

namespace fem {

inline const char USAGE[] =
    "usage: example_fem ARTIFACT [options]\n"
    "  --check             assert in every step what must hold, and the patch test before\n"
    "  --tangent NAME      consistent; or a wrong one, to see what becomes of Newton: elastic, transposed\n"
    "  --dilatation NAME   mean, of the element (B-bar); or local, each point's own, which locks\n"
    "  --displacement MM   of the end of the plate, at the peak (0.08)\n"
    "  --first-step S      the time step to begin with (0.1)\n"
    "  --yield-stress MPA  in place of the artifact's\n"
    "  --vtk BEGINNING     write BEGINNING001.vtk and so on, one file per step\n";

struct Options {
  std::string artifact, vtk;
  bool check = false;
  Tangent tangent = Tangent::CONSISTENT;
  Dilatation dilatation = Dilatation::MEAN;
  double displacement = 0.08, first_step = 0.1;
  double yield_stress = 0;  ///< 0: the artifact's
};

/// @throws std::invalid_argument naming what was not understood
inline Options parse(int argc, char** argv) {
  const std::map<std::string, Tangent> tangents = {
      {"consistent", Tangent::CONSISTENT}, {"elastic", Tangent::ELASTIC}, {"transposed", Tangent::TRANSPOSED}};
  const std::map<std::string, Dilatation> dilatations = {{"mean", Dilatation::MEAN}, {"local", Dilatation::LOCAL}};
  Options options;
  const std::map<std::string, double*> numbers = {{"--displacement", &options.displacement},
                                                  {"--first-step", &options.first_step},
                                                  {"--yield-stress", &options.yield_stress}};
  if (argc < 2) throw std::invalid_argument("The folder of an artifact is missing.");
  options.artifact = argv[1];
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--check") {
      options.check = true;
      continue;
    }
    if (++i == argc) throw std::invalid_argument(name + " needs a value, or is no option.");
    const std::string value = argv[i];
    if (name == "--tangent" && tangents.count(value)) {
      options.tangent = tangents.at(value);
    } else if (name == "--dilatation" && dilatations.count(value)) {
      options.dilatation = dilatations.at(value);
    } else if (name == "--vtk") {
      options.vtk = value;
    } else if (numbers.count(name)) {
      char* end = nullptr;
      *numbers.at(name) = std::strtod(value.c_str(), &end);
      if (*end || !(*numbers.at(name) > 0)) throw std::invalid_argument(name + " must be a number above 0.");
    } else {
      throw std::invalid_argument("There is no option " + name + " " + value + ".");
    }
  }
  return options;
}

}  // namespace fem

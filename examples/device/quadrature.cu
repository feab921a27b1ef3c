// What a matrix-free method asks of a law at its quadrature points, as MFEM and libCEED divide the work: from gradients
// of displacement the weighted stress, and the stiffness that the linear solver multiplies with. One thread a point.
//
//     neml2-capi header aoti/isotropic_hardening -o steel.hpp
//     nvcc -std=c++17 -arch=sm_80 examples/device/quadrature.cu -I. -o tension
//
// tension [POINTS] pulls each point to a strain of its own, on the GPU, or on the host if there is none, and prints strain,
// stress and tangent.

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "steel.hpp"

// Arrays of [component][point], of a mesh's quadrature points.
struct Points {
  long count;
  const double *gradient;  // [9], of the displacement: d u_i / d x_j is 3 i + j
  const double *weight;    // of the quadrature, times det J
  steel::inputs *state;    // [point]: the old state, kept between steps
  double *force;           // [9], weight times stress, against the gradient of a test function
  double *stiffness;       // [36], weight times d stress / d strain in Mandel's notation
};

// The six components of a symmetric tensor in Mandel's notation: where they are in 3 x 3, and shears times sqrt 2.
__host__ __device__ inline void integrate(const Points &points, double time, long i) {
  const int row[6] = {0, 1, 2, 1, 0, 0}, column[6] = {0, 1, 2, 2, 2, 1};
  const double half_root = 0.70710678118654752, n = points.weight[i];
  steel::inputs in = points.state[i];
  in.t = time;
  for (int k = 0; k < 6; ++k) {
    const double one = points.gradient[(3 * row[k] + column[k]) * points.count + i];
    const double other = points.gradient[(3 * column[k] + row[k]) * points.count + i];
    in.strain[k] = k < 3 ? one : (one + other) * half_root;
  }
  steel::outputs out;
  steel::tangent tangent;
  steel::update(in, out, &tangent);  // a point that fails is NaN, and so is the residual of its element
  for (int k = 0; k < 6; ++k) {
    const double component = n * out.stress[k] * (k < 3 ? 1 : half_root);
    points.force[(3 * row[k] + column[k]) * points.count + i] = component;
    points.force[(3 * column[k] + row[k]) * points.count + i] = component;
    for (int j = 0; j < 6; ++j) points.stiffness[(6 * k + j) * points.count + i] = n * tangent.stress_by_strain(k, j);
  }
  for (int k = 0; k < 6; ++k) in.strain_old[k] = in.strain[k], in.stress_old[k] = out.stress[k];
  in.t_old = in.t;
  in.equivalent_plastic_strain_old = out.equivalent_plastic_strain;
  points.state[i] = in;
}

__global__ void integrate_all(Points points, double time) {
  const long i = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < points.count) integrate(points, time, i);
}

int main(int argc, char **argv) {
  const long count = argc > 1 ? std::atol(argv[1]) : 5, steps = 10;
  int devices = 0;
  const bool device = cudaGetDeviceCount(&devices) == cudaSuccess && devices > 0;
  const auto zeros = [&](long size) -> void * {  // of bytes that both can reach
    void *made = nullptr;
    if (!device) return std::calloc(size, 1);
    if (cudaMallocManaged(&made, size) != cudaSuccess || cudaMemset(made, 0, size) != cudaSuccess) std::abort();
    return made;
  };
  const auto numbers = [&](long rows) { return static_cast<double *>(zeros(rows * count * sizeof(double))); };
  double *gradient = numbers(9), *weight = numbers(1);
  auto *state = static_cast<steel::inputs *>(zeros(count * sizeof(steel::inputs)));
  const Points points{count, gradient, weight, state, numbers(9), numbers(36)};
  for (long step = 1; step <= steps; ++step) {
    if (device && cudaDeviceSynchronize() != cudaSuccess) return 1;
    for (long i = 0; i < count; ++i) {
      gradient[i] = 0.01 * static_cast<double>(i * step) / static_cast<double>(count * steps);
      gradient[4 * count + i] = gradient[8 * count + i] = -0.5 * gradient[i];
      weight[i] = 0.125;
    }
    if (device) integrate_all<<<static_cast<unsigned>((count + 63) / 64), 64>>>(points, static_cast<double>(step));
    for (long i = 0; !device && i < count; ++i) integrate(points, static_cast<double>(step), i);
  }
  if (device && cudaDeviceSynchronize() != cudaSuccess) return 1;
  for (long i = 0; i < count; ++i)
    std::printf("%.5f %.17g MPa, tangent %.17g MPa\n", gradient[i], points.force[i] / weight[i],
                points.stiffness[i] / weight[i]);
}

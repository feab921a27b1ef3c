/* Functions that C++ and OpenCL C share, in the words for numbers that each language defines. */

FUNCTION wide_mask is_odd(wide_bits quadrant) { return (quadrant & 1) != 0; }

FUNCTION wide_bits sign_where(wide_mask condition) { return condition ? 0x8000000000000000 : 0; }

FUNCTION mask is_finite(wide x) { return x - x == 0.0; }

FUNCTION void copy(const lanes *from, lanes *to, int count) {
  for (int i = 0; i < count; ++i) to[i] = from[i];
}

FUNCTION void clear(lanes *to, int count) {
  for (int i = 0; i < count; ++i) to[i] = fill(0);
}

/* Sums of products are doubles, whatever the numbers are. */
FUNCTION wide product_with(const lanes *x, const lanes *y, int count) {
  wide sum = wide_fill(0.0);
  for (int i = 0; i < count; ++i) sum += widened(x[i]) * widened(y[i]);
  return sum;
}

FUNCTION wide norm_of(const lanes *x, int count) { return wide_square_root(product_with(x, x, count)); }

FUNCTION wide distance_of(const lanes *x, const lanes *y, int count) {
  wide sum = wide_fill(0.0);
  for (int i = 0; i < count; ++i) {
    const wide difference = widened(x[i] - y[i]);
    sum += difference * difference;
  }
  return wide_square_root(sum);
}

/* Adds the product of a block of derivatives, (rows, columns), and directions, (columns, count), to `to`, (rows, count). */
FUNCTION void push(const lanes *block, int stride, int rows, int columns, const lanes *from, int count, lanes *to) {
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < count; ++k) {
      lanes sum = to[r * count + k];
      for (int c = 0; c < columns; ++c) sum += block[r * stride + c] * from[c * count + k];
      to[r * count + k] = sum;
    }
}

/* Does so for a band of `count` columns of the unit matrix. The block begins at column `first` of the band, or before the
   band if `first` is negative. */
FUNCTION void push_band(const lanes *block, int stride, int rows, int columns, int first, int count, lanes *to) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      if (first + c >= 0 && first + c < count) to[r * count + first + c] += block[r * stride + c];
}

/* Returns where a part of an increment begins, 0 to 1, if each part has this width. */
FUNCTION wide begin_of(int64_t part, wide width) { return number_of((uint64_t)part) * width; }

/* Interpolates between the values at two ends of an increment. */
FUNCTION void between(const lanes *from, const lanes *to, lanes at, lanes *made, int count) {
  for (int i = 0; i < count; ++i) made[i] = from[i] + (to[i] - from[i]) * at;
}

FUNCTION void scale(const lanes *x, lanes factor, lanes *made, int count) {
  for (int i = 0; i < count; ++i) made[i] = x[i] * factor;
}

/* Writes (rows, count) numbers: the unit matrix from the column `first` on, and zeros elsewhere. */
FUNCTION void spread_unit(lanes *to, int rows, int count, int first) {
  clear(to, rows * count);
  for (int r = 0; r < rows; ++r) to[r * count + first + r] = fill(1);
}

FUNCTION void add_row(lanes factor, const lanes *row, lanes *to, int count) {
  for (int k = 0; k < count; ++k) to[k] += factor * row[k];
}

/* Divides by a pivot: multiplies with the reciprocal, unless that or the pivot has lost digits to underflow. */
FUNCTION lanes divided(lanes x, lanes pivot, lanes reciprocal, mask exact) {
  return where(exact, x / pivot, x * reciprocal);
}

FUNCTION mask needs_division(lanes pivot) {
#ifdef NEML2_KERNEL_FLOAT
  const lanes least = fill(0x1p-126f);
#else
  const lanes least = fill(0x1p-1022);
#endif
  const lanes size = absolute(pivot);
  return !((size >= least) & (size <= fill(1) / least));
}

FUNCTION void swap_rows(lanes *a, lanes *b, int count) {
  for (int j = 0; j < count; ++j) {
    const lanes old = a[j];
    a[j] = b[j];
    b[j] = old;
  }
}

/* Solves A x = b for `sides` right-hand sides: A is (n, n), b (n, sides), row-major, and both are overwritten, b with x. By
   the order of Crout; a row is exchanged if its pivot is less than a tenth of the largest of its column (threshold
   pivoting: Duff, Erisman and Reid, Direct Methods for Sparse Matrices, 2nd ed., 2017, chapter 7). Returns true if A is
   singular; x is NaN then. */
FUNCTION mask solve(lanes *a, lanes *b, int n, int sides) {
  mask singular = 0 != 0;
  for (int k = 0; k < n; ++k) {
    for (int i = k; i < n; ++i)
      for (int m = 0; m < k; ++m) a[i * n + k] -= a[i * n + m] * a[m * n + k];
    lanes largest = fill(0);
    int row = k;
    for (int i = k + 1; i < n; ++i) {
      const lanes size = absolute(a[i * n + k]);
      if (size > largest) largest = size;
    }
    if (absolute(a[k * n + k]) < narrowed(wide_fill(0.1)) * largest) {
      largest = absolute(a[k * n + k]);
      for (int i = k + 1; i < n; ++i)
        if (absolute(a[i * n + k]) > largest) {
          largest = absolute(a[i * n + k]);
          row = i;
        }
      if (row != k) {
        swap_rows(a + k * n, a + row * n, n);
        swap_rows(b + k * sides, b + row * sides, sides);
      }
    }
    const lanes pivot = a[k * n + k], reciprocal = fill(1) / pivot;
    const mask exact = needs_division(pivot);
    singular = singular | (pivot == 0);
    for (int i = k + 1; i < n; ++i) {
      const lanes factor = divided(a[i * n + k], pivot, reciprocal, exact);
      a[i * n + k] = factor;
      for (int j = 0; j < sides; ++j) b[i * sides + j] -= factor * b[k * sides + j];
    }
    for (int j = k + 1; j < n; ++j)
      for (int m = 0; m < k; ++m) a[k * n + j] -= a[m * n + j] * a[k * n + m];
  }
  for (int k = n - 1; k >= 0; --k) {
    const lanes pivot = a[k * n + k], reciprocal = fill(1) / pivot;
    const mask exact = needs_division(pivot);
    for (int j = 0; j < sides; ++j) b[k * sides + j] = divided(b[k * sides + j], pivot, reciprocal, exact);
    for (int i = 0; i < k; ++i)
      for (int j = 0; j < sides; ++j) b[i * sides + j] -= a[i * n + k] * b[k * sides + j];
  }
  for (int i = 0; i < n * sides; ++i) b[i] = where(singular, fill(real_no_number()), b[i]);
  return singular;
}

FUNCTION mask are_not_finite(const lanes *x, int count) {
  mask found = 0 != 0;
  for (int i = 0; i < count; ++i) found = found | (x[i] - x[i] != 0);
  return found;
}

FUNCTION mask have_no_number(const lanes *x, int count) {
  mask found = 0 != 0;
  for (int i = 0; i < count; ++i) found = found | (x[i] != x[i]);
  return found;
}

FUNCTION mask block_is_not_finite(const lanes *block, int stride, int rows, int columns) {
  mask found = 0 != 0;
  for (int r = 0; r < rows; ++r) found = found | are_not_finite(block + r * stride, columns);
  return found;
}

FUNCTION void invalidate(lanes *x, int count) {
  for (int i = 0; i < count; ++i) x[i] = fill(real_no_number());
}

/* Writes a block of derivatives into rows of `width`, whose numbers are `apart`; NaN if the point failed. */
FUNCTION void write(const lanes *block, int stride, int rows, int columns, int width, int failed, GLOBAL real *to,
                    int64_t apart) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      to[(r * width + c) * apart] = as_real(where(failed != 0, fill(real_no_number()), block[r * stride + c]));
}

/* Writes the columns of a block that are in a band of `count`, which begin as in push_band. Returns true if one of them is not
   finite. */
FUNCTION mask write_band(const lanes *band, int count, int rows, int columns, int first, int width, int failed,
                         GLOBAL real *to, int64_t apart) {
  mask found = 0 != 0;
  for (int c = 0; c < columns; ++c)
    if (first + c >= 0 && first + c < count) {
      found = found | block_is_not_finite(band + (first + c), count, rows, 1);
      write(band + (first + c), count, rows, 1, width, failed, to + c * apart, apart);
    }
  return found;
}

FUNCTION void write_zeros(int rows, int columns, int width, int failed, GLOBAL real *to, int64_t apart) {
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      to[(r * width + c) * apart] = as_real(where(failed != 0, fill(real_no_number()), fill(0)));
}

FUNCTION report new_report(int status) {
  report made;
  made.status = status;
  made.iterations = 0;
  made.residual_norm = 0.0;
  made.suggested_cut = 1.0;
  return made;
}

/* Adds the report of a system to the report of the systems before. */
FUNCTION void add_report(report *all, report later) {
  const wide norm = wide_fill(all->residual_norm), cut = wide_fill(all->suggested_cut);
  all->status = newton_joined_status(all->status, later.status);
  all->iterations += later.iterations;
  all->residual_norm = plain(newton_joined_norm(norm, wide_fill(later.residual_norm)));
  all->suggested_cut = plain(newton_joined_cut(cut, wide_fill(later.suggested_cut)));
}

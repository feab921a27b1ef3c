// Sorting of what is short, or sorted once: the standard library's sort takes 4 KB of code for each type.
#pragma once

#include <algorithm>

namespace neml2_capi {

// Sorts a range, with equal elements in any order.
template <class Range, class... Less>
void heap_sort(Range& range, Less... less) {
  std::make_heap(range.begin(), range.end(), less...);
  std::sort_heap(range.begin(), range.end(), less...);
}

}  // namespace neml2_capi

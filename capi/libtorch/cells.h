// Arguments of an operator, as the dispatcher's C function takes them.
#pragma once

#include <bit>
#include <cstdint>

#include "capi/libtorch/library.h"
#include "capi/libtorch/tensors.h"

namespace neml2_capi::aoti::libtorch {

inline const Functions& torch() { return Library::get().functions(); }

inline Cell cell_of(double value) { return std::bit_cast<Cell>(value); }
inline Cell cell_of(std::int64_t value) { return static_cast<Cell>(value); }
inline Cell cell_of(const void* handle) { return reinterpret_cast<Cell>(handle); }
// Makes a cell of 32 bits, which stand in the lowest bytes.
inline Cell cell_of_int32(std::int64_t value) { return static_cast<std::uint32_t>(value); }

// Makes an argument that may be None: a pointer to the value, which libtorch deletes.
inline Cell boxed(Cell value) {
  Cell* box = nullptr;
  if (torch().torch_new_stable_ivalue)
    expect(torch().torch_new_stable_ivalue(&box), "an optional argument");
  else
    box = new Cell;
  *box = value;
  return cell_of(box);
}

template <class Item>
Cell list_of(std::int64_t size, Item&& item) {
  List list = nullptr;
  expect(torch().torch_new_list_reserve_size(static_cast<std::size_t>(size), &list), "a list argument");
  for (std::int64_t i = 0; i < size; ++i) expect(torch().torch_list_push_back(list, item(i)), "a list argument");
  return cell_of(list);
}

}  // namespace neml2_capi::aoti::libtorch

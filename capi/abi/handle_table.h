// Table of the handles of this process: which are alive, of which kind, and whether a function runs on one.
//
// A handle of the header looks like a pointer and is a number, which is no address: a mark, how often its slot had been
// used before, its kind and the slot. Slots are never given back, so that any number can be looked up. See
// docs/design/handles.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace neml2_capi::abi {

enum class HandleKind : std::uint8_t {
  none,
  model,
  call,
  tensor,
  report,
  solve,
  system,
  graph,
  operator_call,
  scheduler
};

// Argument that is to be a handle, for a message: the input 'strain', the argument 'inputs[2]'.
struct Argument {
  Argument(const char* of) : name(of) {}  // NOLINT: every name is one
  Argument(const char* of, std::int64_t at) : name(of), index(at) {}

  const char* kind = "argument";
  const char* name;
  std::int64_t index = -1;
};

namespace table {

using Token = std::uint64_t;

// Bits of a token, and of the word of a slot, whose lower bits tell what runs on the handle.
//
//   63 ... 52   51 ...... 28   27 .. 24   23 ...... 0
//     mark       generation      kind     token: index of the slot
//                                         word: freed, alone, count of the functions that share it
constexpr int kind_shift = 24, generation_shift = 28, mark_shift = 52;
constexpr Token mark = Token{0x4e3} << mark_shift;  // not in any address, also if the processor ignores upper bits
constexpr Token low = (Token{1} << kind_shift) - 1;
constexpr Token freed = Token{1} << 23, alone = Token{1} << 22;
constexpr Token greatest_generation = (Token{1} << (mark_shift - generation_shift)) - 1;

// One to a cache line: threads that work with a handle each do not meet.
struct alignas(64) Slot {
  std::atomic<std::uint64_t> word;
  std::uintptr_t object;            // see `disguise`
  std::uint32_t index;              // of the slot itself
  std::atomic<std::uint32_t> next;  // that is free, counted from 1; 0: none
};

constexpr int chunk_bits = 8;
constexpr std::size_t chunk_size = std::size_t{1} << chunk_bits;
extern std::atomic<Slot*> chunks[(low + 1) / chunk_size];

#ifdef __SANITIZE_ADDRESS__
// Keeps the leak sanitizer from finding, by the table, what a test has forgotten to free.
constexpr std::uintptr_t disguise = ~std::uintptr_t{0};
#else
constexpr std::uintptr_t disguise = 0;
#endif

inline void* object_of(const Slot& slot) { return reinterpret_cast<void*>(slot.object ^ disguise); }
inline HandleKind kind_of(Token token) { return static_cast<HandleKind>((token >> kind_shift) & 0xf); }

// Returns the slot that a token would have; null if there is none.
inline Slot* slot_of(Token token) {
  Slot* chunk = chunks[(token & low) >> chunk_bits].load(std::memory_order_acquire);
  return chunk ? chunk + (token & (chunk_size - 1)) : nullptr;
}

// Enter a handle of this kind, beside others or alone; nullptr if it is invalid, freed or busy.
inline Slot* enter_alone(Token token, HandleKind kind) noexcept {
  Slot* slot = slot_of(token);
  std::uint64_t idle = token & ~low;
  if (!slot || kind_of(token) != kind ||
      !slot->word.compare_exchange_strong(idle, idle | alone, std::memory_order_acquire, std::memory_order_relaxed))
    return nullptr;
  return slot;
}

inline Slot* enter_shared(Token token, HandleKind kind) noexcept {
  Slot* slot = slot_of(token);
  if (!slot || kind_of(token) != kind) return nullptr;
  std::uint64_t word = token & ~low;
  while (!slot->word.compare_exchange_weak(word, word + 1, std::memory_order_acquire, std::memory_order_relaxed))
    if ((word & ~(alone - 1)) != (token & ~low)) return nullptr;
  return slot;
}

// Frees the slot of a handle without users for the next handle.
void recycle(Slot& slot) noexcept;

// Leave a handle that was entered. They return the object if it was freed meanwhile and this was the last to use it:
// the caller deletes it.
inline void* leave_shared(Slot& slot) noexcept {
  const std::uint64_t left = slot.word.fetch_sub(1, std::memory_order_acq_rel) - 1;
  if ((left & low) != freed) return nullptr;
  void* object = object_of(slot);
  recycle(slot);
  return object;
}

// A store is half the cost of an exchange. Another thread that frees the handle between these two lines has freed what
// was in use, and frees nothing: better than a nanosecond more in every call.
inline void* leave_alone(Slot& slot) noexcept {
  const std::uint64_t word = slot.word.load(std::memory_order_acquire);
  if (!(word & freed)) {
    slot.word.store(word & ~alone, std::memory_order_release);
    return nullptr;
  }
  void* object = object_of(slot);
  recycle(slot);
  return object;
}

// Makes a handle. Throws if memory ends, or there are 2^24 handles.
Token open(HandleKind kind, void* object);

// Result of freeing a handle: `object` is to be deleted now; none if it is no handle, or in use, and is left to the
// last that leaves it.
struct Closed {
  void* object = nullptr;
  bool in_use = false;
};
Closed close(Token token, HandleKind kind) noexcept;

// Closes a handle whose object is about to go, once nothing runs on it.
void close_when_idle(Token token, HandleKind kind) noexcept;

// Throws NEML2_ERROR_ARGUMENT, saying what the argument is in place of a handle of this kind that can be used now.
[[noreturn]] void refuse(Token token, HandleKind wanted, const Argument& argument);

// Warns, in the log, that such a handle was to be freed.
void warn_of_free(Token token, HandleKind wanted, bool in_use) noexcept;

}  // namespace table
}  // namespace neml2_capi::abi

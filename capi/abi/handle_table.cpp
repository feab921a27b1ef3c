#include "capi/abi/handle_table.h"

#include <charconv>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "capi/base/error.h"
#include "capi/base/locks.h"
#include "capi/base/log.h"

namespace neml2_capi::abi::table {

constinit std::atomic<Slot*> chunks[(low + 1) / chunk_size] = {};

namespace {

// Free slots, first in, last out. Threads have different lists, so that they seldom meet, and take from all of them:
// what one makes another may free. The upper bits count changes: a list that came back to the same head is another.
// Lists are lock-free: a child of fork() that was made in the middle of a change can go on with them.
struct alignas(64) FreeList {
  std::atomic<std::uint64_t> head;  // of `low`, the first, counted from 1
};
constexpr unsigned num_lists = 16;
constinit FreeList lists[num_lists] = {};

constexpr std::uint32_t most = low;  // counted from 1 they fit into `low`
constinit std::atomic<std::uint32_t> used = 0;

// Generation of a slot that is new. Another copy of this library in the process begins elsewhere, and so most likely
// does not take our handles for its own.
std::uint64_t first_generation() {
  return (reinterpret_cast<std::uintptr_t>(&chunks) >> 12) & (greatest_generation >> 1);
}

// Returns the list of this thread, by where its stack is: any is right.
unsigned own_list() {
  const auto stack = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)) >> 16;
  return static_cast<unsigned>((stack * std::uint64_t{0x9e3779b97f4a7c15}) >> 60) % num_lists;
}

Slot& slot_at(std::uint32_t index) { return *slot_of(index); }

void push(std::uint32_t index) noexcept {
  std::atomic<std::uint64_t>& list = lists[own_list()].head;
  std::uint64_t head = list.load(std::memory_order_relaxed), replaced;
  do {
    slot_at(index).next.store(static_cast<std::uint32_t>(head & low), std::memory_order_relaxed);
    replaced = ((head & ~low) + low + 1) | (index + 1);
  } while (!list.compare_exchange_weak(head, replaced, std::memory_order_release, std::memory_order_relaxed));
}

// Returns a free slot, counted from 1; 0 if the list has none.
std::uint32_t pop(std::atomic<std::uint64_t>& list) {
  std::uint64_t head = list.load(std::memory_order_acquire), replaced;
  do {
    if ((head & low) == 0) return 0;
    const std::uint32_t next = slot_at(static_cast<std::uint32_t>(head & low) - 1).next.load(std::memory_order_relaxed);
    replaced = ((head & ~low) + low + 1) | next;
  } while (!list.compare_exchange_weak(head, replaced, std::memory_order_acquire, std::memory_order_acquire));
  return static_cast<std::uint32_t>(head & low);
}

void make_chunk(std::size_t number) {
  if (chunks[number].load(std::memory_order_acquire)) return;
  auto made = std::make_unique<Slot[]>(chunk_size);
  for (std::size_t i = 0; i < chunk_size; ++i) {
    made[i].word.store(mark | first_generation() << generation_shift, std::memory_order_relaxed);
    made[i].index = static_cast<std::uint32_t>(number * chunk_size + i);
  }
  Slot* none = nullptr;
  if (chunks[number].compare_exchange_strong(none, made.get(), std::memory_order_acq_rel)) made.release();
}

std::uint32_t take_new() {
  std::uint32_t index = used.load(std::memory_order_relaxed);
  do {
    if (index >= most)
      throw Error(NEML2_ERROR_MEMORY, "handles", join("There are ", most, " handles in use: free some of them."));
    make_chunk(index >> chunk_bits);
  } while (!used.compare_exchange_weak(index, index + 1, std::memory_order_relaxed));
  return index;
}

std::uint32_t take() {
  const unsigned own = own_list();
  for (unsigned i = 0; i < num_lists; ++i)
    if (const std::uint32_t found = pop(lists[(own + i) % num_lists].head)) return found - 1;
  return take_new();
}

std::uint64_t generation_of(std::uint64_t word) { return (word >> generation_shift) & greatest_generation; }

constexpr const char* names[] = {
    "nothing",     "neml2_model",  "neml2_call",  "neml2_tensor",        "neml2_report",
    "neml2_solve", "neml2_system", "neml2_graph", "neml2_operator_call", "neml2_scheduler"};

// State of a token, as far as it can be known.
enum class State { foreign, freed, alive };

State state_of(Token token) {
  const auto kind = static_cast<std::size_t>(kind_of(token));
  const bool is_marked = token >> mark_shift == mark >> mark_shift;
  if (!is_marked || kind == 0 || kind >= std::size(names) || (token & low) >= used.load(std::memory_order_acquire))
    return State::foreign;
  const std::uint64_t word = slot_of(token)->word.load(std::memory_order_acquire);
  if ((word & ~low) == (token & ~low)) return word & freed ? State::freed : State::alive;
  // A slot that is not used has the generation of its next handle.
  const bool was_given = generation_of(token) >= first_generation() && generation_of(token) < generation_of(word);
  return was_given ? State::freed : State::foreign;
}

std::string hexadecimal(Token token) {
  char digits[2 * sizeof token];
  return "0x" + std::string(digits, std::to_chars(digits, std::end(digits), token, 16).ptr);
}

// Returns what is wrong with a handle, after its name.
std::string told(Token token, HandleKind wanted) {
  const char* name = names[static_cast<std::size_t>(kind_of(token)) % std::size(names)];
  const char* expected = names[static_cast<std::size_t>(wanted)];
  const State state = state_of(token);
  if (state == State::foreign)
    return join("is no handle of this library (", hexadecimal(token), "). Pass a ", expected,
                " that one of its functions gave; before that, set the variable to NULL.");
  if (kind_of(token) != wanted)
    return join("is a ", name, state == State::freed ? " that was freed" : "", "; expected a ", expected,
                ". Check the order of the arguments.");
  if (state == State::freed)
    return join("is a ", name, " that was freed. Keep no copy of a handle beyond that: freeing sets only one to NULL.");
  return join("is in use: another function runs on this ", name,
              ", in another thread or further up in this one. Wait for it, or give each thread one of its own.",
              locks::forks() == 0 ? "" : " One that a thread of the parent used at the fork stays so: make another.");
}

}  // namespace

void recycle(Slot& slot) noexcept {
  const std::uint64_t next = generation_of(slot.word.load(std::memory_order_relaxed)) + 1;
  slot.word.store(mark | next << generation_shift, std::memory_order_release);
  if (next < greatest_generation) push(slot.index);  // else its numbers are used up
}

Token open(HandleKind kind, void* object) {
  Slot& slot = slot_at(take());
  slot.object = reinterpret_cast<std::uintptr_t>(object) ^ disguise;
  const std::uint64_t base = slot.word.load(std::memory_order_relaxed) | static_cast<std::uint64_t>(kind) << kind_shift;
  slot.word.store(base, std::memory_order_release);
  return base | slot.index;
}

Closed close(Token token, HandleKind kind) noexcept {
  Slot* slot = slot_of(token);
  if (!slot || kind_of(token) != kind) return {};
  std::uint64_t word = token & ~low;
  while (!slot->word.compare_exchange_weak(word, word | freed, std::memory_order_acq_rel, std::memory_order_relaxed))
    if ((word & ~low) != (token & ~low) || word & freed) return {};
  if ((word & low) != 0) return {.object = nullptr, .in_use = true};
  void* object = object_of(*slot);
  recycle(*slot);
  return {.object = object, .in_use = false};
}

void close_when_idle(Token token, HandleKind kind) noexcept {
  Slot* slot = nullptr;
  while (!(slot = enter_alone(token, kind))) std::this_thread::yield();
  recycle(*slot);
}

void refuse(Token token, HandleKind wanted, const Argument& argument) {
  std::string name = argument.name;
  if (argument.index >= 0) name += join("[", argument.index, "]");
  const std::string what = token == 0 ? "is NULL; it must point to something." : told(token, wanted);
  throw Error(NEML2_ERROR_ARGUMENT, name, join("The ", argument.kind, " '", name, "' ", what));
}

void warn_of_free(Token token, HandleKind wanted, bool in_use) noexcept try {
  const std::string name = names[static_cast<std::size_t>(wanted)];
  log::write(log::Channel::model, log::Level::warning, name, "_free: the handle ",
             in_use ? "is in use, and goes when the last function that runs on it returns. Free it after that."
                    : told(token, wanted));
} catch (...) {
  // No memory to tell it.
}

}  // namespace neml2_capi::abi::table

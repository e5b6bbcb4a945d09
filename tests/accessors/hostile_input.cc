// SPDX-License-Identifier: Apache-2.0
// A step is a byte that says what, and its operands:
//   0 to 3   a word: part, where (3), value
//   4, 5     bytes, the input's own: part, where (3), count
//   6        one byte many times: part, where (3), size (2), byte
//   7        whether system calls are allowed: a byte
//   8 to 15  a call: accessor, four values
// A value is a byte that says what kind, and its bytes.
#include "hostile_input.h"

#include <algorithm>
#include <cstring>

#include "abi/machine/accessor.h"

namespace clew::accessors {
namespace {

constexpr uint64_t kNanosecondsMax = 0xFFF;  // For d_chill, which waits for half a second.

// Nothing behind the end.
class Reader {
 public:
  Reader(const HostileSession& session, std::span<const uint8_t> input)
      : session_(session), rest_(input) {}

  [[nodiscard]] bool is_at_end() const { return rest_.empty(); }

  uint64_t number(size_t size) {
    uint64_t value = 0;
    const size_t there = std::min(size, rest_.size());
    std::memcpy(&value, rest_.data(), there);
    rest_ = rest_.subspan(there);
    return value;
  }

  std::span<const uint8_t> bytes(size_t size) {
    const std::span<const uint8_t> taken = rest_.first(std::min(size, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

  // What accessors are given, and what their memory holds: offsets and pointers of all kinds.
  uint64_t value() {
    switch (number(1) % 9) {
      case 0:
        return number(1);
      case 1:
        return number(2);
      case 2:
        return abi::kMachineWindowTag | number(2);
      case 3:
        return abi::kMachineGlobalTag | number(1);
      case 4:
        return reinterpret_cast<uint64_t>(&session_.window()) + number(3);
      case 5:
        return uint64_t{0} - number(1);
      case 6:
        return (uint64_t{1} << (number(1) % 64)) - number(1) % 3;
      case 7:
        return number(1) * 0x0101'0101'0101'0101;
      default:
        return number(8);
    }
  }

  // Where a part is written: mostly near its begin, where headers are.
  std::span<uint8_t> place() {
    const std::span<uint8_t> part = session_.part(static_cast<Part>(number(1) % kParts));
    const uint64_t where = number(1) % 2 == 0 ? number(2) % 2048 : number(3);
    return part.subspan(where % part.size());
  }

 private:
  const HostileSession& session_;
  std::span<const uint8_t> rest_;
};

void write_word(Reader& from) {
  const std::span<uint8_t> place = from.place();
  const uint64_t value = from.value();
  std::memcpy(place.data(), &value, std::min(sizeof value, place.size()));
}

void write_bytes(Reader& from) {
  const std::span<uint8_t> place = from.place();
  const std::span<const uint8_t> bytes = from.bytes(from.number(1) % 128);
  std::memcpy(place.data(), bytes.data(), std::min(bytes.size(), place.size()));
}

void write_many(Reader& from) {
  const std::span<uint8_t> place = from.place();
  const size_t size = std::min(from.number(2), place.size());
  std::memset(place.data(), static_cast<int>(from.number(1)), size);
}

void write(Reader& from, uint64_t what) {
  if (what < 4) return write_word(from);
  what < 6 ? write_bytes(from) : write_many(from);
}

void call(const HostileSession& session, Reader& from) {
  using abi::MachineAccessor;
  const auto index = static_cast<uint32_t>(from.number(1) % kAccessorCount);
  std::array<uint64_t, 4> arguments;
  for (uint64_t& one : arguments)
    one = from.value();
  const auto accessor = static_cast<MachineAccessor>(abi::kMachineAccessorBase + index);
  if (accessor == MachineAccessor::Raise) return;  // It would end the process that asks.
  if (accessor == MachineAccessor::Chill) arguments[0] &= kNanosecondsMax;
  (void)session.call(index, arguments);
}

}  // namespace

void run(const HostileSession& session, std::span<const uint8_t> input) {
  Reader from(session, input);
  for (uint32_t step = 0; step < kStepsMax && !from.is_at_end(); ++step) {
    const uint64_t what = from.number(1) % 16;
    if (what < 7) {
      write(from, what);
    } else if (what == 7) {
      session.allow_system_calls(from.number(1) % 4 != 0);
    } else {
      call(session, from);
    }
  }
}

void write_only(const HostileSession& session, std::span<const uint8_t> input) {
  Reader from(session, input);
  while (!from.is_at_end())
    write(from, from.number(1) % 7);
}

}  // namespace clew::accessors

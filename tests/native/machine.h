// SPDX-License-Identifier: Apache-2.0
// Test support: runs bodies in this process as a trampoline would run them in a traced one. It lays
// out a slot and a window behind gs, writes a stub as abi/stub.h describes it, and answers accessor
// calls from an isa::AccessorHost. Link clew_machine. One Machine at a time per thread,
// which must be the thread that made it: the gs base belongs to the thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "abi/accessor.h"
#include "abi/calling.h"
#include "abi/context.h"
#include "abi/slot.h"
#include "base/error.h"
#include "isa/accessor_host.h"
#include "native/code.h"
#include "verify/verified_code.h"

namespace clew::native {

// General registers by hardware number; rsp is ignored.
using RegisterFile = std::array<uint64_t, 16>;

// What a run finds besides registers.
struct RunArguments {
  std::array<uint64_t, abi::kStackArgumentsMax> stack;
  std::array<uint64_t, abi::kVectorArgumentsMax> vectors;  // Low halves of xmm0 to xmm7.
};

struct MachineOptions {
  PointKind point = PointKind::Entry;
  uint32_t window_size_log2 = 14;
  uint64_t fuel = 100'000;
  bool branch_guards = false;
  uint32_t globals_bytes = 0;  // Up to 2048.
};

class Machine {
 public:
  static Expected<std::unique_ptr<Machine>> make(const MachineOptions& options);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  ~Machine();

  // For translate().
  [[nodiscard]] const Environment& environment() const { return environment_; }
  // For verify::check() of a body with these clobbers; with what the last installed code declares.
  [[nodiscard]] verify::Policy policy(abi::RegisterSet clobbers) const;
  [[nodiscard]] std::span<const uint64_t> accessor_entries() const { return entries_; }

  [[nodiscard]] std::span<uint8_t> window();
  [[nodiscard]] std::span<uint8_t> slack();
  [[nodiscard]] abi::SlotControl& slot();
  [[nodiscard]] std::span<uint8_t> globals();
  void set_generation(uint32_t generation);
  void set_host(isa::AccessorHost* host) { host_ = host; }

  // Writes stub and relocated body at the address of policy(). False when a call is out of reach.
  bool install(const Code& code);
  // The body's bytes as installed.
  [[nodiscard]] std::span<const uint8_t> body() const { return body_; }
  // The same for bytes that are at their final address already, e.g. a mutant of body().
  void install_bytes(std::span<const uint8_t> bytes, abi::RegisterSet clobbers);

  // Calls the stub with these registers and arguments; returns the registers afterwards.
  RegisterFile run(const RegisterFile& before, const RunArguments& arguments = {});

  // Of the last run: the address of the return address, which is Context::frame.
  [[nodiscard]] uint64_t frame() const { return frame_; }
  // The address of the stub, to be called as a function that takes nothing, for benchmarks.
  [[nodiscard]] uint64_t stub_address() const;

 private:
  struct Mapping {
    uint8_t* start = nullptr;
    size_t size_bytes = 0;
  };
  // What a thunk hands to the C side; its address is in the code page.
  struct CallRecord {
    uint64_t (*handler)(const CallRecord* record, const uint64_t* arguments);  // First: see the .S
    Machine* machine;
    abi::Accessor accessor;
  };

  explicit Machine(const MachineOptions& options) : options_(options) {}
  Expected<void> map();
  void write_entries();
  [[nodiscard]] uint32_t body_offset(abi::RegisterSet clobbers) const;
  void write_stub(std::span<const uint8_t> body, abi::RegisterSet clobbers);
  uint64_t answer(abi::Accessor accessor, const isa::Arguments& arguments);
  static uint64_t on_call(const CallRecord* record, const uint64_t* arguments);

  MachineOptions options_;
  Environment environment_;
  Mapping low_;
  Mapping slot_;
  Mapping code_;
  std::array<CallRecord, abi::kDoorCount> records_;
  std::array<uint64_t, abi::kDoorCount> entries_;
  std::array<verify::Callee, abi::kDoorCount> callees_;
  std::span<const uint8_t> body_;
  std::vector<verify::DeclaredFact> facts_;
  isa::AccessorHost* host_ = nullptr;
  uint64_t frame_ = 0;
};

}  // namespace clew::native

// SPDX-License-Identifier: Apache-2.0
// Test support: firings of a D session in this process, as they would run in a traced one. The
// arena is small, but the two runtimes, the session's arrays (the kernel's own maps), stubs,
// translated and verified bodies are the real ones. One DMachine at a time; threads besides the one
// that made it must claim a slot. There must be a kernel that takes BPF maps.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include "abi/arena.h"
#include "abi/machine/process.h"
#include "base/error.h"
#include "engine/extensions.h"
#include "kernel/machine_session.h"
#include "kernel/maps.h"
#include "kernel/session_testing.h"
#include "kernel/user_stacks.h"
#include "plan/d/firing.h"
#include "plan/d/generate.h"
#include "query/d/script.h"
#include "target/address_space.h"

namespace clew::process {

// General registers by hardware number; rsp is ignored.
using RegisterFile = std::array<uint64_t, 16>;
inline constexpr uint32_t kRax = 0;
inline constexpr uint32_t kRdx = 2;
inline constexpr uint32_t kRbp = 5;
inline constexpr uint32_t kRsi = 6;
inline constexpr uint32_t kRdi = 7;

// A D program of which all clauses are one probe's, but those of ERROR.
struct DScript {
  query::d::Script script;
  plan::d::Generated generated;
  std::vector<uint32_t> clauses;
  std::vector<uint32_t> error_clauses;

  // `extensions` have the functions that are not D's own; null: there are none.
  static Expected<DScript> compile(std::string_view text, engine::Extensions* extensions = nullptr);
  [[nodiscard]] kernel::MachinePrograms programs() const;
};

// What a site is.
struct FiringSite {
  plan::d::FiringPoint point = plan::d::FiringPoint::Entry;
  uint64_t cookie = uint64_t{77} << 32;  // Enabling 0.
  uint64_t program_counter = 0x1234;
  uint64_t return_offset = 9;
  std::string_view static_arguments = {};  // At an Offset.
};

// Code of a firing that can be run.
struct InstalledFiring {
  uint64_t stub_address = 0;
  uint32_t code_bytes = 0;
  uint32_t instructions = 0;
  uint64_t made_ns = 0;  // Translation and verification.
};

class DMachine {
 public:
  static Expected<std::unique_ptr<DMachine>> make(kernel::MachinePrograms programs);
  DMachine(const DMachine&) = delete;
  DMachine& operator=(const DMachine&) = delete;
  ~DMachine();

  // For other threads: a slot of their own, before they fire, and none, before they end.
  Expected<void> claim();
  static void leave();

  // What the clauses of the session call; borrowed.
  void use_extensions(const plan::d::Generated& generated) { extensions_ = &generated; }
  // Of this thread: firings that were out of fuel.
  // Words of the thread's window: firings that ran out of fuel, and that were not begun then.
  [[nodiscard]] uint64_t& out_of_fuel() const;
  [[nodiscard]] uint64_t& left_alone() const;

  // The firing of these clauses of the session; others may follow.
  Expected<InstalledFiring> install(const FiringSite& site, const std::vector<uint32_t>& clauses);
  // Runs it as a function that finds these registers and stack arguments; the registers afterwards.
  RegisterFile fire(const InstalledFiring& firing, const RegisterFile& registers = {},
                    const std::array<uint64_t, 10>& stack = {});

  // Calls an accessor as a body does: the arguments behind the window. Between runs.
  uint64_t call(abi::MachineAccessor accessor, uint64_t r2, uint64_t r3, uint64_t r4);

  // Walks of stacks find the code of this process.
  Expected<void> know_stacks();
  // Walks that met code which nobody knows.
  [[nodiscard]] uint32_t unknown_code() const;

  // Records of this thread since the last call.
  std::vector<kernel::Record> read_records();
  [[nodiscard]] std::vector<kernel::MachineAggregate> aggregate(uint32_t aggregation) const;
  // The same, and takes it out.
  std::vector<kernel::MachineAggregate> take(uint32_t aggregation);
  [[nodiscard]] abi::MachineShared& shared() const {
    return *maps_.shared.as<abi::MachineShared>();
  }
  [[nodiscard]] uint8_t* globals() const { return maps_.globals.memory.data(); }
  // The probe's name at this place of the session's names.
  [[nodiscard]] std::string name_at(uint64_t place) const {
    return reinterpret_cast<const char*>(maps_.names.memory.data() + place);
  }
  [[nodiscard]] abi::MachineWindow& window() const;
  [[nodiscard]] abi::ArenaHeader& header() const;
  [[nodiscard]] abi::RegionHeader& region() const;
  // Of the last run: the address of the return address.
  [[nodiscard]] uint64_t frame() const { return frame_; }

 private:
  explicit DMachine(kernel::MachinePrograms programs) : programs_(std::move(programs)) {}
  Expected<void> map();
  void fill_process();
  void fill_arena();
  static uint8_t* own_slot();
  [[nodiscard]] std::vector<plan::d::FiringClause> clauses_of(
      const std::vector<uint32_t>& clauses) const;

  kernel::MachinePrograms programs_;
  kernel::MachineMaps maps_;
  target::AddressSpaces spaces_;
  std::vector<uint8_t> tables_;
  std::unique_ptr<kernel::UserStacks> stacks_;
  abi::MachineProcess process_{};
  uint8_t* low_ = nullptr;
  uint8_t* slots_ = nullptr;
  uint8_t* code_ = nullptr;
  uint8_t* low_globals_ = nullptr;
  size_t globals_size_ = 0;
  uint8_t* low_shared_ = nullptr;
  size_t shared_size_ = 0;
  uint32_t used_ = 0;  // Of the code.
  const plan::d::Generated* extensions_ = nullptr;
  std::array<uint64_t, abi::kMachineProcessAccessorsEnd> entries_{};
  uint64_t frame_ = 0;
  pid_t thread_ = gettid();
};

}  // namespace clew::process

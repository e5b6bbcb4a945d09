// SPDX-License-Identifier: Apache-2.0
// What a module's code says of its guards (guards.h): where they are, which of them a function
// comes to first, how deep the stack is at each call, and where exceptions and longjmp may go on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "code/stack_depth.h"
#include "recorder/recorded_module.h"
#include "recorder/walk.h"
#include "target/module_image.h"

namespace clew::recorder {

// A block of a function that is proved, which ends with the call.
struct GuardSite {
  uint64_t behind = 0;    // The call's return address.
  uint32_t function = 0;  // In ModuleProof::proved.
  uint32_t block = 0;
};

class GuardPaths {
 public:
  // All are borrowed. Errors: Io when the file was truncated since it was read.
  static Expected<std::unique_ptr<GuardPaths>> of(const RecordedModule& module,
                                                  const ModulePaths& paths,
                                                  const target::ModuleImage& image);
  GuardPaths(const RecordedModule& module, const ModulePaths& paths,
             std::vector<uint64_t> twice_slots);

  // The return address of a record, which may be any. Nothing: no guard's call is in front of it.
  [[nodiscard]] std::optional<GuardSite> site_of(uint32_t offset) const;
  [[nodiscard]] bool is_site(uint32_t function, uint32_t block) const {
    return of(function).kinds[block] != Kind::Plain;
  }
  // The first guard of an activation.
  [[nodiscard]] bool is_first(uint32_t function, uint32_t block) const {
    return of(function).kinds[block] == Kind::First;
  }
  // Whatever way control takes from its entry, it comes to a guard before all else that calls or
  // returns.
  [[nodiscard]] bool tells_entry(uint32_t function) const { return of(function).tells_entry; }
  // In front of the first guard.
  [[nodiscard]] bool is_in_front(uint32_t function, uint32_t block) const;
  // Control may come to that guard again in the same activation.
  [[nodiscard]] bool repeats(uint32_t function, uint32_t block) const;
  // Behind the block is nothing but the function's caller.
  [[nodiscard]] bool only_returns(uint32_t function, uint32_t block) const;
  [[nodiscard]] bool may_tail(uint32_t function) const { return of(function).may_tail; }
  // Blocks behind calls that may return twice.
  [[nodiscard]] std::span<const uint32_t> resumes(uint32_t function) const {
    return of(function).resumes;
  }
  // In front of an instruction: bytes below where the stack pointer was at the function's entry.
  [[nodiscard]] std::optional<int64_t> depth_at(uint32_t function, uint64_t address) const;
  // In front of a block's last one.
  [[nodiscard]] std::optional<int64_t> depth_in(uint32_t function, uint32_t block) const {
    return depth_at(function, this->block(function, block).last);
  }
  // At the entry of what the block's call enters, in an activation whose entry was at `frame`.
  [[nodiscard]] std::optional<int64_t> callee_frame(uint32_t function, uint32_t block,
                                                    std::optional<int64_t> frame) const;
  // The block's call enters a function that tells its entry.
  [[nodiscard]] bool is_told(uint32_t function, uint32_t block) const;
  // Where control may go on when the block's call has been left, whichever way.
  [[nodiscard]] std::vector<uint32_t> behind_call(uint32_t function, uint32_t block) const;
  // The block with that instruction.
  [[nodiscard]] std::optional<GuardSite> block_at(uint64_t address) const;
  [[nodiscard]] const Flow& flow(uint32_t function) const { return paths_.of(function).flow(); }
  [[nodiscard]] const code::Block& block(uint32_t function, uint32_t number) const {
    return module_.proof().proved[function].blocks.blocks()[number];
  }

 private:
  enum class Kind : uint8_t { Plain, Site, First };
  struct Function {
    std::vector<Kind> kinds;     // By block.
    std::vector<bool> in_front;  // By block: reached from the entry without a guard.
    std::vector<uint32_t> resumes;
    bool tells_entry = false;
    bool may_tail = false;
  };

  [[nodiscard]] const Function& of(uint32_t function) const { return functions_[function]; }
  Function look_at(uint32_t function);
  [[nodiscard]] bool may_return_twice(const code::ModuleCode& code, const Node& node,
                                      const code::Instruction& call) const;
  void look_from_entry(const Flow& flow, Function& into) const;

  const RecordedModule& module_;
  const ModulePaths& paths_;
  std::vector<uint64_t> twice_;      // Slots and functions that may return twice. Ascending.
  std::vector<GuardSite> sites_;     // By address.
  std::vector<Function> functions_;  // As ModuleProof::proved.
  mutable std::unordered_map<uint32_t, code::StackDepths> depths_;
};

}  // namespace clew::recorder

// SPDX-License-Identifier: Apache-2.0
// The names, and the search for what follows from them.
#include "code/noreturn.h"

#include <algorithm>
#include <array>
#include <utility>

#include "code/blocks.h"
#include "code/decode.h"
#include "code/opcodes.h"

namespace clew::code {

namespace {

// ISO C and POSIX, glibc (also what its headers call), the Itanium C++ ABI, libstdc++ and libgcc_s.
constexpr auto kNames = std::to_array<std::string_view>({
    "abort",
    "exit",
    "_exit",
    "_Exit",
    "quick_exit",
    "thrd_exit",
    "pthread_exit",
    "longjmp",
    "_longjmp",
    "siglongjmp",
    "__longjmp_chk",
    "__assert",
    "__assert_fail",
    "__assert_perror_fail",
    "__stack_chk_fail",
    "__fortify_fail",
    "__chk_fail",
    "__libc_fatal",
    "__libc_start_main",
    "__pthread_unwind_next",
    "err",
    "errx",
    "verr",
    "verrx",
    "_Unwind_Resume",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_unexpected",
    "__cxa_deleted_virtual",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_length",
    "__cxa_throw_bad_array_new_length",
    "_ZSt9terminatev",
    "_ZSt10unexpectedv",
    "_ZSt16__throw_bad_castv",
    "_ZSt17__throw_bad_allocv",
    "_ZSt17rethrow_exceptionNSt15__exception_ptr13exception_ptrE",
    "_ZSt18__throw_bad_typeidv",
    "_ZSt19__throw_ios_failurePKc",
    "_ZSt19__throw_ios_failurePKci",
    "_ZSt19__throw_logic_errorPKc",
    "_ZSt19__throw_range_errorPKc",
    "_ZSt19__throw_regex_errorNSt15regex_constants10error_typeE",
    "_ZSt20__throw_domain_errorPKc",
    "_ZSt20__throw_future_errori",
    "_ZSt20__throw_length_errorPKc",
    "_ZSt20__throw_out_of_rangePKc",
    "_ZSt20__throw_system_errori",
    "_ZSt21__throw_bad_exceptionv",
    "_ZSt21__throw_runtime_errorPKc",
    "_ZSt22__throw_overflow_errorPKc",
    "_ZSt23__throw_underflow_errorPKc",
    "_ZSt24__throw_invalid_argumentPKc",
    "_ZSt24__throw_out_of_range_fmtPKcz",
    "_ZSt25__throw_bad_function_callv",
    "_ZSt28__throw_bad_array_new_lengthv",
});

// So many bytes of functions are walked over: some thirty times those of the largest libraries.
// Functions that are left are taken to return. Ranges may overlap in a hostile file.
constexpr uint64_t kWalkedBytesMax = uint64_t{4} << 30;

}  // namespace

std::span<const std::string_view> noreturn_names() {
  return kNames;
}

Expected<std::vector<uint64_t>> noreturn_slots(const target::ModuleImage& image) {
  std::vector<uint64_t> slots;
  for (const std::string_view name : kNames) {
    for (const target::ImportSlot& slot : CLEW_TRY(image.import_slots(name)))
      slots.push_back(slot.slot_address);
  }
  std::sort(slots.begin(), slots.end());
  return slots;
}

class NoReturnFinder {
 public:
  explicit NoReturnFinder(NoReturn& known) : code_(known.code_), known_(known) {}

  void run() {
    const auto count = static_cast<uint32_t>(code_.functions().size());
    known_.never_.resize(count);
    for (uint32_t function = 0; function < count; ++function) {
      if (code_.functions()[function].owner != kNoOwner) continue;
      look_at(function, true);
    }
    std::sort(calls_.begin(), calls_.end());
    while (!pending_.empty()) {
      const uint32_t callee = pending_.back();
      pending_.pop_back();
      auto call = std::lower_bound(calls_.begin(), calls_.end(), Call{callee, 0});
      for (; call != calls_.end() && call->first == callee; ++call) {
        if (!known_.never_[call->second]) look_at(call->second, false);
      }
    }
  }

 private:
  using Call = std::pair<uint32_t, uint32_t>;  // Callee, caller.

  void look_at(uint32_t function, bool is_first) {
    if (!has_budget_for(function)) return;
    const Blocks blocks = find_blocks(code_, function, known_);
    if (is_first) note_calls(function, blocks);
    if (may_return(blocks)) return;
    known_.never_[function] = true;
    pending_.push_back(function);
  }

  bool has_budget_for(uint32_t function) {
    for (const AddressRange& part : code_.parts_of(function))
      walked_bytes_ += part.end - part.begin;
    return walked_bytes_ <= kWalkedBytesMax;
  }

  void note_calls(uint32_t function, const Blocks& blocks) {
    for (const Block& block : blocks.blocks()) {
      const std::optional<Instruction> last = code_.at(block.last);
      if (last && last->flow == Flow::Call) note_call(branch_target(code_, *last), function);
      for (const Edge& edge : blocks.edges_of(block)) {
        if (edge.kind == EdgeKind::TailCall) note_call(edge.target, function);
      }
    }
  }

  void note_call(uint64_t target, uint32_t caller) {
    const std::optional<uint32_t> callee = code_.function_starting_at(target);
    if (callee) calls_.emplace_back(*callee, caller);
  }

  [[nodiscard]] bool may_return(const Blocks& blocks) const {
    const std::vector<Block>& all = blocks.blocks();
    return all.empty() || std::any_of(all.begin(), all.end(), [&](const Block& block) {
             const std::span<const Edge> edges = blocks.edges_of(block);
             return std::any_of(edges.begin(), edges.end(),
                                [&](const Edge& edge) { return may_return(block, edge); });
           });
  }

  [[nodiscard]] bool may_return(const Block& block, const Edge& edge) const {
    switch (edge.kind) {
      case EdgeKind::Next:
      case EdgeKind::Taken:
      case EdgeKind::CallReturn:
      case EdgeKind::StackSwitch:
      case EdgeKind::Label:
        return false;
      case EdgeKind::Case:
        return edge.block == kNoBlock;
      case EdgeKind::TailCall:
        return !leads_to_end(block, edge);
      case EdgeKind::Elsewhere:
      case EdgeKind::Return:
      case EdgeKind::Unknown:
        return true;
    }
    return true;
  }

  // Target 0: an indirect jump.
  [[nodiscard]] bool leads_to_end(const Block& block, const Edge& tail_call) const {
    if (tail_call.target != 0) return known_.never_returns_at(tail_call.target);
    const std::optional<Instruction> jump = code_.at(block.last);
    return jump && known_.is_last(*jump);
  }

  const ModuleCode& code_;
  NoReturn& known_;
  std::vector<Call> calls_;
  std::vector<uint32_t> pending_;  // Whose callers were not looked at again.
  uint64_t walked_bytes_ = 0;
};

NoReturn::NoReturn(const ModuleCode& code, std::vector<uint64_t> slots)
    : code_(code), slots_(std::move(slots)) {
  std::sort(slots_.begin(), slots_.end());
  NoReturnFinder(*this).run();
}

bool NoReturn::never_returns(uint32_t function) const {
  return function < never_.size() && never_[function];
}

bool NoReturn::never_returns_at(uint64_t address) const {
  if (code_.range_at(address)) {
    const std::optional<uint32_t> function = code_.function_starting_at(address);
    return function && never_returns(*function);
  }
  const std::span<const uint8_t> stub = code_.text_from(address);
  const bool has_endbr64 =
      stub.size() > kEndbr64.size() && std::equal(kEndbr64.begin(), kEndbr64.end(), stub.begin());
  const std::optional<Instruction> jump = code_.at(address + (has_endbr64 ? kEndbr64.size() : 0));
  return jump && jump->flow == Flow::IndirectJump && reads_slot(*jump);
}

bool NoReturn::is_last(const Instruction& branch) const {
  switch (branch.flow) {
    case Flow::Call:
    case Flow::Jump:
    case Flow::Conditional:
      return never_returns_at(branch_target(code_, branch));
    case Flow::IndirectCall:
    case Flow::IndirectJump:
      return reads_slot(branch);
    case Flow::Next:
    case Flow::Nop:
    case Flow::Int3:
    case Flow::Return:
    case Flow::Trap:
    case Flow::System:
    case Flow::Bad:
      return false;
  }
  return false;
}

// `jmp [rip + x]` and `call [rip + x]`.
bool NoReturn::reads_slot(const Instruction& branch) const {
  const auto decoded = decode(code_.text_from(branch.address));
  if (!decoded || !decoded->rip_relative || decoded->displacement_size != 4) return false;
  const int64_t distance =
      signed_field(code_.text_from(branch.address), decoded->displacement_offset, 4);
  return std::binary_search(slots_.begin(), slots_.end(),
                            branch.end() + static_cast<uint64_t>(distance));
}

}  // namespace clew::code

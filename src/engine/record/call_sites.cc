// SPDX-License-Identifier: Apache-2.0
#include "engine/record/call_sites.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

namespace clew::engine {

namespace {

using target::SavedAt;
using target::SavedRegister;
using target::UnwindKind;
using target::UnwindRule;

constexpr unsigned kFramesMax = 64;

// psABI x86-64, figure 3.36.
constexpr uint8_t kRbx = 3;
constexpr uint8_t kRbp = 6;
constexpr uint8_t kRsp = 7;

using Known = std::optional<uint64_t>;

struct Frame {
  uint64_t pc = 0;
  Known sp;
  Known bp;
  Known bx;
  bool is_called = false;  // Its pc is behind a call.

  [[nodiscard]] Known base(uint8_t number) const {
    if (number == kRsp) return sp;
    if (number == kRbp) return bp;
    return number == kRbx ? bx : std::nullopt;
  }
};

std::string key_of(const target::ProcessModule& module) {
  return module.path + '\n' + module.build_id;
}

const target::ProcessModule* module_at(const std::vector<target::ProcessModule>& modules,
                                       uint64_t pc) {
  const auto found =
      std::find_if(modules.begin(), modules.end(),
                   [pc](const target::ProcessModule& module) { return module.contains(pc); });
  return found == modules.end() ? nullptr : &*found;
}

Known word_at(pid_t process, const Known& address) {
  uint64_t word = 0;
  std::array<uint8_t, sizeof(word)> bytes{};
  if (!address || !target::read_memory(process, *address, bytes)) return std::nullopt;
  std::memcpy(&word, bytes.data(), sizeof(word));
  return word;
}

Known plus(const Known& base, int64_t offset) {
  return base ? Known(*base + static_cast<uint64_t>(offset)) : std::nullopt;
}

Known cfa_of(pid_t process, const Frame& frame, const UnwindRule& rule, uint64_t address) {
  if (rule.kind == UnwindKind::Plt) {
    const bool has_pushed = (address & 15) >= static_cast<uint64_t>(rule.second_offset);
    return plus(frame.sp, rule.offset + (has_pushed ? 8 : 0));
  }
  if (rule.kind != UnwindKind::Base) return std::nullopt;
  const Known at = plus(frame.base(rule.base), rule.offset);
  return rule.is_loaded ? plus(word_at(process, at), rule.second_offset) : at;
}

Known saved(pid_t process, const SavedRegister& how, const Frame& frame, const Known& same,
            const Known& cfa) {
  switch (how.at) {
    case SavedAt::Same:
      return same;
    case SavedAt::Lost:
      return std::nullopt;
    case SavedAt::Cfa:
      return word_at(process, plus(cfa, how.offset));
    case SavedAt::Sp:
      return word_at(process, plus(frame.sp, how.offset));
    case SavedAt::Fp:
      return word_at(process, plus(frame.bp, how.offset));
  }
  return std::nullopt;
}

const UnwindRule* rule_at(const target::UnwindRows& rows, uint64_t address) {
  const auto behind = std::upper_bound(
      rows.rows.begin(), rows.rows.end(), address,
      [](uint64_t value, const target::UnwindRow& row) { return value < row.address; });
  return behind == rows.rows.begin() ? nullptr : &rows.rules[(behind - 1)->rule];
}

// Nothing when the caller is not known.
std::optional<Frame> caller_of(pid_t process, const Frame& frame, const UnwindRule& rule,
                               uint64_t address) {
  const Known cfa = cfa_of(process, frame, rule, address);
  if (!cfa) return std::nullopt;
  const Known pc = saved(process, rule.pc, frame, std::nullopt, cfa);
  if (!pc) return std::nullopt;
  return Frame{.pc = *pc,
               .sp = cfa,
               .bp = saved(process, rule.fp, frame, frame.bp, cfa),
               .bx = saved(process, rule.bx, frame, frame.bx, cfa),
               .is_called = !rule.is_signal};
}

}  // namespace

void CallSites::read(const std::vector<target::ProcessModule>& modules) {
  for (const target::ProcessModule& module : modules)
    (void)rows_of(module);
}

// Empty where there are none.
const target::UnwindRows& CallSites::rows_of(const target::ProcessModule& module) {
  const auto [place, is_new] = rows_.try_emplace(key_of(module));
  if (!is_new || !module.problem.empty()) return place->second;
  if (auto rows = target::read_unwind_rows(module.open_path)) place->second = std::move(*rows);
  return place->second;
}

std::optional<uint64_t> CallSites::find(pid_t process, const user_regs_struct& registers,
                                        const std::vector<target::ProcessModule>& modules,
                                        const IsInCopy& is_in_copy) {
  const bool is_waiting = registers.rbp == 0 && registers.rbx == 0;
  const auto if_known = [is_waiting](uint64_t value) {
    return is_waiting ? std::nullopt : Known(value);
  };
  Frame frame{.pc = registers.rip,
              .sp = registers.rsp,
              .bp = if_known(registers.rbp),
              .bx = if_known(registers.rbx)};
  for (unsigned frames = 0; frames < kFramesMax; ++frames) {
    const uint64_t inside = frame.pc - (frame.is_called ? 1 : 0);
    if (is_in_copy(inside)) return frames == 0 ? std::nullopt : Known(frame.pc);
    const target::ProcessModule* const module = module_at(modules, inside);
    if (module == nullptr) return std::nullopt;
    const uint64_t address = inside - module->load_bias;
    const UnwindRule* const rule = rule_at(rows_of(*module), address);
    const auto caller = rule == nullptr ? std::nullopt : caller_of(process, frame, *rule, address);
    if (!caller) return std::nullopt;
    frame = *caller;
  }
  return std::nullopt;
}

}  // namespace clew::engine
